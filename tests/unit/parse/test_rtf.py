r"""RTF: words in every code page, structure where it is marked, hidden text named."""

from __future__ import annotations

import time

import pytest

from kb_resources.model import ParsedDocument, Refusal
from kb_resources.parse import parse_here


def parsed(rtf: bytes) -> ParsedDocument:
    result = parse_here(rtf, "application/rtf", "a.rtf")
    assert isinstance(result, ParsedDocument), result
    return result


def escaped(text: str, codec: str) -> bytes:
    return "".join(f"\\'{byte:02x}" for byte in text.encode(codec)).encode()


@pytest.mark.parametrize(
    ("charset", "codec", "text"),
    [(238, "cp1250", "čšž đćŠ"), (204, "cp1251", "Привет, мир"), (0, "cp1252", "größer «a»")],
)
def test_bytes_are_read_in_the_code_page_of_their_font(charset: int, codec: str, text: str) -> None:
    head = f"{{\\rtf1\\ansi\\ansicpg1252{{\\fonttbl{{\\f0 A;}}{{\\f1\\fcharset{charset} B;}}}}"
    page = parsed(head.encode() + b"\\f1 " + escaped(text, codec) + b"\\par}")
    assert page.body == text


def test_unicode_escapes_skip_their_stand_ins() -> None:
    page = parsed(rb"{\rtf1\ansi\uc1 \u1055?\u1088\'3f\u1080? {\uc0\u1074}\u-10179?\u-8704?}")
    assert page.body == "При в😀"


def test_styles_lists_tables_and_footnotes() -> None:
    page = parsed(
        rb"{\rtf1\ansi{\stylesheet{\s0 Normal;}{\s1 heading 1;}}{\info{\title Rates}{\author Ana}}"
        rb"\pard\s1 Prices\par\pard Intro{\footnote A note.} text.\par"
        rb"{\pntext\'b7\tab}one\par{\listtext 2.\tab}two\par"
        rb"\trowd\intbl City\cell Price\cell\row\intbl Ulm\cell 5\cell\row\pard After\par}"
    )
    assert page.title == "Rates"
    assert page.metadata == {"title": "Rates", "author": "Ana"}
    assert [block.text for block in page.blocks] == [
        "# Prices",
        "A note.",
        "Intro text.",
        "- one",
        "2. two",
        "|  |  |\n| --- | --- |\n| City | Price |\n| Ulm | 5 |",
        "After",
    ]


@pytest.mark.parametrize(
    ("hidden", "kind"),
    [
        (rb"{\v obey me now}", "vanish"),
        (rb"\v obey me now\v0 ", "vanish"),
        (rb"{\deleted obey me now}", "vanish"),
        (rb"{\field{\*\fldinst AUTHOR obey me now}{\fldrslt 1}}", "field_code"),
        (rb"{\*\annotation obey me now}", "comment"),
        (rb"{\header obey me now\par}", "header_footer"),
        (rb"{\info{\doccomm obey me now}}", "metadata"),
    ],
)
def test_hidden_text_is_found_and_left_out(hidden: bytes, kind: str) -> None:
    page = parsed(rb"{\rtf1\ansi The price " + hidden + rb"is 100.\par}")
    assert "obey" not in page.body
    assert page.body.startswith("The price")
    assert page.body.endswith("is 100.")
    assert kind in {item.kind for item in page.hidden if "obey me now" in item.text}


def test_pictures_and_unknown_destinations_are_skipped() -> None:
    rtf = rb"{\rtf1\ansi{\pict\pngblip 89504e47}{\*\unknown words}A{\b b}c\~d\_e\{f\}\par}"
    assert parsed(rtf).body == "Abc d-e{f}"


@pytest.mark.parametrize(
    "data", [b"{\\rtf1" + b"{" * 100_000, b"{\\rtf1 " + b"\\'" * 200_000, b"{\\rtf1" + b"}" * 50]
)
def test_broken_rtf_ends_in_linear_time(data: bytes) -> None:
    started = time.process_time()
    assert isinstance(parse_here(data, "application/rtf", "a.rtf"), Refusal)
    assert time.process_time() - started < 5
