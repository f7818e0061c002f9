"""How a passage came to be: from the source's bytes to its lexemes and vectors.

Belongs here: what is stored about one passage, put in order and checked against itself. What does
not: why a search ranked it (`Hit.explain`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from kb_resources.lexical import ANALYZER_VERSION, surfaces
from kb_resources.model import Principal, content_hash
from kb_resources.model.chunk import embedding_input
from kb_resources.retrieve.retriever import Database
from kb_resources.retrieve.section_notes import SectionNotes, section_notes
from kb_resources.retrieve.visible import asked_id, held_audiences, no_passage, readable_scope
from kb_resources.store import reading


@dataclass(frozen=True, slots=True)
class StageTime:
    """One stage of the version's way: wall seconds, when it ended, its counts."""

    stage: str
    duration_s: float
    finished_at: str
    counts: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Lexeme:
    """One lexeme of the passage's lexical row.

    Attributes:
        number: 1 to 10^9.
        words: words of text and context it stands for, as spelt there; none if the row was made
            by another analyzer.
        weight: BM25 weight without IDF.
        passages: in how many passages of the scope it stands, None while not counted.
    """

    number: int
    words: tuple[str, ...]
    weight: float
    passages: int | None


@dataclass(frozen=True, slots=True)
class Vector:
    """One vector of the passage: the model's identity, its size and L2 norm."""

    model_id: str
    dimensions: int
    state: str
    norm: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything between a source's bytes and a passage's vector.

    Attributes:
        scope: scope name.
        document_id: the document.
        audiences: who may read it; none: the whole scope.
        source: path relative to its root, or URL.
        version: number within the document.
        digest: SHA-256 hex of the source bytes.
        media_type: sniffed.
        size_bytes: of the source.
        stored_at: when the version was stored, aware.
        title: the version's title.
        language: the passage's.
        language_confidence: 0..1 or None.
        verdict: the scan's, always `clean` for what is published.
        verdict_actor: who or what gave it.
        verdict_at: when, ISO 8601.
        rule_pack: rules it was given by.
        findings: how many findings it was given in spite of.
        stages: in their order.
        passage_id: stable id.
        heading_path: headings above.
        page: 1-based page or None.
        locator: place in the document's own terms or None.
        byte_span: in the body, UTF-8 bytes.
        char_span: in the page text (the body where there are no pages), code points.
        context: breadcrumb indexed and embedded with the text.
        text: the passage.
        content_hash: SHA-256 hex of the text.
        embed_hash: SHA-256 hex of what is embedded.
        token_count: tokens of what is embedded.
        valid_from: newest interval, aware.
        valid_until: None while it holds.
        analyzer: version that made the scope's lexical rows.
        lexemes: heaviest first.
        vectors: one per model.
        checks: what was recomputed now, by name: whether it agrees with what is stored.
        converted_by: model and prompt that wrote the body, None where parsing gave it.
        notes: what a model noted on the section around it.
    """

    scope: str
    document_id: str
    audiences: tuple[str, ...]
    source: str
    version: int
    digest: str
    media_type: str
    size_bytes: int
    stored_at: datetime
    title: str
    language: str
    language_confidence: float | None
    verdict: str
    verdict_actor: str
    verdict_at: str
    rule_pack: str
    findings: int
    stages: tuple[StageTime, ...]
    passage_id: str
    heading_path: tuple[str, ...]
    page: int | None
    locator: str | None
    byte_span: tuple[int, int]
    char_span: tuple[int, int]
    context: str
    text: str
    content_hash: str
    embed_hash: str
    token_count: int
    valid_from: datetime
    valid_until: datetime | None
    analyzer: str
    lexemes: tuple[Lexeme, ...]
    vectors: tuple[Vector, ...]
    checks: Mapping[str, bool]
    converted_by: str | None = None
    notes: SectionNotes | None = None

    def to_json(self) -> dict[str, Any]:
        """JSON-serialisable form; times as ISO 8601."""
        value = asdict(self)
        for name in ("stored_at", "valid_from", "valid_until"):
            value[name] = value[name] and value[name].isoformat()
        return value


def explain_passage(
    database: Database,
    passage_id: str,
    *,
    scope: str,
    principal: Principal,
    version: int | None = None,
) -> Explanation:
    """How a passage came to be: of the version named, else of the one that holds now.

    Raises:
        ScopeRequired: no scope.
        NotFound: no such scope or passage for this principal.
    """
    name = readable_scope(scope, principal)
    with database.transaction("app", name) as conn:
        row = reading.making(
            conn,
            name,
            asked_id(passage_id),
            audiences=held_audiences(principal),
            version=version,
        )
        if row is None or row["ledger"] is None:
            raise no_passage(passage_id, name)
        weights = _weights(row["weights"])
        known = reading.frequencies(conn, name, weights)
        notes = section_notes(conn, row)
    ledger = row["ledger"]
    return Explanation(
        scope=name,
        document_id=row["document_id"],
        audiences=tuple(row["audiences"]),
        source=row["source"],
        version=row["version"],
        digest=row["digest"],
        media_type=row["media_type"],
        size_bytes=row["size_bytes"],
        stored_at=row["stored_at"],
        title=row["title"] or row["document_id"],
        language=row["language"],
        language_confidence=ledger["language_confidence"],
        verdict=ledger["verdict"],
        verdict_actor=ledger["verdict_actor"],
        verdict_at=ledger["verdict_at"],
        rule_pack=ledger["rule_pack"],
        findings=ledger["findings"],
        stages=tuple(StageTime(**stage) for stage in ledger["stages"]),
        passage_id=row["passage_id"],
        heading_path=tuple(row["heading_path"]),
        page=row["page"],
        locator=row["locator"],
        byte_span=(row["byte_start"], row["byte_end"]),
        char_span=(row["char_start"], row["char_end"]),
        context=row["context"],
        text=row["text"],
        content_hash=row["content_hash"],
        embed_hash=row["embed_hash"],
        token_count=row["token_count"],
        valid_from=row["valid_from"],
        valid_until=row["valid_until"],
        analyzer=row["analyzer"],
        lexemes=_lexemes(row, weights, known),
        vectors=tuple(Vector(**vector) for vector in row["vectors"]),
        checks=_checks(row),
        converted_by=row["converted_by"],
        notes=notes,
    )


def _weights(literal: str) -> dict[int, float]:
    """A `sparsevec` as text, `{index:value,…}/dimensions`."""
    pairs = literal[1 : literal.rindex("}")]
    split = (pair.split(":") for pair in pairs.split(",") if pair)
    return {int(index): float(value) for index, value in split}


def _lexemes(
    row: Mapping[str, Any], weights: Mapping[int, float], known: Mapping[int, int]
) -> tuple[Lexeme, ...]:
    words: dict[int, tuple[str, ...]] = {}
    if row["analyzer"] == ANALYZER_VERSION:
        for text in (row["text"], row["context"]):
            for number, spelt in surfaces(text, row["language"]).items():
                words[number] = tuple(dict.fromkeys((*words.get(number, ()), *spelt)))
    heaviest = sorted(weights.items(), key=lambda item: (-item[1], item[0]))
    return tuple(
        Lexeme(number, words.get(number, ()), weight, known.get(number))
        for number, weight in heaviest
    )


def _checks(row: Mapping[str, Any]) -> dict[str, bool]:
    """What can be recomputed from the rows alone."""
    ledger = row["ledger"]
    return {
        "text is a slice of the body": row["is_slice"],
        "body is the one the verdict was given for": row["body_digest"]
        == ledger["verdict_body_digest"],
        "bytes are those the verdict was given for": row["digest"] == ledger["verdict_digest"],
        "content hash is the text's": content_hash(row["text"]) == row["content_hash"],
        "embed hash is that of context and text": content_hash(
            embedding_input(row["context"], row["text"])
        )
        == row["embed_hash"],
    }
