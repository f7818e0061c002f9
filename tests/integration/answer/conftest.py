"""A small world of published documents, read through the reading side's own objects."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import psycopg
import pytest

from kb.reader import Reader
from kb_resources.retrieve.log import QuestionKey, RetrievalLog
from kb_resources.store.pool import Database
from kb_resources.store.server import EmbeddedServer
from tests.integration.search.conftest import World

_databases = itertools.count(1)
_numbers = itertools.count(1)
KEY = QuestionKey(bytes(range(32)))
LOST = "Employees must report a lost device within one hour."
LEAVE = "Annual leave is 25 working days."


@pytest.fixture(scope="session")
def answer_database(server: EmbeddedServer, template_database: str) -> Iterator[Database]:
    """One database for a folder's tests about answers; each has a scope of its own in it."""
    name = f"kb_answer_{next(_databases)}"
    with psycopg.connect(server.dsn("owner", "postgres"), autocommit=True) as conn:
        conn.execute(f"create database {name} template {template_database} strategy file_copy")
    with Database.embedded(server, dbname=name, application_name="kb answer test") as opened:
        yield opened


@pytest.fixture
def world(answer_database: Database) -> World:
    """An empty scope."""
    return World(answer_database, f"answers{next(_numbers)}")


@pytest.fixture
def library(world: World) -> World:
    """The world with two documents about what people ask."""
    world.publish("security", [LOST, "Doors are locked at night."])
    world.publish("leave", [LEAVE])
    return world


@pytest.fixture
def reader(world: World) -> Reader:
    """The reading side over the world, with a log."""
    return Reader(world.database, world.retriever(log=RetrievalLog(KEY)))
