"""What the swap's quality gate says of models that are good, and of some that are not.

`KB_TEST_DATA=… python bench/swap_quality.py`: the numbers that the thresholds of
`kb_resources.stages.swap_quality` rest on. Passages of real collections, the questions that the
gate makes of them, vectors alone, ten nearest each. The live side is always the default model.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime

from kb_resources import embed
from kb_resources.embed.batching import plan_batches
from kb_resources.embed.convert.encoder import encoder_files
from kb_resources.embed.convert.form import Form
from kb_resources.embed.convert.weights import Weights
from kb_resources.embed.hashing import HashingEmbedder
from kb_resources.embed.sources import packaged_weights
from kb_resources.stages import swap_quality

SETS = ("cranfield-en", "german-law", "xquad-en-de-ru", "gdpr-crosslingual")
PASSAGES = 200
Way = Callable[[list[str], embed.Kind], np.ndarray]


def passages(data: Path, name: str) -> list[str]:
    rows = (data / "data/retrieval" / name / "corpus.jsonl").read_text("utf-8").splitlines()
    step = max(1, len(rows) // PASSAGES)
    found = [json.loads(row) for row in rows[::step][:PASSAGES]]
    return [f"{row.get('title', '')}\n{row['text']}".strip()[:600] for row in found]


def question(passage: str) -> str:
    """As `swap_quality.question_of` makes it of a heading and a text."""
    heading, _, text = passage.partition("\n")
    return " ".join([heading, *text.split()[:12]]) if text else " ".join(passage.split()[:12])


def exact(models: embed.OnnxEmbedder, folder: Path) -> Way:
    """The same weights in float32."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options)

    def way(texts: list[str], kind: embed.Kind) -> np.ndarray:
        ids = models.tokenizer.encode(texts, kind).ids
        out = np.empty((len(ids), models.identity.dimensions), np.float32)
        for group in plan_batches([len(each) for each in ids]):
            block = np.array([ids[at] for at in group], np.int64)
            feeds = {"input_ids": block, "attention_mask": np.ones_like(block)}
            out[group] = session.run(None, feeds)[0]
        return out

    return way


def ways(folder: Path) -> dict[str, Way]:
    models = folder / "models"
    embed.prepare(models, embed.DEFAULT_MODEL)
    ours = embed.load(models, embed.DEFAULT_MODEL)
    assert isinstance(ours, embed.OnnxEmbedder)
    package = embed.find_model(embed.DEFAULT_MODEL).package
    assert package is not None
    for name, data in encoder_files(
        Weights(packaged_weights(package)), Form("float32", mask=True)
    ).items():
        (folder / name).write_bytes(data)
    hashing = HashingEmbedder()
    noise = np.random.default_rng(5)

    def random(texts: list[str], _: embed.Kind) -> np.ndarray:
        found = noise.normal(size=(len(texts), 384)).astype(np.float32)
        return found / np.linalg.norm(found, axis=1, keepdims=True)

    def half(texts: list[str], kind: embed.Kind) -> np.ndarray:
        """One passage in two by another model: what a gate must not let through."""
        found = ours.embed(texts, kind)
        if kind == "passage":
            others = noise.random(len(texts)) < 0.5
            found[others] = random(texts, kind)[others]
        return found

    return {
        "live": ours.embed,
        "float32 of the same weights": exact(ours, folder),
        "hashed words (no meaning)": hashing.embed,
        "queries without their prefix": lambda t, _: ours.embed(t, "passage"),
        "half of the passages by another model": half,
        "random": random,
    }


def nearest(way: Way, asked: list[str], held: list[str]) -> list[list[tuple[str, str]]]:
    scores = way(asked, "query") @ way(held, "passage").T
    order = np.argsort(-scores, axis=1, kind="stable")[:, : swap_quality.DEPTH]
    return [[("doc", str(at)) for at in row] for row in order]


def main() -> None:
    """Measure and print."""
    data = os.environ.get("KB_TEST_DATA")
    if not data:
        sys.exit("KB_TEST_DATA is needed")
    print(f"{'set':20} {'shadow':40} {'overlap':>8} {'live':>6} {'recall':>7}  holds")
    with tempfile.TemporaryDirectory(prefix="kb-bench-") as folder:
        chosen = ways(Path(folder))
        for name in sys.argv[1:] or SETS:
            held = passages(Path(data), name)
            step = max(1, len(held) // swap_quality.QUESTIONS)
            places = list(range(0, len(held), step))[: swap_quality.QUESTIONS]
            asked = [question(held[at]) for at in places]
            wanted = [("doc", str(at)) for at in places]
            live = nearest(chosen["live"], asked, held)
            for shadow, way in chosen.items():
                if shadow != "live":
                    found = swap_quality.compare(wanted, live, nearest(way, asked, held))
                    holds = not swap_quality.judge(len(asked), *found)
                    print(
                        f"{name:20} {shadow:40} {found[0]:8.3f} {found[1]:6.3f} {found[2]:7.3f}  "
                        f"{'yes' if holds else 'no'}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
