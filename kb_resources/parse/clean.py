"""What a reader sees of a text: control, invisible and layout characters taken out.

Belongs here: character level cleaning of one text. Deciding whether an element is visible is the
format readers' work, judging what was hidden is the scan's. The dropped characters stay in
`ParsedDocument.raw_text`. Classes follow https://www.unicode.org/reports/tr36/ and UAX 9.
"""

from __future__ import annotations

import re
import unicodedata

# Always invisible and never needed to read a text: C0 and C1 controls but tab and line breaks,
# soft hyphen, zero-width space, word joiner, byte order mark, the bidi controls, tag characters.
_DROP = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e"
    "\u2060-\u206f\ufeff\ufff0-\uffff\U000e0000-\U000e007f]"
)
# Joiners and selectors mean something beside emoji and in some scripts only.
_JOINER = re.compile("[\u200c\u200d]+")
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]+")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_SPACE = re.compile(r"\s+")
_NO_JOINER_SCRIPTS = ("LATIN", "CYRILLIC", "GREEK", "DIGIT")


def well_formed(text: str) -> str:
    """The text with lone surrogates replaced by U+FFFD, so that it encodes as UTF-8."""
    return _LONE_SURROGATE.sub("\ufffd", text)


def visible(text: str) -> str:
    """The text without characters a reader cannot see; line breaks stay.

    U+FFFD is dropped too: it marks a loss, which `Coverage.replacement_share` reports, and is
    nothing anybody can search for. Joiners and variation selectors stay where they shape a glyph.
    """
    if text.isascii() and text.isprintable():
        return text
    text = _DROP.sub("", well_formed(text))
    text = _JOINER.sub(_joiner, text)
    return _SELECTORS.sub(_selector, text)


def collapse(text: str) -> str:
    """Every run of white space as one space, none at the ends."""
    return _SPACE.sub(" ", text).strip()


def one_line(text: str) -> str:
    """What a reader sees of a text, on one line."""
    return collapse(visible(text))


def _joiner(match: re.Match[str]) -> str:
    before = match.string[: match.start()][-1:]
    after = match.string[match.end() :][:1]
    return "" if _needs_no_joiner(before) or _needs_no_joiner(after) else match[0][0]


def _needs_no_joiner(char: str) -> bool:
    name = unicodedata.name(char, "") if char else ""
    return not name or char.isspace() or name.startswith(_NO_JOINER_SCRIPTS)


def _selector(match: re.Match[str]) -> str:
    first = match[0][0]
    before = match.string[: match.start()][-1:]
    if not before:
        return ""
    if first >= "\U000e0100":  # ideographic variants only
        return first if "CJK UNIFIED" in unicodedata.name(before, "") else ""
    return first if unicodedata.category(before) in {"So", "Sk", "Sm", "Po", "Nd", "Lo"} else ""
