"""Many synthetic passages put into the tables in bulk, for `search_scale.py`.

Texts are recombined sentences of the labelled sets, vectors scatter around 200 centres. Rows go in
past the gate (nothing here is a real document) by binary COPY, indexes are built afterwards. The
documents of all scopes are mixed, as scopes that grow side by side are: neighbours on a page
belong to others. Belongs here: making and loading. What does not: asking (`search_scale.py`).
Binary COPY: https://www.postgresql.org/docs/current/sql-copy.html.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import retrieval_sets as sets
from numpy.typing import NDArray

from kb_resources.lexical import ANALYZER_VERSION, analyze
from kb_resources.store import passages, vectors
from kb_resources.store.passages import DIMENSIONS, K1, B
from kb_resources.store.pool import Connection

DIM = 384
WORDS = 163
MODEL = "synthetic@1"
PER_DOCUMENT = 25
BLOCK = 20_000
AVERAGE = 100.0
START = datetime(2020, 1, 1, tzinfo=UTC)
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_NO_TEXTS = struct.pack(">iii", 0, 0, 25)
_LATER = ("lex_keys", "lex_scope", "embedding_scope", "embedding_passage", "passage_embed_hash")


def sizes_of(total: int) -> list[int]:
    """Passages of each scope, the largest first.

    A million make 1,000 scopes: 100,000, twice 60,000, ten of 20,000, thirty of 5,000, one of 45,
    one of 10, and small ones. Less than 500,000 make one in 500: half, four of 3 %, 45, the rest.
    """
    if total >= 500_000:
        part = total / 1_000_000
        large = [round(size * part) for size in (100_000, 60_000, 60_000)]
        large += [round(20_000 * part)] * 10 + [round(5_000 * part)] * 30
        small = 1_000 - len(large) - 2
    else:
        large = [total // 2, *[max(45, total * 3 // 100)] * 4]
        small = max(1, total // 500 - len(large) - 2)
    each = (total - sum(large) - 55) // small
    return [*large, 45, 10, *[each] * small]


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence with its lexemes: `(n,) int32` ascending, and how often each occurs."""

    text: str
    words: int
    lexemes: NDArray[np.int32]
    counts: NDArray[np.float32]


def sentences(folder: Path) -> list[Sentence]:
    """Those of two labelled sets, analysed once."""
    found = []
    for name in ("cranfield-en", "cisi-en"):
        for row in sets.rows(folder / name / "corpus.jsonl"):
            for text in row["text"].split(" . "):
                terms = sorted(analyze(text, "en").terms.items())
                if len(text) > 30 and terms:
                    numbers, counts = zip(*terms, strict=True)
                    lexemes = np.array(numbers, np.int32)
                    made = Sentence(text, text.count(" ") + 1, lexemes, np.array(counts, "f4"))
                    found.append(made)
    return found


def texts(pool: Sequence[Sentence], seed: int = 1) -> Iterator[list[Sentence]]:
    """Passages of at least 163 words, without end."""
    chance = np.random.default_rng(seed)
    while True:
        for start in chance.integers(len(pool), size=(1_000, 64)):
            chosen, words = [], 0
            for number in start:
                chosen.append(pool[number])
                words += pool[number].words
                if words >= WORDS:
                    break
            yield chosen


def unit(count: int, chance: np.random.Generator) -> NDArray[np.float32]:
    """`(count, 384) float32`, L2-normalised, scattered around 200 centres."""
    centres = np.random.default_rng(1).standard_normal((200, DIM)).astype(np.float32)
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    made = centres[chance.integers(len(centres), size=count)]
    made = made + 0.7 * chance.standard_normal((count, DIM)).astype(np.float32) / np.sqrt(DIM)
    found: NDArray[np.float32] = made / np.linalg.norm(made, axis=1, keepdims=True)
    return found


@dataclass(frozen=True, slots=True)
class Loaded:
    """What lies in the database.

    Attributes:
        sizes: passages of scope `s1`, `s2` and so on.
        vectors: `(n, 384) float16` in order of `passage_id`, which is `p0`, `p1` and so on.
        scopes: `(n,) int32`, the number of each passage's scope, from 1.
    """

    sizes: list[int]
    vectors: NDArray[np.float16]
    scopes: NDArray[np.int32]

    def rows(self, number: int) -> NDArray[np.int64]:
        """Passages of a scope."""
        return np.flatnonzero(self.scopes == number)


def load(conn: Connection, folder: Path, sizes: list[int], seed: int = 1) -> Loaded:
    """Fill the tables; the connection is the owner's, in autocommit."""
    conn.execute("set session_replication_role = replica")
    later = [
        str(conn.execute("select pg_get_indexdef(%s::regclass)", [f"kb.{name}"]).fetchone()[0])  # type: ignore[index]
        for name in _LATER
    ]
    for name in _LATER:
        conn.execute(f"drop index kb.{name}")
    model = vectors.ensure_model(conn, MODEL, DIM)
    scopes, documents = _ledger(conn, sizes, seed)
    chance, source = np.random.default_rng(seed), texts(sentences(folder), seed)
    kept = np.empty((len(scopes), DIM), np.float16)
    for start in range(0, len(scopes), BLOCK):
        part = slice(start, min(start + BLOCK, len(scopes)))
        kept[part] = unit(part.stop - part.start, chance)
        _embeddings(conn, kept[part], scopes[part], part.start, model)
        chosen = [next(source) for _ in range(part.start, part.stop)]
        _passages(conn, chosen, scopes[part], documents[part], part.start)
        _lexical(conn, chosen, scopes[part], part.start)
    for definition in later:
        conn.execute(definition)
    conn.execute("set session_replication_role = origin")
    conn.execute("vacuum analyze")
    for number in range(1, len(sizes) + 1):
        passages.refresh_statistics(conn, number)
    conn.execute("vacuum analyze kb.term")
    return Loaded(sizes, kept, scopes)


def _ledger(
    conn: Connection, sizes: Sequence[int], seed: int
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Scopes with documents of 25 passages, mixed; scope and document of each passage."""
    held = [
        (number, min(PER_DOCUMENT, size - at))
        for number, size in enumerate(sizes, 1)
        for at in range(0, size, PER_DOCUMENT)
    ]
    order = np.random.default_rng(seed).permutation(len(held))
    chosen = [held[at] for at in order]
    lengths = [length for _, length in chosen]
    _copy(conn, "scope (scope_id, name)", ((n, f"s{n}") for n in range(1, len(sizes) + 1)))
    _copy(
        conn,
        "lexicon (scope_id, analyzer, average_length)",
        ((n, ANALYZER_VERSION, AVERAGE) for n in range(1, len(sizes) + 1)),
    )
    keyed = [(key, scope) for key, (scope, _) in enumerate(chosen, 1)]
    _copy(
        conn,
        "document (document_key, scope_id, document_id, source_kind, source_uri, origin)",
        ((key, scope, f"d{key}", "api", "x", "x") for key, scope in keyed),
    )
    _copy(
        conn,
        "version (version_key, document_key, scope_id, version, digest, media_type, size_bytes)",
        ((key, key, scope, 1, f"{key:064x}", "text/plain", 1) for key, scope in keyed),
    )
    held_from = f'["{START.isoformat()}",)'
    _copy(
        conn,
        "validity (document_key, version_key, scope_id, valid, known)",
        ((key, key, scope, held_from, held_from) for key, scope in keyed),
    )
    scopes = np.repeat([scope for _, scope in keyed], lengths).astype(np.int32)
    return scopes, np.repeat(np.arange(1, len(keyed) + 1), lengths)


def _copy(conn: Connection, table: str, rows: Iterator[tuple[object, ...]]) -> None:
    with conn.cursor() as cursor, cursor.copy(f"copy kb.{table} from stdin") as copy:
        for row in rows:
            copy.write_row(row)


def _passages(
    conn: Connection,
    chosen: Sequence[Sequence[Sentence]],
    scopes: NDArray[np.int32],
    documents: NDArray[np.int64],
    first: int,
) -> None:
    """`passage_key` is one more than the number of the row."""
    columns = (
        "passage_key, version_key, scope_id, passage_id, ordinal, text, context, heading_path,"
        " byte_start, byte_end, char_start, char_end, content_hash, embed_hash, token_count,"
        " language"
    )
    _copy(
        conn,
        f"passage ({columns})",
        (
            (
                *(number + 1, document, scope, f"p{number}", number),
                *(" . ".join(one.text for one in parts), "", [], 0, 1, 0, 1),
                *(f"{number:064x}", f"{number:064x}", 1, "en"),
            )
            for number, (parts, scope, document) in enumerate(
                zip(chosen, scopes.tolist(), documents.tolist(), strict=True), first
            )
        ),
    )


def _binary(conn: Connection, table: str, data: bytes) -> None:
    statement = f"copy kb.{table} from stdin (format binary)"
    with conn.cursor() as cursor, cursor.copy(statement) as copy:
        copy.write(b"PGCOPY\n\xff\r\n\0" + bytes(8) + data + struct.pack(">h", -1))


def _micros() -> int:
    return int((START - _EPOCH).total_seconds()) * 1_000_000


def _embeddings(
    conn: Connection,
    made: NDArray[np.float16],
    scopes: NDArray[np.int32],
    first: int,
    model: int,
) -> None:
    lengths = [("model", 4), ("key", 8), ("scope", 4), ("start", 8), ("none", 12)]
    fields: list[tuple[str, str]] = [("fields", ">i2")]
    for name, size in lengths:
        fields += [(f"{name}_bytes", ">i4"), (name, "V12" if size == 12 else f">i{size}")]
    fields += [("vec_bytes", ">i4"), ("dim", ">i2"), ("unused", ">i2")]
    rows = np.zeros(len(made), np.dtype([*fields, ("vec", ">f2", (DIM,))]))
    for name, size in lengths:
        rows[f"{name}_bytes"] = size
    rows["fields"], rows["model"], rows["scope"], rows["start"] = 6, model, scopes, _micros()
    rows["key"] = np.arange(first + 1, first + 1 + len(made))
    rows["none"] = np.frombuffer(_NO_TEXTS, "V12")[0]
    rows["vec_bytes"], rows["dim"], rows["vec"] = 4 + 2 * DIM, DIM, made
    columns = "embedding (model_key, passage_key, scope_id, valid_from, audiences, vec)"
    _binary(conn, columns, rows.tobytes())


def _lexical(
    conn: Connection,
    chosen: Sequence[Sequence[Sentence]],
    scopes: NDArray[np.int32],
    first: int,
) -> None:
    parts = bytearray()
    for number, (found, scope) in enumerate(zip(chosen, scopes.tolist(), strict=True), first):
        lexemes, places = np.unique(
            np.concatenate([one.lexemes for one in found]), return_inverse=True
        )
        counts = np.bincount(places, np.concatenate([one.counts for one in found]))
        norm = K1 * (1 - B + B * counts.sum() / AVERAGE)
        size = len(lexemes)
        parts += struct.pack(">hiqiiiq", 6, 8, number + 1, 4, scope, 8, _micros())
        parts += struct.pack(">i", 12) + _NO_TEXTS
        parts += struct.pack(">iiii", 12 + 8 * size, DIMENSIONS, size, 0)
        parts += (lexemes - 1).astype(">i4").tobytes()
        parts += (counts * (K1 + 1) / (counts + norm)).astype(">f4").tobytes()
        keys = np.empty((size, 2), ">i4")
        keys[:, 0], keys[:, 1] = 4, lexemes ^ ((scope * 2_654_435_761) & 2_147_483_647)
        parts += struct.pack(">iiiiii", 20 + 8 * size, 1, 0, 23, size, 1) + keys.tobytes()
    columns = "lex (passage_key, scope_id, valid_from, audiences, bm, keys)"
    _binary(conn, columns, bytes(parts))
