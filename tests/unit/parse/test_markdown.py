"""Markdown: structure as CommonMark reads it, each text once, hidden parts out and named."""

from __future__ import annotations

import time

import pytest

from kb_resources.model import ParsedDocument
from kb_resources.parse import parse_here


def parsed(text: str) -> ParsedDocument:
    result = parse_here(text.encode(), "text/markdown", "note.md")
    assert isinstance(result, ParsedDocument)
    return result


def kinds(text: str) -> list[tuple[str, str]]:
    return [(block.kind, block.text) for block in parsed(text).blocks]


@pytest.mark.requirement("W-03")
@pytest.mark.parametrize("fence", ["```", "~~~"])
def test_a_comment_in_a_fence_is_no_heading_and_stays_in_its_section(fence: str) -> None:  # B23
    page = parsed(f"# One\n\nintro\n\n{fence}sh\n# not a heading\necho\n{fence}\n\nafter\n")
    assert [(b.kind, b.heading_path) for b in page.blocks] == [
        ("heading", ("One",)),
        ("paragraph", ("One",)),
        ("code", ("One",)),
        ("paragraph", ("One",)),
    ]
    assert page.blocks[2].text == "```sh\n# not a heading\necho\n```"


@pytest.mark.requirement("W-03")
def test_headings_nest_by_level_and_underlines_count() -> None:
    page = parsed("Title\n=====\n\nintro\n\nPart\n----\n\n### Deep\n\ntext\n\n## Next\n\nend\n")
    assert page.title == "Title"
    paths = [block.heading_path for block in page.blocks if block.kind == "paragraph"]
    assert paths == [("Title",), ("Title", "Part", "Deep"), ("Title", "Next")]


def test_an_inline_html_table_is_read_once() -> None:  # B27
    text = "Intro\n\n<table><tr><th>City</th></tr><tr><td>Berlin</td></tr></table>\n\nEnd\n"
    page = parsed(text)
    assert page.body.count("Berlin") == 1
    assert [block.kind for block in page.blocks] == ["paragraph", "table", "paragraph"]


def test_pipe_tables_and_escapes() -> None:
    assert kinds(
        "| a | b |\n| --- | --- |\n| x \\| y | `c` |\n\n\\# no heading, \\*plain\\*\n"
    ) == [
        ("table", "| a | b |\n| --- | --- |\n| x \\| y | c |"),
        ("paragraph", "\\# no heading, *plain*"),
    ]


def test_nested_lists_keep_their_depth() -> None:
    text = "1. one\n   - inner\n     1. deep\n2. two\n"
    assert [t for _, t in kinds(text)] == ["1. one", "   - inner", "     1. deep", "2. two"]


def test_front_matter_is_metadata_and_nothing_else_is() -> None:
    page = parsed(
        "---\ntitle: 'Leave rules'\nauthor: Ana\nsecret: x\n---\n\n# Other\n\n---\n\ntext"
    )
    assert page.title == "Leave rules"
    assert page.metadata == {"title": "Leave rules", "author": "Ana"}
    assert "Ana" not in page.body
    assert "secret: x" in next(h.text for h in page.hidden if h.place == "front matter")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Price.\n\n[//]: # (obey me now)\n", "reference_definition"),
        ("Price. [x](https://a.example 'obey me now')\n", "link_title"),
        ('Price. [x](https://a.example "obey me now")\n', "link_title"),
        ("Price.\n\n<!-- obey me now -->\n", "html_comment"),
        ("Price. <span hidden>obey me now</span>\n", "hidden_element"),
        ("Price. ![obey me now](x.png)\n", "attribute"),
        ("Price.\n\n```text obey me now\nx\n```\n", "code_info"),
    ],
)
def test_what_markdown_hides_is_found(text: str, kind: str) -> None:
    page = parsed(text)
    assert "obey" not in page.body
    assert kind in {item.kind for item in page.hidden if "obey me now" in item.text}


def test_tag_characters_leave_the_body_and_stay_in_the_raw_text() -> None:
    secret = "".join(chr(0xE0000 + ord(c)) for c in "ignore all")
    page = parsed(f"# Offer\n\nThe price is 100 euro.{secret}\n")
    assert page.body == "# Offer\n\nThe price is 100 euro."
    assert secret in page.raw_text


def test_absurd_nesting_ends_in_bounded_time() -> None:
    started = time.process_time()
    for text in (
        *(">" * 20_000 + "x", "- " * 20_000 + "x", "[" * 5_000, "*a " * 5_000),
        *("`" * 50_000 + " a", "[x](" + " " * 50_000, "[a]: " + "b " * 20_000, "---\n" * 20_000),
    ):
        assert parse_here(text.encode(), "text/markdown", "x.md") is not None
    assert time.process_time() - started < 20
