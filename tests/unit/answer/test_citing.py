"""Citations: their place, their selectors, and what becomes of them in another version."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb_resources.answer.citing import (
    Check,
    CitationStatus,
    Quotation,
    VersionText,
    check,
    quotation,
)
from kb_resources.retrieve import deep_link

from .test_context import hit

QUOTE = "Leave is 25 working days."


def text(*pages: str, version: int = 1, paged: bool = True) -> VersionText:
    spans, at = {}, 0
    for number, page in enumerate(pages, 1):
        spans[number] = (at, at + len(page))
        at += len(page) + 2
    body = "\n\n".join(pages)
    return VersionText(version, f"{version:064d}", body, spans if paged else {})


def cited(where: VersionText, page: int | None, said: str = QUOTE) -> Quotation:
    start = where.page_start(page) or 0
    at = where.body.index(said, start)
    return Quotation(
        scope="acme",
        document_id="d",
        version=where.version,
        digest=where.digest,
        passage_id="d.0.0.0",
        page=page,
        char_start=at - start,
        char_end=at - start + len(said),
        body_start=at,
        body_end=at + len(said),
        quote=said,
        prefix=where.body[max(0, at - 32) : at],
        suffix=where.body[at + len(said) :][:32],
    )


OLD = text("Cover", f"About leave. {QUOTE} Ask early.")


def status(now: VersionText | None) -> Check:
    return check(cited(OLD, 2), now)


@pytest.mark.requirement("O-47")
def test_the_four_outcomes() -> None:
    assert status(OLD).status is CitationStatus.STANDS
    newer = text("Cover", f"About leave. {QUOTE} Ask late.", version=2)
    assert status(newer).status is CitationStatus.SUPERSEDED
    moved = text("Cover", "New.", f"About leave. {QUOTE} Ask early.", version=2)
    found = status(moved)
    assert found.status is CitationStatus.MOVED
    assert found.place is not None
    assert (found.place.page, found.version_now) == (3, 2)
    assert moved.body[found.place.body_start : found.place.body_end] == QUOTE
    gone = status(text("Cover", "Leave is 20 working days.", version=2))
    assert gone.status is CitationStatus.MISSING
    assert gone.place is None
    assert status(None) == Check(CitationStatus.MISSING, None, None)


def test_the_same_version_parsed_anew_can_move_words() -> None:
    again = text("Cover", f"# Leave\n\nAbout leave. {QUOTE} Ask early.")
    assert status(again).status is CitationStatus.MOVED


def test_words_that_run_over_the_page_they_were_on_have_moved() -> None:
    long = text("Cover x", f"{QUOTE}", version=2)
    kept = replace(cited(text(f"Cover\n\n{QUOTE}"), 1), version=1)
    assert check(kept, text("Cover", QUOTE, version=2)).status is CitationStatus.MOVED
    assert check(kept, long).status is CitationStatus.MOVED


def test_of_recurring_words_those_with_the_old_surroundings_are_found() -> None:
    now = text(
        "Cover",
        f"Old staff. {QUOTE} Forget it. Then: About leave. {QUOTE} Ask early.",
        version=2,
    )
    place = status(now).place
    assert place is not None
    assert now.body[: place.body_start].endswith("About leave. ")


def test_words_inside_other_words_are_not_found() -> None:
    before = text("They are now able to carry over days.", paged=False)
    kept = cited(before, None, "able to carry over")
    for now in ("They are unable to carry over days.", "They’re all unable to carry over days."):
        assert check(kept, text(now, version=2, paged=False)).place is None


def test_other_typography_of_the_same_words_is_found() -> None:
    kept = cited(text("It reads “no later than noon” today.", paged=False), None, "“no later than")
    now = text('Now: it reads "no  later than noon" today.', version=2, paged=False)
    found = check(kept, now)
    assert found.status is CitationStatus.MOVED
    assert found.place is not None
    assert now.body[found.place.body_start : found.place.body_end] == '"no  later than'


def test_an_erased_citation_is_missing_and_never_compared() -> None:
    erased = replace(cited(OLD, 2), quote="")
    assert check(erased, OLD).status is CitationStatus.MISSING


@pytest.mark.requirement("O-43", "P-29")
@given(st.lists(st.text(min_size=1, max_size=40), min_size=1, max_size=4), st.data())
def test_selectors_lead_back_to_the_words(pages: list[str], data: st.DataObject) -> None:
    where = text(*pages)
    number = data.draw(st.integers(1, len(pages)))
    page = pages[number - 1]
    start = data.draw(st.integers(0, len(page) - 1))
    end = data.draw(st.integers(start + 1, len(page)))
    found = replace(hit(page), page=number, char_start=0, char_end=len(page))
    made = quotation(found, start, end, where)
    assert made is not None
    quote, position = made.selector
    assert where.body[position["start"] : position["end"]] == quote["exact"] == page[start:end]
    joined = quote["prefix"] + quote["exact"] + quote["suffix"]
    assert where.body[position["start"] - len(quote["prefix"]) :].startswith(joined)
    assert page[made.char_start : made.char_end] == made.quote


def test_a_passage_that_its_version_no_longer_holds_gives_no_quotation() -> None:
    assert quotation(replace(hit("Leave is 25 days."), page=9), 0, 5, OLD) is None
    assert quotation(replace(hit("Other words here."), page=1), 0, 5, OLD) is None


def test_a_deep_link_names_scope_document_version_and_passage() -> None:
    assert deep_link("acme", "doc-1", 2, "doc-1.ab.cd.0") == "/#/d/acme/doc-1?v=2&p=doc-1.ab.cd.0"
    assert deep_link("a", "d", 1, "x&v=9#/") == "/#/d/a/d?v=1&p=x%26v%3D9%23%2F"
