"""Measures of a text that need no language model: letters, script, filler text, stretches.

Belongs here: what decides before and after a model is asked. Does not belong here: the model.
Source: Unicode Standard Annex 24, script property (here by block, which is enough to choose).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

# What is read of a text: enough for every decision, bounded for a book of 5 MB.
MAX_SAMPLE_CHARS = 24_000
_SAMPLE_WINDOWS = 12

MIN_LETTERS = 20
MIN_WORDS = 4
# Below this share of letters among visible characters a text is figures, code or symbols.
MIN_LETTER_SHARE = 0.4

WORD = re.compile(r"[^\W\d_]+")
_SCRIPTS = {
    "Latn": ((0x41, 0x5A), (0x61, 0x7A), (0xAA, 0x24F), (0x1E00, 0x1EFF)),
    "Cyrl": ((0x400, 0x52F), (0x1C80, 0x1C8F), (0x2DE0, 0x2DFF), (0xA640, 0xA69F)),
    "Grek": ((0x370, 0x3FF), (0x1F00, 0x1FFF)),
    "Arab": ((0x600, 0x6FF), (0x750, 0x77F), (0xFB50, 0xFDFF), (0xFE70, 0xFEFF)),
    "Hebr": ((0x590, 0x5FF), (0xFB1D, 0xFB4F)),
    "Hani": ((0x3400, 0x9FFF), (0xF900, 0xFAFF)),
    "Kana": ((0x3040, 0x30FF),),
    "Hang": ((0x1100, 0x11FF), (0xAC00, 0xD7AF)),
    "Deva": ((0x900, 0x97F),),
    "Thai": ((0xE00, 0xE7F),),
    "Armn": ((0x530, 0x58F),),
    "Geor": ((0x10A0, 0x10FF),),
}
_NAMES = tuple(_SCRIPTS)
_NOISE = re.compile(
    r"https?://\S{1,400}|www\.\S{1,400}|(?<!\S)[\w.+-]{1,64}@[\w.-]{1,200}|<[^<>]{1,200}>"
)
# The usual filler text and what its generators add: Latin by looks, in no language.
_FILLER_WORDS = """a ac accumsan ad adipiscing adipisicing aenean aliqua aliquam aliquet aliquip
aliquyam amet anim ante aptent arcu at auctor augue aute bibendum blandit cillum class clita
commodo condimentum congue consectetuer consectetur consequat consetetur conubia convallis cras
cubilia culpa cum cupidatat curabitur curae cursus dapibus deserunt diam dictum dictumst dignissim
dis do dolor dolore dolores donec dui duis duo ea efficitur egestas eget eirmod eiusmod eleifend
elementum elit elitr enim erat eros esse est et etiam eu euismod ex excepteur exercitation
facilisi facilisis fames faucibus felis fermentum feugiat finibus fringilla fugiat fusce gravida
gubergren habitant habitasse hac hendrerit himenaeos iaculis id imperdiet in inceptos incididunt
integer interdum invidunt ipsum irure justo kasd labore laboris laborum lacinia lacus laoreet
lectus leo libero ligula litora lobortis lorem luctus maecenas magna magnis malesuada massa mattis
mauris maximus metus mi minim molestie mollis mollit montes morbi mus nam nascetur natoque nec
neque netus nibh nisi nisl non nonumy nostra nostrud nulla nullam nunc occaecat odio officia orci
ornare parturient pariatur pellentesque penatibus per pharetra phasellus placerat platea porta
porttitor posuere potenti praesent pretium primis proident proin pulvinar purus quam qui quis
quisque rebum reprehenderit rhoncus ridiculus risus rutrum sadipscing sagittis sanctus sapien
scelerisque sea sed sem semper senectus sint sit sociis sociosqu sodales sollicitudin stet sunt
suscipit suspendisse takimata taciti tellus tempor tempus tincidunt torquent tortor tristique
turpis ullamco ullamcorper ultrices ultricies urna ut varius vehicula vel velit venenatis veniam
vero vestibulum vitae vivamus viverra volutpat voluptate voluptua vulputate"""
_FILLER = frozenset(_FILLER_WORDS.split())
_FILLER_SHARE = 0.5
# Least confidence by number of letters.
_LEAST_CONFIDENCE = ((80, 0.08), (140, 0.2), (10_000, 0.4))
_CONFIDENT_CHARS = 2_000


def without_noise(text: str) -> str:
    """The text with addresses and tags blanked out; they are in no language."""
    return _NOISE.sub(" ", text)


def sample(text: str) -> str:
    """The text, or evenly spread windows of it, at most `MAX_SAMPLE_CHARS` code points."""
    if len(text) <= MAX_SAMPLE_CHARS:
        return text
    width = MAX_SAMPLE_CHARS // _SAMPLE_WINDOWS
    step = (len(text) - width) // (_SAMPLE_WINDOWS - 1)
    return "\n".join(text[i * step : i * step + width] for i in range(_SAMPLE_WINDOWS))


@cache
def _script_table() -> NDArray[np.uint8]:
    """(0x110000,) for each code point the number of its script in `_NAMES`, after 0 for none."""
    table = np.zeros(0x110000, dtype=np.uint8)
    for number, ranges in enumerate(_SCRIPTS.values(), start=1):
        for low, high in ranges:
            table[low : high + 1] = number
    return table


def script_of(text: str) -> str:
    """ISO 15924 code of the script that most letters are in; "Zyyy" without letters."""
    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    counts = np.bincount(_script_table()[points], minlength=len(_NAMES) + 1)[1:]
    most = int(counts.argmax())
    if counts[most]:
        best = _NAMES[most]
        return "Jpan" if best in {"Hani", "Kana"} and counts[_NAMES.index("Kana")] else best
    return "Zzzz" if WORD.search(text) else "Zyyy"


def too_little(text: str) -> bool:
    """Whether there is too little language in a text to judge it: short, figures, filler."""
    words = WORD.findall(text)
    letters = sum(map(len, words))
    spaced = script_of(text) not in {"Hani", "Jpan", "Kana", "Thai"}
    if letters < MIN_LETTERS or (spaced and len(set(map(str.lower, words))) < MIN_WORDS):
        return True
    visible = len(text) - sum(map(str.isspace, text))
    if letters < MIN_LETTER_SHARE * visible:
        return True
    return filler_share(words) >= _FILLER_SHARE


def filler_share(words: Sequence[str]) -> float:
    """Share of words that filler text is made of, 0..1."""
    return sum(word.lower() in _FILLER for word in words) / max(1, len(words))


def sure_enough(confidence: float, text: str) -> bool:
    """Whether a model's confidence is one that it has about running text of this length.

    Figures of real sentences in 30 languages (`bench/language.py`'s data): at 50 characters never
    below .10, at 200 never below .57. Lists of names and codes stay far below.
    """
    letters = sum(map(len, WORD.findall(text[:_CONFIDENT_CHARS])))
    return confidence >= next(least for most, least in _LEAST_CONFIDENCE if letters <= most)
