"""What the line adds to parsing and embedding of documents: `python bench/mixed.py [--small N]`.

Files of all kinds are taken in three times: `bare` reads, parses, cuts and embeds them and does
nothing else; `line` is `kb ingest --no-dagster`; `batch` is a run of `kb_batch` with its events and
checks. They are those of `examples/` and, up to `--max-kb`, those of `data/documents/ok` of the
folder that KB_TEST_DATA names; with `--small`, texts of about 120 words instead. Printed are CPU
seconds (user and system) of this process, its children and the server, after all files were parsed
once and a document went each way; and the most memory that this process and any one child held.
Belongs here: shares of the whole. What does not: small texts beside peers (`ingest_peers.py`).
"""

from __future__ import annotations

import argparse
import logging
import os
import resource
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
from ingest_peers import server_cpu, text_of

ROOT = Path(__file__).parents[1]
GOAL = 0.25


def tree_cpu() -> float:
    """CPU seconds of this process and all that it started, ended ones included."""
    me = psutil.Process()
    total = 0.0
    for process in (me, *me.children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:  # ended meanwhile: counted with its parent
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def files(max_kb: int) -> list[tuple[Path, str]]:
    """Files and their names below their folder, without those that are there to be refused."""
    roots = [ROOT / "examples"]
    if os.environ.get("KB_TEST_DATA"):
        roots.append(Path(os.environ["KB_TEST_DATA"]) / "data" / "documents" / "ok")
    found = [(path, path.relative_to(root)) for root in roots for path in sorted(root.rglob("*"))]
    return [
        (path, name.as_posix())
        for path, name in found
        if path.is_file() and "special" not in name.parts and path.stat().st_size <= max_kb * 1024
    ]


def small_texts(folder: Path, count: int) -> list[tuple[Path, str]]:
    """Files of about 120 words and their names."""
    folder.mkdir()
    found = [(folder / f"{number}.md", f"{number}.md") for number in range(count)]
    for number, (path, _) in enumerate(found):
        path.write_text(text_of(number))
    return found


def bare(line: Any, sources: list[tuple[Path, str]]) -> None:
    """Read, parse, cut, embed."""
    from kb_resources.acquire import read_file
    from kb_resources.model import ParsedDocument
    from kb_resources.model.chunk import embedding_input
    from kb_resources.store.scopes import ScopeSettings

    caps = line.capabilities
    texts: list[str] = []
    for source, _ in sources:
        got = read_file(source)
        parsed = caps.parse(got.data, got.media_type, got.name)
        if isinstance(parsed, ParsedDocument):
            chunks = caps.chunk(parsed, "bench", ScopeSettings(), caps.versions.model_id)
            texts += [embedding_input(chunk.context, chunk.text) for chunk in chunks]
    caps.embedder().embed(list(dict.fromkeys(texts)), "passage")


def measure(sources: list[tuple[Path, str]], ways: list[str]) -> None:
    """Each way after the other, and their sums."""
    import dagster as dg

    from kb_assets.environment import child_environment, prepare_home
    from kb_assets.jobs import run_batch
    from kb_resources.compose import embedded_server, open_line
    from kb_resources.model import Source, SourceKind
    from kb_resources.settings import load_settings
    from kb_resources.stages.request import IngestRequest

    settings = load_settings()
    prepare_home(settings)
    os.environ.update(child_environment(settings))
    server = embedded_server(settings)
    pid = server.status().pid or 0
    logging.disable(logging.CRITICAL)
    spent: dict[str, tuple[float, float]] = {}
    with open_line(settings, actor="bench") as line, dg.DagsterInstance.get() as instance:

        def keys_of(scope: str, some: list[tuple[Path, str]]) -> Any:
            return line.register_many(
                [
                    IngestRequest(scope, Source(SourceKind.FILE, str(path), name))
                    for path, name in some
                ]
            )

        def batch(scope: str, some: list[tuple[Path, str]]) -> None:
            batch_id = line.new_batch(keys_of(scope, some), actor="bench", cause="bench")
            if not run_batch(instance, {"batch_id": batch_id}, {}).success:
                sys.exit("the batch failed")

        runs: dict[str, Callable[[str, list[tuple[Path, str]]], object]] = {
            "bare": lambda _scope, some: bare(line, some),
            "line": lambda scope, some: line.run_all(keys_of(scope, some)),
            "batch": batch,
        }
        bare(line, sources)  # parsers of all kinds are loaded, and the model
        for way in ways:
            runs[way](f"{way}-warm", sources[:1])
        for way in ways:
            own, served = tree_cpu(), server_cpu(pid)
            runs[way](way, sources)
            time.sleep(0.5)
            spent[way] = (tree_cpu() - own, server_cpu(pid) - served)
    count = len(sources)
    print(
        f"{count} documents, {sum(path.stat().st_size for path, _ in sources) / 2**20:.1f} MB; "
        "CPU seconds a document"
    )
    floor = sum(spent.get("bare", ()))
    for way, (own, served) in spent.items():
        over = f"{(own + served) / floor - 1:+7.1%} (goal {GOAL:+.0%})" if floor else ""
        print(f"  {way:<6}{own / count:8.4f} own {served / count:8.4f} server  {over}")
    mine = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"  most memory: {mine:.0f} MB here, {child:.0f} MB in one child")


def main() -> None:
    """Measure in a home of its own."""
    warnings.filterwarnings("ignore")
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--max-kb", type=int, default=100)
    reader.add_argument("--small", type=int, default=0, metavar="N")
    reader.add_argument("--ways", default="bare,line,batch")
    given = reader.parse_args()
    home = Path(tempfile.mkdtemp(prefix="kb-bench-"))
    home.chmod(0o711)
    os.environ |= {"KB_HOME": str(home / "home"), "DAGSTER_HOME": str(home / "dagster")}
    os.environ.setdefault("KB_MODELS_DIR", str(ROOT / ".kb" / "models"))
    try:
        sources = small_texts(home / "texts", given.small) if given.small else files(given.max_kb)
        measure(sources, given.ways.split(","))
    finally:
        from kb_resources.compose import embedded_server
        from kb_resources.settings import load_settings

        embedded_server(load_settings()).destroy()
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
