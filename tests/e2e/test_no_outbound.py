"""In the default configuration nothing is called: no endpoint, no hub, no name looked up."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

# Every Python process of the command writes down whom it asks for and connects to.
WATCH = """
import os, socket, sys
def seen(event, arguments):
    if event == "socket.getaddrinfo" or (
        event in ("socket.connect", "socket.sendto", "socket.bind")
        and arguments[0].family != socket.AF_UNIX
    ):
        line = f"{event} {arguments[1:]} {sys.argv}\\n"
        descriptor = os.open(os.environ["OUTBOUND"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(descriptor, line.encode())
        os.close(descriptor)
sys.addaudithook(seen)
open(os.environ["OUTBOUND"] + ".processes", "a").write("x")
"""


@pytest.mark.requirement("O-60", "P-08", "W-08", "P-82")
def test_an_ingest_and_a_search_connect_to_nothing(kb: Any, tmp_path: Path) -> None:
    """The commands' own processes are watched; the parsing child, which takes no variable of ours,
    is offered addresses that a listener here would see it fetch. A model for bodies and notes is
    named there too, and not turned on."""
    (tmp_path / "watch").mkdir()
    (tmp_path / "watch" / "sitecustomize.py").write_text(WATCH)
    log = tmp_path / "outbound"
    watched = {"PYTHONPATH": str(tmp_path / "watch"), "OUTBOUND": str(log)}
    with socket.create_server(("127.0.0.1", 0)) as bait:
        there = f"http://127.0.0.1:{bait.getsockname()[1]}"
        watched |= {"KB_GENERATE_URL": f"{there}/v1", "KB_GENERATE_MODEL": "tiny"}
        sources = tmp_path / "sources"
        sources.mkdir()
        (sources / "a.md").write_text(
            f"# Keys\n\nThe keys of the hall hang beside the green door. ![plan]({there}/p.png)\n"
        )
        (sources / "b.html").write_text(
            f"<html><head><link rel=stylesheet href='{there}/a.css'><script src='{there}/a.js'>"
            "</script></head><body><h1>Garden</h1><p>The garden gate is closed at night by the "
            f"porter.</p><img src='{there}/x.png'><iframe src='{there}/f'></iframe></body></html>"
        )
        done = kb("ingest", str(sources), "--scope", "acme", "--no-dagster", "--json", **watched)
        assert done.code == 0, done.err
        assert {row["state"] for row in done.lines} == {"indexed"}
        found = kb("search", "who closes the gate", "--scope", "acme", "--json", **watched)
        assert "porter" in found.out
        bait.setblocking(False)
        with pytest.raises(BlockingIOError):
            bait.accept()
    assert len(Path(f"{log}.processes").read_text()) == 2
    assert not log.exists(), log.read_text()


def test_the_watch_itself_sees_a_connection(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(WATCH)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = f"import socket; socket.create_connection(('127.0.0.1', {port})).close()"
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONPATH": str(tmp_path), "OUTBOUND": str(tmp_path / "log")},
            check=True,
        )
    assert "socket.connect" in (tmp_path / "log").read_text()
