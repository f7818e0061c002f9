"""From an answer to the bytes it rests on, by the correlation id that all logs share.

Belongs here: reading the logs of one id and checking what stands behind them now. What does not:
writing logs, saying what has changed since (`replay`). Requirements O-48 to O-50.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from typing import Any

from kb_resources.answer.keeping import Transactions
from kb_resources.errors import IntegrityError, NotFound, PolicyError
from kb_resources.model import Principal, sha256_hex
from kb_resources.retrieve.log import check_correlation_id
from kb_resources.retrieve.visible import readable_scope
from kb_resources.store import logs

ReadBlob = Callable[[str, str], bytes | None]
"""Source bytes of a scope's version by digest; None where they are gone."""

_PLACE = ("scope", "document_id", "version", "passage_id")


@dataclass(frozen=True, slots=True)
class TracedSource:
    """A passage that a search reached or an answer cites, and what still stands behind it.

    Attributes:
        scope: scope name.
        document_id: the document.
        version: number within the document.
        passage_id: the passage.
        digest: of the version's bytes, as the log says.
        cited: whether an answer cites it.
        ranks: its rank in each search.
        known: whether document and version are still there.
        is_slice: the passage is a slice of the version's body; None where the text is gone.
        bytes_hold: the stored bytes have the digest; None where they are gone or not looked at.
    """

    scope: str
    document_id: str
    version: int
    passage_id: str
    digest: str
    cited: bool
    ranks: tuple[int, ...]
    known: bool
    is_slice: bool | None
    bytes_hold: bool | None

    @property
    def accounted_for(self) -> bool:
        """Whether the chain holds from passage to bytes."""
        return self.known and bool(self.is_slice) and self.bytes_hold is not False


@dataclass(frozen=True, slots=True)
class Trace:
    """Everything under one correlation id, as the logs have it, and its sources as they are.

    Attributes:
        correlation_id: the id.
        retrievals: rows of the retrieval log, oldest first.
        disclosures: rows of the disclosure log.
        answers: rows of the answer log.
        sources: passages reached or cited, cited ones first.
    """

    correlation_id: str
    retrievals: tuple[dict[str, Any], ...]
    disclosures: tuple[dict[str, Any], ...]
    answers: tuple[dict[str, Any], ...]
    sources: tuple[TracedSource, ...]

    @property
    def erased(self) -> int:
        """Hits of the searches that belonged to documents that were erased."""
        return sum(bool(hit.get("erased")) for row in self.retrievals for hit in row["hits"])

    def to_json(self) -> dict[str, Any]:
        """JSON-serialisable form; times as ISO 8601."""
        return {
            "correlation_id": self.correlation_id,
            "retrievals": [_plain(row) for row in self.retrievals],
            "disclosures": [_plain(row) for row in self.disclosures],
            "answers": [_plain(row) for row in self.answers],
            "sources": [
                {name: getattr(source, name) for name in TracedSource.__dataclass_fields__}
                | {"ranks": list(source.ranks), "accounted_for": source.accounted_for}
                for source in self.sources
            ],
        }


def require_operator(principal: Principal) -> None:
    """Raise PolicyError unless the principal is an administrator."""
    if principal.roles.isdisjoint({"admin", "system"}):
        raise PolicyError(
            "The logs are for administrators.", next_step="Ask one, with the correlation id."
        )


def trace(
    database: Transactions,
    correlation_id: str,
    *,
    scope: str,
    principal: Principal,
    read_blob: ReadBlob | None = None,
) -> Trace:
    """Walk from an answer or a search to the bytes behind it.

    Args:
        database: transactions of the reading role.
        correlation_id: as the search or the answer gave it.
        scope: scope name; rows of searches that went beyond it do not show.
        principal: an administrator.
        read_blob: gives source bytes, to be digested again; None: they are not looked at.

    Raises:
        ScopeRequired: no scope.
        PolicyError: the principal is no administrator.
        NotFound: the logs of this scope know no such id.
    """
    require_operator(principal)
    name = readable_scope(scope, principal)
    asked = check_correlation_id(correlation_id)
    with database.transaction("app", name) as conn:
        retrievals = logs.retrievals(conn, asked)
        disclosures = logs.disclosures(conn, asked)
        answers = logs.answers(conn, asked)
        if not (retrievals or disclosures or answers):
            raise NotFound(
                f"The logs of {name!r} know no {correlation_id!r}.",
                next_step="Use the id that the search or the answer gave, in its own scope.",
            )
        places = _places(retrievals, answers)
        found = {_key(row): row for row in logs.traced_passages(conn, list(places.values()))}
    holds = None if read_blob is None else cache(partial(_bytes_hold, read_blob))
    sources = [_source(place, found.get(key), holds) for key, place in places.items()]
    sources.sort(key=lambda source: (not source.cited, source.ranks or (10**9,)))
    return Trace(asked, tuple(retrievals), tuple(disclosures), tuple(answers), tuple(sources))


def recent_searches(
    database: Transactions,
    *,
    scope: str,
    principal: Principal,
    limit: int = 50,
    before: datetime | None = None,
) -> list[dict[str, Any]]:
    """Newest searches of a scope: id, time, who, mode, number of hits.

    Raises:
        ScopeRequired: no scope.
        PolicyError: the principal is no administrator.
    """
    require_operator(principal)
    name = readable_scope(scope, principal)
    with database.transaction("app", name) as conn:
        return logs.recent(conn, limit=limit, before=before)


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in _PLACE)


def _places(
    retrievals: list[dict[str, Any]], answers: list[dict[str, Any]]
) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Passages by place, with their ranks and whether they are cited; erased ones name nothing."""
    places: dict[tuple[Any, ...], dict[str, Any]] = {}

    def place(row: Mapping[str, Any]) -> dict[str, Any]:
        fresh = {name: row[name] for name in (*_PLACE, "digest")} | {"ranks": [], "cited": False}
        return places.setdefault(_key(row), fresh)

    for retrieval in retrievals:
        for hit in retrieval["hits"]:
            if not hit.get("erased"):
                place(hit)["ranks"].append(hit["rank"])
    for answer in answers:
        for statement in answer["statements"]:
            for cited in statement["citations"]:
                if not cited.get("erased"):
                    place(cited)["cited"] = True
    return places


def _source(
    place: Mapping[str, Any],
    row: Mapping[str, Any] | None,
    holds: Callable[[str, str], bool | None] | None,
) -> TracedSource:
    known = row is not None and row["digest"] == place["digest"]
    has_text = row is not None and row["byte_start"] is not None
    return TracedSource(
        **{name: place[name] for name in (*_PLACE, "digest", "cited")},
        ranks=tuple(place["ranks"]),
        known=known,
        is_slice=bool(row["is_slice"]) if row is not None and has_text else None,
        bytes_hold=holds(place["scope"], place["digest"]) if holds and known else None,
    )


def _bytes_hold(read_blob: ReadBlob, scope: str, digest: str) -> bool | None:
    """Whether the stored bytes have the logged digest; None where they are gone."""
    try:
        held = read_blob(scope, digest)
    except IntegrityError:  # the store itself saw that they are others
        return False
    return None if held is None else sha256_hex(held) == digest


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    return {n: v.isoformat() if isinstance(v, datetime) else v for n, v in row.items()}
