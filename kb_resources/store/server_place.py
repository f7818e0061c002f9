"""Where the embedded server's files lie, and the small file in the home that remembers it.

Normally `<home>/postgres`. When we are root and the server's account cannot enter the home, the
files go under `/var/lib`, because the mode of a parent folder is never changed. The socket lies
beside the data unless its path is too long for the kernel (sun_path: 108 bytes on Linux, 104 on
macOS, https://man7.org/linux/man-pages/man7/unix.7.html) or holds a character that libpq reads as
a list. Belongs here: deciding and remembering. What does not: starting anything.
"""

from __future__ import annotations

import json
import os
import secrets
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from kb_resources.errors import UnavailableError
from kb_resources.store.server_account import Account

PORT = "5432"
_FILE = "postgres.json"
_INSIDE = "postgres"
_SOCKET_PATH_MAX_BYTES = 103


@dataclass(frozen=True, slots=True)
class Place:
    """The server's folders.

    Attributes:
        root: its own folder, mode 0700, owned by its account.
        socket_dir: folder of the socket, mode 0700, owned by its account.
        account: login name of its account.
    """

    root: Path
    socket_dir: Path
    account: str

    @property
    def connection(self) -> dict[str, str]:
        """Parameters that lead to the socket.

        Anybody may make a folder in /tmp after a reboot emptied it, so for a socket there libpq
        also checks which account answers.
        """
        inside = self.socket_dir.is_relative_to(self.root)
        peer = {} if inside else {"requirepeer": self.account}
        return {"host": str(self.socket_dir), "port": PORT, **peer}

    @property
    def data(self) -> Path:
        """PostgreSQL's data folder."""
        return self.root / "data"

    @property
    def boot_log(self) -> Path:
        """What the server says until its log collector takes over."""
        return self.root / "boot.log"

    @property
    def log_dir(self) -> Path:
        """The server's running log, one file per weekday."""
        return self.data / "log"


def recall(home: Path) -> Place | None:
    """The place that an earlier start chose, or None.

    Raises:
        UnavailableError: the file that remembers it is damaged or not ours to read.
    """
    file = home / _FILE
    try:
        stored = json.loads(file.read_text("utf-8"))
        return Place(home / stored["root"], home / stored["socket_dir"], str(stored["account"]))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UnavailableError(
            f"{file} cannot be read: {error.strerror}.",
            next_step="Use the account that owns this KB_HOME, or another KB_HOME.",
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise UnavailableError(
            f"{file} is damaged, so the server's data cannot be found.",
            next_step="Write into it as JSON: root (`postgres`, or the folder under /var/lib that "
            "holds the data), socket_dir (root/run) and account (who owns them).",
        ) from error


def settle(home: Path, account: Account, state_root: Path) -> Place:
    """Make the folders where they are missing, and remember them. Call it under the lock.

    Args:
        home: folder of all local data; exists.
        account: who the server runs as.
        state_root: where the files go when the account cannot enter the home.

    Raises:
        UnavailableError: a folder belongs to somebody else.
        OSError: a folder cannot be made.
    """
    known = recall(home)
    root = known.root if known else _choose_root(home, account, state_root)
    if not root.exists():
        account.make_private(root)
    _require_owner(root, account)
    socket_dir = known.socket_dir if known else root / "run"
    if not _fits(socket_dir):
        socket_dir = _short_folder(account)
    elif not os.path.lexists(socket_dir):
        account.make_private(socket_dir)
    if not _is_private(socket_dir, account):
        socket_dir = _short_folder(account)
    place = Place(root, socket_dir, account.name)
    if place != known:
        _remember(home, place)
    return place


def forget(home: Path) -> None:
    """Remove the file that remembers the place."""
    (home / _FILE).unlink(missing_ok=True)


def _choose_root(home: Path, account: Account, state_root: Path) -> Path:
    if account.can("execute", home):
        return home / _INSIDE
    # The name is random: a home that was deleted and made anew must not inherit old data.
    return state_root / f"kb-{os.geteuid()}-{secrets.token_hex(6)}"


def _require_owner(root: Path, account: Account) -> None:
    if root.stat().st_uid != account.uid:
        raise UnavailableError(
            f"{root} does not belong to {account.name}, who would run the server.",
            next_step="Use the account that owns it, or another KB_HOME.",
        )


def _fits(socket_dir: Path) -> bool:
    name = os.fsencode(socket_dir / f".s.PGSQL.{PORT}")
    text = str(socket_dir)
    return len(name) <= _SOCKET_PATH_MAX_BYTES and text.isprintable() and "," not in text


def _short_folder(account: Account) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="kb-", dir="/tmp"))  # 0700, random name
    if account.switch:
        os.chown(folder, account.uid, account.gid)
    return folder


def _is_private(folder: Path, account: Account) -> bool:
    found = folder.lstat()
    mode_ok = stat.S_ISDIR(found.st_mode) and not stat.S_IMODE(found.st_mode) & 0o077
    return mode_ok and found.st_uid == account.uid


def _remember(home: Path, place: Place) -> None:
    def text(path: Path) -> str:
        return str(path.relative_to(home) if path.is_relative_to(home) else path)

    stored = {
        "root": text(place.root),
        "socket_dir": text(place.socket_dir),
        "account": place.account,
    }
    fresh = home / f"{_FILE}.new"
    with fresh.open("w", encoding="utf-8") as out:
        json.dump(stored, out)
        out.flush()
        os.fsync(out.fileno())
    fresh.replace(home / _FILE)
