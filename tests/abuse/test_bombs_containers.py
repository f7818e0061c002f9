"""Containers and listings are measured before anything is unpacked: in bounded memory and time."""

from __future__ import annotations

import io
import struct
import tarfile
import time
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from kb_resources.acquire import FetchRefusal, admit, expand, sniff
from kb_resources.acquire.expand import Listing, read_listing
from kb_resources.errors import InputError
from kb_resources.model import Refusal
from kb_resources.stages.backup import _members

MEGABYTE = 1 << 20


def packed(method: int, name: str = "word/document.xml") -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>", compress_type=zipfile.ZIP_STORED)
        with archive.open(name, "w") as part:
            for _ in range(40):
                part.write(bytes(MEGABYTE))
    return out.getvalue()


@pytest.mark.requirement("O-57")
@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_packing_that_inflates_by_the_block_is_not_opened(method: int) -> None:
    bomb = packed(method)
    tracemalloc.start()
    found = admit(bomb, "report.docx")
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert isinstance(found, Refusal)
    assert found.state.value == "corrupt"
    assert "method" in found.reason
    assert most < 24 * MEGABYTE


@pytest.mark.requirement("O-57")
@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_the_kind_of_a_book_is_read_from_its_first_bytes_only(method: int) -> None:
    bomb = bytearray(packed(method, "mimetype"))
    central = bomb.rindex(b"PK\x01\x02")
    bomb[central + 24 : central + 28] = struct.pack("<I", 100)
    tracemalloc.start()
    assert sniff(bytes(bomb), "book.epub") != "application/epub+zip"
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 24 * MEGABYTE


@pytest.mark.requirement("O-57")
def test_a_directory_of_many_entries_is_counted_before_it_is_read() -> None:
    honest = io.BytesIO()
    with zipfile.ZipFile(honest, "w") as archive:
        archive.writestr("a", "")
    data = honest.getvalue()
    at, end = data.index(b"PK\x01\x02"), data.index(b"PK\x05\x06")
    entries = data[at:end] * 100_000
    flood = data[:at] + entries + data[end : end + 12] + struct.pack("<II", len(entries), at)
    flood += b"\0\0"
    tracemalloc.start()
    found = admit(flood, "a.docx")
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert isinstance(found, Refusal)
    assert found.state.value == "too_large"
    assert most < 24 * MEGABYTE


@pytest.mark.parametrize("piece", [b"[x", b"[a]("])
def test_telling_markdown_from_text_takes_no_time(piece: bytes) -> None:
    started = time.process_time()
    assert sniff(piece * 32_000, "notes") == "text/plain"
    # Some 0.1 s; a pattern that tries again from every bracket takes six.
    assert time.process_time() - started < 2.5


def test_a_listing_of_countless_elements_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expand, "_MAX_ELEMENTS", 500)
    url = "https://site.example/sitemap.xml"
    flood = b"<urlset>" + b"<url/>" * 600 + b"</urlset>"
    assert isinstance(read_listing(flood, url), FetchRefusal)
    some = b"<urlset>" + b"<url><loc>https://site.example/a</loc></url>" * 200 + b"</urlset>"
    assert isinstance(read_listing(some, url), Listing)


def test_a_backup_with_a_member_longer_than_its_bytes_is_refused(tmp_path: Path) -> None:
    member = tarfile.TarInfo("manifest.json")
    member.size = 1 << 40
    header = bytearray(member.tobuf(tarfile.GNU_FORMAT))
    header[156:157] = tarfile.GNUTYPE_SPARSE
    header[483:495] = b"%011o\0" % member.size
    header[124:136] = b"%011o\0" % 0
    header[148:156] = b"        "
    header[148:156] = b"%06o\0 " % sum(header)
    file = tmp_path / "backup.tar"
    file.write_bytes(bytes(header) + bytes(10_240))
    with tarfile.open(file) as archive:
        assert archive.getmembers()[0].issparse()
    with pytest.raises(InputError, match="no backup does"):
        list(_members(file))
