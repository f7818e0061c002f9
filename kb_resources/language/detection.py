"""What a detector answers; shapes only.

Belongs here: the interface and its values. Does not belong here: any way of detecting.
Labels are ISO 639-1 where there is one, scripts ISO 15924.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

DETECTOR_VERSION = "py3langid-0.4+south-slavic-4"
"""The default detector's: raise it whenever the same text may get another answer."""
UNDETERMINED = "und"
DEFAULT_LANGUAGES = ("en", "de", "bg", "ru", "sr", "mk", "hr", "sl")


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of a text in one language.

    Attributes:
        label: language or "und".
        char_start: in the text given to `detect`, code points.
        char_end: exclusive.
    """

    label: str
    char_start: int
    char_end: int


@dataclass(frozen=True, slots=True)
class Detection:
    """The language of a text.

    Attributes:
        label: "en", "de", "bg", "ru", "sr", "mk", "hr", "sl", another language's code, or "und".
        confidence: 0..1, comparable between texts of one detector only.
        script: "Latn", "Cyrl", "Grek", … of most letters; "Zyyy" where there are none.
        segments: stretches in reading order that together cover the text; one where the whole
            text is in one language, none where it is empty.
    """

    label: str
    confidence: float
    script: str
    segments: tuple[Segment, ...] = ()


class Detector(Protocol):
    """Anything that tells the language of a text, with the same answer on every call."""

    @property
    def version(self) -> str:
        """Name and version, part of the language stage's fingerprint."""
        ...

    def detect(self, text: str) -> Detection:
        """Tell the language of visible text; never raises, "und" where it cannot tell."""
        ...
