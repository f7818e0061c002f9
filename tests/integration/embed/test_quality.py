"""Long forms: the 8-bit form ranks like float32 with the same weights, on real corpora."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kb_resources import embed
from kb_resources.embed.batching import plan_batches
from kb_resources.embed.convert.encoder import encoder_files
from kb_resources.embed.convert.form import Form
from kb_resources.embed.convert.weights import Weights
from kb_resources.embed.session import OnnxSession
from kb_resources.embed.sources import packaged_weights
from kb_resources.embed.tokens import HubSegmenter

pytestmark = [pytest.mark.long, pytest.mark.data, pytest.mark.timeout(3600)]
Way = Callable[[list[str], embed.Kind], Any]


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _ndcg(way: Way, folder: Path) -> float:
    corpus, queries = _rows(folder / "corpus.jsonl"), _rows(folder / "queries.jsonl")
    place = {row["_id"]: at for at, row in enumerate(corpus)}
    wanted: defaultdict[str, dict[int, int]] = defaultdict(dict)
    for line in (folder / "qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        query, passage, score = line.split("\t")
        wanted[query][place[passage]] = int(score)
    asked = [row for row in queries if wanted.get(row["_id"])]
    scores = (
        way([row["text"] for row in asked], "query")
        @ way([f"{row['title']}\n{row['text']}".strip() for row in corpus], "passage").T
    )
    discounts = 1 / np.log2(np.arange(2, 12))
    gains = []
    for row, query in zip(scores, asked, strict=True):
        relevant = wanted[query["_id"]]
        top = np.argsort(-row, kind="stable")[:10]
        best = np.array(sorted(relevant.values(), reverse=True)[:10])
        reached = np.array([relevant.get(int(at), 0) for at in top])
        gains.append((reached * discounts).sum() / (best * discounts[: len(best)]).sum())
    return float(np.mean(gains))


@pytest.fixture(scope="module")
def float32(embedder: embed.OnnxEmbedder, tmp_path_factory: pytest.TempPathFactory) -> Way:
    """The same weights in float32."""
    folder = tmp_path_factory.mktemp("float32")
    package = embed.find_model(embed.DEFAULT_MODEL).package
    assert package is not None
    for name, data in encoder_files(Weights(packaged_weights(package)), Form("float32")).items():
        (folder / name).write_bytes(data)
    session = OnnxSession(folder / "model.onnx", "mean")

    def way(texts: list[str], kind: embed.Kind) -> Any:
        ids = embedder.tokenizer.encode(texts, kind).ids
        vectors = np.empty((len(ids), embedder.identity.dimensions), np.float32)
        for group in plan_batches([len(found) for found in ids]):
            vectors[group] = session.run(np.array([ids[at] for at in group], np.int64)).vectors
        return vectors

    return way


@pytest.mark.parametrize("name", ["udhr-qa-8lang", "gdpr-crosslingual", "xquad-en-de-ru"])
def test_ranking_is_within_five_thousandths_of_float32(
    embedder: embed.OnnxEmbedder, float32: Way, test_data: Path, name: str
) -> None:
    folder = test_data / "data/retrieval" / name
    ours, exact = _ndcg(embedder.embed, folder), _ndcg(float32, folder)
    assert exact > 0.3, "the reference itself must work"
    assert ours >= exact - 0.005


def test_token_ids_of_all_corpora_are_those_of_the_library(
    embedder: embed.OnnxEmbedder, models_dir: Path, test_data: Path
) -> None:
    library = HubSegmenter(models_dir / embed.DEFAULT_MODEL / "tokenizer.json")
    for path in sorted((test_data / "data/retrieval").glob("*/*.jsonl")):
        texts = [row["text"] for row in _rows(path)]
        assert embedder.tokenizer._segmenter.ids(texts) == library.ids(texts), path
