"""Plain texts are read by one child in turn: nothing of one shows in the next, not even its end."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from kb_resources.acquire import Acquired, read_file
from kb_resources.model import DocumentState, ParsedDocument, Refusal
from kb_resources.parse import ParserPool, parse_here
from kb_resources.parse.sandbox import pool as pools
from kb_resources.parse.sandbox.child import Child
from kb_resources.parse.sandbox.limits import Limits
from kb_resources.parse.sandbox.shared import may_share
from kb_resources.parse.sandbox.wire import receive_frame
from tests.integration.parse.test_sandbox import open_files

ROOT = Path(__file__).parents[3]
KIND = "text/markdown"


def text(number: int) -> bytes:
    return (
        f"# Title {number}\n\n- item {number}\n\n| a | b |\n|---|---|\n| {number} | 2 |\n".encode()
    )


def title_of(result: ParsedDocument | Refusal) -> str:
    assert isinstance(result, ParsedDocument)
    return result.title


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[ParserPool]:
    """One whose children are given time on a busy machine, so that they stay the same."""
    monkeypatch.setattr(pools, "NEXT_WALL_S", 60.0)
    with ParserPool() as opened:
        yield opened


def child_of(pool: ParserPool) -> psutil.Process:
    assert pool._process is not None
    [child] = psutil.Process(pool._process.pid).children()
    return child


def plain_texts() -> Iterator[tuple[bytes, str, str]]:
    for path in sorted((ROOT / "examples").rglob("*.*")):
        got = read_file(path)
        if isinstance(got, Acquired) and may_share(got.data, got.media_type):
            yield got.data, got.media_type, got.name
    for data in (
        b"[" * 9_000,
        b'{"a": NaN, "b": 1e999}',
        b'"' * 60_000,
        b"\xff\xfe\x00",
        b",\n" * 9,
    ):
        for kind in ("application/json", "text/csv", "text/plain", KIND):
            yield data, kind, "odd"
    yield b"[link](https://example.org 'title') &lt;script&gt; " * 900, KIND, "links.md"


def test_a_shared_child_reads_as_one_of_its_own_would(pool: ParserPool) -> None:
    texts = [item for item in plain_texts() if may_share(*item[:2])]
    assert len(texts) > 25
    for _ in range(2):
        for data, kind, name in texts:
            assert pool.parse(data, kind, name) == parse_here(data, kind, name), name


def test_plain_texts_share_a_child_and_markup_gets_its_own(pool: ParserPool) -> None:
    pool.parse(text(0), KIND, "a.md")
    first = child_of(pool).pid
    assert title_of(pool.parse(text(1), KIND, "b.md")) == "Title 1"
    marked = pool.parse(text(2) + b"\n<b>bold</b>\n", KIND, "c.md")
    assert title_of(marked) == "Title 2"
    assert child_of(pool).pid == first
    for number in range(50):
        assert title_of(pool.parse(text(number), KIND, "d.md")) == f"Title {number}"
    assert child_of(pool).pid != first  # fifty texts, then another


@pytest.mark.parametrize(
    ("data", "kind", "shares"),
    [
        (b"One.", "text/plain", True),
        (b"One, <b>two</b>.", KIND, False),
        ("One, <b>two</b>.".encode("utf-16"), KIND, False),
        (b"x" * 65_537, "text/plain", False),
        (b"One.", "text/html", False),
        (b"%PDF-1.4", "application/pdf", False),
    ],
)
def test_who_shares(data: bytes, kind: str, shares: bool) -> None:
    assert may_share(data, kind) is shares


@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGSEGV, signal.SIGSTOP])
def test_a_child_that_gives_no_answer_costs_the_next_document_nothing(
    pool: ParserPool, monkeypatch: pytest.MonkeyPatch, blow: signal.Signals
) -> None:
    monkeypatch.setattr(pools, "NEXT_WALL_S", 0.2)
    pool.parse(text(0), KIND, "a.md")
    hit = child_of(pool)
    hit.send_signal(blow)
    assert title_of(pool.parse(text(1), KIND, "b.md")) == "Title 1"
    assert child_of(pool).pid != hit.pid


def test_what_a_text_does_to_a_shared_child_is_judged_in_one_of_its_own(
    pool: ParserPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A text that takes too long is refused for its own time, not for what others had left it."""
    monkeypatch.setattr(pools, "NEXT_WALL_S", 0.0)
    pool.parse(text(0), KIND, "a.md")
    first = child_of(pool).pid
    result, usage = pool.measure(text(1), KIND, "b.md")
    assert title_of(result) == "Title 1"
    assert usage.cpu_s > 0
    assert child_of(pool).pid != first


def test_a_refusal_counts_only_from_a_child_that_read_nothing_else(
    pool: ParserPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Short of memory that earlier texts took, lxml calls a sound text broken."""
    ask = Child.ask

    def short_of_memory(child: Child, *given: Any, **named: Any) -> Any:
        refused = Refusal(DocumentState.FAILED, "The parser could not read it (XMLSyntaxError).")
        return (refused, "") if child.read else ask(child, *given, **named)

    monkeypatch.setattr(Child, "ask", short_of_memory)
    for number in range(3):
        assert title_of(pool.parse(text(number), KIND, "a.md")) == f"Title {number}"
    child_of(pool)  # one waits, however many refused


def test_a_child_that_has_read_others_gives_no_text_more_time_than_its_own_would() -> None:
    ours, theirs = socket.socketpair()
    theirs.close()
    with ours:
        child = Child(0, ours, Limits(wall_s=0.0), isolated=False)
        assert child.ask({"stays": True}, [b"One."], wall_s=1.0) == (None, "timeout")


def test_a_text_that_is_answered_while_the_pool_closes_leaves_no_open_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = open_files()
    pool, ask = ParserPool(), Child.ask

    def closing(child: Child, *given: Any, **named: Any) -> Any:
        answer = ask(child, *given, **named)
        pool.close()
        return answer

    monkeypatch.setattr(Child, "ask", closing)
    assert title_of(pool.parse(text(1), KIND, "a.md")) == "Title 1"
    assert open_files() == before


def test_children_of_a_lost_nursery_are_not_asked_again(pool: ParserPool) -> None:
    """Their numbers may be those of other children by then."""
    pool.parse(text(0), KIND, "a.md")
    pool.parse(b"One.", "text/plain", "a.txt")
    assert pool._process is not None
    pool._process.kill()
    pool._process.wait()
    assert title_of(pool.parse(text(1), KIND, "b.md")) == "Title 1"
    assert pool._idle.take("text/plain") is None


@pytest.mark.parametrize("question", [1, 2])
def test_the_answer_to_an_interrupted_question_is_not_taken_for_that_to_the_next(
    pool: ParserPool, monkeypatch: pytest.MonkeyPatch, question: int
) -> None:
    """Markup: the first question to the nursery is for a child, the second for its end."""
    page = b"<h1>Title</h1>"
    pool.parse(page, "text/html", "a.html")
    left = question

    def interrupted(*given: Any) -> bytes:
        nonlocal left
        left -= 1
        if not left:
            raise KeyboardInterrupt
        return receive_frame(*given)

    monkeypatch.setattr(pools, "receive_frame", interrupted)
    with pytest.raises(KeyboardInterrupt):
        pool.parse(page, "text/html", "b.html")
    for _ in range(2):
        result, usage = pool.measure(page, "text/html", "c.html")
        assert title_of(result) == "Title"
        assert usage.cpu_s > 0
    assert pool._process is not None
    assert psutil.Process(pool._process.pid).children() == []


def test_whoever_is_interrupted_leaves_no_child_at_work(
    pool: ParserPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_given: object, **_named: object) -> None:
        raise KeyboardInterrupt

    for before in (0, 1):
        for number in range(before):
            pool.parse(text(number), KIND, "a.md")
        with monkeypatch.context() as patched:
            patched.setattr(Child, "ask", interrupted)
            with pytest.raises(KeyboardInterrupt):
                pool.parse(text(1), KIND, "b.md")
        assert pool._process is not None
        assert psutil.Process(pool._process.pid).children() == []


def test_a_forked_process_leaves_the_others_children_alone(pool: ParserPool) -> None:
    pool.parse(text(0), KIND, "a.md")
    first = child_of(pool).pid
    pid = os.fork()
    if not pid:
        code = 1
        with suppress(BaseException):
            code = title_of(pool.parse(text(5), KIND, "b.md")) != "Title 5"
            pool.close()
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert title_of(pool.parse(text(1), KIND, "b.md")) == "Title 1"
    assert child_of(pool).pid == first


def test_a_process_forked_while_another_thread_reads_reads_too(
    pool: ParserPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who holds the pool's only place, and its locks, is not there to give them back."""
    pool.parse(text(0), KIND, "a.md")
    ask = Child.ask

    def forking(child: Child, *given: Any, **named: Any) -> Any:
        monkeypatch.setattr(Child, "ask", ask)
        with pool._lock, pool._idle._lock:
            pid = os.fork()
        if not pid:
            code = 1
            with suppress(BaseException):
                signal.alarm(60)
                code = title_of(pool.parse(text(5), KIND, "b.md")) != "Title 5"
                pool.close()
            os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        return ask(child, *given, **named)

    monkeypatch.setattr(Child, "ask", forking)
    assert title_of(pool.parse(text(1), KIND, "a.md")) == "Title 1"
