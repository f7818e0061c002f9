"""An embedding endpoint that misbehaves in eight ways: not one bad vector is stored or published.

What the endpoint's client makes of a single answer is `tests/integration/embed/test_remote.py`'s.
Here the whole line works with it: readers keep the version they had, and with an honest endpoint
the same documents go through.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest

from kb_resources import embed
from kb_resources.compose import open_line
from kb_resources.embed.hashing import HashingEmbedder
from kb_resources.errors import KbError
from kb_resources.model import DocumentKey
from kb_resources.model.chunk import embedding_input
from kb_resources.stages.line import Line
from tests.integration.embed.fake_server import FakeServer, running
from tests.integration.line.conftest import Bench

SERVED, DIMENSIONS = "bge-m3", 1024
DOCUMENTS = 3


def each_row(change: Callable[[list[float]], Any]) -> Callable[[Any], Any]:
    """Changes every vector of an answer, the endpoint's health check included."""

    def spoil(reply: Any) -> Any:
        for item in reply["data"]:
            item["embedding"] = change(item["embedding"])
        return reply

    return spoil


def shuffled(reply: Any) -> Any:
    """The right vectors under wrong numbers."""
    for item in reply["data"]:
        item["index"] = len(reply["data"]) - 1 - item["index"]
    return reply


SPOILT: dict[str, Callable[[Any], Any]] = {
    "a vector is missing": lambda reply: reply | {"data": reply["data"][:-1]},
    "not a number": each_row(lambda row: [float("nan"), *row[1:]]),
    "zero": each_row(lambda row: [0.0] * len(row)),
    "another size": each_row(lambda row: row[: DIMENSIONS // 2]),
    "another model": each_row(lambda row: row[::-1]),
    "another order": shuffled,
    "an error page": lambda _: "<html>busy</html>",
    "the same vector for every text": lambda reply: (
        reply
        | {"data": [item | {"embedding": reply["data"][0]["embedding"]} for item in reply["data"]]}
    ),
}


@pytest.fixture
def fake() -> Iterator[FakeServer]:
    """An endpoint that embeds by hashed words, at the size of the model it plays."""

    def vectors(texts: list[str]) -> list[list[float]]:
        rows: list[list[float]] = HashingEmbedder(DIMENSIONS).embed(texts, "passage").tolist()
        return rows

    with running(FakeServer(vectors=vectors)) as server:
        yield server


@pytest.fixture
def line(bench: Bench, fake: FakeServer, tmp_path: Path) -> Iterator[Line]:
    models = tmp_path / "models"
    embed.prepare(models, SERVED, endpoint=fake.endpoint())
    settings = replace(bench.settings, models_dir=models, model=SERVED)
    with open_line(settings, actor="test") as opened:
        yield opened


def text_of(number: int, edition: str) -> str:
    return f"# Rule {number}\n\nRule {number} in the edition {edition} holds for all gates.\n"


def wrong_vectors(bench: Bench) -> list[str]:
    """Texts whose stored vector is not that of the honest endpoint; staged and published ones."""
    expected = HashingEmbedder(DIMENSIONS)
    query = """
        select p.context, p.text, e.vec::text
        from kb.embedding e join kb.passage p using (passage_key)
    """
    wrong = []
    with psycopg.connect(bench.settings.database_url) as conn:
        for context, text, stored in conn.execute(query).fetchall():
            [right] = expected.embed([f" {embedding_input(context, text)}"], "passage")
            if float(np.dot(right, np.array(json.loads(stored)))) < 0.999:
                wrong.append(text)
        staged = conn.execute("select count(*) from kb.staged_vector").fetchone()
    return [*wrong, *(["staged"] if staged != (0,) else [])]


def current(bench: Bench) -> list[tuple[object, ...]]:
    """Document, version and number of vectors of what readers find."""
    with psycopg.connect(bench.settings.database_url) as conn:
        return conn.execute(
            "select d.document_id, v.version, count(e.passage_key) from kb.document d"
            " join kb.validity x using (document_key) join kb.version v using (version_key)"
            " join kb.passage p using (version_key) left join kb.embedding e using (passage_key)"
            " where upper_inf(x.known) and upper_inf(x.valid) group by 1, 2 order by 1"
        ).fetchall()


def refused(line: Line, keys: list[DocumentKey]) -> list[KbError]:
    """The error that stopped the line, or those of its documents; all of them must have one."""
    try:
        ends = line.run_all(keys)
    except KbError as error:
        return [error]
    errors = [end for end in ends.values() if isinstance(end, KbError)]
    return errors if len(errors) == len(keys) else []


@pytest.mark.requirement("O-37", "B-17", "P-61")
def test_no_bad_vector_is_stored_whatever_the_endpoint_does(
    bench: Bench, fake: FakeServer, line: Line
) -> None:
    keys = []
    for number in range(DOCUMENTS):
        bench.write(f"rule-{number}.md", text_of(number, "first"))
        keys.append(line.register(bench.request(f"rule-{number}.md")))
    line.run_all(keys)
    assert len(SPOILT) == 8
    for edition, (way, spoil) in enumerate(SPOILT.items(), 1):
        before = current(bench)
        assert [row[1] for row in before] == [edition] * DOCUMENTS
        for number in range(DOCUMENTS):
            bench.write(f"rule-{number}.md", text_of(number, way))
        fake.spoil = spoil
        errors = refused(line, keys)
        assert errors, way
        assert all(error.next_step for error in errors), way
        assert current(bench) == before, way
        assert wrong_vectors(bench) == [], way
        fake.spoil = lambda reply: reply
        line.run_all(keys)
        assert [row[1] for row in current(bench)] == [edition + 1] * DOCUMENTS, way
    assert wrong_vectors(bench) == []
