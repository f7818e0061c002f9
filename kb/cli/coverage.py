"""The coverage report of a document in lines for a person: what of the source became text.

Belongs here: wording. The numbers are `kb_resources.model.Coverage`, as JSON.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

_MOST = 20


def coverage_lines(coverage: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Name and text of each line of the report; what there is none of has no line.

    Args:
        coverage: a `Coverage` as JSON; reports of earlier versions may lack keys.
    """
    pages, with_text = coverage.get("pages", 0), coverage.get("pages_with_text", 0)
    if pages:
        yield "pages", f"{with_text} of {pages} with text"
    recognised = coverage.get("recognised", ())
    if recognised:
        yield "recognised", f"{_count(len(recognised), 'page')} read from pictures"
        for page in recognised[:_MOST]:
            yield "", _reading(page)
    if unread := coverage.get("pages_needing_ocr", ()):
        yield "unread", f"pages {_listed(unread)} hold pictures or broken fonts"
    if tables := coverage.get("tables", 0):
        sure = coverage.get("table_confidences", ())
        rebuilt = sum(confidence < 1 for confidence in sure)
        least = f", {rebuilt} rebuilt by guesswork (least sure {min(sure):.2f})" if rebuilt else ""
        yield "tables", f"{tables}{least}"
    if share := coverage.get("replacement_share", 0.0):
        yield "unreadable", f"{share:.2%} of the characters have no readable glyph"
    reasons = Counter(line["reason"] for line in coverage.get("removed_lines", ()))
    if reasons:
        told = ", ".join(f"{n} {reason.replace('_', ' ')}" for reason, n in reasons.most_common())
        yield "removed", f"{_count(reasons.total(), 'line')} ({told})"
    for warning in coverage.get("warnings", ()):
        yield "warning", warning


def _reading(page: Mapping[str, Any]) -> str:
    agreement = page["agreement"]
    said = (
        f"two readings share {agreement:.0%} of their words"
        if agreement is not None
        else "read only once"
    )
    return f"page {page['page']} ({page['language']}): confidence {page['confidence']:.0%}, {said}"


def _listed(pages: Any) -> str:
    more = " …" if len(pages) > _MOST else ""
    return ", ".join(map(str, pages[:_MOST])) + more


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")
