"""Text boxes on sheets, and pictures kept away from the spreadsheet reader.

Belongs here: the drawing parts of a workbook (ECMA-376 part 1, 20.5). openpyxl opens every picture
and forgets every text box; here the texts are read and the relationship is cut, so that no picture
is decoded. Shapes switched off by their author are told apart from those a reader sees.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import Any

from kb_resources.parse.office.package import Package, attribute, local
from kb_resources.parse.office.properties import joined_text

_LAST_COLUMN = 16_384
_WORKBOOK = "xl/workbook.xml"
_CUT = frozenset(("drawing", "vmlDrawing", "image", "oleObject", "control"))


@dataclass(frozen=True, slots=True)
class Boxed:
    """The text of one shape.

    Attributes:
        text: what it says.
        cell: the cell its upper left corner lies in ("C3"), "" when it floats freely.
        hidden: whether it is switched off.
    """

    text: str
    cell: str
    hidden: bool


def take_drawings(package: Package) -> dict[str, list[Boxed]]:
    """Texts of the shapes on each sheet.

    Args:
        package: a workbook; the drawing relationships of its sheets are removed.

    Returns:
        Sheet title → shapes with text, in the order of their cells.
    """
    texts: dict[str, list[Boxed]] = {}
    for title, part in _sheets(package).items():
        for target in _cut_drawings(package, part):
            root = package.xml(target)
            if root is not None:
                texts.setdefault(title, []).extend(_boxes(root))
    return texts


def _boxes(root: Any) -> list[Boxed]:
    found: list[tuple[tuple[int, int], Boxed]] = []
    for anchor in root:
        place = _corner(anchor)
        for shape in anchor.iter():
            if local(shape) != "sp" or any(local(e) == "Fallback" for e in shape.iterancestors()):
                continue
            if text := joined_text(shape):
                found.append((place or (0, 0), Boxed(text, _name(place), _switched_off(shape))))
    return [boxed for _, boxed in sorted(found, key=lambda entry: entry[0])]


def _corner(anchor: Any) -> tuple[int, int] | None:
    """Row and column, from 1, of the cell that an anchor starts in."""
    start = next((e for e in anchor if local(e) == "from"), None)
    numbers = {local(e): (e.text or "").strip() for e in start} if start is not None else {}
    row, column = numbers.get("row", ""), numbers.get("col", "")
    if not (row.isdecimal() and column.isdecimal() and len(row) < 8 and len(column) < 6):
        return None
    return int(row) + 1, int(column) + 1


def _name(place: tuple[int, int] | None) -> str:
    from openpyxl.utils import get_column_letter

    if place is None or place[1] > _LAST_COLUMN:
        return ""
    return f"{get_column_letter(place[1])}{place[0]}"


def _switched_off(shape: Any) -> bool:
    return any(
        local(e) == "cNvPr" and (attribute(e, "hidden") or "0") in {"1", "true"}
        for e in shape.iter()
    )


def _sheets(package: Package) -> dict[str, str]:
    """Sheet title → name of its part."""
    root = package.xml(_WORKBOOK)
    targets = {
        attribute(r, "Id"): _resolve(_WORKBOOK, attribute(r, "Target") or "")
        for r in _relations(package, _WORKBOOK)
    }
    sheets = {}
    for sheet in root.iter() if root is not None else ():
        if local(sheet) == "sheet":
            key = next((v for k, v in sheet.attrib.items() if k.endswith("}id")), None)
            if key in targets:
                sheets[attribute(sheet, "name") or ""] = targets[key]
    return sheets


def _cut_drawings(package: Package, part: str) -> list[str]:
    """Remove a sheet's relationships to drawings and pictures; the drawing parts they led to."""
    name = _relations_name(part)
    root = package.xml(name)
    if root is None:
        return []
    found = []
    for relation in list(root):
        kind = (attribute(relation, "Type") or "").rpartition("/")[2]
        if kind in _CUT:
            root.remove(relation)
            if kind == "drawing":
                found.append(_resolve(part, attribute(relation, "Target") or ""))
    package.put_xml(name, root)
    return found


def _relations(package: Package, part: str) -> Any:
    root = package.xml(_relations_name(part))
    return () if root is None else root


def _relations_name(part: str) -> str:
    folder, name = posixpath.split(part)
    return f"{folder}/_rels/{name}.rels"


def _resolve(part: str, target: str) -> str:
    if target.startswith("/"):
        return target.lstrip("/")
    return posixpath.normpath(posixpath.join(posixpath.dirname(part), target))
