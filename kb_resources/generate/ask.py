"""One request to a language model, and what came of it.

Belongs here: the fence around a text, the ways in which a reply is none. What does not: HTTP, which
the caller passes in. Reasons for a reply's end: https://platform.openai.com/docs/api-reference/chat,
`finish_reason`.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass

from kb_resources.errors import KbError
from kb_resources.model import content_hash, sha256_hex


@dataclass(frozen=True, slots=True)
class Request:
    """What a model is asked.

    Attributes:
        system: what it is to do.
        text: what it is to do it with, fenced; with a file, a word about that.
        digest: SHA-256 hex of the document's part in it: the text inside the fence, or the file.
        size: of that: code points of a text, bytes of a file.
        file: a PDF, or None.
        as_json: whether the reply is to be one JSON object.
    """

    system: str
    text: str
    digest: str
    size: int
    file: bytes | None = None
    as_json: bool = False


@dataclass(frozen=True, slots=True)
class Said:
    """What an endpoint replied.

    Attributes:
        text: the message.
        finish: why it ended: `stop`, `length`, `content_filter`, …; empty where it does not say.
        refusal: the model's words where it refuses, else empty.
        prompt_tokens: as the endpoint counted, None where it does not say.
        answer_tokens: likewise.
    """

    text: str
    finish: str = ""
    refusal: str = ""
    prompt_tokens: int | None = None
    answer_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of asking.

    Attributes:
        outcome: `answered`, `cut_off`, `refused`, `empty`, or `endpoint_` and the code of the error
            that kept it from answering (`endpoint_unavailable`).
        said: the reply, None where there is none.
    """

    outcome: str
    said: Said | None = None

    @property
    def text(self) -> str | None:
        """The message, None unless it is whole."""
        return self.said.text if self.said and self.outcome == "answered" else None

    @property
    def asked_again(self) -> bool:
        """Whether the next run asks again: nothing was wrong with the reply, there was none."""
        return self.said is None


Complete = Callable[[Request, int], Said]
"""A request and the most tokens of the reply in, the reply out; KbError where none comes."""


@dataclass(frozen=True, slots=True)
class Model:
    """A language model that is asked one thing at a time.

    Attributes:
        name: as the endpoint knows it.
        complete: what sends.
        reply_tokens: the longest reply that is asked for.
    """

    name: str
    complete: Complete
    reply_tokens: int

    def ask(self, request: Request) -> Answer:
        """The model's answer. Never raises for an endpoint that is away or talks nonsense."""
        try:
            said = self.complete(request, self.reply_tokens)
        except KbError as error:
            return Answer(f"endpoint_{error.code}")
        if said.refusal or said.finish == "content_filter":
            return Answer("refused", said)
        if said.finish == "length":
            return Answer("cut_off", said)
        return Answer("answered" if said.text.strip() else "empty", said)


def text_request(
    system: str,
    text: str,
    *,
    as_json: bool = False,
    nonce: Callable[[], str] = lambda: secrets.token_hex(12),
) -> Request:
    """A request about a text, which stands between two lines that it cannot hold.

    Args:
        system: what to do; `{fence}` in it becomes the fence.
        text: untrusted.
        as_json: whether the reply is to be one JSON object.
        nonce: random words, drawn anew while the text holds one.
    """
    fence = f"<<{nonce()}>>"
    while fence in text:
        fence = f"<<{nonce()}>>"
    return Request(
        system=system.replace("{fence}", fence),
        text=f"{fence}\n{text}\n{fence}",
        digest=content_hash(text),
        size=len(text),
        as_json=as_json,
    )


def file_request(system: str, data: bytes) -> Request:
    """A request about a PDF that is sent as it is."""
    return Request(
        system=system,
        text="The document is the attached file.",
        digest=sha256_hex(data),
        size=len(data),
        file=data,
    )
