"""What the two kinds of server want to hear and how they answer.

Belongs here: paths, payloads, answers. What does not: sending (`transport`), judging vectors
(`vectors`). See the "Create embeddings" page of OpenAI's API reference and the OpenAPI document
of huggingface/text-embeddings-inference.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from kb_resources.errors import InputError, IntegrityError

Dialect = Literal["openai", "tei"]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where an embedding server is and how it talks.

    Attributes:
        dialect: `openai` (POST `<url>/embeddings`) or `tei` (POST `<url>/embed`).
        url: base address; for `openai` it usually ends in `/v1`.
        model: the name the server knows the model by; TEI serves one and needs none.

    Raises:
        InputError: the address holds a user, password or query, which would be kept and shown.
    """

    dialect: Dialect
    url: str
    model: str = ""

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if "@" in parts.netloc or parts.query or parts.fragment:
            raise InputError(
                f"The endpoint's address on {parts.hostname} holds a user, a password or a query.",
                next_step="Give the bare address, and its key in KB_EMBED_KEYS.",
                code="address_with_secret",
            )

    @property
    def address(self) -> str:
        """The address that requests go to."""
        return f"{self.url.rstrip('/')}/{'embeddings' if self.dialect == 'openai' else 'embed'}"

    def payload(self, texts: Sequence[str]) -> dict[str, Any]:
        """The request's JSON."""
        if self.dialect == "openai":
            return {"model": self.model, "input": list(texts), "encoding_format": "float"}
        return {"inputs": list(texts), "normalize": True, "truncate": False}

    def parse(self, reply: Any, count: int) -> tuple[list[Any], int]:
        """Vectors in the order of the texts, unchecked, and the tokens the server counted.

        Raises:
            IntegrityError: the answer has another shape, or not one vector for each text.
        """
        try:
            if self.dialect == "tei":
                vectors, tokens = list(reply), 0
            else:
                by_place = {item["index"]: _numbers(item["embedding"]) for item in reply["data"]}
                vectors = [by_place[place] for place in range(len(reply["data"]))]
                tokens = int((reply.get("usage") or {}).get("total_tokens") or 0)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise IntegrityError(
                f"{self.address} answered in a form that is not {self.dialect}'s.",
                next_step="Check the endpoint's kind; nothing was stored.",
            ) from error
        if len(vectors) != count:
            raise IntegrityError(
                f"{self.address} gave {len(vectors)} vectors for {count} texts.",
                next_step="Nothing was stored; check the endpoint.",
            )
        return vectors, tokens


def _numbers(embedding: Any) -> Any:
    if isinstance(embedding, str):  # some servers send base64 whatever was asked for
        import numpy as np

        return np.frombuffer(base64.b64decode(embedding, validate=True), "<f4")
    return embedding
