"""A document's title and facts: what it says of itself wins, and there is always a title."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb_resources.model import ParsedDocument
from kb_resources.parse import DraftBlock, Reading, parse_here
from kb_resources.parse.reading import assemble

ANY = st.text(max_size=400)
PARAGRAPH = DraftBlock("paragraph", "Every employee has thirty days of paid leave.")


def document_of(reading: Reading, name: str = "leave.pdf") -> ParsedDocument:
    found = assemble(reading, "application/pdf", name)
    assert isinstance(found, ParsedDocument)
    return found


@pytest.mark.requirement("W-39")
@given(ANY, ANY, ANY)
def test_every_document_has_a_title_on_one_line(said: str, heading: str, name: str) -> None:
    drafts = (DraftBlock("heading", heading, level=1), PARAGRAPH)
    title = document_of(Reading(drafts, "pdf", title=said), name).title
    assert title == title.strip()
    assert 0 < len(title) <= 300
    assert len(title.splitlines()) == 1


@pytest.mark.requirement("W-39")
@pytest.mark.parametrize(
    ("said", "headings", "title"),
    [
        ("Leave rules", ("Chapter 1",), "Leave rules"),
        ("", ("Chapter 1", "Chapter 2"), "Chapter 1"),
        (" \n\t ", ("Chapter 1",), "Chapter 1"),
        ("", (), "leave"),
    ],
)
def test_a_stated_title_wins_over_headings_and_those_over_the_name(
    said: str, headings: tuple[str, ...], title: str
) -> None:
    drafts = (PARAGRAPH, *(DraftBlock("heading", text, level=1) for text in headings))
    assert document_of(Reading(drafts, "pdf", title=said)).title == title


@pytest.mark.requirement("W-39")
def test_further_facts_are_kept_and_empty_ones_are_not() -> None:
    facts = {"author": "Ana  Kovač", "publication": "Der Bote", "date": " ", "x-own": "42"}
    kept = document_of(Reading((PARAGRAPH,), "html", metadata=facts)).metadata
    assert kept == {"author": "Ana Kovač", "publication": "Der Bote", "x-own": "42"}


@pytest.mark.requirement("W-39")
@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        ("---\ntitle: Leave rules\n---\n\n# Chapter 1\n\nText.", "text/markdown"),
        ("<title>Leave rules</title><h1>Chapter 1</h1><p>Text of it.</p>", "text/html"),
        ('{"title": "Leave rules", "chapter": {"text": "Text."}}', "application/json"),
        ("Subject: Leave rules\nFrom: a@example.org\n\nChapter 1\n\nText.", "message/rfc822"),
        (r"{\rtf1\ansi{\info{\title Leave rules}}Chapter 1\par Text.\par}", "application/rtf"),
    ],
)
def test_each_format_says_its_title_in_its_own_way(data: str, media_type: str) -> None:
    found = parse_here(data.encode(), media_type, "some-file")
    assert isinstance(found, ParsedDocument), found
    assert found.title == "Leave rules"
