"""Measure the scanner: `python bench/scan.py [--wrong KIND | --speed | --bounds]`.

Belongs here: running the labelled corpus and printing what is caught, by kind and language; the
speed on real text of several kinds, at several lengths, and on texts that are made to be costly.
Does not belong here: any threshold that a test enforces. Needs KB_TEST_DATA.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kb_resources.model import Verdict
from kb_resources.scan import Scanner, default_packs

GROUPS = {
    "obfuscated": ("obf_",),
    "multilingual": ("ml_bare", "ml_embedded", "ml_crosslang"),
    "document-borne": ("agentdojo", "greshake", "latent_injection", "aib_"),
    "in the wild": ("jailbreak_inthewild",),
    "other attacks": ("bastion", "sysprompt", "jailbreak_dan", "deepset_attack"),
    "code attacks": ("bidi_code", "homoglyph_code", "zero_width_code"),
    "BIPIA (no bar)": ("bipia",),
    "benign prose, code": (
        "law", "news", "source_code", "readme", "rtl_text", "api_doc", "minified", "unicode",
        "html_base64", "latent_context_clean",
    ),
    "benign security": ("security_doc",),
    "benign triggers": ("ml_benign", "bastion_benign"),
    "benign prompts": ("deepset_benign", "bipia_email_clean", "bipia_table_clean"),
}  # fmt: skip


def group_of(kind: str, label: int) -> str:
    for name, prefixes in GROUPS.items():
        if name.startswith("benign") == (label == 0) and kind.startswith(prefixes):
            return name
    return "aib control" if kind == "aib_control" else f"? {kind}"


def table(title: str, counts: dict[Any, Counter[Verdict]]) -> None:
    print(f"\n{title:34} {'n':>6} {'block':>7} {'review':>7} {'either':>7}")
    for name in sorted(counts, key=str):
        row = counts[name]
        n = row.total()
        block, review = row[Verdict.BLOCK] / n, row[Verdict.QUARANTINE] / n
        label = " ".join(name) if isinstance(name, tuple) else name
        print(f"{label:34} {n:6} {block:7.3f} {review:7.3f} {block + review:7.3f}")


# What the speed is printed for: prose, laws, code and documentation, in the corpus's proportions.
REAL = ("law", "news", "source_code", "readme", "api_doc", "security_doc", "rtl_text")
SIZES = (500_000, 1_000_000, 2_000_000, 4_000_000)
BOUND_BYTES = 5_000_000


def cpu_s(scanner: Scanner, text: str) -> float:
    started = time.process_time()
    scanner.scan(text)
    return time.process_time() - started


def speed(scanner: Scanner, rows: list[dict[str, Any]]) -> None:
    """Texts as they are, the quicker of two times each; then all of them as one long text."""
    real = [row for row in rows if row["label"] == 0 and row["kind"].startswith(REAL)]
    spent: dict[str, float] = defaultdict(float)
    size: dict[str, float] = defaultdict(float)
    for row in real:
        best = min(cpu_s(scanner, row["text"]) for _ in range(2))
        for name in (next(k for k in REAL if row["kind"].startswith(k)), "all of these"):
            spent[name] += best
            size[name] += len(row["text"].encode()) / 1e6
    print("\nreal text, as documents      MB    MB/s")
    for name, megabytes in size.items():
        print(f"{name:24} {megabytes:7.2f} {megabytes / spent[name]:7.2f}")
    whole = "\n\n".join(row["text"] for row in real).encode()
    print("\none text of all of these, MB   CPU s   MB/s")
    for wanted in SIZES:
        text = (whole * (1 + wanted // len(whole)))[:wanted].decode("utf-8", "ignore")
        best = min(cpu_s(scanner, text) for _ in range(2))
        print(f"{wanted / 1e6:28.1f} {best:7.2f} {wanted / 1e6 / best:6.2f}")


def bounds(scanner: Scanner, names: Sequence[str]) -> None:
    """CPU seconds of 5 MB of texts of the tests' battery, or of those named."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from tests.unit.scan.battery import NAMES, made

    print(f"\n5 MB of …{'':28} CPU s  verdict     not read in full")
    for name in names or NAMES:
        text = made(name, BOUND_BYTES)
        started = time.process_time()
        result = scanner.scan(text)
        spent = time.process_time() - started
        unread = "yes" if result.truncated else ""
        print(f"{name:36} {spent:6.2f}  {result.verdict.value:11} {unread}", flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="Measure the scanner.")
    parser.add_argument("--data", default=os.environ.get("KB_TEST_DATA"))
    parser.add_argument("--wrong", default="", help="print misses of kinds that start with this")
    parser.add_argument("--limit", type=int, default=20)
    parser.add_argument("--speed", action="store_true", help="print the speed on real text only")
    parser.add_argument(
        "--bounds", nargs="*", metavar="NAME", help="print the cost of costly texts only"
    )
    args = parser.parse_args()
    if not args.data:
        raise SystemExit("Set KB_TEST_DATA or give --data.")
    path = Path(args.data) / "data/injection/attacks-and-benign.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]
    scanner = Scanner(default_packs())
    scanner.scan("warm up")
    if args.speed or args.bounds is not None:
        if args.speed:
            speed(scanner, rows)
        if args.bounds is not None:
            bounds(scanner, args.bounds)
        return
    by_group: dict[str, Counter[Verdict]] = defaultdict(Counter)
    by_kind: dict[tuple[str, str], Counter[Verdict]] = defaultdict(Counter)
    by_language: dict[tuple[str, str], Counter[Verdict]] = defaultdict(Counter)
    shown, size = 0, 0
    started = time.process_time()
    for row in rows:
        result = scanner.scan(row["text"])
        size += len(row["text"].encode("utf-8", "surrogatepass"))
        group = group_of(row["kind"], row["label"])
        by_group[group][result.verdict] += 1
        by_kind[group, row["kind"]][result.verdict] += 1
        by_language[group, row["lang"]][result.verdict] += 1
        wrong = (result.verdict is Verdict.CLEAN) == (row["label"] == 1)
        if args.wrong and wrong and row["kind"].startswith(args.wrong) and shown < args.limit:
            shown += 1
            text = row["text"]
            print(f"--- {row['id']} {row['kind']} {row['lang']} {result.verdict} {len(text)}")
            for f in result.findings[:8]:
                print(f"    {f.severity} {f.rule_id} {f.excerpt[:140]!r} {f.decoded or ''!r:.100}")
            if row["label"] == 1:
                print(f"    {text[:300]!r} … {text[-200:]!r}")
    spent = time.process_time() - started
    table("kind", by_kind)
    table("language", by_language)
    table("group", by_group)
    print(
        f"\npacks {scanner.version}; {size / 1e6 / spent:.2f} MB/s over {size / 1e6:.1f} MB, "
        "a third of it attacks, prompts and packed code"
    )
    speed(scanner, rows)


if __name__ == "__main__":
    main()
