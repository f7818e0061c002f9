"""One warm parser pool for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from kb_resources.acquire import admit
from kb_resources.model import ParsedDocument, Refusal
from kb_resources.parse import ParserPool


@pytest.fixture(scope="session")
def pool() -> Iterator[ParserPool]:
    """A pool with the default limits; its children load docling once."""
    with ParserPool() as opened:
        yield opened


@pytest.fixture(scope="session")
def parse(pool: ParserPool) -> Callable[[bytes, str], ParsedDocument]:
    """Bytes through acquire and a child; fails when they are refused."""

    def run(data: bytes, name: str) -> ParsedDocument:
        admitted = admit(data, name)
        assert not isinstance(admitted, Refusal), admitted
        result = pool.parse(admitted.data, admitted.media_type, name)
        assert isinstance(result, ParsedDocument), result
        return result

    return run
