"""What must hold for a document at each stage, shown to operators as asset checks.

One module per stage; `registry` lists them, `reporting` turns them into Dagster's specs and events.
Checks show the gate and never are the gate: that is in Postgres.
"""
