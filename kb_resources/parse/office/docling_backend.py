"""Calling one docling backend on bytes, without docling's converter.

Belongs here: the two docling calls and the refusals of what it can't read. The converter of
`docling.document_converter` imports every format's dependencies (twice the time and memory of one
backend) and adds nothing to documents that need no model:
https://docling-project.github.io/docling/concepts/architecture/.
"""

from __future__ import annotations

import io
import logging
import warnings
from typing import Any

from kb_resources.model import DocumentState, Refusal

_BACKENDS = {
    "docx": ("docling.backend.msword_backend", "MsWordDocumentBackend"),
    "pptx": ("docling.backend.mspowerpoint_backend", "MsPowerpointDocumentBackend"),
}


def backend_modules(kind: str) -> tuple[str, ...]:
    """Modules worth importing before a child is forked to read this kind."""
    return (_BACKENDS[kind][0], "docling.datamodel.document")


def convert(data: bytes, kind: str) -> Any | Refusal:
    """A `DoclingDocument` of the bytes.

    Args:
        data: a complete file, prepared by the format's reader.
        kind: "docx" or "pptx".

    Returns:
        The document, or a Refusal (`corrupt`) with docling's reason.
    """
    import importlib

    from docling.datamodel.base_models import InputFormat
    from docling.datamodel.document import InputDocument

    module, class_name = _BACKENDS[kind]
    backend = getattr(importlib.import_module(module), class_name)
    logging.getLogger("docling").setLevel(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            source = InputDocument(
                io.BytesIO(data), InputFormat(kind), backend, filename=f"document.{kind}"
            )
            if not source.valid:
                return _corrupt(kind, "its main part cannot be read")
            return backend(source, io.BytesIO(data)).convert()
        except (MemoryError, KeyboardInterrupt):
            raise
        except Exception as error:  # noqa: BLE001 - docling raises whatever its libraries raise
            return _corrupt(kind, str(error).splitlines()[0][:200] or type(error).__name__)


def _corrupt(kind: str, why: str) -> Refusal:
    return Refusal(
        DocumentState.CORRUPT,
        f"The {kind.upper()} file is damaged ({why.rstrip('.')}); save it again.",
    )
