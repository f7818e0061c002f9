"""RFC 822 files to a message.

Belongs here: MIME structure, header decoding, transfer encodings, charsets. docling's reader keeps
no part numbers and drops the alternatives, so the standard library's parser is used
(https://docs.python.org/3/library/email.parser.html).
"""

from __future__ import annotations

import email
import email.header
import email.message
import email.policy
import re
from typing import Any

from kb_resources.model import DocumentState, HiddenText, Refusal
from kb_resources.parse.encoding import decode
from kb_resources.parse.mail.message import Attachment, Message, Part, read_message
from kb_resources.parse.reading import Reading

_MAX_PARTS = 1_000
_MAX_DEPTH = 20
_NAMES = ("Subject", "From", "To", "Cc", "Date")
_MBOX_LINE = re.compile(rb"\AFrom [^\r\n]*\r?\n")


def read_eml(data: bytes) -> Reading | Refusal:
    """Read an e-mail message.

    Returns:
        Reading, or a Refusal (`corrupt`) for a file without any header field or with absurd
        nesting.
    """
    data = _MBOX_LINE.sub(b"", data, count=1)
    parsed = email.message_from_bytes(data, policy=email.policy.compat32)
    if not parsed.keys():
        return Refusal(DocumentState.CORRUPT, "The message has no header fields.")
    if _depth(parsed) > _MAX_DEPTH or sum(1 for _ in parsed.walk()) > _MAX_PARTS:
        return Refusal(
            DocumentState.CORRUPT,
            f"The message has more than {_MAX_PARTS} parts or {_MAX_DEPTH} levels.",
        )
    return read_message(_message(parsed, ""), "eml")


def _message(parsed: Any, prefix: str) -> Message:
    choices: list[list[Part]] = []
    attachments: list[Attachment] = []
    inner: list[tuple[str, Message]] = []
    _collect(parsed, prefix or "1", choices, attachments, inner)
    # Raw items keep bytes beyond ASCII as surrogates; the parsed ones lose them.
    fields = [(name, text) for name, raw in parsed.raw_items() if (text := header_text(raw))]
    headers = {name.title(): text for name, text in reversed(fields) if name.title() in _NAMES}
    extra = tuple(
        HiddenText("header", f"header {name}", text)
        for name, text in fields
        if name.title() not in _NAMES
    )
    return Message(headers, choices, attachments, inner, extra)


def _collect(
    part: Any,
    number: str,
    choices: list[list[Part]],
    attachments: list[Attachment],
    inner: list[tuple[str, Message]],
) -> None:
    kind = part.get_content_type()
    if kind == "message/rfc822" and part.is_multipart():
        inner.append((number, _message(part.get_payload(0), number)))
    elif part.is_multipart():
        alternatives: list[list[Part]] = []
        for n, child in enumerate(part.get_payload(), 1):
            target = alternatives if kind == "multipart/alternative" else choices
            _collect(child, f"{number}.{n}", target, attachments, inner)
        if alternatives:
            choices.append([p for choice in alternatives for p in choice])
    elif _is_body(part, kind):
        text = _text(part)
        if text.strip():
            choices.append([Part(number, "html" if kind == "text/html" else "plain", text)])
    else:
        attachments.append(_attachment(part, number, kind))


def _is_body(part: Any, kind: str) -> bool:
    attached = (part.get_content_disposition() or "") == "attachment" or part.get_filename()
    return kind in {"text/plain", "text/html"} and not attached


def _attachment(part: Any, number: str, kind: str) -> Attachment:
    payload = part.get_payload(decode=True) or b""
    name = header_text(part.get_filename()) or f"part {number}"
    text = _text(part) if kind.startswith("text/") else ""
    return Attachment(number, name, kind, len(payload), text)


def _text(part: Any) -> str:
    payload = part.get_payload(decode=True) or b""
    decoded = decode(payload, part.get_content_charset())
    return decoded.text if decoded else payload.decode("ascii", "replace")


def header_text(value: Any) -> str:
    """A header field as text: encoded words resolved, raw bytes decoded by what fits."""
    if value is None:
        return ""
    try:
        pieces = email.header.decode_header(str(value))
    except (email.errors.HeaderParseError, ValueError):
        pieces = [(str(value), None)]
    out = []
    for piece, charset in pieces:
        if isinstance(piece, str):
            out.append(piece)
            continue
        decoded = decode(piece, charset)
        out.append(decoded.text if decoded else piece.decode("ascii", "replace"))
    text = "".join(out)
    if any("\udc80" <= char <= "\udcff" for char in text):
        decoded = decode(text.encode("utf-8", "surrogateescape"))
        text = decoded.text if decoded else text
    return " ".join(text.split())


def _depth(part: Any) -> int:
    deepest, stack = 0, [(part, 1)]
    while stack:
        at, depth = stack.pop()
        deepest = max(deepest, depth)
        if at.is_multipart():
            stack.extend((child, depth + 1) for child in at.get_payload())
    return deepest
