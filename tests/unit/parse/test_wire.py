"""Results cross the sandbox's border whole, and nonsense does not cross it."""

from __future__ import annotations

import json
import socket
import threading
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb_resources.model import (
    BBox,
    Coverage,
    DocumentState,
    HiddenText,
    ParsedDocument,
    Refusal,
    RemovedLine,
)
from kb_resources.parse import DraftBlock, serialise
from kb_resources.parse.sandbox.wire import (
    WireError,
    decode,
    encode,
    receive_frame,
    send_frame,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
DRAFTS = st.lists(
    st.builds(
        DraftBlock,
        kind=st.sampled_from(["paragraph", "heading", "code", "list_item"]),
        text=TEXT,
        page=st.one_of(st.none(), st.integers(1, 4)),
        bbox=st.one_of(st.none(), st.just(BBox(1.5, 2.0, 3.25, 4.0))),
        level=st.one_of(st.none(), st.integers(1, 6)),
        locator=st.one_of(st.none(), TEXT),
        continues=st.booleans(),
    ),
    max_size=8,
)


def document_of(drafts: list[DraftBlock], text: str = "x") -> ParsedDocument:
    body = serialise(drafts)
    return ParsedDocument(
        title=text,
        media_type="text/plain",
        body=body.text,
        blocks=body.blocks,
        pages=body.pages,
        raw_text=body.raw_text,
        hidden=(HiddenText("html_comment", "comment", text),),
        coverage=Coverage(
            pages=4,
            pages_needing_ocr=(2,),
            removed_lines=(
                RemovedLine(None, text, "navigation"),
                RemovedLine(1, "7", "page_number"),
            ),
            warnings=(text,),
        ),
        parser="text/1",
        metadata={"author": text},
    )


@given(DRAFTS, TEXT)
def test_a_document_comes_back_equal(drafts: list[DraftBlock], text: str) -> None:
    document = document_of(drafts, text)
    assert decode(encode(document)) == document


def test_a_refusal_comes_back_equal() -> None:
    refusal = Refusal(DocumentState.TOO_LARGE, "Too much: много.", {"bytes": 7})
    assert decode(encode(refusal)) == refusal


def lie(change: dict[str, Any]) -> bytes:
    drafts = [DraftBlock("paragraph", "один", page=1), DraftBlock("paragraph", "two", page=2)]
    value = json.loads(encode(document_of(drafts)))
    value["document"] |= change
    return json.dumps(value).encode()


def row(length: int, page: int = 1) -> list[Any]:
    return ["paragraph", length, page, None, [], None, None, False, 1.0]


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"[]",
        b"{}",
        b"\x80\x04K\x01.",
        b'{"refusal": {"state": "indexed!", "reason": "", "details": {}}}',
        b"[" * 100_000,
        lie({"blocks": []}),
        lie({"blocks": [row(8), row(2)]}),
        lie({"blocks": [row(7), row(4)]}),
        lie({"blocks": [row(8, 2), row(3, 1)]}),
        lie({"blocks": [row(8), row(30)]}),
        lie({"blocks": [row(8), row(0), row(3)]}),
        lie({"blocks": [row(-3), row(3)]}),
        lie({"body": "один и two"}),
        lie({"coverage": {}}),
    ],
)
def test_a_lying_child_is_not_believed(payload: bytes) -> None:
    with pytest.raises(WireError):
        decode(payload)


def test_an_announced_flood_is_refused_before_it_comes() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.send((1 << 40).to_bytes(8, "big"))
        with pytest.raises(WireError, match="over the limit"):
            receive_frame(ours, 1 << 20)


def test_a_closed_or_silent_peer_is_noticed() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        with pytest.raises(TimeoutError):
            receive_frame(ours, 100, time.monotonic() + 0.05)
        theirs.send(b"\x00" * 7)
        theirs.close()
        with pytest.raises(WireError, match="without an answer"):
            receive_frame(ours, 100)


def test_a_long_frame_arrives_whole() -> None:
    payload = bytes(range(256)) * 20_000
    ours, theirs = socket.socketpair()
    with ours, theirs:
        sender = threading.Thread(target=send_frame, args=(theirs, payload))
        sender.start()
        assert receive_frame(ours, len(payload), time.monotonic() + 20) == payload
        sender.join()
