"""The line's own figures: what a second run costs, and how fast `kb search` starts.

Usage: python bench/line.py [FOLDER…] (default: examples/, and `data/documents` of the folder that
KB_TEST_DATA names). For each folder, prints CPU seconds (user and system) of child processes and
the ratio of the second ingest to the first, apart from interpreter start; wall time is not
compared, since machines are shared. The database server's CPU is read from /proc and named apart.
Byte code is compiled before anything is measured, as an installation does with its first commands,
whatever PYTHONDONTWRITEBYTECODE says here. The floor is what the libraries cost that every command
needs: the interpreter, the command line's and the database's client.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[1]
KB = ("-m", "kb.cli")
QUERY = "How many days of annual leave does an employee have?"
GOAL = 0.02


def cpu_of(*command: str, home: str) -> float:
    """CPU seconds (user and system) of one command and its children."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=kept | {"KB_HOME": home, "KB_MODELS_DIR": str(ROOT / ".kb" / "models")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1, 4):
        sys.exit(f"{' '.join(command)} ended with {done.returncode}: {done.stderr[-800:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def least(*command: str, home: str, of: int = 5) -> float:
    """The least of some runs: what the command costs where nothing disturbs it."""
    return min(cpu_of(*command, home=home) for _ in range(of))


def server_cpu(home: str) -> float:
    """CPU seconds of the embedded server so far, ended backends included."""
    for process in psutil.process_iter(["cmdline"]):
        line = " ".join(process.info["cmdline"] or ())
        if "postgres" in line and f"-D {home}" in line.replace("=", " "):
            times = process.cpu_times()
            return times.user + times.system + times.children_user + times.children_system
    return 0.0


def show(name: str, value: float, goal: str = "") -> None:
    print(f"{name:52} {value:8.3f}  {goal}", flush=True)


def floors(home: str) -> float:
    """Print what starts cost by themselves; returns the interpreter's."""
    interpreter = least("-c", "pass", home=home)
    show("interpreter start", interpreter)
    for modules in ("psycopg", "psycopg, click", "psycopg, pydantic"):
        show(f"python -c 'import {modules}'", least("-c", f"import {modules}", home=home))
    return interpreter


def second_run(folder: Path, scope: str, home: str, interpreter: float) -> None:
    """Ingest a folder twice into a scope of its own and compare."""
    files = sum(path.is_file() for path in folder.rglob("*"))
    print(f"\n{folder} ({files} files)")
    ingest = (*KB, "ingest", str(folder), "--scope", scope, "--no-dagster", "--json")
    first = cpu_of(*ingest, home=home)
    between = server_cpu(home)
    second = least(*ingest, home=home, of=3)
    server = server_cpu(home) - between
    show("first ingest", first)
    show("second ingest", second)
    show("server during three second ingests", server)
    ratio = (second - interpreter) / (first - interpreter)
    show("second / first, apart from interpreter start", ratio, f"goal ≤ {GOAL}")


def main() -> None:
    """Measure and print."""
    folders = [Path(argument) for argument in sys.argv[1:]] or [ROOT / "examples"]
    if not sys.argv[1:] and (data := os.environ.get("KB_TEST_DATA")):
        folders.append(Path(data) / "data" / "documents")
    with tempfile.TemporaryDirectory(prefix="kb-bench-") as home:
        Path(home).chmod(0o711)
        cpu_of(*KB, "init", home=home)
        warm = (*KB, "ingest", str(ROOT / "examples" / "en"), "--scope", "warm", "--no-dagster")
        cpu_of(*warm, home=home)
        interpreter = floors(home)
        for number, folder in enumerate(folders):
            second_run(folder.resolve(), f"bench{number}", home, interpreter)
        search = (*KB, "search", QUERY, "--scope", "bench0", "--json")
        print()
        show("kb search, cold", least(*search, home=home), "goal ≤ 2.0")
        show("kb search --mode text, cold", least(*search, "--mode", "text", home=home))
        cpu_of(*KB, "db", "stop", home=home)


if __name__ == "__main__":
    main()
