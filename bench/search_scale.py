"""CPU per search beside a numpy scan, by size of the scope: `python bench/search_scale.py`.

Texts are recombined sentences of the labelled sets, vectors are random around 200 centres. Rows
are copied in past the gate (nothing here is a real document), searched as the reading role under
row level security. CPU is the backend's, from /proc; numpy's floor is one float32 matrix-vector
product and a partial sort. Belongs here: speed. What does not: ranking quality (`search.py`).
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import retrieval_sets as sets
from numpy.typing import NDArray

from kb_resources.lexical import ANALYZER_VERSION, analyze, analyze_query
from kb_resources.store import passages, vectors
from kb_resources.store import search as statements
from kb_resources.store.migrate import migrate
from kb_resources.store.pool import Connection, Database
from kb_resources.store.server import EmbeddedServer

DIM = 384
WORDS = 163
START = datetime(2020, 1, 1, tzinfo=UTC)
VOLATILE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
TICKS = os.sysconf("SC_CLK_TCK")


def scope_sizes(total: int) -> list[int]:
    """Half in one scope, four middling ones, the rest small: 200 scopes for 100,000 passages."""
    sizes = [total // 2, *[max(45, total * 3 // 100)] * 4]
    rest = max(1, total // 500 - len(sizes))
    left = total - sum(sizes)
    return sizes + [45] + [(left - 45) // max(1, rest - 1)] * max(1, rest - 1)


def texts(folder: Path, count: int, seed: int = 1) -> Iterator[str]:
    """Passages of about 163 words made of sentences of real ones."""
    chance = random.Random(seed)
    pool = []
    for name in ("cranfield-en", "cisi-en"):
        for row in sets.rows(folder / name / "corpus.jsonl"):
            pool += [part.split() for part in row["text"].split(" . ") if len(part) > 30]
    for _ in range(count):
        words: list[str] = []
        while len(words) < WORDS:
            words += chance.choice(pool)
        yield " ".join(words[:WORDS])


def unit(
    count: int, chance: np.random.Generator, centres: NDArray[np.float32]
) -> NDArray[np.float32]:
    """`(count, 384) float32`, L2-normalised, scattered around centres."""
    made = centres[chance.integers(len(centres), size=count)]
    made = made + 0.7 * chance.standard_normal((count, DIM)).astype(np.float32) / np.sqrt(DIM)
    found: NDArray[np.float32] = made / np.linalg.norm(made, axis=1, keepdims=True)
    return found


def load(conn: Connection, folder: Path, sizes: Sequence[int]) -> list[NDArray[np.float32]]:
    """Fill the tables by COPY with triggers off; returns each scope's vectors."""
    chance = np.random.default_rng(1)
    centres = chance.standard_normal((200, DIM)).astype(np.float32)
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    conn.execute("set session_replication_role = replica")
    model = vectors.ensure_model(conn, "synthetic@1", DIM)
    source = texts(folder, sum(sizes))
    kept, key = [], 0
    for number, size in enumerate(sizes, 1):
        name = f"s{number}"
        (scope_id,) = conn.execute(
            "insert into kb.scope (name) values (%s) returning scope_id", [name]
        ).fetchone() or (0,)
        (document_key,) = conn.execute(
            "insert into kb.document (scope_id, document_id, source_kind, source_uri, origin)"
            " values (%s, 'd', 'api', 'x', 'x') returning document_key",
            [scope_id],
        ).fetchone() or (0,)
        (version_key,) = conn.execute(
            "insert into kb.version (document_key, scope_id, version, digest, media_type,"
            " size_bytes) values (%s, %s, 1, %s, 'text/plain', 1) returning version_key",
            [document_key, scope_id, f"{number:064x}"],
        ).fetchone() or (0,)
        conn.execute(
            "insert into kb.validity (document_key, version_key, scope_id, valid, known) values"
            " (%s, %s, %s, tstzrange(%s, null), tstzrange(%s, null))",
            [document_key, version_key, scope_id, START, START],
        )
        conn.execute(
            "insert into kb.lexicon (scope_id, analyzer, average_length) values (%s, %s, 100)",
            [scope_id, ANALYZER_VERSION],
        )
        made = unit(size, chance, centres)
        kept.append(made)
        lex, emb = [], []
        with (
            conn.cursor() as cursor,
            cursor.copy(
                "copy kb.passage (passage_key, version_key, scope_id, passage_id, ordinal, text,"
                " context, heading_path, byte_start, byte_end, char_start, char_end,"
                " content_hash, embed_hash, token_count, language) from stdin"
            ) as copy,
        ):
            for ordinal in range(size):
                text, key = next(source), key + 1
                found = analyze(text, "en")
                row = passages.LexicalRow(ordinal, found.terms, found.length)
                lex.append((key, *passages.row_literals(row, 100.0)))
                emb.append((key, "[" + ",".join(f"{x:.4f}" for x in made[ordinal]) + "]"))
                copy.write_row(
                    (
                        *(key, version_key, scope_id, f"p{key}", ordinal, text, "", [], 0, 1, 0, 1),
                        *(f"{key:064x}", f"{key:064x}", 1, "en"),
                    )
                )
        with conn.cursor() as cursor:
            cursor.execute("create temp table if not exists lex_in (k bigint, bm text, terms text)")
            with cursor.copy("copy lex_in from stdin") as copy:
                for item in lex:
                    copy.write_row(item)
            cursor.execute(
                "insert into kb.lex (passage_key, scope_id, valid_from, audiences, bm, keys)"
                " select k, %(s)s, %(t)s, '{}', bm::sparsevec,"
                " array(select kb.scoped_key(%(s)s, x) from unnest(terms::int[]) x) from lex_in",
                {"s": scope_id, "t": START},
            )
            cursor.execute("truncate lex_in")
            with cursor.copy(
                "copy kb.embedding (model_key, passage_key, scope_id, valid_from, audiences, vec)"
                " from stdin"
            ) as copy:
                for item in emb:
                    copy.write_row((model, item[0], scope_id, START, [], item[1]))
        passages.refresh_statistics(conn, scope_id)
    conn.execute("set session_replication_role = origin")
    conn.execute("vacuum analyze")
    return kept


def backend_cpu_s(pid: int) -> float:
    """User and system seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def measure(
    database: Database, number: int, scope_vectors: NDArray[np.float32], questions: Sequence[str]
) -> str:
    """One line: size, CPU of ours and of numpy, their ratio, recall of the vector list."""
    name = f"s{number}"
    chance = np.random.default_rng(7)
    asked = scope_vectors[chance.integers(len(scope_vectors), size=len(questions))]
    asked = asked + 0.5 * chance.standard_normal(asked.shape).astype(np.float32) / np.sqrt(DIM)
    asked /= np.linalg.norm(asked, axis=1, keepdims=True)
    spent = {}
    recall = []
    for mode in ("text", "vector", "hybrid"):
        with database.transaction("app", name) as conn:
            scope = statements.visible_scopes(conn, [name])[name]
            model = vectors.model_key(conn, "synthetic@1")
            pid = conn.info.backend_pid
            for warm in (True, False):
                before, client = backend_cpu_s(pid), time.process_time()
                for text, vector in zip(questions, asked, strict=True):
                    rows = statements.run(
                        conn,
                        statements.SearchQuery(
                            scope_ids=[scope.scope_id],
                            lexemes={} if mode == "vector" else analyze_query(text),
                            vector=None if mode == "text" else vector,
                            model_key=model,
                            audiences=[],
                            as_of=datetime.now(UTC),
                            historical=False,
                            k=10,
                            candidates=100,
                        ),
                    )
                    if mode == "vector" and not warm:
                        true = np.sort(scope_vectors @ vector)[::-1][:10]
                        got = sum(row["vector_score"] >= true[-1] - 2e-3 for row in rows)
                        recall.append(got / min(10, len(true)))
                spent[mode] = (backend_cpu_s(pid) - before) / len(questions) * 1e3
        spent[f"client {mode}"] = (time.process_time() - client) / len(questions) * 1e3
    started = time.process_time()
    for vector in asked:
        scores = scope_vectors @ vector
        np.argpartition(-scores, min(10, len(scores) - 1))[:10]
    floor = (time.process_time() - started) / len(asked) * 1e3
    return (
        f"scope of {len(scope_vectors):7}: text {spent['text']:7.2f}  vector {spent['vector']:7.2f}"
        f"  hybrid {spent['hybrid']:7.2f} ms CPU, client {spent['client hybrid']:.2f};"
        f" numpy {floor:7.3f} ms, hybrid {spent['hybrid'] / floor:6.1f}x;"
        f" recall@10 {sets.mean(recall):.3f}"
    )


def main() -> int:
    """Load, measure three scope sizes, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--questions", type=int, default=50)
    given = parser.parse_args()
    data = os.environ.get("KB_TEST_DATA")
    if not data:
        print("KB_TEST_DATA is not set: the labelled sets are not here.")
        return 2
    folder = Path(data) / "retrieval"
    asked = [row["text"] for row in sets.rows(folder / "cranfield-en" / "queries.jsonl")]
    home = Path(tempfile.mkdtemp(prefix="kb-bench-"))
    home.chmod(0o711)
    server = EmbeddedServer(home / "home", settings=VOLATILE)
    try:
        server.start()
        migrate(server.dsn("owner"))
        sizes = scope_sizes(given.passages)
        with Database.embedded(server, application_name="kb bench") as database:
            with database.owner_session() as conn:
                kept = load(conn, folder, sizes)
            print(f"{sum(sizes)} passages in {len(sizes)} scopes")
            for number in (1, 2, 6):
                print(measure(database, number, kept[number - 1], asked[: given.questions]))
    finally:
        server.destroy()
        shutil.rmtree(home)
    return 0


if __name__ == "__main__":
    sys.exit(main())
