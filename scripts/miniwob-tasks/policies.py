"""All tasks with their policies."""

import policies_click

TASKS = dict(sorted((policies_click.TASKS).items()))
