"""Labelled retrieval sets in BEIR layout, and publishing them through the real ledger and gate.

Belongs here: reading the sets, loading a corpus as one passage per document, metrics. What does
not: what is compared (`search.py`, `search_scale.py`). Layout: https://github.com/beir-cellar/beir.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kb_resources.lexical import ANALYZER_VERSION, analyze
from kb_resources.model import (
    Block,
    Chunk,
    DocumentKey,
    ParsedDocument,
    Source,
    SourceKind,
    Verdict,
    content_hash,
)
from kb_resources.model.chunk import embedding_input
from kb_resources.store import documents, passages, staging, vectors, versions
from kb_resources.store.pool import Database

START = datetime(2020, 1, 1, tzinfo=UTC)
BATCH = 200
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RetrievalSet:
    """One labelled set; `qrels` maps question id to passage id to grade."""

    name: str
    corpus: list[Row]
    queries: list[Row]
    qrels: Mapping[str, Mapping[str, int]]


def read_set(folder: Path) -> RetrievalSet:
    """Read `corpus.jsonl`, `queries.jsonl` and `qrels.tsv`; language tags become ISO 639-1."""
    qrels: dict[str, dict[str, int]] = defaultdict(dict)
    for line in (folder / "qrels.tsv").read_text("utf-8").splitlines()[1:]:
        query, passage, grade = line.split("\t")
        qrels[query][passage] = int(grade)
    return RetrievalSet(
        folder.name, rows(folder / "corpus.jsonl"), rows(folder / "queries.jsonl"), qrels
    )


def rows(path: Path) -> list[Row]:
    """JSON lines."""
    return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]


def language(row: Row) -> str:
    """ISO 639-1 code of a row (`sr-Latn` is `sr`)."""
    return str(row["lang"]).split("-")[0]


def text_to_embed(row: Row) -> str:
    """What the pipeline would embed for a corpus row."""
    return embedding_input(row.get("title") or "", row["text"] or ".")


def publish(
    database: Database,
    scope: str,
    corpus: Sequence[Row],
    *,
    model_id: str | None = None,
    embedded: NDArray[np.float32] | None = None,
) -> None:
    """Publish each corpus row as a document of one passage, in batches of one transaction.

    Args:
        database: migrated.
        scope: made if missing.
        corpus: rows with `_id`, `lang`, `title`, `text`.
        model_id: identity of the model the vectors are by, or None for text only.
        embedded: `(len(corpus), dim) float32` in order.
    """
    with database.transaction("pipeline") as conn:
        scope_id = documents.ensure_scope(conn, scope, {}).scope_id
    for start in range(0, len(corpus), BATCH):
        part = list(enumerate(corpus[start : start + BATCH], start))
        with database.transaction("pipeline") as conn:
            model = None
            if model_id is not None and embedded is not None:
                model = vectors.ensure_model(conn, model_id, embedded.shape[1])
            for number, row in part:
                found = _cleared(conn, scope, scope_id, row)
                chunk = _chunk(row)
                key = found.version_key or 0
                staging.replace_chunks(conn, found, [chunk])
                if model is not None and embedded is not None:
                    one = embedded[number : number + 1]
                    vectors.stage_vectors(conn, key, model, [chunk.embed_hash], one)
                made = analyze(chunk.text, language(row), context=chunk.context)
                passages.put_version(
                    conn,
                    key,
                    valid_from=START,
                    audiences=[],
                    lexical=[passages.LexicalRow(0, made.terms, made.length, ANALYZER_VERSION)],
                    model_id=model,
                )
    with database.transaction("pipeline") as conn:
        passages.refresh_statistics(conn, scope_id)
    with database.owner_session() as conn:
        conn.execute("vacuum analyze kb.lex, kb.embedding, kb.term, kb.passage")


def _cleared(conn: Any, scope: str, scope_id: int, row: Row) -> documents.DocumentRow:
    """A document with a version whose body is the row's text, cleared."""
    document_id, body = row["_id"], row["text"] or "."
    key = DocumentKey(scope, document_id)
    source = Source(SourceKind.API, f"set:{document_id}", document_id)
    documents.register(conn, documents.Registration(scope_id, document_id, source))
    found = documents.load(conn, [key])[0]
    data = body.encode()
    versions.add(
        conn,
        found,
        digest=content_hash(f"{document_id}\n{body}"),
        media_type="text/plain",
        size_bytes=len(data),
        name=document_id,
    )
    found = documents.load(conn, [key])[0]
    block = Block("paragraph", body, 0, len(data), 0, len(body))
    title = row.get("title") or document_id
    parsed = ParsedDocument(title, "text/plain", body, (block,), parser="set")
    versions.save_parsed(conn, found, parsed)
    versions.set_language(conn, found.version_key or 0, language(row), 1.0)
    found = documents.load(conn, [key])[0]
    versions.record_verdict(conn, found, Verdict.CLEAN, (), rule_pack="set", actor="bench")
    return found


def _chunk(row: Row) -> Chunk:
    text, title = row["text"] or ".", row.get("title") or ""
    digest = content_hash(text)
    return Chunk(
        ordinal=0,
        passage_id=f"{row['_id']}.0.{digest[:12]}.0",
        text=text,
        context=title,
        heading_path=(title,) if title else (),
        page=None,
        locator=None,
        byte_start=0,
        byte_end=len(text.encode()),
        char_start=0,
        char_end=len(text),
        content_hash=digest,
        embed_hash=content_hash(text_to_embed(row)),
        token_count=max(1, len(text) // 4),
    )


# Metrics ------------------------------------------------------------------------------------------


def ndcg(ranked: Sequence[str], relevant: Mapping[str, int], cut: int = 10) -> float:
    """Normalised discounted cumulative gain at `cut`, binary gain."""
    gain = sum(
        1 / math.log2(rank + 2)
        for rank, item in enumerate(ranked[:cut])
        if relevant.get(item, 0) > 0
    )
    ideal = sum(1 / math.log2(rank + 2) for rank in range(min(cut, _positives(relevant))))
    return gain / ideal if ideal else 0.0


def hit_at(ranked: Sequence[str], relevant: Mapping[str, int], cut: int) -> float:
    """1 where a relevant passage is among the first `cut`, else 0."""
    return float(any(relevant.get(item, 0) > 0 for item in ranked[:cut]))


def _positives(relevant: Mapping[str, int]) -> int:
    return sum(grade > 0 for grade in relevant.values())


def mean(values: Iterator[float] | Sequence[float]) -> float:
    """Arithmetic mean, 0 of nothing."""
    given = list(values)
    return sum(given) / len(given) if given else 0.0
