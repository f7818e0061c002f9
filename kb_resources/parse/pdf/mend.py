"""Small repairs of extracted text: glued words, ligatures, stray controls, line-end hyphens.

Belongs here: pure functions from strings to strings. Nothing is rewritten beyond what the page
shows: quotes, dashes and spelling stay as the document has them.
Ligatures and soft hyphens: https://www.unicode.org/reports/tr14/ and the FB00 block.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

#: What must never reach a text: unmapped glyphs in the spellings of the common extractors.
GARBAGE = re.compile(r"\ufffd|\(cid:\d+\)|GLYPH<[^>]*>|[\ue000-\uefff\uf100-\uf8ff]")

_LIGATURES = str.maketrans(
    {"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"}
)
# Private codes of the Symbol and Wingdings fonts that word processors use as bullets.
_SYMBOLS = str.maketrans(
    {
        "\uf0b7": "•",
        "\uf0a7": "▪",
        "\uf06e": "■",
        "\uf06f": "□",
        "\uf0d8": "➢",
        "\uf0fc": "✓",
        "\uf076": "❖",
        "\uf02d": "-",
        "\uf0e0": "→",
        "\uf0ae": "→",
    }
)
_SYMBOL_CODES = re.compile(r"[\uf000-\uf0ff]")
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_SPACES = re.compile(r"[\s\u00a0\u2007\u202f]+")
_SOFT_HYPHEN = "\u00ad"
_HYPHENS = ("-", "\u2010", _SOFT_HYPHEN)


def plain(text: str) -> str:
    """Text without ligature glyphs, control characters and symbol-font codes."""
    if text.isascii() and text.isprintable():
        return text
    text = text.replace("\x02", "-")  # a hyphen in some TeX and PDFium encodings
    text = _CONTROLS.sub("", text.translate(_LIGATURES).translate(_SYMBOLS))
    return _SYMBOL_CODES.sub("•", text)


def without_garbage(text: str) -> str:
    """Text with every unmapped glyph taken out."""
    return GARBAGE.sub("", text)


def count_garbage(text: str) -> int:
    """How many unmapped glyphs a text holds."""
    return (
        0 if text.isascii() and "(" not in text and "<" not in text else len(GARBAGE.findall(text))
    )


class WordBreaks:
    """Splits and joins words by the tokens that a second reader found on the same page."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._known = frozenset(tokens)
        self._glued: dict[str, str] = {}
        for length in (2, 3, 4):
            for start in range(len(tokens) - length + 1):
                run = tokens[start : start + length]
                joined = "".join(run)
                if len(joined) < 80:
                    self._glued.setdefault(joined, " ".join(run))

    def split(self, word: str) -> str:
        """The word with the spaces that it lost, or unchanged."""
        if len(word) < 4 or word in self._known:
            return word
        return self._glued.get(word, word)

    def is_word(self, text: str) -> bool:
        """Whether the second reader saw exactly this token."""
        return text in self._known


def squeeze(text: str) -> str:
    """White space collapsed to single spaces, ends trimmed."""
    return _SPACES.sub(" ", text).strip()


def join_lines(lines: Iterable[str]) -> str:
    """Lines of one paragraph as running text; a word cut at a line end is put together.

    A hyphen at a line end goes when letters stand on both sides and the next line goes on in
    lower case; in front of a capital or a digit it belongs to the word and stays.
    """
    out = ""
    for line in lines:
        text = squeeze(line)
        if not text:
            continue
        if not out:
            out = text
        elif out.endswith(_HYPHENS) and len(out) > 1 and (out[-2].isalpha() or out[-2] == ")"):
            cut = out[-1] == _SOFT_HYPHEN or (text[0].islower() and out[-2].islower())
            out = (out[:-1] if cut and out[-2] != ")" else out) + text
        else:
            out = f"{out} {text}"
    return out.replace(_SOFT_HYPHEN, "")
