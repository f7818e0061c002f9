"""How likely a hit is right, and when to say that nothing is: calibrated per model and mode.

Belongs here: turning the signals of both lists into one number. What does not: ranking, and the
fitting (`bench/search_relevance.py`). Logistic calibration: Platt, "Probabilistic outputs for
support vector machines", 1999. A model without a calibration gives no number and no verdict.
"""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources

from kb_resources.retrieve.hit import Hit

_PLACES = 2


@dataclass(frozen=True, slots=True)
class Calibration:
    """How one model's signals are read in one mode.

    Attributes:
        model: its name, without the fingerprint.
        mode: `hybrid` or `vector`.
        bias: of the logit.
        cosine: of the logit, per unit of the hit's cosine.
        text_share: of the logit, per unit of the hit's share of the best possible BM25.
        nothing_below: relevance of the first hit under which nothing was found.
    """

    model: str
    mode: str
    bias: float
    cosine: float
    text_share: float
    nothing_below: float

    def relevance(self, hit: Hit) -> float:
        """Estimate that a hit is right, 0..1."""
        logit = self.bias + self.cosine * (hit.cosine or 0.0)
        logit += self.text_share * (hit.text_share or 0.0)
        return 1 / (1 + math.exp(-max(-60.0, min(60.0, logit))))


@cache
def calibrations() -> tuple[Calibration, ...]:
    """Those that come with the package."""
    text = (resources.files("kb_resources.retrieve") / "relevance.toml").read_text("utf-8")
    return tuple(Calibration(**given) for given in tomllib.loads(text)["calibration"])


def calibration(model_id: str | None, mode: str) -> Calibration | None:
    """The calibration of a model (`name@fingerprint`) in a mode, None where there is none."""
    name = (model_id or "").partition("@")[0]
    return next((one for one in calibrations() if (one.model, one.mode) == (name, mode)), None)


def weighed(hits: tuple[Hit, ...], used: Calibration | None) -> tuple[tuple[Hit, ...], bool]:
    """Hits with their relevance, and whether the first says that nothing relevant was found."""
    if used is None:
        return hits, False
    found = tuple(replace(hit, relevance=round(used.relevance(hit), _PLACES)) for hit in hits)
    return found, not hits or used.relevance(hits[0]) < used.nothing_below
