"""What changes between versions, free of I/O: readable differences and intervals of time.

Belongs here: pure functions over texts, intervals and log entries. What does not: rows
(`store`), deciding what supersedes what (`stages`).
"""

from typing import TYPE_CHECKING

from kb_resources.lazy import on_demand
from kb_resources.supersede.instants import check_instant, parse_instant

if TYPE_CHECKING:
    from kb_resources.supersede.hunks import Hunk, diff
else:
    __getattr__ = on_demand(__name__, {"hunks": ("Hunk", "diff")})

__all__ = ["Hunk", "check_instant", "diff", "parse_instant"]
