"""Drafts of the PDF reader as plain Markdown for scoring, without escapes and offsets.

Belongs here: rendering for `parse_pdf` and its tests. The body that people get is written by
`kb_resources.parse.body`.
"""

from __future__ import annotations

from collections.abc import Iterable

from kb_resources.parse.draft import DraftBlock


def render(drafts: Iterable[DraftBlock]) -> str:
    """All blocks, a blank line between them."""
    return "\n\n".join(_render_one(draft) for draft in drafts) + "\n"


def _render_one(draft: DraftBlock) -> str:
    if draft.kind == "heading":
        return "#" * (draft.level or 2) + " " + draft.text
    if draft.kind == "list_item":
        return f"{draft.marker or '-'} {draft.text}"
    if draft.kind == "code":
        return f"```\n{draft.text}\n```"
    if draft.kind == "table":
        lines = ["| " + " | ".join(row) + " |" for row in draft.rows]
        rule = "|" + " - |" * len(draft.rows[0])
        return "\n".join([lines[0], rule, *lines[1:]])
    return draft.text
