"""Zip containers measured before any parser opens them.

Belongs here: entry count, inflated size, names, overlaps, links, external entities in the parts
that every Office reader expands first. Telling which kind of document it is belongs to `sniff.py`.
Declared sizes are never trusted: every entry is inflated and counted, in constant memory. Only what
ISO/IEC 29500-2 and EPUB allow, stored and deflate, is opened: `zipfile` inflates bzip2 and LZMA by
the block of compressed bytes, whatever size of the content is asked for.
See D. Fifield, "A better zip bomb", https://www.bamsoftware.com/hacks/zipbomb/.
"""

from __future__ import annotations

import io
import stat
import zipfile
import zlib
from typing import IO

from kb_resources.model import DocumentState, Refusal

MAX_ENTRIES = 10_000
MAX_INFLATED_BYTES = 100 * 1024 * 1024
MAX_XML_BYTES = 64 * 1024 * 1024
_CHUNK = 1 << 16
_DIRECTORY_ENTRY = b"PK\x01\x02"
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_XML = (".xml", ".rels", ".xhtml", ".html", ".htm", ".opf", ".ncx")


def check_zip(
    data: bytes,
    *,
    max_entries: int = MAX_ENTRIES,
    max_inflated_bytes: int = MAX_INFLATED_BYTES,
) -> Refusal | None:
    """Measure a zip container.

    Args:
        data: the container.
        max_entries: most entries in its directory.
        max_inflated_bytes: most bytes of all entries together, counted while inflating.

    Returns:
        None when it is safe to open, else a Refusal (`too_large`, `corrupt`, `encrypted`).
    """
    if (entries := data.count(_DIRECTORY_ENTRY)) > max_entries:
        return _too_many(entries, max_entries)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return _check(archive, max_inflated_bytes)
    except (
        *(zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError),
        *(RuntimeError, MemoryError),
    ) as error:
        return Refusal(
            DocumentState.CORRUPT,
            f"The file's zip container is damaged ({_reason(error)}); get an intact copy.",
        )


def directory(data: bytes) -> zipfile.ZipFile | None:
    """A container's directory, read in bounded memory; None where it is lost or too long.

    Raises:
        Exception: of `zipfile`'s many, where the directory is damaged.
    """
    if data.count(_DIRECTORY_ENTRY) > MAX_ENTRIES:
        return None
    return zipfile.ZipFile(io.BytesIO(data))


def read_start(archive: zipfile.ZipFile, name: str, size: int) -> bytes:
    """The first `size` bytes of an entry, whatever its length; none of one that is not opened.

    Raises:
        Exception: of `zipfile`'s many, where the entry is damaged.
    """
    info = archive.getinfo(name)
    if info.compress_type not in _METHODS:
        return b""
    with archive.open(info) as part:
        return part.read(size)


def _too_many(entries: int, limit: int) -> Refusal:
    return Refusal(
        DocumentState.TOO_LARGE,
        f"The container holds {entries:,} entries; at most {limit:,} are read.",
        {"entries": entries, "limit": limit},
    )


def _check(archive: zipfile.ZipFile, max_inflated: int) -> Refusal | None:
    infos = archive.infolist()
    for info in infos:
        if problem := _entry_problem(info):
            return problem
    if _overlap(infos):
        return Refusal(
            DocumentState.CORRUPT,
            "Entries of the container share the same bytes, which no honest program writes.",
        )
    total = 0
    for info in infos:
        with archive.open(info) as part:
            size, problem = _measure(part, info.filename, max_inflated - total)
        if problem:
            return problem
        total += size
    return None


def _measure(part: IO[bytes], name: str, allowed: int) -> tuple[int, Refusal | None]:
    size, tail, is_xml = 0, b"", name.lower().endswith(_XML)
    while chunk := part.read(_CHUNK):
        size += len(chunk)
        if size > allowed:
            return size, Refusal(
                DocumentState.TOO_LARGE,
                "The file unpacks to more than the limit; split it or raise the limit.",
                {"part": name, "counted_bytes": size},
            )
        if is_xml:
            # OOXML and EPUB parts need no DTD; entities are how a kilobyte becomes a gigabyte.
            if b"<!entity" in (tail + chunk).lower().replace(b"\x00", b""):
                return size, Refusal(
                    DocumentState.CORRUPT,
                    f"Part {name!r} declares XML entities, which documents never need.",
                    {"part": name},
                )
            tail = chunk[-32:]
    return size, None


def _entry_problem(info: zipfile.ZipInfo) -> Refusal | None:
    name = info.filename
    if info.flag_bits & 0x1:
        return Refusal(
            DocumentState.ENCRYPTED, "The container is encrypted; save it without a password."
        )
    parts = name.replace("\\", "/").split("/")
    if name.startswith(("/", "\\")) or ".." in parts or ":" in parts[0]:
        return Refusal(
            DocumentState.CORRUPT,
            f"Entry {name[:100]!r} points outside the container.",
            {"entry": name[:200]},
        )
    if info.compress_type not in _METHODS:
        return Refusal(
            DocumentState.CORRUPT,
            f"Entry {name[:100]!r} is packed in a way that no document uses (method "
            f"{info.compress_type}); save the file again.",
            {"entry": name[:200], "method": info.compress_type},
        )
    if stat.S_ISLNK(info.external_attr >> 16):
        return Refusal(
            DocumentState.CORRUPT, f"Entry {name[:100]!r} is a link.", {"entry": name[:200]}
        )
    return None


def _overlap(infos: list[zipfile.ZipInfo]) -> bool:
    end = 0
    for info in sorted(infos, key=lambda entry: entry.header_offset):
        if info.header_offset < end:
            return True
        end = info.header_offset + 30 + len(info.filename.encode()) + info.compress_size
    return False


def _reason(error: BaseException) -> str:
    return str(error).strip().rstrip(".") or type(error).__name__
