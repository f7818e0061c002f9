"""How fast the chunker is, apart from counting tokens, and what counting costs beside embedding.

Usage: python bench/chunk.py [--megabytes N] [--embed-chunks N]. CPU seconds of this process on one
thread. The text is made of sections of prose, lists and tables in eight languages' sentences, the
same with each run; goals: 20 MB/s, counting at most a fifth of embedding.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from kb_resources import embed
from kb_resources.chunk import ChunkOptions, TokenCounter, chunk_document, preset
from kb_resources.model import Block, BlockKind, ParsedDocument
from kb_resources.model.chunk import embedding_input

ROOT = Path(__file__).parents[1]
SENTENCES = (
    "Employees may carry five days of leave over to March of the next year.",
    "Nach § 4 Abs. 2 Nr. 3 besteht z. B. Anspruch auf 30 Tage Urlaub im Kalenderjahr.",
    "Съгласно чл. 155, ал. 4 от Кодекса на труда т. нар. основен отпуск е 20 дни.",
    "Согласно ст. 115 ч. 1 отпуск составляет 28 календарных дней, т. е. четыре недели.",
    "Годишњи одмор траје најмање 20 радних дана, види чл. 68. ст. 1. закона.",
    "Вработениот има право на 20 дена годишен одмор според чл. 137 ст. 1.",
    "Radnik ima pravo na najmanje četiri tjedna odmora, npr. u srpnju itd.",
    "Delavec ima po 159. členu ZDR-1 pravo do najmanj 4 tednov dopusta.",
)


class Timed:
    """A counter that knows how long counting took."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self.overhead = counter.overhead
        self.adds_up = getattr(counter, "adds_up", False)
        self.seconds = 0.0

    def count(self, texts: Sequence[str]) -> list[int]:
        """As the counter does."""
        started = time.process_time()
        counts = self._counter.count(texts)
        self.seconds += time.process_time() - started
        return counts


def document(characters: int) -> ParsedDocument:
    """Sections with a long paragraph, a list and a table each; every sentence is numbered."""
    parts: list[tuple[BlockKind, str, str]] = []
    size = number = 0
    while size < characters:
        number += 1
        head = f"Section {number}"
        said = [f"({number}.{n}) {SENTENCES[(number + n) % 8]}" for n in range(14)]
        rows = "\n".join(f"| {number} | {n} | {SENTENCES[n % 8][:40]} |" for n in range(12))
        made: list[tuple[BlockKind, str, str]] = [
            ("heading", f"## {head}", head),
            ("paragraph", " ".join(said), head),
            *(("list_item", f"- {each}", head) for each in said[:4]),
            ("table", f"| a | b | c |\n|---|---|---|\n{rows}", head),
        ]
        parts += made
        size += sum(len(text) + 2 for _, text, _ in made)
    blocks, at, at_byte = [], 0, 0
    for kind, text, head in parts:
        width = len(text.encode())
        level = 2 if kind == "heading" else None
        span = (at_byte, at_byte + width, at, at + len(text))
        blocks.append(Block(kind, text, *span, heading_path=(head,), level=level))
        at, at_byte = at + len(text) + 2, at_byte + width + 2
    body = "\n\n".join(text for _, text, _ in parts)
    return ParsedDocument("Handbook", "text/markdown", body, tuple(blocks))


def chunked(
    made: ParsedDocument, counter: TokenCounter, options: ChunkOptions
) -> tuple[int, float, float]:
    """Chunks, CPU seconds without counting, CPU seconds of counting."""
    timed = Timed(counter)
    started = time.process_time()
    chunks = chunk_document(made, document_id="d", counter=timed, options=options)
    return len(chunks), time.process_time() - started - timed.seconds, timed.seconds


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=float, default=4.0)
    parser.add_argument("--embed-chunks", type=int, default=150)
    asked = parser.parse_args()
    folder = ROOT / ".kb" / "models"
    embed.prepare(folder, embed.DEFAULT_MODEL)
    model = embed.load(folder, embed.DEFAULT_MODEL, threads=1)
    if not isinstance(model, embed.OnnxEmbedder):
        sys.exit("The default model is not a local one.")
    made = document(int(asked.megabytes * 620_000))
    size = len(made.body.encode()) / 1e6
    print(f"{size:.1f} MB, {len(made.blocks):,} blocks")
    for name in ("hierarchical", "sentence", "flat"):
        runs = [chunked(made, model.tokenizer, preset(name)) for _ in range(2)]
        count, cutting, _ = min(runs, key=lambda run: run[1])
        print(f"{name:14} {count:7,} chunks  {size / cutting:7.1f} MB/s  goal 20")
    small = document(400_000)
    counter = embed.load_token_counter(folder, embed.DEFAULT_MODEL)  # no word remembered yet
    timed = Timed(counter)
    chunks = chunk_document(small, document_id="d", counter=timed)
    texts = [embedding_input(chunk.context, chunk.text) for chunk in chunks[: asked.embed_chunks]]
    model.embed(texts[:2], "passage")
    started = time.process_time()
    model.embed(texts, "passage")
    embedding = (time.process_time() - started) * len(chunks) / len(texts)
    print(
        f"counting {timed.seconds:.2f} s, embedding {embedding:.1f} s for {len(chunks):,} chunks: "
        f"{timed.seconds / embedding:.1%}  goal ≤ 20 %"
    )


if __name__ == "__main__":
    main()
