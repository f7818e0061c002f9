"""The asset graph: one module per stage, the line, the batch job, sensors, schedules, definitions.

Belongs here: what Dagster schedules and shows. What does not: work on documents (`kb_resources`)
and judging it (`kb_checks`).
"""
