"""Fixed texts whose vectors tell whether the model behind an address is still the same.

Belongs here: the texts, the record of their vectors, the comparison. What does not: where the
record is kept (`preparation`). The idea is the miners' bird: it notices first.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kb_resources.errors import IntegrityError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kb_resources.embed.identity import Embedder

CANARY_TEXTS = (
    "The invoice is due within thirty days of receipt.",
    "A blue bicycle leans against the library wall.",
    "Bitte senden Sie den unterschriebenen Vertrag zurück.",
    "Im Winter friert der See oft bis zum Ufer zu.",
    "Заявлението се подава в два екземпляра.",
    "Планинската пътека минава край стара чешма.",
    "Сотрудник обязан сообщить о конфликте интересов.",
    "На столе стояла ваза с полевыми цветами.",
    "Захтев се решава у року од петнаест дана.",
    "Kiša je padala celo popodne.",
    "Договорот стапува во сила на денот на потпишувањето.",
    "Мачката спие на прозорецот.",
    "Račun se plaća u roku od osam dana.",
    "Brod je isplovio prije zore.",
    "Pogodba velja za nedoločen čas.",
    "function add(a, b) { return a + b; } // 42",
)
_NEXT = "Restore the model, or prepare this one under another name and embed again."


@dataclass(frozen=True, slots=True)
class CanaryRecord:
    """The canaries' vectors at the time a model was taken into use.

    Attributes:
        vectors: `(16, dimensions)` float32, L2-normalised.
    """

    vectors: NDArray[np.float32]

    def to_json(self) -> str:
        """The record's text."""
        stored = [base64.b64encode(row.astype("<f2").tobytes()).decode() for row in self.vectors]
        return json.dumps({"texts": CANARY_TEXTS, "vectors": stored}, ensure_ascii=False, indent=1)

    @classmethod
    def from_json(cls, text: str) -> CanaryRecord:
        """Inverse of `to_json`, but for rounding to half precision.

        Raises:
            IntegrityError: not a record of these texts.
        """
        try:
            fields: dict[str, Any] = json.loads(text)
            rows = [np.frombuffer(base64.b64decode(row), "<f2") for row in fields["vectors"]]
            vectors = np.stack(rows).astype(np.float32)
            known = tuple(fields["texts"]) == CANARY_TEXTS and len(vectors) == len(CANARY_TEXTS)
        except (ValueError, KeyError, TypeError) as error:
            raise IntegrityError("The canary record can't be read.", next_step=_NEXT) from error
        if not known:
            raise IntegrityError("The canary record is of other texts.", next_step=_NEXT)
        return cls(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))

    def agrees(self, other: CanaryRecord, *, min_cosine: float) -> bool:
        """Whether both records can come from the same weights."""
        if other.vectors.shape != self.vectors.shape:
            return False
        return bool((self.vectors * other.vectors).sum(axis=1).min() >= min_cosine)

    def check(
        self, vectors: NDArray[np.float32], places: Sequence[int], *, source: str, min_cosine: float
    ) -> None:
        """Compare new vectors of the canaries at `places` with the recorded ones.

        Raises:
            IntegrityError: another length, or one is too far from its record.
        """
        if vectors.shape[1:] != self.vectors.shape[1:]:
            raise IntegrityError(
                f"{source} now gives {vectors.shape[-1]} dimensions instead of "
                f"{self.vectors.shape[1]}: another model answers there.",
                next_step=_NEXT,
            )
        lowest = float((vectors * self.vectors[list(places)]).sum(axis=1).min())
        if not lowest >= min_cosine:
            raise IntegrityError(
                f"{source} no longer gives the vectors it gave when it was prepared (cosine "
                f"{lowest:.4f}, needed {min_cosine}): another model answers there.",
                next_step=_NEXT,
            )


def probe(embedder: Embedder) -> CanaryRecord:
    """Record the canaries of a model, embedded as passages."""
    return CanaryRecord(embedder.embed(CANARY_TEXTS, "passage"))
