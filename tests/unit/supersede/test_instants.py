"""Instants as people write them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kb_resources.errors import InputError
from kb_resources.supersede import parse_instant


@pytest.mark.requirement("P-34")
@pytest.mark.parametrize(
    ("text", "end_of_day", "utc"),
    [
        ("2026-01-31", False, "2026-01-31T00:00:00"),
        ("2026-01-31", True, "2026-01-31T23:59:59.999999"),
        ("2026-01-31+01:00", False, "2026-01-30T23:00:00"),
        ("2026-01-31[Europe/Berlin]", True, "2026-01-31T22:59:59.999999"),
        ("2026-07-31[Europe/Berlin]", True, "2026-07-31T21:59:59.999999"),
        ("2026-01-31T12:00", True, "2026-01-31T12:00:00"),
        ("2026-01-31T12:00Z", True, "2026-01-31T12:00:00"),
        ("2026-01-31 12:00:30.5+02:00", True, "2026-01-31T10:00:30.500000"),
        ("2026-07-31T12:00[Europe/Sofia]", False, "2026-07-31T09:00:00"),
        ("2026-07-31T12:00+03:00[Europe/Sofia]", False, "2026-07-31T09:00:00"),
    ],
)
def test_days_and_times_with_and_without_a_zone(text: str, end_of_day: bool, utc: str) -> None:
    found = parse_instant(text, end_of_day=end_of_day)
    assert found.astimezone(UTC) == datetime.fromisoformat(utc).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "", "today", "2026-13-01", "2026-02-30", "2026-01-31T25:00", "31.01.2026", "2026-01",
        "2026-01-31[Nowhere/At_all]", "2026-01-31T12:00+03:00[Europe/Berlin]", "2026-01-31[../x]",
        "9999-12-31+00:00[Asia/Tokyo]", "0001-01-01T00:00Z[America/New_York]", "0001-01-01+14:00",
    ],
)  # fmt: skip
def test_what_is_no_instant_is_refused(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_instant(text, end_of_day=True)
    assert caught.value.next_step
