"""Regions of a sheet and the text of its cells."""

from __future__ import annotations

import datetime
import time
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb_resources.parse.office.cells import cell_text
from kb_resources.parse.office.regions import Region, column_name, regions

NOON = datetime.datetime.fromisoformat("2024-05-02T12:00")  # cells know no time zone
PLACES = st.tuples(st.integers(1, 12), st.integers(1, 12))


@dataclass
class Cell:
    value: Any
    number_format: str = "General"


@pytest.mark.parametrize(
    ("value", "number_format", "text"),
    [
        (None, "General", ""),
        ("Müller", "General", "Müller"),
        (3, "General", "3"),
        (3.0, "General", "3"),
        (0.1 + 0.2, "General", "0.3"),
        (0.5, "0%", "50%"),
        (0.125, "0.0%", "12.5%"),
        (12.5, '#,##0.00 "€"', "12.50 €"),
        (12.5, "#,##0.00 €", "12.50 €"),
        (12.5, "$#,##0.00", "$12.50"),
        (1234, "0.00E+00", "1234"),
        (True, "General", "TRUE"),
        (NOON.replace(hour=0), "dd.mm.yyyy", "2024-05-02"),
        (NOON.replace(minute=30), "dd.mm.yyyy hh:mm", "2024-05-02 12:30"),
        (datetime.time(9, 5), "hh:mm", "09:05"),
    ],
)
def test_cells_read_as_they_are_shown(value: Any, number_format: str, text: str) -> None:
    assert cell_text(Cell(value, number_format)) == text


def test_an_empty_row_or_column_parts_tables() -> None:
    cells = {(1, 1): "a", (1, 2): "b", (2, 1): "1", (4, 1): "c", (1, 4): "d"}
    assert regions(cells) == [
        Region(1, 1, (("a", "b"), ("1", ""))),
        Region(1, 4, (("d",),)),
        Region(4, 1, (("c",),)),
    ]


def test_heads_one_empty_row_above_belong_to_their_table() -> None:
    cells = {(1, 1): "City", (1, 2): "Price", (3, 1): "Berlin", (3, 2): "5", (4, 1): "Ulm"}
    (table,) = regions({**cells, (4, 2): "6"})
    assert table.rows == (("City", "Price"), ("Berlin", "5"), ("Ulm", "6"))
    assert table.range_of(1, 3) == "A1:B4"
    assert table.range_of(2, 3) == "A3:B4"


def test_merged_cells_hold_a_table_together() -> None:
    cells = {(1, 1): "Title", (3, 4): "x", (3, 5): "y"}
    assert len(regions(cells)) == 2
    assert len(regions(cells, [(1, 1, 2, 4)])) == 1


def test_far_corners_cost_nothing() -> None:
    started = time.process_time()
    found = regions({(1, 1): "a", (1_048_576, 16_384): "z"})
    assert [region.range_of(1, 1) for region in found] == ["A1", "XFD1048576"]
    diagonal = regions({(n, n): str(n) for n in range(1, 3000)})
    assert sum(len(r.rows) * len(r.rows[0]) for r in diagonal) < 10_000
    assert time.process_time() - started < 2


@given(st.dictionaries(PLACES, st.just("x"), max_size=40))
def test_every_cell_is_in_exactly_one_region(cells: dict[tuple[int, int], str]) -> None:
    found = regions({place: f"{place}" for place in cells})
    texts = [text for region in found for row in region.rows for text in row if text]
    assert sorted(texts) == sorted(f"{place}" for place in cells)


@pytest.mark.parametrize(("number", "name"), [(1, "A"), (26, "Z"), (27, "AA"), (16_384, "XFD")])
def test_column_names(number: int, name: str) -> None:
    assert column_name(number) == name
