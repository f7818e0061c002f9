"""Asking: an answer with verified citations, or an abstention.

Belongs here: one question. What does not: answering (`kb_resources.answer`). A model may take a
minute, so answers have threads of their own and keep no search waiting.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from kb.http.guard import Viewer
from kb.http.schemas import HitOut, Input, Instant, Name, Names, Question
from kb.http.services import ServicesDep

router = APIRouter(prefix="/api/v1", tags=["search"])


class AskRequest(Input):
    """One question to one scope."""

    question: Question
    scope: Name
    audiences: Names | None = Field(None, description="Only these of the audiences you hold.")
    k: int = Field(8, ge=1, le=100, description="Passages the answer may rest on, at most.")
    as_of: Instant | None = None


class StatementOut(BaseModel):
    """One statement with the numbers of its citations."""

    text: str
    citations: list[int]
    supported: bool


class CitationOut(HitOut):
    """A verified quote in its passage, with W3C selectors into the version's body."""

    n: int
    quote: str
    quote_char_start: int
    quote_char_end: int
    selector: list[dict[str, Any]]
    deep_link: str


class RejectedOut(BaseModel):
    """A quote that a model claimed and that does not stand where it said."""

    quote: str
    reason: str


class AskResponse(BaseModel):
    """An answer; `abstained` where the documents do not give one."""

    model_config = ConfigDict(extra="ignore")

    answer: str
    abstained: bool
    nothing_relevant: bool
    answerer: str
    statements: list[StatementOut]
    citations: list[CitationOut]
    rejected: list[RejectedOut]
    correlation_id: str


@router.post("/ask", response_model=AskResponse)
async def ask(given: AskRequest, identity: Viewer, request: Request, services: ServicesDep) -> Any:
    """Answer a question from one scope, every quote verified."""
    answer = await services.answers.run(
        services.reader.ask,
        given.question,
        scope=identity.use_scope(given.scope),
        principal=identity.principal(given.audiences),
        k=given.k,
        as_of=given.as_of,
        correlation_id=request.state.correlation_id,
    )
    return answer.to_json()
