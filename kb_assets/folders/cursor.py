"""The sensor's cursor: how far each scope's changes were looked at.

A hint that saves work, never the truth: with it lost, every file is compared with the ledger once
and nothing is queued twice. Small on purpose, because Dagster stores it with every tick.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

START = (0, "")


@dataclass(frozen=True, slots=True)
class ScopeCursor:
    """How far one scope's folder was looked at.

    Attributes:
        since: mark of the last entry looked at (nanoseconds, path); later changes are news.
        listing: fingerprint of the folder when nothing was left to do.
        mapping: digest of its kb.yaml then; None where it is not known.
        held: paths passed over because their document was being worked on.
        remapping: whether every file is being compared under a changed mapping.
    """

    since: tuple[int, str] = START
    listing: str = ""
    mapping: str | None = None
    held: tuple[str, ...] = ()
    remapping: bool = False

    def anew(self) -> ScopeCursor:
        """The same, but with every file to be looked at again under a changed mapping."""
        return replace(self, since=START, listing="", remapping=True)


@dataclass(frozen=True, slots=True)
class Cursor:
    """Cursors of all scopes of a sensor."""

    scopes: Mapping[str, ScopeCursor] = field(default_factory=dict)

    def dump(self) -> str:
        """As Dagster stores it."""
        return json.dumps(
            {
                name: [
                    *scope.since,
                    scope.listing,
                    scope.mapping,
                    list(scope.held),
                    scope.remapping,
                ]
                for name, scope in sorted(self.scopes.items())
            },
            separators=(",", ":"),
        )

    @classmethod
    def load(cls, text: str | None) -> Cursor:
        """Read it; anything unreadable counts as lost."""
        try:
            found: dict[str, Any] = json.loads(text) if text else {}
            return cls(
                {
                    name: ScopeCursor(
                        (int(ns), str(path)), str(listing), mapping, tuple(held), bool(remapping)
                    )
                    for name, (ns, path, listing, mapping, held, remapping) in found.items()
                }
            )
        except (ValueError, TypeError, AttributeError):
            return cls()
