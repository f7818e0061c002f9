"""The figures of docs/how-it-works.md, drawn from the lists here: `make figures`.

Belongs here: boxes, arrows, and what they say. Plain SVG with system fonts, so that a page loads
nothing from elsewhere, and text that search and screen readers find.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

OUT = Path(__file__).parents[1] / "docs" / "img"
INK, PAPER, LINE = "#1f2933", "#ffffff", "#52606d"
FILLS = {"write": "#e3f2fd", "gate": "#fdecea", "read": "#e8f5e9", "store": "#fff8e1"}


@dataclass
class Figure:
    """Boxes and arrows on a sheet of `width` by `height` pixels."""

    title: str
    width: int
    height: int
    parts: list[str] = field(default_factory=list)

    def box(self, x: int, y: int, width: int, kind: str, *lines: str) -> None:
        """A box of up to three lines; the first is bold."""
        height = 22 + 17 * len(lines)
        self.parts.append(
            f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" '
            f'fill="{FILLS[kind]}" stroke="{LINE}"/>'
        )
        for number, line in enumerate(lines):
            weight = ' font-weight="600"' if number == 0 else ""
            self.text(x + width // 2, y + 25 + 17 * number, line, weight)

    def text(self, x: int, y: int, words: str, more: str = "") -> None:
        """Centred words."""
        self.parts.append(f'<text x="{x}" y="{y}"{more}>{escape(words)}</text>')

    def arrow(self, x1: int, y1: int, x2: int, y2: int, words: str = "") -> None:
        """An arrow, with words above its middle."""
        self.parts.append(
            f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{LINE}" '
            'stroke-width="1.5" marker-end="url(#tip)"/>'
        )
        if words:
            self.text((x1 + x2) // 2, (y1 + y2) // 2 - 7, words, ' font-size="12"')

    def svg(self) -> str:
        """The file's text."""
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
                f'width="{self.width}" height="{self.height}" role="img" '
                'font-family="system-ui, sans-serif" font-size="13" text-anchor="middle" '
                f'fill="{INK}">',
                f"<title>{escape(self.title)}</title>",
                '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" '
                f'markerHeight="8" orient="auto"><path d="M0 0 8 4 0 8z" fill="{LINE}"/></marker>'
                "</defs>",
                f'<rect width="{self.width}" height="{self.height}" fill="{PAPER}"/>',
                *self.parts,
                "</svg>\n",
            ]
        )


def line() -> Figure:
    """The eight stages with the gate between them, and where each leaves what it made."""
    figure = Figure("The line: four stages before the gate, four behind it", 960, 300)
    before = (
        ("acquire", "bytes, type, digest"),
        ("parse", "blocks, hidden text"),
        ("language", "one of the scope's"),
        ("scan", "a verdict"),
    )
    behind = (
        ("chunk", "exact slices"),
        ("embed", "a vector for each"),
        ("index", "published at once"),
        ("supersede", "the old one ends"),
    )
    for number, (name, what) in enumerate(before):
        figure.box(20 + 235 * number, 40, 190, "write", name, what)
        if number:
            figure.arrow(210 + 235 * (number - 1), 68, 255 + 235 * (number - 1), 68)
    figure.text(480, 25, "before: readable by the pipeline only", ' font-size="12"')
    figure.arrow(820, 96, 820, 122)
    figure.box(640, 124, 300, "gate", "the gate, in Postgres",
               "verdict clean for exactly these bytes?")  # fmt: skip
    figure.arrow(640, 152, 560, 152, "no")
    figure.box(240, 124, 320, "store", "held or purged, with a reason",
               "quarantined · blocked · refused")  # fmt: skip
    figure.arrow(820, 180, 820, 204, "")
    figure.text(838, 197, "yes", ' font-size="12"')
    for number, (name, what) in enumerate(behind):
        x = 725 - 235 * number
        figure.box(x, 206, 190, "read", name, what)
        if number:
            figure.arrow(x + 235, 234, x + 190, 234)
    figure.text(480, 288, "behind: a trigger refuses any row without that verdict",
                ' font-size="12"')  # fmt: skip
    return figure


def search() -> Figure:
    """One statement: two lists under the same filters, fused, joined with their sources."""
    figure = Figure("A search is one SQL statement", 960, 240)
    figure.box(20, 90, 170, "read", "question", "tokens, vector")
    figure.box(260, 20, 250, "store", "words", "BM25 by sparse vectors")
    figure.box(260, 150, 250, "store", "meaning", "halfvec, exact or HNSW")
    figure.text(385, 103, "scope, readers and time are", ' font-size="12"')
    figure.text(385, 120, "conditions inside both lists", ' font-size="12"')
    figure.arrow(190, 105, 258, 60)
    figure.arrow(190, 128, 258, 172)
    figure.box(580, 90, 150, "write", "fused", "1 / (60 + rank)")
    figure.arrow(510, 50, 578, 105)
    figure.arrow(510, 178, 578, 128)
    figure.box(790, 80, 150, "read", "passages", "with document,", "version, page, span")
    figure.arrow(730, 118, 788, 118)
    return figure


def versions() -> Figure:
    """A page that changes and changes back: two versions, three intervals."""
    figure = Figure("A source that changes and reverts", 960, 210)
    figure.text(80, 50, "version 1", ' font-weight="600"')
    figure.text(80, 110, "version 2", ' font-weight="600"')
    figure.box(140, 22, 230, "read", "January to March")
    figure.box(370, 84, 250, "read", "March to June")
    figure.box(620, 22, 250, "read", "since June, reinstated")
    figure.arrow(140, 160, 920, 160)
    figure.text(880, 182, "valid time", ' font-size="12"')
    figure.text(500, 182, "as of April: version 2, and only it", ' font-size="12"')
    figure.arrow(460, 168, 460, 128)
    return figure


FIGURES = {"line.svg": line, "search.svg": search, "versions.svg": versions}


def main() -> int:
    """Write the files; with `--check`, fail where one differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    stale = []
    for name, draw in FIGURES.items():
        text, path = draw().svg(), OUT / name
        if check and (not path.exists() or path.read_text() != text):
            stale.append(name)
        elif not check:
            path.write_text(text)
    if stale:
        print(f"{', '.join(stale)}: run make figures", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
