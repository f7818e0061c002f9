"""Side by side: our PDF reading against ground truth and against docling's bare native pipeline.

Run with KB_TEST_DATA set: `python bench/parse_pdf.py [--verbose] [--no-cpu] [--dump FOLDER]`.
Word, order, heading, cell and item figures are those of `pdf_score`. CPU is compared on every PDF
of prose with at least 20 pages: docling's bare native pipeline in this process against a whole
reading in a child of a warm pool, with what the pool itself takes; the least of two runs each.
Ground truth: docling-project/docling, tests/data (MIT).
"""

from __future__ import annotations

import argparse
import io
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from pdf_render import render
from pdf_score import score

from kb_resources.model import Refusal
from kb_resources.parse import ParserPool
from kb_resources.parse.pdf import parse_pdf

_PAIRS = ("headings_found", "headings_right", "cells", "items")
_LEAST_PAGES = 20
_LEAST_CHARACTERS = 500
"""Mean characters on a page of prose; forms, slides and scans have fewer."""


def score_all(folder: Path, *, verbose: bool, dump: Path | None) -> None:
    sums: Counter[str] = Counter()
    recall = order = 0.0
    files = sorted(folder.glob("*.pdf"))
    for file in files:
        result = parse_pdf(file.read_bytes(), file.name)
        if isinstance(result, Refusal):
            print(f"{file.name}: refused, {result.reason}")
            continue
        text = render(result.drafts)
        if dump is not None:
            dump.mkdir(parents=True, exist_ok=True)
            (dump / f"{file.stem}.md").write_text(text)
        found = score(text, file.with_suffix(".md").read_text())
        recall += found.recall
        order += found.order
        for name in _PAIRS:
            hit, total = getattr(found, name)
            sums[name] += hit
            sums[f"{name} of"] += total
        if verbose:
            pairs = ", ".join(f"{name} {getattr(found, name)}" for name in _PAIRS)
            print(
                f"  {file.stem[:20]:20s} recall {found.recall:.3f} "
                f"precision {found.precision:.3f} order {found.order:.3f} {pairs}"
            )
    pairs = ", ".join(f"{name} {sums[name]}/{sums[f'{name} of']}" for name in _PAIRS)
    print(f"{len(files)} files: recall {recall / len(files):.3f}, order {order / len(files):.3f}")
    print(f"over all: {pairs}")


def _bare_pipeline(data: bytes) -> None:
    """Docling's own native pipeline as it comes, without drawing."""
    from docling.backend.docling_parse_backend import ThreadedDoclingParseDocumentBackend
    from docling.datamodel.backend_options import ThreadedDoclingParseBackendOptions
    from docling.datamodel.base_models import InputFormat
    from docling.datamodel.document import InputDocument
    from docling.datamodel.pipeline_options import NativePdfPipelineOptions
    from docling.pipeline.native_pdf_pipeline import NativePdfPipeline

    document = InputDocument(
        path_or_stream=io.BytesIO(data),
        format=InputFormat.PDF,
        filename="bare.pdf",
        backend=ThreadedDoclingParseDocumentBackend,
        backend_options=ThreadedDoclingParseBackendOptions.model_validate(
            {"render_pages": False, "parser_threads": 1}
        ),
    )
    options = NativePdfPipelineOptions(generate_page_images=False, generate_picture_images=False)
    NativePdfPipeline(options).execute(document, raises_on_error=True)


def _bare_cpu_s(data: bytes) -> float:
    started = time.process_time()
    _bare_pipeline(data)
    return time.process_time() - started


def _our_cpu_s(pool: ParserPool, data: bytes, name: str) -> float:
    """CPU of the child and of this process, which sends the bytes and takes the answer apart."""
    started = time.process_time()
    result, usage = pool.measure(data, "application/pdf", name)
    if isinstance(result, Refusal):
        raise SystemExit(f"{name}: {result.reason}")
    return usage.cpu_s + time.process_time() - started


def prose(folder: Path) -> Iterator[tuple[Path, int]]:
    """The PDFs of prose with enough pages, and how many they have."""
    import pypdfium2

    for file in sorted(folder.rglob("*.pdf")):
        try:
            document = pypdfium2.PdfDocument(file)
        except pypdfium2.PdfiumError:
            continue
        pages = len(document)
        if pages < _LEAST_PAGES:
            continue
        characters = sum(page.get_textpage().count_chars() for page in document)
        if characters >= pages * _LEAST_CHARACTERS:
            yield file, pages


def compare_cpu(folder: Path) -> None:
    ratios = []
    with ParserPool() as pool:
        warm = (folder / "ok" / "p_4pages.pdf").read_bytes()
        _our_cpu_s(pool, warm, "warm.pdf")
        _bare_pipeline(warm)
        for file, pages in prose(folder):
            data = file.read_bytes()
            bare = min(_bare_cpu_s(data) for _ in range(2)) / pages
            ours = min(_our_cpu_s(pool, data, file.name) for _ in range(2)) / pages
            ratios.append(ours / bare)
            print(
                f"{file.name} ({pages} pages): CPU a page bare {bare * 1000:.1f} ms, "
                f"ours {ours * 1000:.1f} ms, ratio {ours / bare:.2f}",
                flush=True,
            )
    print(f"{len(ratios)} PDFs, highest ratio {max(ratios):.2f} (goal ≤ 2)")


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--verbose", action="store_true", help="one line per file")
    arguments.add_argument("--no-cpu", action="store_true", help="leave out the CPU comparison")
    arguments.add_argument("--no-score", action="store_true", help="compare CPU only")
    arguments.add_argument("--dump", type=Path, help="write our Markdown into this folder")
    options = arguments.parse_args()
    root = os.environ.get("KB_TEST_DATA")
    if not root:
        print("Set KB_TEST_DATA to the folder with the shared test data.", file=sys.stderr)
        return 2
    data = Path(root) / "data"
    if not options.no_score:
        score_all(data / "parsing", verbose=options.verbose, dump=options.dump)
    if not options.no_cpu:
        compare_cpu(data / "documents")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
