"""Ingesting small texts beside peers: `python bench/ingest_peers.py --peer llama_index=PYTHON …`.

The same folder of Markdown files is taken in four times: new, with nothing changed, with one file
of a hundred changed, with one more paragraph in each. Ours is the line without Dagster with every
gate on (detection, scan, BM25, row level security); LlamaIndex (IngestionPipeline with its
document store, PGVectorStore), Haystack (splitter, DocumentWriter, PgvectorDocumentStore) and
CocoIndex (memoised functions, its Postgres target) do what their own guides show: split, embed,
write. All of them are handed our embedder with the same weights, so that it is the work around the
model that differs, and databases of one server; with `--runner`, they embed by FastEmbed, from an
ONNX file of those weights (`peer_runner.py`), as their guides have it, and what is compared is
whole systems. `bare` embeds the texts and does nothing else: the floor.

Each step is a process of its own. Printed are CPU seconds (user and system) of the process, its
children and the server; `start` is the same step over an empty folder. Wall time is not compared.
A peer is named with the Python of its own environment, where onnxruntime 1.32, tokenizers, numpy
and fastembed are installed too (the last also where the model runs alone: `--bare PYTHON`); none is
a dependency of ours. Belongs here: work per document. What does not: search (`search_peers.py`),
growth (`growth.py`).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TOKENS, DIM = 400, 384
_RUNNER = "KB_BENCH_RUNNER"
STEPS = ("start", "new", "unchanged", "1 % changed", "one more par.")
THINGS = ("permit", "invoice", "locker", "badge", "laptop", "meeting room", "parcel", "key")


PARAGRAPH = "\nWhoever finds a parcel at the door brings it to the desk on the ground floor.\n"


def text_of(number: int, edition: int = 1) -> str:
    """About 120 words that no other file has: a passage or two."""
    lines = [
        f"The {THINGS[(number + n) % 8]} of unit {number} has the number "
        f"{number * 31 + n * edition} and is kept on floor {(number + n) % 9}; ask desk {n} for it "
        "before noon."
        for n in range(6)
    ]
    return (
        f"# Unit {number}\n\nNotes on unit {number}, edition {edition}.\n\n"
        + "\n\n".join(lines)
        + "\n"
    )


def embedder() -> Any:
    """Our model, on one thread, checked as always; or the runner that the peers bring."""
    if folder := os.environ.get(_RUNNER):
        from peer_runner import FastEmbed

        return FastEmbed(Path(folder))
    from kb_resources import embed

    return embed.load(ROOT / ".kb" / "models", embed.DEFAULT_MODEL, threads=1)


def bare(folder: Path, _dsn: str, _state: Path) -> None:
    """Read and embed."""
    texts = [file.read_text() for file in sorted(folder.glob("*.md"))]
    if texts:
        embedder().embed(texts, "passage")


def ours(folder: Path, dsn: str, state: Path) -> None:
    """The command, without Dagster."""
    if not any(folder.glob("*.md")):
        folder = ROOT / "bench" / "nothing"
    home = {
        "KB_HOME": str(state),
        "KB_DATABASE_URL": dsn,
        "KB_MODELS_DIR": str(ROOT / ".kb/models"),
    }
    subprocess.run(
        [sys.executable, "-m", "kb.cli", "ingest", str(folder), "--scope", "bench", "--no-dagster"],
        env=os.environ | home | {"KB_EMBED_THREADS": "1"},
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=folder.exists(),
    )


def llama_index(folder: Path, dsn: str, state: Path) -> None:
    """IngestionPipeline with upserts, its docstore kept beside."""
    from llama_index.core import Document
    from llama_index.core.embeddings import BaseEmbedding
    from llama_index.core.ingestion import IngestionPipeline
    from llama_index.core.node_parser import SentenceSplitter
    from llama_index.core.storage.docstore import SimpleDocumentStore
    from llama_index.vector_stores.postgres import PGVectorStore

    class Ours(BaseEmbedding):
        _loaded: Any = None

        def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
            if self._loaded is None:
                self._loaded = embedder()
            rows: list[list[float]] = self._loaded.embed(texts, "passage").tolist()
            return rows

        def _get_text_embedding(self, text: str) -> list[float]:
            return self._get_text_embeddings([text])[0]

        _get_query_embedding = _get_text_embedding

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return self._get_text_embedding(query)

    host, name = parts(dsn)
    store = PGVectorStore.from_params(
        connection_string=f"postgresql+psycopg2://{name}?host={host}",
        async_connection_string=f"postgresql+asyncpg://{name}?host={host}",
        table_name="bench",
        embed_dim=DIM,
    )
    kept = state / "docstore.json"
    docstore = (
        SimpleDocumentStore.from_persist_path(str(kept)) if kept.exists() else SimpleDocumentStore()
    )
    pipeline = IngestionPipeline(
        transformations=[
            SentenceSplitter(chunk_size=TOKENS, chunk_overlap=0, tokenizer=str.split),
            Ours(embed_batch_size=128),
        ],
        vector_store=store,
        docstore=docstore,
        disable_cache=True,
    )
    pipeline.run(
        documents=[
            Document(text=file.read_text(), id_=file.name) for file in sorted(folder.glob("*.md"))
        ]
    )
    docstore.persist(str(kept))


def haystack(folder: Path, dsn: str, _state: Path) -> None:
    """Splitter, embedder and writer; ids come from the content, and known ones are skipped."""
    from haystack import Document
    from haystack.components.preprocessors import DocumentSplitter
    from haystack.components.writers import DocumentWriter
    from haystack.document_stores.types import DuplicatePolicy
    from haystack.utils import Secret
    from haystack_integrations.document_stores.pgvector import PgvectorDocumentStore

    host, name = parts(dsn)
    store = PgvectorDocumentStore(
        connection_string=Secret.from_token(f"postgresql://{name}?host={host}"),
        embedding_dimension=DIM,
        table_name="bench",
    )
    documents = [
        Document(content=file.read_text(), meta={"file": file.name})
        for file in sorted(folder.glob("*.md"))
    ]
    if not documents:
        store.count_documents()
        return
    # Its pipelines have no memory of their own; its guide is to leave out what the store has.
    known = {one.id for one in store.filter_documents()}
    splitter = DocumentSplitter(split_by="word", split_length=300)
    pieces = [one for one in splitter.run(documents=documents)["documents"] if one.id not in known]
    if pieces:
        rows = embedder().embed([str(one.content) for one in pieces], "passage").tolist()
        filled = [
            Document(id=one.id, content=one.content, meta=one.meta, embedding=row)
            for one, row in zip(pieces, rows, strict=True)
        ]
        DocumentWriter(document_store=store, policy=DuplicatePolicy.SKIP).run(documents=filled)


def cocoindex(folder: Path, dsn: str, state: Path) -> None:
    """An app of memoised functions with a managed table."""
    os.environ["COCOINDEX_DISABLE_USAGE_TRACKING"] = "1"
    os.environ["COCOINDEX_DB"] = str(state / "coco")
    from collections.abc import AsyncIterator
    from dataclasses import make_dataclass

    import asyncpg
    import cocoindex as coco
    import numpy as np
    from cocoindex.connectors import localfs, postgres
    from cocoindex.ops.text import RecursiveSplitter
    from cocoindex.resources.schema import VectorSchema
    from numpy.typing import NDArray

    host, name = parts(dsn)
    user, _, database = name.partition("@/")
    pool_key = coco.ContextKey[Any]("bench_pool")
    splitter = RecursiveSplitter()
    loaded: list[Any] = []

    # Not a class statement: it reads the types, which are not those of this module.
    columns = [("id", str), ("file", str), ("text", str), ("embedding", NDArray[np.float32])]
    row_type: Any = make_dataclass("Row", columns)

    @coco.lifespan
    async def lifespan(builder: coco.EnvironmentBuilder) -> AsyncIterator[None]:
        async with asyncpg.create_pool(host=host, user=user, database=database) as pool:
            builder.provide(pool_key, pool)
            yield

    @coco.fn(memo=True)
    async def one_file(file: Any, table: Any) -> None:
        text = await file.read_text()
        pieces = [piece.text for piece in splitter.split(text, chunk_size=2000, chunk_overlap=0)]
        if not loaded:
            loaded.append(embedder())
        path = str(file.file_path.path)
        for n, row in enumerate(loaded[0].embed(pieces, "passage")):
            table.declare_row(row=row_type(f"{path}:{n}", path, pieces[n], row))

    @coco.fn
    async def everything(sources: Path) -> None:
        vector = VectorSchema(dtype=np.dtype("float32"), size=DIM)
        schema = await postgres.TableSchema.from_class(
            row_type, primary_key=["id"], column_overrides={"embedding": vector}
        )
        table = await postgres.mount_table_target(pool_key, "bench_coco", schema)
        await coco.mount_each(one_file, localfs.walk_dir(sources).items(), table)

    coco.App(coco.AppConfig(name="bench"), everything, sources=folder).update_blocking()


SYSTEMS = {f.__name__: f for f in (bare, ours, llama_index, haystack, cocoindex)}


def parts(dsn: str) -> tuple[str, str]:
    """Socket folder, and `user@/database`."""
    values = dict(item.split("=", 1) for item in dsn.split())
    return values["host"].strip("'"), f"{values['user']}@/{values['dbname']}"


def server_cpu(pid: int) -> float:
    """CPU seconds of a server and its backends, ended ones included."""
    import psutil

    total = 0.0
    for process in (server := psutil.Process(pid), *server.children()):
        with contextlib.suppress(psutil.NoSuchProcess):  # ended meanwhile: counted below
            times = process.cpu_times()
            total += times.user + times.system
    ended = psutil.Process(pid).cpu_times()
    return total + float(ended.children_user + ended.children_system)


def step(
    python: str, name: str, folder: Path, dsn: str, state: Path, pid: int, model: Path | None
) -> tuple[float, float, float]:
    """CPU seconds of process and server, and the peak memory in MiB."""
    served = server_cpu(pid)
    with tempfile.TemporaryFile() as told:
        process = subprocess.Popen(
            [python, str(Path(__file__)), "--as", name, str(folder), dsn, str(state)],
            env={k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
            | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
            | ({_RUNNER: str(model)} if model and name != "ours" else {}),
            cwd="/",
            stdout=told,
            stderr=told,
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            told.seek(0)
            sys.exit(f"{name} ended with {process.returncode}: {told.read()[-1500:].decode()}")
    return used.ru_utime + used.ru_stime, server_cpu(pid) - served, used.ru_maxrss / 1024


def compare(count: int, pythons: dict[str, str], runner: str | None, *, first_only: bool) -> None:
    """Make the files, run every system, print a table; `first_only`: no step after `new`."""
    import psycopg
    from peer_runner import write_model

    from kb_resources.store.migrate import migrate
    from kb_resources.store.server import EmbeddedServer

    with tempfile.TemporaryDirectory(prefix="kb-bench-", ignore_cleanup_errors=True) as made:
        top = Path(made)
        top.chmod(0o755)
        model = top / "model" if runner else None
        if model and runner:
            # In a process of its own: a child's peak is never below what its parent had.
            with ProcessPoolExecutor(1) as apart:
                apart.submit(write_model, model, ROOT / ".kb" / "models", runner).result()
        server = EmbeddedServer(top / "home")
        server.start()
        pid = server.status().pid or 0
        print(f"{count} texts of about 120 words; CPU seconds: process + server")
        print(
            f"{'':12}{''.join(f'{head:>16}' for head in STEPS[: 2 if first_only else None])}"
            f"{'documents a net CPU s':>24}{'peak MiB':>12}"
        )
        try:
            for name, python in pythons.items():
                folder, empty, state = top / name, top / f"{name}-empty", top / f"{name}-state"
                for each in (folder, empty, state):
                    each.mkdir()
                with psycopg.connect(server.dsn("owner", "postgres"), autocommit=True) as conn:
                    conn.execute(f"create database bench_{name}")
                with psycopg.connect(server.dsn("owner", f"bench_{name}"), autocommit=True) as conn:
                    conn.execute("create extension if not exists vector")
                dsn = server.dsn("owner", f"bench_{name}")
                if name == "ours":
                    migrate(dsn)

                def run(what: Path) -> tuple[float, float, float]:
                    return step(python, name, what, dsn, state, pid, model)  # noqa: B023

                run(empty)  # byte code, tables
                start = run(empty)
                for number in range(count):
                    (folder / f"{number}.md").write_text(text_of(number))
                steps = [start, new := run(folder)]
                if not first_only:
                    steps.append(run(folder))
                    for number in range(0, count, 100):
                        (folder / f"{number}.md").write_text(text_of(number, 2))
                    steps.append(run(folder))
                    for number in range(count):
                        (folder / f"{number}.md").write_text(text_of(number) + PARAGRAPH)
                    steps.append(run(folder))
                cells = "".join(f"{a:9.2f} +{b:5.2f}" for a, b, _ in steps)
                net = sum(new[:2]) - sum(start[:2])
                print(f"{name:12}{cells}{count / net:24.1f}{new[2]:12.0f}", flush=True)
        finally:
            server.destroy()


def main() -> None:
    """Either run one system over a folder, or compare them."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--as", dest="system", nargs=4)
    reader.add_argument("--count", type=int, default=1000)
    reader.add_argument("--runner", choices=("float32", "int8"), help="FastEmbed for the peers")
    reader.add_argument("--first-only", action="store_true", help="nothing after the new texts")
    reader.add_argument("--bare", default=sys.executable, metavar="PYTHON")
    reader.add_argument("--peer", action="append", default=[], metavar="NAME=PYTHON")
    given = reader.parse_args()
    if given.system:
        name, folder, dsn, state = given.system
        SYSTEMS[name](Path(folder), dsn, Path(state))
        return
    named = dict(each.split("=", 1) for each in given.peer)
    pythons = {"bare": given.bare, "ours": sys.executable, **named}
    compare(given.count, pythons, given.runner, first_only=given.first_only)


if __name__ == "__main__":
    main()
