"""What reading one PDF gives: drafts in reading order, hidden text, coverage, metadata.

Belongs here: the shape only. The serialiser turns drafts into a body with spans.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kb_resources.model import Coverage, HiddenText
from kb_resources.parse.draft import DraftBlock


@dataclass(frozen=True, slots=True)
class PdfResult:
    """A PDF as read, before it becomes a body.

    Attributes:
        title: from the document information or the first large heading, or None.
        drafts: blocks in reading order, pages rising.
        hidden: what a reader does not see.
        coverage: pages, garbage, tables, removed lines and warnings.
        metadata: flat facts: author, date, subject, keywords, producer, flags.
    """

    title: str | None
    drafts: tuple[DraftBlock, ...]
    hidden: tuple[HiddenText, ...] = ()
    coverage: Coverage = field(default_factory=Coverage)
    metadata: dict[str, str] = field(default_factory=dict)
