"""From media type to reader: one file parsed in this process.

Belongs here: the table of formats and the last net for readers' exceptions. Limits on time and
memory are the sandbox's; call this in a child, or for trusted bytes only. Names of types follow
https://www.iana.org/assignments/media-types/.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kb_resources.errors import KbError
from kb_resources.model import DocumentState, ParsedDocument, Refusal
from kb_resources.parse.options import ParseOptions
from kb_resources.parse.reading import Reading, assemble

IMAGE_TYPES = ("image/png", "image/jpeg", "image/tiff", "image/webp", "image/bmp", "image/gif")
"""Pictures that are read by text recognition."""

READ_BY_SERVE = frozenset(("application/pdf", "image/png", "image/jpeg", "image/tiff"))
"""Types that a configured docling-serve reads."""

READ_BY_OCR = frozenset((*IMAGE_TYPES, "application/pdf"))
"""Types whose reading may wait for text recognition."""

_OOXML = "application/vnd.openxmlformats-officedocument."
_ODT = "application/vnd.oasis.opendocument.text"
_DEFAULTS = ParseOptions()
# Bytes of text for a byte of file: what is written as text, what may be packed; and free ones.
_PLAIN = ("text/", "message/", "application/json", "application/xml", "application/rtf")
_MOST_TIMES, _MOST_TIMES_PACKED = 20, 300
_FREE_BYTES = 1 << 20
_DOCLING = ("docling_core.types.doc", "docling.datamodel.document")

# What a warm parent imports before it forks a child for a type.
PRELOADS: dict[str, tuple[str, ...]] = {
    "application/pdf": ("kb_resources.parse.pdf.read", "kb_resources.parse.pdf.pipeline"),
    f"{_OOXML}wordprocessingml.document": ("docling.backend.msword_backend", *_DOCLING),
    f"{_OOXML}presentationml.presentation": ("docling.backend.mspowerpoint_backend", *_DOCLING),
    f"{_OOXML}spreadsheetml.sheet": ("openpyxl", "lxml.etree"),
    **dict.fromkeys(IMAGE_TYPES, ("PIL.Image", "kb_resources.parse.image")),
    "text/html": ("lxml.html", "kb_resources.parse.html.reader"),
    "text/markdown": ("markdown_it", "lxml.html", "kb_resources.parse.html.reader"),
    "application/epub+zip": ("lxml.html", "kb_resources.parse.html.reader"),
    "message/rfc822": ("kb_resources.parse.mail.eml", "lxml.html"),
    "application/vnd.ms-outlook": ("oxmsg", "kb_resources.parse.mail.msg", "lxml.html"),
    _ODT: ("lxml.etree", "kb_resources.parse.office.odt"),
}

_PAGE = (
    b"<html><head><title>A</title><meta name='a' content='b'></head><body><h1>A</h1><p>One "
    b"<b>two</b> <a href='https://example.org/'>three</a>.</p><ul><li>Four</li></ul><table><tr>"
    b"<th>A</th></tr><tr><td>1</td></tr></table><pre>x = 1</pre><!-- five --></body></html>"
)
_NOTE = (
    b"---\ntitle: A\n---\n\n# A\n\nOne **two** [three](https://example.org/).\n\n- Four\n- Five\n\n"
    b"1. Six\n\n> Seven\n\n| A | B |\n|---|---|\n| 1 | 2 |\n\n```\nx = 1\n```\n\n<!-- eight -->\n"
)
_MAIL = b"From: a@example.org\nSubject: A\nDate: Mon, 1 Jan 2024 10:00:00 +0000\n\nOne.\n"
SAMPLES: dict[str, bytes] = {
    "text/plain": b"A\n\nOne two.\n\n- three\n",
    "text/csv": b"A,B\n1,2\n",
    "application/json": b'{"A": [1, "two"]}',
    "text/html": _PAGE,
    "text/markdown": _NOTE,
    "message/rfc822": _MAIL,
}
"""Texts of ours that the warm parent reads once for a type, so that what its libraries make at the
first use (tables, compiled expressions) is there for every child: half of what a small text cost.
Only types whose reading starts no thread and no program."""


def parse_here(
    data: bytes, media_type: str, name: str, options: ParseOptions = _DEFAULTS
) -> ParsedDocument | Refusal:
    """Parse one file in this process, without limits on time or memory.

    Args:
        data: the content.
        media_type: as sniffed by `acquire`.
        name: file name, for the title's last resort and for reasons.
        options: what the installation chose.

    Returns:
        The document, or a Refusal; broken input never raises.

    Raises:
        MemoryError: the process' memory limit was hit; the sandbox turns it into a Refusal.
    """
    reader = _READERS.get(media_type)
    if reader is None:
        return _unsupported(media_type)
    found = _caught(lambda: reader(data, name, options), media_type, name)
    return found if isinstance(found, Refusal) else _in_proportion(found, len(data))


def _caught(
    read: Callable[[], Reading | Refusal], media_type: str, name: str
) -> ParsedDocument | Refusal:
    try:
        reading = read()
        if isinstance(reading, Refusal):
            return reading
        return assemble(reading, media_type, name)
    except RecursionError:
        return Refusal(DocumentState.CORRUPT, "The document is nested too deeply to be read.")
    except (MemoryError, KeyboardInterrupt, KbError):
        raise
    except Exception as error:  # noqa: BLE001 - hostile input finds ways no list foresees
        return Refusal(
            DocumentState.FAILED,
            f"The parser could not read this {media_type} file ({type(error).__name__}); "
            "save it again in another format.",
            {"error": f"{type(error).__name__}: {str(error)[:300]}"},
        )


def _in_proportion(document: ParsedDocument, size: int) -> ParsedDocument | Refusal:
    """The document unless its text is many times its file: no author writes so, only an attack."""
    times = _MOST_TIMES if document.media_type.startswith(_PLAIN) else _MOST_TIMES_PACKED
    length, most = sum(len(text.encode()) for text in _texts(document)), times * size + _FREE_BYTES
    if length <= most:
        return document
    return Refusal(
        DocumentState.TOO_LARGE,
        f"Its {size:,} bytes make {length:,} bytes of text; at most {most:,} are taken. Split it, "
        "or save it without spans, padding and headings of many lines.",
        {"size_bytes": size, "text_bytes": length, "limit_bytes": most},
    )


def _texts(document: ParsedDocument) -> Iterator[str]:
    """The body and what is told beside it: each block repeats the headings that it stands under."""
    yield document.body
    for block in document.blocks:
        yield from block.heading_path
        yield block.locator or ""
    for hidden in document.hidden:
        yield from (hidden.place, hidden.text)


def _unsupported(media_type: str) -> Refusal:
    advice = {
        "application/vnd.ms-excel": "save it as XLSX",
        "application/vnd.ms-powerpoint": "save it as PPTX",
    }.get(media_type, "convert it to PDF, DOCX, HTML or text")
    return Refusal(
        DocumentState.UNSUPPORTED,
        f"Files of type {media_type} are not read; {advice}.",
        {"media_type": media_type},
    )


def parse_with_docling(
    data: bytes, media_type: str, name: str, document_json: bytes
) -> ParsedDocument | Refusal:
    """Parse one file whose pages docling-serve has read.

    Args:
        data: the content.
        media_type: as sniffed by `acquire`.
        name: file name.
        document_json: what the server answered; believed no more than the file.
    """
    from kb_resources.parse.docling.reader import read_docling_json

    return _caught(lambda: read_docling_json(document_json, data, media_type), media_type, name)


def _pdf(data: bytes, name: str, options: ParseOptions) -> Reading | Refusal:
    if options.models:
        from kb_resources.parse.docling.models import read_with_models

        return read_with_models(data, name, "application/pdf")
    from kb_resources.parse.ocr import open_recogniser
    from kb_resources.parse.pdf import parse_pdf

    result = parse_pdf(data, name, open_recogniser(options.ocr))
    if isinstance(result, Refusal):
        return result
    return Reading(
        drafts=result.drafts,
        parser="pdf",
        title=result.title or "",
        hidden=result.hidden,
        coverage=result.coverage,
        metadata=result.metadata,
    )


def _image(data: bytes, _name: str, options: ParseOptions) -> Reading | Refusal:
    from kb_resources.parse.image import read_image

    return read_image(data, options.ocr)


def _docx(data: bytes, _name: str, _options: ParseOptions) -> Reading | Refusal:
    from kb_resources.parse.office.docx import read_docx

    return read_docx(data)


def _pptx(data: bytes, _name: str, _options: ParseOptions) -> Reading | Refusal:
    from kb_resources.parse.office.pptx import read_pptx

    return read_pptx(data)


def _xlsx(data: bytes, _name: str, _options: ParseOptions) -> Reading | Refusal:
    from kb_resources.parse.office.xlsx import read_xlsx

    return read_xlsx(data)


def _odt(data: bytes, _name: str, _options: ParseOptions) -> Reading | Refusal:
    from kb_resources.parse.office.odt import read_odt

    return read_odt(data)


def _html(data: bytes, name: str, _options: ParseOptions) -> Reading | Refusal:
    from kb_resources.parse.html.reader import read_html

    return read_html(data, name)


def _markdown(data: bytes, name: str, _options: ParseOptions) -> Reading | Refusal:
    from kb_resources.parse.markdown import read_markdown

    return read_markdown(data, name)


def _text(data: bytes, name: str, _options: ParseOptions) -> Reading | Refusal:
    from kb_resources.parse.text import read_text

    return read_text(data, name)


def _json(data: bytes, name: str, _options: ParseOptions) -> Reading | Refusal:
    from kb_resources.parse.jsondoc import read_json

    return read_json(data, name)


def _csv(data: bytes, name: str, _options: ParseOptions) -> Reading | Refusal:
    from kb_resources.parse.csvdoc import read_csv

    return read_csv(data, name)


def _xml(data: bytes, _name: str, _options: ParseOptions) -> Reading | Refusal:
    from kb_resources.parse.xmldoc import read_xml

    return read_xml(data)


def _epub(data: bytes, _name: str, _options: ParseOptions) -> Reading | Refusal:
    from kb_resources.parse.epub import read_epub

    return read_epub(data)


def _eml(data: bytes, _name: str, _options: ParseOptions) -> Reading | Refusal:
    from kb_resources.parse.mail.eml import read_eml

    return read_eml(data)


def _msg(data: bytes, _name: str, _options: ParseOptions) -> Reading | Refusal:
    from kb_resources.parse.mail.msg import read_msg

    return read_msg(data)


def _rtf(data: bytes, _name: str, _options: ParseOptions) -> Reading | Refusal:
    from kb_resources.parse.legacy.rtf import read_rtf

    return read_rtf(data)


def _doc(data: bytes, name: str, _options: ParseOptions) -> Reading | Refusal:
    from kb_resources.parse.legacy.doc import read_doc

    return read_doc(data, name)


_READERS: dict[str, Callable[[bytes, str, ParseOptions], Reading | Refusal]] = {
    "application/pdf": _pdf,
    f"{_OOXML}wordprocessingml.document": _docx,
    f"{_OOXML}presentationml.presentation": _pptx,
    f"{_OOXML}spreadsheetml.sheet": _xlsx,
    _ODT: _odt,
    "text/html": _html,
    "text/markdown": _markdown,
    "text/plain": _text,
    "text/csv": _csv,
    "text/tab-separated-values": _csv,
    "application/json": _json,
    "application/xml": _xml,
    "application/epub+zip": _epub,
    "message/rfc822": _eml,
    "application/vnd.ms-outlook": _msg,
    "application/rtf": _rtf,
    "application/msword": _doc,
    **dict.fromkeys(IMAGE_TYPES, _image),
}
