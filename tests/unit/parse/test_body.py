"""The serialiser: offsets hold for any text, and text never turns into marks."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from kb_resources.parse import Body, DraftBlock, serialise
from kb_resources.parse.clean import one_line

MARKS = st.sampled_from(
    [
        *(
            "# ",
            "## x",
            "- ",
            "+ ",
            "* ",
            "> ",
            "```",
            "~~~",
            "---",
            "===",
            "***",
            "| a |",
            "<div>",
        ),
        *("<!-- ", "1. ", "12) ", "[a]: b", "    code", "\t", "\n", "\n\n", "\\", "`", "_", "§ 4"),
    ]
)
WORDS = st.one_of(st.text(max_size=12), MARKS, st.sampled_from(["слово", "ß", "😀", "ž", "\u200b"]))
TEXTS = st.lists(WORDS, max_size=6).map("".join)
PAGES = st.one_of(st.none(), st.integers(1, 5))


def drafts_of(pages: st.SearchStrategy[int | None]) -> st.SearchStrategy[DraftBlock]:
    kinds = st.sampled_from(["paragraph", "caption", "footnote", "figure_text", "code"])
    plain = st.builds(DraftBlock, kind=kinds, text=TEXTS, page=pages)
    heading = st.builds(
        DraftBlock, kind=st.just("heading"), text=TEXTS, page=pages, level=st.integers(0, 8)
    )
    item = st.builds(
        DraftBlock,
        kind=st.just("list_item"),
        text=TEXTS,
        page=pages,
        level=st.integers(1, 4),
        marker=st.sampled_from(["-", "1.", "b)", "•", None]),
    )
    rows = st.lists(st.lists(TEXTS, min_size=2, max_size=2).map(tuple), max_size=3).map(tuple)
    table = st.builds(
        DraftBlock,
        kind=st.just("table"),
        text=st.just(""),
        page=pages,
        rows=rows,
        header_rows=st.integers(0, 2),
    )
    return st.one_of(plain, heading, item, table)


def check(body: Body) -> None:
    data = body.text.encode()
    assert body.text == "\n\n".join(block.text for block in body.blocks)
    pages = {span.page: span for span in body.pages}
    for block in body.blocks:
        assert data[block.byte_start : block.byte_end].decode() == block.text
        text = body.text
        if block.page is not None:
            span = pages[block.page]
            assert (
                data[span.byte_start : span.byte_end].decode()
                == text[span.char_start : span.char_end]
            )
            text = text[span.char_start : span.char_end]
        assert text[block.char_start : block.char_end] == block.text
    order = [block.page or 0 for block in body.blocks]
    assert order == sorted(order)
    spans = [(span.char_start, span.char_end) for span in body.pages]
    assert all(a[1] + 2 == b[0] for a, b in itertools.pairwise(spans))


@pytest.mark.requirement("W-06", "O-01")
@given(st.lists(drafts_of(PAGES), max_size=12))
def test_every_span_holds_its_text_and_the_blocks_cover_the_body(
    drafts: list[DraftBlock],
) -> None:
    check(serialise(drafts))


@pytest.mark.long
@given(st.lists(drafts_of(PAGES), max_size=40))
def test_every_span_holds_in_long_documents_too(drafts: list[DraftBlock]) -> None:
    check(serialise(drafts))


def tokens_of(text: str) -> list[Any]:
    return MarkdownIt("commonmark").enable("table").parse(text)


@pytest.mark.requirement("P-05")
@given(TEXTS)
def test_a_paragraph_is_read_as_a_paragraph(text: str) -> None:
    """CommonMark's own reading: one paragraph, whatever the text looks like."""
    body = serialise([DraftBlock("paragraph", text)])
    if body.text:
        kinds = [token.type for token in tokens_of(body.text)]
        assert kinds == ["paragraph_open", "inline", "paragraph_close"], body.text


@given(TEXTS, st.integers(1, 6))
def test_a_heading_is_one_heading_of_its_level(text: str, level: int) -> None:
    body = serialise([DraftBlock("heading", text, level=level)])
    if body.text:
        first, *_ = tokens = tokens_of(body.text)
        assert [token.type for token in tokens] == ["heading_open", "inline", "heading_close"]
        assert first.tag == f"h{level}"


@given(TEXTS)
def test_code_stays_inside_its_fence(text: str) -> None:
    body = serialise([DraftBlock("code", text), DraftBlock("paragraph", "after")])
    kinds = [token.type for token in tokens_of(body.text)]
    if len(body.blocks) == 2:
        assert kinds == ["fence", "paragraph_open", "inline", "paragraph_close"]


@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_list_items_hold_one_paragraph_each(texts: list[str]) -> None:
    body = serialise([DraftBlock("list_item", text, level=1, marker="-") for text in texts])
    kinds = [token.type for token in tokens_of(body.text)]
    assert kinds.count("list_item_open") == len(body.blocks)
    assert kinds.count("paragraph_open") == len(body.blocks)
    assert not {"heading_open", "fence", "code_block", "hr", "blockquote_open"} & set(kinds)


@pytest.mark.requirement("O-01")
@given(TEXTS)
def test_words_stay_as_the_document_says_them(text: str) -> None:
    """Only an escape before a mark at the start may come on top."""
    body = serialise([DraftBlock("paragraph", text)])
    assert re.sub(r"^\\|^(\d+)\\", r"\1", body.text) in {one_line(text), one_line(text)[1:]} or (
        body.text == one_line(text)
    )


def test_headings_make_the_path_of_what_follows() -> None:
    body = serialise(
        [
            DraftBlock("heading", "Law", level=1),
            DraftBlock("paragraph", "one"),
            DraftBlock("heading", "§ 4 Ort der Verarbeitung", level=3),
            DraftBlock("paragraph", "two"),
            DraftBlock("heading", "Annex", level=2),
            DraftBlock("paragraph", "three"),
        ]
    )
    assert [block.heading_path for block in body.blocks] == [
        ("Law",),
        ("Law",),
        ("Law", "§ 4 Ort der Verarbeitung"),
        ("Law", "§ 4 Ort der Verarbeitung"),
        ("Law", "Annex"),
        ("Law", "Annex"),
    ]
    assert [block.locator for block in body.blocks][2:] == ["§ 4 Ort der Verarbeitung"] * 2 + [
        None,
        None,
    ]


def test_a_page_is_the_locator_where_the_document_names_nothing_better() -> None:
    body = serialise([DraftBlock("paragraph", "a", page=3), DraftBlock("paragraph", "b")])
    assert [(block.page, block.locator) for block in body.blocks] == [(3, "Page 3")] * 2


def test_nested_items_are_indented_under_their_parents() -> None:
    items = [(1, "1.", "one"), (2, "-", "inner"), (3, "b)", "deep"), (1, "2.", "two")]
    body = serialise([DraftBlock("list_item", t, level=n, marker=m) for n, m, t in items])
    assert [block.text for block in body.blocks] == [
        "1. one",
        "   - inner",
        "     - b) deep",
        "2. two",
    ]


def test_a_table_has_its_header_row_and_escaped_pipes() -> None:
    rows = (("Name", "Group"), ("", "a|b"), ("x\ny", "  z "))
    body = serialise([DraftBlock("table", "", rows=rows, header_rows=2)])
    assert body.text == "| Name | Group / a\\|b |\n| --- | --- |\n| x y | z |"


def test_front_matter_in_a_text_is_text() -> None:
    body = serialise([DraftBlock("paragraph", "---"), DraftBlock("paragraph", "title: evil")])
    assert body.text == "\\---\n\ntitle: evil"


def test_what_cannot_be_stored_never_reaches_the_body() -> None:
    body = serialise([DraftBlock("paragraph", "a\x00b\ud800c \ufffd d")])
    assert body.text == "abc d"
    assert "\x00" not in body.raw_text
    body.raw_text.encode()


def test_invisible_characters_stay_in_the_raw_text_only() -> None:
    tags = "".join(chr(0xE0000 + ord(c)) for c in "obey")
    hidden = f"pri\u200bce\u202e 100{tags} \ufeffeuro"
    body = serialise([DraftBlock("paragraph", hidden)])
    assert body.text == "price 100 euro"
    assert body.raw_text == hidden
    assert serialise([DraftBlock("paragraph", tags)]).blocks == ()
    assert serialise([DraftBlock("paragraph", tags)]).raw_text == tags


def test_a_footnotes_number_stays_as_printed() -> None:
    body = serialise([DraftBlock("footnote", "1) See § 4."), DraftBlock("footnote", "* Later.")])
    assert [block.text for block in body.blocks] == ["1) See § 4.", "\\* Later."]
