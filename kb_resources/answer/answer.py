"""What an answer is: statements, the citations they rest on, and what was rejected.

Belongs here: shapes and their JSON. What does not: making them (`answerer`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kb_resources.answer.citing import Quotation
from kb_resources.answer.ground import RejectReason
from kb_resources.retrieve.hit import Hit


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement.

    Attributes:
        text: what it says.
        citations: numbers of the citations it rests on.
        supported: whether there is one; a statement without is shown flagged, or not at all.
    """

    text: str
    citations: tuple[int, ...]
    supported: bool


@dataclass(frozen=True, slots=True)
class AnswerCitation:
    """A numbered citation: a verified quote and the passage it stands in."""

    n: int
    hit: Hit
    quotation: Quotation

    def to_json(self) -> dict[str, Any]:
        """The passage's fields, the quote's place, the selector and the link."""
        found = self.quotation
        return {
            "n": self.n,
            **self.hit.to_json(),
            "quote": found.quote,
            "quote_char_start": found.char_start,
            "quote_char_end": found.char_end,
            "selector": found.selector,
            "deep_link": found.link,
        }


@dataclass(frozen=True, slots=True)
class Rejected:
    """A quote that a model claimed and that does not stand where it said."""

    quote: str
    passage: int
    reason: RejectReason


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer.

    Attributes:
        statements: in order; none when it abstains.
        citations: numbered from 1 in order of first use.
        rejected: quotes that were not found, with reasons.
        correlation_id: names search, disclosures and answer in the logs.
        answerer: `extractive`, or the model's name.
        passages: how many passages the question reached.
        nothing_relevant: whether the search found nothing relevant: what is said all the same rests
            on the nearest passages there are (`SearchResult.nothing_relevant`).
    """

    statements: tuple[Statement, ...]
    citations: tuple[AnswerCitation, ...]
    rejected: tuple[Rejected, ...]
    correlation_id: str
    answerer: str
    passages: int
    nothing_relevant: bool = False

    @property
    def abstained(self) -> bool:
        """Whether there is no answer."""
        return not self.statements

    @property
    def text(self) -> str:
        """The statements as one text, each with the numbers of its citations."""
        return " ".join(
            statement.text + "".join(f" [{n}]" for n in statement.citations)
            for statement in self.statements
        )

    def to_json(self) -> dict[str, Any]:
        """JSON-serialisable form."""
        return {
            "answer": self.text,
            "abstained": self.abstained,
            "nothing_relevant": self.nothing_relevant,
            "answerer": self.answerer,
            "statements": [
                {"text": s.text, "citations": list(s.citations), "supported": s.supported}
                for s in self.statements
            ],
            "citations": [citation.to_json() for citation in self.citations],
            "rejected": [
                {"quote": r.quote, "passage": r.passage, "reason": r.reason.value}
                for r in self.rejected
            ],
            "correlation_id": self.correlation_id,
        }
