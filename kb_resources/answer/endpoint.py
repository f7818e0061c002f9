"""A chat model behind an OpenAI-compatible endpoint, asked once at temperature 0.

Belongs here: the request and what of the reply is used. What does not: HTTP and retries
(`embed.remote.transport`, which the embedding endpoints share), what the reply says (`replies`).
See https://platform.openai.com/docs/api-reference/chat.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

from kb_resources.answer.prompt import Message
from kb_resources.embed.remote.transport import HttpTransport, Retry
from kb_resources.embed.remote.whose import Hosting, destination_of, hosting_of
from kb_resources.errors import InputError, IntegrityError

MAX_REPLY_BYTES = 1_000_000
MAX_REPLY_TOKENS = 2_000
_BYTES_PER_TOKEN = 40
LONGEST_WAIT_S = 30.0


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model said.

    Attributes:
        text: its words; empty where it refuses.
        prompt_tokens: as the endpoint counted, None where it does not say.
        answer_tokens: likewise.
        finish: why it ended (`stop`, `length`, …), empty where the endpoint does not say.
        refusal: the words it refuses with, else empty.
    """

    text: str
    prompt_tokens: int | None = None
    answer_tokens: int | None = None
    finish: str = ""
    refusal: str = ""


class ChatModel(Protocol):
    """Anything that completes a chat."""

    @property
    def name(self) -> str:
        """What the log calls it."""
        ...

    @property
    def destination(self) -> str:
        """Where the texts go: scheme, host and port."""
        ...

    @property
    def hosting(self) -> Hosting:
        """Whose machine that is."""
        ...

    def complete(self, messages: Sequence[Message]) -> Reply:
        """The model's reply."""
        ...


@dataclass(frozen=True, slots=True)
class ChatEndpoint:
    """Implements `ChatModel`.

    Attributes:
        url: base address (`https://host/v1`) or that of the chat completions themselves.
        model: name of the model there.
        transport: what sends; see `chat_transport`.
        declared: whose machine it is, or `auto`: loopback and private addresses are one's own.
    """

    url: str
    model: str
    transport: HttpTransport
    declared: str = "auto"

    @property
    def name(self) -> str:
        """The model's name."""
        return self.model

    @property
    def address(self) -> str:
        """Where requests go."""
        base = self.url.rstrip("/")
        return base if base.endswith("/chat/completions") else f"{base}/chat/completions"

    @property
    def destination(self) -> str:
        """Scheme, host and port, without user, path or query."""
        return destination_of(self.url)

    @property
    def hosting(self) -> Hosting:
        """`self_hosted` for this machine and private networks, unless declared otherwise."""
        return hosting_of(self.url, self.declared)

    def complete(
        self,
        messages: Sequence[Message],
        *,
        as_json: bool = True,
        max_tokens: int = MAX_REPLY_TOKENS,
    ) -> Reply:
        """The model's reply to a chat.

        Args:
            messages: of the chat.
            as_json: ask for one JSON object.
            max_tokens: the longest reply.

        Raises:
            UnavailableError: the endpoint is away, busy or too slow.
            PolicyError: it refuses the key.
            InputError: it calls the request wrong.
            NotFound: the address or the model does not exist there.
            IntegrityError: the reply is not one of a chat endpoint.
        """
        payload = {
            "model": self.model,
            "messages": [{"role": m.role, "content": m.content} for m in messages],
            "temperature": 0,
            "max_tokens": max_tokens,
            **({"response_format": {"type": "json_object"}} if as_json else {}),
            "stream": False,
        }
        most = max(MAX_REPLY_BYTES, max_tokens * _BYTES_PER_TOKEN)
        value = self.transport.post(self.address, payload, max_bytes=most)
        try:
            choice = value["choices"][0]
            text, refusal = choice["message"]["content"], choice["message"].get("refusal")
        except (TypeError, KeyError, IndexError, AttributeError):
            choice, text, refusal = {}, None, None
        refusal = refusal if isinstance(refusal, str) else ""
        if refusal and text is None:
            text = ""
        if not isinstance(text, str):
            raise IntegrityError(
                f"The answer endpoint {self.destination} sent no message.",
                next_step="Check that it speaks the chat completions API.",
                code="malformed_reply",
            )
        usage = value.get("usage") or {}
        return Reply(
            text,
            _tokens(usage, "prompt_tokens"),
            _tokens(usage, "completion_tokens"),
            finish=str(choice.get("finish_reason") or ""),
            refusal=refusal,
        )


def chat_transport(
    key: str, timeout_s: float, retry: Retry | None = None, service: str = "answer endpoint"
) -> HttpTransport:
    """What a chat endpoint is asked through: two attempts, within `timeout_s` in all."""
    return HttpTransport(
        headers={"Authorization": f"Bearer {key}"} if key else {},
        timeout_s=timeout_s,
        deadline_s=timeout_s,
        retry=retry or Retry(attempts=2, longest_wait_s=LONGEST_WAIT_S),
        service=service,
    )


def chat_endpoint(
    url: str, model: str, *, key: str = "", timeout_s: float = 60.0, hosting: str = "auto"
) -> ChatEndpoint:
    """The endpoint of some settings.

    Raises:
        InputError: no model is named, or the address is not http or https.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError(
            f"{url!r} is not the address of an endpoint.",
            next_step="Set KB_ANSWER_URL to an http or https address, or unset it.",
        )
    if not model:
        raise InputError(
            "No model is named for the answer endpoint.", next_step="Set KB_ANSWER_MODEL."
        )
    return ChatEndpoint(url, model, chat_transport(key, timeout_s), hosting)


def _tokens(usage: object, name: str) -> int | None:
    value = usage.get(name) if isinstance(usage, dict) else None
    return value if isinstance(value, int) and 0 <= value < 2**31 else None
