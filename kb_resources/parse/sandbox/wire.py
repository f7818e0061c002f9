"""A parse result as bytes between child and parent: no pickle, no trust.

Belongs here: frames on a socket, and `ParsedDocument` to JSON and back. The child may be under a
document's control, so the parent rebuilds every offset from the body and refuses what does not fit
(https://docs.python.org/3/library/pickle.html tells why pickle is out of the question).
"""

from __future__ import annotations

import json
import socket
import struct
import time
from typing import Any

from kb_resources.model import (
    BBox,
    Block,
    Coverage,
    DocumentState,
    HiddenText,
    PageSpan,
    ParsedDocument,
    RecognisedPage,
    Refusal,
    RemovedLine,
)

_LENGTH = struct.Struct(">Q")
_SEPARATOR = b"\n\n"
_CHUNK = 1 << 20


class WireError(Exception):
    """The other side closed, sent too much, or sent nonsense."""


def send_frame(channel: socket.socket, payload: bytes, deadline: float | None = None) -> None:
    """Send a length and a payload; TimeoutError after the deadline (monotonic seconds)."""
    view = memoryview(_LENGTH.pack(len(payload)) + payload)
    while view:
        _set_timeout(channel, deadline)
        view = view[channel.send(view[:_CHUNK]) :]


def receive_frame(channel: socket.socket, limit: int, deadline: float | None = None) -> bytes:
    """Receive one frame.

    Raises:
        WireError: the peer closed early or announced more than `limit` bytes.
        TimeoutError: the deadline (monotonic seconds) passed.
    """
    (length,) = _LENGTH.unpack(_receive(channel, _LENGTH.size, deadline))
    if length > limit:
        raise WireError(f"a result of {length:,} bytes is over the limit of {limit:,}")
    return _receive(channel, length, deadline)


def encode(result: ParsedDocument | Refusal) -> bytes:
    """A result as JSON bytes; block texts are not sent, the body holds them."""
    if isinstance(result, Refusal):
        value: dict[str, Any] = {
            "state": result.state.value,
            "reason": result.reason,
            "details": dict(result.details),
        }
        return json.dumps({"refusal": value}, default=str).encode()
    coverage = result.coverage
    value = {
        "title": result.title,
        "media_type": result.media_type,
        "body": result.body,
        "blocks": [
            [
                block.kind,
                block.byte_end - block.byte_start,
                block.page,
                _box(block.bbox),
                block.heading_path,
                block.locator,
                block.level,
                block.continues,
                block.confidence,
            ]
            for block in result.blocks
        ],
        "raw_text": result.raw_text,
        "hidden": [[item.kind, item.place, item.text] for item in result.hidden],
        "coverage": {
            "pages": coverage.pages,
            "pages_with_text": coverage.pages_with_text,
            "pages_ocr": coverage.pages_ocr,
            "pages_needing_ocr": coverage.pages_needing_ocr,
            "tables": coverage.tables,
            "table_confidences": coverage.table_confidences,
            "recognised": [
                [r.page, r.language, r.confidence, r.agreement, r.second]
                for r in coverage.recognised
            ],
            "replacement_share": coverage.replacement_share,
            "removed_lines": [[r.page, r.text, r.reason] for r in coverage.removed_lines],
            "warnings": coverage.warnings,
        },
        "parser": result.parser,
        "metadata": result.metadata,
    }
    return json.dumps({"document": value}, ensure_ascii=False).encode()


def decode(payload: bytes) -> ParsedDocument | Refusal:
    """The result of `encode`, every span rebuilt and checked against the body.

    Raises:
        WireError: it is not such a result.
    """
    try:
        value = json.loads(payload)
        if "refusal" in value:
            refusal = value["refusal"]
            state = DocumentState(refusal["state"])
            return Refusal(state, str(refusal["reason"]), dict(refusal["details"]))
        return _document(value["document"])
    except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
        raise WireError(f"the child's answer is malformed ({type(error).__name__})") from error


def _document(value: dict[str, Any]) -> ParsedDocument:
    body = str(value["body"])
    blocks, pages = _blocks(body.encode(), value["blocks"])
    coverage = dict(value["coverage"])
    return ParsedDocument(
        title=str(value["title"]),
        media_type=str(value["media_type"]),
        body=body,
        blocks=blocks,
        pages=pages,
        raw_text=str(value["raw_text"]),
        hidden=tuple(HiddenText(str(k), str(p), str(t)) for k, p, t in value["hidden"]),
        coverage=Coverage(
            pages=int(coverage["pages"]),
            pages_with_text=int(coverage["pages_with_text"]),
            pages_ocr=int(coverage["pages_ocr"]),
            pages_needing_ocr=tuple(map(int, coverage["pages_needing_ocr"])),
            tables=int(coverage["tables"]),
            table_confidences=tuple(map(float, coverage["table_confidences"])),
            recognised=tuple(
                RecognisedPage(int(p), str(lang), float(c), None if a is None else float(a), str(s))
                for p, lang, c, a, s in coverage["recognised"]
            ),
            replacement_share=float(coverage["replacement_share"]),
            removed_lines=tuple(
                RemovedLine(None if p is None else int(p), str(t), str(r))
                for p, t, r in coverage["removed_lines"]
            ),
            warnings=tuple(map(str, coverage["warnings"])),
        ),
        parser=str(value["parser"]),
        metadata={str(k): str(v) for k, v in dict(value["metadata"]).items()},
    )


def _blocks(body: bytes, rows: list[Any]) -> tuple[tuple[Block, ...], tuple[PageSpan, ...]]:
    """Blocks and page spans, offsets counted here from the lengths and the body alone."""
    blocks: list[Block] = []
    pages: list[PageSpan] = []
    byte = char = 0
    for n, row in enumerate(rows):
        kind, length, page, box, path, locator, level, continues, confidence = row
        if n:
            if body[byte : byte + 2] != _SEPARATOR:
                raise ValueError("blocks do not cover the body")
            byte, char = byte + 2, char + 2
        text = body[byte : byte + length].decode()
        if length <= 0 or len(text.encode()) != length:
            raise ValueError("a block is empty or ends outside the body")
        if page is not None and (not pages or pages[-1].page != page):
            if pages and page < pages[-1].page:
                raise ValueError("pages go backwards")
            pages.append(PageSpan(int(page), byte, byte, char, char))
        start = char - (pages[-1].char_start if page is not None else 0)
        blocks.append(
            Block(
                kind=kind,
                text=text,
                byte_start=byte,
                byte_end=byte + length,
                char_start=start,
                char_end=start + len(text),
                page=None if page is None else int(page),
                bbox=BBox(*map(float, box)) if box else None,
                heading_path=tuple(map(str, path)),
                locator=None if locator is None else str(locator),
                level=level,
                continues=bool(continues),
                confidence=float(confidence),
            )
        )
        byte, char = byte + length, char + len(text)
        if page is not None:
            last = pages[-1]
            pages[-1] = PageSpan(last.page, last.byte_start, byte, last.char_start, char)
    if byte != len(body):
        raise ValueError("blocks do not cover the body")
    return tuple(blocks), tuple(pages)


def _box(box: BBox | None) -> list[float] | None:
    return None if box is None else [box.left, box.top, box.right, box.bottom]


def _receive(channel: socket.socket, length: int, deadline: float | None) -> bytes:
    data = bytearray()
    while len(data) < length:
        _set_timeout(channel, deadline)
        part = channel.recv(min(length - len(data), _CHUNK))
        if not part:
            raise WireError("the child ended without an answer")
        data += part
    return bytes(data)


def _set_timeout(channel: socket.socket, deadline: float | None) -> None:
    if deadline is None:
        channel.settimeout(None)
        return
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    channel.settimeout(left)
