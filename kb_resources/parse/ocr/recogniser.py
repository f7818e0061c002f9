"""Pages of one document to words: language found once, two readings compared, time kept.

Belongs here: the decisions around single runs of `tesseract.py`. A language is found by reading the
densest strip of a page with one pack per script and then with the packs of the better script:
confidence tells even Bulgarian from Russian and Croatian from Slovenian, and costs far less than
reading with all packs at once. Agreement counts words as a bag, compare
https://github.com/eddieantonio/ocreval.
"""

from __future__ import annotations

import re
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from kb_resources.parse.ocr.picture import Picture
from kb_resources.parse.ocr.second import RapidReader, find_rapid
from kb_resources.parse.ocr.tesseract import (
    AUTO,
    BLOCK,
    OcrWord,
    RecognitionFailed,
    Tesseract,
    find_tesseract,
)
from kb_resources.parse.options import OcrOptions

LEAST_CONFIDENCE = 0.55
"""Mean confidence below which a reading is noise: the page counts as not read."""

_CYRILLIC = ("rus", "bul", "srp", "mkd")
_SURE = 0.8
_SAME_LANGUAGE = 0.92  # below, the next page may be in another language: the right pack reads .95
_LEAST_CHARACTERS = 12
_NOISE_CONFIDENCE = 0.05
_SIGN_CONFIDENCE = 0.6
_WORD = re.compile(r"\w+")
_PLAIN = str.maketrans({"đ": "d", "ß": "ss", "ł": "l", "ø": "o"})


@dataclass(frozen=True, slots=True)
class PageReading:
    """What two readings of one page gave.

    Attributes:
        words: of the first reading, in the turned picture's pixels.
        language: the pack it was read with.
        confidence: mean over characters, 0..1.
        agreement: share of common words of both readings, None without a second one.
        second: who read it the second time, "" for nobody.
        turned: degrees the picture was turned clockwise.
    """

    words: tuple[OcrWord, ...]
    language: str
    confidence: float
    agreement: float | None
    second: str
    turned: int = 0


@dataclass(slots=True)
class Recogniser:
    """Reads the pages of one document.

    Attributes:
        engine: the installed Tesseract.
        packs: languages to choose from, all installed.
        page_s: most seconds for one run.
        deadline: clock value after which no page is begun.
        rapid: second engine for Latin script, None where it is not installed.
        clock: monotonic seconds.
        problems: sentences for a person, each once.
    """

    engine: Tesseract
    packs: tuple[str, ...]
    page_s: float
    deadline: float
    rapid: RapidReader | None = None
    clock: Callable[[], float] = time.monotonic
    problems: dict[str, None] = field(default_factory=dict)
    _language: str = ""

    def read(self, picture: Picture) -> PageReading | None:
        """Read one page.

        Returns:
            The reading, or None where nothing could be read (no text, noise, no time left);
            `problems` says why when that was not the page's own doing.
        """
        if self.clock() >= self.deadline:
            self._note(
                "The time for text recognition ran out before the last page; raise "
                "KB_OCR_TIMEOUT_S or split the document."
            )
            return None
        try:
            return self._read(picture)
        except RecognitionFailed as error:
            self._note(str(error))
            return None

    def _read(self, picture: Picture) -> PageReading | None:
        language, turned = self._language, 0
        words = self._words(picture, language) if language else ()
        if confidence_of(words) < _SAME_LANGUAGE:
            upright, turned, language = self._find_language(picture)
            if language and (language, turned) != (self._language, 0):
                picture, words = upright, self._words(upright, language)
        confidence = confidence_of(words)
        if confidence < LEAST_CONFIDENCE:
            return None
        self._language = language
        agreement, second = self._second_opinion(picture, language, words)
        return PageReading(words, language, round(confidence, 4), agreement, second, turned=turned)

    def _find_language(self, picture: Picture) -> tuple[Picture, int, str]:
        """Upright picture, the turn it took, and the pack that reads it best ("" for none)."""
        score, language = self._best_pack(picture)
        if score >= _SURE:
            return picture, 0, language
        degrees = self.engine.rotation(picture, self._time())
        if not degrees:
            return picture, 0, language
        turned = picture.turned(degrees)
        turned_score, turned_language = self._best_pack(turned)
        if turned_score > score:
            return turned, degrees, turned_language
        return picture, 0, language

    def _best_pack(self, picture: Picture) -> tuple[float, str]:
        band = picture.busiest_band()
        scripts = [
            [pack for pack in self.packs if (pack in _CYRILLIC) is cyrillic]
            for cyrillic in (False, True)
        ]
        first = [(self._score(band, packs[0]), packs[0], packs) for packs in scripts if packs]
        score, pack, packs = max(first, key=lambda entry: entry[0])
        rest = [(self._score(band, other), other) for other in packs[1:]]
        return max([(score, pack), *rest], key=lambda entry: entry[0])

    def _score(self, band: Picture, pack: str) -> float:
        words = self.engine.read(band, pack, BLOCK, self._time())
        return confidence_of(words)

    def _words(self, picture: Picture, language: str) -> tuple[OcrWord, ...]:
        words = self.engine.read(picture, language, AUTO, self._time())
        return tuple(word for word in words if not _is_noise(word))

    def _second_opinion(
        self, picture: Picture, language: str, words: Iterable[OcrWord]
    ) -> tuple[float | None, str]:
        ours = [word.text for word in words]
        if self.rapid is not None and language not in _CYRILLIC:
            theirs = self.rapid.read(picture)
            if theirs is not None:
                return agreement_of(ours, theirs, plain=True), "rapidocr"
        try:
            again = self.engine.read(picture, language, BLOCK, self._time())
        except RecognitionFailed as error:
            self._note(str(error))
            return None, ""
        texts = [word.text for word in again if not _is_noise(word)]
        return agreement_of(ours, texts), "tesseract psm 6"

    def _time(self) -> float:
        return min(self.page_s, self.deadline - self.clock())

    def _note(self, problem: str) -> None:
        self.problems[problem] = None


def open_recogniser(
    options: OcrOptions, *, clock: Callable[[], float] = time.monotonic
) -> Recogniser | None:
    """A recogniser for one document, or None where OCR is off or not installed."""
    engine = find_tesseract() if options.enabled else None
    packs = tuple(p for p in options.languages if engine is not None and p in engine.packs)
    if engine is None or not packs:
        return None
    return Recogniser(
        engine=engine,
        packs=packs,
        page_s=options.page_s,
        deadline=clock() + options.document_s,
        rapid=find_rapid(),
        clock=clock,
    )


def confidence_of(words: Iterable[OcrWord]) -> float:
    """Mean confidence over characters; 0 for next to no text."""
    counted = [(len(word.text), word.confidence) for word in words]
    total = sum(length for length, _ in counted)
    if total < _LEAST_CHARACTERS:
        return 0.0 if not total else min(0.5, sum(c * n for n, c in counted) / total)
    return sum(length * confidence for length, confidence in counted) / total


def agreement_of(ours: Iterable[str], theirs: Iterable[str], *, plain: bool = False) -> float:
    """Share of words that two readings have in common, whatever their order, 0..1.

    Args:
        ours: texts of one reading.
        theirs: texts of the other.
        plain: compare without diacritics, for an engine that does not know them.
    """
    one, other = _bag(ours, plain=plain), _bag(theirs, plain=plain)
    total = one.total() + other.total()
    return round(2 * (one & other).total() / total, 4) if total else 1.0


def _bag(texts: Iterable[str], *, plain: bool) -> Counter[str]:
    text = unicodedata.normalize("NFKC", " ".join(texts)).casefold()
    if plain:
        text = unicodedata.normalize("NFD", text.translate(_PLAIN))
        text = "".join(c for c in text if not unicodedata.combining(c))
    return Counter(_WORD.findall(text))


def _is_noise(word: OcrWord) -> bool:
    """Specks and lines read as signs."""
    if word.confidence < _NOISE_CONFIDENCE:
        return True
    return word.confidence < _SIGN_CONFIDENCE and not any(c.isalnum() for c in word.text)
