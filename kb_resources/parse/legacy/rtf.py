r"""RTF to a Reading: text, headings by style, lists, tables, hidden text.

Belongs here: the part of the Rich Text Format Specification 1.9.1 that carries words
(https://www.loc.gov/preservation/digital/formats/fdd/fdd000473.shtml). Formatting is skipped.
Bytes written as \'hh are in the code page of the current font, else of the document.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field

from kb_resources.model import DocumentState, HiddenText, Refusal
from kb_resources.parse.draft import DraftBlock
from kb_resources.parse.legacy.rtf_words import (
    CHARSETS,
    ESCAPES,
    FACTS,
    HIDDEN,
    SKIPPED,
    SYMBOLS,
)
from kb_resources.parse.reading import Reading
from kb_resources.parse.tables import table_drafts

_TOKEN = re.compile(
    rb"\\([a-z]{1,32})(-?\d{1,10})? ?|\\'([0-9a-fA-F]{2})|\\([^a-z])|([{}])|[\r\n]+|([^\\{}\r\n]+)"
)
_HEADING_STYLE = re.compile(
    r"(?:heading|überschrift|заголовок|заглавие|наслов|naslov)\s*(\d)", re.IGNORECASE
)
_BULLETS = frozenset("•·◦▪-–*o\uf0b7")
_MAX_DEPTH = 500


@dataclass(slots=True)
class _Group:
    """What a brace group inherits and may change."""

    kind: str = ""  # "", "skip", "fonts", "styles", "marker", a way of hiding, or a fact's name
    codec: str = ""
    hidden: bool = False
    unicode_skip: int = 1


@dataclass(slots=True)
class _State:
    codec: str = "cp1252"
    fonts: dict[int, str] = field(default_factory=dict)
    styles: dict[int, int] = field(default_factory=dict)
    font: int = 0
    style: int = 0
    default_font: int = 0


def read_rtf(data: bytes) -> Reading | Refusal:
    """Read an RTF file.

    Returns:
        Reading without pages, or a Refusal (`corrupt`) for a file that is no RTF or is nested
        absurdly.
    """
    if not data.startswith(b"{\\rtf"):
        return Refusal(DocumentState.CORRUPT, "The file does not start as RTF does.")
    reader = _Reader()
    for match in _TOKEN.finditer(data):
        if not reader.token(match):
            return Refusal(
                DocumentState.CORRUPT, f"The RTF is nested more than {_MAX_DEPTH} levels deep."
            )
    return reader.finish()


class _Reader:
    def __init__(self) -> None:
        self._state = _State()
        self._groups: list[_Group] = [_Group()]
        self._bytes = bytearray()
        self._text: dict[str, list[str]] = {}
        self._skip = 0
        self._star = False
        self._surrogate = ""
        self._marker: str | None = None
        self._cells: list[str] | None = None
        self._rows: list[list[str]] = []
        self._in_table = False
        self._drafts: list[DraftBlock] = []
        self._hidden: list[HiddenText] = []
        self._facts: dict[str, str] = {}

    def token(self, match: re.Match[bytes]) -> bool:
        """Handle one token; False when the nesting is absurd."""
        word, number, byte, symbol, brace, text = match.groups()
        if byte is not None:
            self._byte(bytes.fromhex(byte.decode()))
            return True
        if text is not None:
            self._byte(text)
            return True
        self._flush_bytes()
        if brace == b"{":
            self._groups.append(_copy(self._groups[-1]))
            self._star = False
            return len(self._groups) <= _MAX_DEPTH
        if brace == b"}":
            self._close()
        elif word is not None:
            self._word(word.decode(), int(number) if number else None)
        elif symbol is not None:
            self._symbol(symbol)
        return True

    def finish(self) -> Reading:
        self._flush_bytes()
        self._paragraph()
        self._end_table()
        self._hide_rest()
        return Reading(
            tuple(self._drafts),
            "rtf",
            title=self._facts.get("title", ""),
            hidden=tuple(self._hidden),
            metadata=self._facts,
        )

    @property
    def _group(self) -> _Group:
        return self._groups[-1]

    def _symbol(self, symbol: bytes) -> None:
        if symbol == b"*":
            self._star = True
        elif symbol in {b"\n", b"\r"}:
            self._word("par", None)
        else:
            self._write(ESCAPES.get(symbol, ""))

    def _word(self, word: str, number: int | None) -> None:
        special = self._star or word in SKIPPED or word in HIDDEN or word in FACTS
        if special and self._destination(word):
            return
        if word in SYMBOLS:
            self._write(SYMBOLS[word])
        elif not self._set_state(word, number) and not self._set_group(word, number):
            self._act(word, number)

    def _set_state(self, word: str, number: int | None) -> bool:
        """Words that change the document's or the paragraph's state."""
        state = self._state
        match word:
            case "ansicpg":
                state.codec = _known(f"cp{number}") or state.codec
            case "deff":
                state.default_font = state.font = number or 0
            case "f":
                state.font = number or 0
            case "fcharset" if self._group.kind == "fonts":
                state.fonts[state.font] = CHARSETS.get(number or 0, state.codec)
            case "s":
                state.style = number or 0
            case "pard":
                state.style = 0
                self._in_table = False
            case "intbl":
                self._in_table = True
            case _:
                return False
        return True

    def _set_group(self, word: str, number: int | None) -> bool:
        """Words that change the current group alone."""
        group = self._group
        match word:
            case "fonttbl":
                group.kind = "fonts"
            case "stylesheet":
                group.kind = "styles"
            case "pntext" | "listtext":
                group.kind = "marker"
            case "footnote":
                group.kind = "footnote"
            case "uc":
                group.unicode_skip = max(number or 0, 0)
            case "v" | "deleted":
                group.hidden = number != 0
            case "plain":
                group.hidden = False
                self._state.font = self._state.default_font
            case _:
                return False
        return True

    def _act(self, word: str, number: int | None) -> None:
        """Words that write or end something."""
        match word:
            case "u" if number is not None:
                self._unicode(number)
            case "par" | "sect" | "page":
                self._end_line()
            case "cell":
                self._cell()
            case "row":
                self._row()

    def _destination(self, word: str) -> bool:
        """Enter a destination; False for an ordinary control word."""
        starred, self._star = self._star, False
        group = self._group
        if group.kind == "skip":
            return True
        if word in FACTS and group.kind == "metadata":
            group.kind = f"fact:{word}"
        elif word in HIDDEN:
            group.kind = HIDDEN[word]
        elif word in SKIPPED or (starred and word not in {"pntext", "fldinst", "cs"}):
            group.kind = "skip"
        else:
            return False
        return True

    def _byte(self, data: bytes) -> None:
        if self._skip:
            dropped = min(self._skip, len(data))
            self._skip -= dropped
            data = data[dropped:]
        self._bytes += data

    def _flush_bytes(self) -> None:
        if self._bytes:
            codec = self._state.fonts.get(self._state.font, self._state.codec)
            text = bytes(self._bytes).decode(codec, "replace")
            self._bytes.clear()
            self._write(text)

    def _unicode(self, number: int) -> None:
        char = chr(number & 0xFFFF)
        self._skip = self._group.unicode_skip
        if "\ud800" <= char <= "\udbff":
            self._surrogate = char
        elif self._surrogate and "\udc00" <= char <= "\udfff":
            pair = (self._surrogate + char).encode("utf-16", "surrogatepass").decode("utf-16")
            self._surrogate = ""
            self._write(pair)
        else:
            self._write(char)

    def _write(self, text: str) -> None:
        kind = self._group.kind
        if kind in {"skip", "fonts"} or not text:
            return
        if kind == "" and self._group.hidden:
            kind = "vanish"
        self._text.setdefault(kind, []).append(text)

    def _close(self) -> None:
        if len(self._groups) == 1:
            return
        done = self._groups.pop()
        outer = self._group.kind
        if done.kind == outer:
            if done.kind == "styles":
                self._style()
            return
        text = "".join(self._text.pop(done.kind, []))
        if done.kind == "marker":
            self._marker = text.strip() or "-"
        elif done.kind == "footnote":
            self._drafts += [DraftBlock("footnote", text)] if text.strip() else []
        elif done.kind.startswith("fact:"):
            name = FACTS[done.kind[5:]]
            self._facts.setdefault(name, text.strip())
            self._hide("metadata", text)
        elif done.kind in set(HIDDEN.values()):
            self._hide(done.kind, text)

    def _style(self) -> None:
        name = "".join(self._text.pop("styles", []))
        if found := _HEADING_STYLE.search(name):
            self._state.styles[self._state.style] = min(max(int(found[1]), 1), 6)

    def _end_line(self) -> None:
        if self._group.kind == "footnote":
            self._write(" ")
        elif self._group.kind == "":
            if self._in_table and self._cells is not None:
                self._write(" ")
            else:
                self._paragraph()

    def _paragraph(self) -> None:
        text = "".join(self._text.pop("", []))
        marker, self._marker = self._marker, None
        if not text.strip():
            return
        self._end_table()
        level = self._state.styles.get(self._state.style)
        if level is not None:
            self._drafts.append(DraftBlock("heading", text, level=level))
        elif marker is not None:
            mark = "-" if marker in _BULLETS else marker
            self._drafts.append(DraftBlock("list_item", text, level=1, marker=mark))
        else:
            self._drafts.append(DraftBlock("paragraph", text))

    def _cell(self) -> None:
        self._cells = [] if self._cells is None else self._cells
        self._cells.append("".join(self._text.pop("", [])).strip())

    def _row(self) -> None:
        if self._cells:
            self._rows.append(self._cells)
        self._cells = None

    def _end_table(self) -> None:
        if self._cells:
            self._row()
        if self._rows:
            self._drafts += table_drafts(self._rows, 0, lambda _first, _last: None)
            self._rows = []

    def _hide(self, kind: str, text: str) -> None:
        if text.strip():
            self._hidden.append(HiddenText(kind, "RTF", text.strip()))

    def _hide_rest(self) -> None:
        for kind in ("vanish", *sorted(set(HIDDEN.values()))):
            self._hide(kind, "".join(self._text.pop(kind, [])))


def _copy(group: _Group) -> _Group:
    return _Group(group.kind, group.codec, group.hidden, group.unicode_skip)


def _known(codec: str) -> str | None:
    try:
        return codecs.lookup(codec).name
    except LookupError:
        return None
