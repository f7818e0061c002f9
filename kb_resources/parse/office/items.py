"""docling's document tree to draft blocks.

Belongs here: the walk over a `DoclingDocument`, the same for every format docling reads for us. We
need draft blocks, and docling's own Markdown has no offsets. Labels are explained at
https://docling-project.github.io/docling/concepts/docling_document/.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from kb_resources.model import BBox, BlockKind, RemovedLine
from kb_resources.parse.draft import DraftBlock
from kb_resources.parse.tables import table_drafts

_KINDS: dict[str, BlockKind] = {
    "caption": "caption",
    "footnote": "footnote",
    "code": "code",
    "page_header": "paragraph",
    "text": "paragraph",
}


@dataclass(slots=True)
class Walked:
    """What a walk found.

    Attributes:
        drafts: blocks of the body layer.
        aside: (layer, text, page) of the other layers: furniture, notes, invisible, background.
    """

    drafts: list[DraftBlock] = field(default_factory=list)
    aside: list[tuple[str, str, int | None]] = field(default_factory=list)

    def removed(self) -> tuple[RemovedLine, ...]:
        """Running heads, feet and page numbers: the furniture layer as removed lines."""
        return tuple(
            RemovedLine(page, text, "page_number" if text.strip().isdigit() else "running_head")
            for layer, text, page in self.aside
            if layer == "furniture"
        )


class ItemWalker:
    """Walks one docling document.

    Args:
        document: a `DoclingDocument`.
        place: from a 1-based page (a slide) to the locator of its blocks.
        boxes: give each block its box on the page, and text inside pictures its own kind.
    """

    def __init__(
        self,
        document: Any,
        place: Callable[[int | None], str | None] | None = None,
        *,
        boxes: bool = False,
    ) -> None:
        self._document = document
        self._boxes = boxes
        self._pictures = 0
        self._said: set[str] = set()
        self._place = place or _nowhere
        self._found = Walked()
        titles = [item for item in document.texts if item.label.value == "title"]
        self._shift = 1 if titles and not place else 0

    def walk(self) -> Walked:
        """Everything in the document, in docling's reading order."""
        self._children(self._document.body, 0)
        self._children(self._document.furniture, 0)
        return self._found

    def _children(self, node: Any, depth: int) -> None:
        for reference in node.children:
            self._node(reference.resolve(self._document), depth)

    def _node(self, node: Any, depth: int) -> None:
        label = node.label.value
        if label == "table":
            self._captions(node)
            self._table(node)
        elif label in {"list", "ordered_list"}:
            self._children(node, depth + 1)
        elif label == "inline":
            self._text(node, label, _joined(node, self._document), depth)
        elif label in {"picture", "chart"}:
            self._chart(node)
            self._picture(node, depth)
        elif hasattr(node, "text"):
            self._text_item(node, label, depth)
        else:
            self._children(node, depth)

    def _text_item(self, node: Any, label: str, depth: int) -> None:
        inner = [reference.resolve(self._document) for reference in node.children]
        inline = [child for child in inner if child.label.value == "inline"]
        text = node.text or " ".join(_joined(child, self._document) for child in inline)
        self._text(node, label, text, depth)
        for child in inner:
            if child not in inline:
                self._node(child, depth)

    def _text(self, node: Any, label: str, text: str, depth: int) -> None:
        if not text.strip() or node.self_ref in self._said:
            return  # a caption is a child of the body and named by its picture
        self._said.add(node.self_ref)
        page = _page(node)
        layer = node.content_layer.value
        if layer != "body":
            self._found.aside.append((layer, text, page))
            return
        more: dict[str, Any] = {
            "page": page,
            "locator": self._place(page),
            "bbox": self._box(node),
        }
        if label == "title":
            draft = DraftBlock("heading", text, level=1, **more)
        elif label == "section_header":
            draft = DraftBlock("heading", text, level=min(node.level + self._shift, 6), **more)
        elif label == "list_item":
            marker = (node.marker or "-").strip() if node.enumerated else "-"
            draft = DraftBlock("list_item", text, level=max(depth, 1), marker=marker, **more)
        elif label == "code":
            language = getattr(getattr(node, "code_language", None), "value", None)
            language = None if language == "unknown" else language
            draft = DraftBlock("code", text, language=language, **more)
        else:
            kind = _KINDS.get(label, "paragraph")
            if self._pictures and kind == "paragraph":
                kind = "figure_text"
            draft = DraftBlock(kind, text, **more)
        self._found.drafts.append(draft)

    def _picture(self, node: Any, depth: int) -> None:
        """What stands in a picture, and its captions where nothing else leads to them."""
        self._pictures += self._boxes
        self._children(node, depth)
        self._pictures -= self._boxes
        for reference in node.captions if self._boxes else ():
            caption = reference.resolve(self._document)
            self._text(caption, "caption", caption.text, 0)

    def _box(self, node: Any) -> BBox | None:
        """The first place of an item, origin at the page's top left."""
        prov = getattr(node, "prov", None)
        if not prov or not self._boxes:
            return None
        page = self._document.pages.get(prov[0].page_no)
        if page is None or page.size is None:
            return None
        box = prov[0].bbox.to_top_left_origin(page.size.height)
        return BBox(round(box.l, 2), round(box.t, 2), round(box.r, 2), round(box.b, 2))

    def _captions(self, node: Any) -> None:
        for reference in node.captions:
            caption = reference.resolve(self._document)
            self._text(caption, "caption", caption.text, 0)

    def _table(self, node: Any) -> None:
        page = _page(node)
        rows, header_rows = _grid(node.data, self._document)
        if node.content_layer.value != "body":
            text = "\n".join("\t".join(row) for row in rows)
            self._found.aside.append((node.content_layer.value, text, page))
            return
        found = table_drafts(rows, header_rows, lambda _first, _last: self._place(page), page=page)
        self._found.drafts += [replace(draft, bbox=self._box(node)) for draft in found]

    def _chart(self, node: Any) -> None:
        """Charts carry their numbers as a table."""
        meta = getattr(node, "meta", None)
        tabular = getattr(meta, "tabular_chart", None) if meta is not None else None
        data = getattr(tabular, "chart_data", None)
        if data is not None and node.content_layer.value == "body":
            page = _page(node)
            rows, header_rows = _grid(data, self._document)
            self._found.drafts += table_drafts(
                rows, header_rows, lambda _first, _last: self._place(page), page=page
            )


def _nowhere(_page: int | None) -> None:
    return None


def _page(node: Any) -> int | None:
    prov = getattr(node, "prov", None)
    return prov[0].page_no if prov else None


def _joined(node: Any, document: Any) -> str:
    return " ".join(_texts(node, document))


def _texts(node: Any, document: Any) -> Iterator[str]:
    if text := getattr(node, "text", ""):
        yield text
    for reference in node.children:
        yield from _texts(reference.resolve(document), document)


def _grid(data: Any, document: Any) -> tuple[list[list[str]], int]:
    """Cells as rows; a spanning cell's text stands in its first place only."""
    rows = [[""] * data.num_cols for _ in range(data.num_rows)]
    headers = set()
    for cell in data.table_cells:
        row, column = cell.start_row_offset_idx, cell.start_col_offset_idx
        if row < data.num_rows and column < data.num_cols:
            rows[row][column] = _cell_text(cell, document)
            if cell.column_header:
                headers.add(row)
    count = 0
    while count in headers and count < data.num_rows - 1:
        count += 1
    kept = [row for row in rows if any(text.strip() for text in row)]
    return kept, min(count, max(len(kept) - 1, 0))


def _cell_text(cell: Any, document: Any) -> str:
    reference = getattr(cell, "ref", None)
    if reference is None:
        return str(cell.text)
    return " ".join(_texts(reference.resolve(document), document)) or str(cell.text)
