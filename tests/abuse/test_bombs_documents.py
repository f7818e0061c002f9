"""Documents made to take all time or memory, one of each kind, through the real sandbox.

Each ends in a state with a reason, or is read in proportion to its size; memory and computing time
stay below the child's limits, and the next document is read as if nothing had been.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator

import pytest

from kb_resources.acquire import Acquired, admit
from kb_resources.model import ParsedDocument, Refusal
from kb_resources.parse import ParserPool

MIB = 1 << 20
MEMORY = 700 * MIB
CPU_S = 5
QUICK = (
    *("pdf, pages in themselves", "xml, entities", "xml, deep", "word, entities", "html, deep"),
    *("json, deep", "json, a huge number"),
)
"""What costs CI next to nothing; the others may take all the time they are given."""


def pdf(objects: list[bytes]) -> bytes:
    """A file of numbered objects, the first being the catalogue."""
    out, places = io.BytesIO(), []
    out.write(b"%PDF-1.7\n")
    for number, body in enumerate(objects, 1):
        places.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
    start = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    out.write(b"".join(b"%010d 00000 n \n" % place for place in places))
    out.write(b"trailer\n<</Size %d/Root 1 0 R>>\n" % (len(objects) + 1))
    out.write(b"startxref\n%d\n%%%%EOF\n" % start)
    return out.getvalue()


def stream(data: bytes, rounds: int = 1) -> bytes:
    for _ in range(rounds):
        data = zlib.compress(data, 9)
    filters = b"[" + b"/FlateDecode " * rounds + b"]"
    return b"<</Length %d/Filter %s>>stream\n%s\nendstream" % (len(data), filters, data)


def page(content: bytes, more: bytes = b"") -> list[bytes]:
    return [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Resources<<"
        + more
        + b">>>>",
        content,
    ]


def pdf_inflating() -> bytes:
    return pdf(page(stream(b" " * (200 * MIB), 2)))


def pdf_of_forms() -> bytes:
    """Forms that draw ten of the next kind each: ten to the ninth in the end."""
    objects = page(stream(b"/F5 Do"), b"/XObject<</F5 5 0 R>>")
    for number in range(5, 14):
        drawn = b"/F%d Do " % (number + 1) * 10
        body = zlib.compress(drawn)
        objects.append(
            b"<</Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</F%d %d 0 R>>>>"
            b"/Length %d/Filter/FlateDecode>>stream\n%s\nendstream"
            % (number + 1, number + 1, len(body), body)
        )
    objects.append(stream(b"BT ET"))
    return pdf(objects)


def pdf_of_pages() -> bytes:
    """A page tree that holds itself, and says that it has two thousand million pages."""
    return pdf(
        [b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[2 0 R 2 0 R]/Count 2147483647>>"]
    )


def pdf_nested() -> bytes:
    return pdf(page(stream(b"[" * (2 * MIB))))


def png_bits() -> bytes:
    """Thirty thousand pixels square, one bit each: 110 MB from a hundred kilobytes."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    side = 30_000
    rows = zlib.compress(b"\0" * (side // 8 + 1) * side, 9)
    head = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def office(part: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("word/document.xml", part)
    return out.getvalue()


ENTITIES = b"<!DOCTYPE d [<!ENTITY a 'ha'>%s]>" % b"".join(
    b"<!ENTITY %c '%s'>" % (name, b"&%c;" % (name - 1) * 10) for name in range(ord("b"), ord("k"))
)
BOMBS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "pdf, stream in a stream": ("a.pdf", pdf_inflating),
    "pdf, forms in forms": ("a.pdf", pdf_of_forms),
    "pdf, pages in themselves": ("a.pdf", pdf_of_pages),
    "pdf, brackets": ("a.pdf", pdf_nested),
    "picture of a thousand million pixels": ("a.png", png_bits),
    "xml, entities": ("a.xml", lambda: b"<?xml version='1.0'?>" + ENTITIES + b"<d>&j;</d>"),
    "xml, deep": ("a.xml", lambda: b"<?xml version='1.0'?>" + b"<a>" * 200_000),
    "xml, attributes": (
        "a.xml",
        lambda: b"<?xml version='1.0'?><a %s/>" % b" ".join(b"a%d='1'" % n for n in range(90_000)),
    ),
    "word, entities": (
        "a.docx",
        lambda: office(b"<?xml version='1.0'?>" + ENTITIES + b"<w>&j;</w>"),
    ),
    "html, deep": ("a.html", lambda: b"<html><body>" + b"<div><b>" * 70_000 + b"x"),
    "html, formatting": ("a.html", lambda: b"<html><body>" + b"<b><i><p>" * 30_000 + b"x"),
    "html, comments": ("a.html", lambda: b"<html><body>" + b"<!--" * 300_000 + b"x"),
    "json, deep": ("a.json", lambda: b"[" * 400_000 + b"]" * 400_000),
    "json, a long number": ("a.json", lambda: b'{"a": ' + b"9" * 3_000_000 + b"}"),
    "json, a huge number": ("a.json", lambda: b'{"a": [1e999999999, -1e999999999, 1e-999999999]}'),
    "json, keys": (
        "a.json",
        lambda: b"{" + b",".join(b'"k%d":1' % n for n in range(200_000)) + b"}",
    ),
    "markdown, brackets": ("a.md", lambda: b"# T\n\n" + b"[" * 200_000),
    "markdown, quotes": ("a.md", lambda: b"# T\n\n" + b"> " * 60_000 + b"x\n"),
    "markdown, stars": ("a.md", lambda: b"# T\n\n" + b"*a **a " * 40_000),
    "csv, columns": ("a.csv", lambda: b"a,b\n1,2\n" + b"," * 500_000 + b"\n"),
    "text, one line": ("a.txt", lambda: b"word" * 2_000_000),
}


@pytest.fixture(scope="module")
def limited() -> Iterator[ParserPool]:
    with ParserPool(memory_bytes=MEMORY, cpu_s=CPU_S) as opened:
        yield opened


@pytest.mark.requirement("O-57", "P-46")
@pytest.mark.parametrize(
    "bomb", [b if b in QUICK else pytest.param(b, marks=pytest.mark.long) for b in BOMBS]
)
def test_a_bomb_ends_within_its_limits(limited: ParserPool, bomb: str) -> None:
    name, make = BOMBS[bomb]
    data = make()
    admitted = admit(data, name)
    if isinstance(admitted, Refusal):
        assert admitted.reason
        return
    assert isinstance(admitted, Acquired)
    found, usage = limited.measure(data, admitted.media_type, name)
    assert usage.max_rss_bytes < MEMORY + 100 * MIB
    assert usage.cpu_s < CPU_S + 10
    if isinstance(found, Refusal):
        assert found.reason
    else:
        assert len(found.body) < 8 * len(data) + 100_000
    after = limited.parse(b"# Title\n\nA paragraph.\n", "text/markdown", "good.md")
    assert isinstance(after, ParsedDocument)
