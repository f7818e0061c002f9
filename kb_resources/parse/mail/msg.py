"""Outlook's .msg files to a message.

Belongs here: property access through python-oxmsg, the same package docling reads .msg with
(https://github.com/scanny/python-oxmsg). OLE storage itself is that package's work.
"""

from __future__ import annotations

import io
from typing import Any

from kb_resources.model import DocumentState, HiddenText, Refusal
from kb_resources.parse.encoding import decode
from kb_resources.parse.mail.message import Attachment, Message, Part, read_message
from kb_resources.parse.reading import Reading


def read_msg(data: bytes) -> Reading | Refusal:
    """Read an Outlook message.

    Returns:
        Reading, or a Refusal (`corrupt`).
    """
    import oxmsg

    loader: Any = oxmsg.Message
    try:
        message = _message(loader.load(io.BytesIO(data)))
    except (MemoryError, KeyboardInterrupt):
        raise
    except Exception as error:  # noqa: BLE001 - the package raises whatever broken OLE makes of it
        return Refusal(
            DocumentState.CORRUPT,
            f"The Outlook message is damaged ({str(error)[:200] or type(error).__name__}).",
        )
    return read_message(message, "msg")


def _message(source: Any) -> Message:
    recipients = [_recipient(r) for r in getattr(source, "recipients", None) or ()]
    sent = getattr(source, "sent_date", None)
    headers = {
        "Subject": getattr(source, "subject", None) or "",
        "From": getattr(source, "sender", None) or "",
        "To": ", ".join(filter(None, recipients)),
        "Date": sent.isoformat() if sent else "",
    }
    parts = []
    if body := getattr(source, "body", None):
        parts.append(Part("1", "plain", body))
    if html := _html(getattr(source, "html_body", None)):
        parts.append(Part("2", "html", html))
    files = getattr(source, "attachments", None) or ()
    attachments = [_attachment(item, n) for n, item in enumerate(files, len(parts) + 1)]
    extra = tuple(
        HiddenText("header", f"header {name}", value)
        for name, value in (getattr(source, "message_headers", None) or {}).items()
        if name not in headers and value
    )
    filled = {name: value for name, value in headers.items() if value}
    return Message(filled, [parts] if parts else [], attachments, extra=extra)


def _recipient(recipient: Any) -> str:
    name, address = recipient.name or "", recipient.email_address or ""
    return f"{name} <{address}>" if name and name != address else address


def _html(value: Any) -> str:
    if isinstance(value, bytes):
        decoded = decode(value)
        return decoded.text if decoded else ""
    return str(value or "")


def _attachment(item: Any, number: int) -> Attachment:
    content = getattr(item, "file_bytes", None) or b""
    kind = getattr(item, "mime_type", None) or "application/octet-stream"
    decoded = decode(content) if kind.startswith("text/") else None
    return Attachment(
        number=str(number),
        name=getattr(item, "file_name", None) or f"part {number}",
        media_type=kind,
        size_bytes=len(content),
        text=decoded.text if decoded else "",
    )
