"""The policies of all tasks."""

import policies_apps
import policies_click
import policies_drawing
import policies_fields

TASKS = policies_apps.TASKS | policies_click.TASKS | policies_drawing.TASKS | policies_fields.TASKS
TASKS = dict(sorted(TASKS.items()))
