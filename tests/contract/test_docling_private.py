"""The one private call into docling, pinned, so that an upgrade fails here first.

docling's page backend has no public way to the word cells and pictures that does not build line
cells too; the PDF pipeline asks the backend's result for its decoder instead. What is asked of
that decoder, and the hooks that our pipeline overrides, are held here by name and shape.
"""

from __future__ import annotations

import inspect
import io
from typing import Any

import pytest

from tests.integration.parse.test_pdf_made import make_pdf

TEXT = "BT /F1 12 Tf 72 700 Td (Two words.) Tj ET\nq 200 0 0 100 72 400 cm /Im1 Do Q\n"


@pytest.fixture
def backend() -> Any:
    """The first page of a one-page PDF as our backend decodes it."""
    from docling.datamodel.backend_options import ThreadedDoclingParseBackendOptions
    from docling.datamodel.base_models import InputFormat
    from docling.datamodel.document import InputDocument

    from kb_resources.parse.pdf.pipeline import WordBackend

    document = InputDocument(
        path_or_stream=io.BytesIO(make_pdf([TEXT])),
        format=InputFormat.PDF,
        filename="contract.pdf",
        backend=WordBackend,
        backend_options=ThreadedDoclingParseBackendOptions.model_validate(
            {"render_pages": False, "parser_threads": 1}
        ),
    )
    assert document.valid
    (page,) = document._backend.iter_pages()  # type: ignore[attr-defined]
    return page


def test_a_pages_result_hands_out_its_decoder(backend: Any) -> None:
    decoder = backend._result._require_page_decoder()
    cells = list(decoder.get_word_cells())
    assert [cell.text for cell in cells] == ["Two", "words."]
    corners = [f"r_{axis}{n}" for axis in "xy" for n in range(4)]
    for cell in cells:
        assert all(isinstance(getattr(cell, corner), float) for corner in corners)
        assert "Helvetica" in cell.font_name
    assert cells[0].r_y0 == pytest.approx(700, abs=5)  # origin bottom left, base line corner
    (image,) = decoder.get_page_images()
    sides = sorted((image.x0, image.x1)), sorted((image.y0, image.y1))
    assert sides == ([72, 272], [400, 500])


def test_a_pages_public_doors_are_where_we_use_them(backend: Any) -> None:
    assert backend.page_no == 1
    assert (backend.get_size().width, backend.get_size().height) == (595, 842)
    assert backend.is_valid()
    for name, arguments in {
        "get_shape_lines": {},
        "get_thin_shape_boxes": {"max_thickness": 3.0},
        "get_connected_shape_bounding_boxes": {"tolerance": 2.0},
    }.items():
        assert list(getattr(backend, name)(**arguments) or []) == []


def test_the_pipeline_calls_the_hooks_that_we_override() -> None:
    from docling.pipeline.native_pdf_pipeline import NativePdfPipeline

    def parameters(name: str) -> list[str]:
        return list(inspect.signature(getattr(NativePdfPipeline, name)).parameters)

    assert parameters("_parse_page") == ["self", "timings", "conv_res", "page_backend"]
    assert parameters("_assemble_document") == ["self", "conv_res"]
    assert parameters("_record_page_failure")[1:3] == ["conv_res", "page_backend"]
