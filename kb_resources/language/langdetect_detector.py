"""langdetect behind the interface: seeded, with the same letter rules for Cyrillic.

Belongs here: the detector that the project's card names, for those who set it.
Does not belong here: the choice of the default, which a benchmark makes.
Source: Shuyo, "Language Detection Library for Java" (2010), whose Python port this calls.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from kb_resources.language.alphabet import fold_to_cyrillic
from kb_resources.language.cyrillic import south_slavic_candidates
from kb_resources.language.detection import UNDETERMINED, Detection
from kb_resources.language.segments import segment
from kb_resources.language.text import sample, script_of, too_little, without_noise
from kb_resources.language.weights import pair_weights

_SEED = 0


@cache
def _factory() -> Any:
    """The profiles of langdetect, loaded once per process and always asked with the same seed."""
    from langdetect.detector_factory import PROFILES_DIRECTORY, DetectorFactory

    factory = DetectorFactory()
    factory.load_profile(PROFILES_DIRECTORY)
    factory.set_seed(_SEED)
    return factory


class LangdetectDetector:
    """langdetect 1.0.9 with a fixed seed; it has no Serbian, which letters and weights add."""

    @property
    def version(self) -> str:
        """Name and version, part of the language stage's fingerprint."""
        return "langdetect-1.0.9+south-slavic-2"

    def detect(self, text: str) -> Detection:
        """Tell the language of visible text; see `Detection`."""
        label, confidence = self._label(sample(text))
        segments = segment(text, label, self._label)
        return Detection(label, confidence, script_of(sample(text)), segments)

    def _label(self, text: str) -> tuple[str, float]:
        from langdetect.lang_detect_exception import LangDetectException

        text = without_noise(text)
        if too_little(text):
            return UNDETERMINED, 0.0
        asked = _factory().create()
        asked.append(text)
        try:
            ranking = asked.get_probabilities()
        except LangDetectException:
            return UNDETERMINED, 0.0
        if not ranking:
            return UNDETERMINED, 0.0
        label, confidence = ranking[0].lang, float(ranking[0].prob)
        lowered = text.lower()
        if script_of(text) == "Cyrl":
            open_ = south_slavic_candidates(lowered)
            if open_ and "bg" not in open_:
                label = "mk" if pair_weights("mk", "sr").score(lowered) > 0 else "sr"
        elif label == "hr":
            score = pair_weights("hr", "sr").score(fold_to_cyrillic(lowered))
            label = "hr" if score > 0 else "sr"
        return label.split("-")[0], confidence
