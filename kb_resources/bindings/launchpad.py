"""Addresses in Dagster's UI: a job's launchpad filled in, an asset's page at one document.

Belongs here: writing addresses. What does not: which of them an operator is shown. The launchpad
reads its configuration from the address (`/playground/setup?config=`), as Dagster's own "Open in
Launchpad" does; addresses are relative to the UI's root.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

_SAFE = "'/:,"
"""Left as they are, so that the name of a document stands between signs that belong to no name:
what erases a document writes over its name there too."""


def launchpad(job: str, config: Mapping[str, Any], location: str = "kb") -> str:
    """Address of a job's launchpad with a configuration filled in.

    Args:
        job: its name.
        config: texts, numbers and lists of them, by name.
        location: the code location.
    """
    written = "\n".join(f"{name}: {_yaml(value)}" for name, value in config.items())
    return f"/locations/{location}/jobs/{job}/playground/setup?config={quote(written, _SAFE)}"


def partition(asset: str, key: str) -> str:
    """Address of an asset's page that shows one partition."""
    return f"/assets/{quote(asset)}?view=partitions&partition={quote(key, _SAFE)}"


def decision_links(key: str, digest: str) -> str:
    """Markdown: release or reject the version that has this digest."""
    links = []
    for verb in ("release", "reject"):
        config = {"decision": verb, "document": key, "digest": digest[:16], "reason": "", "by": ""}
        links.append(f"[{verb.capitalize()}]({launchpad('kb_review', config)})")
    return " ".join(links)


def _yaml(value: Any) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, list):
        return f"[{', '.join(map(_yaml, value))}]"
    return json.dumps(value)
