"""Reading order of the blocks of one page: docling's rule-based model, or plain cuts.

Belongs here: the call into docling, and recursive cuts for pages without columns. Not here:
finding columns (`columns`).
docling: https://github.com/docling-project/docling (models/postprocessing/reading_order_rb)
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from kb_resources.model import BlockKind
from kb_resources.parse.pdf.ink import Box

_MAX_BLOCKS = 400
_CUT_SLACK = 1.5


def reading_order(
    boxes: Sequence[Box],
    kinds: Sequence[BlockKind],
    width: float,
    height: float,
    *,
    in_columns: bool,
) -> list[int]:
    """Indices of the boxes in the order in which a person reads them.

    Args:
        boxes: one per block, flow frame.
        kinds: what each block is.
        width: of the flow in points.
        height: of the flow in points.
        in_columns: whether running text stands side by side; only then docling's model runs.
    """
    if len(boxes) < 2:
        return list(range(len(boxes)))
    downwards = sorted(range(len(boxes)), key=lambda i: (boxes[i].top, boxes[i].left))
    stacked = all(boxes[a].bottom <= boxes[b].top + 1.0 for a, b in pairwise(downwards))
    if stacked or len(boxes) > _MAX_BLOCKS:  # docling's rules compare all pairs
        return downwards
    if not in_columns:
        return _cut(boxes, downwards)
    from docling.models.postprocessing.reading_order_rb import PageElement, ReadingOrderPredictor
    from docling_core.types.doc.base import CoordOrigin, Size
    from docling_core.types.doc.labels import DocItemLabel

    labels = {
        "heading": DocItemLabel.SECTION_HEADER,
        "list_item": DocItemLabel.LIST_ITEM,
        "table": DocItemLabel.TABLE,
        "code": DocItemLabel.CODE,
        "caption": DocItemLabel.CAPTION,
        "footnote": DocItemLabel.FOOTNOTE,
    }
    size = Size(width=width, height=height)
    elements = [
        PageElement(
            cid=index,
            page_no=1,
            page_size=size,
            label=labels.get(kind, DocItemLabel.TEXT),
            l=box.left,
            r=box.right,
            t=height - box.top,
            b=height - box.bottom,
            coord_origin=CoordOrigin.BOTTOMLEFT,
        )
        for index, (box, kind) in enumerate(zip(boxes, kinds, strict=True))
    ]
    predictor: Any = ReadingOrderPredictor  # untyped upstream
    ordered = [element.cid for element in predictor().predict_reading_order(elements)]
    missing = sorted(set(range(len(boxes))) - set(ordered))
    return [*ordered, *missing]


def _cut(boxes: Sequence[Box], indices: list[int], *, across: bool = True) -> list[int]:
    """Recursive cuts along white space, first into rows, then each row into columns."""
    if len(indices) < 2:
        return indices
    ranges = sorted(
        ((boxes[i].top, boxes[i].bottom, i) for i in indices)
        if across
        else ((boxes[i].left, boxes[i].right, i) for i in indices)
    )
    parts: list[list[int]] = []
    reach = float("-inf")
    for start, end, index in ranges:
        if parts and start < reach - _CUT_SLACK:
            parts[-1].append(index)
        else:
            parts.append([index])
        reach = max(reach, end)
    if len(parts) == 1:
        if across:
            return _cut(boxes, indices, across=False)
        return sorted(indices, key=lambda i: (boxes[i].top, boxes[i].left))
    return [index for part in parts for index in _cut(boxes, part, across=not across)]
