"""The state of a scope in numbers; every document is in exactly one state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from kb_resources.model import DocumentState
from kb_resources.store import documents, generations
from kb_resources.store.documents import Conn
from kb_resources.store.sql import sql


@dataclass(frozen=True, slots=True)
class ScopeHealth:
    """One scope's numbers.

    Attributes:
        scope: name.
        documents: count by state, all states named.
        passages: published passages, history included.
        current_passages: those valid now.
        backlog_age_s: seconds since the oldest pending document changed, 0 without backlog.
        live_model: identity of the model the scope is searched by, None while it has no vectors.
        wanted_model: identity of the model that the installation is set to.
    """

    scope: str
    documents: Mapping[DocumentState, int]
    passages: int
    current_passages: int
    backlog_age_s: float
    live_model: str | None
    wanted_model: str

    @property
    def backlog(self) -> int:
        """Documents not yet in a terminal state."""
        return self.documents[DocumentState.PENDING]


def of_scope(conn: Conn, scope: str, now: datetime, wanted_model: str) -> ScopeHealth:
    """Numbers of one scope; NotFound for an unknown one."""
    documents.get_scope(conn, scope)
    given = {"scope": scope}
    states = dict(conn.execute(sql("scope_states"), given).fetchall())
    row = conn.execute(sql("scope_passages"), given).fetchone() or (0, 0)
    since = conn.execute(sql("oldest_pending"), given).fetchone()
    held = generations.of_scope(conn, scope)
    return ScopeHealth(
        scope=scope,
        documents={state: states.get(state.value, 0) for state in DocumentState},
        passages=row[0],
        current_passages=row[1],
        backlog_age_s=max(0.0, (now - since[0]).total_seconds()) if since and since[0] else 0.0,
        live_model=held.live if held else None,
        wanted_model=wanted_model,
    )
