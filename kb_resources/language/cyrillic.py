"""What Cyrillic letters say about a language.

Belongs here: which languages a text's letters rule out. Does not belong here: probabilities.
Source: the alphabets of the languages concerned.
"""

from __future__ import annotations

from collections import Counter

_SERBIAN_OR_MACEDONIAN = "јљњџ"
_SERBIAN = "ђћ"
_MACEDONIAN = "ѓќѕ"
# Neither Serbian nor Macedonian writes these; й and ъ are Bulgarian as well as Russian.
_EASTERN = "йьюящъыэё"
_RUSSIAN = "ыэё"


def south_slavic_candidates(text: str) -> frozenset[str]:
    """Of sr, mk and bg those that the letters of a lower-case Cyrillic text leave open.

    Empty where the letters speak for another language, such as Russian or Ukrainian.
    """
    counts = Counter(text)

    def count(letters: str) -> int:
        return sum(counts[letter] for letter in letters)

    if count("іїєґў") or counts["ҳ"] or count("әөүқғңһ"):
        return frozenset()
    western = count(_SERBIAN_OR_MACEDONIAN + _SERBIAN + _MACEDONIAN)
    eastern = count(_EASTERN)
    if western > 2 * eastern:
        serbian, macedonian = count(_SERBIAN), count(_MACEDONIAN)
        if serbian > 2 * macedonian:
            return frozenset({"sr"})
        if macedonian > 2 * serbian:
            return frozenset({"mk"})
        return frozenset({"sr", "mk"})
    if count(_RUSSIAN) > 0.1 * eastern:
        return frozenset()
    if eastern > 2 * western:
        return frozenset({"bg"})
    return frozenset({"sr", "mk", "bg"})
