"""What is written down about a search: a keyed digest of the question, and what it reached.

Belongs here: the key, the digest, the row. What does not: SQL (`store.logs`). Questions are short
and easily guessed, so a plain hash of one is no secret; without the key, which the database does
not hold, the digest says nothing. See RFC 2104 (HMAC).
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from kb_resources.errors import InputError, UnavailableError
from kb_resources.store.search import RowFilter, SearchQuery

_CORRELATION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
_KEPT = ("scope", "document_id", "version", "digest", "passage_id", "byte_start", "byte_end")


def new_correlation_id() -> str:
    """A random id of 128 bits."""
    return secrets.token_hex(16)


def check_correlation_id(text: str) -> str:
    """Return a caller's correlation id or raise InputError."""
    if not _CORRELATION_ID.fullmatch(text):
        raise InputError(
            f"{text[:128]!r} is not a correlation id.",
            next_step="Use 1 to 128 of A-Z, a-z, 0-9, . _ : -, starting with a letter or digit.",
        )
    return text


@dataclass(frozen=True, slots=True)
class QuestionKey:
    """The secret that digests of questions are made with.

    Attributes:
        secret: at least 16 random bytes.
    """

    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.secret) < 16:
            raise InputError(
                "The key of the question log is shorter than 16 bytes.",
                next_step="Set KB_LOG_KEY to at least 32 hexadecimal digits, or unset it.",
            )

    @classmethod
    def from_hex(cls, text: str) -> Self:
        """The key written as hexadecimal digits; InputError where it is not."""
        try:
            return cls(bytes.fromhex(text))
        except ValueError as error:
            raise InputError(
                "The key of the question log is not hexadecimal.",
                next_step="Set KB_LOG_KEY to 64 hexadecimal digits, or unset it.",
            ) from error

    @classmethod
    def kept_in(cls, file: Path) -> Self:
        """The key in a file that its owner alone may read; made there when it is not.

        Raises:
            UnavailableError: the file can be neither read nor made.
            InputError: it holds something else.
        """
        try:
            if not file.exists():
                _make_key(file)
            return cls.from_hex(file.read_text("ascii").strip())
        except OSError as error:
            raise UnavailableError(
                f"The key of the question log cannot be kept in {file} ({error.strerror}).",
                next_step="Let this account write there, or set KB_LOG_KEY.",
            ) from error

    @property
    def key_id(self) -> str:
        """Tells keys apart without giving them away."""
        return hashlib.sha256(b"kb question key id\0" + self.secret).hexdigest()[:12]

    def digest(self, question: str) -> str:
        """HMAC-SHA-256 hex of a question; outer white space and Unicode form do not matter."""
        text = unicodedata.normalize("NFC", question.strip()).encode("utf-8", "ignore")
        return hmac.new(self.secret, text, hashlib.sha256).hexdigest()


@dataclass(frozen=True, slots=True)
class RetrievalLog:
    """How searches are written down.

    Attributes:
        key: digests questions.
        new_id: gives the correlation id of a search that was given none.
    """

    key: QuestionKey
    new_id: Callable[[], str] = new_correlation_id

    def row(
        self,
        question: str,
        query: SearchQuery,
        rows: Sequence[Mapping[str, Any]],
        *,
        correlation_id: str,
        actor: str,
        asked_mode: str,
        mode: str,
        model_id: str | None,
        analyzer: str,
        options: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The log's row for one search and its ranked rows."""
        chosen = query.filters
        return {
            "correlation_id": correlation_id,
            "scope_ids": list(query.scope_ids),
            "actor": actor,
            "audiences": None if query.audiences is None else list(query.audiences),
            "question_digest": self.key.digest(question),
            "key_id": self.key.key_id,
            "asked_mode": asked_mode,
            "mode": mode,
            "k": query.k,
            "as_of": query.as_of,
            "known_at": query.known_at,
            "historical": query.historical,
            "filters": None if chosen == RowFilter() else _given(chosen),
            "options": options,
            "model_id": model_id,
            "analyzer": analyzer,
            "hits": [
                {"rank": rank, **{name: row[name] for name in _KEPT}}
                for rank, row in enumerate(rows, 1)
            ],
        }


def _make_key(file: Path) -> None:
    """Written whole under another name first; of two processes at once, one wins."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f"{file.name}.{secrets.token_hex(8)}")
    with os.fdopen(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as out:
        out.write(secrets.token_hex(32) + "\n")
    try:
        os.link(draft, file)
    except FileExistsError:
        return
    finally:
        draft.unlink()


def _given(chosen: RowFilter) -> dict[str, Any]:
    named = {
        "languages": chosen.languages,
        "media_types": chosen.media_types,
        "documents": chosen.documents,
        "heading_prefix": chosen.heading_prefix,
        "metadata": chosen.metadata,
    }
    plain = {name: value for name, value in named.items() if value is not None}
    return {n: dict(v) if isinstance(v, Mapping) else list(v) for n, v in plain.items()}
