"""The stored golden vectors come from the formulas, not from the graph they judge.

`KB_REGENERATE_GOLDEN=1 pytest -m long tests/integration/embed/test_golden.py` writes them anew.
"""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

import numpy as np
import pytest

from kb_resources import embed
from kb_resources.embed.convert.reference import ReferenceEncoder
from kb_resources.embed.convert.weights import Weights
from kb_resources.embed.golden import Golden, golden_set
from kb_resources.embed.sources import packaged_weights

FILE = Path(embed.__file__).parent / "data/golden.json"


@pytest.fixture(scope="module")
def reference() -> ReferenceEncoder:
    package = embed.find_model(embed.DEFAULT_MODEL).package
    assert package is not None
    return ReferenceEncoder(Weights(packaged_weights(package)))


def _exact(reference: ReferenceEncoder, counter: embed.TokenCounter, entry: Golden) -> np.ndarray:
    assert hasattr(counter, "encode")
    return reference.embed(counter.encode([entry.text], entry.kind).ids[0])


@pytest.mark.parametrize("at", [0, 5])
def test_stored_vectors_are_those_of_the_formulas(
    reference: ReferenceEncoder, models_dir: Path, at: int
) -> None:
    counter = embed.load_token_counter(models_dir, embed.DEFAULT_MODEL)
    entry = golden_set(embed.DEFAULT_MODEL)[at]
    assert float(_exact(reference, counter, entry) @ entry.vector) > 0.999999


@pytest.mark.long
def test_all_stored_vectors_are_those_of_the_formulas(
    reference: ReferenceEncoder, models_dir: Path
) -> None:
    counter = embed.load_token_counter(models_dir, embed.DEFAULT_MODEL)
    entries = golden_set(embed.DEFAULT_MODEL)
    vectors = [_exact(reference, counter, entry) for entry in entries]
    if os.environ.get("KB_REGENERATE_GOLDEN"):
        stored = [
            {
                "kind": entry.kind,
                "text": entry.text,
                "vector": base64.b64encode(vector.astype("<f2").tobytes()).decode(),
            }
            for entry, vector in zip(entries, vectors, strict=True)
        ]
        document = {embed.DEFAULT_MODEL: stored}
        FILE.write_text(json.dumps(document, ensure_ascii=False, indent=1), encoding="utf-8")
    for entry, vector in zip(entries, vectors, strict=True):
        assert float(vector @ entry.vector) > 0.999999, entry.text
