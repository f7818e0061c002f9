"""Spreadsheets to a Reading: one table per region of filled cells, with its cell range.

Belongs here: sheets, hidden sheets, rows and columns. docling's reader walks the whole used
rectangle, which two cells can make 17 billion cells large; here the cost follows the cells that are
there. Cell values come from openpyxl: https://openpyxl.readthedocs.io/en/stable/.
"""

from __future__ import annotations

import io
import warnings
from typing import Any

from kb_resources.model import DocumentState, HiddenText, Refusal
from kb_resources.parse.draft import DraftBlock
from kb_resources.parse.office.cells import cell_text
from kb_resources.parse.office.package import Package, attribute, local, open_package
from kb_resources.parse.office.properties import comments, descriptions, properties
from kb_resources.parse.office.regions import Region, regions
from kb_resources.parse.office.sheetdrawings import take_drawings
from kb_resources.parse.reading import Reading
from kb_resources.parse.tables import MAX_ROWS, table_drafts

MAX_MERGED_CELLS = 100_000
"""Cells one merged range may cover; larger ranges are layout or an attack and are left unmerged."""


def read_xlsx(data: bytes) -> Reading | Refusal:
    """Read a workbook.

    Returns:
        Reading with a heading per sheet and the locator "Sheet X, A1:D9" on each block; hidden
        sheets, rows and columns are hidden text. A Refusal is `corrupt`.
    """
    package = open_package(data, "Excel")
    if isinstance(package, Refusal):
        return package
    facts, hidden = properties(package)
    hidden += comments(package, "xl/")
    hidden += descriptions(package, package.matching("xl/drawings/"))
    boxes = take_drawings(package)
    workbook = _load(_tamed(package))
    if isinstance(workbook, Refusal):
        return workbook
    drafts: list[DraftBlock] = []
    for sheet in workbook.worksheets:
        found, concealed = _sheet(sheet)
        if sheet.sheet_state != "visible":
            lines = ["\t".join(row) for region in found for row in region.rows]
            text = "\n".join([*lines, *(box.text for box in boxes.get(sheet.title, ()))])
            hidden += [HiddenText("hidden_sheet", f"sheet {sheet.title}", text)] if text else []
            continue
        hidden += concealed
        shown = [box for box in boxes.get(sheet.title, ()) if not box.hidden]
        hidden += [
            HiddenText("hidden_shape", f"sheet {sheet.title}", box.text)
            for box in boxes.get(sheet.title, ())
            if box.hidden
        ]
        if found or shown:
            drafts.append(
                DraftBlock("heading", sheet.title, level=1, locator=f"Sheet {sheet.title}")
            )
        for region in found:
            drafts += _drafts(sheet.title, region)
        for box in shown:
            place = f"{box.cell}, text box" if box.cell else "text box"
            drafts.append(
                DraftBlock("figure_text", box.text, locator=f"Sheet {sheet.title}, {place}")
            )
    return Reading(
        tuple(drafts), "xlsx", title=facts.get("title", ""), hidden=tuple(hidden), metadata=facts
    )


def _tamed(package: Package) -> bytes:
    """The workbook without merged ranges that openpyxl would spread over millions of cells."""
    for name in package.matching("xl/worksheets/"):
        if b"mergeCell" not in package.read(name):
            continue
        root = package.xml(name)
        if root is None:
            continue
        wild = [
            element
            for element in root.iter()
            if local(element) == "mergeCell"
            and _area(attribute(element, "ref") or "") > MAX_MERGED_CELLS
        ]
        for element in wild:
            element.getparent().remove(element)
        if wild:
            package.put_xml(name, root)
    return package.to_bytes()


def _area(reference: str) -> int:
    from openpyxl.utils import range_boundaries

    try:
        left, top, right, bottom = range_boundaries(reference)
    except (ValueError, TypeError):
        return 0
    if None in (left, top, right, bottom):
        return MAX_MERGED_CELLS + 1
    return int((right - left + 1) * (bottom - top + 1))


def _load(data: bytes) -> Any | Refusal:
    from openpyxl import load_workbook

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return load_workbook(io.BytesIO(data), data_only=True, keep_links=False)
        except (MemoryError, KeyboardInterrupt):
            raise
        except Exception as error:  # noqa: BLE001 - openpyxl raises whatever the XML makes it trip over
            return Refusal(
                DocumentState.CORRUPT,
                f"The Excel file is damaged ({str(error)[:200] or type(error).__name__}); "
                "save it again.",
            )


def _sheet(sheet: Any) -> tuple[list[Region], list[HiddenText]]:
    hidden_rows = {n for n, dimension in sheet.row_dimensions.items() if dimension.hidden}
    hidden_columns = _hidden_columns(sheet)
    shown: dict[tuple[int, int], str] = {}
    concealed: list[str] = []
    for (row, column), cell in sheet._cells.items():  # noqa: SLF001 - the sparse map; the API pads
        text = cell_text(cell)
        if not text.strip():
            continue
        if row in hidden_rows or column in hidden_columns:
            concealed.append(text)
        else:
            shown[row, column] = text
    merged = [
        (r.min_row, r.min_col, r.max_row, r.max_col)
        for r in sheet.merged_cells.ranges
        if (r.min_row, r.min_col) in shown
    ]
    found = regions(shown, merged)
    hidden = []
    if concealed and sheet.sheet_state == "visible":
        place = f"hidden rows or columns of sheet {sheet.title}"
        hidden.append(HiddenText("hidden_cells", place, "\n".join(concealed)))
    return found, hidden


def _hidden_columns(sheet: Any) -> set[int]:
    hidden: set[int] = set()
    for dimension in sheet.column_dimensions.values():
        if dimension.hidden and dimension.min and dimension.max:
            hidden.update(range(dimension.min, min(dimension.max, 16_384) + 1))
    return hidden


def _drafts(title: str, region: Region) -> list[DraftBlock]:
    if len(region.rows) == 1 and sum(bool(c.strip()) for c in region.rows[0]) == 1:
        text = next(c for c in region.rows[0] if c.strip())
        return [DraftBlock("paragraph", text, locator=f"Sheet {title}, {region.range_of(1, 1)}")]
    header = region.gap or (1 if len(region.rows) > 1 and region.has_header() else 0)
    return table_drafts(
        region.rows,
        header,
        lambda first, last: f"Sheet {title}, {region.range_of(first, min(last, first + MAX_ROWS))}",
    )
