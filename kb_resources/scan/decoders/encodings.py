"""Text written in another alphabet of symbols: base64, base32, base85, hex, bits, codes, Morse.

Belongs here: stretches that decode to readable text. Source: RFC 4648; ITU-R M.1677 for Morse.
"""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Callable, Iterator

from kb_resources.scan.decoders.layout import Layout
from kb_resources.scan.decoders.readable import looks_readable, readable
from kb_resources.scan.offsets import Edit

# What decides whether a stretch is text; the rest is decoded only if this much of it is. All
# lengths of groups (2, 4, 5, 8 characters) divide it.
_PROBE_CHARS = 40_000
# Patterns are held against the runs of `layout` only; `_within` sees to the border on the left.
_BASE64 = re.compile(
    r"[A-Za-z0-9+/_-]{16,}(?:[ \t]{0,8}\r?\n[ \t>|#*/]{0,12}[A-Za-z0-9+/_-]{4,}){0,500}={0,2}"
)
_BASE64_OPENING = re.compile(r"[A-Za-z0-9+/_-]{16,}")
_BASE32 = re.compile(r"[A-Z2-7]{16,}={0,6}")
_BASE85_LEAST = 20
_B85 = re.compile(r"[0-9A-Za-z!#$%&()*+;<=>?@^_`{|}~-]+")
_A85 = re.compile(r"(?:<~)?[!-uz]+(?:~>)?")
_HEX = re.compile(
    r"(?:0x[0-9a-fA-F]|[2-7]|[cCdDeE](?=[0-9]))[0-9a-fA-F]"
    r"(?:[ \t\r\n:,;-]{0,2}(?:0x|\\x)?[0-9a-fA-F]{2}){7,}"
)
_BINARY = re.compile(
    r"(?:[01]{8}(?:[ \t\r\n,]{0,2}[01]{8}){5,}|[01]{7}(?:[ \t\r\n,]{1,2}[01]{7}){5,})[01]{0,7}"
)
_DECIMAL = re.compile(r"\d{2,4}(?:[ ,;\t]{1,2}\d{2,4}){9,}")
_MORSE = re.compile(r"[.\-·−–]{1,6}(?:[ /|]{1,3}[.\-·−–]{1,6}){9,}")
_LEAST_BITS = 6
# How zlib and gzip streams begin, and how many times their bytes are inflated: prose has three.
_DEFLATED = (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda", b"\x1f\x8b")
_INFLATED_TIMES = 6
_SEPARATORS = re.compile(r"[^0-9a-fA-F]+")

_MORSE_LETTERS = (
    ".- -... -.-. -.. . ..-. --. .... .. .--- -.- .-.. -- -. --- .--. --.- .-. ... - ..- ...- .-- "
    "-..- -.-- --.. ----- .---- ..--- ...-- ....- ..... -.... --... ---.. ----."
)
_MORSE_CODE = dict(zip(_MORSE_LETTERS.split(), "abcdefghijklmnopqrstuvwxyz0123456789", strict=True))


def _within(
    layout: Layout, kind: str, pattern: re.Pattern[str], border: re.Pattern[str]
) -> Iterator[re.Match[str]]:
    """Matches of a pattern in the runs of a kind that do not go on in a word on either side.

    The borders are looked at here: in the pattern, one that fails behind a long run would make the
    engine try again from every place in it.
    """
    text = layout.text
    for start, end in layout.runs(kind):
        for found in pattern.finditer(text, start, min(end + 4, len(text))):
            before, after = (
                text[max(0, found.start() - 1) : found.start()],
                text[found.end() : found.end() + 1],
            )
            if not border.match(before) and not border.match(after):
                yield found


def _text_of(packed: str, decode: Callable[[str], bytes]) -> str | None:
    """What a stretch decodes to if it begins with readable text; its end is read in any case."""
    try:
        probe = readable(decode(packed[:_PROBE_CHARS]))
        if probe is None or len(packed) <= _PROBE_CHARS:
            return probe
        data = decode(packed)
    except (binascii.Error, ValueError):
        return None
    return readable(data) or data.decode("utf-8", "ignore")


_ALPHANUMERIC = re.compile(r"[0-9A-Za-z]")
_NUMERIC = re.compile(r"[\d.,]")


def base64_text(layout: Layout) -> Iterator[Edit]:
    """Base64, standard or URL-safe, over several lines too."""
    done = 0
    for start, end in layout.runs("dense"):
        opening = _BASE64_OPENING.search(layout.text, max(start, done), max(end, done))
        while opening:
            found = _BASE64.match(layout.text, opening.start())
            if found is None:
                break
            done = found.end()
            yield from _base64(found.start(), found.group())
            opening = _BASE64_OPENING.search(layout.text, done, max(end, done))


def _base64(start: int, run: str) -> Iterator[Edit]:
    packed = re.sub(r"[^A-Za-z0-9+/_-]", "", run)
    plain = _decode64(packed)
    if plain is not None:
        yield Edit(start, start + len(run), f" {plain} ")
    elif "\n" in run:
        # Prose whose lines are single words looks like base64 over lines: take lines apart.
        at = start
        for line in run.split("\n"):
            bare = line.strip(" \t\r>|#*/=")
            if len(bare) >= 16 and (plain := _decode64(bare)) is not None:
                yield Edit(at, at + len(line), f" {plain} ")
            at += len(line) + 1


def _decode64(packed: str) -> str | None:
    """What base64 holds, written forwards or backwards, compressed or not."""
    packed = packed.replace("-", "+").replace("_", "/")
    plain = _text_of(packed, unpacked64)
    if plain is None and len(packed) <= _PROBE_CHARS:
        plain = _text_of(packed[::-1], unpacked64)
    return plain


def unpacked64(packed: str) -> bytes:
    """Bytes of base64 without padding, inflated where they are a zlib or gzip stream.

    Raises:
        binascii.Error: it is none.
    """
    packed = packed[: len(packed) - (len(packed) % 4 == 1)]
    data = base64.b64decode(packed + "=" * (-len(packed) % 4), validate=True)
    if data[:2] not in _DEFLATED:
        return data
    try:
        return zlib.decompressobj(47).decompress(data, _INFLATED_TIMES * len(data) + 500)
    except zlib.error:
        return data


def base32_text(layout: Layout) -> Iterator[Edit]:
    """Base32 in capitals."""
    for found in _within(layout, "dense", _BASE32, _ALPHANUMERIC):
        packed = found.group().rstrip("=")
        packed = packed[: len(packed) - (len(packed) % 8 in {1, 3, 6})]
        plain = _text_of(packed + "=" * (-len(packed) % 8), base64.b32decode)
        if plain is not None:
            yield Edit(*found.span(), f" {plain} ")


def base85_text(layout: Layout) -> Iterator[Edit]:
    """Base85 as Python and Git write it, and Ascii85."""
    text = layout.text
    for start, end in layout.runs("dense"):
        if (
            end - start < _BASE85_LEAST
            or text[start - 1 : start].strip()
            or text[end : end + 1].strip()
        ):
            continue
        run = text[start:end]
        for alphabet, decode in ((_B85, base64.b85decode), (_A85, _ascii85)):
            if run.isalnum() or not alphabet.fullmatch(run):
                continue
            plain = _text_of(run, decode)
            if plain is not None:
                yield Edit(start, end, f" {plain} ")
                break


def _ascii85(run: str) -> bytes:
    return base64.a85decode(run, adobe=run.startswith("<~"))


def hex_text(layout: Layout) -> Iterator[Edit]:
    """Bytes in hexadecimal, with or without separators."""
    for found in _within(layout, "hex", _HEX, _ALPHANUMERIC):
        digits = _SEPARATORS.sub("", found.group().replace("0x", " ").replace("\\x", " "))
        plain = _text_of(digits[: len(digits) // 2 * 2], bytes.fromhex)
        if plain is not None:
            yield Edit(*found.span(), f" {plain} ")


def binary_text(layout: Layout) -> Iterator[Edit]:
    """Bytes in groups of seven or eight bits."""
    for found in _within(layout, "digits", _BINARY, _NUMERIC):
        run = found.group()
        groups = re.findall(r"[01]+", run)
        groups = [group for group in groups if len(group) in {7, 8}]
        if len(groups) < _LEAST_BITS:
            bits = re.sub(r"[^01]", "", run)
            groups = [bits[i : i + 8] for i in range(0, len(bits) - 7, 8)]
        plain = readable(bytes(int(group, 2) & 0xFF for group in groups))
        if plain is not None:
            yield Edit(*found.span(), f" {plain} ")


def decimal_text(layout: Layout) -> Iterator[Edit]:
    """Characters by their decimal numbers."""
    for found in _within(layout, "digits", _DECIMAL, _NUMERIC):
        numbers = re.findall(r"\d+", found.group())
        read = ["".join(map(chr, map(int, numbers)))]
        if max(map(int, "".join(numbers))) < 8:  # digits of other scripts count as well
            read.append("".join(chr(int(number, 8)) for number in numbers))
        plain = " ".join(text for text in read if looks_readable(text))
        if plain:
            yield Edit(*found.span(), f" {plain} ")


def morse_text(layout: Layout) -> Iterator[Edit]:
    """Morse code with spaces between letters and slashes between words."""
    for found in _within(layout, "morse", _MORSE, _ALPHANUMERIC):
        run = found.group().translate(str.maketrans("·−–|", ".--/"))
        words = re.split(r" ?/ ?| {2,3}", run)
        letters = [[_MORSE_CODE.get(code, "") for code in word.split()] for word in words]
        plain = " ".join("".join(word) for word in letters)
        if looks_readable(plain):
            yield Edit(*found.span(), f" {plain} ")
