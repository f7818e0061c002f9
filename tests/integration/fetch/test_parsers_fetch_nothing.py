"""Documents that name addresses: reading them connects to nobody."""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING

import pytest

from kb_resources.acquire import sniff
from kb_resources.model import ParsedDocument, Refusal
from kb_resources.parse.route import parse_here

if TYPE_CHECKING:
    from tests.integration.fetch.conftest import Site

WORDS = "Every employee has thirty days of paid annual leave in a calendar year."
HTML = """<!doctype html><html><head><base href="{0}"><link rel="stylesheet" href="{0}a.css">
<meta http-equiv="refresh" content="0;url={0}b"><script src="{0}c.js"></script>
<style>@import url({0}d.css); body {{ background: url({0}e.png) }}</style></head><body>
<h1>Leave</h1><p>{1}</p><img src="{0}f.png" srcset="{0}g.png 2x"><iframe src="{0}h"></iframe>
<object data="{0}i"></object><embed src="{0}j"><video src="{0}k" poster="{0}l"></video>
<svg><image href="{0}m.png"/><use href="{0}n.svg#x"/></svg>
<form action="{0}o"><input type="image" src="{0}p.png"></form></body></html>"""
XML = """<?xml version="1.0"?><?xml-stylesheet href="{0}a.xsl"?>
<!DOCTYPE note SYSTEM "{0}b.dtd" [<!ENTITY % p SYSTEM "{0}c"> <!ENTITY e SYSTEM "{0}d"> %p;]>
<note xmlns:xi="http://www.w3.org/2001/XInclude"><xi:include href="{0}e"/><p>{1} &e;</p></note>"""
SVG = """<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">
<image xlink:href="{0}a.png"/><style>@import "{0}b.css";</style><text>{1}</text></svg>"""
MARKDOWN = "# Leave\n\n![picture]({0}a.png) <img src='{0}b.png'>\n\n{1}\n\n[more]({0}c)\n"
MAIL = (
    "From: a@b.example\r\nTo: c@d.example\r\nSubject: Leave\r\nMIME-Version: 1.0\r\n"
    "Content-Type: text/html; charset=utf-8\r\nContent-Location: {0}x\r\n\r\n" + HTML
)
RTF = r"{{\rtf1 {{\field{{\*\fldinst INCLUDEPICTURE \"{0}a.png\"}}{{\fldrslt x}}}} {1}}}"

_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def docx(site: str) -> bytes:
    """A document with external images, template, frame and field."""
    types = (
        f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels" ContentType='
        '"application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" '
        'ContentType="application/xml"/><Override PartName="/word/document.xml" ContentType='
        '"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/>'
        "</Types>"
    )
    rels = (
        f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="r1" '
        f'Type="{_R}/officeDocument" Target="word/document.xml"/></Relationships>'
    )
    outside = "".join(
        f'<Relationship Id="x{n}" Type="{_R}/{kind}" Target="{site}{kind}" TargetMode="External"/>'
        for n, kind in enumerate(
            ("image", "attachedTemplate", "frame", "oleObject", "subDocument", "hyperlink")
        )
    )
    body = (
        f'<w:document xmlns:w="{_W}" xmlns:r="{_R}" '
        'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"><w:body><w:p><w:r>'
        f'<w:t>{WORDS}</w:t></w:r></w:p><w:p><w:r><w:drawing><a:blip r:link="x0"/></w:drawing>'
        f'</w:r><w:fldSimple w:instr=" INCLUDETEXT {site}field "><w:r><w:t>field</w:t></w:r>'
        "</w:fldSimple></w:p></w:body></w:document>"
    )
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("[Content_Types].xml", types)
        archive.writestr("_rels/.rels", rels)
        archive.writestr("word/document.xml", body)
        archive.writestr(
            "word/_rels/document.xml.rels",
            f'<Relationships xmlns="{_PACKAGE}/relationships">{outside}</Relationships>',
        )
    return made.getvalue()


@pytest.mark.requirement("P-49")
@pytest.mark.filterwarnings("default::DeprecationWarning")  # docling's, about itself
@pytest.mark.parametrize(
    ("name", "form", "is_read"),
    [
        ("page.html", HTML, True),
        ("note.xml", XML, None),
        ("picture.svg", SVG, None),
        ("leave.md", MARKDOWN, True),
        ("leave.eml", MAIL, True),
        ("leave.rtf", RTF, True),
        ("leave.docx", None, True),
    ],
)
def test_nothing_that_a_document_names_is_fetched(
    site: Site, name: str, form: str | None, is_read: bool | None
) -> None:
    data = docx(site.url()) if form is None else form.format(site.url(), WORDS).encode()
    parsed = parse_here(data, sniff(data, name), name)
    assert site.connections == 0
    if is_read:
        assert isinstance(parsed, ParsedDocument), parsed
        assert "thirty days" in parsed.body
    else:
        assert isinstance(parsed, (ParsedDocument, Refusal))
        if isinstance(parsed, Refusal):
            assert parsed.reason
