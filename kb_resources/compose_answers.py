"""What answering and auditing are built from: the composition root's part for answers.

Belongs here: the same as in `compose`, for what reads questions. What does not: opening the
database, which `compose` does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kb_resources.answer.answerer import Answerer
    from kb_resources.retrieve import Expander, Retriever
    from kb_resources.retrieve.log import QuestionKey
    from kb_resources.retrieve.retriever import Gate
    from kb_resources.settings import Settings
    from kb_resources.store.pool import Database


def open_answerer(settings: Settings, database: Database, retriever: Retriever) -> Answerer:
    """What answers questions: the model that the settings name, or sentences of the passages.

    Raises:
        InputError: the settings of the answer endpoint do not fit.
    """
    from kb_resources.answer.answerer import Answerer
    from kb_resources.answer.endpoint import chat_endpoint

    model = None
    if settings.answer_url:
        model = chat_endpoint(
            settings.answer_url,
            settings.answer_model,
            key=settings.answer_key,
            timeout_s=settings.answer_timeout_s,
            hosting=settings.answer_hosting,
        )
    return Answerer(database, retriever, question_key(settings), model)


def blob_reader(settings: Settings) -> Callable[[str, str], bytes | None]:
    """Source bytes by scope and digest, None where they are gone; for audits."""

    def read(scope: str, digest: str) -> bytes | None:
        from kb_resources.acquire import open_blob_store

        store = open_blob_store(f"{settings.blob_location.rstrip('/')}/{scope}")
        return store.get(digest) if store.exists(digest) else None

    return read


def question_gate(settings: Settings, database: Database) -> Gate:
    """What decides whether a question may go to an embedding endpoint; a local model needs none."""

    def gate(embedder: object, question: str, **given: Any) -> bool:
        from kb_resources.embed.remote import RemoteEmbedder

        if not isinstance(embedder, RemoteEmbedder):
            return True
        from kb_resources.answer.disclosure import EmbeddingGate

        decide = EmbeddingGate(database, question_key(settings), settings.embed_hosting)
        return decide(embedder, question, **given)

    return gate


def open_expander(settings: Settings) -> Expander | None:
    """What questions are also asked as; None where no synonyms are set.

    Raises:
        InputError: the file of synonyms does not fit.
    """
    if settings.synonyms is None:
        return None
    from kb_resources.retrieve.expand import read_synonyms

    return read_synonyms(settings.synonyms)


def question_key(settings: Settings) -> QuestionKey:
    """What questions are digested with in the logs; made on first use.

    Raises:
        InputError: KB_LOG_KEY is no key.
        UnavailableError: the file can be neither read nor made.
    """
    from kb_resources.retrieve.log import QuestionKey

    if settings.log_key:
        return QuestionKey.from_hex(settings.log_key)
    return QuestionKey.kept_in(settings.home / "question.key")
