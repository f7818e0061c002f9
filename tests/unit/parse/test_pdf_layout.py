"""Words with places to lines, columns, tables, furniture and headings, without any PDF."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb_resources.parse.pdf.columns import find_gutters
from kb_resources.parse.pdf.furniture import PageLines, find_furniture
from kb_resources.parse.pdf.gaps import contents_table, gap_table
from kb_resources.parse.pdf.grid import grid_table
from kb_resources.parse.pdf.headings import HeadingStyle, best_title, heading_levels
from kb_resources.parse.pdf.ink import Box, Face, Flow, Turn, Word
from kb_resources.parse.pdf.lines import Line, line_of, lines_of, rows_of
from kb_resources.parse.pdf.order import reading_order
from kb_resources.parse.pdf.pdfium import OutlineEntry
from kb_resources.parse.pdf.profile import Profile
from kb_resources.parse.pdf.ruling import frames_of, ruling_of

BODY = Face("Serif")
EM = 10.0


def word(text: str, left: float, top: float, *, face: Face = BODY, size: float = EM) -> Word:
    box = Box(left, top, left + 0.5 * size * len(text), top + size)
    return Word(text, box, box, size, face)


def sentence(text: str, left: float, top: float, *, size: float = EM) -> list[Word]:
    words, x = [], left
    for part in text.split():
        words.append(word(part, x, top, size=size))
        x = words[-1].box.right + 0.3 * size
    return words


def line(text: str, left: float, top: float, **style: object) -> Line:
    width = 5.0 * len(text)
    box = Box(left, top, left + width, top + EM)
    return Line(text, box, box, EM, "Serif", **style)  # type: ignore[arg-type]


def flow(words: list[Word], rules: tuple[Box, ...] = ()) -> Flow:
    return Flow(0, tuple(words), rules, 600.0, 800.0)


def test_a_wide_gap_ends_a_line_and_a_word_space_does_not() -> None:
    words = [*sentence("left column text", 50, 100), *sentence("right column", 300, 100)]
    assert [found.text for found in lines_of(flow(words))] == ["left column text", "right column"]


def test_columns_that_nearly_touch_are_told_by_the_white_strip() -> None:
    chance = Random(7)
    words: list[Word] = []
    texts: set[str] = set()
    for row in range(14):
        for left in (50.0, 254.0):
            parts = ["x" * chance.randint(2, 9) for _ in range(5)]
            texts.add(" ".join(parts))
            space = (200 - 5 * sum(map(len, parts))) / 4
            for part in parts:
                words.append(word(part, left, 100 + 14 * row))
                left = words[-1].box.right + min(space, 9.0)
    assert {found.text for found in lines_of(flow(words))} == texts


def test_right_to_left_lines_keep_latin_runs_in_their_order() -> None:
    # As painted from left to right: Latin run first, then Hebrew from its last word to its first.
    words = [
        word("Big", 50, 100),
        word("Data", 70, 100),
        word("שלישי", 100, 100),
        word("שני", 140, 100),
        word("ראשון", 170, 100),
    ]
    assert line_of(words).text == "ראשון שני שלישי Big Data"


@given(st.sampled_from([0, 90, 180, 270, 37]), st.floats(0, 600), st.floats(0, 800))
def test_turned_points_stay_on_the_turned_page(angle: int, x: float, y: float) -> None:
    turn = Turn.of(angle, 600.0, 800.0)
    box = turn.box((x, y))
    assert -0.01 <= box.left <= turn.width + 0.01
    assert -0.01 <= box.top <= turn.height + 0.01


def test_three_columns_are_found() -> None:
    lines = [
        line("running text in a column", left, 100 + 14 * row)
        for left in (40, 220, 400)
        for row in range(12)
    ]
    gutters = find_gutters(lines, 600.0)
    assert len(gutters.at) == 2
    assert [gutters.column(found) for found in (lines[0], lines[12], lines[24])] == [1, 2, 3]


def test_columns_are_read_one_after_the_other() -> None:
    boxes = [Box(300, 100, 550, 300), Box(50, 100, 280, 200), Box(50, 210, 280, 400)]
    kinds = ["paragraph"] * 3
    assert reading_order(boxes, kinds, 600, 800, in_columns=True) == [1, 2, 0]  # type: ignore[arg-type]


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 700)), min_size=1, max_size=25))
def test_reading_order_is_a_permutation(places: list[tuple[int, int]]) -> None:
    boxes = [Box(x, y, x + 60, y + 20) for x, y in places]
    for in_columns in (False, True):
        order = reading_order(boxes, ["paragraph"] * len(boxes), 600, 800, in_columns=in_columns)
        assert sorted(order) == list(range(len(boxes)))


def grid_rules(xs: list[float], ys: list[float]) -> tuple[Box, ...]:
    flat = [Box(xs[0], y, xs[-1], y) for y in ys]
    upright = [Box(x, ys[0], x, ys[-1]) for x in xs]
    return (*flat, *upright)


def test_a_ruled_grid_becomes_rows_and_columns() -> None:
    words = [
        *(word(text, x, 102) for text, x in (("Name", 55), ("Age", 155))),
        *(word(text, x, 122) for text, x in (("Ana", 55), ("31", 155))),
        *(word(text, x, 142) for text, x in (("Ivo", 55), ("44", 155))),
    ]
    frames = frames_of(ruling_of(grid_rules([50, 150, 250], [100, 120, 140, 160])))
    found = grid_table(frames[0], words)
    assert found is not None
    assert found[0].rows == (("Name", "Age"), ("Ana", "31"), ("Ivo", "44"))
    assert found[0].confidence > 0.9


def test_a_cell_without_wall_spans_and_repeats_its_text() -> None:
    rules = [
        *(Box(50, y, 250, y) for y in (100, 120, 140)),
        Box(50, 100, 50, 140),
        Box(250, 100, 250, 140),
        Box(150, 120, 150, 140),
    ]
    words = [word("Both", 120, 104), word("a", 60, 124), word("b", 160, 124), word("c", 170, 124)]
    found = grid_table(frames_of(ruling_of(rules))[0], words)
    assert found is not None
    assert found[0].rows == (("Both", "Both"), ("a", "b c"))


def test_a_frame_around_prose_is_no_table() -> None:
    text = "this is running prose inside a simple frame which nobody should call a table " * 5
    words = [w for row in range(6) for w in sentence(text[:60], 60, 110 + 14 * row)]
    for frame in frames_of(ruling_of(grid_rules([50, 500], [100, 220]))):
        assert grid_table(frame, words) is None


def test_numbers_under_each_other_are_a_table_of_lower_confidence() -> None:
    rows = [
        ("Item", "Mass", "Price"),
        ("Nut", "1.5", "20"),
        ("Bolt", "2.5", "30"),
        ("Rod", "9", "7"),
    ]
    words = [
        word(cell, 50 + 120 * column, 100 + 14 * row)
        for row, cells in enumerate(rows)
        for column, cell in enumerate(cells)
    ]
    found = gap_table(words, (), ruled=False)
    assert found is not None
    assert found.rows == tuple(rows)
    assert found.confidence < 0.8


def test_two_columns_of_prose_are_no_table() -> None:
    words = [
        w
        for row in range(8)
        for w in (
            *sentence("prose of the left column that fills it", 50, 100 + 14 * row),
            *sentence("prose of the right column filling too", 320, 100 + 14 * row),
        )
    ]
    assert gap_table(words, (), ruled=True) is None


def test_contents_lose_their_leaders_and_keep_title_and_page() -> None:
    rows = rows_of(
        [
            *sentence("Introduction . . . . . . . . 7", 50, 100),
            *sentence("Methods and data ............ 12", 50, 114),
            *sentence("Results . . . . . . . . . . 31", 50, 128),
        ]
    )
    found = contents_table(rows)
    assert found is not None
    assert found.rows == (("Introduction", "7"), ("Methods and data", "12"), ("Results", "31"))


def page(number: int, *lines: Line) -> PageLines:
    body = [line(f"text of page {number} that goes on and on", 50, 200 + 14 * i) for i in range(20)]
    return PageLines(number, 800.0, [*lines, *body])


def removed(pages: list[PageLines]) -> set[str]:
    found = find_furniture(pages, Profile(size=EM, font="Serif"))
    return {entry.text for marked in found.values() for entry in marked.values()}


@pytest.mark.requirement("P-09")
def test_running_heads_and_page_numbers_go_with_a_reason() -> None:
    pages = [
        page(n, line("Annual report", 50, 30), line(f"Page {n} of 9", 280, 770))
        for n in range(1, 10)
    ]
    found = find_furniture(pages, Profile(size=EM, font="Serif"))
    assert all(len(found[n]) == 2 for n in range(1, 10))
    assert {entry.reason for entry in found[3].values()} == {"running_head", "page_number"}


@pytest.mark.requirement("P-09")
def test_numbered_articles_at_the_top_of_pages_are_text() -> None:
    articles = [1, 4, 9, 12, 13, 17, 20, 26]
    pages = [page(n, line(f"Article {a}", 50, 60)) for n, a in enumerate(articles, start=1)]
    assert removed(pages) == set()


@pytest.mark.requirement("P-09")
def test_first_lines_of_pages_in_body_style_are_text() -> None:
    starts = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]
    pages = [page(n, line(f"{w} begins here", 50, 60)) for n, w in enumerate(starts, start=1)]
    assert removed(pages) == set()


def test_changing_heads_in_a_style_of_their_own_go() -> None:
    chapters = ["One", "One", "Two", "Two", "Three", "Three", "Four", "Four"]
    pages = [page(n, line(c, 50, 40, italic=True)) for n, c in enumerate(chapters, start=1)]
    assert removed(pages) == set(chapters)


def test_numbers_set_levels_and_the_outline_wins() -> None:
    headings = [
        HeadingStyle("The Book", 24, True),
        HeadingStyle("1 Start", 14, True),
        HeadingStyle("1.1 Detail", 14, True),
        HeadingStyle("1.1.1 More", 14, True),
        HeadingStyle("2 Next", 14, True),
    ]
    levels = heading_levels(headings, ())
    assert levels[0] < levels[1] < levels[2] < levels[3]
    assert levels[4] == levels[1]
    outline = [OutlineEntry("2 Next", 4, 3)]
    assert heading_levels(headings, outline)[4] == 4


@given(
    st.lists(
        st.builds(
            HeadingStyle,
            st.text(min_size=1, max_size=20),
            st.floats(6, 60).map(lambda size: round(size, 1)),
            st.booleans(),
        ),
        max_size=30,
    )
)
def test_levels_lie_between_one_and_six(headings: list[HeadingStyle]) -> None:
    levels = heading_levels(headings, ())
    assert len(levels) == len(headings)
    assert all(1 <= level <= 6 for level in levels)


@pytest.mark.parametrize("made_up", ["untitled", "Microsoft Word - offer.docx", "scan.pdf", "  "])
def test_titles_that_programs_make_up_are_not_taken(made_up: str) -> None:
    assert best_title(made_up, ()) is None
    assert best_title("Rules of Procedure", ()) == "Rules of Procedure"
