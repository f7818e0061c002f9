"""Disks that run full under blobs, temporary files and the write-ahead log: real file systems.

Each fault ends with an error that says what to do; nothing half written is found; with room again
the same call finishes the work. The file systems are small tmpfs mounts, which root may make; where
it may not, these tests say so. See also `tests/unit/acquire/test_blobs.py` (RLIMIT_FSIZE) and
`tests/integration/test_server_places.py` (the server alone).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from kb import backing
from kb_resources.compose import open_line
from kb_resources.errors import UnavailableError
from kb_resources.model import DocumentKey, ParsedDocument, Refusal, Source, SourceKind
from kb_resources.parse import ParserPool
from kb_resources.stages.line import Line
from kb_resources.stages.request import IngestRequest
from kb_resources.store.migrate import migrate
from kb_resources.store.server import EmbeddedServer
from tests.integration.line.conftest import Bench

_WORD_FILE = Path(__file__).parents[1] / "integration" / "parse" / "data" / "travel.doc"


class Disk:
    """A small file system."""

    def __init__(self, path: Path, size: str) -> None:
        self.path = path
        self._ballast = path / "ballast"
        path.mkdir()
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0711", "kb-test", path],
            check=False,
            capture_output=True,
        )
        if mounted.returncode != 0:
            pytest.skip("mounting a small file system is not allowed here")

    def fill(self, spare_bytes: int = 0) -> None:
        with self._ballast.open("wb") as out:
            out.write(bytes(max(0, shutil.disk_usage(self.path).free - spare_bytes)))

    def make_room(self) -> None:
        self._ballast.unlink()

    def unmount(self) -> None:
        subprocess.run(["umount", self.path], check=True)


@pytest.fixture
def new_disk(open_folder: Path) -> Iterator[Callable[[str], Disk]]:
    """Makes disks of a size such as `4m`."""
    made: list[Disk] = []

    def make(size: str) -> Disk:
        made.append(Disk(open_folder / f"disk{len(made)}", size))
        return made[-1]

    yield make
    for disk in made:
        disk.unmount()


def memo(number: int, edition: int = 1) -> str:
    filler = " ".join(f"Item {n} of memo {number} is numbered {n * edition}." for n in range(200))
    return f"# Memo {number}\n\nMemo {number} in edition {edition} is about shelves.\n\n{filler}\n"


def registered(line: Line, folder: Path, texts: dict[str, str]) -> list[DocumentKey]:
    keys = []
    for name, text in texts.items():
        path = folder / name
        path.write_text(text)
        source = Source(SourceKind.FILE, str(path), name)
        keys.append(line.register(IngestRequest(scope="acme", source=source, actor="test")))
    return keys


def files_on(disk: Disk) -> set[str]:
    return {path.name for path in disk.path.rglob("*") if path.is_file()} - {"ballast"}


@pytest.mark.requirement("O-10")
def test_a_full_blob_disk_stops_the_line_and_leaves_what_was_found(
    bench: Bench, new_disk: Callable[[str], Disk]
) -> None:
    disk = new_disk("1m")
    settings = replace(bench.settings, blob_url=str(disk.path / "blobs"))
    with open_line(settings, actor="test") as line:
        [published] = registered(line, bench.folder, {"memo-0.md": memo(0)})
        line.run_all([published])
        before = files_on(disk)
        assert len(before) == 1
        disk.fill()
        keys = registered(line, bench.folder, {f"memo-{n}.md": memo(n, 2) for n in range(3)})
        with pytest.raises(UnavailableError) as caught:
            line.run_all(keys)
        assert "No space left" in caught.value.message
        assert caught.value.next_step
        assert caught.value.retryable
        assert files_on(disk) == before
        assert [row.state for row in line.rows(keys)] == ["indexed", "pending", "pending"]
        assert line.rows([published])[0].latest_version == 1
        assert any("edition 1" in text for text in bench.texts("Memo 0 about shelves"))
        disk.make_room()
        line.run_all(keys)
        assert [row.state for row in line.rows(keys)] == ["indexed"] * 3
        assert [row.latest_version for row in line.rows(keys)] == [2, 1, 1]
        assert len(files_on(disk)) == 4
        assert not any("edition 1" in text for text in bench.texts("Memo 0 about shelves"))


@pytest.mark.requirement("O-10")
def test_a_full_temporary_disk_costs_no_document_its_place(
    bench: Bench, new_disk: Callable[[str], Disk], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A converter needs temporary files. Its document is tried again; others don't notice."""
    assert shutil.which("antiword"), "run tools/system-packages, which installs antiword"
    disk = new_disk("1m")
    monkeypatch.setenv("TMPDIR", str(disk.path))
    disk.fill(4096)
    shutil.copy(_WORD_FILE, bench.folder / "travel.doc")
    bench.write("memo.md", memo(1))
    with open_line(bench.settings, actor="test") as line:
        keys = [line.register(bench.request(name)) for name in ("travel.doc", "memo.md")]
        with pytest.raises(UnavailableError) as caught:
            line.run_all(keys)
        assert "temporary" in caught.value.message
        assert caught.value.next_step
        assert "failed" not in [row.state for row in line.rows(keys)]
        assert files_on(disk) == set()
        disk.make_room()
        line.run_all(keys)
        # The Word file holds an instruction in hidden text, which antiword shows like any other.
        assert [row.state for row in line.rows(keys)] == ["blocked", "indexed"]
        assert files_on(disk) == set()


@pytest.mark.requirement("O-10")
def test_a_backup_without_room_is_none(
    bench: Bench, new_disk: Callable[[str], Disk], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        bench.ingest(f"memo-{number}.md", memo(number))
    disk = new_disk("1m")
    for place in ("the temporary folder", "the target"):
        with monkeypatch.context() as patch:
            target = bench.folder if place == "the temporary folder" else disk.path
            if place == "the temporary folder":
                patch.setattr("tempfile.tempdir", str(disk.path))
            disk.fill(4096)
            with pytest.raises(UnavailableError) as caught:
                backing.write(bench.settings, target / "kb.tar")
            assert caught.value.next_step, place
            assert files_on(disk) == set(), place
            assert not list(bench.folder.glob("*.tar*"))
            disk.make_room()


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.requirement("O-10")
def test_a_full_disk_under_the_write_ahead_log_costs_nothing_that_was_published(
    bench: Bench, new_disk: Callable[[str], Disk], new_server: Callable[..., EmbeddedServer]
) -> None:
    disk = new_disk("220m")
    server = new_server(disk.path / "home", settings={"shared_buffers": "16MB"})
    server.start()
    migrate(server.dsn("owner"))
    settings = replace(
        bench.settings,
        database_url=server.dsn("owner"),
        pipeline_database_url=server.dsn("pipeline"),
        app_database_url=server.dsn("app"),
    )
    with open_line(settings, actor="test") as line:
        registered(line, bench.folder, {"memo-0.md": memo(0)})
        with psycopg.connect(server.dsn("owner"), autocommit=True) as conn:
            conn.execute("checkpoint")
        keys = registered(line, bench.folder, {f"memo-{n}.md": memo(n) for n in range(120)})
        disk.fill(3 << 20)
        acknowledged: set[DocumentKey] = set()

        def fill_up() -> None:
            for start in range(0, len(keys), 5):
                done = line.run_all(keys[start : start + 5])
                acknowledged.update(k for k, end in done.items() if not isinstance(end, Exception))

        with pytest.raises(UnavailableError) as caught:
            fill_up()
        assert caught.value.next_step
        disk.make_room()
        server.start()  # where the write-ahead log found no space, the server is down
        states = {row.key: row.state for row in line.rows(keys)}
        assert {states[key] for key in acknowledged} <= {"indexed"}
        assert set(states.values()) <= {"indexed", "pending"}
        line.run_all(keys)
        assert {row.state for row in line.rows(keys)} == {"indexed"}
        print(f"{len(acknowledged)} of {len(keys)} were published before the disk was full")
        with psycopg.connect(server.dsn("owner")) as conn:
            current = conn.execute(
                "select count(*), count(distinct document_key) from kb.validity"
                " where upper_inf(known) and upper_inf(valid)"
            ).fetchone()
    assert current == (len(keys), len(keys))


@pytest.mark.requirement("O-12", "O-57")
def test_a_killed_converter_leaves_no_copy_of_its_document(
    new_disk: Callable[[str], Disk], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that fills the disk of temporary files costs its own document only."""
    disk = new_disk("4m")
    programs = tmp_path / "bin"
    programs.mkdir()
    greedy = programs / "soffice"
    greedy.write_text(
        f"#!{sys.executable}\n"
        "import os, signal\n"
        "try:\n"
        "    with open('filler', 'wb') as out:\n"
        "        while True:\n"
        "            out.write(bytes(1 << 16))\n"
        "except OSError:\n"
        "    os.kill(os.getppid(), signal.SIGKILL)\n"
    )
    greedy.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("TMPDIR", str(disk.path))
    with ParserPool() as pool:
        found = pool.parse(_WORD_FILE.read_bytes(), "application/msword", "travel.doc")
        assert isinstance(found, Refusal)
        assert files_on(disk) == set()
        read = pool.parse(memo(1).encode(), "text/markdown", "memo.md")
        assert isinstance(read, ParsedDocument)
