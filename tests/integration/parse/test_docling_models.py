"""docling's converter behind `KB_DOCLING_MODELS`: what can be shown where its models are missing.

Its converter, options and documents are real; the pipeline inside is docling's own one without
models, which gives text items alone. Layout and tables by models need the extra and a folder of
weights, which no package index carries.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kb_resources.model import DocumentState, ParsedDocument, Refusal
from kb_resources.parse import ParseOptions, build_tree, parse_here
from kb_resources.parse.docling import models
from tests.integration.parse.test_pdf_made import SECRET, VISIBLE, make_pdf

PDF = "application/pdf"
MODELS = ParseOptions(models=True)
# docling's converter asks its own documents for a member it has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:deprecated:DeprecationWarning")
HIDDEN = f"BT 1 1 1 rg /F1 12 Tf 72 500 Td ({SECRET}) Tj ET\n"


@pytest.fixture
def without_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """docling's converter with its native pipeline in the place of the standard one."""
    from docling import document_converter
    from docling.datamodel.pipeline_options import NativePdfPipelineOptions
    from docling.pipeline.native_pdf_pipeline import NativePdfPipeline

    real = document_converter.PdfFormatOption

    def option(pipeline_options: Any) -> Any:
        assert pipeline_options.artifacts_path == Path("/models")
        return real(pipeline_cls=NativePdfPipeline, pipeline_options=NativePdfPipelineOptions())

    monkeypatch.setattr(models, "require_models", lambda: Path("/models"))
    monkeypatch.setattr(document_converter, "PdfFormatOption", option)


@pytest.mark.requirement("O-56")
@pytest.mark.usefixtures("without_models")
def test_a_converted_pdf_fills_the_same_contract() -> None:
    pages = [VISIBLE + HIDDEN, "BT /F1 12 Tf 72 700 Td (It holds until the end of March.) Tj ET\n"]
    found = parse_here(make_pdf(pages, info="/Title (Price list)"), PDF, "price.pdf", MODELS)
    assert isinstance(found, ParsedDocument), found
    assert found.parser.startswith("docling/")
    assert found.title == "Price list"
    assert found.coverage.pages == found.coverage.pages_with_text == 2
    data = found.body.encode()
    for block in found.blocks:
        assert data[block.byte_start : block.byte_end].decode() == block.text
        assert block.bbox is not None
        assert 0 <= block.bbox.left < block.bbox.right <= 595
        assert 0 <= block.bbox.top < block.bbox.bottom <= 842
    assert {block.page for block in found.blocks} == {1, 2}
    assert "The price is one hundred euro." in found.body
    # Whoever reads the pages, hidden text comes from the bytes.
    assert ("white_text", SECRET) in {(item.kind, item.text) for item in found.hidden}
    assert len(list(build_tree(found).walk())) > len(found.blocks)


@pytest.mark.usefixtures("without_models")
def test_what_docling_cannot_convert_is_refused_with_a_reason() -> None:
    found = parse_here(make_pdf([VISIBLE])[:300], PDF, "cut.pdf", MODELS)
    assert isinstance(found, Refusal)
    assert found.state in {DocumentState.FAILED, DocumentState.CORRUPT}
    assert len(found.reason) > 20
