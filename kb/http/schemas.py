"""Shapes of requests, and what all answers share.

Belongs here: pydantic models of the API's input and output. What does not: what they mean. Text
that Postgres cannot hold (U+0000) is refused here, once (postgresql.org/docs, "8.3. Character
Types").
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from kb_resources.answer.ground import MAX_QUOTE
from kb_resources.errors import InputError
from kb_resources.supersede import check_instant, parse_instant

T = TypeVar("T")
_MOST_UNKNOWN = 20
_CURSOR = re.compile(rb"[0-9]{1,18}")


def _storable(text: str) -> str:
    if "\0" in text:
        raise ValueError("holds U+0000, which no text has")
    return text


def _instant(value: Any) -> Any:
    """A day means its end; zones may be named; what only pydantic reads is left to it."""
    if isinstance(value, str):
        try:
            return parse_instant(value, end_of_day=True)
        except InputError:
            return value
    return value


def _in_utc(value: datetime) -> datetime:
    aware = value if value.tzinfo else value.replace(tzinfo=UTC)
    try:
        return check_instant(aware)
    except InputError as error:
        raise ValueError(error.message) from error


Text = Annotated[str, Field(max_length=2000), AfterValidator(_storable)]
Name = Annotated[str, Field(max_length=200), AfterValidator(_storable)]
Names = Annotated[list[Name], Field(max_length=200)]
Question = Annotated[str, Field(max_length=8000), AfterValidator(_storable)]
Quote = Annotated[str, Field(max_length=MAX_QUOTE), AfterValidator(_storable)]
Instant = Annotated[
    datetime,
    BeforeValidator(_instant),
    AfterValidator(_in_utc),
    Field(
        description="ISO 8601, UTC where it says no zone; a day means its end. A zone may be "
        "named: 2026-01-31[Europe/Berlin]."
    ),
]


class Input(BaseModel):
    """A request's body; fields it does not know are refused, and counted before each is told."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _few(cls, value: Any) -> Any:
        if isinstance(value, dict) and len(value) > len(cls.model_fields) + _MOST_UNKNOWN:
            raise ValueError(f"has {len(value):,} fields")
        return value


class SearchRequest(Input):
    """One search in one scope."""

    query: Question
    scope: Name
    audiences: Names | None = Field(None, description="Only these of the audiences you hold.")
    k: int = Field(8, ge=1, le=100, description="Passages at most.")
    mode: Literal["hybrid", "text", "vector"] = "hybrid"
    words: Literal["any", "all", "all_first"] = Field(
        "any", description="Passages with any of the words, with all of them, or those first."
    )
    as_of: Instant | None = None
    known_at: Instant | None = Field(None, description="What was known then to hold; else now.")
    include_historical: bool = False
    language: Name | None = Field(None, description="ISO 639-1 code.")
    media_type: Name | None = None
    heading_prefix: Names | None = Field(None, description="First headings, from the root down.")
    document_ids: Names | None = None
    metadata: dict[str, Any] | None = Field(
        None, description="What the source's metadata must contain."
    )
    min_score: float | None = Field(
        None, ge=0, le=1, description="Relevance that hits need; those that have none stay."
    )


class Highlight(BaseModel):
    """A half-open span of the passage's text, in code points."""

    start: int
    end: int


class HitOut(BaseModel):
    """A ranked passage with everything a citation needs; administrators also see scores."""

    model_config = ConfigDict(extra="allow")

    rank: int
    scope: str
    document_id: str
    version: int
    digest: str
    passage_id: str
    title: str
    heading_path: list[str]
    page: int | None
    locator: str | None
    byte_start: int
    byte_end: int
    char_start: int
    char_end: int
    language: str
    valid_from: str | None
    valid_until: str | None
    source: str
    text: str
    relevance: float | None = Field(
        None, description="Calibrated estimate that it is right, 0..1; null where none is made."
    )
    highlights: list[Highlight] = []


class SearchResponse(BaseModel):
    """Ranked passages, best first."""

    query: str
    mode: str
    score_kind: str = Field(description="What ranks the hits; not comparable between questions.")
    reranked: bool = Field(description="Whether a cross-encoder ordered them.")
    nothing_relevant: bool = Field(description="The hits are the nearest there is, and no answer.")
    hits: list[HitOut]
    correlation_id: str


class Page(BaseModel, Generic[T]):
    """One page of a list; `next_cursor` null on the last."""

    items: list[T]
    next_cursor: str | None = None


def encode_cursor(value: int) -> str:
    """An opaque cursor."""
    return base64.urlsafe_b64encode(str(value).encode()).decode().rstrip("=")


def decode_cursor(cursor: str | None) -> int | None:
    """Inverse of `encode_cursor`; InputError for one that is not ours."""
    if cursor is None:
        return None
    try:
        digits = base64.urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4))
    except ValueError:
        digits = b""
    if not _CURSOR.fullmatch(digits):
        raise InputError(
            "The cursor is not one of this list.",
            next_step="Take it from next_cursor, or start without one.",
        )
    return int(digits)


def paged(
    rows: Sequence[T], limit: int, cursor_of: Callable[[T], int]
) -> tuple[Sequence[T], str | None]:
    """A page of rows of which one more was asked for, and the cursor after it; None on the last."""
    shown = rows[:limit]
    return shown, encode_cursor(cursor_of(shown[-1])) if len(rows) > limit else None
