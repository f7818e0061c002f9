"""Disguised instructions are found in every language; what merely looks odd is left alone."""

from __future__ import annotations

import base64
import codecs
import html
import unicodedata
import urllib.parse
from collections.abc import Callable

import pytest

from kb_resources.model import Severity, Verdict
from kb_resources.scan import Scanner, default_packs

_LOOK_ALIKE = str.maketrans("aceopxyiAEOPCTBMHK", "асеорхуіАЕОРСТВМНК")
_LOOK_ALIKE_BACK = str.maketrans("асеорхАЕОРСТВМНК", "aceopxAEOPCTBMHK")
_LEET = str.maketrans("oieast", "013457")
_MORSE_LETTERS = (
    ".- -... -.-. -.. . ..-. --. .... .. .--- -.- .-.. -- -. --- .--. --.- .-. ... - ..- ...- .-- "
    "-..- -.-- --.."
)
_MORSE = dict(zip("abcdefghijklmnopqrstuvwxyz", _MORSE_LETTERS.split(), strict=True))


def _rot13(text: str) -> str:
    return codecs.encode(text, "rot13")


def _bits(text: str, zero: str, one: str) -> str:
    digits = "".join(f"{byte:08b}" for byte in text.encode())
    return digits.translate(str.maketrans({"0": zero, "1": one}))


def _selectors(text: str) -> str:
    return "".join(
        chr(0xFE00 + byte) if byte < 16 else chr(0xE0100 + byte - 16) for byte in text.encode()
    )


def _fullwidth(text: str) -> str:
    return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)


def _bold(text: str) -> str:
    return "".join(chr(0x1D41A + ord(c) - ord("a")) if "a" <= c <= "z" else c for c in text.lower())


def _circled(text: str) -> str:
    return "".join(chr(0x24D0 + ord(c) - ord("a")) if "a" <= c <= "z" else c for c in text.lower())


def _morse(text: str) -> str:
    words = ["".join(c for c in word.lower() if c in _MORSE) for word in text.split()]
    return " / ".join(" ".join(_MORSE[c] for c in word) for word in words if word)


def _b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _tags(text: str) -> str:
    return "".join(chr(0xE0000 + ord(c)) for c in text)


# For any script.
ANY: dict[str, Callable[[str], str]] = {
    "plain in a comment": lambda t: f"<!-- {t} -->",
    "attribute": lambda t: f'<img src="a.png" alt="{t}">',
    "base64": _b64,
    "base64 url-safe": lambda t: base64.urlsafe_b64encode(t.encode()).decode(),
    "base64 over lines": lambda t: "\n".join(
        _b64(t)[i : i + 40] for i in range(0, len(_b64(t)), 40)
    ),
    "base64 twice": lambda t: _b64(_b64(t)),
    "base64 of UTF-16": lambda t: base64.b64encode(t.encode("utf-16-le")).decode(),
    "base32": lambda t: base64.b32encode(t.encode()).decode(),
    "base85": lambda t: base64.b85encode(t.encode()).decode(),
    "hex": lambda t: t.encode().hex(),
    "hex with spaces": lambda t: t.encode().hex(" "),
    "hex escapes": lambda t: (
        "".join(f"\\x{b:02x}" for b in t.encode()) if t.isascii() else t.encode().hex(":")
    ),
    "bits": lambda t: " ".join(f"{b:08b}" for b in t.encode()),
    "numbered entities": lambda t: "".join(f"&#{ord(c)};" for c in t),
    "hex entities": lambda t: "".join(f"&#x{ord(c):x};" for c in t),
    "entities of entities": lambda t: html.escape("".join(f"&#{ord(c)};" for c in t)),
    "percent": lambda t: "".join(f"%{b:02X}" for b in t.encode()),
    "percent twice": lambda t: urllib.parse.quote(urllib.parse.quote(t)),
    "JSON escapes": lambda t: "".join(f"\\u{ord(c):04x}" for c in t),
    "code points": lambda t: " ".join(f"U+{ord(c):04X}" for c in t),
    "decimal codes": lambda t: " ".join(str(ord(c)) for c in t),
    "quoted-printable": lambda t: "".join(f"={b:02X}" for b in t.encode()),
    "zero-width space": "\u200b".join,
    "soft hyphen": "\u00ad".join,
    "word joiner": "\u2060".join,
    "variation selector": _selectors,
    "zero-width bits": lambda t: _bits(t, "\u200b", "\u200c"),
    "combining marks": lambda t: "".join(c + "\u0336" for c in t),
    "spaced": lambda t: " ".join(t.replace(" ", "   ")),
    "dotted": lambda t: "   ".join(".".join(word) for word in t.split()),
    "hyphenated": lambda t: "   ".join("-".join(word) for word in t.split()),
    "one word a line": lambda t: "\n".join(t.split()),
    "capitals": str.upper,
    "odd spaces": lambda t: t.replace(" ", "\u2003 \u00a0"),
    "reversed": lambda t: t[::-1],
    "right-to-left override": lambda t: f"\u202e{t[::-1]}\u202c",
    "look-alikes": lambda t: t.translate(_LOOK_ALIKE if t.isascii() else _LOOK_ALIKE_BACK),
    "joined strings": lambda t: '"' + '" + "'.join(t[i : i + 4] for i in range(0, len(t), 4)) + '"',
    "tags inside words": lambda t: "<b></b>".join(t[i : i + 3] for i in range(0, len(t), 3)),
    "emphasis": lambda t: " ".join(f"{w[:2]}**{w[2:]}" if len(w) > 4 else w for w in t.split()),
    "code fence": lambda t: f"```\n{t}\n```",
    "link title": lambda t: f'[x](https://a.example "{t}")',
    "reference comment": lambda t: f"[//]: # ({t})",
    "JSON value": lambda t: f'{{"note": "{t}"}}',
    "table cell": lambda t: f"| a | {t} |",
}

# For Latin letters.
LATIN: dict[str, Callable[[str], str]] = {
    "rot13": _rot13,
    "fullwidth": _fullwidth,
    "bold letters": _bold,
    "circled letters": _circled,
    "digits for letters": lambda t: t.lower().translate(_LEET),
    "Morse": _morse,
    "tag characters": _tags,
    "no spaces": lambda t: "".join(t.split()),
}

SCANNER = Scanner(default_packs())
OVERRIDES = {e.language: e.hit for e in default_packs().examples if e.rule_id == "override-prior"}
COVER = "Quarterly report.\nRevenue rose by three percent.\n{}\nSee table 2 for details."


def plain(text: str) -> str:
    """A Latin text in plain ASCII, as an attacker would write it for an ASCII-only channel."""
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()


@pytest.mark.requirement("P-42", "P-43")
@pytest.mark.parametrize("name", ANY)
def test_disguise_is_seen_through_in_every_language(name: str) -> None:
    missed = [
        language
        for language, text in OVERRIDES.items()
        if SCANNER.scan(COVER.format(ANY[name](text))).verdict is Verdict.CLEAN
    ]
    assert missed == []


@pytest.mark.requirement("P-42", "P-43")
@pytest.mark.parametrize("name", LATIN)
def test_latin_disguise_is_seen_through(name: str) -> None:
    texts = {lang: plain(t) for lang, t in OVERRIDES.items() if lang in {"en", "de", "hr", "sl"}}
    missed = [
        language
        for language, text in texts.items()
        if SCANNER.scan(COVER.format(LATIN[name](text))).verdict is Verdict.CLEAN
    ]
    assert missed == []


@pytest.mark.requirement("P-44")
@pytest.mark.parametrize("name", ["base64", "hex", "rot13", "zero-width bits", "percent"])
def test_instruction_in_an_encoding_is_high(name: str) -> None:
    disguise = {**ANY, **LATIN}[name]
    result = SCANNER.scan(COVER.format(disguise(OVERRIDES["en"])))
    assert any(f.severity is Severity.HIGH and f.decoded for f in result.findings)


@pytest.mark.parametrize(
    "text",
    [
        "Family emoji 👨\u200d👩\u200d👧\u200d👦, heart ❤️, keycap 1️⃣.",
        "می\u200cخواهم کتاب\u200cها را بخوانم.",
        "ספר \u200fחדש\u200e נמצא כאן.",
        "The logo: data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQ"
        "VR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==",
        "Spoiler (rot13): Gur ohgyre qvq vg.",
        "Palindromes: racecar, level, never odd or even.",
        "SOS in Morse is ... --- ...",
        "За́мок на холме и замо́к на двери.",
        "sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "Call 0800 123 45 67 89 10 11 12 13 or write to a&amp;b@office.example.",
        "A B C D E F G are the notes; x y z are the axes.",
        "Dr.Müller: 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30",
    ],
)
def test_harmless_oddities_are_clean(text: str) -> None:
    assert SCANNER.scan(text).verdict is Verdict.CLEAN
