"""Next steps in the words of the door they are heard at.

Belongs here: what an error's advice about commands means over HTTP and MCP. What does not: raising.
Errors are raised below all doors and speak of commands, since most people meet them there; what the
server itself lacks (5xx) is for whoever runs it, who has the commands.
"""

from __future__ import annotations

import re

_COMMAND = re.compile(r"(?<!the )\bkb [a-z]|--[a-z]|`kb\b")
_WORDS: tuple[tuple[str, str], ...] = (
    ("kb documents list", "GET /api/v1/documents"),
    ("kb documents history", "GET /api/v1/documents/{scope}/{document_id}/history"),
    ("kb documents restore", "POST /api/v1/documents/{scope}/{document_id}/restore"),
    ("kb passages show", "GET /api/v1/passages/{scope}/{passage_id}"),
    ("kb review list", "GET /api/v1/reviews"),
    ("kb review show", "GET /api/v1/reviews"),
    ("kb watch list", "GET /api/v1/watches"),
    ("kb cite list", "GET /api/v1/citations"),
    ("kb erasures --scope NAME", "GET /api/v1/erasures"),
    ("kb eval list", "GET /api/v1/evaluations"),
    ("kb scopes list, or create it with kb scopes create", "GET /api/v1/me"),
    ("kb scopes list", "GET /api/v1/me"),
    (", or reopen it with kb scopes reopen", ""),
    ("Name one with --scope NAME", "Name one of the scopes that /api/v1/me lists"),
    ("with --actor", "with X-KB-Actor"),
    ("--scope NAME", "scope"),
    ("--reason", "reason"),
)
_OTHERWISE = "Ask whoever runs this server."


def over_http(next_step: str, status: int) -> str:
    """A next step for callers of the API; what only a command could do is for the operator."""
    if status >= 500:
        return next_step
    for command, here in _WORDS:
        next_step = next_step.replace(f"`{command}`", here).replace(command, here)
    return _OTHERWISE if _COMMAND.search(next_step) else next_step


def over_mcp(next_step: str) -> str:
    """A next step for a model, which has the tools and nothing else."""
    return "Search for it." if _COMMAND.search(next_step) else next_step
