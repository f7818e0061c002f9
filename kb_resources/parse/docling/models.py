"""docling's full pipeline with its models, where they are installed.

Belongs here: saying what is missing, and one conversion. Models come from a folder only; nothing is
fetched while a document is read (https://docling-project.github.io/docling/usage/advanced_options/).
"""

from __future__ import annotations

import importlib.util
import io
import os
from collections.abc import Mapping
from pathlib import Path

from kb_resources.errors import UnavailableError
from kb_resources.model import DocumentState, Refusal
from kb_resources.parse.docling.reader import reading_of
from kb_resources.parse.reading import Reading

_NEEDED = ("torch", "docling_ibm_models")
_FOLDER = "DOCLING_ARTIFACTS_PATH"


def require_models(environment: Mapping[str, str] | None = None) -> Path:
    """The folder of docling's models.

    Args:
        environment: default: the process's.

    Raises:
        UnavailableError: packages or models are missing; `next_step` says what to install.
    """
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise UnavailableError(
            f"docling's full pipeline needs {' and '.join(missing)}, which are not installed.",
            next_step="Install 'dagster-kb[docling-full]', or unset KB_DOCLING_MODELS.",
        )
    given = os.environ if environment is None else environment
    folder = Path(given.get(_FOLDER) or Path.home() / ".cache" / "docling" / "models")
    if not folder.is_dir() or not any(folder.iterdir()):
        raise UnavailableError(
            f"docling's models are not in {folder}.",
            next_step=f"Run `docling-tools models download` and set {_FOLDER} to its folder, or "
            "unset KB_DOCLING_MODELS.",
        )
    return folder


def read_with_models(data: bytes, name: str, media_type: str) -> Reading | Refusal:
    """Read a PDF or a picture by docling's layout and table models.

    Raises:
        UnavailableError: they are not installed.
    """
    folder = require_models()
    from docling.datamodel.base_models import DocumentStream, InputFormat
    from docling.datamodel.pipeline_options import PdfPipelineOptions
    from docling.document_converter import DocumentConverter, ImageFormatOption, PdfFormatOption
    from docling.exceptions import ConversionError

    options = PdfPipelineOptions(artifacts_path=folder)
    options.generate_page_images = options.generate_picture_images = False
    converter = DocumentConverter(
        allowed_formats=[InputFormat.PDF, InputFormat.IMAGE],
        format_options={
            InputFormat.PDF: PdfFormatOption(pipeline_options=options),
            InputFormat.IMAGE: ImageFormatOption(pipeline_options=options),
        },
    )
    try:
        result = converter.convert(DocumentStream(name=name, stream=io.BytesIO(data)))
    except ConversionError as error:
        return Refusal(DocumentState.FAILED, f"docling could not convert it ({str(error)[:200]}).")
    return reading_of(result.document, data, media_type)
