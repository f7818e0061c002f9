"""What a search gives back.

Belongs here: shapes and their JSON form. What does not: ranking. Scores come from reciprocal rank
fusion and say nothing across questions (Cormack, Clarke, Büttcher 2009).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self
from urllib.parse import quote

_PUBLIC = (
    *("rank", "scope", "document_id", "version", "digest", "passage_id", "title", "heading_path"),
    *("page", "locator", "byte_start", "byte_end", "char_start", "char_end", "language"),
    *("valid_from", "valid_until", "source", "text", "relevance"),
)
_SCORES = (
    *("score", "text_rank", "text_score", "text_share", "vector_rank", "vector_score", "cosine"),
)


@dataclass(frozen=True, slots=True)
class Hit:
    """A ranked passage with everything a citation needs.

    Attributes:
        rank: 1-based place in the result; 0 for a passage that was fetched by id.
        scope: scope name.
        document_id: the document.
        version: number within the document.
        digest: SHA-256 hex of the version's source bytes.
        passage_id: stable id.
        title: the version's title.
        heading_path: headings above the passage.
        page: 1-based page or None.
        locator: place in the document's own terms or None.
        byte_start: in the body, UTF-8 bytes.
        byte_end: exclusive.
        char_start: in the page text (the body where there are no pages), code points.
        char_end: exclusive.
        language: ISO 639-1 code or `und`.
        valid_from: start of the interval that was asked for, aware UTC.
        valid_until: its end, None while it holds.
        source: where the document comes from: path relative to its root, or URL.
        media_type: of the source bytes.
        context: breadcrumb that was indexed with the text; never to be cited.
        text: the passage, exactly a slice of the body.
        score: fused score, comparable within one result only.
        text_rank: 1-based rank by words, None where that list does not hold it.
        text_score: BM25.
        text_share: the same as a share of the most any passage could reach for the question.
        vector_rank: 1-based rank by meaning, None where that list does not hold it.
        vector_score: cosine similarity, None where that list does not hold it.
        cosine: cosine similarity, None where no question was embedded.
        relevance: calibrated estimate that it is right, 0..1; None where the model has none.
    """

    rank: int
    scope: str
    document_id: str
    version: int
    digest: str
    passage_id: str
    title: str
    heading_path: tuple[str, ...]
    page: int | None
    locator: str | None
    byte_start: int
    byte_end: int
    char_start: int
    char_end: int
    language: str
    valid_from: datetime | None
    valid_until: datetime | None
    source: str
    media_type: str
    context: str
    text: str
    score: float = 0.0
    text_rank: int | None = None
    text_score: float | None = None
    text_share: float | None = None
    vector_rank: int | None = None
    vector_score: float | None = None
    cosine: float | None = None
    relevance: float | None = None

    @classmethod
    def from_row(cls, row: Mapping[str, Any], rank: int = 0) -> Self:
        """A hit from a row of the reading statements, whose columns are its fields."""
        shaped = {
            "heading_path": tuple(row["heading_path"]),
            "score": float(row.get("score", 0.0)),
        }
        return cls(rank=rank, **{**row, **shaped})

    @property
    def link(self) -> str:
        """Opens the passage in the page of this knowledge base, relative to its address."""
        return deep_link(self.scope, self.document_id, self.version, self.passage_id)

    def to_json(self, *, debug: bool = False) -> dict[str, Any]:
        """JSON-serialisable form; times as ISO 8601. `debug` adds ranks and scores."""
        names = _PUBLIC + _SCORES if debug else _PUBLIC
        return {name: _plain(getattr(self, name)) for name in names}

    def explain(self) -> str:
        """One line that says why the passage stands where it stands."""
        parts = [f"score {self.score:.4f}"]
        if self.text_rank is not None:
            parts.append(f"words: rank {self.text_rank}, BM25 {self.text_score:.2f}")
            if self.text_share is not None:
                parts[-1] += f" ({self.text_share:.0%} of the most)"
        if self.vector_rank is not None:
            parts.append(f"meaning: rank {self.vector_rank}, cosine {self.vector_score:.3f}")
        return "; ".join(parts)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Ranked hits, best first.

    Attributes:
        hits: at most k.
        mode: what was done: `hybrid`, `text` or `vector`. Asked for `hybrid`, a scope without
            vectors of the current model is searched by `text`.
        score_kind: what `Hit.score` is: `rrf_adaptive`, or `rrf` or `weighted` where asked for.
        reranked: whether a cross-encoder ordered the hits.
        correlation_id: names the search in the logs; empty where none are kept.
        nothing_relevant: whether the calibrated relevance of the first hit is so low that the hits
            are the nearest there is, and no answer. False where the model has no calibration.
    """

    hits: tuple[Hit, ...]
    mode: str
    score_kind: str = "rrf_adaptive"
    reranked: bool = False
    correlation_id: str = ""
    nothing_relevant: bool = False


def deep_link(scope: str, document_id: str, version: int, passage_id: str) -> str:
    """Where the page shows a passage in its version; ids need no escaping, but are escaped."""
    ids = (quote(part, safe="") for part in (scope, document_id))
    return f"/#/d/{'/'.join(ids)}?v={version}&p={quote(passage_id, safe='')}"


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return list(value) if isinstance(value, tuple) else value
