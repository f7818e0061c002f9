"""Drafts of chunks: a span, a context and how to shrink both until the exact count fits.

Belongs here: the last word on the limit. Packing works with sums of counts, which a tokenizer need
not honour, so every draft is counted as it will be embedded, and what is over is cut again.
Sums of subword counts differ from counts of sums: Kudo, "Subword Regularization", 2018.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kb_resources.chunk.context import joined
from kb_resources.chunk.counting import TokenCounter, count_tokens
from kb_resources.chunk.splitting import middle_cut
from kb_resources.errors import InputError
from kb_resources.model.chunk import embedding_input


class Draft(NamedTuple):
    """A chunk before its exact count; a tuple, because there are so many.

    Attributes:
        start: first code point in the body.
        end: exclusive.
        run: number of the run it lies in.
        heading_path: headings above.
        page: 1-based page or None.
        locator: place in the document's own terms or None.
        page_start: where the page text begins in the body, code points.
        crumbs: the breadcrumb, first line of the context.
        extra: introduction or table header, the rest of the context.
        rest: `extra` for later parts if the draft is cut again.
        overlap: how many code points before `start` are repeated in front.
    """

    start: int
    end: int
    run: int
    heading_path: tuple[str, ...]
    page: int | None
    locator: str | None
    page_start: int
    crumbs: str
    extra: str = ""
    rest: str = ""
    overlap: int = 0

    @property
    def context(self) -> str:
        """What is embedded before the text."""
        return joined(self.crumbs, self.extra)

    @property
    def text_start(self) -> int:
        """First code point of the text, the overlap included."""
        return self.start - self.overlap


class Counted(NamedTuple):
    """A draft that keeps the limit, with its exact count (prefix and special tokens included)."""

    draft: Draft
    tokens: int


def settle(body: str, drafts: Iterable[Draft], limit: int, counter: TokenCounter) -> list[Counted]:
    """Count drafts exactly and shrink those above the limit.

    In this order: without overlap, without extra context, cut in two, without any context.

    Args:
        body: what the drafts point into.
        drafts: in body order.
        limit: most tokens, with the counter's overhead.
        counter: asked once for all, and again for what was shrunk.

    Returns:
        Drafts in body order, none above the limit.

    Raises:
        InputError: a single code point is above the limit.
    """
    settled: list[Counted] = []
    pending = list(drafts)
    while pending:
        texts = [embedding_input(d.context, body[d.start - d.overlap : d.end]) for d in pending]
        over: list[Draft] = []
        for draft, tokens in zip(pending, count_tokens(counter, texts), strict=True):
            if tokens + counter.overhead <= limit:
                settled.append(Counted(draft, tokens + counter.overhead))
            else:
                over += _shrink(body, draft)
        pending = over
    settled.sort(key=lambda counted: counted.draft.start)
    return settled


def _shrink(body: str, draft: Draft) -> Sequence[Draft]:
    if draft.overlap:
        return [draft._replace(overlap=0)]
    if draft.extra and draft.extra != draft.rest:
        return [draft._replace(extra="")]
    if draft.end - draft.start > 1:
        cut = draft.start + middle_cut(body[draft.start : draft.end])
        return [draft._replace(end=cut), draft._replace(start=cut, extra=draft.rest)]
    if draft.context:
        return [draft._replace(crumbs="", extra="", rest="")]
    raise InputError("A single character is above the token limit.", next_step="Raise max_tokens.")
