"""Decoders: stretches of a text that read as another text, as edits.

Belongs here: finding and decoding. Does not belong here: judging what came out (`scanner`).
Each decoder is a function from a text's layout to ascending, disjoint edits; patterns are linear
and quantifiers bounded, so that no input makes one slow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kb_resources.scan.decoders import encodings, escapes, invisible, pieces, spelling
from kb_resources.scan.decoders.layout import Layout
from kb_resources.scan.offsets import Edit

__all__ = ["DECODERS", "Decoder", "Layout"]


@dataclass(frozen=True, slots=True)
class Decoder:
    """A way to hide text.

    Attributes:
        name: for findings: "base64", "zero-width characters", …
        find: edits for a text, ascending and disjoint.
        encoding: whether what it decodes is unreadable as it stands, so that an instruction in
            it is high; False for what merely breaks words up.
        invisible: whether it looks for invisible characters only.
    """

    name: str
    find: Callable[[Layout], Iterator[Edit]]
    encoding: bool = True
    invisible: bool = False


DECODERS = (
    Decoder("tag characters", invisible.tag_characters, invisible=True),
    Decoder("variation selectors", invisible.variation_selectors, invisible=True),
    Decoder("zero-width bits", invisible.zero_width_bits, invisible=True),
    Decoder("invisible characters", invisible.invisible_characters, invisible=True),
    Decoder("bidi override", invisible.bidi_overrides, invisible=True),
    Decoder("HTML entities", escapes.html_entities),
    Decoder("URL encoding", escapes.percent),
    Decoder("character escapes", escapes.backslash),
    Decoder("quoted-printable", escapes.quoted_printable),
    Decoder("base64", encodings.base64_text),
    Decoder("base64 in lines", pieces.base64_lines),
    Decoder("base64 by word", pieces.base64_words),
    Decoder("base32", encodings.base32_text),
    Decoder("base85", encodings.base85_text),
    Decoder("hex", encodings.hex_text),
    Decoder("binary", encodings.binary_text),
    Decoder("character codes", encodings.decimal_text),
    Decoder("Morse code", encodings.morse_text),
    Decoder("spaced letters", spelling.spaced_letters),
    Decoder("joined strings", spelling.joined_strings, encoding=False),
    Decoder("markup in words", spelling.markup_in_words, encoding=False),
    Decoder("hyphenation", spelling.hyphenation, encoding=False),
)
