"""The small tokenizer against the library `tokenizers`, on vocabularies made up for the purpose."""

from __future__ import annotations

from array import array
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from kb_resources.embed.prefixes import PrefixTree
from kb_resources.embed.unigram import UnigramTokenizer, Vocabulary, normalise
from kb_resources.errors import IntegrityError

META = "▁"
SPECIAL = ["<s>", "</s>", "<unk>"]
ALPHABET = "abc ščљ\u0301\u00a0ﬁ½"
PIECES = st.dictionaries(
    st.text(META + "abcščљfi1⁄2", min_size=1, max_size=4),
    st.floats(-20, -0.5, width=32),
    max_size=40,
)
TEXTS = st.text(ALPHABET, max_size=30)
ANY_TEXT = st.text(max_size=40)


def _pair(scores: dict[str, float]) -> tuple[UnigramTokenizer, Tokenizer]:
    entries = [(piece, 0.0) for piece in SPECIAL] + list(scores.items())
    place = {piece: at for at, (piece, _) in enumerate(entries)}
    ordered = sorted(scores)
    vocabulary = Vocabulary(
        pieces=ordered,
        ids=array("I", [place[piece] for piece in ordered]),
        scores=array("f", [scores[piece] for piece in ordered]),
        bos=0,
        eos=1,
        unk=2,
    )
    library = Tokenizer(models.Unigram(entries, unk_id=2, byte_fallback=False))
    library.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC()])
    library.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.WhitespaceSplit(),
            pre_tokenizers.Metaspace(replacement=META, prepend_scheme="always"),
        ]
    )
    return UnigramTokenizer(vocabulary), library


@given(PIECES, st.lists(TEXTS, max_size=4))
def test_ids_are_those_of_the_library(scores: dict[str, float], texts: list[str]) -> None:
    ours, library = _pair(scores)
    expected = [found.ids for found in library.encode_batch(texts, add_special_tokens=False)]
    assert ours.ids(texts) == expected


@given(ANY_TEXT)
def test_normalisation_is_the_librarys(text: str) -> None:
    library = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC()])
    assert normalise(text) == library.normalize_str(text)


@given(PIECES, ANY_TEXT | TEXTS)
def test_offsets_lie_in_the_text_in_order_and_cover_every_word(
    scores: dict[str, float], text: str
) -> None:
    ours, _ = _pair(scores)
    spans = ours.offsets(text)
    assert len(spans) == len(ours.ids([text])[0])
    assert all(0 <= start <= end <= len(text) for start, end in spans)
    assert spans == sorted(spans)
    covered = {at for start, end in spans for at in range(start, end)}
    alone = {at for at, char in enumerate(text) if normalise(char).strip()}
    assert alone <= covered


@given(TEXTS | ANY_TEXT, st.integers(0, 40))
def test_tokens_of_two_words_are_the_tokens_of_each(text: str, cut: int) -> None:
    ours, _ = _pair({"a": -1.0, "ab": -1.5, f"{META}a": -2.0, f"{META}": -3.0})
    left, right = text[:cut], text[cut:]
    assert ours.ids([f"{left}\n{right}"])[0] == [
        token for ids in ours.ids([left, right]) for token in ids
    ]


def test_special_tokens_are_never_read_from_text() -> None:
    ours, _ = _pair({f"{META}": -1.0, "<": -2.0, "s": -2.0, ">": -2.0, "/": -2.0})
    assert set(ours.ids(["</s> <s> <unk>"])[0]).isdisjoint({0, 1})


def test_a_very_long_word_is_segmented_like_a_short_one() -> None:
    ours, library = _pair({"a": -1.0, "aa": -1.9, "b": -1.0, f"{META}a": -1.0})
    text = "aab" * 3000
    assert ours.ids([text])[0] == library.encode(text, add_special_tokens=False).ids


def test_a_vocabulary_survives_its_files(tmp_path: Path) -> None:
    ours, _ = _pair({"a": -1.0, "š": -2.5, META: -3.0})
    vocabulary = ours._vocabulary
    vocabulary.write(tmp_path)
    assert Vocabulary.read(tmp_path) == vocabulary


@pytest.mark.parametrize("damage", ["short", "missing", "head", "encoding"])
def test_a_damaged_vocabulary_is_refused(tmp_path: Path, damage: str) -> None:
    ours, _ = _pair({"a": -1.0, "š": -2.5})
    ours._vocabulary.write(tmp_path)
    numbers, words = tmp_path / "vocabulary.bin", tmp_path / "vocabulary.txt"
    if damage == "short":
        numbers.write_bytes(numbers.read_bytes()[:-1])
    elif damage == "missing":
        numbers.unlink()
    elif damage == "head":
        words.write_text("{}\na\nš")
    else:
        words.write_bytes(words.read_bytes() + b"\xff")
    with pytest.raises(IntegrityError):
        Vocabulary.read(tmp_path)


@given(st.sets(st.text("abc", min_size=1, max_size=4)), st.text("abcd", max_size=12))
def test_a_prefix_tree_finds_what_begins_a_text(entries: set[str], text: str) -> None:
    ordered = sorted(entries)
    tree = PrefixTree(ordered, most_nodes=5)  # so small that it starts again all the time
    found, node = set(), tree.root
    for end in range(1, len(text) + 1):
        child = node.children.get(text[end - 1]) or tree.grow(node, text[:end])
        if child is None:
            break
        node = child
        if node.at >= 0:
            found.add(ordered[node.at])
    assert found == {entry for entry in entries if text.startswith(entry)}
