"""Derive the letter-sequence weights that tell South Slavic languages apart.

Belongs here: turning the n-gram models that the Lingua language detector ships (Apache-2.0, trained
on Wortschatz Leipzig text) into one small table of log-likelihood ratios per pair of languages.
Does not belong here: using the table, which is `kb_resources.language.weights`.

Needs the pure Python wheel and a Brotli decoder, neither of which the package itself depends on:

    pip download --no-deps lingua-language-detector==1.3.5
    pip install brotli
    python tools/language/build_weights.py lingua_language_detector-1.3.5-py3-none-any.whl

For each letter, given up to four letters before it in the same word, a weight says how much more
likely the first language is than the second. A sequence that neither model knows backs off to its
ending; sequences whose weight hardly differs from that of their ending are left out.
Source of the back-off: Brants et al., "Large Language Models in Machine Translation" (2007).
"""

from __future__ import annotations

import argparse
import json
import math
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from kb_resources.language.alphabet import encode_gram, fold_to_cyrillic

ORDERS = ("unigrams", "bigrams", "trigrams", "quadrigrams", "fivegrams")
# Longest sequence kept per pair: three letters tell Macedonian apart, Croatian needs five.
PAIRS = {("hr", "sr"): 5, ("mk", "sr"): 3, ("mk", "bg"): 3}
BACK_OFF = 0.1
FLOOR = 1e-4
WEIGHT_SCALE = 16
MIN_GAIN = 0.6
TARGET = Path(__file__).parents[2] / "kb_resources" / "language" / "weights.npz"

# Croatian is written in Latin letters, where lj, nj and dž are one sound and two letters.
LATIN_PAIRS = {"љ": "lj", "њ": "nj", "џ": "dž"}
TO_LATIN = dict(zip("абвгдђежзијклмнопрстћуфхцчш", "abvgdđežzijklmnoprstćufhcčš", strict=True))

Model = list[dict[str, float]]


def read_model(wheel: zipfile.ZipFile, language: str) -> Model:
    """Conditional probabilities P(last letter | letters before), one mapping per order."""
    import brotli

    model: Model = []
    for order in ORDERS:
        name = f"lingua/language-models/{language}/{order}.json.br"
        table: dict[str, float] = {}
        for fraction, grams in json.loads(brotli.decompress(wheel.read(name)))["ngrams"].items():
            above, below = fraction.split("/")
            table.update(dict.fromkeys(grams.split(), int(above) / int(below)))
        model.append(table)
    return model


def back_off(gram: str, model: Model) -> float:
    """Probability of the gram's last letter after the others, by stupid back-off."""
    penalty = 1.0
    while gram:
        known = model[len(gram) - 1].get(gram)
        if known:
            return penalty * known
        gram = gram[1:]
        penalty *= BACK_OFF
    return penalty * FLOOR


def croatian_probability(gram: str, model: Model) -> float:
    """`back_off` for a gram in Cyrillic letters, asked of a model in Latin letters."""
    *before, last = gram
    context = "".join(LATIN_PAIRS.get(c, TO_LATIN.get(c, c)) for c in before)
    probability = 1.0
    for letter in LATIN_PAIRS.get(last, TO_LATIN.get(last, last)):
        context += letter
        probability *= back_off(context[-len(ORDERS) :], model)
    return probability


def grams_of(language: str, model: Model, longest: int) -> Iterable[str]:
    """All grams of a model in Cyrillic letters."""
    for table in model[:longest]:
        for gram in table:
            yield fold_to_cyrillic(gram) if language == "hr" else gram


def ratios(pair: tuple[str, str], longest: int, models: Mapping[str, Model]) -> dict[str, float]:
    """Log-likelihood ratio per gram, pruned where the gram's ending says the same."""

    def probability(gram: str, language: str) -> float:
        model = models[language]
        return croatian_probability(gram, model) if language == "hr" else back_off(gram, model)

    first, second = pair
    grams = {g for language in pair for g in grams_of(language, models[language], longest)}
    kept: dict[str, float] = {}
    for gram in sorted(grams, key=lambda g: (len(g), g)):
        if encode_gram(gram) is None:
            continue
        ratio = math.log(probability(gram, first) / probability(gram, second))
        ending = gram[1:]
        while ending and ending not in kept:
            ending = ending[1:]
        if not ending or abs(ratio - kept[ending]) >= MIN_GAIN:
            kept[gram] = ratio
    return kept


def main() -> None:
    """Write the weights of every pair into the package."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=Path)
    args = parser.parse_args()
    arrays: dict[str, np.ndarray] = {}
    with zipfile.ZipFile(args.wheel) as wheel:
        languages = sorted({language for pair in PAIRS for language in pair})
        models = {language: read_model(wheel, language) for language in languages}
    for pair, longest in PAIRS.items():
        kept = ratios(pair, longest, models)
        codes = np.array([encode_gram(g) for g in kept], dtype=np.uint32)
        scaled = np.clip(np.rint(np.array(list(kept.values())) * WEIGHT_SCALE), -127, 127)
        order = np.argsort(codes)
        name = "_".join(pair)
        arrays[f"{name}_codes"] = codes[order]
        arrays[f"{name}_weights"] = scaled.astype(np.int8)[order]
        print(name, len(kept))
    np.savez_compressed(TARGET, **arrays)
    print(TARGET.name, TARGET.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
