"""Folding: the same text and places, however fast it goes over what folds to itself."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from kb_resources.answer import normalise
from kb_resources.answer.normalise import Folded, clusters, fold

AWKWARD = st.text(
    alphabet=st.sampled_from(
        "abcßéèÖčđЖйё 15.-/`´'’“–—\u00ad\u200b\u0301\u0308ﬁ½①Å\u00a0\n\u2028\u1112\u1161"
        "\u11a8가ｆſĳ\u0345\u037a\u037eµ\t"
    ),
    max_size=40,
)


def by_clusters(text: str) -> Folded:
    """The rules one user-perceived character after another."""
    out: list[tuple[str, int, int]] = []
    for start, end in clusters(text):
        kept = "".join(c for c in text[start:end] if ord(c) not in normalise._DROPPED)
        for char in unicodedata.normalize("NFKC", kept).translate(normalise._FOLDED):
            if char.isspace() and out and out[-1][0] == " ":
                out[-1] = (" ", out[-1][1], end)
            else:
                out.append((" " if char.isspace() else char, start, end))
    out = out[: -1 if out and out[-1][0] == " " else None]
    out = out[1 if out and out[0][0] == " " else 0 :]
    chars, starts, ends = zip(*out, strict=True) if out else ((), (), ())
    return Folded("".join(chars), starts, ends)


@given(AWKWARD)
def test_words_that_fold_to_themselves_fold_as_any_others(text: str) -> None:
    assert fold(text) == by_clusters(text)


@given(AWKWARD)
def test_clusters_cover_a_text_without_a_gap(text: str) -> None:
    spans = clusters(text)
    assert "".join(text[start:end] for start, end in spans) == text
    assert all(start < end for start, end in spans)
