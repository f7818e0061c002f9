"""German compounds, as far as their spelling shows where they join.

Belongs here: splitting at the linking s after endings that always take it (-ung, -heit, -ion …).
What does not: joins that only a dictionary knows; vectors close that gap.
See Duden, "Die Grammatik", on Fugenelemente.
"""

from __future__ import annotations

import re

_JOIN = re.compile(r"(?<=ung|eit|aft|ion|tät|ing|tum)s(?=[a-zäöüß]{4,})")
_SHORTEST = 10


def german_parts(word: str) -> tuple[str, ...]:
    """Parts of a lowercase compound (`wohnungseigentum`: two), none where no join shows."""
    if len(word) < _SHORTEST:
        return ()
    parts = _JOIN.split(word)
    return tuple(parts) if len(parts) > 1 else ()
