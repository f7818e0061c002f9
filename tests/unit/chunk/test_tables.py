"""Tables: whole where they fit, by rows with their column names, wide rows by cells."""

from __future__ import annotations

import pytest

from kb_resources.chunk import ChunkOptions, EstimateCounter, chunk_document


def chunks_of(document, **options):
    options = ChunkOptions(**options)
    return chunk_document(document, document_id="doc-1", counter=EstimateCounter(), options=options)


def markdown(columns: int, rows: int, cell: str = "cell {row}.{column}") -> str:
    head = [f"Name {column}" for column in range(columns)]
    lines = [f"| {' | '.join(head)} |", "| --- " * columns + "|"]
    for row in range(rows):
        cells = [cell.format(row=row, column=column) for column in range(columns)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def test_a_small_table_shares_a_chunk_with_the_sentence_before_it(build) -> None:
    document = build([{"text": "Rates by country."}, {"kind": "table", "text": markdown(3, 4)}])
    (chunk,) = chunks_of(document)
    assert chunk.text == document.body
    assert chunk.context == "Handbook"


@pytest.mark.requirement("P-14", "O-05")
def test_case_b25_each_piece_has_the_header_row_and_the_caption_is_there_once(build) -> None:
    table = markdown(4, 40, "value {row} in column {column}")
    caption = {"kind": "caption", "text": "Table 7: measured values"}
    document = build([caption, {"kind": "table", "text": table}])
    chunks = chunks_of(document)
    header = table.splitlines()[0]
    assert len(chunks) >= 3
    for chunk in chunks:
        assert (chunk.text + chunk.context).count(header) == 1
        assert "Table 7: measured values" in chunk.text + chunk.context
    assert sum("Table 7" in chunk.text for chunk in chunks) == 1
    assert "".join(chunk.text for chunk in chunks) == document.body
    assert all(chunk.text.rstrip().endswith("|") for chunk in chunks)


def test_case_b27_every_cell_is_in_the_text_of_exactly_one_chunk(build) -> None:
    table = markdown(5, 60, "cell <{row}/{column}>")
    chunks = chunks_of(build([{"kind": "table", "text": table}]))
    text = "\n".join(chunk.text for chunk in chunks)
    for row in range(60):
        for column in range(5):
            assert text.count(f"cell <{row}/{column}>") == 1


@pytest.mark.requirement("P-14")
def test_a_table_on_the_next_page_keeps_the_paragraph_before_it_as_context(build) -> None:
    document = build(
        [
            {"text": "Limits for each country follow.", "page": 1},
            {"kind": "table", "text": markdown(3, 4), "page": 2},
        ]
    )
    first, second = chunks_of(document)
    assert second.page == 2
    assert second.context == "Handbook\nLimits for each country follow."
    assert first.context == "Handbook"


@pytest.mark.requirement("P-14")
def test_a_wide_row_is_cut_into_few_pieces_with_the_names_of_their_own_columns(build) -> None:
    columns = 80
    table = markdown(columns, 3, "reading {row}.{column}")
    chunks = chunks_of(build([{"kind": "table", "text": table}]))
    rows = [chunk for chunk in chunks if "reading" in chunk.text]
    assert len(rows) <= 3 * 4
    for chunk in rows:
        for column in range(columns):
            cells = [f"reading {row}.{column} |" in chunk.text for row in range(3)]
            if any(cells):
                assert f"Name {column} |" in chunk.context + chunk.text
    later = [chunk for chunk in rows if not chunk.text.startswith("|")]
    assert later
    assert all("reading" in chunk.context.splitlines()[-1] for chunk in later)
    assert "".join(chunk.text for chunk in chunks) == table


def test_a_cell_longer_than_a_chunk_is_cut_at_its_sentences(build) -> None:
    long = "The sensor was checked and found in order. " * 60
    table = f"| Date | Report |\n| --- | --- |\n| 3 May | {long}|\n| 4 May | nothing |"
    chunks = chunks_of(build([{"kind": "table", "text": table}]))
    assert "".join(chunk.text for chunk in chunks) == table
    inside = [chunk for chunk in chunks if chunk.text.startswith("The sensor")]
    assert inside
    assert all("Report" in chunk.context for chunk in inside)


def test_a_table_without_names_is_cut_by_lines_without_inventing_any(build) -> None:
    lines = "\n".join(f"| plain {n} | text of the line number {n} |" for n in range(90))
    blank = f"|  |  |\n| --- | --- |\n{lines}"
    for table in (lines, blank):
        chunks = chunks_of(build([{"kind": "table", "text": table}]))
        assert len(chunks) > 1
        assert {chunk.context for chunk in chunks} == {"Handbook"}
        assert "".join(chunk.text for chunk in chunks) == table


def test_escaped_pipes_do_not_divide_cells(build) -> None:
    table = markdown(30, 2, "a\\|b {row}.{column} with some more words in it")
    chunks = chunks_of(build([{"kind": "table", "text": table}]), max_tokens=120)
    assert len(chunks) > 4
    assert not any(chunk.text.startswith("b ") for chunk in chunks)


def test_a_short_rest_after_a_long_table_is_no_chunk_of_its_own(build) -> None:
    table = {"kind": "table", "text": markdown(3, 50, "some value {row}.{column}")}
    chunks = chunks_of(build([table, {"text": "Valid from May."}]))
    assert chunks[-1].text.endswith("|\n\nValid from May.")
