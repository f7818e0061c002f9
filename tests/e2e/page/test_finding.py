"""Finding and reading: from a question to the cited place in its document."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from kb.ingesting import Options, ingest_paths

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

    from tests.e2e.page.conftest import Reader, Site

LOST = "How long do I have to report a lost laptop?"


def search(reader: Reader, query: str, more: str = "") -> Page:
    return reader.open(f"s/handbook?q={quote(query)}{more}")


@pytest.mark.requirement("P-26", "P-28")
def test_a_passage_shows_its_words_headings_and_version(reader: Reader) -> None:
    page = search(reader, LOST)
    first = page.locator(".hit").first
    expect(first.locator("h2")).to_have_text("Information security rules")
    expect(first.locator(".path li")).to_have_text(["Reporting"])
    expect(first).to_contain_text("within one hour to the security line")
    assert {word.lower() for word in first.locator("mark").all_inner_texts()} == {"report", "lost"}
    expect(first.locator(".facts")).to_contain_text("Version 1")
    expect(first.locator(".text")).to_have_attribute("lang", "en")
    assert reader.complaints == []


@pytest.mark.requirement("P-76")
def test_a_hit_opens_its_document_at_the_passage(reader: Reader) -> None:
    page = search(reader, LOST)
    page.locator(".hit h2 a").first.click()
    reader.settled()
    [cited] = page.locator("section.cited").all()
    expect(cited).to_be_focused()
    expect(cited).to_be_in_viewport()
    expect(cited).to_contain_text("within one hour to the security line")
    assert "report" in {word.lower() for word in cited.locator("mark").all_inner_texts()}
    assert reader.complaints == []


@pytest.mark.requirement("P-76")
@pytest.mark.parametrize(
    "query", ["LX40-X-0250 order number", "Сколько составляют суточные?", "§ 3 Übertragung Urlaub"]
)
def test_a_deep_link_shows_exactly_the_passage(reader: Reader, site: Site, query: str) -> None:
    hit = site.hit(query)
    link = site.ask(f"passages/handbook/{hit['passage_id']}/context")["link"]
    reader.page.goto("about:blank")
    reader.page.goto(site.url + link)
    reader.settled()
    cited = reader.page.locator("section.cited")
    expect(cited).to_be_in_viewport()
    shown = re.sub(r"\W+", "", cited.inner_text().removeprefix("Cited passage"))
    assert shown == re.sub(r"\W+|(?<=\|)-+(?=\|)", "", hit["text"])
    if hit["page"]:
        expect(reader.page.locator(".sheet .page", has_text=f"Page {hit['page']}")).to_be_visible()


def test_the_outline_leads_to_a_section(reader: Reader, site: Site) -> None:
    hit = site.hit("annual leave entitlement")
    page = reader.open(f"d/handbook/{hit['document_id']}")
    contents = page.get_by_role("navigation", name="Contents")
    contents.get_by_role("link", name="Special leave").click()
    expect(page.locator("h3.heading", has_text="Special leave")).to_be_focused()
    expect(contents.get_by_role("link", name="Special leave")).to_have_attribute(
        "aria-current", "location"
    )


def test_filters_narrow_the_search_and_are_kept_in_the_address(reader: Reader) -> None:
    page = search(reader, "leave")
    page.get_by_text("Filters").click()
    page.get_by_label("Language of the text").select_option("de")
    expect(page).to_have_url(re.compile("lang=de"))
    reader.settled()
    facts = page.locator(".hit .facts").all_inner_texts()
    assert facts
    assert all("German" in one for one in facts)
    page.reload()
    reader.settled()
    expect(page.locator(".choices")).to_contain_text("German")


@pytest.mark.requirement("P-30")
def test_superseded_text_shows_when_asked_for_and_says_so(reader: Reader) -> None:
    page = search(reader, "26 working days of paid annual leave", "&hist=1&k=20")
    old = page.locator(".hit", has_text="Superseded").first
    expect(old).to_contain_text("Version 1")
    page.goto("about:blank")
    page = search(reader, "26 working days of paid annual leave", "&k=20")
    expect(page.locator(".hit", has_text="Superseded")).to_have_count(0)


def test_history_and_changes_read_as_text(reader: Reader, site: Site) -> None:
    hit = site.hit("annual leave entitlement")
    page = reader.open(f"d/handbook/{hit['document_id']}?tab=history")
    expect(page.locator(".versions > li")).to_have_count(2)
    page.get_by_role("link", name="Changes since version 1").click()
    reader.settled()
    expect(page.locator("del", has_text="26")).to_be_visible()
    expect(page.locator("ins", has_text="28")).to_be_visible()
    assert "# " not in page.locator(".diff").inner_text()
    folded = page.get_by_role("button", name="without changes")
    folded.first.click()
    expect(page.locator(".diff")).to_contain_text("Carrying leave over")


@pytest.mark.parametrize("address", ["d/handbook", "d/handbook/"])
def test_an_address_that_was_cut_before_the_document_leads_to_all_of_them(
    reader: Reader, address: str
) -> None:
    page = reader.open(address)
    expect(page).to_have_url(re.compile("#/docs/handbook$"))
    expect(page.locator("main[data-view=docs]")).to_be_visible()


def test_an_old_version_says_that_it_is_old(reader: Reader, site: Site) -> None:
    hit = site.hit("annual leave entitlement")
    page = reader.open(f"d/handbook/{hit['document_id']}?v=1")
    expect(page.get_by_text("no longer in force")).to_be_visible()
    page.get_by_role("link", name="Read version 2").click()
    reader.settled()
    expect(page.locator("article.sheet")).to_contain_text("28 working days")


def test_a_passage_that_is_gone_is_explained(reader: Reader, site: Site) -> None:
    hit = site.hit("annual leave entitlement")
    page = reader.open(f"d/handbook/{hit['document_id']}?v=2&p={hit['document_id']}.0.0.0")
    expect(page.get_by_text("The cited passage is not in version 2.")).to_be_visible()


def test_nothing_is_said_helpfully(reader: Reader) -> None:
    page = search(reader, "zzyzx quux", "&mode=text&lang=de")
    expect(page.get_by_role("heading", name="Nothing here answers that")).to_be_visible()
    page.get_by_role("link", name="Search all languages").click()
    reader.settled()
    assert "lang=" not in page.url


def test_a_row_that_answers_stands_under_its_header_row(reader: Reader) -> None:
    page = search(reader, "What is the supply voltage of the LX40?", "&answer=1")
    row = page.locator(".answer .rows").first
    expect(row).to_have_text(
        re.compile(r"^\| Property \|.*\|\s*\| Supply voltage \| 9 to 32 V DC \|")
    )
    expect(row).to_have_css("white-space", "pre-line")


def test_an_unknown_document_is_an_explained_error(reader: Reader) -> None:
    page = reader.open("d/handbook/there-is-none")
    expect(page.get_by_role("alert")).to_contain_text("Not here")


@pytest.mark.parametrize("view", ["s/nowhere?q=leave", "docs/nowhere", "d/nowhere/memo"])
def test_an_unknown_scope_is_told_and_the_others_stay_at_hand(reader: Reader, view: str) -> None:
    page = reader.open(view)
    expect(page.get_by_role("alert")).to_contain_text("no scope “nowhere” that you may read")
    expect(page.get_by_role("search")).to_have_count(0)
    page.get_by_label("Scope", exact=True).select_option("handbook")
    expect(page.get_by_role("alert")).to_have_count(0)
    assert "/handbook" in page.url


def test_a_scope_made_since_signing_in_is_found(reader: Reader, site: Site) -> None:
    page = reader.open("s/handbook")
    path = site.folder / "later.md"
    path.write_text("# Later\n\nThe later scope holds one note about bicycles.\n")
    options = Options(scope="later", through_dagster=False)
    ingest_paths([path], options, settings=site.settings)
    page.evaluate("location.hash = '#/docs/later'")
    expect(page.get_by_role("link", name="Later")).to_be_visible()


@pytest.mark.requirement("P-31")
def test_a_hostile_text_stays_text(reader: Reader, site: Site) -> None:
    hit = site.hit("valve of the hostile example")
    assert "onerror" in hit["text"]
    page = search(reader, "valve of the hostile example")
    expect(page.locator(".hit .text").first).to_contain_text(
        '<img src=x onerror="window.broken = 1">'
    )
    page = reader.open(f"d/handbook/{hit['document_id']}?v=1&p={hit['passage_id']}")
    sheet = page.locator("article.sheet")
    expect(sheet).to_contain_text("<script>window.broken = 1</script>")
    assert page.evaluate("window.broken") is None
    for tag in ("img", "script", "svg", "b", "iframe", "a"):
        expect(sheet.locator(tag)).to_have_count(0)
    assert reader.complaints == []


def test_addresses_become_links_only_when_asked_for(reader: Reader, site: Site) -> None:
    hit = site.hit("valve of the hostile example")
    page = reader.open(f"d/handbook/{hit['document_id']}")
    page.get_by_label("Make web addresses links").check()
    link = page.locator("article.sheet a")
    expect(link).to_have_count(1)
    expect(link).to_have_attribute("href", "https://example.org/valves?a=1&b=2")
    expect(link).to_have_attribute("rel", re.compile("noopener.*noreferrer"))


def test_a_view_that_comes_late_takes_nobodys_place(reader: Reader, site: Site) -> None:
    document = site.hit("annual leave")["document_id"]
    page = reader.open("docs/handbook")
    held: list[Route] = []
    page.route(f"**/api/v1/documents/handbook/{document}", lambda route: held.append(route))
    with page.expect_request(f"**/api/v1/documents/handbook/{document}"):
        page.goto(f"{site.url}/#/d/handbook/{document}")
    page.goto(f"{site.url}/#/s/handbook")
    field = page.get_by_role("searchbox", name="Question or words")
    expect(field).to_be_visible()
    with page.expect_response("**/body"):  # which the late view asks for once it is drawn
        for route in held:
            route.continue_()
    expect(field).to_be_visible()
    expect(page.locator(".doc-head")).to_have_count(0)
    reader.settled()
    assert reader.complaints == []
