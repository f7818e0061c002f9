"""What parsing makes of a file stays in proportion to the file."""

from __future__ import annotations

import pytest

from kb_resources.model import ParsedDocument, Refusal
from kb_resources.parse import tables
from kb_resources.parse.draft import DraftBlock
from kb_resources.parse.route import parse_here
from kb_resources.parse.tables import MAX_ROWS, table_drafts

N = 2_000
WIDE = ",".join(f"c{n}" for n in range(N)).encode()
BOMBS: dict[str, tuple[str, bytes]] = {
    "a wide header over narrow rows": ("text/csv", WIDE + b"\n" + b"1\n" * N),
    "a wide row below narrow ones": ("text/csv", b"1,2\n" * N + WIDE),
    "wide and narrow in turn": ("text/csv", (WIDE + b"\n1\n") * 20 + b"1\n" * N),
    "a long header": ("text/csv", b"a" * 100_000 + b",b\n" + b"1,2\n" * 50_000),
    "Markdown": ("text/markdown", b"|a" * N + b"|\n" + b"|-" * N + b"|\n" + b"|a|\n" * N),
    "HTML rows": (
        "text/html",
        b"<p>Some text.</p><table><tr>" + b"<td>a" * N + b"</tr>" + b"<tr><td>b" * N + b"</table>",
    ),
    "HTML spans in steps": (
        "text/html",
        b"<p>Some text.</p><table>"
        + b"".join(b"<tr><td colspan=%d></td><td>x</td></tr>" % n for n in range(1, 900))
        + b"</table>",
    ),
}


@pytest.mark.requirement("O-57")
@pytest.mark.parametrize("name", BOMBS)
def test_a_table_is_not_padded_to_many_times_its_file(name: str) -> None:
    media_type, data = BOMBS[name]
    found = parse_here(data, media_type, "t")
    assert isinstance(found, ParsedDocument), found
    assert len(found.body.encode()) < 12 * len(data)


def _cells(drafts: list[DraftBlock]) -> list[str]:
    return [cell for draft in drafts for row in draft.rows for cell in row if cell]


def test_no_cell_is_lost_and_rows_keep_their_numbers() -> None:
    rows = [["h"] * 2_000, *([str(n)] for n in range(900)), ["w"] * 2_000]
    drafts = table_drafts(rows, 1, lambda first, last: f"{first}-{last}")
    assert sorted(_cells(drafts)) == sorted(cell for row in rows for cell in row)
    assert [draft.locator for draft in drafts] == ["1-1", "2-501", "502-901", "902-902"]
    assert [draft.header_rows for draft in drafts] == [1, 0, 0, 0]


def test_an_ordinary_ragged_table_stays_one_with_its_header_repeated() -> None:
    rows = [["a", "b", "c"], *([str(n)] for n in range(MAX_ROWS + 1))]
    first, second = table_drafts(rows, 1, lambda first, last: f"{first}-{last}")
    assert first.rows[0] == second.rows[0] == ("a", "b", "c")
    assert (first.locator, second.locator) == ("1-501", "502-502")
    assert all(len(row) == 3 for row in (*first.rows, *second.rows))


def test_a_text_out_of_proportion_to_its_file_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_FREE_CELLS", 1 << 40)
    found = parse_here(*BOMBS["a wide header over narrow rows"][::-1], "t.csv")
    assert isinstance(found, Refusal)
    assert found.state.value == "too_large"
    assert "bytes of text" in found.reason


LONG = b"h" * 20_000
BESIDE: dict[str, tuple[str, bytes]] = {
    "a heading over many items": ("application/json", b'{"%s": [%s1]}' % (LONG, b"1," * 900)),
    "a heading over many lines": ("text/markdown", b"# " + LONG + b"\n\na" * 900),
    "a name beside many words": (
        "text/html",
        b"<p>A<a name=%s%s>b</a>" % (LONG, b"".join(b" data-%d='ab cd'" % n for n in range(900))),
    ),
}


@pytest.mark.requirement("O-57")
@pytest.mark.parametrize("name", BESIDE)
def test_what_every_block_repeats_is_in_proportion_too(name: str) -> None:
    """Whoever reads the answer would hold it all: the parent of every parser, and the database."""
    found = parse_here(*BESIDE[name][::-1], "t")
    assert isinstance(found, Refusal)
    assert found.state.value == "too_large"
    assert "bytes of text" in found.reason
