"""Instants as people write them: a day, a time, with an offset or the name of a zone.

Belongs here: reading them. What does not: what holds at an instant. Forms: RFC 3339, days of
ISO 8601, and a zone in brackets as in RFC 9557 (`2026-01-31[Europe/Berlin]`).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from kb_resources.errors import InputError

_FORM = re.compile(
    r"(?P<day>\d{4}-\d{2}-\d{2})"
    r"(?:[T ](?P<time>\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?))?"
    r"(?P<offset>Z|[+-]\d{2}:?\d{2})?"
    r"(?:\[(?P<zone>[A-Za-z0-9_+/-]+)\])?"
)


_FIRST, _LAST = datetime(2, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)
"""A day's margin to what a datetime can hold, for every zone."""


def parse_instant(text: str, *, end_of_day: bool) -> datetime:
    """An aware instant.

    Args:
        text: `2026-01-31`, `2026-01-31+01:00`, `2026-01-31[Europe/Berlin]`,
            `2026-01-31T12:00:00Z`, `2026-01-31T12:00[Europe/Berlin]`. Without offset or zone it is
            UTC; with both they must agree.
        end_of_day: a day means its last instant (for `as_of`), else its first (`valid_from`).

    Raises:
        InputError: it is none of these, there is no such day or zone, offset and zone differ, or it
            lies outside of the years 2 to 9998.
    """
    match = _FORM.fullmatch(text.strip())
    if match is None:
        raise _unread(text)
    try:
        day = datetime.fromisoformat(match["day"]).date()
        clock = time.fromisoformat(match["time"]) if match["time"] else _edge(end_of_day)
        zone = _zone(match["zone"]) if match["zone"] else None
        local = datetime.combine(day, clock)
        if match["offset"]:
            found = datetime.fromisoformat(
                local.isoformat() + match["offset"].replace("Z", "+00:00")
            )
        else:
            found = local.replace(tzinfo=zone or UTC)
    except ValueError as error:
        raise _unread(text) from error
    check_instant(found)  # first: what lies outside has no form in other zones
    if (
        zone is not None
        and match["offset"]
        and found.astimezone(zone).utcoffset() != found.utcoffset()
    ):
        raise InputError(
            f"{match['offset']} is not the offset of {match['zone']} at {text!r}.",
            next_step="Leave one of them out.",
        )
    return found


def check_instant(at: datetime) -> datetime:
    """An aware instant that every part of the system can hold, in whichever zone it is shown.

    Raises:
        InputError: it has no zone, or lies outside of the years 2 to 9998 in UTC.
    """
    if at.tzinfo is None:
        raise InputError(
            "The time has no zone.", next_step="Give an aware datetime, for instance in UTC."
        )
    try:
        fits = _FIRST <= at.astimezone(UTC) < _LAST
    except OverflowError:
        fits = False
    if not fits:
        raise InputError(
            "The time lies outside of the years 2 to 9998.", next_step="Give a time within them."
        )
    return at


def _edge(end_of_day: bool) -> time:
    return time.max if end_of_day else time.min


def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError) as error:
        raise InputError(
            f"There is no time zone {name!r}.", next_step="Name one such as Europe/Berlin."
        ) from error


def _unread(text: str) -> InputError:
    return InputError(
        f"{text!r} is not a time.",
        next_step="Write 2026-01-31, 2026-01-31T12:00+01:00 or 2026-01-31[Europe/Berlin].",
    )
