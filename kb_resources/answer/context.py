"""Passages as one text for somebody's prompt, within a budget, marked as data.

Belongs here: five forms of the same passages and the budget. What does not: asking a model
(`prompt` has its own form). XML 1.0, 2.2, says which characters a document may hold at all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args
from xml.sax.saxutils import escape, quoteattr

from kb_resources.answer.fences import disarmed, fenced, random_mark, unforgeable_mark
from kb_resources.errors import InputError
from kb_resources.retrieve.hit import Hit

Format = Literal["simple", "numbered", "xml", "markdown", "json"]
FORMATS: tuple[Format, ...] = get_args(Format)
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class ContextPassage:
    """A passage to be handed on.

    Attributes:
        text: its words.
        citation: what to cite it by.
        metadata: more about it; keys and values are as little trusted as the text.
    """

    text: str
    citation: str
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_hit(cls, hit: Hit) -> ContextPassage:
        """A hit, cited by its deep link."""
        about = {
            "title": hit.title,
            "section": " > ".join(hit.heading_path),
            "page": hit.page,
            "document_id": hit.document_id,
            "version": hit.version,
        }
        return cls(hit.text, hit.link, {name: value for name, value in about.items() if value})


@dataclass(frozen=True, slots=True)
class Context:
    """Passages as one text.

    Attributes:
        text: fences included; empty where not even a part of the first passage fits.
        mark: the mark of its fences.
        chunks_used: passages in it, the first ones.
        truncated: whether the first passage was cut to fit.
        total_length: code points.
        total_tokens: by the counter that was given.
    """

    text: str
    mark: str
    chunks_used: int
    truncated: bool
    total_length: int
    total_tokens: int


def estimated_tokens(text: str) -> int:
    """Four code points a token, rounded up: for English; give a real counter where it matters."""
    return (len(text) + 3) // 4


def build_context(
    passages: Sequence[ContextPassage],
    *,
    format: Format = "numbered",  # noqa: A002 - the word of the interface
    max_length: int | None = None,
    max_tokens: int | None = None,
    count_tokens: Callable[[str], int] = estimated_tokens,
    include_metadata: bool = False,
    separator: str = "\n\n",
    draw: Callable[[], str] = random_mark,
) -> Context:
    """As many of the passages as fit, best first.

    Args:
        passages: in order of importance. Where not even the first fits whole, it is cut.
        format: `simple`, `numbered`, `xml`, `markdown` or `json`.
        max_length: code points at most, fences included; left aside where `max_tokens` is given.
        max_tokens: tokens at most, fences included.
        count_tokens: tokens of a text.
        include_metadata: with title, section, page and whatever a passage has.
        separator: between passages of the text formats.
        draw: gives a random mark.

    Raises:
        InputError: an unknown format or a negative budget.
    """
    if format not in FORMATS:
        raise InputError(f"{format!r} is not a format.", next_step=f"Use one of {FORMATS}.")
    if min(max_length or 0, max_tokens or 0) < 0:
        raise InputError("A budget is negative.", next_step="Give a number of at least 0.")
    held = [str(part) for p in passages for part in (p.text, p.citation, dict(p.metadata))]
    laid = _Layout(format, unforgeable_mark([*held, separator], draw), include_metadata, separator)

    def fits(text: str) -> bool:
        if max_tokens is not None:
            return count_tokens(text) <= max_tokens
        return max_length is None or len(text) <= max_length

    text, used, truncated = "", 0, False
    for count in range(1, len(passages) + 1):
        longer = laid.render(passages[:count])
        if not fits(longer):
            break
        text, used = longer, count
    if not used and passages:
        text = _cut(passages[0], laid, fits)
        used, truncated = (1, True) if text else (0, False)
    return Context(text, laid.mark, used, truncated, len(text), count_tokens(text))


def _cut(first: ContextPassage, laid: _Layout, fits: Callable[[str], bool]) -> str:
    """The first passage cut so that all fits; empty where nothing of it does."""

    def render(length: int) -> str:
        part = ContextPassage(first.text[:length], first.citation, first.metadata)
        return laid.render([part])

    low, high = 0, len(first.text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(render(middle)) else (low, middle - 1)
    while low > 0 and not fits(render(low)):  # counters need not grow with every character
        low -= 1
    return render(low) if low > 0 else ""


@dataclass(frozen=True, slots=True)
class _Layout:
    format: Format
    mark: str
    include_metadata: bool
    separator: str

    def render(self, passages: Sequence[ContextPassage]) -> str:
        """The whole text of some passages."""
        if self.format == "json":
            return self._json(passages)
        if self.format == "xml":
            return self._xml(passages)
        one = {"simple": self._simple, "numbered": self._numbered, "markdown": self._markdown}
        parts = (one[self.format](n, passage) for n, passage in enumerate(passages, 1))
        return self.separator.join(fenced("data", self.mark, part) for part in parts)

    def _about(self, passage: ContextPassage) -> dict[str, str]:
        return (
            {str(k): str(v) for k, v in passage.metadata.items()} if self.include_metadata else {}
        )

    def _lines(self, passage: ContextPassage) -> str:
        return "".join(
            f"{_one_line(name)}: {_one_line(value)}\n"
            for name, value in self._about(passage).items()
        )

    def _simple(self, _number: int, passage: ContextPassage) -> str:
        return self._lines(passage) + disarmed(passage.text)

    def _numbered(self, number: int, passage: ContextPassage) -> str:
        head = f"[{number}] {_one_line(passage.citation)}\n"
        return head + self._lines(passage) + disarmed(passage.text)

    def _markdown(self, number: int, passage: ContextPassage) -> str:
        head = f"**[{number}]** {_one_line(passage.citation)}\n\n"
        about = "".join(f"- {line}\n" for line in self._lines(passage).splitlines())
        quoted = "\n".join(f"> {line}" for line in disarmed(passage.text).splitlines())
        return head + (about + "\n" if about else "") + quoted

    def _xml(self, passages: Sequence[ContextPassage]) -> str:
        parts = []
        for number, passage in enumerate(passages, 1):
            about = "".join(
                f"<meta name={quoteattr(_xml_text(name))}>{escape(_xml_text(value))}</meta>"
                for name, value in self._about(passage).items()
            )
            parts.append(
                f'<passage n="{number}" cite={quoteattr(_xml_text(passage.citation))}>'
                f"{about}<text>{escape(_xml_text(passage.text))}</text></passage>"
            )
        inside = "\n".join(parts)
        return f'<data mark="{self.mark}">\n{inside}\n</data>'

    def _json(self, passages: Sequence[ContextPassage]) -> str:
        items: list[dict[str, Any]] = []
        for number, passage in enumerate(passages, 1):
            item: dict[str, Any] = {"n": number, "cite": passage.citation, "text": passage.text}
            if about := self._about(passage):
                item["metadata"] = about
            items.append(item)
        return json.dumps({"mark": self.mark, "data": items}, ensure_ascii=False)


def _one_line(text: str) -> str:
    return disarmed(" ".join(text.split()))


def _xml_text(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
