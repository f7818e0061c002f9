"""Which single-byte code page a text was written in.

Belongs here: the candidates and how likely each reading of the bytes is. Unicode forms and declared
encodings are `encoding.py`'s. Letter shares are rounded from public-domain UDHR translations
(https://www.unicode.org/udhr/), pooled per script: the point is to tell letters from wreckage, not
languages apart. Greek and Hebrew are here so that they are not taken for Cyrillic.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from kb_resources.parse.encoding import Decoded

_SAMPLE_BYTES = 16_384
_CLEAR_MARGIN = 0.15
_FEW = 0.01  # so few bytes beyond ASCII cannot spoil a text
_RARE = 0.004  # percent: a letter no text of the language group is likely to hold
_BROKEN = -9.0
_NEUTRAL = 0.3  # a quotation mark or dash says nothing about letters


@dataclass(frozen=True, slots=True)
class _Script:
    """Letters of a script with their share in percent, and what reads like words in it.

    Attributes:
        shares: lower-case letter → percent.
        alone: whether its letters stand among their own kind (no ASCII letter beside them).
        floor: least mean log share of a text in this script.
    """

    shares: dict[str, float]
    alone: bool
    floor: float


_CYRILLIC = _Script(
    dict(
        zip(
            "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъјљњћђџѓќѕёіїєґ",
            (
                *(10.5, 8.7, 8.6, 7.8, 6.5, 6.2, 5.1, 4.7, 4.5, 4.1, 3.5, 3.1, 3.2, 2.8, 2.7),
                *(1.8, 1.2, 1.2, 1.7, 1.7, 1.6, 1.4, 1.1, 0.9, 0.9, 0.7, 0.5, 0.5, 0.35, 0.3),
                *(0.3, 0.6, 2.0, 0.5, 0.7, 0.6, 0.2, 0.1, 0.1, 0.2, 0.05, 0.1, 0.1, 0.05, 0.05),
                0.01,
            ),
            strict=True,
        )
    ),
    alone=True,
    floor=0.4,
)
_GREEK = _Script(
    dict(
        zip(
            "αοιετνσηυρπκμλςωγδθχφβζξψ",
            (
                *(12, 10, 9, 8, 8, 7.5, 5, 5, 4, 4.3, 4, 4, 3.3, 3, 4, 2, 1.7, 1.7, 1.3, 1.2, 1),
                *(0.6, 0.4, 0.4, 0.2),
            ),
            strict=True,
        )
    )
    | dict.fromkeys("άέήίόύώ", 1.5),
    alone=True,
    floor=0.4,
)
_HEBREW = _Script(
    dict(
        zip(
            "יוהלארתשבמנםחעכדפקןטצגזסךףץ",
            (
                *(11, 10, 9, 7, 6, 6, 5.5, 5, 5, 5, 4, 3.5, 2.5, 3, 3, 2.5, 2, 2.2, 1.5, 1.2),
                *(1.2, 1.2, 1.2, 1.4, 0.8, 0.3, 0.2),
            ),
            strict=True,
        )
    ),
    alone=True,
    floor=0.4,
)
_LATIN = _Script(
    dict.fromkeys("éáíàèç", 0.5)
    | dict.fromkeys("äöü", 3.0)
    | dict.fromkeys("čšžć", 3.0)
    | {"ß": 1.5, "đ": 0.8}
    | dict.fromkeys("óúñêãôâîûëïùå", 0.2)
    | dict.fromkeys("ěřůýťďňłąęśźżńőű", 0.2)
    | dict.fromkeys("øæœìòõăîșțľĺŕ", 0.03),
    alone=False,
    floor=-2.2,
)
_PAGES = (
    *(("cp1251", _CYRILLIC), ("koi8-r", _CYRILLIC), ("cp866", _CYRILLIC)),
    *(("iso-8859-5", _CYRILLIC), ("cp1252", _LATIN), ("cp1250", _LATIN)),
    *(("iso-8859-2", _LATIN), ("cp852", _LATIN), ("cp850", _LATIN), ("cp1253", _GREEK)),
    *(("iso-8859-7", _GREEK), ("cp1255", _HEBREW)),
)
# What the code pages add beside letters: quotes, dashes, spaces, signs.
_MARKS = frozenset("\u00a0«»„“”‘’‚‹›–—…§№€°·•©®™¿¡£±×²³½¼¾ªº¶´ \u00ad")
_IN_WORDS = frozenset("’\u00ad·")
_WORDS_OF_ONE = frozenset("аивскоуяіη")


def guess(data: bytes) -> Decoded | None:
    """Decode with the code page that makes the likeliest text of the bytes.

    Args:
        data: bytes that are valid in no Unicode form.

    Returns:
        The text with `certain` False where a second reading scores almost the same, or None when
        no reading looks like words.
    """
    sample = data[:_SAMPLE_BYTES]
    readings: list[tuple[float, str, str, _Script]] = []
    for page, script in _PAGES:
        text = sample.decode(page, "replace")
        readings.append((_score(text, script), page, text, script))
    readings.sort(key=lambda reading: -reading[0])
    score, page, text, script = readings[0]
    if score < script.floor:
        few = sum(byte > 0x7F for byte in sample) <= len(sample) * _FEW
        return Decoded(data.decode("cp1252", "replace"), "cp1252", certain=False) if few else None
    rival = next((s for s, _, other, _ in readings[1:] if other != text), -math.inf)
    return Decoded(data.decode(page, "replace"), page, certain=score - rival > _CLEAR_MARGIN)


def _score(text: str, script: _Script) -> float:
    """Mean log share of the characters beyond ASCII, with penalties for broken words."""
    total, count, before = 0.0, 0, " "
    for i, char in enumerate(text):
        if char >= "\x80":
            count += 1
            total += _likelihood(char, before, text[i + 1 : i + 2] or " ", script)
        before = char
    return total / count if count else -math.inf


def _likelihood(char: str, before: str, after: str, script: _Script) -> float:
    if not char.isalpha():
        inside = before.isalpha() and after.isalpha() and char not in _IN_WORDS
        return _NEUTRAL if char in _MARKS and not inside else _BROKEN
    value = math.log(script.shares.get(char.lower(), _RARE))
    if char.isupper() and before.islower():
        value -= 6.0
    neighbours = [c for c in (before, after) if c.isalpha()]
    if script.alone:
        # Such a letter next to a Latin one is no word.
        value -= 4.0 * sum(c.isascii() for c in neighbours)
        return value if neighbours or char.lower() in _WORDS_OF_ONE else value - 1.0
    # Accented letters stand among plain ones.
    return value - 3.0 * sum(not c.isascii() for c in neighbours)
