"""The flat preset: pieces of about so many characters, whatever the headings say.

Belongs here: where such a piece may end: paragraph, line, sentence, word, in this order, in the
second half of the size; else at a grapheme border. Rules of better-supabase's `chunk`
(requirement B-10); line ends of all three kinds count.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise, takewhile
from typing import Final

from kb_resources.chunk.context import breadcrumb_lines
from kb_resources.chunk.counting import TokenCounter
from kb_resources.chunk.drafts import Draft
from kb_resources.chunk.graphemes import next_border
from kb_resources.chunk.layout import Chunkable, Placed, Run, runs
from kb_resources.chunk.options import ChunkOptions
from kb_resources.chunk.sentences import last_sentence_break
from kb_resources.model import Block

_PARAGRAPH: Final = re.compile(r"(?:\r\n|\n|\r)[ \t]*(?:\r\n|\n|\r)")
_LINE: Final = re.compile(r"\r\n|\n|\r")
_WORD: Final = re.compile(r"\s")


def flat_cuts(text: str, start: int, end: int, size: int) -> list[int]:
    """Cuts in `text[start:end]`, ascending, so that no piece has more than `size` code points.

    Args:
        text: any text.
        start: where the part begins.
        end: exclusive end of the part.
        size: most code points of a piece, at least 2; a longer grapheme is kept whole.
    """
    cuts = []
    position = start
    while end - position > size:
        position = _cut(text, position, position + size, end)
        if position < end:
            cuts.append(position)
    return cuts


def _cut(text: str, start: int, limit: int, end: int) -> int:
    half = start + (limit - start) // 2
    cut = (
        _last(_PARAGRAPH, text, half, limit)
        or _last(_LINE, text, half, limit)
        or last_sentence_break(text, start, limit, half)
        or _last(_WORD, text, half, limit)
    )
    return next_border(text, cut or limit, start, end)


def _last(pattern: re.Pattern[str], text: str, start: int, end: int) -> int | None:
    """Where the last match ends; None without one."""
    ends = [match.end() for match in pattern.finditer(text, start, end)]
    return ends[-1] if ends else None


def flat_drafts(
    document: Chunkable, placed: Sequence[Placed], counter: TokenCounter, options: ChunkOptions
) -> Iterator[Draft]:
    """Drafts in body order, each within one page and locator, white space at their ends left out.

    The heading path of a draft is what the paths of its blocks have in common.
    """
    body = document.body
    found = runs(placed, document.pages, sections=False)
    limit = options.max_tokens - counter.overhead
    pending: list[tuple[int, Run, int, int, tuple[str, ...]]] = []
    for number, run in enumerate(found):
        start, end = run.blocks[0].start, run.blocks[-1].end
        blocks = deque(run.blocks)
        for a, b in pairwise([start, *flat_cuts(body, start, end, options.size_chars), end]):
            text = body[a:b]
            left, right = a + len(text) - len(text.lstrip()), a + len(text.rstrip())
            while blocks[0].end <= left and len(blocks) > 1:
                blocks.popleft()
            held = [p.block for p in takewhile(_before(right), blocks)]
            if left < right:
                pending.append((number, run, left, right, _common(held)))
    lines = breadcrumb_lines(document.title, {path for *_, path in pending}, limit, counter)
    for number, run, start, end, path in pending:
        yield Draft(
            start=start,
            end=end,
            run=number,
            heading_path=path,
            page=run.page,
            locator=run.locator,
            page_start=run.page_start,
            crumbs=lines[path].text,
        )


def _common(blocks: Iterable[Block]) -> tuple[str, ...]:
    paths = [block.heading_path for block in blocks]
    shared = takewhile(lambda level: len(set(level)) == 1, zip(*paths, strict=False))
    return tuple(level[0] for level in shared)


def _before(position: int) -> Callable[[Placed], bool]:
    return lambda placed: placed.start < position
