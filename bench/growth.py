"""What a document costs as the knowledge base grows: `python bench/growth.py --documents 10000`.

Small texts go through the line without Dagster, every gate on, in batches of 200, as `kb ingest`
takes them; vectors are hashed words, since a model's work does not depend on how many documents
there are. Printed by band: CPU seconds a document of this process and of the server, bytes in the
database, and CPU seconds of a search. Flat is within 20 % of the first thousand. Belongs here:
growth. What does not: peers (`ingest_peers.py`), a million vectors (`search_scale.py`).
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import psycopg
from ingest_peers import ROOT, server_cpu, text_of

from kb.reader import Reader
from kb_resources import embed
from kb_resources.compose import open_line, open_retriever
from kb_resources.model import Principal, Source, SourceKind
from kb_resources.settings import Settings
from kb_resources.stages.request import IngestRequest
from kb_resources.store.migrate import migrate
from kb_resources.store.pool import Database
from kb_resources.store.server import EmbeddedServer

BATCH = 200
SEARCHES = 40


def main() -> None:
    """Ingest, and print a row for each band."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--documents", type=int, default=10_000)
    reader.add_argument("--bands", type=int, default=10)
    reader.add_argument("--model", default="hashing")
    given = reader.parse_args()
    if given.model == "hashing":  # it has no weights to load
        embed.load = lambda folder, name, **_options: embed.open_model(folder, name)  # type: ignore
    with tempfile.TemporaryDirectory(prefix="kb-growth-", ignore_cleanup_errors=True) as made:
        top = Path(made)
        top.chmod(0o755)
        server = EmbeddedServer(top / "home")
        server.start()
        try:
            migrate(server.dsn("owner"))
            grow(top, server, given.documents, given.bands, given.model)
        finally:
            server.destroy()


def grow(top: Path, server: EmbeddedServer, documents: int, bands: int, model: str) -> None:
    """Fill one scope band by band."""
    settings = Settings(
        home=top / "kb",
        database_url=server.dsn("owner"),
        pipeline_database_url=server.dsn("pipeline"),
        app_database_url=server.dsn("app"),
        models_dir=ROOT / ".kb" / "models",
        model=model,
        embed_threads=1,
    )
    pid = server.status().pid or 0
    files = top / "files"
    files.mkdir()
    heads = ("documents", "process ms", "server ms", "of first", "KB each", "search ms")
    print("".join(f"{head:>12}" for head in heads))
    first = 0.0
    with open_line(settings, actor="bench") as line, Database.embedded(server) as database:
        asking = Reader(database, open_retriever(settings, database))
        for band in range(bands):
            numbers = range(band * documents // bands, (band + 1) * documents // bands)
            started, served = time.process_time(), server_cpu(pid)
            for start in range(numbers.start, numbers.stop, BATCH):
                requests = []
                for number in range(start, min(start + BATCH, numbers.stop)):
                    file = files / f"{number}.md"
                    file.write_text(text_of(number))
                    source = Source(SourceKind.FILE, str(file), file.name)
                    requests.append(IngestRequest(scope="bench", source=source, actor="bench"))
                line.run_all(line.register_many(requests))
            ours = (time.process_time() - started) / len(numbers) * 1000
            theirs = (server_cpu(pid) - served) / len(numbers) * 1000
            first = first or ours + theirs
            started, served = time.process_time(), server_cpu(pid)
            for number in range(SEARCHES):
                asking.search(
                    f"Where is the key of unit {number * numbers.stop // SEARCHES} kept?",
                    scope="bench", principal=Principal("bench"), k=10, mode="hybrid",
                    as_of=None, include_historical=False,
                )  # fmt: skip
            search = (time.process_time() - started + server_cpu(pid) - served) / SEARCHES * 1000
            with psycopg.connect(server.dsn("owner")) as conn:
                size = conn.execute("select pg_database_size(current_database())").fetchone()
            kept = int(size[0]) / numbers.stop / 1024 if size else 0
            print(
                f"{numbers.stop:>12}{ours:>12.1f}{theirs:>12.1f}{(ours + theirs) / first:>12.2f}"
                f"{kept:>12.1f}{search:>12.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
