"""What a PDF carries beside its pages: annotations, links, metadata, attachments, scripts.

Belongs here: reading these for the scan, never for the body. Attached files are named and, when
they are text, shown to the scan; they are not opened as documents.
API: fpdf_annot.h, fpdf_attachment.h and fpdf_javascript.h of https://pdfium.googlesource.com/pdfium
"""

from __future__ import annotations

import ctypes
import html
import re
from collections.abc import Callable, Iterator
from typing import Any

from kb_resources.model import HiddenText
from kb_resources.parse.pdf.mend import squeeze
from kb_resources.parse.pdf.pdfium import PdfiumDocument, PdfiumPage

_MAX_ANNOTATIONS = 2_000
_MAX_TEXT = 200_000
_MAX_FILES = 100
_MAX_SCRIPTS = 200
_XMP = re.compile(rb"<x:xmpmeta.*?</x:xmpmeta>", re.DOTALL)
_TAG = re.compile(r"<[^>]+>")
_STRINGS = {"Contents": "annotation", "Subj": "annotation", "TU": "form_field", "V": "form_field"}


def page_extras(page: PdfiumPage) -> list[HiddenText]:
    """Notes, form field values and hints, and link targets of one page."""
    import pypdfium2.raw as pdfium

    place = f"page {page.number}"
    found: dict[tuple[str, str], None] = {}
    count = min(pdfium.FPDFPage_GetAnnotCount(page.raw), _MAX_ANNOTATIONS)
    for index in range(count):
        annotation = pdfium.FPDFPage_GetAnnot(page.raw, index)
        if not annotation:
            continue
        try:
            for key, kind in _STRINGS.items():
                text = _wide(pdfium.FPDFAnnot_GetStringValue, annotation, key.encode())
                if text.strip():
                    found[kind, text] = None
            target = _link_target(page, annotation)
            if target:
                found["link", target] = None
        finally:
            pdfium.FPDFPage_CloseAnnot(annotation)
    return [HiddenText(kind, place, text) for kind, text in found]


def _link_target(page: PdfiumPage, annotation: Any) -> str:
    import pypdfium2.raw as pdfium

    if pdfium.FPDFAnnot_GetSubtype(annotation) != pdfium.FPDF_ANNOT_LINK:
        return ""
    link = pdfium.FPDFAnnot_GetLink(annotation)
    action = pdfium.FPDFLink_GetAction(link) if link else None
    if not action:
        return ""
    document = page.raw.pdf
    length = pdfium.FPDFAction_GetURIPath(document, action, None, 0)
    buffer = ctypes.create_string_buffer(max(length, 1))
    pdfium.FPDFAction_GetURIPath(document, action, buffer, length)
    return buffer.value.decode("utf-8", "replace")


def document_extras(document: PdfiumDocument, data: bytes) -> list[HiddenText]:
    """Metadata, XMP packet, attachments and document scripts."""
    found = [
        HiddenText("metadata", f"document information, {key}", value)
        for key, value in document.metadata().items()
    ]
    found.extend(_xmp(data, {item.text for item in found}))
    found.extend(_attachments(document.raw))
    found.extend(_scripts(document.raw))
    return found


def _xmp(data: bytes, known: set[str]) -> Iterator[HiddenText]:
    for packet in _XMP.findall(data)[:4]:
        text = packet[:_MAX_TEXT].decode("utf-8", "replace")
        values = (squeeze(html.unescape(part)) for part in _TAG.split(text))
        fresh = [value for value in dict.fromkeys(values) if value and value not in known]
        if fresh:
            yield HiddenText("metadata", "XMP packet", "\n".join(fresh))


def attachment_names(document: PdfiumDocument) -> list[str]:
    """Names of attached files."""
    return [
        item.place.removeprefix("attachment ")
        for item in _attachments(document.raw)
        if item.kind == "attachment"
    ]


def _attachments(raw: Any) -> Iterator[HiddenText]:
    import pypdfium2

    for index in range(min(raw.count_attachments(), _MAX_FILES)):
        attachment = raw.get_attachment(index)
        name = attachment.get_name() or f"no. {index + 1}"
        try:
            content = bytes(attachment.get_data())
        except pypdfium2.PdfiumError:
            content = b""
        yield HiddenText("attachment", f"attachment {name}", f"{name}\n{_as_text(content)}".strip())


def _as_text(content: bytes) -> str:
    """Content as text when it is text, else nothing."""
    if b"\0" in content[:4096]:
        return ""
    try:
        return content.decode("utf-8")[:_MAX_TEXT]
    except UnicodeDecodeError:
        return ""


def _scripts(raw: Any) -> Iterator[HiddenText]:
    import pypdfium2.raw as pdfium

    for index in range(min(pdfium.FPDFDoc_GetJavaScriptActionCount(raw), _MAX_SCRIPTS)):
        action = pdfium.FPDFDoc_GetJavaScriptAction(raw, index)
        if not action:
            continue
        try:
            name = _wide(pdfium.FPDFJavaScriptAction_GetName, action)
            script = _wide(pdfium.FPDFJavaScriptAction_GetScript, action)
        finally:
            pdfium.FPDFDoc_CloseJavaScriptAction(action)
        if script.strip():
            yield HiddenText("script", f"document script {name}".strip(), script[:_MAX_TEXT])


def _wide(getter: Callable[..., int], *arguments: Any) -> str:
    """A string from one of PDFium's two-step UTF-16 getters."""
    import pypdfium2.raw as pdfium

    length = getter(*arguments, None, 0)
    if length <= 2:
        return ""
    buffer = ctypes.create_string_buffer(length)
    getter(*arguments, ctypes.cast(buffer, ctypes.POINTER(pdfium.FPDF_WCHAR)), length)
    return buffer.raw[:length].decode("utf-16-le", "replace").rstrip("\0")
