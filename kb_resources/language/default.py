"""The default detector: py3langid, corrected where South Slavic languages are too close for it.

Belongs here: how the model's ranking, the letters and the pair weights make one answer.
Does not belong here: the gate. `bench/language.py` prints how this compares with langdetect.
Source: Lui and Baldwin, "langid.py: An Off-the-shelf Language Identification Tool" (2012).
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from kb_resources.language.alphabet import fold_to_cyrillic
from kb_resources.language.cyrillic import south_slavic_candidates
from kb_resources.language.detection import DETECTOR_VERSION, UNDETERMINED, Detection
from kb_resources.language.segments import segment
from kb_resources.language.text import (
    WORD,
    filler_share,
    sample,
    script_of,
    sure_enough,
    too_little,
    without_noise,
)
from kb_resources.language.weights import pair_weights

_BALKAN_LATIN = ("hr", "bs", "sr")
_NO_LANGUAGE = {"zxx", "und"}
# Written by few today: a text in it is more often filler.
_LATIN = "la"
_LATIN_SOUTH_SLAVIC = frozenset({*_BALKAN_LATIN, "sl"})
# Letters of Slovak and Czech that no South Slavic language writes, and how many rule those out.
_WEST_SLAVIC = frozenset("ľĺŕôťďňýáíéúůěř")
_MIN_FOREIGN_SHARE = 0.02
# Slovak and Czech typed without their accents are told from the South by probability alone: at 50
# characters real South Slavic text gives them less than this share of its own languages'.
_WEST = ("sk", "cs")
_MAX_WEST = 0.3
# Latin letters that some texts in Cyrillic are typed with.
_TYPED_LATIN = str.maketrans("aceopxyj", "асеорхуј")


@cache
def _model() -> Any:
    """The py3langid model (0.9 s of CPU and 100 MiB, once per process)."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


class DefaultDetector:
    """Deterministic detector for 139 languages, careful with bg, mk, sr, hr and sl."""

    @property
    def version(self) -> str:
        """Name and version, part of the language stage's fingerprint."""
        return DETECTOR_VERSION

    def detect(self, text: str) -> Detection:
        """Tell the language of visible text; see `Detection`."""
        label, confidence = self._label(sample(text))
        segments = segment(text, label, self._label)
        return Detection(label, confidence, script_of(sample(text)), segments)

    def label(self, text: str) -> str:
        """The label of `detect` without the stretches, at a third of the cost."""
        return self._label(sample(text))[0]

    def _label(self, text: str) -> tuple[str, float]:
        text = without_noise(text)
        if too_little(text):
            return UNDETERMINED, 0.0
        label, confidence = self._ranked(text)
        return (label, confidence) if sure_enough(confidence, text) else (UNDETERMINED, confidence)

    def _ranked(self, text: str) -> tuple[str, float]:
        ranking = dict(_model().rank(text))
        label = next(iter(ranking))
        lowered = text.lower()
        if script_of(text) == "Cyrl":
            return _cyrillic(lowered.translate(_TYPED_LATIN), label, ranking)
        if sum(map(lowered.count, _WEST_SLAVIC)) >= _MIN_FOREIGN_SHARE * len(lowered):
            label = next(name for name in ranking if name not in _LATIN_SOUTH_SLAVIC)
        south = sum(ranking.get(name, 0.0) for name in _LATIN_SOUTH_SLAVIC)
        if (
            label in _LATIN_SOUTH_SLAVIC
            and sum(map(ranking.__getitem__, _WEST)) > _MAX_WEST * south
        ):
            label = max(_WEST, key=ranking.__getitem__)
        if label in _BALKAN_LATIN:
            share = sum(ranking.get(name, 0.0) for name in _BALKAN_LATIN)
            return _pair("hr", "sr", fold_to_cyrillic(lowered), share)
        if label in _NO_LANGUAGE or (label == _LATIN and filler_share(WORD.findall(text)) > 0.3):
            return UNDETERMINED, 0.0
        return label, ranking[label]


def _cyrillic(lowered: str, label: str, ranking: dict[str, float]) -> tuple[str, float]:
    open_ = south_slavic_candidates(lowered)
    if len(open_) == 1:
        (only,) = open_
        if only in {"sr", "mk"} or label in {"mk", "sr"}:
            return only, max(ranking.get(only, 0.0), 0.9)
    elif open_ >= {"sr", "mk"} and (label in {"sr", "mk", "bg"} or "bg" not in open_):
        if "bg" in open_ and label != "sr":
            answer = _pair("mk", "bg", lowered, 1.0)
            if answer[0] == "bg":
                return answer
        return _pair("mk", "sr", lowered, 1.0)
    return label, ranking[label]


def _pair(first: str, second: str, cyrillic: str, share: float) -> tuple[str, float]:
    score = pair_weights(first, second).score(cyrillic)
    # Squashed by the root of the length, like the model's own probabilities.
    sure = 1.0 / (1.0 + math.exp(-abs(score) / math.sqrt(len(cyrillic) or 1) * 2.0))
    return (first if score > 0 else second), share * sure
