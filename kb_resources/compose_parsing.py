"""What parsing is built from: the composition root's part for options, pool and docling-serve.

Belongs here: the same as in `compose`, for the parser. What does not: parsing itself
(`kb_resources.parse`), or any decision about a document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kb_resources.answer.disclosure import Destination
    from kb_resources.model import ParsedDocument, Refusal
    from kb_resources.parse import ParseOptions, ParserPool
    from kb_resources.settings import Settings
    from kb_resources.stages.capabilities import Parse


def parse_options(settings: Settings) -> ParseOptions:
    """What the settings choose about parsing."""
    from kb_resources.parse import OcrOptions, ParseOptions

    return ParseOptions(
        ocr=OcrOptions(
            enabled=settings.ocr,
            languages=settings.ocr_languages,
            document_s=settings.ocr_timeout_s,
        ),
        models=settings.docling_models,
        served=bool(settings.docling_url),
    )


def _docling_serve(settings: Settings) -> Callable[[bytes, str], bytes | Refusal] | None:
    if not settings.docling_url:
        return None
    from kb_resources.parse.docling.serve import DoclingServe

    return DoclingServe(
        settings.docling_url,
        key=settings.docling_key,
        timeout_s=settings.docling_timeout_s,
        ocr=settings.ocr,
    ).convert


def parse_destination(settings: Settings) -> Destination | None:
    """Where documents are sent to be read; None where nowhere."""
    if not settings.docling_url:
        return None
    from kb_resources.answer.disclosure import Destination

    return Destination(settings.docling_url, "docling-serve", settings.docling_hosting)


class _Parser:
    """The sandboxed pool, started with the first document."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._pool: ParserPool | None = None

    def __call__(
        self, data: bytes, media_type: str, name: str, *, here: bool = False
    ) -> ParsedDocument | Refusal:
        if self._pool is None:
            from kb_resources.parse import ParserPool

            self._pool = ParserPool(
                workers=self._settings.parse_workers,
                memory_bytes=self._settings.parse_memory_bytes,
                wall_s=self._settings.parse_timeout_s,
                options=parse_options(self._settings),
                convert=_docling_serve(self._settings),
            )
        return self._pool.parse(data, media_type, name, here=here)

    def close(self) -> None:
        if self._pool is not None:
            self._pool.close()


@contextmanager
def open_parser(
    settings: Settings,
) -> Iterator[Parse]:
    """The sandboxed parser alone: bytes, media type and name to a document or a refusal.

    Who calls it decides whether a document may be sent to a configured docling-serve.

    Raises:
        UnavailableError: docling's models are asked for and not installed.
    """
    if settings.docling_models:
        from kb_resources.parse.docling.models import require_models

        require_models()
    parser = _Parser(settings)
    try:
        yield parser
    finally:
        parser.close()
