"""A spreadsheet cell as its reader sees it, near enough.

Belongs here: numbers, percentages, currencies, dates. Number format codes follow ECMA-376 part 1,
18.8.31; formats beyond the common ones show the plain value.
"""

from __future__ import annotations

import datetime
import re
from typing import Any

_QUOTED = re.compile(r'"([^"]*)"|\\(.)|\[[^\]]*\]|_.|\*.')
_DECIMALS = re.compile(r"\.(0+)")
_CURRENCY = re.compile(
    r"[€$£¥]|(?<![a-z])(?:EUR|USD|GBP|CHF|RSD|BGN|MKD|HRK)(?![a-z])", re.IGNORECASE
)


def cell_text(cell: Any) -> str:
    """The text of an openpyxl cell; "" for an empty one."""
    value = cell.value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, datetime.datetime):
        if value.time() == datetime.time() and not _shows_time(cell.number_format):
            return value.date().isoformat()
        return value.isoformat(sep=" ", timespec="minutes")
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, datetime.time):
        return value.isoformat(timespec="minutes")
    if isinstance(value, int | float):
        return _number(value, cell.number_format or "General")
    return str(value)


def _shows_time(number_format: str | None) -> bool:
    return bool(number_format) and "h" in _QUOTED.sub("", number_format or "").lower()


def _number(value: float, number_format: str) -> str:
    first = number_format.split(";")[0]
    code = _QUOTED.sub("", first)
    decimals = _DECIMALS.search(code)
    places = len(decimals[1]) if decimals else 0
    if "%" in code:
        return f"{value * 100:.{places}f}%"
    if "0" in code and not re.search(r"[eE][+-]", code):
        text = f"{value:.{places}f}"
    else:
        text = _plain(value)
    currency = _CURRENCY.search(first)
    if currency and "0" in code:
        before = currency.start() < first.find("0")
        return f"{currency[0]}{text}" if before else f"{text} {currency[0]}"
    return text


def _plain(value: float) -> str:
    if isinstance(value, int) or (value.is_integer() and abs(value) < 1e15):
        return str(int(value))
    return f"{value:.15g}"
