"""Compare the language detectors on news sentences, articles and laws: `python bench/language.py`.

Belongs here: cutting the data, asking each detector, printing the table that the default is chosen
by. Does not belong here: any threshold that a test enforces. Needs KB_TEST_DATA.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from kb_resources.language import (
    DEFAULT_LANGUAGES,
    DefaultDetector,
    Detector,
    LangdetectDetector,
)

VARIANTS = ("en", "de", "bg", "ru", "sr", "sr-Latn", "mk", "hr", "sl")
NEAR = ("uk", "be", "sk", "cs")
POLICY = ("bs", "bs-Cyrl", "cnr")
LENGTHS = (0, 200, 50)


def rows(root: Path) -> Iterator[tuple[str, str]]:
    """Variant and text of every labelled document at hand."""
    for name in ("dsl", "udhr"):
        for line in filter(None, (root / f"langid/{name}.jsonl").read_text("utf-8").split("\n")):
            row = json.loads(line)
            yield row["tag"], row["text"]
    corpus = root / "injection/attacks-and-benign.jsonl"
    for line in filter(None, corpus.read_text("utf-8").split("\n")):
        row = json.loads(line)
        if row["kind"] in {"news", "law"}:
            yield row["lang"], row["text"]


def ask(detector: Detector, data: list[tuple[str, str]]) -> tuple[dict[str, Counter[str]], float]:
    """Answers per variant, and CPU seconds per megabyte of text."""
    answers: dict[str, Counter[str]] = defaultdict(Counter)
    started = time.process_time()
    for variant, text in data:
        answers[variant][detector.detect(text).label] += 1
    size = sum(len(text.encode()) for _, text in data)
    return answers, (time.process_time() - started) / (size / 1e6)


def share(answers: dict[str, Counter[str]], variants: Iterator[str] | tuple[str, ...]) -> float:
    """Share of the variants' texts that a scope with the default languages takes in."""
    pooled = sum((answers[v] for v in variants), Counter[str]())
    return sum(pooled[label] for label in DEFAULT_LANGUAGES) / max(1, pooled.total())


def main() -> None:
    """Print one table per detector."""
    parser = argparse.ArgumentParser(description="Compare the language detectors.")
    parser.add_argument("--data", default=os.environ.get("KB_TEST_DATA"))
    parser.add_argument("--only", choices=("default", "langdetect"))
    args = parser.parse_args()
    if not args.data:
        raise SystemExit("Set KB_TEST_DATA or give --data.")
    everything = list(rows(Path(args.data) / "data"))
    detectors: dict[str, Detector] = {
        "default": DefaultDetector(),
        "langdetect": LangdetectDetector(),
    }
    for name, detector in detectors.items():
        if args.only not in {None, name}:
            continue
        detector.detect("warm up the model, please, before the clock is started")
        print(f"\n{name} ({detector.version})")
        print("length  macro " + "".join(f"{v:>8}" for v in VARIANTS) + "   near    far  s/MB")
        for length in LENGTHS:
            data = [(v, t[:length] if length else t) for v, t in everything if len(t) >= length]
            answers, cost = ask(detector, data)
            recall = {v: answers[v][v.split("-")[0]] / max(1, answers[v].total()) for v in VARIANTS}
            far = tuple(v for v in answers if v not in (*VARIANTS, *NEAR, *POLICY))
            print(
                f"{length or 'all':>6} {sum(recall.values()) / len(recall):6.3f} "
                + "".join(f"{recall[v]:8.3f}" for v in VARIANTS)
                + f" {share(answers, NEAR):6.4f} {share(answers, far):6.4f} {cost:5.2f}"
            )
            wrong = {v: answers[v].most_common(3) for v in (*NEAR, *far) if share(answers, (v,))}
            if wrong:
                print(f"       taken in: {wrong}")


if __name__ == "__main__":
    main()
