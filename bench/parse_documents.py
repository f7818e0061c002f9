"""What becomes of every document of the test data: state, reason, size, memory, time.

Run `KB_TEST_DATA=… python bench/parse_documents.py [words of file names…]`. Each file goes through
acquire and a pooled child, as in the line; spans are checked on the way. Beside each row stands
what the data set's manifest expects, for reading.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from kb_resources.acquire import read_file
from kb_resources.model import ParsedDocument, Refusal
from kb_resources.parse import ParserPool, ParseUsage

_IDLE = ParseUsage(0.0, 0.0, 0, isolated=False)


def main(words: list[str]) -> int:
    root = Path(os.environ["KB_TEST_DATA"]) / "data" / "documents"
    rows = [json.loads(line) for line in (root / "manifest.jsonl").read_text().splitlines()]
    rows = [row for row in rows if not words or any(word in row["file"] for word in words)]
    broken = 0
    print("| file | ended as | blocks | chars | hidden | MB | cpu s | wall s | expected |")
    print("|---|---|---|---|---|---|---|---|---|")
    with ParserPool() as pool:
        for row in rows:
            started = time.monotonic()
            result, usage = _one(pool, root / row["file"])
            wall = time.monotonic() - started
            broken += _is_broken(result)
            if isinstance(result, Refusal):
                what, sizes = f"{result.state.value}: {result.reason}", ("", "", "")
            else:
                what = f"parsed “{result.title[:50]}”"
                sizes = (len(result.blocks), len(result.body), len(result.hidden))
            cells = [row["file"], what, *sizes, usage.max_rss_bytes >> 20]
            cells += [f"{usage.cpu_s:.2f}", f"{wall:.2f}", row["expect"]]
            print(
                "| " + " | ".join(str(cell).replace("|", "/") for cell in cells) + " |", flush=True
            )
    print(f"\n{len(rows)} files, {broken} with broken spans")
    return 1 if broken else 0


def _one(pool: ParserPool, path: Path) -> tuple[ParsedDocument | Refusal, ParseUsage]:
    acquired = read_file(path)
    if isinstance(acquired, Refusal):
        return acquired, _IDLE
    return pool.measure(acquired.data, acquired.media_type, acquired.name)


def _is_broken(result: ParsedDocument | Refusal) -> bool:
    """Whether any block is not where it says, or a character of the body is in no block."""
    if isinstance(result, Refusal):
        return False
    body = result.body.encode()
    for block in result.blocks:
        if body[block.byte_start : block.byte_end].decode() != block.text:
            return True
        if result.page_text(block.page)[block.char_start : block.char_end] != block.text:
            return True
    pages = [block.page or 0 for block in result.blocks]
    joined = "\n\n".join(block.text for block in result.blocks)
    return joined != result.body or pages != sorted(pages)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
