"""What an answer means for a watched page: its next state, and when to look again.

Belongs here: pure decisions. What does not: asking (`watch_rounds`) and writing (`watch_check`).
Waits grow with every failure and are spread by chance, so that many pages of one site do not come
back together; see https://aws.amazon.com/builders-library/timeouts-retries-and-backoff-with-jitter/.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from kb_resources.acquire.fetch_outcome import FetchProblem, FetchRefusal, Validators
from kb_resources.store.watches import WatchedListing, WatchedPage

FIRST_WAIT_S = 60.0
LONGEST_WAIT_S = 86_400.0
Chance = Callable[[], float]
"""A number in 0..1."""


def wait_s(
    every_s: int, failures: int, chance: Chance, retry_after_s: float | None = None
) -> float:
    """Seconds until the next look.

    Args:
        every_s: between two looks at a page that answers.
        failures: looks in a row that found nobody; 0 after an answer.
        chance: spreads the looks: by a tenth after an answer, by half after a failure.
        retry_after_s: what the server asks for at least.
    """
    if failures == 0:
        return every_s * (0.95 + chance() / 10)
    grown = min(FIRST_WAIT_S * 2.0 ** min(failures - 1, 30), max(LONGEST_WAIT_S, float(every_s)))
    return max(grown * (0.5 + chance() / 2), retry_after_s or 0.0)


def page_answered(
    page: WatchedPage, validators: Validators, now: datetime, chance: Chance, **values: Any
) -> dict[str, Any]:
    """Row of a page that is there; `values` may name a digest or a reason."""
    return _row(
        page,
        now,
        wait_s(page.every_s, 0, chance),
        state="current",
        final_url=validators.url,
        etag=validators.etag,
        last_modified=validators.last_modified,
        **values,
    )


def page_refused(
    page: WatchedPage, refusal: FetchRefusal, now: datetime, chance: Chance
) -> dict[str, Any]:
    """Row of a page that gave nothing: gone, in trouble, or not to be asked."""
    if refusal.problem is FetchProblem.MISSING:
        missing = page.missing + 1
        goes = page.on_missing == "remove" and missing >= page.remove_after
        return _row(
            page,
            now,
            wait_s(page.every_s, 0, chance),
            state="removed" if goes or page.state == "removed" else "missing",
            reason=refusal.reason,
            missing=missing,
        )
    if refusal.retryable:
        failures = page.failures + 1
        return _row(
            page,
            now,
            wait_s(page.every_s, failures, chance, refusal.retry_after_s),
            state="removed" if page.state == "removed" else "failing",
            reason=str(refusal),
            failures=failures,
            missing=page.missing,
        )
    return _row(
        page,
        now,
        wait_s(page.every_s, 0, chance),
        state="removed" if page.state == "removed" else "refused",
        reason=str(refusal),
    )


def page_unfit(page: WatchedPage, reason: str, now: datetime, chance: Chance) -> dict[str, Any]:
    """Row of a page that answered with something no document can be made of, as it once was."""
    failures = page.failures + 1
    waits = wait_s(page.every_s, failures, chance)
    return _row(page, now, waits, state="failing", reason=reason, failures=failures)


def listing_row(
    listed: WatchedListing,
    now: datetime,
    chance: Chance,
    *,
    refusal: FetchRefusal | None = None,
    validators: Validators | None = None,
    reason: str = "",
) -> dict[str, Any]:
    """Row of a sitemap or feed after a look."""
    failures = listed.failures + 1 if refusal is not None and refusal.retryable else 0
    asked = refusal.retry_after_s if refusal is not None else None
    return {
        "watch_id": listed.watch_id,
        "reason": str(refusal) if refusal is not None else reason,
        "final_url": validators.url if validators else None,
        "etag": validators.etag if validators else None,
        "last_modified": validators.last_modified if validators else None,
        "failures": failures,
        "now": now,
        "next_check_at": now + timedelta(seconds=wait_s(listed.every_s, failures, chance, asked)),
    }


def _row(page: WatchedPage, now: datetime, waits_s: float, **values: Any) -> dict[str, Any]:
    kept = {
        "final_url": page.final_url,
        "etag": page.etag,
        "last_modified": page.last_modified,
        "digest": None,
        "reason": "",
        "failures": 0,
        "missing": 0,
    }
    return {
        **kept,
        **values,
        "page_key": page.page_key,
        "now": now,
        "next_check_at": now + timedelta(seconds=waits_s),
    }
