"""Version floors and settings of the embedded server."""

from __future__ import annotations

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb_resources.errors import InputError
from kb_resources.store.server import EmbeddedServer
from kb_resources.store.server_config import default_settings, render
from kb_resources.store.server_floors import check_floors, postgres_too_old, vector_too_old

GIB = 2**30


@pytest.mark.parametrize(
    ("major", "minor", "too_old"),
    [
        (18, 6, False),
        (18, 5, True),
        (17, 11, False),
        (17, 10, True),
        (16, 15, False),
        (16, 14, True),
        (15, 99, True),
        (19, 0, False),
    ],
)
def test_each_major_version_has_its_floor(major: int, minor: int, too_old: bool) -> None:
    assert bool(postgres_too_old(major, minor)) is too_old


@pytest.mark.parametrize(
    ("version", "too_old"),
    [("0.8.4", False), ("0.8.3", True), ("0.8.10", False), ("0.9", False), ("1.0.0", False)],
)
def test_vector_versions_compare_as_numbers(version: str, too_old: bool) -> None:
    assert vector_too_old(version) is too_old


@pytest.mark.requirement("O-27")
def test_a_server_below_the_floor_is_refused_with_what_to_do(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(server.dsn()) as conn:
        check_floors(conn)
        monkeypatch.setattr("kb_resources.store.server_floors.PGVECTOR_FLOOR", (99, 0, 0))
        with pytest.raises(InputError, match=r"pgvector [\d.]+ is too old") as caught:
            check_floors(conn)
        assert "99.0.0" in caught.value.next_step
        check_floors(conn, vector=False)
        monkeypatch.setattr("kb_resources.store.server_floors.POSTGRES_FLOORS", {18: 99})
        with pytest.raises(InputError, match=r"PostgreSQL 18\.\d+ is too old") as caught:
            check_floors(conn, vector=False)
        assert caught.value.code == "server_too_old"


@given(memory=st.integers(64 * 2**20, 2**45))
def test_settings_fit_the_memory(memory: int) -> None:
    settings = default_settings(memory, shared_memory_bytes=None)
    buffers = int(settings["shared_buffers"].removesuffix("MB")) * 2**20
    assert buffers <= max(64 * 2**20, memory // 8)
    assert settings["listen_addresses"] == ""


def test_a_containers_small_shared_memory_is_avoided() -> None:
    small = default_settings(8 * GIB, shared_memory_bytes=64 * 2**20)
    roomy = default_settings(8 * GIB, shared_memory_bytes=4 * GIB)
    assert small["dynamic_shared_memory_type"] == "mmap"
    assert roomy["dynamic_shared_memory_type"] == "posix"


def test_values_are_quoted_for_the_configuration_file() -> None:
    assert render({"a": r"it's C:\x"}) == "a = 'it''s C:\\\\x'\n"
