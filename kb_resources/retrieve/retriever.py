"""One search: check who asks, analyse and embed the question, run the statement.

Belongs here: the use case of a search inside one transaction, its log row included: a search that
cannot be written down gives no hits. What does not: ranking, which the statement does, and
answers. Filters act before ranking (design record on search).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from kb_resources.errors import InputError
from kb_resources.lexical import ANALYZER_VERSION, query_words
from kb_resources.model import Principal
from kb_resources.retrieve import asking, expand, ranking, relevance, weighing
from kb_resources.retrieve.asking import DEFAULT_K, MAX_K, MODES, SearchFilters
from kb_resources.retrieve.embedded import (
    Database,
    EmbeddedQuestion,
    Gate,
    QueryEmbedder,
    Questions,
    check_vectors_there,
    key_of,
    no_vectors,
    text_of,
)
from kb_resources.retrieve.expand import Expander
from kb_resources.retrieve.hit import Hit, SearchResult
from kb_resources.retrieve.live import LiveModels, ModelSwapped, again_when_swapped
from kb_resources.retrieve.log import RetrievalLog, check_correlation_id
from kb_resources.retrieve.reranking import Reranker, at_least, check_least, order, reaches
from kb_resources.retrieve.visible import held_audiences, no_passage, readable_scope
from kb_resources.store import logs
from kb_resources.store import search as statements
from kb_resources.store.documents import no_scope
from kb_resources.store.search import SearchQuery

__all__ = [
    "DEFAULT_K",
    "MAX_K",
    "MODES",
    "Database",
    "Gate",
    "QueryEmbedder",
    "Retriever",
    "SearchFilters",
]


class Retriever:
    """Searches scopes for principals.

    Args:
        database: transactions of the reading role.
        embedder: gives the embedding model when a search first needs it; None: text only.
        other_models: gives the model of an identity that is live in a scope, where it is not the
            one of `embedder`; None: searches use the one of `embedder` alone.
        clock: aware now, in UTC.
        log: how searches are written down; None: not at all.
        gate: whether a question may go to the embedding model; None: always.
        expander: gives variations of a question, which are searched with it; None: none.
        reranker: orders the best candidates by a cross-encoder; None: none does.
    """

    def __init__(
        self,
        database: Database,
        *,
        embedder: Callable[[], QueryEmbedder] | None = None,
        other_models: Callable[[str], QueryEmbedder] | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        log: RetrievalLog | None = None,
        gate: Gate | None = None,
        expander: Expander | None = None,
        reranker: Reranker | None = None,
    ) -> None:
        self._database = database
        self._embedder = embedder
        self._live = LiveModels(embedder, other_models)
        self._clock = clock
        self._log = log
        self._questions = Questions(database, self._live, gate)
        self._expander = expander
        self._reranker = reranker

    @property
    def log(self) -> RetrievalLog | None:
        """How searches are written down."""
        return self._log

    @again_when_swapped
    def search(
        self,
        query: str | EmbeddedQuestion,
        *,
        principal: Principal,
        scope: str | None = None,
        scopes: Sequence[str] | None = None,
        mode: str = "hybrid",
        k: int = DEFAULT_K,
        as_of: datetime | None = None,
        known_at: datetime | None = None,
        include_historical: bool = False,
        filters: SearchFilters | None = None,
        fusion: str = "adaptive",
        meaning_weight: float = asking.MEANING_WEIGHT,
        correlation_id: str | None = None,
        min_score: float | None = None,
        words: str = "any",
    ) -> SearchResult:
        """Ranked passages.

        Args:
            query: any string; what cannot be words (NUL, lone surrogates) is passed over. Or what
                `embed` gave, which is not embedded again.
            principal: who asks; holds audiences and scopes. Role `system` sees every audience.
            scope: scope name; or
            scopes: several of them, all to be visible to the principal.
            mode: `hybrid`, `text` or `vector`.
            k: hits wanted, clamped to 1..100.
            as_of: aware instant of valid time; None is now, or `known_at`.
            known_at: aware instant; searches what was known then to hold. None is now.
            include_historical: also what does not hold at that instant.
            filters: further conditions.
            fusion: `adaptive` (a rank by words counts by how much of the question they answer),
                `rrf` (plain reciprocal rank, k = 60) or `weighted` (scores stretched to 0..1).
            meaning_weight: of the vector list in `weighted`: 1 is its order, 0 that of the words.
            correlation_id: names the search in the logs; None: a new one.
            min_score: relevance that hits need, 0 to 1; those that have none stay.
            words: `any` of them; `all`, whatever finds the passage; or passages with `all_first`.

        Raises:
            ScopeRequired: no scope, before any SQL.
            InputError: unknown mode, fusion or words, malformed scope, id, filter or bound, time
                without zone, scopes by different models or another model's vector
                (`models_differ`), or a vector without words in `hybrid` (`words_missing`).
            PolicyError: mode `vector`, and the question may not go to the embedding model; in
                `hybrid` it is then searched by text.
            NotFound: no such scope for this principal.
            UnavailableError: the database is away, or the scope's lexical rows were made by
                another analyzer; or mode `vector`, and there are no vectors (`no_vectors`).
            KbError: the log could not be written.
        """
        if correlation_id is not None:
            check_correlation_id(correlation_id)
        elif self._log is not None:
            correlation_id = self._log.new_id()
        names = asking.scope_names(scope, scopes)
        asking.one_of(mode, MODES, "mode")
        asking.one_of(fusion, asking.FUSIONS, "fusion")
        asking.one_of(words, ranking.WORDS, "choice of words")
        weight = weighing.check_weight(meaning_weight)
        wanted = 2 * asking.candidates_of(min(int(k), MAX_K)) if fusion == "weighted" else 0
        instant = asking.aware(as_of or known_at or self._clock())
        chosen = asking.row_filter(filters)
        least = check_least(min_score)
        options = ranking.options(words, fusion, weight, least)
        asked_as = self._asked_as(text_of(query))
        text = asked_as[0]
        limit = max(1, min(int(k), MAX_K))
        depth = limit if self._reranker is None else max(limit, self._reranker.depth)
        embedder, vector = self._questions.embedded(
            query, asked_as, names, mode, principal, correlation_id or ""
        )
        with self._database.transaction("app", names) as conn:
            visible = statements.visible_scopes(conn, names)
            for name in names:
                if name not in visible:
                    raise no_scope(name)
                asking.check_analyzer(visible[name])
            if self._live.learn(visible.values()) and embedder:
                raise ModelSwapped
            model = key_of(embedder, list(visible.values()), conn)
            if mode == "vector" and vector is not None:
                check_vectors_there(list(visible.values()))
            used = "text" if mode == "hybrid" and model is None else mode
            asked = SearchQuery(
                scope_ids=[visible[name].scope_id for name in names],
                lexemes=expand.lexemes_of(asked_as) if used != "vector" else {},
                vector=vector if model is not None else None,
                model_key=model,
                audiences=held_audiences(principal),
                as_of=instant,
                historical=include_historical,
                k=max(depth, wanted),
                candidates=asking.candidates_of(limit),
                filters=chosen,
                vector_weight=asking.vector_weight(text),
                full_share=asking.FULL_SHARE if fusion == "adaptive" else 0.0,
                known_at=None if known_at is None else asking.aware(known_at),
                scopes=names,
                words=query_words(text) if words != "any" else (),
            )
            mixed = weight if fusion == "weighted" and used == "hybrid" else None
            found = ranking.ranked(conn, asked, words=words, weight=mixed)
            rows, reranked = order(self._reranker, text, found[:depth], limit)
            read_by = relevance.calibration(embedder.model_id if embedder else None, used)
            hits, nothing = relevance.weighed(
                tuple(Hit.from_row(row, rank) for rank, row in enumerate(rows, 1)),
                None if reranked else read_by,
            )
            rows = [rows[hit.rank - 1] for hit in hits if reaches(hit, least)]
            hits = at_least(hits, least)
            if self._log is not None:
                logged = self._log.row(
                    text_of(query),
                    replace(asked, k=limit),
                    rows,
                    correlation_id=correlation_id or "",
                    actor=principal.id,
                    asked_mode=mode,
                    mode=used,
                    model_id=embedder.model_id if embedder and model is not None else None,
                    analyzer=ANALYZER_VERSION,
                    options=options,
                )
                logs.add_retrieval(conn, logged)
        return SearchResult(
            hits,
            used,
            score_kind=weighing.SCORE_KINDS[fusion],
            reranked=reranked,
            correlation_id=correlation_id or "",
            nothing_relevant=nothing,
        )

    @again_when_swapped
    def embed(
        self,
        text: str,
        *,
        principal: Principal,
        scope: str | None = None,
        scopes: Sequence[str] | None = None,
    ) -> EmbeddedQuestion:
        """A question's vector by the model of its scopes, for any number of searches.

        Raises:
            InputError: it is blank.
            ScopeRequired, NotFound, PolicyError, UnavailableError: as for a `search` by `vector`.
        """
        names, asked_as = asking.scope_names(scope, scopes), self._asked_as(text)
        if not asked_as[0]:
            raise InputError("The question is blank.", next_step="Give it words.")
        embedder, vector = self._questions.embedded(text, asked_as, names, "vector", principal, "")
        if embedder is None or vector is None:
            raise no_vectors("There is no embedding model here")
        return EmbeddedQuestion(asked_as[0], vector, embedder.model_id)

    def supports_hybrid(self, *, scope: str, principal: Principal) -> bool:
        """Whether a scope can be searched by meaning too: it has vectors, and there is a model.

        Raises:
            ScopeRequired, NotFound: no scope that this principal may read.
        """
        name = readable_scope(scope, principal)
        with self._database.transaction("app", name) as conn:
            found = statements.visible_scopes(conn, [name])
        if name not in found:
            raise no_scope(name)
        return self._embedder is not None and found[name].live is not None

    def _asked_as(self, text: str) -> list[str]:
        """The question as it can be searched, then its variations."""
        given = expand.variations(self._expander, asking.cleaned(text))
        return [asking.cleaned(one) for one in given]

    def warm(self, *, wait: bool = False) -> None:
        """Load the embedding model now instead of with the first question; the reranker, too.

        Args:
            wait: return when the reranker is loaded; else it is loaded in the background.
        """
        if self._reranker is not None:
            self._reranker.warm(wait=wait)
        if self._embedder is not None:
            self._embedder()

    def passage(
        self, passage_id: str, *, scope: str, principal: Principal, version: int | None = None
    ) -> Hit:
        """One passage by id: of the version named, else of the one that holds now.

        Raises:
            ScopeRequired: no scope.
            NotFound: no such scope or passage for this principal.
        """
        name = readable_scope(scope, principal)
        with self._database.transaction("app", name) as conn:
            row = statements.passage(
                conn,
                name,
                asking.cleaned(passage_id),
                audiences=held_audiences(principal),
                version=version,
            )
        if row is None:
            raise no_passage(passage_id, name)
        return Hit.from_row(row)
