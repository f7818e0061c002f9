"""Which texts may leave for which machine, decided and written down before a byte is sent.

Belongs here: classes, the rule, the log's row. What does not: sending. Requirement O-39: without a
word from its owner a text is confidential, and confidential texts stay on one's own machines.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from kb_resources.answer.endpoint import ChatModel
from kb_resources.answer.keeping import Transactions
from kb_resources.embed.remote import RemoteEmbedder
from kb_resources.embed.remote.whose import Hosting, destination_of, hosting_of
from kb_resources.errors import PolicyError
from kb_resources.retrieve.hit import Hit
from kb_resources.retrieve.log import QuestionKey
from kb_resources.store import logs
from kb_resources.store.documents import Conn

ContentClass = Literal["public", "internal", "confidential"]
CLASSES: tuple[ContentClass, ...] = ("public", "internal", "confidential")
EXTERNAL: frozenset[str] = frozenset({"public"})
"""Classes that may go to a machine that is not one's own."""


@dataclass(frozen=True, slots=True)
class Part:
    """One text that is to leave.

    Attributes:
        kind: `question`, `passage` or `document`.
        content_class: how far it may travel.
        digest: keyed for a question, SHA-256 hex of anything else.
        chars: its length: code points, bytes of a document that is sent as it is.
        place: scope, document, version, and the passage of one; empty for a question.
    """

    kind: str
    content_class: str
    digest: str
    chars: int
    place: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """The log's form."""
        own = {"kind": self.kind, "content_class": self.content_class}
        return {**own, "digest": self.digest, "chars": self.chars, **self.place}


def disclose(
    conn: Conn,
    question: str,
    hits: Sequence[Hit],
    model: ChatModel,
    *,
    scopes: Sequence[str],
    key: QuestionKey,
    actor: str,
    correlation_id: str,
) -> tuple[list[Hit], PolicyError | None]:
    """Decide and write down what of a question and its passages may go to a model.

    Args:
        conn: inside a transaction of the reading role, to be committed before anything is sent.
        question: as it was asked.
        hits: passages that would be sent.
        model: where to.
        scopes: scopes that were searched; the strictest class of theirs is the question's.
        key: digests the question.
        actor: who asks.
        correlation_id: of the search.

    Returns:
        The passages that may be sent, and the error to raise when nothing may: then nothing is
        to be sent. Both outcomes are rows of the log.
    """
    of_scope = logs.scope_classes(conn, scopes)
    of_document = logs.content_classes(conn, scopes, {hit.document_id for hit in hits})
    asked = _strictest(of_scope.values())
    parts = [Part("question", asked, key.digest(question), len(question), {})]
    for hit in hits:
        held = of_document.get((hit.scope, hit.document_id), "confidential")
        place = {
            name: getattr(hit, name) for name in ("scope", "document_id", "version", "passage_id")
        }
        digest = hashlib.sha256(hit.text.encode()).hexdigest()
        parts.append(Part("passage", held, digest, len(hit.text), place))
    fit = [model.hosting == "self_hosted" or part.content_class in EXTERNAL for part in parts]
    kept = [hit for hit, may in zip(hits, fit[1:], strict=True) if may]
    nothing = not fit[0] or not kept
    decided = [
        ("allowed", [] if nothing else [p for p, may in zip(parts, fit, strict=True) if may])
    ]
    blocked = parts if nothing else [p for p, may in zip(parts, fit, strict=True) if not may]
    for decision, affected in (*decided, ("blocked", blocked)):
        if affected:
            logs.add_disclosure(
                conn,
                {
                    "correlation_id": correlation_id,
                    "scopes": list(scopes),
                    "actor": actor,
                    "purpose": "answer",
                    "destination": model.destination,
                    "hosting": model.hosting,
                    "model": model.name,
                    "content_class": _strictest(part.content_class for part in affected),
                    "decision": decision,
                    "parts": [part.to_json() for part in affected],
                },
            )
    return ([], _refusal(model, asked, fit[0])) if nothing else (kept, None)


@dataclass(frozen=True, slots=True)
class Destination:
    """A machine that texts or bytes may be sent to.

    Attributes:
        address: its URL.
        model: what answers there, for the log.
        declared: whose machine it is: `self_hosted`, `external` or `auto` (by address).
    """

    address: str
    model: str
    declared: str = "auto"

    @property
    def hosting(self) -> Hosting:
        """Whose machine it is."""
        return hosting_of(self.address, self.declared)

    def admits(self, content_class: str) -> bool:
        """Whether a text of a class may go there."""
        return self.hosting == "self_hosted" or content_class in EXTERNAL


@dataclass(frozen=True, slots=True)
class EmbeddingGate:
    """Decides what may go to an embedding endpoint, and writes it down first.

    A model on this machine is no destination: it asks nothing and writes nothing.

    Attributes:
        database: transactions of the reading role.
        key: digests questions.
        declared: whose machine the endpoint is: `self_hosted`, `external` or `auto`.
    """

    database: Transactions
    key: QuestionKey
    declared: str = "auto"

    def __call__(
        self,
        embedder: object,
        question: str,
        *,
        scopes: Sequence[str],
        actor: str,
        correlation_id: str,
    ) -> bool:
        """Whether a question may be embedded; the strictest class of the scopes decides."""
        if not isinstance(embedder, RemoteEmbedder):
            return True
        with self.database.transaction("app", scopes) as conn:
            classes = logs.scope_classes(conn, scopes)
            if len(classes) < len(scopes):
                return False  # the search will say that there is no such scope
            held = _strictest(classes.values())
            part = Part("question", held, self.key.digest(question), len(question), {})
            return disclose_to(
                conn,
                [part],
                Destination(embedder.address, embedder.model_id, self.declared),
                purpose="embed_question",
                scopes=scopes,
                actor=actor,
                correlation_id=correlation_id,
            )


def disclose_to(
    conn: Conn,
    parts: Sequence[Part],
    to: Destination,
    *,
    purpose: str,
    scopes: Sequence[str],
    actor: str,
    correlation_id: str,
) -> bool:
    """Decide and write down whether texts may go to a machine: all or none.

    Args:
        conn: inside a transaction, to be committed before anything is sent.
        parts: what would be sent.
        to: where to.
        purpose: `embed_question`, `embed_passages`, `parse`, `second_opinion`, `convert` or
            `enrich`.
        scopes: where the texts belong.
        actor: who asks.
        correlation_id: of the search or the run.
    """
    may = all(to.admits(part.content_class) for part in parts)
    logs.add_disclosure(
        conn,
        {
            "correlation_id": correlation_id,
            "scopes": list(scopes),
            "actor": actor,
            "purpose": purpose,
            "destination": destination_of(to.address),
            "hosting": to.hosting,
            "model": to.model,
            "content_class": _strictest(part.content_class for part in parts),
            "decision": "allowed" if may else "blocked",
            "parts": [part.to_json() for part in parts],
        },
    )
    return may


def _refusal(model: ChatModel, asked: str, question_fits: bool) -> PolicyError:
    what = "The passages are" if question_fits else f"Questions of this scope are {asked}, that is"
    return PolicyError(
        f"{what} not for {model.destination}, which is not one of your own machines.",
        next_step=(
            "Class what may leave as public (kb audit classify), use a model of your own, or set "
            "KB_ANSWER_HOSTING=self_hosted if that machine is yours."
        ),
        code="disclosure_blocked",
    )


def _strictest(classes: Any) -> str:
    return max(classes, key=CLASSES.index, default="confidential")
