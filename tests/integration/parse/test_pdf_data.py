"""Real PDFs: invariants that hold for each of them, figures against ground truth, right endings."""

from __future__ import annotations

import os
import re
import runpy
from collections import Counter
from functools import cache
from math import inf
from pathlib import Path

import pytest

from kb_resources.model import DocumentState, ParsedDocument, Refusal
from kb_resources.parse import Reading
from kb_resources.parse.pdf import PdfResult, parse_pdf
from kb_resources.parse.pdf.decode import FontBook, read_page
from kb_resources.parse.pdf.fallback import native_page
from kb_resources.parse.pdf.pdfium import PdfiumDocument, open_document
from kb_resources.parse.reading import assemble

DATA = Path(os.environ.get("KB_TEST_DATA", "/nonexistent")) / "data"
FILES = sorted([*DATA.glob("parsing/*.pdf"), *DATA.glob("documents/*/*.pdf")])
LARGE_BYTES = 1_500_000
BENCH = Path(__file__).parents[3] / "bench"
FORBIDDEN = re.compile(r"\ufffd|\(cid:\d+\)|GLYPH<|\x00|\u00ad")

pytestmark = pytest.mark.data


@cache
def parsed(file: Path) -> PdfResult | Refusal:
    return parse_pdf(file.read_bytes(), file.name)


def result_of(folder: Path, name: str) -> PdfResult:
    result = parsed(folder / "data" / "documents" / name)
    assert isinstance(result, PdfResult), result
    return result


def text_of(result: PdfResult) -> str:
    return "\n".join(
        draft.text or " ".join(cell for row in draft.rows for cell in row)
        for draft in result.drafts
    )


def pdf_parameters() -> list[object]:
    return [
        pytest.param(
            file,
            id=file.name,
            marks=[pytest.mark.long] if file.stat().st_size > LARGE_BYTES else [],
        )
        for file in FILES
    ]


def page_sizes(file: Path) -> list[tuple[float, float]]:
    """Width and height of each page as shown, in points; no bound where PDFium cannot load it."""
    import pypdfium2

    document, sizes = pypdfium2.PdfDocument(file), []
    for number in range(len(document)):
        try:
            sizes.append(document[number].get_size())
        except pypdfium2.PdfiumError:
            sizes.append((inf, inf))
    return sizes


@pytest.mark.requirement("O-01", "O-53")
@pytest.mark.parametrize("file", pdf_parameters())
def test_blocks_of_any_pdf_are_sound(file: Path) -> None:
    result = parsed(file)
    if isinstance(result, Refusal):
        assert result.reason.endswith(".")
        assert len(result.reason) > 20
        return
    pages = [draft.page for draft in result.drafts]
    assert None not in pages
    assert pages == sorted(pages)  # type: ignore[type-var]
    assert all(1 <= (page or 0) <= result.coverage.pages for page in pages)
    sizes = page_sizes(file)
    for draft in result.drafts:
        width, height = sizes[(draft.page or 0) - 1]
        shown = draft.text + "".join(cell for row in draft.rows for cell in row)
        assert shown.strip()
        assert FORBIDDEN.search(shown) is None
        assert draft.kind == "code" or "\n" not in draft.text
        assert draft.bbox is not None
        assert -1 <= draft.bbox.left < draft.bbox.right <= width + 1
        assert -1 <= draft.bbox.top < draft.bbox.bottom <= height + 1
        assert len({len(row) for row in draft.rows}) <= 1
        assert (draft.kind == "heading") == (draft.level is not None and draft.marker is None)
        assert 0 < draft.confidence <= 1
    assert result.coverage.pages_with_text == len(set(pages))
    assert 0 <= result.coverage.replacement_share < 1


def test_figures_against_ground_truth(test_data: Path) -> None:
    score = runpy.run_path(str(BENCH / "pdf_score.py"))["score"]
    render = runpy.run_path(str(BENCH / "pdf_render.py"))["render"]
    files = sorted((test_data / "data" / "parsing").glob("*.pdf"))
    assert files
    recall, order, sums = [], [], Counter[str]()
    for file in files:
        result = parsed(file)
        assert isinstance(result, PdfResult)
        found = score(render(result.drafts), file.with_suffix(".md").read_text())
        recall.append(found.recall)
        order.append(found.order)
        for name in ("headings_found", "headings_right", "cells", "items"):
            hit, total = getattr(found, name)
            sums.update({name: hit, f"all {name}": total})
    assert min(recall) >= 0.96
    assert sum(recall) / len(recall) >= 0.98
    assert sum(order) / len(order) >= 0.94
    assert sums["headings_found"] >= 0.80 * sums["all headings_found"]
    assert sums["headings_right"] >= 0.75 * sums["all headings_right"]
    assert sums["cells"] >= 0.50 * sums["all cells"]
    assert sums["items"] >= 0.75 * sums["all items"]


@pytest.mark.requirement("O-58")
@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("ok/p_scan_no_text.pdf", DocumentState.NEEDS_OCR),
        ("ok/p_ocr_rot90.pdf", DocumentState.NEEDS_OCR),
        ("nasty/n_password.pdf", DocumentState.ENCRYPTED),
        ("nasty/g_zero_page.pdf", DocumentState.EMPTY),
        ("nasty/g_exe_named.pdf", DocumentState.CORRUPT),
        ("nasty/g_truncated.pdf", DocumentState.CORRUPT),
        ("nasty/n_cyclic_toc.pdf", DocumentState.EMPTY),
    ],
)
def test_what_cannot_be_read_ends_in_its_state(
    test_data: Path, name: str, state: DocumentState
) -> None:
    result = parsed(test_data / "data" / "documents" / name)
    assert isinstance(result, Refusal)
    assert result.state is state


def test_a_broken_cross_reference_table_is_rebuilt(test_data: Path) -> None:
    assert text_of(result_of(test_data, "nasty/g_bad_xref.pdf")).strip()


def test_hidden_instructions_reach_the_scan_and_not_the_text(test_data: Path) -> None:
    white = result_of(test_data, "nasty/i_white_text.pdf")
    assert any(h.kind == "white_text" and "Ignore all previous" in h.text for h in white.hidden)
    assert "Ignore" not in text_of(white)
    metadata = result_of(test_data, "nasty/i_metadata.pdf")
    assert any(h.kind == "metadata" and "Ignore all previous" in h.text for h in metadata.hidden)


def test_a_recognised_layer_is_read_once(test_data: Path) -> None:
    text = text_of(result_of(test_data, "ok/p_with_ocr_text.pdf"))
    assert text.count("Foundation you") == 1


def test_pages_with_unmapped_fonts_are_listed_for_recognition(test_data: Path) -> None:
    result = result_of(test_data, "ok/p_react_paper.pdf")
    assert 2 in result.coverage.pages_needing_ocr
    assert result.coverage.replacement_share > 0


def test_blank_pages_do_not_shift_page_numbers(test_data: Path) -> None:
    result = result_of(test_data, "ok/p_skipped_2pages.pdf")
    assert result.coverage.pages == 4
    assert {draft.page for draft in result.drafts} <= {1, 2, 3, 4}


def test_optional_hyphens_leave_a_word_that_a_search_finds(test_data: Path) -> None:
    assert "optionalhyphen" in text_of(result_of(test_data, "ok/p_soft_hyphen.pdf"))


def test_text_at_several_angles_is_kept_in_order(test_data: Path) -> None:
    text = text_of(result_of(test_data, "ok/p_angles.pdf"))
    assert "In the 21st century, the seas remain an unforgiving environment." in text
    assert "Nuclear energy is one of the most powerful energy sources known." in text


@pytest.mark.requirement("P-09")
@pytest.mark.parametrize("name", ["ok/p_udhr_hr.pdf", "ok/p_udhr_sl.pdf", "ok/p_bdsg_de.pdf"])
def test_legal_text_loses_nothing_but_page_numbers(test_data: Path, name: str) -> None:
    result = result_of(test_data, name)
    assert result.coverage.removed_lines
    assert {line.reason for line in result.coverage.removed_lines} == {"page_number"}


@pytest.mark.requirement("P-10")
@pytest.mark.parametrize(
    ("name", "article", "least", "of"),
    [
        ("ok/p_udhr_bg.pdf", r"Член (\d+)", 30, 30),
        ("ok/p_udhr_hr.pdf", r"ČLANAK (\d+)\.", 30, 30),
        ("ok/p_udhr_mk_2col.pdf", r"Член (\d+)", 30, 30),
        ("ok/p_udhr_ru_2col.pdf", r"Статья (\d+)", 29, 30),
        ("ok/p_udhr_sl.pdf", r"(\d+)\. člen", 30, 30),
        ("ok/p_udhr_sr_cyrl.pdf", r"Члан (\d+)\.", 30, 30),
        ("ok/p_bdsg_de.pdf", r"§ (\d+) [A-Z].*", 80, 86),
    ],
)
def test_articles_of_real_laws_are_headings(
    test_data: Path, name: str, article: str, least: int, of: int
) -> None:
    result = result_of(test_data, name)
    document = assemble(Reading(result.drafts, "pdf"), "application/pdf", name)
    assert isinstance(document, ParsedDocument)
    headings = [b.heading_path[-1] for b in document.blocks if b.kind == "heading"]
    found = {int(match[1]) for text in headings if (match := re.fullmatch(article, text))}
    assert len(found & set(range(1, of + 1))) >= least
    divisions = re.compile(rf"{article}|(?:Teil|Kapitel|Abschnitt) \d+ - .*")
    assert sum(divisions.fullmatch(text) is None for text in headings) <= 2


@pytest.mark.parametrize("name", ["ok/p_udhr_ru_2col.pdf", "ok/p_udhr_mk_2col.pdf"])
def test_articles_of_a_two_column_text_stand_alone(test_data: Path, name: str) -> None:
    texts = [draft.text for draft in result_of(test_data, name).drafts]
    alone = sum(re.fullmatch(r"(?:Статья|Член) \d+\.?", text) is not None for text in texts)
    assert alone >= 28


def test_bookmarks_become_headings_on_their_page_only(test_data: Path) -> None:
    result = result_of(test_data, "ok/p_outline.pdf")
    headings = [(d.text, d.level, d.page) for d in result.drafts if d.kind == "heading"]
    assert ("1 Foo", 1, 2) in headings
    assert ("9 Baz", 1, 4) in headings
    assert [text for text, _, page in headings if page == 1] == ["Contents"]


def test_pdfium_alone_reads_the_same_words(test_data: Path) -> None:
    file = test_data / "data" / "parsing" / "multi_page.pdf"
    document = open_document(file.read_bytes())
    assert isinstance(document, PdfiumDocument)
    words: Counter[str] = Counter()
    for number in range(1, document.page_count + 1):
        with document.page(number) as page:
            assert page is not None
            ink = read_page(native_page(page), FontBook(), page)
        words.update(part for w in ink.flows[0].words for part in re.findall(r"\w+", w.text))
    document.close()
    result = parsed(file)
    assert isinstance(result, PdfResult)
    ours = Counter(re.findall(r"\w+", text_of(result)))
    assert (ours & words).total() >= 0.99 * ours.total()
