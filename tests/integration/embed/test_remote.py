"""Remote embedders against a real server that misbehaves in every way we know."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kb_resources import embed
from kb_resources.embed.hashing import HashingEmbedder
from kb_resources.embed.remote import (
    CanaryRecord,
    HttpTransport,
    RemoteEmbedder,
    Retry,
    probe,
    probe_endpoint,
)
from kb_resources.errors import (
    InputError,
    IntegrityError,
    KbError,
    NotFound,
    PolicyError,
    UnavailableError,
)

from .fake_server import DIMENSIONS, FakeServer

IDENTITY = embed.ModelIdentity("remote", "f" * 16, DIMENSIONS, 512, "query: ", "passage: ")
TEXTS = [f"text number {at}" for at in range(7)]


class Waits:
    """A clock that stands still and notes how long somebody wanted to sleep."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def retry(self, attempts: int = 4) -> Retry:
        return Retry(
            attempts=attempts, sleep=self.seconds.append, jitter=lambda: 1.0, now=lambda: 1000.0
        )


def _embedder(
    fake: FakeServer, dialect: str = "openai", waits: Waits | None = None, **options: Any
) -> RemoteEmbedder:
    transport = HttpTransport(timeout_s=10, retry=(waits or Waits()).retry())
    endpoint = fake.endpoint(dialect)
    record = probe_endpoint(endpoint, transport, IDENTITY)
    fake.requests.clear()
    return RemoteEmbedder(IDENTITY, endpoint, record, transport, **options)


@pytest.mark.requirement("O-37")
@pytest.mark.parametrize("dialect", ["openai", "tei"])
def test_vectors_come_back_in_order_whatever_the_batches(fake: FakeServer, dialect: str) -> None:
    embedder = _embedder(fake, dialect, batch_texts=3)
    vectors = embedder.embed(TEXTS, "passage")
    expected = HashingEmbedder(DIMENSIONS).embed([f" passage: {text}" for text in TEXTS], "query")
    np.testing.assert_allclose(vectors, expected, atol=1e-6)
    assert len(fake.requests) == 3
    path, _, body = fake.requests[0]
    assert path == ("/v1/embeddings" if dialect == "openai" else "/embed")
    assert body.get("truncate", False) is False


def test_queries_get_the_querys_prefix(fake: FakeServer) -> None:
    embedder = _embedder(fake)
    embedder.embed(["who?"], "query")
    assert fake.texts()[0] == "query: who?"


def test_requests_are_bounded_by_characters_too(fake: FakeServer) -> None:
    embedder = _embedder(fake, batch_chars=30)
    embedder.embed([*TEXTS, "long " * 20, "short"], "passage")
    sizes = [len(body["input"]) - 1 for _, _, body in fake.requests]
    assert sizes == [2, 2, 2, 1, 1, 1]


def test_an_answer_in_another_order_is_sorted_by_its_indexes(fake: FakeServer) -> None:
    embedder = _embedder(fake)
    expected = embedder.embed(TEXTS, "passage")
    fake.spoil = lambda reply: reply | {"data": reply["data"][::-1]}
    np.testing.assert_array_equal(embedder.embed(TEXTS, "passage"), expected)


def test_base64_vectors_are_read(fake: FakeServer) -> None:
    embedder = _embedder(fake)
    expected = embedder.embed(TEXTS, "passage")

    def packed(reply: Any) -> Any:
        for item in reply["data"]:
            raw = np.array(item["embedding"], "<f4").tobytes()
            item["embedding"] = base64.b64encode(raw).decode()
        return reply

    fake.spoil = packed
    np.testing.assert_array_equal(embedder.embed(TEXTS, "passage"), expected)


def test_vectors_that_are_not_of_unit_length_are_scaled(fake: FakeServer) -> None:
    embedder = _embedder(fake, "tei")
    fake.spoil = lambda reply: [[value * 3 for value in row] for row in reply]
    assert np.allclose(np.linalg.norm(embedder.embed(TEXTS, "passage"), axis=1), 1)


def _row(change: Callable[[list[float]], Any]) -> Callable[[Any], Any]:
    def spoil(reply: Any) -> Any:
        rows = reply if isinstance(reply, list) else reply["data"]
        if isinstance(reply, list):
            rows[1] = change(rows[1])
        else:
            rows[1]["embedding"] = change(rows[1]["embedding"])
        return reply

    return spoil


def _rows(change: Callable[[list[Any]], list[Any]]) -> Callable[[Any], Any]:
    return lambda reply: (
        change(reply) if isinstance(reply, list) else reply | {"data": change(reply["data"])}
    )


def _every(change: Callable[[list[float]], Any]) -> Callable[[Any], Any]:
    def spoil(reply: Any) -> Any:
        for item in reply if isinstance(reply, list) else reply["data"]:
            row = item if isinstance(item, list) else item["embedding"]
            row[:] = change(row)
        return reply

    return spoil


WRONG: dict[str, Callable[[Any], Any]] = {
    "one vector short": _rows(lambda rows: rows[:-1]),
    "one vector more": _rows(lambda rows: [*rows, rows[0]]),
    "none": _rows(lambda _: []),
    "ragged": _row(lambda row: row[:-1]),
    "empty vector": _row(lambda _: []),
    "NaN": _row(lambda row: [float("nan"), *row[1:]]),
    "infinite": _row(lambda row: [float("inf"), *row[1:]]),
    "beyond float32": _row(lambda row: [1e300, *row[1:]]),
    "zero vector": _row(lambda row: [0.0] * len(row)),
    "null": _row(lambda row: [None, *row[1:]]),
    "text": _row(lambda row: ["1.0", *row[1:]]),
    "wrong dimension": _every(lambda row: row[: DIMENSIONS // 2]),
    "another model": _every(lambda row: row[::-1]),
    "an object": lambda _: {"ok": True},
    "a number": lambda _: 7,
    "null reply": lambda _: None,
}


@pytest.mark.requirement("O-37", "B-17")
@pytest.mark.parametrize("dialect", ["openai", "tei"])
@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_answer_gives_no_vector(fake: FakeServer, dialect: str, case: str) -> None:
    embedder = _embedder(fake, dialect)
    fake.spoil = WRONG[case]
    with pytest.raises(IntegrityError):
        embedder.embed(TEXTS, "passage")


def test_an_index_that_is_missing_or_twice_is_refused(fake: FakeServer) -> None:
    embedder = _embedder(fake)
    for index in (0, 99, "1", None):

        def spoil(reply: Any, index: Any = index) -> Any:
            reply["data"][1]["index"] = index
            return reply

        fake.spoil = spoil
        with pytest.raises(IntegrityError):
            embedder.embed(TEXTS, "passage")


@pytest.mark.parametrize("raw", [b"<html>busy</html>", b"", b"\xff\xfe", b"[" * 100_000])
def test_an_answer_that_is_not_json_is_refused(fake: FakeServer, raw: bytes) -> None:
    embedder = _embedder(fake)
    fake.raw = raw
    with pytest.raises(IntegrityError):
        embedder.embed(TEXTS, "passage")


def test_an_endless_answer_is_cut_off(fake: FakeServer) -> None:
    embedder = _embedder(fake)
    fake.raw = b" " * 50_000_000
    with pytest.raises(IntegrityError, match="more than"):
        embedder.embed(TEXTS, "passage")


@pytest.mark.requirement("O-37")
@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_busy_server_is_asked_again(fake: FakeServer, status: int) -> None:
    waits = Waits()
    embedder = _embedder(fake, waits=waits)
    fake.replies = [(status, {}), (status, {})]
    assert len(embedder.embed(TEXTS, "passage")) == len(TEXTS)
    assert waits.seconds == [0.5, 1.0]


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("3", 3.0),
        (" 7 ", 7.0),
        ("Thu, 01 Jan 1970 00:16:45 GMT", 5.0),  # five seconds after the clock's 1000
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        ("soon", 0.5),
        ("-4", 0.5),
    ],
)
def test_retry_after_is_honoured(fake: FakeServer, header: str, expected: float) -> None:
    waits = Waits()
    embedder = _embedder(fake, waits=waits)
    fake.replies = [(429, {"Retry-After": header})]
    embedder.embed(TEXTS, "passage")
    assert waits.seconds == [expected]


def test_a_server_that_asks_for_too_long_a_wait_is_given_up(fake: FakeServer) -> None:
    waits = Waits()
    embedder = _embedder(fake, waits=waits)
    fake.replies = [(503, {"Retry-After": "3600"})]
    with pytest.raises(UnavailableError, match="3600"):
        embedder.embed(TEXTS, "passage")
    assert waits.seconds == []


def test_a_server_that_stays_busy_is_given_up_after_all_attempts(fake: FakeServer) -> None:
    waits = Waits()
    embedder = _embedder(fake, waits=waits)
    fake.replies = [(429, {})] * 9
    with pytest.raises(UnavailableError, match="429"):
        embedder.embed(TEXTS, "passage")
    assert len(fake.requests) == 4
    assert waits.seconds == [0.5, 1.0, 2.0]


@pytest.mark.parametrize(
    ("status", "error"),
    [(400, InputError), (401, PolicyError), (403, PolicyError), (404, NotFound), (413, InputError)],
)
def test_a_refusal_is_not_repeated_and_does_not_quote_the_text(
    fake: FakeServer, status: int, error: type[KbError]
) -> None:
    embedder = _embedder(fake)
    fake.replies = [(status, {})]
    with pytest.raises(error) as caught:
        embedder.embed(["a secret sentence"], "passage")
    assert len(fake.requests) == 1
    assert "secret" not in str(caught.value)


def test_redirects_are_not_followed(fake: FakeServer) -> None:
    embedder = _embedder(fake)
    fake.replies = [(307, {"Location": f"http://127.0.0.1:{fake.port}/elsewhere"})]
    with pytest.raises(InputError, match="307"):
        embedder.embed(TEXTS, "passage")
    assert len(fake.requests) == 1


def test_no_server_at_all_is_unavailable(fake: FakeServer) -> None:
    waits = Waits()
    endpoint = fake.endpoint()
    endpoint = type(endpoint)("openai", "http://127.0.0.1:1/v1", "m")
    with pytest.raises(UnavailableError):
        probe_endpoint(endpoint, HttpTransport(retry=waits.retry()), IDENTITY)
    assert len(waits.seconds) == 3


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://host/v1", "127.0.0.1:80"])
def test_other_schemes_are_refused(fake: FakeServer, url: str) -> None:
    endpoint = type(fake.endpoint())("openai", url, "m")
    with pytest.raises(InputError):
        probe_endpoint(endpoint, HttpTransport(), IDENTITY)


def test_the_key_is_sent_and_never_shown(fake: FakeServer) -> None:
    transport = HttpTransport(headers={"Authorization": "Bearer k-123"})
    probe_endpoint(fake.endpoint(), transport, IDENTITY)
    assert fake.requests[0][1]["Authorization"] == "Bearer k-123"
    assert "k-123" not in repr(transport)


@pytest.mark.requirement("P-61")
def test_a_swapped_model_is_found_at_the_next_start(fake: FakeServer) -> None:
    embedder = _embedder(fake)
    embedder.check()
    fake.salt = "another model"
    with pytest.raises(IntegrityError, match="another model answers"):
        embedder.check()


@pytest.mark.requirement("P-61")
def test_a_model_swapped_between_two_requests_gives_no_vector(fake: FakeServer) -> None:
    embedder = _embedder(fake, batch_texts=2)

    def swap() -> bool:
        fake.salt = "another model" if len(fake.requests) == 2 else fake.salt
        return False

    with pytest.raises(IntegrityError, match="another model answers"):
        embedder.embed_detailed(TEXTS, "passage", should_stop=swap)


def test_it_stops_between_requests(fake: FakeServer) -> None:
    embedder = _embedder(fake, batch_texts=2)
    stopped = embedder.embed_detailed(TEXTS, "passage", should_stop=lambda: len(fake.requests) == 2)
    assert stopped is None
    assert len(fake.requests) == 2


def test_blank_texts_are_refused_before_anything_is_sent(fake: FakeServer) -> None:
    embedder = _embedder(fake)
    with pytest.raises(InputError):
        embedder.embed(["a", " "], "passage")
    assert fake.requests == []


def test_a_record_survives_its_text() -> None:
    record = probe(HashingEmbedder(64))
    again = CanaryRecord.from_json(record.to_json())
    assert again.agrees(record, min_cosine=0.99999)
    assert not again.agrees(probe(HashingEmbedder(65)), min_cosine=-1)


@pytest.mark.parametrize("text", ["", "{}", '{"texts": [], "vectors": []}', "[1]"])
def test_a_damaged_record_is_refused(text: str) -> None:
    with pytest.raises(IntegrityError):
        CanaryRecord.from_json(text)


def test_waiting_grows_and_is_bounded() -> None:
    retry = Retry(first_wait_s=1, longest_wait_s=5, jitter=lambda: 0.0, now=time.time)
    assert [retry.wait_s(attempt, None) for attempt in range(5)] == [0.5, 1, 2, 4, 5]
