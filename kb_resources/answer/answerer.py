"""One question to one answer: search, phrase or extract, ground, write down.

Belongs here: the order of steps and their transactions. What does not: each step. Nothing is sent
before the disclosure is committed; an answer that cannot be written down is not given.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from kb_resources.answer.answer import Answer, AnswerCitation, Rejected, Statement
from kb_resources.answer.disclosure import disclose
from kb_resources.answer.endpoint import ChatModel
from kb_resources.answer.extract import extract, question_words, weighed
from kb_resources.answer.fences import random_mark
from kb_resources.answer.ground import Citation, Grounded, GroundedStatement, ground
from kb_resources.answer.keeping import Transactions, place_in_version
from kb_resources.answer.prompt import again, answer_prompt
from kb_resources.answer.replies import MalformedReply, read_reply
from kb_resources.errors import InputError, IntegrityError
from kb_resources.lexical.fold import visible
from kb_resources.model import Principal
from kb_resources.retrieve import Hit, Retriever, SearchResult
from kb_resources.retrieve.log import QuestionKey
from kb_resources.store import answers, logs
from kb_resources.store.documents import Conn

DEFAULT_K = 8
ATTEMPTS = 2
"""A reply that is not as asked is asked for once more."""


class Searcher(Protocol):
    """What finds passages; see `retrieve.Retriever`."""

    def search(
        self,
        query: str,
        *,
        principal: Principal,
        scope: str | None = None,
        mode: str = "hybrid",
        k: int = DEFAULT_K,
        as_of: datetime | None = None,
        correlation_id: str | None = None,
    ) -> SearchResult:
        """Ranked passages, written down under a correlation id."""
        ...


@dataclass(frozen=True, slots=True)
class _Said:
    """What was answered, before it is numbered."""

    grounded: Grounded
    hits: Sequence[Hit]
    calls: int = 0
    prompt_tokens: int | None = None
    answer_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Answerer:
    """Answers questions from one installation.

    Attributes:
        database: transactions of the reading role.
        searcher: finds passages.
        key: digests questions and answers in the logs.
        model: phrases answers; None: sentences of the passages.
        draw: gives random marks for fences.
        timer: monotonic seconds.
    """

    database: Transactions
    searcher: Searcher
    key: QuestionKey
    model: ChatModel | None = None
    draw: Callable[[], str] = random_mark
    timer: Callable[[], float] = time.perf_counter

    def ask(
        self,
        question: str,
        *,
        scope: str,
        principal: Principal,
        k: int = DEFAULT_K,
        as_of: datetime | None = None,
        correlation_id: str | None = None,
    ) -> Answer:
        """Answer from what a scope shows this principal.

        Args:
            question: any text.
            scope: scope name.
            principal: who asks.
            k: passages the answer may rest on.
            as_of: aware time; from what was valid then.
            correlation_id: names it in the logs; None: a new one.

        Returns:
            An answer; without statements where nothing fits. No passages: no model is asked.

        Raises:
            InputError: the question is blank (`blank_question`); nothing is written down.
            NotFound: no such scope for this principal.
            PolicyError: the texts may not go to the model (`disclosure_blocked`).
            UnavailableError: database or model is away.
            IntegrityError: the model twice replied something else than was asked
                (`malformed_reply`).
        """
        if not visible(question).strip():
            raise InputError(
                "The question is blank.",
                next_step="Write what you want to know.",
                code="blank_question",
            )
        started = self.timer()
        found = self.searcher.search(
            question,
            scope=scope,
            principal=principal,
            k=k,
            as_of=as_of,
            correlation_id=correlation_id,
        )
        name = self.model.name if self.model else "extractive"
        if not found.hits:
            said = _Said(Grounded(()), ())
        elif self.model is None:
            said = self._extracted(question, scope, found.hits)
        else:
            said = self._phrased(
                self.model, question, scope, found.hits, principal, found.correlation_id
            )
        with self.database.transaction("app", scope) as conn:
            made = _numbered(conn, said, found, name)
            logs.add_answer(
                conn,
                {
                    "correlation_id": found.correlation_id,
                    "scopes": [scope],
                    "actor": principal.id,
                    "answerer": name,
                    "abstained": made.abstained,
                    "answer_digest": self.key.digest(made.text),
                    "statements": _logged(made),
                    "rejected": [
                        {"passage": item.passage, "reason": item.reason.value}
                        for item in made.rejected
                    ],
                    "calls": said.calls,
                    "prompt_tokens": said.prompt_tokens,
                    "answer_tokens": said.answer_tokens,
                    "duration_s": self.timer() - started,
                },
            )
        return made

    def _extracted(self, question: str, scope: str, hits: Sequence[Hit]) -> _Said:
        words = question_words(question)
        with self.database.transaction("app", scope) as conn:
            lexemes = {lexeme for forms in words for lexeme in forms}
            frequencies, passages = answers.word_frequencies(conn, [scope], lexemes)
        return _Said(Grounded(extract(weighed(words, frequencies, passages), hits)), hits)

    def _phrased(
        self,
        model: ChatModel,
        question: str,
        scope: str,
        hits: Sequence[Hit],
        principal: Principal,
        correlation_id: str,
    ) -> _Said:
        with self.database.transaction("app", scope) as conn:
            kept, refusal = disclose(
                conn,
                question,
                hits,
                model,
                scopes=[scope],
                key=self.key,
                actor=principal.id,
                correlation_id=correlation_id,
            )
        if refusal is not None:
            raise refusal
        prompt = answer_prompt(question, kept, draw=self.draw)
        tokens: list[tuple[int | None, int | None]] = []
        problem = ""
        for _ in range(ATTEMPTS):
            reply = model.complete(prompt.messages)
            tokens.append((reply.prompt_tokens, reply.answer_tokens))
            try:
                claims = read_reply(reply.text)
            except MalformedReply as error:
                problem = str(error)
                prompt = again(prompt, reply.text, problem)
                continue
            counts = (_sum(column) for column in zip(*tokens, strict=True))
            return _Said(ground(claims, [hit.text for hit in kept]), kept, len(tokens), *counts)
        raise IntegrityError(
            f"The model {model.name!r} at {model.destination} did not reply as asked ({problem}).",
            next_step="Ask again, name another KB_ANSWER_MODEL, or unset KB_ANSWER_URL.",
            code="malformed_reply",
        )


def extractive(database: Transactions, retriever: Retriever) -> Answerer:
    """An answerer without a model, over a retriever that keeps a log.

    Raises:
        InputError: it keeps none.
    """
    if retriever.log is None:
        raise InputError(
            "The retriever keeps no log, which answers are written to.",
            next_step="Open it with compose.open_retriever.",
        )
    return Answerer(database, retriever, retriever.log.key)


def _numbered(conn: Conn, said: _Said, found: SearchResult, name: str) -> Answer:
    """The answer with its citations numbered in order of first use, each span once."""
    numbers: dict[Citation, int] = {}
    citations: list[AnswerCitation] = []

    def number(cited: Citation) -> int:
        if cited not in numbers:
            hit = said.hits[cited.passage - 1]
            numbers[cited] = len(citations) + 1
            made = AnswerCitation(numbers[cited], hit, place_in_version(conn, hit, cited))
            citations.append(made)
        return numbers[cited]

    def statement(one: GroundedStatement) -> Statement:
        cited = tuple(dict.fromkeys(map(number, one.citations)))
        return Statement(one.text, cited, one.supported)

    return Answer(
        statements=tuple(map(statement, said.grounded.statements)),
        citations=tuple(citations),
        rejected=tuple(
            Rejected(item.claimed.quote, item.claimed.passage, item.reason)
            for item in said.grounded.rejected
        ),
        correlation_id=found.correlation_id,
        answerer=name,
        passages=len(found.hits),
        nothing_relevant=found.nothing_relevant or not found.hits,
    )


def _logged(made: Answer) -> list[dict[str, Any]]:
    """Statements for the log: spans, never words."""
    places = {
        citation.n: {
            "scope": citation.hit.scope,
            "document_id": citation.hit.document_id,
            "version": citation.hit.version,
            "digest": citation.hit.digest,
            "passage_id": citation.hit.passage_id,
            "body_start": citation.quotation.body_start,
            "body_end": citation.quotation.body_end,
        }
        for citation in made.citations
    }
    return [
        {"supported": s.supported, "citations": [places[n] for n in s.citations]}
        for s in made.statements
    ]


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
