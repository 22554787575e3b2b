"""All tasks with their policies."""

import policies_click
import policies_drawing
import policies_fields

TASKS = dict(sorted((policies_click.TASKS | policies_drawing.TASKS | policies_fields.TASKS).items()))
