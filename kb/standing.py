"""How a document stands, in words for people.

Belongs here: what is told besides the ledger's own reason. What does not: deciding it.
"""

from __future__ import annotations


def with_in_force(reason: str, state: str, in_force: int | None) -> str:
    """Why a document is not indexed, and which of its versions holds all the same.

    Where the work is not done (`pending`) nothing was refused yet.
    """
    if in_force is None or state in ("indexed", "pending"):
        return reason
    stop = "" if not reason or reason.endswith(".") else "."
    return f"{reason}{stop} Version {in_force} stays in force.".strip()
