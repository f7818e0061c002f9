"""docling's model-free PDF pipeline, reading pages one by one into our own small values.

Belongs here: the subclass of `NativePdfPipeline` and the backend that decodes without drawing.
Importing this module imports docling: do so inside functions only. Pages go to a callback and
are then freed; the stock pipeline keeps every page and needs 1.8 GB for 600 of them.
docling: https://docling-project.github.io/docling/
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any

from docling.backend import docling_parse_backend as native
from docling.datamodel.backend_options import ThreadedDoclingParseBackendOptions
from docling.datamodel.base_models import InputFormat, Page
from docling.datamodel.document import ConversionResult, InputDocument
from docling.datamodel.pipeline_options import NativePdfPipelineOptions
from docling.exceptions import DocumentLoadError
from docling.pipeline.native_pdf_pipeline import NativePdfPipeline
from docling_parse.pdf_parser import (
    ContentConfig,
    ContentLevel,
    DecodeConfig,
    DoclingThreadedPdfParser,
    ThreadedPdfParserConfig,
)

from kb_resources.parse.pdf.decode import NativePage
from kb_resources.parse.pdf.ink import Box

_PAGES_AHEAD = 4
_RELEASE_EVERY_PAGES = 32
_RULE_THICKNESS = 3.0
_MIN_DRAWING = 40.0

PageReader = Callable[[NativePage], None]


class WordBackend(native.ThreadedDoclingParseDocumentBackend):
    """Decodes words, shapes and picture places; draws nothing and decodes no pixels."""

    def __init__(self, in_doc: Any, path_or_stream: Any, options: Any = None) -> None:
        # The parent's own parser would decode more than is wanted: skip its constructor.
        super(native.ThreadedDoclingParseDocumentBackend, self).__init__(
            in_doc, path_or_stream, options
        )
        self._closed = self._iterating = self._render_pages = False
        self.parser = DoclingThreadedPdfParser(
            ThreadedPdfParserConfig(
                loglevel="fatal",
                threads=1,
                max_concurrent_results=_PAGES_AHEAD,
                page_content_config=ContentConfig(
                    char_cells_content_level=ContentLevel.COMPUTE,
                    word_cells_content_level=ContentLevel.COMPUTE,
                    line_cells_content_level=ContentLevel.SKIP,
                    shapes_content_level=ContentLevel.COMPUTE,
                    bitmaps_content_level=ContentLevel.COMPUTE,
                    include_bitmap_bytes=False,
                ),
            ),
            DecodeConfig(release_native_memory_every_n_pages=_RELEASE_EVERY_PAGES),
        )
        try:
            self.doc_key = self.parser.load(self.path_or_stream)
        except (RuntimeError, ValueError) as error:
            raise DocumentLoadError(f"docling-parse cannot load it: {error}") from error


class WordPipeline(NativePdfPipeline):
    """Hands every decoded page to a reader instead of building a DoclingDocument."""

    def __init__(self, options: NativePdfPipelineOptions, reader: PageReader) -> None:
        super().__init__(options)
        self._reader = reader
        self.broken: BaseException | None = None

    def _parse_page(self, timings: Any, conv_res: ConversionResult, page_backend: Any) -> Any:
        del timings
        if not page_backend.is_valid():
            detail = page_backend.get_error_message() or "Page failed to parse."
            self._record_page_failure(conv_res, page_backend, detail)
            return None
        try:
            self._reader(_native_page(page_backend))
        except BaseException as error:
            self.broken = error  # docling keeps going; `decode_pages` does not
            raise
        return Page(page_no=page_backend.page_no)

    def _assemble_document(self, conv_res: ConversionResult) -> ConversionResult:
        return conv_res


def _native_page(page_backend: Any) -> NativePage:
    size = page_backend.get_size()
    decoder = page_backend._result._require_page_decoder()  # noqa: SLF001 - no public door
    return NativePage(
        number=page_backend.page_no,
        width=size.width,
        height=size.height,
        cells=decoder.get_word_cells(),
        rules=_rules(page_backend),
        pictures=tuple(_pictures(decoder, size.height)),
        drawings=tuple(_drawings(page_backend)),
    )


def _rules(page_backend: Any) -> Iterator[Box]:
    """Straight lines and thin boxes of a page, page frame."""
    lines = page_backend.get_shape_lines() or []
    thin = page_backend.get_thin_shape_boxes(max_thickness=_RULE_THICKNESS) or []
    for found in (*lines, *thin):
        yield Box(found.l, min(found.t, found.b), found.r, max(found.t, found.b))


def _drawings(page_backend: Any) -> Iterator[Box]:
    """Rectangles around connected shapes that are large enough to be a figure."""
    for found in page_backend.get_connected_shape_bounding_boxes(tolerance=2.0) or []:
        box = Box(found.l, min(found.t, found.b), found.r, max(found.t, found.b))
        if box.width > _MIN_DRAWING and box.height > _MIN_DRAWING:
            yield box


def _pictures(decoder: Any, height: float) -> Iterator[Box]:
    for image in decoder.get_page_images():
        if getattr(image, "is_visible", True):
            left, right = sorted((image.x0, image.x1))
            bottom, top = sorted((image.y0, image.y1))
            yield Box(left, height - top, right, height - bottom)


def decode_pages(data: bytes, name: str, reader: PageReader) -> list[str]:
    """Decode all pages of a PDF, in completion order.

    Returns:
        One sentence per page that could not be decoded, or one for the whole document.
    """
    document = InputDocument(
        path_or_stream=io.BytesIO(data),
        format=InputFormat.PDF,
        filename=name or "document.pdf",
        backend=WordBackend,
        backend_options=ThreadedDoclingParseBackendOptions.model_validate(
            {"render_pages": False, "parser_threads": 1}
        ),
    )
    if not document.valid:
        return ["The document's structure could not be decoded."]
    options = NativePdfPipelineOptions(generate_page_images=False, generate_picture_images=False)
    pipeline = WordPipeline(options, reader)
    result = pipeline.execute(document, raises_on_error=False)
    if pipeline.broken is not None:
        raise pipeline.broken
    return [error.error_message for error in result.errors]
