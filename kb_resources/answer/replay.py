"""A logged search run again, as of then and now: which passages changed places, and why.

Belongs here: comparing and naming causes. What does not: searching. The log has no question, so
whoever replays one supplies its text, and the keyed digest tells whether it is the one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Protocol

from kb_resources.answer.audit import require_operator
from kb_resources.answer.keeping import Transactions
from kb_resources.errors import InputError, NotFound
from kb_resources.lexical import ANALYZER_VERSION
from kb_resources.model import Principal
from kb_resources.retrieve import Hit, SearchFilters, SearchResult
from kb_resources.retrieve.asking import MEANING_WEIGHT
from kb_resources.retrieve.log import QuestionKey, check_correlation_id
from kb_resources.retrieve.visible import readable_scope
from kb_resources.store import logs

Place = tuple[str, str, int, str]
"""Scope, document, version, passage."""

_REFUSED = {"quarantined", "blocked", "language_refused"}


class Searcher(Protocol):
    """What searches; see `retrieve.Retriever`."""

    def search(
        self,
        query: str,
        *,
        principal: Principal,
        scopes: Any = None,
        mode: str = "hybrid",
        k: int = 8,
        as_of: datetime | None = None,
        known_at: datetime | None = None,
        include_historical: bool = False,
        filters: SearchFilters | None = None,
        fusion: str = "adaptive",
        meaning_weight: float = MEANING_WEIGHT,
        min_score: float | None = None,
        words: str = "any",
    ) -> SearchResult:
        """Ranked passages."""
        ...


@dataclass(frozen=True, slots=True)
class ReplayedPassage:
    """A passage in the three results.

    Attributes:
        scope: scope name.
        document_id: the document.
        version: number within the document.
        passage_id: the passage.
        rank_logged: rank in the log, None where it was not among the hits.
        rank_then: rank in today's search for what held then.
        rank_now: rank in today's search.
        cause: why `rank_now` differs from `rank_logged`: `document`, `rules`, `audiences`,
            `model`, `analyzer` or `neighbours`; None where it does not.
        why: the cause as a sentence, empty without one.
    """

    scope: str
    document_id: str
    version: int
    passage_id: str
    rank_logged: int | None
    rank_then: int | None
    rank_now: int | None
    cause: str | None
    why: str


@dataclass(frozen=True, slots=True)
class Replay:
    """A replayed search.

    Attributes:
        correlation_id: of the logged search.
        at: when it was asked.
        as_of: instant of valid time it searched.
        mode_logged: what was done then.
        mode_now: what is done now.
        model_logged: embedding model then, None without vectors.
        model_now: embedding model now.
        passages: of all three results, by logged rank, then by rank now.
        erased: ranks in the log whose document was erased since.
    """

    correlation_id: str
    at: datetime
    as_of: datetime
    mode_logged: str
    mode_now: str
    model_logged: str | None
    model_now: str | None
    passages: tuple[ReplayedPassage, ...]
    erased: tuple[int, ...]

    @property
    def reproduced(self) -> bool:
        """Whether the search as of then gives the logged ranks again."""
        return not self.erased and all(p.rank_logged == p.rank_then for p in self.passages)

    @property
    def unchanged(self) -> bool:
        """Whether the search now gives the logged ranks."""
        return not self.erased and all(p.rank_logged == p.rank_now for p in self.passages)

    def to_json(self) -> dict[str, Any]:
        """JSON-serialisable form; times as ISO 8601."""
        times = {"at": self.at.isoformat(), "as_of": self.as_of.isoformat()}
        verdicts = {"reproduced": self.reproduced, "unchanged": self.unchanged}
        return asdict(self) | times | verdicts | {"erased": list(self.erased)}


def replay(
    database: Transactions,
    searcher: Searcher,
    key: QuestionKey,
    correlation_id: str,
    question: str,
    *,
    scope: str,
    principal: Principal,
) -> Replay:
    """Run a logged search again, as of then and now: under its id the first with this question.

    Args:
        database: transactions of the reading role.
        searcher: searches; both runs are logged like any other.
        key: what questions are digested with.
        correlation_id: of the logged search.
        question: its text.
        scope: scope name.
        principal: an administrator; the search runs with the audiences that the log names.

    Raises:
        PolicyError: the principal is no administrator.
        NotFound: the log of this scope knows no such search.
        InputError: it was another question, or was digested with another key.
    """
    require_operator(principal)
    name = readable_scope(scope, principal)
    with database.transaction("app", name) as conn:
        rows = logs.retrievals(conn, check_correlation_id(correlation_id))
    if not rows:
        raise NotFound(
            f"The log of {name!r} knows no search {correlation_id!r}.",
            next_step="Use the id that the search gave, in its own scope.",
        )
    logged = _asked(rows, question, key)
    who = Principal(
        f"replay:{principal.id}",
        audiences=frozenset(logged["audiences"] or ()),
        roles=frozenset({"system"} if logged["audiences"] is None else {"viewer"}),
        scopes=principal.scopes,
    )

    def run(as_of: datetime | None, known_at: datetime | None) -> SearchResult:
        return searcher.search(
            question,
            principal=who,
            scopes=logged["scopes"],
            mode=logged["asked_mode"],
            k=logged["k"],
            as_of=as_of,
            known_at=known_at,
            include_historical=logged["historical"],
            filters=SearchFilters(**logged["filters"]) if logged["filters"] else None,
            **(logged["options"] or {}),
        )

    then, now = run(logged["as_of"], logged["known_at"]), run(None, None)
    ranks = (
        {_place(hit): hit["rank"] for hit in logged["hits"] if not hit.get("erased")},
        _ranks(then.hits),
        _ranks(now.hits),
    )
    seen = sorted(
        set().union(*ranks), key=lambda p: (ranks[0].get(p, 10**6), ranks[2].get(p, 10**6), p)
    )
    with database.transaction("app", name) as conn:
        model_now = _model(conn, now.correlation_id)
        about = {
            (row["scope"], row["document_id"]): row
            for row in logs.documents_since(
                conn, [{"scope": p[0], "document_id": p[1]} for p in seen], logged["at"]
            )
        }
    causes = _Causes(logged, model_now, about)
    return Replay(
        correlation_id=correlation_id,
        at=logged["at"],
        as_of=logged["as_of"],
        mode_logged=logged["mode"],
        mode_now=now.mode,
        model_logged=logged["model_id"],
        model_now=model_now,
        passages=tuple(
            causes.passage(place, *(found.get(place) for found in ranks)) for place in seen
        ),
        erased=tuple(hit["rank"] for hit in logged["hits"] if hit.get("erased")),
    )


def _asked(rows: Sequence[Mapping[str, Any]], question: str, key: QuestionKey) -> Mapping[str, Any]:
    """The search of this question; callers may log several under an id of their own."""
    ours = [row for row in rows if row["key_id"] == key.key_id]
    if not ours:
        raise InputError(
            "The question was digested with another key.",
            next_step="Set KB_LOG_KEY to the key of the installation that searched.",
        )
    digest = key.digest(question)
    found = next((row for row in ours if row["question_digest"] == digest), None)
    if found is None:
        raise InputError(
            "That is not the question that was asked.", next_step="Give it word for word."
        )
    return found


def _place(row: Mapping[str, Any]) -> Place:
    return row["scope"], row["document_id"], row["version"], row["passage_id"]


def _ranks(hits: tuple[Hit, ...]) -> dict[Place, int]:
    return {(h.scope, h.document_id, h.version, h.passage_id): h.rank for h in hits}


def _model(conn: Any, correlation_id: str) -> str | None:
    rows = logs.retrievals(conn, correlation_id)
    return rows[-1]["model_id"] if rows else None


@dataclass(frozen=True, slots=True)
class _Causes:
    """Why a passage's rank now is not the logged one, the most particular cause first."""

    logged: Mapping[str, Any]
    model_now: str | None
    about: Mapping[tuple[str, str], Mapping[str, Any]]

    def passage(
        self, place: Place, was: int | None, then: int | None, now: int | None
    ) -> ReplayedPassage:
        """A passage with its ranks and what explains them."""
        cause, why = self._of(place, was, now)
        return ReplayedPassage(*place, was, then, now, cause, why)

    def _of(self, place: Place, was: int | None, now: int | None) -> tuple[str | None, str]:
        if was == now:
            return None, ""
        found = self.about.get(place[:2])
        if found is None:
            return "document", "The document is gone."
        if was is not None and now is None:
            cause = self._left(place, found)
        elif was is None and now is not None:
            cause = self._came(place, found)
        else:
            cause = None
        return cause or self._everywhere()

    def _left(self, place: Place, found: Mapping[str, Any]) -> tuple[str, str] | None:
        if found["state"] in ("removed", "erased"):
            return "document", f"The document was {found['state']}."
        held = self.logged["audiences"]
        if held is not None and found["audiences"] and not set(held) & set(found["audiences"]):
            return (
                "audiences",
                "Its readers were changed; the one who asked is no longer among them.",
            )
        if found["state"] in _REFUSED:
            packs = [event["rule_pack"] for event in found["events"] if event["rule_pack"]]
            by = f" by rules {packs[-1]}" if packs else ""
            return "rules", f"The document is {found['state']}{by}: {found['reason']}"
        if found["version_now"] is None:
            return "document", "No version of the document holds now."
        if found["version_now"] != place[2]:
            return "document", f"Version {found['version_now']} holds since {found['valid_from']}."
        if self._published_since(found):
            return "document", "The same version was read or cut anew."
        return None

    def _came(self, place: Place, found: Mapping[str, Any]) -> tuple[str, str] | None:
        events = {event["event"] for event in found["events"]}
        if events & {"audiences_set", "audiences_follow_source"}:
            return "audiences", "Its readers were changed."
        if "released" in events:
            return "rules", "It was released from review."
        if events & {"restored"}:
            return "document", "The document was restored."
        if found["valid_from"] is not None and found["valid_from"] > self.logged["as_of"]:
            return "document", f"Version {place[2]} holds since {found['valid_from']}."
        if self._published_since(found):
            return "document", f"Version {place[2]} was published after the search."
        return None

    def _everywhere(self) -> tuple[str, str]:
        if self.logged["model_id"] != self.model_now:
            was, now = self.logged["model_id"] or "no model", self.model_now or "no model"
            return "model", f"Meaning was judged by {was}, now by {now}."
        if self.logged["analyzer"] != ANALYZER_VERSION:
            return "analyzer", "Words are analysed by another version."
        return "neighbours", "Other documents came, went or changed, and with them the ranks."

    @staticmethod
    def _published_since(found: Mapping[str, Any]) -> bool:
        return any(event["event"] == "indexed" for event in found["events"])
