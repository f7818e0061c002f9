"""What a put of many chunks with vectors costs beside a bare COPY of the same rows.

Usage: python bench/store_put.py [--chunks N] [--rounds N]. A server of its own in a temporary
folder, without ANN index; CPU seconds of the client and of its backend, and wall seconds. The bare
COPY fills copies of the four tables that keep what was put (body, passages, lexical rows, vectors)
with the same checks and indexes, but no triggers and foreign keys, in turn with the puts, so that
both grow alike. Goal: at most twice. Figures are of the cheapest round; all rounds are listed,
since the scope's statistics come due in each of the first four (they do whenever it has grown by
30 %) and not in the fifth. Below, where the cheapest put spent its time: each part's share of
client and backend.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from kb_resources.model import Chunk, content_hash, passage_id
from kb_resources.model.chunk import embedding_input
from kb_resources.store import passages, postgres, publishing, staging, vectors, versions, wire
from kb_resources.store.migrate import migrate
from kb_resources.store.pool import Database, Timeouts
from kb_resources.store.postgres import PgStore
from kb_resources.store.records import Edition, VectorSpace
from kb_resources.store.server import EmbeddedServer

DIM = 384
NEWEST = "(select max(version_key) from kb.version)"
ROWS = {
    "parsed": f"select * from kb.parsed where version_key = {NEWEST}",
    "passage": f"select * from kb.passage where version_key = {NEWEST}",
    "lex": "select t.* from kb.lex t join kb.passage p using (passage_key)"
    f" where p.version_key = {NEWEST}",
    "embedding": "select t.* from kb.embedding t join kb.passage p using (passage_key)"
    f" where p.version_key = {NEWEST}",
}
WORDS = (
    "leave",
    "pay",
    "travel",
    "hall",
    "key",
    "rule",
    "month",
    "day",
    "hour",
    "person",
    "office",
)


def edition(chunks: int, number: int) -> Edition:
    """A document of paragraphs of about 160 words each."""
    random = np.random.default_rng(number)
    texts = [
        f"Clause {n}. " + " ".join(random.choice(WORDS, 140)) + f" w{n % 997} x{n}y{number}."
        for n in range(chunks)
    ]
    made, at = [], 0
    for ordinal, text in enumerate(texts):
        digest = content_hash(text)
        made.append(
            Chunk(
                ordinal, passage_id(f"d{number}", ("Law",), digest, 0), text, "Law", ("Law",),
                None, None, at, at + len(text), at, at + len(text), digest,
                content_hash(embedding_input("Law", text)), 300,
            )
        )  # fmt: skip
        at += len(text) + 2
    vectors = random.standard_normal((chunks, DIM)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    body = "\n\n".join(texts)
    given = {chunk.embed_hash: vector for chunk, vector in zip(made, vectors, strict=True)}
    return Edition(
        document_id=f"d{number}",
        title="Law",
        body=body,
        chunks=tuple(made),
        digest=content_hash(body),
        valid_from=datetime(2026, 1, 1, tzinfo=UTC),
        language="en",
        vectors=given,
    )


def measured(backend: int, work: Callable[[], object]) -> tuple[float, float]:
    """CPU seconds of client and backend, and wall seconds."""
    server = psutil.Process(backend)

    def spent() -> float:
        there = server.cpu_times()
        return time.process_time() + there.user + there.system

    before, started = spent(), time.perf_counter()
    work()
    return spent() - before, time.perf_counter() - started


PARTS = (
    (postgres, "check_storable", "texts can be stored"),
    (postgres, "check_edition", "chunks are slices, vectors unit"),
    (versions, "save_parsed", "body and blocks, compressed"),
    (versions, "record_verdict", "verdict"),
    (staging, "replace_chunks", "chunks staged by COPY"),
    (vectors, "carry_known", "vectors the scope has"),
    (publishing, "lexical_rows", "words to lexemes"),
    (wire, "lexical_arrays", "lexical rows to binary"),
    (wire, "halfvec_array", "vectors to binary"),
    (passages, "put_version", "rows, indexes, keys, gate, statistics"),
    (passages, "refresh_if_due", "  of it statistics that came due"),
)


class Parts:
    """CPU seconds of client and backend by part of a put; the functions are wrapped.

    What a thread does while the server works is the client's alone.
    """

    def __init__(self, backend: int) -> None:
        self._server = psutil.Process(backend)
        self.spent: dict[str, list[float]] = {}
        for module, name, _ in PARTS:
            setattr(module, name, self._timed(name, getattr(module, name)))

    def _timed(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*given: Any, **named: Any) -> Any:
            client, server = self._now()
            try:
                return call(*given, **named)
            finally:
                after = self._now()
                held = self.spent.setdefault(name, [0.0, 0.0])
                held[0] += after[0] - client
                held[1] += after[1] - server

        return timed

    def _now(self) -> tuple[float, float]:
        if threading.current_thread() is not threading.main_thread():
            return time.thread_time(), 0.0
        there = self._server.cpu_times()
        return time.thread_time(), there.user + there.system


def bare_copy(conn: Any, rows: dict[str, bytes]) -> None:
    """COPY the rows into the copies of the tables, in one transaction."""
    with conn.transaction():
        for table, data in rows.items():
            with conn.cursor().copy(f"copy bare.{table} from stdin (format binary)") as copy:
                copy.write(data)


def copied_out(conn: Any, query: str) -> bytes:
    """Rows in the format of binary COPY."""
    with conn.cursor().copy(f"copy ({query}) to stdout (format binary)") as copy:
        return b"".join(copy)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chunks", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=2)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kb-bench-") as home:
        Path(home).chmod(0o711)
        server = EmbeddedServer(Path(home) / "home")
        server.start()
        try:
            migrate(server.dsn("owner"))
            limits = Timeouts(statement_s=600)
            with Database.embedded(server, timeouts=limits, max_size=1) as database:
                run(database, asked.chunks, asked.rounds)
        finally:
            server.destroy()


def run(database: Database, chunks: int, rounds: int) -> None:
    """Put, copy out, copy in; the best of the rounds."""
    store = PgStore(database, VectorSpace("bench@1", DIM))
    store.scopes.create("bench")
    with database.transaction("pipeline") as conn:
        backend = conn.info.backend_pid
    parts, puts, copies = Parts(backend), [], []
    with database.owner_session() as conn:
        conn.execute("create schema bare")
        for table in ROWS:
            conn.execute(f"create table bare.{table} (like kb.{table} including all)")
        for number in range(rounds):
            given = edition(chunks, number)
            parts.spent = {}
            took = measured(backend, lambda given=given: store.put(given, scope="bench"))  # type: ignore[misc]
            puts.append((took, parts.spent))
            rows = {table: copied_out(conn, query) for table, query in ROWS.items()}
            copies.append(measured(conn.info.backend_pid, lambda rows=rows: bare_copy(conn, rows)))  # type: ignore[misc]
    (put, spent), copied = min(puts, key=lambda each: each[0]), min(copies)
    analysis = spent["lexical_rows"][0]
    print(f"{chunks:,} chunks, {sum(map(len, rows.values())) / 1e6:.0f} MB of rows")
    print(f"put               {put[0]:6.2f} CPU s  {put[1]:6.2f} s")
    print(f"  of it analysis  {analysis:6.2f} CPU s (words to lexemes, in the client)")
    print(f"bare COPY         {copied[0]:6.2f} CPU s  {copied[1]:6.2f} s")
    cpu, wall = put[0] / copied[0], put[1] / copied[1]
    print(f"put / COPY        {cpu:6.2f} CPU    {wall:6.2f} wall  goal ≤ 2")
    print(f"without analysis  {(put[0] - analysis) / copied[0]:6.2f} CPU")
    statistics = [round_["refresh_if_due"][1] for _, round_ in puts]
    print("each round, CPU s " + "".join(f"{took[0]:6.2f}" for took, _ in puts))
    print("  statistics      " + "".join(f"{each:6.2f}" for each in statistics))
    print(f"{'':40} client  backend, CPU s")
    for _, name, what in PARTS:
        client, server = spent.get(name, (0.0, 0.0))
        print(f"  {what:38} {client:6.2f}   {server:6.2f}")


if __name__ == "__main__":
    main()
