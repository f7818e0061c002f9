"""Signs by which a line shows what it is: bullets, numbers, captions, page numbers.

Belongs here: regular expressions over one line's text, in the eight languages and script-neutral
where possible. Not here: geometry and fonts.
Bullet characters: Unicode blocks General Punctuation, Geometric Shapes and Dingbats.
"""

from __future__ import annotations

import re

_BULLETS = "•·◦▪▫●○■□◼◻‣⁃➢➤►▶✓✔❖◆◇∙⦁✦★☐☑※"
_NUMBER = r"\(?(?:\d{1,3}|[a-zA-Zа-яёђѓѕјљњћќџА-Я]|[ivx]{1,5}|[IVX]{1,5})[.)]"

#: A bullet or an ordered marker at the start of a line, followed by a space or the line's end.
MARKER = re.compile(rf"^\s*(?P<mark>[{_BULLETS}]|[-–—*](?=\s)|{_NUMBER})(?:\s+|$)")
#: A bullet alone, without ordered markers; it may touch its text.
BULLET = re.compile(rf"^\s*[{_BULLETS}]\s*|^\s*[-–—*](?:\s+|$)")
#: A token that starts a numbered heading, list item or note, alone.
NUMBER_TOKEN = re.compile(
    r"^(?:\d+(?:\.\d+)*\.?|[A-Z](?:\.\d+)+\.?|[IVX]+\.|\(?[a-z\d]{1,3}\)|§+)$"
)
#: "2.3 Title", "Chapter 4", "IV. Title", "§ 4".
NUMBERED = re.compile(
    r"^(?:(?:chapter|section|part|appendix|annex|article|kapitel|abschnitt|teil|anhang|artikel"
    r"|глава|раздел|часть|приложение|статья|част|приложение|член|чл\.|поглавље|део|прилог"
    r"|poglavlje|odjeljak|dio|prilog|članak|clanak|deo|član|poglavje|člen|priloga)\s+\S+"
    r"|§+\s*\d+\w*|\d+(?:\.\d+)*\.?|[A-Z](?:\.\d+)+\.?|[IVX]+\.)(?:\s+\S|$)",
    re.IGNORECASE,
)
#: The number in front of a heading, for its level: "2.3.1".
OUTLINE_NUMBER = re.compile(r"^(?:§\s*)?(\d+(?:\.\d+)*)\.?(?:\s|$)")
CAPTION = re.compile(
    r"^(?:table|figure|fig\.|tab\.|listing|scheme|algorithm|exhibit|chart"
    r"|abbildung|abb\.|tabelle"
    r"|рис(?:унок|\.)|таблица|табл\.|таблици|фигура|фиг\.|схема|слика|табела"
    r"|slika|tablica|tabela|preglednica|grafikon|graf)\s*[A-Z]?\.?\d[\d.\-–]*(?:[.:)]|\s|$)"
    r"|^(?:example|beispiel|пример|primer|primjer)\s*\d+[-–:]",
    re.IGNORECASE,
)
PAGE_NUMBER = re.compile(
    r"^\W*(?:page|seite|стр(?:аница|\.)?|str(?:anica|an|\.)?|s\.|p\.)?\s*"
    r"(?:\d{1,5}|[ivxlc]{1,7})"
    r"(?:\s*(?:/|of|von|из|от|od)\s*\d{1,5})?\W*$",
    re.IGNORECASE,
)
SENTENCE_END = re.compile(r"[.!?:;…。！？؟۔]['\"»”“’)\]]*$")
LEADERS = re.compile(r"(?:\.\s?){4,}|…{2,}|(?:·\s?){4,}|_{6,}")
FOOTNOTE = re.compile(r"^\s*(?:\d{1,3}\)?|[*†‡§¶]{1,3})\s*\S")
RTL = re.compile(r"[\u0590-\u08ff\ufb1d-\ufefc]")


def split_marker(text: str) -> tuple[str, str] | None:
    """A list line as (marker, rest): `-` for bullets, else as printed. None when it is none."""
    found = BULLET.match(text)
    if found and found.end() < len(text):
        return "-", text[found.end() :]
    found = MARKER.match(text)
    if found and found.end() < len(text):
        return found["mark"], text[found.end() :]
    return None
