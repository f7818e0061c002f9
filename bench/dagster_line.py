"""What Dagster costs the line: CPU and storage a document, and loading the code location.

Usage: python bench/dagster_line.py [DOCUMENTS] (default 200). CPU seconds
of this process and, apart, of the embedded server; ratios and differences in one run, since
machines are shared. The plain line and the batch see the same texts, in two scopes.
"""

from __future__ import annotations

import logging
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import psutil
import psycopg

ROOT = Path(__file__).parents[1]
TEXT = """# Workshop {n}

The workshop in hall {n} opens at seven. Machines are checked every morning, and whoever finds a
fault writes it into the book beside the door before anything is switched on.

## Materials

Timber is kept in bay {n}, dry and off the floor. Offcuts longer than {m} centimetres go back to it.
"""


def cpu(pid: int) -> float:
    """CPU seconds of a process and its ended children so far."""
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system + times.children_user + times.children_system


def spent(work: Callable[[], object], server_pid: int) -> tuple[float, float]:
    """CPU seconds of this process (children included) and of the server during `work`."""
    own, server = cpu(os.getpid()), cpu(server_pid)
    work()
    time.sleep(1.0)  # backends that end are added to the server's children
    return cpu(os.getpid()) - own, cpu(server_pid) - server


def storage_bytes(dsn: str) -> int:
    """Size of Dagster's database, indexes and all, after a vacuum."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("vacuum full")
        row = conn.execute("select pg_database_size(current_database())").fetchone()
    return int(row[0]) if row else 0


def load_location() -> float:
    """CPU seconds of a fresh process that loads the code location."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    code = (
        "import dagster as dg, sys\nfrom kb_assets.definitions import defs\n"
        "defs.get_repository_def()\n"
        "heavy = {'docling', 'onnxruntime', 'pandas', 'polars'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, cwd=ROOT)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure_line(count: int, home: Path) -> None:
    """CPU and storage of a batch, beside the same stages without Dagster."""
    import dagster as dg

    from kb_assets.environment import child_environment, prepare_home
    from kb_assets.jobs import run_batch
    from kb_resources.compose import embedded_server, open_line
    from kb_resources.model import DocumentKey, Source, SourceKind
    from kb_resources.settings import load_settings
    from kb_resources.stages.request import IngestRequest

    settings = load_settings()
    prepare_home(settings)
    os.environ.update(child_environment(settings))
    server = embedded_server(settings)
    server_pid = server.status().pid
    if server_pid is None:
        sys.exit("the embedded server does not run")
    logging.disable(logging.CRITICAL)

    def write(scope: str, documents: int) -> list[IngestRequest]:
        folder = home / "sources" / scope
        folder.mkdir(parents=True)
        made = []
        for n in range(documents):
            path = folder / f"workshop-{n}.md"
            path.write_text(TEXT.format(n=n, m=n + 20))
            made.append(IngestRequest(scope, Source(SourceKind.FILE, str(path), path.name)))
        return made

    with open_line(settings) as line, dg.DagsterInstance.get() as instance:

        def plain(keys: list[DocumentKey]) -> None:
            line.run_all(keys)

        def batch(keys: list[DocumentKey]) -> None:
            batch_id = line.new_batch(keys, actor="bench", cause="bench")
            result = run_batch(instance, {"batch_id": batch_id}, {})
            if not result.success:
                sys.exit("the batch failed")

        register = line.register_many
        plain(register(write("warm-plain", 3)))
        warm = register(write("warm-batch", 3))
        first = spent(lambda: batch(warm), server_pid)
        keys_plain, keys_batch = register(write("plain", count)), register(write("batch", count))
        own_plain, server_plain = spent(lambda: plain(keys_plain), server_pid)
        dsn = server.dsn("owner", "dagster")
        bytes_before = storage_bytes(dsn)
        own_batch, server_batch = spent(lambda: batch(keys_batch), server_pid)
        grown = storage_bytes(dsn) - bytes_before
        again = spent(lambda: batch(keys_batch), server_pid)
        unchanged = storage_bytes(dsn) - bytes_before - grown
        one = spent(lambda: batch(register(write("one", 1))), server_pid)
    print(f"{count} small documents, CPU seconds (own process / server)")
    print(f"  plain line              {own_plain:8.2f} / {server_plain:.2f}")
    print(f"  kb_batch                {own_batch:8.2f} / {server_batch:.2f}")
    over = (own_batch - own_plain) / count
    over_all = over + (server_batch - server_plain) / count
    print(
        f"  over plain, a document  {over:8.3f} own, {over_all:.3f} with the server (goal ≤ 0.15)"
    )
    print(f"  storage a document      {grown / count / 1024:8.1f} KB (goal ≤ 35)")
    print(f"  unchanged, a document   {again[0] / count:8.3f}, {unchanged / count:.0f} bytes")
    print(f"  first batch of 3        {first[0]:8.2f} / {first[1]:.2f} (imports, model)")
    print(f"  one document            {one[0]:8.2f} / {one[1]:.2f}")


def main() -> None:
    """Measure and print."""
    warnings.filterwarnings("ignore")
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print(f"code location loads in    {min(load_location() for _ in range(3)):.2f} (goal ≤ 6)")
    home = Path(tempfile.mkdtemp(prefix="kb-bench-"))
    home.chmod(0o711)
    os.environ |= {"KB_HOME": str(home / "home"), "DAGSTER_HOME": str(home / "dagster")}
    os.environ.setdefault("KB_MODELS_DIR", str(ROOT / ".kb" / "models"))
    try:
        measure_line(count, home)
    finally:
        from kb_resources.compose import embedded_server
        from kb_resources.settings import load_settings

        embedded_server(load_settings()).destroy()
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
