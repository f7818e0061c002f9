"""Vector search inside one scope of many, beside peers: `python bench/search_peers.py`.

The same synthetic vectors, in scopes of very different size, are asked as this store asks scopes of
under 50,000 (pgvector, an exact scan of the scope's rows) and as others do: numpy over the scope
alone (the floor), pgvector with one HNSW index over all and the scope as a condition (as
LangChain's and LlamaIndex' stores ask it, without and with iterative scan), LanceDB, Qdrant in
this process, sqlite-vec, Chroma. Recall is against the exact ten nearest of the scope; CPU is
user and system time of this process, and of the backend where there is one. A peer that does not
import is left out and said so: none is a dependency (`pip install lancedb qdrant-client sqlite-vec
chromadb` into an environment whose site-packages stand on PYTHONPATH).
Belongs here: speed and recall of one list. What does not: ranking quality (`search.py`).
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy: one core's work, without spinning
import argparse
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

DIM = 384
K = 10
Vectors = NDArray[np.float32]
Search = Callable[[int, Vectors], list[int]]
"""Scope and question to row numbers, best first."""


def scope_of(count: int) -> NDArray[np.int64]:
    """The scope of each row: half in scope 1, 3 % in 2, 45 rows in 3, the rest spread."""
    made = np.full(count, 1)
    made[count // 2 :] = 4 + np.arange(count - count // 2) % max(1, count // 500)
    made[count // 2 : count // 2 + count * 3 // 100] = 2
    made[-45:] = 3
    return made


def unit(count: int, seed: int) -> Vectors:
    """`(count, 384) float32`, L2-normalised, scattered around 200 centres."""
    chance = np.random.default_rng(seed)
    centres = np.random.default_rng(1).standard_normal((200, DIM)).astype(np.float32)
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    noise = chance.standard_normal((count, DIM)).astype(np.float32) / np.sqrt(DIM)
    made = centres[chance.integers(200, size=count)] + 0.7 * noise
    found: Vectors = (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)
    return found


def numpy_floor(vectors: Vectors, scopes: NDArray[np.int64], _: Path) -> Search:
    """The scope's rows alone, multiplied."""
    rows = {int(scope): np.flatnonzero(scopes == scope) for scope in np.unique(scopes)}
    parts = {scope: np.ascontiguousarray(vectors[found]) for scope, found in rows.items()}

    def search(scope: int, asked: Vectors) -> list[int]:
        scores = parts[scope] @ asked
        best = np.argpartition(-scores, min(K, len(scores) - 1))[:K]
        return [int(n) for n in rows[scope][best[np.argsort(-scores[best])]]]

    return search


def lance(vectors: Vectors, scopes: NDArray[np.int64], folder: Path) -> Search:
    """LanceDB with its IVF-PQ index and the scope as a filter before the search."""
    import lancedb
    from lancedb.index import IvfPq

    rows = [
        {"n": n, "scope": int(scope), "vector": vector}
        for n, (scope, vector) in enumerate(zip(scopes, vectors, strict=True))
    ]
    table = lancedb.connect(folder / "lance").create_table("t", rows)
    made = IvfPq(distance_type="dot", num_partitions=64, num_sub_vectors=48)
    table.create_index("vector", config=made)

    def search(scope: int, asked: Vectors) -> list[int]:
        found = (table.search(asked).where(f"scope = {scope}", prefilter=True).nprobes(20)).limit(K)
        return [int(row["n"]) for row in found.to_list()]

    return search


def qdrant(vectors: Vectors, scopes: NDArray[np.int64], _: Path) -> Search:
    """Qdrant's client in this process (no server, so no index of its own: it scans)."""
    from qdrant_client import QdrantClient, models

    client = QdrantClient(":memory:")
    size = models.VectorParams(size=DIM, distance=models.Distance.DOT)
    client.create_collection("t", vectors_config=size)
    for start in range(0, len(vectors), 2000):
        part = range(start, min(start + 2000, len(vectors)))
        points = [
            models.PointStruct(id=n, vector=vectors[n].tolist(), payload={"scope": int(scopes[n])})
            for n in part
        ]
        client.upsert("t", points)

    def search(scope: int, asked: Vectors) -> list[int]:
        match = models.FieldCondition(key="scope", match=models.MatchValue(value=scope))
        found = client.query_points(
            "t", query=asked.tolist(), limit=K, query_filter=models.Filter(must=[match])
        )
        return [int(point.id) for point in found.points]

    return search


def chroma(vectors: Vectors, scopes: NDArray[np.int64], folder: Path) -> Search:
    """Chroma's persistent client: one HNSW index, the scope as a condition on metadata."""
    import chromadb

    client = chromadb.PersistentClient(str(folder / "chroma"))
    made = client.create_collection("peers", configuration={"hnsw": {"space": "ip"}})
    for start in range(0, len(vectors), 5000):
        part = range(start, min(start + 5000, len(vectors)))
        made.add(
            ids=[str(n) for n in part],
            embeddings=vectors[part.start : part.stop],
            metadatas=[{"scope": int(scopes[n])} for n in part],
        )

    def search(scope: int, asked: Vectors) -> list[int]:
        found = made.query(
            query_embeddings=[asked], n_results=K, where={"scope": scope}, include=[]
        )
        return [int(n) for n in found["ids"][0]]

    return search


def sqlite_vec(vectors: Vectors, scopes: NDArray[np.int64], folder: Path) -> Search:
    """sqlite-vec, the scope as its partition key."""
    import sqlite_vec as extension

    if not hasattr(sqlite3.Connection, "enable_load_extension"):
        raise ImportError("the sqlite3 of this Python loads no extensions")
    conn = sqlite3.connect(folder / "vec.db")
    conn.enable_load_extension(True)
    extension.load(conn)
    conn.execute(
        f"create virtual table t using vec0(n integer primary key, scope integer partition key,"
        f" v float[{DIM}])"
    )
    conn.executemany(
        "insert into t values (?, ?, ?)",
        ((n, int(scopes[n]), vectors[n].tobytes()) for n in range(len(vectors))),
    )
    conn.commit()

    def search(scope: int, asked: Vectors) -> list[int]:
        rows = conn.execute(
            "select n from t where v match ? and k = ? and scope = ?", [asked.tobytes(), K, scope]
        )
        return [row[0] for row in rows]

    return search


@contextmanager
def postgres(folder: Path) -> Iterator[Any]:
    """A connection to an embedded server with pgvector; its backend's CPU counts."""
    import psycopg

    from kb_resources.store.server import EmbeddedServer

    server = EmbeddedServer(folder / "pg", settings={"fsync": "off", "full_page_writes": "off"})
    server.start()
    try:
        with psycopg.connect(server.dsn("owner", "postgres"), autocommit=True) as conn:
            conn.execute("create extension if not exists vector")
            yield conn
    finally:
        server.destroy()


def pgvector(conn: Any, vectors: Vectors, scopes: NDArray[np.int64]) -> dict[str, Search]:
    """One table, one HNSW index, the scope as a condition; and an exact scan, as this store's."""
    conn.execute(f"create table t (n int primary key, scope int, v halfvec({DIM}))")
    with conn.cursor() as cursor, cursor.copy("copy t from stdin") as copy:
        for n, vector in enumerate(vectors):
            text = "[" + ",".join(f"{x:.5f}" for x in vector) + "]"
            copy.write_row((n, int(scopes[n]), text))
    conn.execute("create index on t using hnsw (v halfvec_ip_ops)")
    conn.execute("create index on t (scope)")
    conn.execute("vacuum analyze t")

    def asking(order: str, before: str) -> Search:
        def search(scope: int, asked: Vectors) -> list[int]:
            text = "[" + ",".join(f"{x:.6g}" for x in asked) + "]"
            with conn.transaction():
                conn.execute(before)
                rows = conn.execute(
                    f"select n from t where scope = %s order by {order} limit {K}", [scope, text]
                ).fetchall()
            return [row[0] for row in rows]

        return search

    indexed = "set local enable_sort = off; set local enable_seqscan = off"
    near = f"v <#> %s::halfvec({DIM})"
    return {
        "pgvector, planner's choice": asking(near, "select 1"),
        "pgvector, HNSW": asking(near, indexed),
        "pgvector, HNSW iterative": asking(
            near, f"{indexed}; set local hnsw.iterative_scan = relaxed_order"
        ),
        "pgvector, exact (as here)": asking(f"({near}) + 0", "select 1"),
    }


def measure(
    name: str, search: Search, exact: Search, asked: Vectors, cpu: Callable[[], float]
) -> None:
    """One line per scope size: CPU per search and recall."""
    parts = []
    for scope in (1, 2, 3):
        search(scope, asked[0])
        before = cpu()
        found = [search(scope, one) for one in asked]
        spent = (cpu() - before) / len(asked) * 1e3
        wanted = [set(exact(scope, one)) for one in asked]
        recall = np.mean([len(set(f) & w) / len(w) for f, w in zip(found, wanted, strict=True)])
        parts.append(f"{spent:8.2f} ms {recall:.3f}")
    print(f"{name:30} {'   '.join(parts)}", flush=True)


def main() -> int:
    """Load each, measure each, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vectors", type=int, default=100_000)
    parser.add_argument("--questions", type=int, default=50)
    parser.add_argument("--only", help="one peer by name, and the floor")
    given = parser.parse_args()
    vectors, scopes = unit(given.vectors, 2), scope_of(given.vectors)
    asked = unit(given.questions, 3)
    folder = Path(tempfile.mkdtemp(prefix="kb-bench-"))
    folder.chmod(0o711)
    sizes = [int((scopes == scope).sum()) for scope in (1, 2, 3)]
    print(
        f"{given.vectors} vectors; CPU per search and recall@10 in scopes of {sizes};"
        f" load {os.getloadavg()[0]:.1f}",
        flush=True,
    )
    exact = numpy_floor(vectors, scopes, folder)
    try:
        measure("numpy (floor)", exact, exact, asked, time.process_time)
        for name, make in (
            ("LanceDB", lance),
            ("Qdrant (local)", qdrant),
            ("sqlite-vec", sqlite_vec),
            ("Chroma", chroma),
        ):
            if given.only not in (None, name):
                continue
            try:
                started = time.process_time()
                search = make(vectors, scopes, folder)
                print(
                    f"{name:30} loaded in {time.process_time() - started:.0f} s of CPU", flush=True
                )
                measure(name, search, exact, asked, time.process_time)
            except ImportError as error:
                print(f"{name:30} is not here: {error}")
        try:
            if given.only not in (None, "pgvector"):
                return 0
            with postgres(folder) as conn:
                pid = conn.info.backend_pid
                ticks = os.sysconf("SC_CLK_TCK")

                def spent() -> float:
                    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
                    return (int(fields[11]) + int(fields[12])) / ticks + time.process_time()

                for name, search in pgvector(conn, vectors, scopes).items():
                    measure(name, search, exact, asked, spent)
        except ImportError as error:
            print(f"pgvector is not here: {error}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
