"""How the UI and a batch fare with very many documents, and what an idle installation costs.

Usage: python bench/dagster_partitions.py [FEW] [MANY] [BATCH] (default 1000, 100000 and 500).
Starts the real web server, daemon and code server on a home of its own, fills Dagster's storage
with synthetic partitions whose `kb/acquire` and `kb/index` are materialised, and asks over HTTP
what the pages ask. Wall seconds for pages (median of three), CPU seconds for the batch.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).parents[1]
ASSETS = ("acquire", "index")
IDLE_S = 60
PAGES = {
    "list, first 100": "partitionKeyConnection(limit: 100, ascending: true) { results }",
    "list, all": "partitionKeys",
    "numbers": "partitionStats { numMaterialized numPartitions numFailed }",
    "status of each": "assetPartitionStatuses { ... on DefaultPartitionStatuses "
    "{ materializedPartitions failedPartitions unmaterializedPartitions } }",
}


def ask(url: str, field: str) -> dict[str, Any]:
    """One GraphQL question about `kb/index`."""
    query = f"""{{ assetNodes(assetKeys: [{{path: ["kb", "index"]}}]) {{ {field} }} }}"""
    body = json.dumps({"query": query}).encode()
    request = urllib.request.Request(f"{url}/graphql", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=300) as answer:
        found = json.load(answer)
    if "errors" in found:
        sys.exit(f"the web server answered {found['errors']}")
    return dict(found["data"]["assetNodes"][0])


def pages(url: str) -> Iterator[tuple[str, float]]:
    """Each page's median of three, after a first one that fills the caches."""
    for name, field in PAGES.items():
        seconds = []
        for _ in range(4):
            started = time.perf_counter()
            ask(url, field)
            seconds.append(time.perf_counter() - started)
        yield name, statistics.median(seconds[1:])


def fill(instance: Any, start: int, end: int) -> None:
    """Add partitions and their materialisations, as a batch run would have left them."""
    import dagster as dg

    from kb_resources.bindings.events import Recorder
    from kb_resources.bindings.partitions import documents

    run = instance.create_run_for_job(dg.GraphDefinition(name="synthetic").to_job())
    recorder = Recorder(instance, run)
    for numbers in batched_range(start, end, 2_000):
        keys = [f"synthetic:workshop-{n:06d}" for n in numbers]
        instance.add_dynamic_partitions(documents.name, keys)
        for asset in ASSETS:
            recorder.materialized(
                [dg.AssetMaterialization(dg.AssetKey(["kb", asset]), partition=key) for key in keys]
            )


def batched_range(start: int, end: int, size: int) -> Iterator[range]:
    """A range in pieces."""
    for at in range(start, end, size):
        yield range(at, min(end, at + size))


def family() -> dict[str, psutil.Process]:
    """Supervised processes by what they are; the embedded server's are not among them."""
    found = {}
    for process in psutil.process_iter(["cmdline", "environ"]):
        line = " ".join(process.info["cmdline"] or ())
        if (process.info["environ"] or {}).get("KB_HOME") != os.environ["KB_HOME"]:
            continue
        for name, mark in (
            ("web server", "dagster_webserver"),
            ("daemon", "dagster._daemon"),
            ("code server", "code-server"),
            ("code process", "api grpc"),
        ):
            if mark in line:
                found[name] = process
    return found


def idle() -> Iterator[tuple[str, float]]:
    """Share of a core that each process uses while nothing happens."""
    processes = family()
    before = {name: sum(p.cpu_times()[:2]) for name, p in processes.items()}
    time.sleep(IDLE_S)
    for name, process in processes.items():
        yield name, (sum(process.cpu_times()[:2]) - before[name]) / IDLE_S


def batch(home: Path, scope: str, count: int) -> tuple[float, float]:
    """Wall and CPU seconds of `kb ingest` of new documents through Dagster."""
    from dagster_line import TEXT

    folder = home / "sources" / scope
    folder.mkdir(parents=True)
    for n in range(count):
        (folder / f"workshop-{n}.md").write_text(TEXT.format(n=n, m=n + 20))
    started, before = time.perf_counter(), os.times()
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "kb.cli", "ingest", str(folder), "--scope", scope],
        check=False,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        sys.exit(done.stderr[-2000:])
    after = os.times()
    spent = after.children_user + after.children_system
    return (
        time.perf_counter() - started,
        spent - before.children_user - before.children_system,
    )


def measure(url: str, home: Path, few: int, many: int, count: int) -> None:
    """Fill, ask, ingest; at few and at many partitions."""
    import dagster as dg

    rows: dict[str, list[float]] = {}
    with dg.DagsterInstance.get() as instance:
        start = 0
        for size in (few, many):
            fill(instance, start, size)
            start = size
            for name, value in pages(url):
                rows.setdefault(f"{name} (s)", []).append(value)
            wall, cpu = batch(home, f"scope{size}", count)
            rows.setdefault(f"batch of {count} (s)", []).append(wall)
            rows.setdefault(f"batch of {count} (CPU-s)", []).append(cpu)
            time.sleep(30)
            for name, value in idle():
                rows.setdefault(f"idle {name} (% of a core)", []).append(value * 100)
    print(f"{'partitions':34} {few:>10} {many:>10}")
    for name, values in rows.items():
        print(f"{name:34} " + " ".join(f"{value:10.2f}" for value in values))
    print("goal: daemon and code server together ≤ 10 % of a core")


def main() -> None:
    """Start, measure, stop, and leave nothing behind."""
    warnings.filterwarnings("ignore")
    few, many, count = [*map(int, sys.argv[1:4]), *(1_000, 100_000, 500)[len(sys.argv) - 1 :]]
    home = Path(tempfile.mkdtemp(prefix="kb-bench-"))
    home.chmod(0o711)
    for name in [name for name in os.environ if name.startswith(("KB_", "DAGSTER_"))]:
        del os.environ[name]
    os.environ |= {
        "KB_HOME": str(home / "home"),
        "KB_MODELS_DIR": str(ROOT / ".kb" / "models"),
        "PYTHONPATH": str(ROOT),
    }
    from kb_assets.environment import child_environment
    from kb_resources.compose import embedded_server
    from kb_resources.settings import load_settings

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    up = [sys.executable, "-W", "ignore", "-m", "kb_assets.up", "--port", str(port)]
    try:
        subprocess.run(up, check=True, cwd=ROOT)
        os.environ.update(child_environment(load_settings()))
        measure(f"http://127.0.0.1:{port}", home, few, many, count)
    finally:
        subprocess.run([*up, "--stop"], check=False, cwd=ROOT)
        embedded_server(load_settings()).destroy()
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
