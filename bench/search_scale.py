"""CPU per search beside a numpy scan, by size of the scope: `python bench/search_scale.py`.

Many synthetic passages in scopes of very different size (`scale_rows.py`), searched as the reading
role under row level security; `--passages 1000000` makes 1,000 scopes. CPU is the backend's, from
/proc; numpy's floor is one float32 matrix-vector product and a partial sort over the scope alone,
in the same run. The scopes large enough for an index of their own are asked before and after
`ann.maintain` makes it. Recall is that of the vector list against the exact ten nearest, over each
size and then once more over every scope there is. Belongs here: speed and recall. What does not:
ranking quality (`search.py`).
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy: the floor is one core's, without spinning
import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import retrieval_sets as sets
import scale_rows
from numpy.typing import NDArray
from scale_rows import DIM, MODEL, Loaded

from kb_resources.lexical import analyze_query
from kb_resources.retrieve.asking import FULL_SHARE
from kb_resources.store import ann, vectors
from kb_resources.store import search as statements
from kb_resources.store.migrate import migrate
from kb_resources.store.pool import Connection, Database
from kb_resources.store.search import SearchQuery
from kb_resources.store.server import EmbeddedServer

VOLATILE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
K = 10


def backend_cpu_s(pid: int) -> float:
    """Seconds a process has run so far, user and system."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def near(scope_vectors: NDArray[np.float32], count: int) -> NDArray[np.float32]:
    """`(count, 384) float32`: questions near passages of the scope, L2-normalised."""
    chance = np.random.default_rng(7)
    asked = scope_vectors[chance.integers(len(scope_vectors), size=count)]
    asked = asked + 0.5 * chance.standard_normal(asked.shape).astype(np.float32) / np.sqrt(DIM)
    # NumPy 2 makes float64 of float32 and a scalar, and the floor would be that of float64.
    made: NDArray[np.float32] = asked / np.linalg.norm(asked, axis=1, keepdims=True)
    return made.astype(np.float32)


def question(conn: Connection, number: int, text: str, vector: NDArray[np.float32]) -> SearchQuery:
    """A question to scope `s<number>`, with both lists."""
    scope = statements.visible_scopes(conn, [f"s{number}"])[f"s{number}"]
    return SearchQuery(
        scope_ids=[scope.scope_id],
        lexemes=analyze_query(text),
        vector=vector,
        model_key=vectors.model_key(conn, MODEL),
        audiences=[],
        as_of=datetime.now(UTC),
        historical=False,
        k=K,
        candidates=100,
        full_share=FULL_SHARE,
    )


def recall(
    rows: Sequence[dict[str, object]],
    places: NDArray[np.int64],
    scores: NDArray[np.float32],
) -> float:
    """Share of the ten nearest that were found; passages as near as the tenth count as one."""
    wanted = min(K, len(places))
    tenth = np.partition(-scores, wanted - 1)[wanted - 1] + 1e-4
    true = {f"p{places[at]}" for at in np.flatnonzero(-scores <= tenth)}
    return len({row["passage_id"] for row in rows} & true) / wanted


def measure(
    database: Database, loaded: Loaded, number: int, texts: Sequence[str], note: str = ""
) -> None:
    """One line: size, CPU of ours and of numpy, their ratio, time, recall of the vector list."""
    places = loaded.rows(number)
    scope_vectors = loaded.vectors[places].astype(np.float32)
    asked = near(scope_vectors, len(texts))
    spent, taken, recalls = {}, [], []
    with database.transaction("app", f"s{number}") as conn:
        pid = conn.info.backend_pid
        both = [question(conn, number, *one) for one in zip(texts, asked, strict=True)]
        for mode, left_out in (("text", {"vector": None}), ("vector", {"lexemes": {}}), ("", {})):
            for warm in (True, False):
                before, client = backend_cpu_s(pid), time.process_time()
                for one in both:
                    started = time.perf_counter()
                    rows = statements.run(conn, replace(one, **left_out))
                    if not warm and not mode:
                        taken.append((time.perf_counter() - started) * 1e3)
                    if not warm and mode == "vector":
                        recalls.append(recall(rows, places, scope_vectors @ one.vector))
                spent[mode] = (backend_cpu_s(pid) - before) / len(texts) * 1e3
            client = (time.process_time() - client) / len(texts) * 1e3
    started = time.process_time()
    for vector in asked:
        scores = scope_vectors @ vector
        np.argpartition(-scores, min(K, len(scores) - 1))[:K]
    floor = (time.process_time() - started) / len(asked) * 1e3
    p50, p95 = np.percentile(taken, [50, 95])
    print(
        f"scope of {len(places):7}{note}: text {spent['text']:6.2f}  vector {spent['vector']:6.2f}"
        f"  hybrid {spent['']:6.2f} ms CPU, client {client:.2f}; numpy {floor:6.3f} ms, hybrid"
        f" {spent[''] / floor:5.1f}x; p50 {p50:.1f} p95 {p95:.1f} ms; recall@10"
        f" {sets.mean(recalls):.3f}",
        flush=True,
    )


def sweep(database: Database, loaded: Loaded, each: int = 2) -> None:
    """Recall of the vector list in every scope."""
    found = []
    for number in range(1, len(loaded.sizes) + 1):
        places = loaded.rows(number)
        scope_vectors = loaded.vectors[places].astype(np.float32)
        with database.transaction("app", f"s{number}") as conn:
            for vector in near(scope_vectors, each):
                asked = replace(question(conn, number, "", vector), lexemes={})
                rows = statements.run(conn, asked)
                found.append(recall(rows, places, scope_vectors @ vector))
    print(
        f"every scope asked {each} times: recall@10 {sets.mean(found):.4f}, lowest {min(found):.2f}"
    )


def main() -> int:
    """Load, measure each size of scope, make indexes, measure again, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--questions", type=int, default=50)
    given = parser.parse_args()
    data = os.environ.get("KB_TEST_DATA")
    if not data:
        print("KB_TEST_DATA is not set: the labelled sets are not here.")
        return 2
    folder = Path(data) / "data" / "retrieval"
    texts = [row["text"] for row in sets.rows(folder / "cranfield-en" / "queries.jsonl")]
    texts = texts[: given.questions]
    home = Path(tempfile.mkdtemp(prefix="kb-bench-"))
    home.chmod(0o711)
    server = EmbeddedServer(home / "home", settings=VOLATILE)
    try:
        server.start()
        migrate(server.dsn("owner"))
        sizes = scale_rows.sizes_of(given.passages)
        first = {size: number for number, size in reversed(list(enumerate(sizes, 1)))}
        large = [number for size, number in first.items() if size >= ann.LIMIT]
        with Database.embedded(server, application_name="kb bench") as database:
            started = time.perf_counter()
            with database.owner_session() as conn:
                loaded = scale_rows.load(conn, folder, sizes)
                spent = time.perf_counter() - started
                (stored,) = conn.execute("select pg_database_size(current_database())").fetchone()
            print(
                f"{sum(sizes)} passages in {len(sizes)} scopes, loaded in {spent:.0f} s,"
                f" {stored / 1e9:.2f} GB; load {os.getloadavg()[0]:.1f}",
                flush=True,
            )
            for number in sorted(first.values()):
                measure(database, loaded, number, texts)
            started = time.perf_counter()
            with database.owner_session() as conn:
                made = ann.maintain(conn)
            print(f"{len(made)} indexes made in {time.perf_counter() - started:.0f} s")
            for number in sorted(large):
                measure(database, loaded, number, texts, ", indexed")
            sweep(database, loaded)
            print(f"load {os.getloadavg()[0]:.1f}")
    finally:
        server.destroy()
        shutil.rmtree(home)
    return 0


if __name__ == "__main__":
    sys.exit(main())
