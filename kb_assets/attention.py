"""What an operator reads on `kb_scopes/health`: the documents that wait for somebody, with links.

Belongs here: the words and the form. What does not: which documents wait (`stages.usage`), where a
link leads (`bindings.launchpad`) and what the job there does. No text of a document is shown: this
page's history is kept for longer than a purge lasts.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from kb_resources.bindings.launchpad import launchpad, partition
from kb_resources.model import DocumentState
from kb_resources.store.usage import InNeed

MAX_ROWS = 100
MAX_ENTRIES = 12
INLINE_CHARS = 1000
_REASON_CHARS = 300
_LINE_CHARS = 42
"""The UI breaks no line of a value; a longer one is cut off at the pane's edge."""

WHAT_TO_DO: Mapping[DocumentState, str] = {
    DocumentState.FAILED: "Mend the cause, then retry.",
    DocumentState.QUARANTINED: "Read the findings, then release or reject.",
    DocumentState.NEEDS_OCR: "Add a searchable copy, or install text recognition; then retry.",
    DocumentState.CORRUPT: "Replace the source by a whole copy.",
    DocumentState.ENCRYPTED: "Replace the source by a copy without a password.",
    DocumentState.TOO_LARGE: "Split the source, or raise the limit; then retry.",
    DocumentState.UNSUPPORTED: "Export the source to a format that is read.",
    DocumentState.EMPTY: "Look whether the source should hold text.",
    DocumentState.LANGUAGE_REFUSED: "Let the scope take the language, then retry.",
    DocumentState.BLOCKED: "Change the source; its text is deleted here.",
}
"""What an operator does about a document in each of these states."""


def needs(found: Sequence[InNeed]) -> dict[str, str]:
    """Markdown by name: links for all that failed, an entry for each document, the rest in one.

    The UI shows an entry of less than `INLINE_CHARS` at once and hides a longer one behind a click.
    """
    if not found:
        return {"waiting": "Nothing waits for you."}
    shown, rest = found[:MAX_ENTRIES], found[MAX_ENTRIES:MAX_ROWS]
    made = {}
    if links := _retry_all(found):
        made["retry_all"] = links
    for number, each in enumerate(shown, 1):
        made[f"waiting_{number:02}"] = _item(each)
    if rest:
        made["waiting_further"] = "\n\n".join(map(_item, rest))
    if len(found) > MAX_ROWS:
        made["waiting_more"] = f"Only {MAX_ROWS} are shown; `kb documents list` has them all."
    return made


def _retry_all(found: Sequence[InNeed]) -> str:
    return "  \n".join(
        f"[Retry all that failed in {scope}]"
        f"({launchpad('kb_batch', {'scope': scope, 'where': 'failed'})})"
        for scope in sorted({each.scope for each in found if each.state == DocumentState.FAILED})
    )


def _item(each: InNeed) -> str:
    state = DocumentState(each.state)
    reason = textwrap.shorten(each.reason, _REASON_CHARS, placeholder="…")
    return "  \n".join(
        (
            f"**{state.value}** in {each.scope}",
            f"`{each.document_id}`",
            *map(_plain, textwrap.wrap(reason, _LINE_CHARS)),
            *map(_plain, textwrap.wrap(WHAT_TO_DO[state], _LINE_CHARS)),
            _links(each, state),
        )
    )


def _links(each: InNeed, state: DocumentState) -> str:
    key = f"{each.scope}:{each.document_id}"
    if state in (DocumentState.BLOCKED, DocumentState.QUARANTINED):
        return f"[Findings]({partition('kb/scan', key)})"
    again = {"scope": each.scope, "documents": [each.document_id]}
    return f"[Retry]({launchpad('kb_batch', again)})"


def _plain(text: str) -> str:
    """Text that Markdown shows as it is: signs that mean something are escaped."""
    escaped = "".join(f"\\{sign}" if sign in "\\`*_[]<>|#" else sign for sign in text)
    return " ".join(escaped.split())
