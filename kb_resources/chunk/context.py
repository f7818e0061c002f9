"""The context of a chunk: breadcrumb, introducing paragraph, table header; never cited.

Belongs here: composing and shortening it so that it leaves room for the text. Contextual headers
on chunks follow pacod-kb (requirement P-14): `Title > Heading > Subheading`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from kb_resources.chunk.counting import TokenCounter, count_tokens
from kb_resources.chunk.sentences import sentence_breaks

_SEPARATOR: Final = " > "
_SHARE: Final = 4
_GAP: Final = "…"
_PART_CHARS: Final = 90
_LEAD_CHARS: Final = 320


@dataclass(frozen=True, slots=True)
class Breadcrumb:
    """A composed context with its size.

    Attributes:
        text: one line, may be empty.
        tokens: of `text`.
    """

    text: str
    tokens: int


def breadcrumb_lines(
    title: str, heading_paths: Iterable[tuple[str, ...]], limit: int, counter: TokenCounter
) -> dict[tuple[str, ...], Breadcrumb]:
    """`Title > Heading > Subheading` for each heading path.

    Args:
        title: of the document; left out where the first heading begins with it.
        heading_paths: may repeat.
        limit: tokens of a chunk; a breadcrumb takes at most a quarter and is shortened to it.
        counter: asked once, and once more if any is too long.
    """
    paths = {path: _parts(title, path) for path in heading_paths}
    lines = list(dict.fromkeys(_SEPARATOR.join(parts) for parts in paths.values()))
    cap = limit // _SHARE
    fitting = {
        line: Breadcrumb(line, tokens)
        for line, tokens in zip(lines, count_tokens(counter, lines), strict=True)
        if tokens <= cap
    }
    todo = {
        line: _shorter(parts, cap)
        for parts in paths.values()
        if (line := _SEPARATOR.join(parts)) not in fitting
    }
    sizes = iter(count_tokens(counter, [text for texts in todo.values() for text in texts]))
    for line, texts in todo.items():
        measured = [Breadcrumb(text, next(sizes)) for text in texts]
        fitting[line] = next((b for b in measured if b.tokens <= cap), Breadcrumb("", 0))
    return {path: fitting[_SEPARATOR.join(parts)] for path, parts in paths.items()}


def lead(text: str) -> str:
    """The end of an introducing paragraph, whole sentences where one fits, on one line."""
    text = " ".join(text.split())
    if len(text) <= _LEAD_CHARS:
        return text
    floor = len(text) - _LEAD_CHARS
    for cut in sentence_breaks(text):
        if cut >= floor:
            return text[cut:]
    return _GAP + text[text.find(" ", floor) :] if " " in text[floor:] else ""


def joined(*parts: str) -> str:
    """The parts that are not empty, one a line."""
    return "\n".join(part for part in parts if part)


def _parts(title: str, heading_path: Sequence[str]) -> list[str]:
    """Title and headings, white space collapsed, blank ones left out."""
    parts = [" ".join(part.split()) for part in (title, *heading_path)]
    parts = [part for part in parts if part]
    if len(parts) > 1 and parts[1].casefold().startswith(parts[0].casefold()):
        del parts[0]
    return parts


def _shorter(path: Sequence[str], cap: int) -> list[str]:
    """Ever shorter lines: long parts clipped, middle parts left out, the last part alone."""
    clipped = [_clip(part, _PART_CHARS) for part in path]
    lines = [_SEPARATOR.join(clipped)]
    lines += [_SEPARATOR.join([clipped[0], _GAP, *clipped[i:]]) for i in range(2, len(clipped))]
    lines += [clipped[-1]]
    lines += [_clip(path[-1], chars) for chars in (2 * cap, cap, cap // 2) if chars < _PART_CHARS]
    return lines


def _clip(text: str, chars: int) -> str:
    if len(text) <= chars:
        return text
    head = text[:chars]
    return (head[: head.rfind(" ")] if " " in head[chars // 2 :] else head).rstrip(" ,;:") + _GAP
