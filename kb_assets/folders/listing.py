"""What lies in a watched folder, and which of it is settled.

Belongs here: names, sizes and times. What does not: contents. A file is settled once its size and
times have stood for a while; names that programs give to unfinished files never count. Times: the
later of mtime and ctime, since copying tools may set mtime back (inode(7)).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

PARTIAL_SUFFIXES = (
    ".part", ".partial", ".tmp", ".temp", ".crdownload", ".download", ".filepart", ".swp", ".lock",
)  # fmt: skip
MAPPING_NAME = "kb.yaml"
_IGNORED_NAMES = (MAPPING_NAME, "thumbs.db", "desktop.ini")


@dataclass(frozen=True, slots=True, order=True)
class Entry:
    """One file, ordered by when it last changed.

    Attributes:
        changed_ns: later of mtime and ctime, nanoseconds since the epoch, never in the future.
        relative: path below the folder with `/`.
        size_bytes: size.
        path: absolute path.
    """

    changed_ns: int
    relative: str
    size_bytes: int
    path: Path

    @property
    def mark(self) -> tuple[int, str]:
        """Place in the order of changes; a cursor up to here has seen this entry."""
        return (self.changed_ns, self.relative)


def is_partial(name: str) -> bool:
    """Whether programs give such a name to a file that is not finished, or to their own use."""
    low = name.lower()
    return (
        low.startswith((".", "~$", "~"))
        or low.endswith((*PARTIAL_SUFFIXES, "~"))
        or low in _IGNORED_NAMES
    )


def walk(root: Path, now_ns: int) -> Iterator[Entry]:
    """All finished-looking files below `root`; links and hidden folders are passed over.

    Names that are not valid UTF-8 are passed over too: no database text can hold them.
    """
    stack = [root]
    while stack:
        folder = stack.pop()
        try:
            with os.scandir(folder) as found:
                entries = list(found)
        except (FileNotFoundError, NotADirectoryError):
            continue  # taken away between two looks
        for entry in entries:
            if entry.is_symlink() or not _is_text(entry.name):
                continue
            if entry.is_dir(follow_symlinks=False):
                if not entry.name.startswith("."):
                    stack.append(Path(entry.path))
                continue
            if is_partial(entry.name) or not entry.is_file(follow_symlinks=False):
                continue
            try:
                stat = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            path = Path(entry.path)
            yield Entry(
                changed_ns=min(max(stat.st_mtime_ns, stat.st_ctime_ns), now_ns),
                relative=path.relative_to(root).as_posix(),
                size_bytes=stat.st_size,
                path=path,
            )


def settled(entries: Iterable[Entry], now_ns: int, settle_s: float) -> list[Entry]:
    """Entries that have not changed for `settle_s` seconds, oldest change first."""
    return sorted(e for e in entries if now_ns - e.changed_ns >= settle_s * 1e9)


def fingerprint(entries: Iterable[Entry]) -> str:
    """Short hash of names, sizes and times: the same while nothing changes."""
    state = hashlib.sha256()
    for entry in sorted(entries):
        state.update(f"{entry.relative}\0{entry.size_bytes}\0{entry.changed_ns}\n".encode())
    return state.hexdigest()[:16]


def _is_text(name: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in name)
