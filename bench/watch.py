"""One tick of the sensor over 5,000 watched addresses, one in a hundred changed.

Usage: python -P bench/watch.py [PAGES]. Prints the tick's CPU seconds: this process, its parsing
children and the database server apart. The site runs in a process of its own and is not counted.
Target: at most 20 s, a run for the changed pages alone.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[1]
CHANGED_EVERY = 100
_SITE = """
import http.server, sys
PAGE = ("<html><head><title>Rule {0}</title></head><body><nav><a href='/'>Home</a></nav>"
        "<h1>Rule {0}</h1>" + "".join(f"<p>Paragraph {n} of rule {{0}} says what is allowed.</p>"
        for n in range(40)) + "</body></html>")
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        name = self.path[1:]
        if not name.isdigit():
            self.send_response(404); self.send_header("Content-Length", "0"); self.end_headers()
            return
        tag = '"new"' if int(name) % %d == 0 else '"old"'
        if self.headers.get("If-None-Match") == tag:
            self.send_response(304); self.send_header("ETag", tag); self.end_headers()
            return
        body = PAGE.format(name).encode()
        self.send_response(200); self.send_header("ETag", tag)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body))); self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
"""


@contextmanager
def site() -> Iterator[str]:
    """A running site; gives its host and port."""
    code = _SITE.replace("%d", str(CHANGED_EVERY))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            yield f"127.0.0.1:{child.stdout.readline().strip()}"
        finally:
            child.terminate()


def own_cpu() -> float:
    spent = resource.getrusage(resource.RUSAGE_SELF)
    living = 0.0
    for child in psutil.Process().children(recursive=True):
        if "-c" not in child.cmdline()[:2]:
            times = child.cpu_times()
            living += times.user + times.system + times.children_user + times.children_system
    return spent.ru_utime + spent.ru_stime + living


def database_cpu(pid: int) -> float:
    """Of the postmaster with its ended backends, and of the living ones."""
    server = psutil.Process(pid)
    total = 0.0
    for process in [server, *server.children(recursive=True)]:
        times = process.cpu_times()
        total += times.user + times.system
    times = server.cpu_times()
    return total + times.children_user + times.children_system


def main() -> None:
    """Measure and print."""
    import dagster as dg

    from kb_assets.watch import default_options, watch_sensor
    from kb_resources.compose import embedded_server, fetch_policy, open_line
    from kb_resources.settings import load_settings
    from kb_resources.stages import watch

    pages = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    with tempfile.TemporaryDirectory(prefix="kb-bench-") as home, site() as authority:
        Path(home).chmod(0o711)
        os.environ |= {
            "KB_HOME": home,
            "KB_MODELS_DIR": os.environ.get("KB_MODELS_DIR", str(ROOT / ".kb" / "models")),
            "KB_FETCH_ALLOW_HOSTS": authority,
            "KB_FETCH_DELAY_S": "0",
        }
        settings = load_settings()
        server = embedded_server(settings)
        try:
            with open_line(settings) as line, dg.DagsterInstance.ephemeral() as instance:
                row = watch.add(
                    line.capabilities.database,
                    watch.WatchRequest("bench", f"http://{authority}/map.xml", expand="sitemap"),
                    policy=fetch_policy(settings),
                    languages=settings.languages,
                    now=datetime.now(UTC),
                )
                with line.capabilities.database.transaction("pipeline") as conn:
                    # As a look before would have left them; the sitemap itself is not due.
                    conn.execute(
                        "insert into kb.watched_page (watch_id, scope_id, url, host, state, "
                        "final_url, etag, digest, text_digest, next_check_at) "
                        "select %(watch)s, scope_id, u, %(site)s, 'current', u, '\"old\"', h, h, "
                        "now() from kb.watch, generate_series(1, %(pages)s) n, "
                        "lateral (select %(site)s || '/' || n as u, repeat('0', 64) as h) x "
                        "where watch_id = %(watch)s",
                        {"watch": row.watch_id, "site": f"http://{authority}", "pages": pages},
                    )
                    conn.execute("update kb.watch set next_check_at = now() + interval '1 day'")
                sensor = watch_sensor(lambda: replace(default_options(), seconds=250.0))
                pid = int((server.status().data_dir / "postmaster.pid").read_text().split()[0])
                before, database_before = own_cpu(), database_cpu(pid)
                started = time.perf_counter()
                with dg.build_sensor_context(
                    instance=instance, resources={"line": line}
                ) as context:
                    result = sensor(context)
                wall = time.perf_counter() - started
                own, database = own_cpu() - before, database_cpu(pid) - database_before
                requests = list(getattr(result, "run_requests", None) or ())
                asked_for = sum(len(line.batch(r.run_config["batch_id"])) for r in requests)
                print(f"{pages} watched addresses, {pages // CHANGED_EVERY} changed")
                spent = own + database
                print(f"  CPU {spent:.1f} s: tick and parser {own:.1f}, database {database:.1f}")
                print(f"  {spent / pages * 1000:.2f} ms an address; wall {wall:.0f} s")
                print(f"  {len(requests)} run(s) asked for, over {asked_for} documents")
        finally:
            server.destroy()


if __name__ == "__main__":
    main()
