"""For everyone: accessibility checks, keyboard, phone width, and how little is loaded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import expect

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Request

    from tests.e2e.page.conftest import Reader, Site

LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
MOST_BYTES = 100_000


def views(site: Site) -> dict[str, str]:
    leave = site.hit("annual leave entitlement")["document_id"]
    cited = site.hit("LX40-X-0250 order number")
    return {
        "start": "s/handbook",
        "search": "s/handbook?q=annual%20leave&hist=1",
        "nothing": "s/handbook?q=zzyzx&mode=text&lang=de",
        "documents": "docs/handbook",
        "document": f"d/handbook/{cited['document_id']}?v=1&p={cited['passage_id']}",
        "old version": f"d/handbook/{leave}?v=1",
        "history": f"d/handbook/{leave}?tab=history",
        "changes": f"d/handbook/{leave}?tab=diff",
        "upload": "upload/handbook",
        "review": "review/handbook",
        "watches": "watches/handbook",
        "error": "d/handbook/there-is-none",
        "unknown scope": "s/nowhere",
    }


def violations(page: Page) -> list[str]:
    found: dict[str, Any] = (
        Axe().run(page, options={"runOnly": {"type": "tag", "values": LEVELS}}).response
    )
    return [
        f"{item['id']}: {node['html'][:160]} {node['failureSummary'][:200]}"
        for item in found["violations"]
        for node in item["nodes"]
    ]


def test_no_view_breaks_level_aa(themed: Reader, site: Site) -> None:
    found = {}
    for name, address in views(site).items():
        page = themed.open(address)
        if bad := violations(page):
            found[name] = bad
    page = themed.open("s/handbook?q=leave")
    page.get_by_text("Filters").click()
    page.locator(".hit button", has_text="Cite").first.click()
    if bad := violations(page):
        found["dialog and filters"] = bad
    assert found == {}


def test_signing_in_breaks_no_rule_and_explains_a_wrong_key(site: Site, browser: Browser) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{site.url}/#/docs/handbook")
    key = page.get_by_label("API key")
    expect(key).to_be_focused()
    key.fill("kb_wrong_key")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("not known here")
    assert violations(page) == []
    key.fill(site.key)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Documents", level=1)).to_be_visible()
    page.get_by_role("button", name="Account of").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("API key")).to_be_visible()
    context.close()


def test_the_keyboard_alone_leads_from_a_question_to_its_place(reader: Reader) -> None:
    page = reader.open("upload/handbook")
    page.get_by_role("link", name="Documents").press("Enter")
    expect(page.get_by_role("heading", name="Documents", level=1)).to_be_focused()
    page.keyboard.press("/")
    expect(page.get_by_label("Title, file or id")).to_be_focused()
    page.keyboard.press("Escape")
    page.goto(f"{reader.site.url}/#/s/handbook")
    reader.settled()
    page.wait_for_selector("main[data-view=s]")
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type("lost laptop")
    page.keyboard.press("Enter")
    expect(page.locator(".hit").first).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    expect(page.locator(".hit h2 a").first).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    expect(page.locator("section.cited")).to_be_focused()
    assert reader.complaints == []


def test_the_skip_link_comes_first_and_leads_past_the_head(reader: Reader) -> None:
    page = reader.open("docs/handbook")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()


def test_results_are_said_to_screen_readers(reader: Reader) -> None:
    page = reader.open("s/handbook?q=lost%20laptop")
    expect(page.get_by_role("status").first).to_contain_text("passages found")
    for role in ("banner", "main", "navigation", "search"):
        expect(page.get_by_role(role).first).to_be_visible()


def test_a_phone_scrolls_one_way_only(phone: Reader, site: Site) -> None:
    for name, address in views(site).items():
        page = phone.open(address)
        wide, room = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert (name, wide) == (name, room)
        small = page.evaluate(
            """[...document.querySelectorAll('a, button, select, summary')]
              .filter(one => one.closest('nav.views, .ask, .decide, .drop'))
              .filter(one => one.checkVisibility())
              .map(one => [one.textContent, one.getBoundingClientRect()])
              .filter(([, box]) => box.height < 24 || box.width < 24).map(([text]) => text)"""
        )
        assert (name, small) == (name, [])
        assert violations(page) == []


@pytest.mark.parametrize("view", ["search", "document", "review", "upload"])
def test_little_is_loaded_and_only_from_here(reader: Reader, site: Site, view: str) -> None:
    loaded: dict[str, int] = {}
    reader.page.on("response", lambda answer: loaded.update({answer.url: len(answer.body())}))
    reader.open(views(site)[view])
    reader.page.wait_for_load_state("networkidle")
    ours = {url: size for url, size in loaded.items() if "/api/" not in url}
    assert all(url.startswith(site.url) for url in loaded)
    assert len(ours) > 4
    assert sum(ours.values()) < MOST_BYTES


def test_all_views_together_are_small(reader: Reader, site: Site) -> None:
    sent: dict[str, int] = {}

    def note(done: Request) -> None:
        if "/api/" not in done.url and done.url.startswith(site.url):
            sent[done.url] = done.sizes()["responseBodySize"]

    reader.page.on("requestfinished", note)
    for address in views(site).values():
        reader.page.goto(f"{site.url}/#/{address}")
        reader.settled()
    assert len(sent) > 15
    assert sum(sent.values()) < MOST_BYTES


def test_no_text_becomes_markup() -> None:
    page = Path(__file__).parents[3] / "kb" / "http" / "page"
    scripts = [file.read_text() for file in page.rglob("*.js")]
    assert len(scripts) > 10
    for word in (".innerHTML", ".outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert not [script for script in scripts if word in script]


def test_the_policy_forbids_what_the_page_does_not_need(reader: Reader, site: Site) -> None:
    answer = reader.page.goto(f"{site.url}/")
    assert answer is not None
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    reader.open("s/handbook?q=leave")
    reader.page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'),"
        " {textContent: 'window.broken = 1'}))"
    )
    assert reader.page.evaluate("window.broken") is None
