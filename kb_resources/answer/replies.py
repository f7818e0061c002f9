"""A model's reply to claims: exactly the JSON that was asked for, or an error saying what is off.

Belongs here: reading. What does not: believing (`ground`), repairing: a reply that has to be
guessed at is not used. Replies are as little trusted as documents, hence the limits.
"""

from __future__ import annotations

import json
from typing import Any

from kb_resources.answer.ground import Claim, ClaimedQuote

MAX_STATEMENTS = 50
MAX_QUOTES = 20
MAX_CHARS = 10_000


class MalformedReply(ValueError):
    """The reply is not what was asked for; the message says why, without quoting it."""


def read_reply(text: str) -> tuple[Claim, ...]:
    """The claims of a reply; none is an abstention.

    Raises:
        MalformedReply: it is not the object that was asked for.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MalformedReply("it is not JSON") from error
    if not isinstance(value, dict) or not isinstance(value.get("statements"), list):
        raise MalformedReply('it has no list "statements"')
    if len(value["statements"]) > MAX_STATEMENTS:
        raise MalformedReply(f"it has more than {MAX_STATEMENTS} statements")
    return tuple(map(_claim, value["statements"]))


def _claim(value: Any) -> Claim:
    if not isinstance(value, dict) or not _is_text(value.get("text")):
        raise MalformedReply('a statement has no string "text"')
    quotes = value.get("quotes", [])
    if not isinstance(quotes, list) or len(quotes) > MAX_QUOTES:
        raise MalformedReply(f'"quotes" is not a list of at most {MAX_QUOTES}')
    return Claim(_clean(value["text"]), tuple(map(_quote, quotes)))


def _quote(value: Any) -> ClaimedQuote:
    if not isinstance(value, dict) or not isinstance(value.get("quote"), str):
        raise MalformedReply('a quote has no string "quote"')
    number = value.get("passage")
    if isinstance(number, bool) or not isinstance(number, int):
        raise MalformedReply('a quote has no number "passage"')
    if len(value["quote"]) > MAX_CHARS:
        raise MalformedReply(f"a quote is longer than {MAX_CHARS} characters")
    return ClaimedQuote(number, _clean(value["quote"]))


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip()) and len(value) <= MAX_CHARS


def _clean(text: str) -> str:
    """JSON can write lone surrogates and U+0000, which no store and no terminal takes."""
    return text.replace("\0", "").encode("utf-8", "ignore").decode().strip()
