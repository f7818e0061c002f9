"""Documents to read over MCP."""

from __future__ import annotations

import pytest

from tests.integration.answer.conftest import answer_database, reader, world
from tests.integration.search.conftest import World

__all__ = ["answer_database", "reader", "world"]

HANDBOOK = [
    "Employees must report a lost device within one hour. Reports are never punished.",
    "Annual leave is 25 working days. Up to five days may be carried over.",
    "Salaries are paid on the last working day of each month.",
]


@pytest.fixture
def library(world: World) -> World:
    """A handbook for everybody and a memo for the board."""
    world.publish("handbook", HANDBOOK, title="Staff handbook")
    world.publish("memo", ["The board meets on the lost harbour island."], audiences=["board"])
    return world
