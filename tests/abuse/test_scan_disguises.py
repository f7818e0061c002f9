"""Disguises that a tester found open: read, in every script in which they can be written."""

from __future__ import annotations

import base64
import gzip
import time
import zlib
from collections.abc import Callable

import pytest

from kb_resources.model import Verdict
from kb_resources.scan import Scanner, default_packs
from tests.abuse.test_scan_mention import ATTACKS, COVER

SCANNER = Scanner(default_packs())
_SMALL = str.maketrans("abcdefghijklmnopqrtuvwyz", "ᴀʙᴄᴅᴇғɢʜɪᴊᴋʟᴍɴᴏᴘǫʀᴛᴜᴠᴡʏᴢ")
_ARMENIAN = str.maketrans("ounhg", "օսոհց")
_CHEROKEE = str.maketrans("aeiostrpvg", "ᎪᎬᏆᎾᏚᎢᏒᏢᏙᏀ")
_LISU = str.maketrans("aeiostrpvgnl", "ꓮꓰꓲꓳꓢꓔꓣꓑꓦꓖꓠꓡ")
_BRAILLE = str.maketrans("abcdefghijklmnopqrstuvwxyz ", "⠁⠃⠉⠙⠑⠋⠛⠓⠊⠚⠅⠇⠍⠝⠕⠏⠟⠗⠎⠞⠥⠧⠺⠭⠽⠵⠀")


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _lines(text: str, width: int) -> str:
    packed = _b64(text.encode())
    return "\n".join(packed[at : at + width] for at in range(0, len(packed), width))


ANY: dict[str, Callable[[str], str]] = {
    "underscores": lambda t: " ".join("_".join(word) for word in t.split()),
    "doubled letters": lambda t: "".join(c * 2 for c in t),
    "base64 in short lines": lambda t: _lines(t, 8),
    "base64 in quoted lines": lambda t: "\n".join(f"> {x}" for x in _lines(t, 12).split("\n")),
    "base64 backwards": lambda t: base64.urlsafe_b64encode(t.encode()).decode()[::-1],
    "base64 by word": lambda t: " ".join(_b64(word.encode()) for word in t.split()),
    "zlib in base64": lambda t: _b64(zlib.compress(t.encode())),
    "gzip in base64": lambda t: _b64(gzip.compress(t.encode(), mtime=0)),
    "octal escapes": lambda t: "".join(f"\\{byte:03o}" for byte in t.encode()),
    "octal codes": lambda t: " ".join(f"{ord(c):o}" for c in t),
}
LATIN: dict[str, Callable[[str], str]] = {
    "small capitals": lambda t: t.lower().translate(_SMALL),
    "Armenian look-alikes": lambda t: t.lower().translate(_ARMENIAN),
    "Cherokee look-alikes": lambda t: t.lower().translate(_CHEROKEE),
    "Lisu look-alikes": lambda t: t.lower().translate(_LISU),
    "Braille": lambda t: t.lower().translate(_BRAILLE),
}


@pytest.mark.requirement("P-42", "P-43")
@pytest.mark.parametrize("name", ANY)
def test_disguise_is_read_in_every_language(name: str) -> None:
    missed = [
        language
        for language, text in ATTACKS.items()
        if SCANNER.scan(f"{COVER}{ANY[name](text)}\n\n{COVER}").verdict is Verdict.CLEAN
    ]
    assert missed == []


@pytest.mark.requirement("P-42", "P-43")
@pytest.mark.parametrize("name", LATIN)
@pytest.mark.parametrize("language", ["en", "de"])
def test_letters_that_look_like_latin_ones_are_read(name: str, language: str) -> None:
    text = LATIN[name](ATTACKS[language])
    assert SCANNER.scan(f"{COVER}{text}\n\n{COVER}").verdict is not Verdict.CLEAN


@pytest.mark.parametrize(
    "text",
    [
        "Yerevan is called Երևան, and Tsalagi is written ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ.",
        "The sign reads ⠑⠭⠊⠞ in Braille.",
        "a_b_c_d_e_f and i_j_k are names of columns; __init__ is none.",
        "Key\nthis\nthat\nwith\nfrom\nhave\nwill\nthey\n",
        "sig=dGVzdA== and mac=YWJjZA== stand in the header.",
        _b64(zlib.compress(b"The hall opens at eight. " * 40)),
        "mode 755 644 700 755 644 600 755 711 750 640 400",
        "bookkeeper, aabbccdd, Mississippi, ooze, 11223344",
    ],
)
def test_what_only_looks_like_it_is_clean(text: str) -> None:
    assert SCANNER.scan(text).verdict is Verdict.CLEAN


@pytest.mark.parametrize(
    "piece",
    [
        _b64(zlib.compress(b"a b " * 50_000)) + "\n\n",
        _b64(zlib.compress(bytes(1 << 20))) + "\n\n",
        "QUJD\n",
        "QUI= QUI= ",
        "aabbccddee",
        "a_b_c_",
    ],
    ids=["a bomb of words", "a bomb of zeros", "short lines", "padded words", "doubled", "lines"],
)
def test_text_made_to_be_unpacked_costs_little(piece: str) -> None:
    text = piece * (300_000 // len(piece))
    started = time.process_time()
    SCANNER.scan(text)
    # Half a second to two on an idle machine.
    assert time.process_time() - started < 25
