"""Bytes of a local file or an upload, admitted or refused with a reason.

Belongs here: reading under limits, and everything that is decided before a parser runs. Storing the
bytes is `blobs.py`'s, URLs are their own module's. A file is read only while it holds still, see
https://man7.org/linux/man-pages/man2/stat.2.html.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from kb_resources.acquire.sniff import UNKNOWN, ZIP_HEADS, sniff
from kb_resources.acquire.zips import check_zip
from kb_resources.errors import ConflictError, InputError, UnavailableError
from kb_resources.model import DocumentState, Refusal

MAX_BYTES = 50 * 1024 * 1024
CLOCK_NS = 20_000_000
"""Two writes nearer to each other may leave one time: Linux stamps files by a clock that ticks
every 4 to 10 ms (`ktime_get_coarse_real_ts64`)."""
_CHUNK = 1 << 20
_PROGRAMS = ("application/x-", "application/wasm", "text/x-script")
_UNREADABLE = {
    "application/zip": "a zip archive; unpack it and add the files",
    "application/gzip": "a gzip archive; unpack it and add the files",
    "application/x-msdownload": "a Windows program, whatever its name says",
    "application/x-executable": "a program, whatever its name says",
    "application/wasm": "a program, whatever its name says",
    "text/x-script": "a script, whatever its name says",
    "application/x-ole-encrypted": "",
    UNKNOWN: "binary data of no known kind",
}


@dataclass(frozen=True, slots=True)
class Acquired:
    """Admitted bytes.

    Attributes:
        data: the content.
        digest: lowercase SHA-256 hex of `data`.
        size_bytes: length of `data`.
        media_type: sniffed from `data`.
        name: file name without folders.
    """

    data: bytes
    digest: str
    size_bytes: int
    media_type: str
    name: str


def read_file(path: Path | str, *, max_bytes: int = MAX_BYTES) -> Acquired | Refusal:
    """Read a local file and decide whether it is worth a parser.

    Args:
        path: the file; links are followed.
        max_bytes: largest size read.

    Returns:
        The bytes, or a Refusal: `empty`, `too_large`, `unsupported`, `encrypted`, `corrupt`, or
        `failed` for a file that exists and may not be read.

    Raises:
        InputError: there is no such file, or it is no regular file.
        ConflictError: it changed while it was read; read it again.
        UnavailableError: the disk or file system failed.
    """
    path = Path(path)
    try:
        with os.fdopen(_open_without_waiting(path), "rb", buffering=0) as file:
            before = os.fstat(file.fileno())
            if not stat.S_ISREG(before.st_mode):
                raise InputError(f"{path} is not a regular file.", next_step="Name a file.")
            if _just_written(before):  # else a further write might leave the same time
                time.sleep(CLOCK_NS / 1e9)
                before = os.fstat(file.fileno())
            still_written = _just_written(before)
            if before.st_size > max_bytes:
                return _too_large(before.st_size, max_bytes)
            data = _read_all(file, max_bytes)
            after = os.fstat(file.fileno())
    except OSError as error:
        return _os_refusal(path, error)
    if data is None:
        return _too_large(after.st_size, max_bytes)
    if still_written or _identity(before) != _identity(after) or len(data) != after.st_size:
        raise ConflictError(
            f"{path} changed while it was read.", next_step="Read it again once it is complete."
        )
    return admit(data, path.name, max_bytes=max_bytes)


def admit(data: bytes, name: str, *, max_bytes: int = MAX_BYTES) -> Acquired | Refusal:
    """Decide whether bytes are worth a parser: size, kind, container limits.

    Args:
        data: the content.
        name: file name without folders.
        max_bytes: largest size admitted.

    Returns:
        The bytes with digest and media type, or a Refusal as in `read_file`.
    """
    if not data:
        return Refusal(DocumentState.EMPTY, "The file is empty (0 bytes).")
    if len(data) > max_bytes:
        return _too_large(len(data), max_bytes)
    media_type = sniff(data, name)
    if media_type == "application/x-ole-encrypted":
        return Refusal(
            DocumentState.ENCRYPTED,
            "The Office file is protected by a password; save it without one.",
            {"media_type": media_type},
        )
    if data.startswith(ZIP_HEADS) and (refusal := check_zip(data)) is not None:
        return refusal
    if media_type in _UNREADABLE or media_type.startswith(_PROGRAMS):
        what = _UNREADABLE.get(media_type, f"of type {media_type}, which holds no text")
        return Refusal(
            DocumentState.UNSUPPORTED, f"The file is {what}.", {"media_type": media_type}
        )
    if not data.strip(b" \t\r\n\x0b\x0c\x00\xef\xbb\xbf"):
        return Refusal(DocumentState.EMPTY, "The file holds white space only.")
    digest = hashlib.sha256(data).hexdigest()
    return Acquired(data, digest, len(data), media_type, name)


def _open_without_waiting(path: Path) -> int:
    """Open so that a pipe without a writer does not block for ever."""
    return os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))


def _read_all(file: IO[bytes], max_bytes: int) -> bytes | None:
    """All bytes, or None when more than the limit come."""
    parts: list[bytes] = []
    size = 0
    while chunk := file.read(_CHUNK):
        parts.append(chunk)
        size += len(chunk)
        if size > max_bytes:
            return None
    return b"".join(parts)


def _just_written(status: os.stat_result) -> bool:
    return abs(time.time_ns() - status.st_mtime_ns) < CLOCK_NS


def _identity(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_ino, status.st_dev, status.st_size, status.st_mtime_ns


def _too_large(size: int, limit: int) -> Refusal:
    return Refusal(
        DocumentState.TOO_LARGE,
        f"The file has {size:,} bytes; at most {limit:,} are read. Split it or raise the limit.",
        {"size_bytes": size, "limit_bytes": limit},
    )


def _os_refusal(path: Path, error: OSError) -> Refusal:
    if error.errno in {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENXIO, errno.ENAMETOOLONG}:
        raise InputError(
            f"{path} cannot be opened: {error.strerror}.", next_step="Check the path."
        ) from error
    if error.errno in {errno.EACCES, errno.EPERM, errno.ELOOP}:
        return Refusal(
            DocumentState.FAILED,
            f"{path.name} may not be read ({error.strerror}); grant read access and try again.",
        )
    raise UnavailableError(
        f"{path} could not be read: {error.strerror or error}.",
        next_step="Check the disk or network share, then try again.",
    ) from error
