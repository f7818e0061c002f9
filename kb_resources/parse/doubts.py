"""What a person should look at before a recognised text is published.

Belongs here: findings about the reading itself, in the shape of the scan's, so that one review
queue holds both. Giving the verdict is the scan stage's. Why two readings are compared is told in
docs/adr/0008-parsing.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from kb_resources.model import Finding, ParsedDocument, RecognisedPage, Severity

DOUBTFUL = "ocr.doubtful"
LEAST_AGREEMENT = 0.85
"""Share of words in common below which two readings of a page contradict each other."""

LEAST_CONFIDENCE = 0.85
"""Mean confidence below which two readings may agree and both be wrong; clean prints reach .95."""

_MOST = 50
_EXCERPT = 200


def doubtful_pages(document: ParsedDocument) -> tuple[RecognisedPage, ...]:
    """Recognised pages whose readings disagree or are unsure, or that were read only once."""
    return tuple(page for page in document.coverage.recognised if _doubt(page))


def reading_findings(document: ParsedDocument) -> tuple[Finding, ...]:
    """One finding per doubtful page, at most 50; their severity asks for review, never blocks."""
    return tuple(_findings(document))


def _findings(document: ParsedDocument) -> Iterator[Finding]:
    for page in doubtful_pages(document)[:_MOST]:
        yield Finding(
            rule_id=DOUBTFUL,
            severity=Severity.MEDIUM,
            part="body",
            place=f"page {page.page}",
            byte_start=0,
            byte_end=0,
            excerpt=document.page_text(page.page)[:_EXCERPT],
            explanation=(
                f"Scanned page {page.page} {_doubt(page)}: compare its text with the picture "
                "before you release it."
            ),
        )


def _doubt(page: RecognisedPage) -> str:
    """What speaks against a reading, "" for nothing."""
    if page.agreement is None:
        return "could be read only once"
    if page.agreement < LEAST_AGREEMENT:
        return f"was read twice, and the readings share only {page.agreement:.0%} of their words"
    if page.confidence < LEAST_CONFIDENCE:
        return f"was read with a confidence of only {page.confidence:.0%}"
    return ""
