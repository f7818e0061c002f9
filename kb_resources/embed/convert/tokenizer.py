"""The XLM-R unigram vocabulary, as a small file to run with and as a `tokenizer.json`.

Belongs here: normalisation and splitting as the model was trained with. What does not: running it
(`unigram`). The rules are SentencePiece's `nmt_nfkc` (Kudo and Richardson 2018).
"""

from __future__ import annotations

import json
from array import array
from typing import Any

from kb_resources.embed.convert.weights import Weights
from kb_resources.embed.unigram import Vocabulary

_META = "▁"
_MASK = "<mask>"


def build_vocabulary(weights: Weights) -> Vocabulary:
    """What `UnigramTokenizer` runs with."""
    special = {weights.bos, weights.pad, weights.eos, weights.unk, weights.pieces.index(_MASK)}
    entries = sorted((piece, at) for at, piece in enumerate(weights.pieces) if at not in special)
    return Vocabulary(
        pieces=[piece for piece, _ in entries],
        ids=array("I", [at for _, at in entries]),
        scores=array("f", [float(weights.scores[at]) for _, at in entries]),
        bos=weights.bos,
        eos=weights.eos,
        unk=weights.unk,
    )


def tokenizer_json(weights: Weights) -> str:
    """The same for the library `tokenizers`, which other tools read; the tests compare both."""
    pieces, mask = weights.pieces, weights.pieces.index(_MASK)
    start, end = pieces[weights.bos], pieces[weights.eos]
    metaspace = {
        "type": "Metaspace",
        "replacement": _META,
        "prepend_scheme": "always",
        "split": True,
    }
    document = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            _added(at, pieces[at], lstrip=at == mask)
            for at in (weights.bos, weights.pad, weights.eos, weights.unk, mask)
        ],
        "normalizer": _sequence(
            "normalizers",
            {"type": "Nmt"},
            {"type": "NFKC"},
            {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
        ),
        "pre_tokenizer": _sequence("pretokenizers", {"type": "WhitespaceSplit"}, metaspace),
        "post_processor": {
            "type": "TemplateProcessing",
            "single": _template(start, "A", end),
            "pair": _template(start, "A", end, end, "B", end),
            "special_tokens": {
                piece: {"id": piece, "ids": [at], "tokens": [piece]}
                for piece, at in ((start, weights.bos), (end, weights.eos))
            },
        },
        "decoder": metaspace,
        "model": {
            "type": "Unigram",
            "unk_id": weights.unk,
            "vocab": list(zip(pieces, weights.scores.astype(float).tolist(), strict=True)),
            "byte_fallback": False,
        },
    }
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def _added(at: int, piece: str, *, lstrip: bool) -> dict[str, Any]:
    flags = {"single_word": False, "lstrip": lstrip, "rstrip": False, "normalized": False}
    return {"id": at, "content": piece, **flags, "special": True}


def _sequence(key: str, *steps: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Sequence", key: list(steps)}


def _template(*parts: str) -> list[dict[str, Any]]:
    return [
        {"Sequence" if part in ("A", "B") else "SpecialToken": {"id": part, "type_id": 0}}
        for part in parts
    ]
