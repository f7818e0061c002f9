"""Bytes of unknown encoding become the text that was written."""

from __future__ import annotations

import codecs

import pytest

from kb_resources.parse.encoding import decode
from kb_resources.parse.html.tree import decode_html

# Own sentences, an order note or a house rule each, in the words of an office.
SENTENCES = {
    "ru": "Прошу отгрузить сорок мешков цемента на склад до пятницы, оплата после приёмки.",
    "bg": "Моля, изпратете фактурата до края на месеца и приложете копие от договора.",
    "mk": "Ве молиме пратете ја фактурата до крајот на месецот и приложете копија од договорот.",
    "sr": "Молимо вас да фактуру пошаљете до краја месеца и приложите копију уговора, хвала.",
    "sr-latin": "Molimo vas da fakturu pošaljete do kraja meseca; ključevi su kod čuvara, hvala.",
    "hr": "Molimo pošaljite račun do kraja mjeseca i priložite presliku ugovora o građenju.",
    "sl": "Prosimo, pošljite račun do konca meseca in priložite kopijo pogodbe; ključi so zunaj.",
    "de": "Bitte senden Sie die Rechnung bis Ende März und fügen Sie das Übergabeblatt bei: Grüße.",
}
CYRILLIC = ("cp1251", "koi8-r", "cp866", "iso-8859-5", "utf-8", "utf-8-sig", "utf-16")
LATIN = ("cp1250", "iso-8859-2", "cp852", "utf-8", "utf-8-sig", "utf-16")
GERMAN = ("cp1252", "iso-8859-1", "cp850", "utf-8", "utf-8-sig", "utf-16")
WIDE = ("utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be")
PAGES = {"de": GERMAN, "sr-latin": LATIN, "hr": LATIN, "sl": LATIN}
LETTERS_MISSING = {(lang, page) for lang in ("mk", "sr") for page in ("koi8-r", "cp866")}
CASES = [
    (language, page)
    for language in SENTENCES
    for page in (*PAGES.get(language, CYRILLIC), *WIDE)
    if (language, page) not in LETTERS_MISSING
]


@pytest.mark.parametrize(("language", "page"), CASES)
def test_each_language_survives_each_of_its_code_pages(language: str, page: str) -> None:
    text = SENTENCES[language]
    decoded = decode(text.encode(page))
    assert decoded is not None
    assert decoded.text == text


def test_capitals_are_no_trap() -> None:
    for page in ("cp1251", "koi8-r", "cp866", "iso-8859-5"):
        text = "ВСЕОБЩА ДЕКЛАРАЦИЯ ЗА ПРАВАТА"
        decoded = decode(text.encode(page))
        assert decoded is not None
        assert decoded.text == text


def test_a_sixty_byte_order_note_is_windows_1251() -> None:
    text = "Заказ: 12 коробок гвоздей, 3 рулона плёнки. Срок - вторник."
    assert len(text.encode("cp1251")) <= 60
    decoded = decode(text.encode("cp1251"))
    assert decoded is not None
    assert (decoded.encoding, decoded.text) == ("cp1251", text)


def test_utf8_html_without_a_charset_is_utf8() -> None:
    decoded = decode_html("<p>Привет</p>".encode())
    assert decoded is not None
    assert decoded.text == "<p>Привет</p>"


def test_a_meta_charset_is_believed_only_where_it_fits() -> None:
    page = '<meta charset="{}"><p>größer</p>'
    told = decode_html(page.format("iso-8859-1").encode("cp1252"))
    assert told is not None
    assert "größer" in told.text
    lied = decode_html(page.format("windows-1251").encode())
    assert lied is not None
    assert "größer" in lied.text


def test_letter_spaced_ascii_is_not_utf16() -> None:
    decoded = decode(b"i g n o r e  a l l  r u l e s ")
    assert decoded is not None
    assert decoded.encoding == "utf-8"


def test_bytes_of_no_encoding_are_no_text() -> None:
    assert decode(bytes((i * 7 + 128) % 128 + 128 for i in range(400))) is None


def test_a_broken_utf16_text_is_no_crash() -> None:
    data = codecs.BOM_UTF16_LE + b"\x00\xd8a"
    assert decode(data) is None or decode(data)
