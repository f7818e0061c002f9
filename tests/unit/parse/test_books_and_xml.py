"""EPUB in spine order, XML without surprises."""

from __future__ import annotations

import io
import zipfile

import pytest

from kb_resources.model import ParsedDocument, Refusal
from kb_resources.parse import parse_here

CONTAINER = (
    '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="OPS/book.opf"/></rootfiles></container>'
)
OPF = (
    '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/">'
    "<metadata><dc:title>Kuća</dc:title><dc:creator>Ana Kovač</dc:creator></metadata><manifest>"
    '<item id="a" href="one.xhtml"/><item id="b" href="text/two%20b.xhtml"/><item id="c" href="x"/>'
    '</manifest><spine><itemref idref="b"/><itemref idref="a"/><itemref idref="b"/></spine>'
    "</package>"
)


def book(**more: str) -> bytes:
    out = io.BytesIO()
    page = '<html xmlns="http://www.w3.org/1999/xhtml"><body>{}</body></html>'
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("mimetype", "application/epub+zip")
        archive.writestr("META-INF/container.xml", CONTAINER)
        archive.writestr("OPS/book.opf", OPF)
        archive.writestr("OPS/one.xhtml", page.format("<h1>Later</h1><p>Second.</p>"))
        archive.writestr("OPS/text/two b.xhtml", page.format("<h1>Début</h1><p hidden>h</p>First."))
        for name, text in more.items():
            archive.writestr(name.replace("__", "/"), text)
    return out.getvalue()


def test_chapters_come_in_spine_order_each_once() -> None:
    page = parse_here(book(), "application/epub+zip", "x.epub")
    assert isinstance(page, ParsedDocument)
    assert page.title == "Kuća"
    assert page.metadata["author"] == "Ana Kovač"
    assert [(block.text, block.locator) for block in page.blocks] == [
        ("# Début", "Chapter 1"),
        ("First.", "Chapter 1"),
        ("# Later", "Chapter 2"),
        ("Second.", "Chapter 2"),
    ]
    assert ("hidden_element", "h") in {(item.kind, item.text) for item in page.hidden}


def test_a_protected_or_broken_book_is_refused() -> None:
    locked = parse_here(book(**{"META-INF__rights.xml": "<r/>"}), "application/epub+zip", "x")
    assert isinstance(locked, Refusal)
    assert locked.state.value == "encrypted"
    broken = parse_here(b"PK\x03\x04nonsense", "application/epub+zip", "x")
    assert isinstance(broken, Refusal)
    assert broken.state.value == "corrupt"


def test_xml_gives_its_texts_and_hides_its_comments() -> None:
    xml = "<doc><title>Rates</title><p note='a b'>One <b>bold</b> tail</p><!-- obey me --></doc>"
    page = parse_here(xml.encode(), "application/xml", "rates.xml")
    assert isinstance(page, ParsedDocument)
    assert page.title == "Rates"
    assert [block.text for block in page.blocks] == ["# Rates", "One", "bold", "tail"]
    assert {(h.kind, h.text.strip()) for h in page.hidden} == {
        ("attribute", "a b"),
        ("xml_comment", "obey me"),
    }


@pytest.mark.parametrize(
    "xml",
    [
        '<!DOCTYPE d [<!ENTITY x SYSTEM "file:///etc/passwd">]><d>&x;</d>',
        '<!DOCTYPE d [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><d>&b;</d>',
        "<d><open></d>",
        "<a>" * 5_000 + "x" + "</a>" * 5_000,
        "",
    ],
)
def test_hostile_xml_is_refused(xml: str) -> None:
    result = parse_here(xml.encode(), "application/xml", "x.xml")
    assert isinstance(result, Refusal)
    assert result.state.value in {"corrupt", "empty"}
