"""The names that the server, the pool and the migrations agree on.

Belongs here: role and database names. What does not: rights, which the migrations grant.
See https://www.postgresql.org/docs/current/user-manag.html.
"""

from __future__ import annotations

from typing import Literal

Role = Literal["owner", "pipeline", "app"]
"""Who a connection acts as: the schema's owner, the pipeline, or the reading side."""

PIPELINE_ROLE = "kb_pipeline"
APP_ROLE = "kb_app"
EMBEDDED_OWNER = "kb_owner"
"""Superuser of the embedded server; on your own server the owner is whoever the DSN names."""
DAGSTER_ROLE = "kb_dagster"
"""Owns Dagster's database on the embedded server and nothing else."""

KNOWLEDGE_DATABASE = "kb"
DAGSTER_DATABASE = "dagster"

EMBEDDED_USERS: dict[Role, str] = {
    "owner": EMBEDDED_OWNER,
    "pipeline": PIPELINE_ROLE,
    "app": APP_ROLE,
}
