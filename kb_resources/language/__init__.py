"""Language of a text: detectors behind one interface, and the gate that a scope sets.

Belongs here: telling which language a text is in. Does not belong here: loading rows, writing the
ledger, or any parsing. Bosnian and Montenegrin are a stated policy: they are answered as `hr` or
`sr`, whichever the wording is closer to, and always `sr` in Cyrillic; a scope that allows either
takes them in.
Source: McNamee, "Language identification: a solved problem suitable for undergraduate
instruction" (2005), for what is easy, and the DSL shared tasks of VarDial for what is not.
"""

from typing import TYPE_CHECKING

from kb_resources.language.detection import (
    DEFAULT_LANGUAGES,
    DETECTOR_VERSION,
    UNDETERMINED,
    Detection,
    Detector,
    Segment,
)
from kb_resources.language.gate import language_gate
from kb_resources.language.labels import LABELS, check_labels
from kb_resources.lazy import on_demand

if TYPE_CHECKING:
    from kb_resources.language.default import DefaultDetector
    from kb_resources.language.langdetect_detector import LangdetectDetector
else:
    __getattr__ = on_demand(
        __name__,
        {
            "default": ("DefaultDetector",),
            "langdetect_detector": ("LangdetectDetector",),
        },
    )

__all__ = [
    "DEFAULT_LANGUAGES",
    "DETECTOR_VERSION",
    "LABELS",
    "UNDETERMINED",
    "DefaultDetector",
    "Detection",
    "Detector",
    "LangdetectDetector",
    "Segment",
    "check_labels",
    "language_gate",
]
