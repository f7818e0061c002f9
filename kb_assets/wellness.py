"""Is a running Dagster well? Asked over its public GraphQL API.

Belongs here: what has to answer before `up` says so. See
https://docs.dagster.io/api/graphql.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

DAEMONS = ("SENSOR", "SCHEDULER", "QUEUED_RUN_COORDINATOR", "BACKFILL")

_QUERY = """{
  workspaceOrError { ... on Workspace { locationEntries {
    name loadStatus locationOrLoadError { __typename } } } }
  instance { daemonHealth { allDaemonStatuses { daemonType healthy } } }
}"""


def missing(url: str) -> str:
    """What does not answer yet, in words; empty when all is well."""
    try:
        found = ask(url, _QUERY)
    except (urllib.error.URLError, ConnectionError, TimeoutError, ValueError):
        return "the web server"
    entries = found["workspaceOrError"].get("locationEntries", [])
    loaded = [
        entry
        for entry in entries
        if entry["loadStatus"] == "LOADED"
        and (entry["locationOrLoadError"] or {}).get("__typename") == "RepositoryLocation"
    ]
    if not loaded:
        return "the code location"
    healthy = {
        status["daemonType"]
        for status in found["instance"]["daemonHealth"]["allDaemonStatuses"]
        if status["healthy"]
    }
    ill = [name for name in DAEMONS if name not in healthy]
    return f"the daemon ({', '.join(ill).lower()})" if ill else ""


def ask(url: str, query: str, timeout_s: float = 10.0) -> dict[str, Any]:
    """Answer of the GraphQL API; ValueError when it is an error."""
    request = urllib.request.Request(  # noqa: S310 - our own address
        f"{url}/graphql",
        data=json.dumps({"query": query}).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=timeout_s) as answer:  # noqa: S310
        found: dict[str, Any] = json.load(answer)
    if "errors" in found:
        raise ValueError(str(found["errors"])[:500])
    return dict(found["data"])
