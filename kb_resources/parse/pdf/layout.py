"""One page: from ink to labelled blocks in reading order.

Belongs here: the order of the steps for a page (furniture out, tables, clusters, labels, order).
The steps themselves live in their own modules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kb_resources.model import BlockKind, RecognisedPage
from kb_resources.parse.pdf.blocks import Cluster, cluster_lines
from kb_resources.parse.pdf.cells import TableFound
from kb_resources.parse.pdf.columns import find_gutters
from kb_resources.parse.pdf.figures import figure_of, figure_regions, is_figure_caption
from kb_resources.parse.pdf.ink import Box, PageInk, enclose
from kb_resources.parse.pdf.labels import Context, label
from kb_resources.parse.pdf.lines import Line, lines_of
from kb_resources.parse.pdf.marks import MARKER, NUMBERED, split_marker
from kb_resources.parse.pdf.mend import join_lines
from kb_resources.parse.pdf.order import reading_order
from kb_resources.parse.pdf.tables import take_tables

_MAX_HEADING_RUN = 3
_MAX_LABEL_CHARS = 200
_TITLE_RATIO = 1.5


@dataclass(frozen=True, slots=True)
class FlowLines:
    """The lines of one direction of writing."""

    angle: int
    width: float
    height: float
    lines: tuple[Line, ...]
    tables: tuple[TableFound, ...] = ()


@dataclass(frozen=True, slots=True)
class PageDraft:
    """A page after the first pass: lines instead of words.

    Attributes:
        number: 1-based.
        width: in points, as shown.
        height: in points, as shown.
        flows: the main direction of writing first.
        pictures: bitmaps, page frame.
        drawings: rectangles around connected vector shapes, page frame.
        garbage: number of unmapped characters.
        characters: number of all characters.
        recognised: how the page was read where its text comes from a picture.
        places: place and confidence of each recognised word, page frame.
    """

    number: int
    width: float
    height: float
    flows: tuple[FlowLines, ...]
    pictures: tuple[Box, ...]
    drawings: tuple[Box, ...]
    garbage: int
    characters: int
    recognised: RecognisedPage | None = None
    places: tuple[tuple[Box, float], ...] = ()


@dataclass(slots=True, eq=False)
class Piece:
    """A labelled block of a page, before levels are known."""

    kind: BlockKind
    text: str
    page: int
    shown: Box
    size: float = 0.0
    bold: bool = False
    marker: str | None = None
    rows: tuple[tuple[str, ...], ...] = ()
    header_rows: int = 0
    confidence: float = 1.0
    longest: int = 0


def first_pass(ink: PageInk) -> PageDraft:
    """Lines of a page; words are dropped so that long documents stay small."""
    flows: list[FlowLines] = []
    rest = list(ink.flows)
    while rest:
        flow = rest.pop(0)
        tables: list[TableFound] = []
        if flow.angle % 90:
            lines = lines_of(flow)
        else:
            turned = [w for f in rest if f.angle in (90, 270) for w in f.words]
            tables, lines, taken = take_tables(flow, () if flow.angle else turned)
            if taken:
                gone = {id(word) for word in taken}
                rest = [
                    replace(f, words=tuple(w for w in f.words if id(w) not in gone)) for f in rest
                ]
        if sum(line.rtl for line in lines) * 2 > len(lines):
            tables, lines = _mirrored(tables, lines, flow.width)
        flows.append(FlowLines(flow.angle, flow.width, flow.height, tuple(lines), tuple(tables)))
    return PageDraft(
        number=ink.number,
        width=ink.width,
        height=ink.height,
        flows=tuple(flows),
        pictures=ink.pictures,
        drawings=ink.drawings,
        garbage=ink.garbage,
        characters=ink.characters,
    )


def _mirrored(
    tables: list[TableFound], lines: list[Line], width: float
) -> tuple[list[TableFound], list[Line]]:
    """A right-to-left flow seen in a mirror, so that all later rules read it like the others."""

    def flip(box: Box) -> Box:
        return Box(width - box.right, box.top, width - box.left, box.bottom)

    return (
        [
            replace(t, box=flip(t.box), rows=tuple(tuple(reversed(row)) for row in t.rows))
            for t in tables
        ],
        [replace(line, box=flip(line.box)) for line in lines],
    )


def page_pieces(page: PageDraft, removed: frozenset[int], context: Context) -> list[Piece]:
    """Blocks of a page in reading order.

    Args:
        page: the page after the first pass.
        removed: indices of the main flow's lines that are furniture.
        context: what is usual in the document.
    """
    pieces: list[Piece] = []
    for number, flow in enumerate(page.flows):
        lines = [line for i, line in enumerate(flow.lines) if number > 0 or i not in removed]
        pieces.extend(_flow_pieces(page.number, flow, lines, context))
    _set_figures_apart(page, pieces, _TITLE_RATIO * context.usual.size)
    return pieces


def _set_figures_apart(page: PageDraft, pieces: list[Piece], title_size: float) -> None:
    """Gather the labels of each drawing or picture into one block of figure text.

    Text of `title_size` points and more stays what it is: titles often stand on a coloured ground.
    """
    frames = [*page.drawings, *page.pictures]
    if not frames:
        return
    loose = ("heading", "paragraph", "list_item", "footnote")
    labels = [p for p in pieces if p.kind in loose and p.size < title_size]
    captions = [p.shown for p in pieces if p.kind == "caption" and is_figure_caption(p.text)]
    regions = figure_regions(
        frames, [(p.shown, p.longest) for p in labels], captions, page.width, page.height
    )
    whole: dict[int, Piece] = {}
    for piece in labels:
        region = figure_of(piece.shown, regions)
        if region is None or len(piece.text) > _MAX_LABEL_CHARS:
            continue
        text = piece.text if piece.marker in (None, "-") else f"{piece.marker} {piece.text}"
        first = whole.setdefault(region, piece)
        if first is piece:
            piece.kind, piece.marker, piece.text = "figure_text", None, text
        else:
            first.text = f"{first.text} {text}"
            first.shown = enclose((first.shown, piece.shown))
            pieces.remove(piece)


def _flow_pieces(
    page: int, flow: FlowLines, lines: Sequence[Line], context: Context
) -> list[Piece]:
    bullets = context.usual.bullets
    lines = [
        replace(line, bullet=True) if not line.bullet and line.lead in bullets else line
        for line in lines
    ]
    gutters = find_gutters(lines, flow.width)
    clusters = cluster_lines(lines, gutters, context.usual)
    pieces = [_table(page, table) for table in flow.tables]
    boxes = [table.box for table in flow.tables]
    for cluster in clusters:
        piece = _piece(page, cluster, Context(context.usual, context.outline, flow.height))
        if piece is not None:
            pieces.append(piece)
            boxes.append(cluster.box)
    kinds = [piece.kind for piece in pieces]
    order = reading_order(boxes, kinds, flow.width, flow.height, in_columns=bool(gutters.at))
    ordered = [pieces[index] for index in order]
    _demote_runs(ordered)
    return ordered


def _demote_runs(pieces: list[Piece]) -> None:
    """Turn three and more equal headings without text between into paragraphs.

    Bold lines that follow each other are a list, a cover or an address, not sections.
    """
    start = 0
    while start < len(pieces):
        end = start
        first = pieces[start]
        while (
            end < len(pieces)
            and pieces[end].kind == "heading"
            and (pieces[end].size, pieces[end].bold) == (first.size, first.bold)
            and not NUMBERED.match(pieces[end].text)
        ):
            end += 1
        if end - start >= _MAX_HEADING_RUN:
            for piece in pieces[start:end]:
                piece.kind = "paragraph"
        start = max(end, start + 1)


def _table(page: int, table: TableFound) -> Piece:
    return Piece(
        kind="table",
        text="",
        page=page,
        shown=table.shown,
        size=table.size,
        rows=table.rows,
        header_rows=table.header_rows,
        confidence=table.confidence,
    )


def _piece(page: int, cluster: Cluster, context: Context) -> Piece | None:
    text = join_lines(line.text for line in cluster.lines)
    if not text:
        return None
    kind = label(cluster, text, context)
    marker = None
    if kind == "code":
        text = _code(cluster)
    elif kind == "list_item":
        marker, text = _marker_of(cluster, text)
    return Piece(
        kind=kind,
        text=text,
        page=page,
        shown=cluster.shown,
        size=max(line.size for line in cluster.lines),
        bold=cluster.first.bold,
        marker=marker,
        longest=max(len(line.text) for line in cluster.lines),
    )


def _marker_of(cluster: Cluster, text: str) -> tuple[str, str]:
    """Marker and text of a list item; a glyph of a symbol font in front is a bullet."""
    if cluster.first.bullet and MARKER.match(text) is None:
        _, _, rest = text.partition(" ")
        return "-", rest or text
    return split_marker(text) or ("-", text)


def _code(cluster: Cluster) -> str:
    """Lines of code with their indents, counted in the width of a character."""
    widths = sorted(line.box.width / max(len(line.text), 1) for line in cluster.lines)
    step = max(widths[len(widths) // 2], 2.0)
    left = min(line.box.left for line in cluster.lines)
    return "\n".join(
        " " * round((line.box.left - left) / step) + line.text for line in cluster.lines
    )
