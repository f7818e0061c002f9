"""Clusters to kinds: heading, list item, caption, footnote, code or paragraph.

Belongs here: rules over one cluster against the document's usual. Not here: heading levels
(`headings`) and tables. Rules look at size, weight, numbering and the outline, never at file names.
Kinds follow docling's item labels: https://docling-project.github.io/docling/reference/docling_document
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from statistics import median

from kb_resources.model import BlockKind
from kb_resources.parse.pdf.blocks import Cluster
from kb_resources.parse.pdf.lines import Line
from kb_resources.parse.pdf.marks import (
    CAPTION,
    FOOTNOTE,
    LEADERS,
    MARKER,
    NUMBERED,
    SENTENCE_END,
)
from kb_resources.parse.pdf.profile import Profile

_MAX_HEADING_LINES = 3
_MAX_HEADING_CHARS = 160
_ADDRESS = re.compile(r"^\S*[\w-]\.\w{2,}(?:/\S*)?$|^https?://", re.IGNORECASE)
_LEADING_NUMBER = re.compile(r"^(?:§\s*)?(?:\d+(?:\.\d+)*|[A-Z](?:\.\d+)*|[IVX]+)[.)]?\s+")
_COUNTED = re.compile(r"^\(?\d{1,2}[.)]\s|^\d+(?:\.\d+)+\s")


@dataclass(frozen=True, slots=True)
class Context:
    """What a rule may look at beside the cluster.

    Attributes:
        usual: the document's profile.
        outline: titles of the bookmarks that point to this page, see `title_keys`.
        height: of the flow, points.
    """

    usual: Profile
    outline: frozenset[str]
    height: float


def letters_of(text: str) -> str:
    """Letters and digits only, lower case: how titles are compared."""
    return re.sub(r"[\W_]+", "", text).casefold()


def title_keys(text: str) -> frozenset[str]:
    """A title with and without its number, letters and digits only: bookmarks often lack it."""
    keys = {letters_of(text), letters_of(_LEADING_NUMBER.sub("", text))}
    return frozenset(key for key in keys if len(key) > 1)


def label(cluster: Cluster, text: str, context: Context) -> BlockKind:
    """What a cluster is; `text` is its joined text."""
    lines = cluster.lines
    if cluster.first.mono and (len(lines) > 1 or len(text) > 20):
        return "code"
    outlined = bool(context.outline) and not context.outline.isdisjoint(title_keys(text))
    if outlined and len(lines) <= _MAX_HEADING_LINES:
        return "heading"
    if CAPTION.match(text) and len(text) < 400:
        return "caption"
    if _is_heading(cluster, text, context):
        return "heading"
    if _is_footnote(cluster, text, context):
        return "footnote"
    if cluster.is_item and len(text) > 2 and (cluster.first.bullet or MARKER.match(text)):
        return "list_item"
    return "paragraph"


def _is_heading(cluster: Cluster, text: str, context: Context) -> bool:
    lines = cluster.lines
    short = len(lines) <= _MAX_HEADING_LINES and len(text) < _MAX_HEADING_CHARS
    if not short or sum(ch.isalpha() for ch in text) < 2 or LEADERS.search(text):
        return False
    if text.rstrip().endswith((",", ";")) or _ADDRESS.match(text):
        return False
    usual, size = context.usual, median(line.size for line in lines)
    numbered = NUMBERED.match(text) is not None
    item = cluster.is_item and not numbered
    if size >= usual.size * 1.12 + 0.2:
        return not item or size >= usual.size * 1.3
    bold = cluster.first.bold and all(line.bold for line in lines)
    if bold and (numbered or (_bold_stands_out(usual) and len(text) < 100)):
        return size >= usual.size * 0.92 and not item and not text.rstrip().endswith(":")
    if len(lines) > 1 or SENTENCE_END.search(text):
        return False
    return _by_font(lines[0], text, usual)


def _bold_stands_out(usual: Profile) -> bool:
    return usual.bold_share < 0.35


def _by_font(line: Line, text: str, usual: Profile) -> bool:
    """Unusual font on a counted line, or a lone slanted line in an upright document."""
    other_font = usual.font_share > 0.4 and line.font != usual.font
    if other_font and line.size >= 0.95 * usual.size and _COUNTED.match(text):
        return len(text) < 80
    slanted = line.italic and usual.italic_share < 0.12
    return slanted and len(text) < 90 and text[:1].isupper()


def _is_footnote(cluster: Cluster, text: str, context: Context) -> bool:
    small = median(line.size for line in cluster.lines) < context.usual.size * 0.88
    low = cluster.first.box.top > 0.6 * context.height
    marked = cluster.first.note or FOOTNOTE.match(text) is not None
    return (small or cluster.first.note) and low and marked
