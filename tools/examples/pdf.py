"""PDF files of the examples: pages with running heads, headings, lists and ruled tables.

Belongs here: a small writer that gives the same bytes for the same source, with embedded fonts, so
that Cyrillic text can be extracted. Not a general PDF library.
Format: ISO 32000-1, https://opensource.adobe.com/dc-acrobat-sdk-docs/pdfstandards/PDF32000_2008.pdf.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from markup import Entry, Heading, Paragraph, Source, Table
from truetype import Font, Subset

WIDTH, HEIGHT, MARGIN = 595, 842, 68
SIZE, LEADING = 12.0, 19.0
HEADINGS = {1: 20.0, 2: 14.0, 3: 12.0}
_PAD = 4.0
_ROW = 15.0


class Objects:
    """Numbered objects of a file; the catalog comes last, so that a cut file has none."""

    def __init__(self) -> None:
        self._bodies: list[bytes] = []

    def add(self, body: bytes) -> int:
        """Append an object; returns its number."""
        self._bodies.append(body)
        return len(self._bodies)

    def stream(self, data: bytes, entries: str = "") -> int:
        """Append a compressed stream with further dictionary entries; returns its number."""
        packed = zlib.compress(data, 9)
        head = f"<< /Length {len(packed)} /Filter /FlateDecode {entries}>>\nstream\n"
        return self.add(head.encode() + packed + b"\nendstream")

    @property
    def next(self) -> int:
        """Number of the object that is added next."""
        return len(self._bodies) + 1

    def file(self, catalog: int, title: str) -> bytes:
        """The whole file."""
        info = self.add(
            f"<< /Title {_string(title)} /Producer (dagster-kb examples) "
            "/CreationDate (D:20240601080000Z) >>".encode()
        )
        out = bytearray(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
        offsets = []
        for number, body in enumerate(self._bodies, start=1):
            offsets.append(len(out))
            out += f"{number} 0 obj\n".encode() + body + b"\nendobj\n"
        start, digest = len(out), hashlib.sha256(out).hexdigest()[:32]
        out += f"xref\n0 {len(offsets) + 1}\n0000000000 65535 f \n".encode()
        out += b"".join(f"{offset:010d} 00000 n \n".encode() for offset in offsets)
        out += (
            f"trailer\n<< /Size {len(offsets) + 1} /Root {catalog} 0 R /Info {info} 0 R "
            f"/ID [<{digest}> <{digest}>] >>\nstartxref\n{start}\n%%EOF\n"
        ).encode()
        return bytes(out)


def _string(text: str) -> str:
    data = b"\xfe\xff" + text.encode("utf-16-be")
    return f"<{data.hex()}>"


@dataclass(slots=True)
class _Page:
    """What stands on a page: text runs (font, size, x, y, text) and lines (x1, y1, x2, y2)."""

    texts: list[tuple[str, float, float, float, str]] = field(default_factory=list)
    lines: list[tuple[float, float, float, float]] = field(default_factory=list)


class _Layout:
    """Fills pages from top to bottom."""

    def __init__(self, fonts: dict[str, Font]) -> None:
        self.fonts = fonts
        self.pages: list[_Page] = []
        self._y = 0.0

    def need(self, height: float) -> None:
        if not self.pages or self._y - height < MARGIN:
            self.pages.append(_Page())
            self._y = HEIGHT - MARGIN - 24

    def put(self, font: str, size: float, x: float, text: str) -> None:
        self.pages[-1].texts.append((font, size, x, self._y, text))

    def paragraph(self, text: str, *, mark: str = "") -> None:
        indent = 16.0 if mark else 0.0
        for index, line in enumerate(self.wrap("R", SIZE, text, WIDTH - 2 * MARGIN - indent)):
            self.need(LEADING)
            self._y -= LEADING
            if mark and index == 0:
                self.put("R", SIZE, MARGIN, mark)
            self.put("R", SIZE, MARGIN + indent, line)
        self._y -= 3 if mark else 7

    def heading(self, level: int, text: str) -> None:
        size = HEADINGS[level]
        self.need(size * 2 + 3 * LEADING)
        self._y -= size * 0.6
        for line in self.wrap("B", size, text, WIDTH - 2 * MARGIN):
            self._y -= size * 1.2
            self.put("B", size, MARGIN, line)
        self._y -= 8

    def table(self, rows: tuple[tuple[str, ...], ...]) -> None:
        widths = self._columns(rows)
        self._y -= 4
        top = True
        for number, row in enumerate(rows):
            font = "B" if number == 0 else "R"
            cells = [
                list(self.wrap(font, SIZE - 1.5, cell, width - 2 * _PAD))
                for cell, width in zip(row, widths, strict=True)
            ]
            height = max(len(lines) for lines in cells) * _ROW + 2 * _PAD
            before = len(self.pages)
            self.need(height + (40 if number == 0 else 0))
            self._row(cells, widths, height, font, top=top or len(self.pages) != before)
            top = False
        self._y -= 14

    def _row(
        self, cells: list[list[str]], widths: list[float], height: float, font: str, *, top: bool
    ) -> None:
        page, right = self.pages[-1], WIDTH - MARGIN
        if top:
            page.lines.append((MARGIN, self._y, right, self._y))
        x, start = float(MARGIN), self._y
        for lines, width in zip(cells, widths, strict=True):
            self._y = start - _PAD + 2.5
            for line in lines:
                self._y -= _ROW
                self.put(font, SIZE - 1.5, x + _PAD, line)
            page.lines.append((x, start, x, start - height))
            x += width
        page.lines.append((right, start, right, start - height))
        self._y = start - height
        page.lines.append((MARGIN, self._y, right, self._y))

    def _columns(self, rows: tuple[tuple[str, ...], ...]) -> list[float]:
        longest = [max(min(len(cell), 40) for cell in column) for column in zip(*rows, strict=True)]
        words = [
            max(self.fonts["B"].width(word) for cell in column for word in cell.split())
            for column in zip(*rows, strict=True)
        ]
        least = [(SIZE - 1.5) * word + 2 * _PAD + 2 for word in words]
        spare = WIDTH - 2 * MARGIN - sum(least)
        return [a + spare * b / sum(longest) for a, b in zip(least, longest, strict=True)]

    def wrap(self, font: str, size: float, text: str, width: float) -> Iterator[str]:
        line = ""
        for word in text.split():
            longer = f"{line} {word}".strip()
            if line and self.fonts[font].width(longer) * size > width:
                yield line
                line = word
            else:
                line = longer
        yield line


def write(source: Source, fonts: dict[str, Font]) -> bytes:
    """A PDF of the source.

    Args:
        source: what to set; its field `running` is the running head.
        fonts: `R` for text, `B` for headings.
    """
    layout = _Layout(fonts)
    layout.need(LEADING)
    for part in source.parts:
        match part:
            case Heading(level, text):
                layout.heading(level, text)
            case Paragraph(text):
                layout.paragraph(text)
            case Entry(text):
                layout.paragraph(text, mark="•")
            case Table(rows):
                layout.table(rows)
    running = source.fields.get("running", "")
    for number, page in enumerate(layout.pages, start=1):
        page.texts.insert(0, ("R", 8.5, MARGIN, HEIGHT - 46, running))
        page.lines.append((MARGIN, HEIGHT - 52, WIDTH - MARGIN, HEIGHT - 52))
        page.texts.append(("R", 9.0, WIDTH / 2 - 6, 40, str(number)))
    return _file(source.title, layout, fonts)


def _file(title: str, layout: _Layout, fonts: dict[str, Font]) -> bytes:
    objects = Objects()
    used = {
        name: {
            char
            for page in layout.pages
            for f, *_, text in page.texts
            if f == name
            for char in text
        }
        for name in fonts
    }
    subsets = {name: fonts[name].subset(characters) for name, characters in used.items()}
    names = {name: _font(objects, name, subset) for name, subset in subsets.items()}
    resources = " ".join(f"/{name} {number} 0 R" for name, number in names.items())
    contents = [objects.stream(_content(page, subsets)) for page in layout.pages]
    tree = objects.next + len(contents)
    pages = [
        objects.add(
            f"<< /Type /Page /Parent {tree} 0 R /MediaBox [0 0 {WIDTH} {HEIGHT}] "
            f"/Resources << /Font << {resources} >> >> /Contents {content} 0 R >>".encode()
        )
        for content in contents
    ]
    return close(objects, pages, title)


def close(objects: Objects, pages: list[int], title: str) -> bytes:
    """Add page tree and catalog; the tree is the next object."""
    kids = " ".join(f"{page} 0 R" for page in pages)
    tree = objects.add(f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode())
    catalog = objects.add(f"<< /Type /Catalog /Pages {tree} 0 R >>".encode())
    return objects.file(catalog, title)


def _content(page: _Page, subsets: dict[str, Subset]) -> bytes:
    out = ["0.6 w"]
    out += [f"{a:.2f} {b:.2f} m {c:.2f} {d:.2f} l S" for a, b, c, d in page.lines]
    for font, size, x, y, text in page.texts:
        codes = "".join(f"{subsets[font].glyphs[char]:04x}" for char in text)
        out.append(f"BT /{font} {size:.1f} Tf {x:.2f} {y:.2f} Td <{codes}> Tj ET")
    return "\n".join(out).encode()


def _font(objects: Objects, name: str, subset: Subset) -> int:
    full = f"KBEXMP+DejaVuSans{'-Bold' if name == 'B' else ''}"
    data = objects.stream(subset.data, f"/Length1 {len(subset.data)} ")
    box = " ".join(map(str, subset.box))
    descriptor = objects.add(
        f"<< /Type /FontDescriptor /FontName /{full} /Flags 4 /FontBBox [{box}] /ItalicAngle 0 "
        f"/Ascent {subset.ascent} /Descent {subset.descent} /CapHeight 729 /StemV 80 "
        f"/FontFile2 {data} 0 R >>".encode()
    )
    widths = " ".join(map(str, subset.widths))
    descendant = objects.add(
        f"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /{full} /CIDToGIDMap /Identity "
        "/CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> "
        f"/FontDescriptor {descriptor} 0 R /W [0 [{widths}]] >>".encode()
    )
    unicode = objects.stream(_to_unicode(subset.glyphs))
    return objects.add(
        f"<< /Type /Font /Subtype /Type0 /BaseFont /{full} /Encoding /Identity-H "
        f"/DescendantFonts [{descendant} 0 R] /ToUnicode {unicode} 0 R >>".encode()
    )


def _to_unicode(glyphs: dict[str, int]) -> bytes:
    lines = [f"<{glyph:04x}> <{ord(char):04x}>" for char, glyph in sorted(glyphs.items())]
    blocks = [lines[i : i + 100] for i in range(0, len(lines), 100)]
    body = "\n".join(f"{len(b)} beginbfchar\n" + "\n".join(b) + "\nendbfchar" for b in blocks)
    return (
        "/CIDInit /ProcSet findresource begin\n12 dict begin\nbegincmap\n"
        "/CMapName /KB-UCS def\n/CMapType 2 def\n"
        "1 begincodespacerange\n<0000> <ffff>\nendcodespacerange\n"
        f"{body}\nendcmap\nCMapName currentdict /CMap defineresource pop\nend\nend\n"
    ).encode()
