"""Searching over HTTP: what it adds to the retriever, and how it holds under load.

Run: `python bench/serve.py [--seconds N]`. It makes a temporary knowledge base of the examples (or
takes --home), starts `kb serve` as a process of its own and prints:

- added: p50 of a search over HTTP less p50 of the same search by the retriever, calls in turn;
- 1 searcher while files are ingested: p50 over the p50 of before;
- 8 searchers while files are ingested: p95 over the p95 of one searcher alone;
- 50 searchers: errors, and throughput over what the cores allow (cores / CPU seconds of server and
  database per search, the client's own share and that of strangers taken off).

Numbers are of this machine and moment; ratios are what to compare. On a machine that others use the
first and the last line say how much; latencies then measure the others too.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path

import psutil
import urllib3

from kb.client import KnowledgeBase
from kb_resources.settings import load_settings

ROOT = Path(__file__).parents[1]
QUESTIONS = (
    "How many days of annual leave do employees have?",
    "Wie lange ist die Kündigungsfrist?",
    "Who approves a purchase above the limit?",
    "What must be reported after an accident at work?",
    "Koliko traje godišnji odmor?",
    "How are visitors registered?",
    "remote work equipment",
    "Какъв е срокът за плащане?",
)


@dataclass
class Load:
    """Latencies in seconds and failures of many searchers."""

    seconds: list[float] = field(default_factory=list)
    failed: int = 0

    def percentile(self, share: float) -> float:
        """Seconds that a share of the searches stayed below."""
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


@dataclass(frozen=True)
class Server:
    """A running `kb serve`."""

    base: str
    key: str
    process: psutil.Process

    def search(self, pool: urllib3.PoolManager, question: str) -> bool:
        """Search; whether it was answered."""
        answer = pool.request(
            "POST",
            f"{self.base}/api/v1/search",
            body=json.dumps({"query": question, "scope": "bench"}).encode(),
            headers={"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"},
            retries=False,
        )
        return answer.status == 200

    def search_on(self, wire: HTTPConnection, question: str) -> None:
        """Search over a kept connection, with the least that a client costs."""
        wire.request(
            "POST",
            "/api/v1/search",
            json.dumps({"query": question, "scope": "bench"}),
            {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"},
        )
        answer = wire.getresponse()
        answer.read()
        if answer.status != 200:
            sys.exit(f"a search was answered {answer.status}")

    def upload(self, name: str, text: str) -> None:
        """Queue one document."""
        urllib3.request(
            "POST",
            f"{self.base}/api/v1/documents",
            fields={"file": (name, text.encode()), "scope": "bench", "audiences": ""},
            headers={"Authorization": f"Bearer {self.key}"},
        )

    def jobs(self) -> list[dict[str, object]]:
        """The newest jobs."""
        answer = urllib3.request(
            "GET",
            f"{self.base}/api/v1/jobs?limit=200",
            headers={"Authorization": f"Bearer {self.key}"},
        )
        return list(answer.json()["items"])


def kb(*arguments: str, home: Path) -> str:
    environment = os.environ | {"KB_HOME": str(home)}
    done = subprocess.run(
        [sys.executable, "-m", "kb.cli", *arguments],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout


@contextmanager
def serving(home: Path) -> Iterator[Server]:
    key = json.loads(
        kb(
            "keys",
            "create",
            "--name",
            "bench",
            "--role",
            "admin",
            "--all-scopes",
            "--json",
            home=home,
        )
    )["key"]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    log = (home / "serve.log").open("w")
    child = subprocess.Popen(
        [sys.executable, "-m", "kb.cli", "serve", "--port", port],
        env=os.environ | {"KB_HOME": str(home), "KB_LOG_LEVEL": "WARNING"},
        cwd=ROOT,
        stdout=log,
        stderr=log,
    )
    base = f"http://127.0.0.1:{port}"
    try:
        while True:
            with suppress(urllib3.exceptions.HTTPError):
                if urllib3.request("GET", f"{base}/ready", retries=False).status == 200:
                    break
            if child.poll() is not None:
                sys.exit(f"kb serve ended: {(home / 'serve.log').read_text()}")
            time.sleep(0.1)
        yield Server(base, key, psutil.Process(child.pid))
    finally:
        child.terminate()
        child.wait(30)
        log.close()


def load(server: Server, searchers: int, seconds: float) -> Load:
    """Searchers that ask one question after another."""
    found = Load()
    guard = threading.Lock()
    end = time.perf_counter() + seconds

    def ask(number: int) -> None:
        own: list[float] = []
        failed = 0
        with urllib3.PoolManager(timeout=120.0) as pool:
            while (started := time.perf_counter()) < end:
                question = QUESTIONS[(number + len(own)) % len(QUESTIONS)]
                try:
                    good = server.search(pool, question)
                except urllib3.exceptions.HTTPError:
                    good = False
                failed += not good
                own.append(time.perf_counter() - started)
        with guard:
            found.seconds += own
            found.failed += failed

    threads = [threading.Thread(target=ask, args=[number]) for number in range(searchers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@dataclass
class Compared:
    """The same searches by the retriever and over HTTP; wall seconds of each, CPU of all."""

    direct: list[float] = field(default_factory=list)
    over_http: list[float] = field(default_factory=list)
    direct_cpu: float = 0.0
    server_cpu: float = 0.0


def interleaved(server: Server, home: Path, rounds: int) -> Compared:
    """The same search by the retriever and over HTTP, in turn."""
    found = Compared()
    settings = load_settings({"KB_HOME": str(home), "KB_MODELS_DIR": _models()}, embed_threads=1)
    wire = HTTPConnection(server.base.removeprefix("http://"))
    with KnowledgeBase(settings) as reader, closing(wire):
        for number in range(rounds):
            question = QUESTIONS[number % len(QUESTIONS)]
            if number == len(QUESTIONS):  # the first of each has warmed both
                found.server_cpu = -server_cpu(server)
            started, cpu = time.perf_counter(), time.process_time()
            reader.search(question, scope="bench")
            between, cpu_between = time.perf_counter(), time.process_time()
            server.search_on(wire, question)
            if number >= len(QUESTIONS):
                found.direct.append(between - started)
                found.over_http.append(time.perf_counter() - between)
                found.direct_cpu += cpu_between - cpu
        found.server_cpu += server_cpu(server)
    return found


def database_cpu(home: Path) -> float:
    """CPU seconds so far of the embedded server and all its children, ended ones too."""
    [file] = (home / "postgres").rglob("postmaster.pid")
    pid = int(file.read_text().splitlines()[0])
    postmaster = psutil.Process(pid)
    total = 0.0
    for process in (postmaster, *postmaster.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system
    times = postmaster.cpu_times()
    return total + times.children_user + times.children_system


def machine_cpu() -> float:
    """CPU seconds so far of everybody on this machine."""
    times = psutil.cpu_times()
    return times.user + times.nice + times.system + times.irq + times.softirq


class Ours:
    """CPU seconds from now on, by who took them."""

    def __init__(self, server: Server, home: Path) -> None:
        self._server, self._home = server, home
        self._began = self._now()

    def _now(self) -> dict[str, float]:
        return {
            "wall": time.perf_counter(),
            "client": time.process_time(),
            "server": server_cpu(self._server),
            "database": database_cpu(self._home),
            "ingest": ingest_cpu(self._server),
            "everybody": machine_cpu(),
        }

    def _since(self, *names: str) -> float:
        now = self._now()
        return sum(now[name] - self._began[name] for name in names)

    def took(self) -> float:
        """Wall seconds."""
        return self._since("wall")

    def searching(self) -> float:
        """Of server and database."""
        return self._since("server", "database")

    def client(self) -> float:
        """Of this process."""
        return self._since("client")

    def strangers(self) -> float:
        """Of everybody else on this machine."""
        mine = self._since("client", "server", "database", "ingest")
        return max(0.0, self._since("everybody") - mine)

    def shares(self) -> str:
        """Cores taken by each, in words."""
        names = ("server", "database", "ingest", "client")
        parts = [f"{name} {self._since(name) / self.took():.2f}" for name in names]
        return ", ".join((*parts, f"strangers {self.strangers() / self.took():.2f}"))


def ingest_cpu(server: Server) -> float:
    """CPU seconds so far of the ingest process and its children."""
    total = 0.0
    for process in server.process.children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


def server_cpu(server: Server) -> float:
    times = server.process.cpu_times()
    return times.user + times.system


def note(number: int) -> str:
    """A document of about a page that is like no other."""
    parts = (
        f"## Part {number}.{part}\n\nInspection {number * 31 + part} of hall {part} found "
        f"{number + part} open items. The crew replaced valve {number}-{part} and logged "
        f"{(number * 7 + part) % 90} hours. Follow-up is due in week {(number + part) % 52}.\n"
        for part in range(12)
    )
    return "\n".join((f"# Site report {number}\n", *parts))


def ingesting(server: Server, stop: threading.Event) -> Callable[[], int]:
    """Keep the queue filled until told to stop; gives how many documents were done."""

    def feed() -> None:
        number = 0
        while not stop.is_set():
            waiting = sum(job["state"] in ("queued", "running") for job in server.jobs())
            for _ in range(max(0, 12 - waiting)):
                number += 1
                server.upload(f"site-{number}.md", note(number))
            stop.wait(1.0)

    thread = threading.Thread(target=feed)
    thread.start()

    def done() -> int:
        stop.set()
        thread.join()
        return sum(job["state"] == "done" for job in server.jobs())

    return done


def _models() -> str:
    return os.environ.get("KB_MODELS_DIR", "")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path, help="a knowledge base whose scope is `bench`")
    parser.add_argument("--seconds", type=float, default=20.0, help="length of each load")
    parser.add_argument("--rounds", type=int, default=200, help="searches of the first part")
    given = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="kb-bench-http-"))
    folder.chmod(0o711)
    home = given.home or folder / "home"
    try:
        if given.home is None:
            kb("ingest", "examples", "--scope", "bench", "--no-dagster", home=home)
        with serving(home) as server:
            measure(server, home, given.seconds, given.rounds)
    finally:
        if given.home is None:
            kb("db", "stop", home=home)
        shutil.rmtree(folder)


def measure(server: Server, home: Path, seconds: float, rounds: int) -> None:
    cores = len(os.sched_getaffinity(0))
    both = interleaved(server, home, rounds)
    d50, h50 = statistics.median(both.direct), statistics.median(both.over_http)
    print(f"retriever p50 {d50 * 1000:.1f} ms, over HTTP p50 {h50 * 1000:.1f} ms: ", end="")
    print(f"added {(h50 - d50) * 1000:.1f} ms")
    d5, h5 = (sorted(found)[len(found) // 20] for found in (both.direct, both.over_http))
    print(f"p5 {d5 * 1000:.1f} and {h5 * 1000:.1f} ms: added {(h5 - d5) * 1000:.1f} ms")
    each = [cpu * 1000 / len(both.direct) for cpu in (both.direct_cpu, both.server_cpu)]
    print(f"CPU in Python: retriever {each[0]:.1f} ms, server {each[1]:.1f} ms a search")

    alone = load(server, 1, seconds / 2)
    p95 = alone.percentile(0.95)
    print(f"1 searcher: p50 {alone.percentile(0.5) * 1000:.1f} ms, p95 {p95 * 1000:.1f} ms")

    done = ingesting(server, threading.Event())
    time.sleep(5)
    beside = load(server, 1, seconds / 2)
    i50, b50 = alone.percentile(0.5), beside.percentile(0.5)
    print(
        f"1 searcher while files are ingested: p50 {b50 * 1000:.1f} ms ({b50 / i50:.1f} × idle), "
        f"p95 {beside.percentile(0.95) * 1000:.1f} ms, {beside.failed} errors; "
        f"load average {os.getloadavg()[0]:.1f} on {cores} cores"
    )
    ours = Ours(server, home)
    busy = load(server, 8, seconds)
    shares = ours.shares()
    documents = done()
    b95 = busy.percentile(0.95)
    print(
        f"8 searchers with {documents} documents ingested: p50 "
        f"{busy.percentile(0.5) * 1000:.1f} ms, p95 {b95 * 1000:.1f} ms ({b95 / p95:.1f} × idle), "
        f"{busy.failed} errors; cores taken: {shares}"
    )
    while any(job["state"] in ("queued", "running") for job in server.jobs()):
        time.sleep(0.5)
    time.sleep(2)

    ours = Ours(server, home)
    many = load(server, 50, seconds)
    took, used, own, others = ours.took(), ours.searching(), ours.client(), ours.strangers()
    rate, each = len(many.seconds) / took, used / len(many.seconds)
    allowed = (cores - (own + others) / took) / each
    print(
        f"50 searchers: {many.failed} errors, {rate:.0f} searches/s, p95 "
        f"{many.percentile(0.95) * 1000:.0f} ms; {each * 1000:.1f} CPU-ms each (server and "
        f"database); of {cores} cores the client took {own / took:.2f} and strangers "
        f"{others / took:.2f}: {rate / allowed:.0%} of what is left allows"
    )


if __name__ == "__main__":
    main()
