"""Would a small classifier add to the rules? `python bench/scan_classifier.py`.

Belongs here: training a logistic model over character sequences, and measuring it on families of
attacks that it never saw, among what the rules let pass. Does not belong here: anything that ships;
`docs/adr/0005` says what came of it. Needs KB_TEST_DATA; takes two minutes of CPU.
Source: Joulin et al., "Bag of Tricks for Efficient Text Classification" (2016).
"""

from __future__ import annotations

import argparse
import json
import os
import tomllib
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kb_resources.model import Verdict
from kb_resources.scan import Scanner, default_packs
from kb_resources.scan.fold import fold

BUCKETS = 1 << 17  # as bytes, 128 kB of weights
GRAMS = (3, 5)
WINDOW, STEP = 300, 150
# Longer attacks hold mostly harmless text, which would be learned as an attack's.
MAX_LEARNED_CHARS = 900
STEPS = 120
RATE, DECAY = 0.5, 1e-6
# Share of harmless documents that may be held because of the classifier alone.
ALLOWED = (0.001, 0.003, 0.005)
FAMILIES = {
    "obfuscated": ("obf_",), "multilingual": ("ml_",), "AgentDojo": ("agentdojo",),
    "Greshake, latent": ("greshake", "latent_injection"), "agent bench": ("aib_",),
    "in the wild": ("jailbreak",), "bastion": ("bastion",), "deepset": ("deepset",),
    "prompt leaks": ("sysprompt",),
}  # fmt: skip
OWN = Path(__file__).parents[1] / "tests/unit/scan"


@dataclass
class Data:
    """Windows as one array of buckets with offsets, each with the number of its document."""

    buckets: NDArray[np.uint32]
    starts: NDArray[np.int64]
    document: NDArray[np.int64]


def grams(text: str) -> NDArray[np.uint32]:
    """Distinct buckets of a window's character sequences."""
    points = np.frombuffer(f" {text} ".encode("utf-32-le", "replace"), dtype=np.uint32)
    found = []
    for size in GRAMS:
        if len(points) < size:
            continue
        value = np.zeros(len(points) - size + 1, dtype=np.uint64)
        for place in range(size):
            value = value * np.uint64(1_000_003) + points[place : place + len(value)]
        found.append((value * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(47))
    return np.unique(np.concatenate(found)).astype(np.uint32)


def windows(texts: list[str]) -> Data:
    parts, document = [], []
    for number, text in enumerate(texts):
        folded = " ".join(fold(text).split())
        for at in range(0, max(1, len(folded) - STEP), STEP):
            parts.append(grams(folded[at : at + WINDOW]))
            document.append(number)
    lengths = np.array([len(part) for part in parts])
    starts = np.concatenate(([0], np.cumsum(lengths)[:-1]))
    return Data(np.concatenate(parts), starts, np.array(document))


def scores(weights: NDArray[np.float64], data: Data) -> NDArray[np.float64]:
    """Of each window; the last weight is the bias."""
    lengths = np.diff(np.append(data.starts, len(data.buckets)))
    total = np.add.reduceat(weights[data.buckets], data.starts)
    return np.asarray(total / np.sqrt(lengths) + weights[-1])


def train(data: Data, wanted: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights by accelerated gradient descent; both labels weigh the same."""
    lengths = np.diff(np.append(data.starts, len(data.buckets)))
    balance = np.where(wanted > 0, 0.5 / wanted.sum(), 0.5 / (1 - wanted).sum())
    weights, speed = np.zeros(BUCKETS + 1), np.zeros(BUCKETS + 1)
    for _ in range(STEPS):
        error = (1 / (1 + np.exp(-scores(weights, data))) - wanted) * balance
        spread = np.repeat(error / np.sqrt(lengths), lengths)
        slope = np.bincount(data.buckets, weights=spread, minlength=BUCKETS + 1)
        slope[-1] = error.sum()
        speed = 0.9 * speed - RATE * (20 * slope + DECAY * weights)
        weights = weights + speed
    return weights


def of_documents(weights: NDArray[np.float64], data: Data, count: int) -> NDArray[np.float64]:
    """The highest window of each document."""
    best = np.full(count, -np.inf)
    np.maximum.at(best, data.document, scores(weights, data))
    return best


def own_texts() -> tuple[list[str], list[str]]:
    """Attacks and harmless texts of this repository."""
    attacks = [e.hit for e in default_packs().examples]
    harmless = [e.clean for e in default_packs().examples]
    for name, sort, into in (("attacks", "attack", attacks), ("benign", "benign", harmless)):
        for later in ("", "-later"):
            read = tomllib.loads((OWN / f"own/{name}{later}.toml").read_text("utf-8"))
            into += [row["text"] for row in read[sort]]
    for family in tomllib.loads((OWN / "authored.toml").read_text("utf-8")).values():
        attacks += family.values()
    return attacks, harmless


def third(row: dict[str, Any]) -> int:
    return zlib.crc32(str(row["id"]).encode()) % 3


def main() -> None:
    """Print, per family, what the rules miss and what the classifier would add."""
    parser = argparse.ArgumentParser(description="Measure a classifier on unseen families.")
    parser.add_argument("--data", default=os.environ.get("KB_TEST_DATA"))
    parser.add_argument("--own-only", action="store_true", help="learn from own texts alone")
    args = parser.parse_args()
    if not args.data:
        raise SystemExit("Set KB_TEST_DATA or give --data.")
    path = Path(args.data) / "data/injection/attacks-and-benign.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]
    scanner = Scanner(default_packs())
    passed = [row for row in rows if scanner.scan(row["text"]).verdict is Verdict.CLEAN]
    attacks, harmless = own_texts()
    clean = [row for row in rows if row["label"] == 0]
    learned = [] if args.own_only else [row["text"] for row in clean if third(row) == 0]
    limits = [row["text"] for row in clean if third(row) == 1]
    tested = [row["text"] for row in passed if row["label"] == 0 and third(row) == 2]
    limit_data, tested_data = windows(limits), windows(tested)
    print(
        "family               missed  " + "".join(f"caught, false at {a:.1%}   " for a in ALLOWED)
    )
    for name, prefixes in FAMILIES.items():
        missed = [r["text"] for r in passed if r["label"] == 1 and r["kind"].startswith(prefixes)]
        others = [
            r["text"]
            for r in rows
            if r["label"] == 1
            and not args.own_only
            and not r["kind"].startswith((*prefixes, "bipia"))
            and len(r["text"]) <= MAX_LEARNED_CHARS
        ]
        positive, negative = [*attacks, *others], [*harmless, *learned]
        data = windows([*positive, *negative])
        weights = train(data, (data.document < len(positive)).astype(float))
        limit_scores = of_documents(weights, limit_data, len(limits))
        tested_scores = of_documents(weights, tested_data, len(tested))
        missed_scores = of_documents(weights, windows(missed), len(missed)) if missed else []
        line = f"{name:20} {len(missed):6}  "
        for allowed in ALLOWED:
            limit = float(np.quantile(limit_scores, 1 - allowed))
            caught = int(np.sum(np.asarray(missed_scores) > limit))
            line += f"{caught:6} {np.mean(tested_scores > limit):14.4f}   "
        print(line, flush=True)


if __name__ == "__main__":
    main()
