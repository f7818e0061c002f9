"""Settings: read once, all problems named at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from kb_resources.errors import InputError
from kb_resources.settings import described, load_settings


def test_variables_are_read_and_typed() -> None:
    found = load_settings(
        {"KB_HOME": "/data/kb", "KB_LANGUAGES": "en, de", "KB_CHUNK_TOKENS": "300"}
    )
    assert (found.home, found.languages, found.chunk_tokens) == (
        Path("/data/kb"),
        ("en", "de"),
        300,
    )
    assert found.models_path == Path("/data/kb/models")


def test_an_empty_variable_counts_as_unset() -> None:
    assert load_settings({"KB_HOME": "/x", "KB_CHUNK_TOKENS": ""}).chunk_tokens == 400


@pytest.mark.requirement("B-06")
def test_every_problem_is_named_at_once() -> None:
    with pytest.raises(InputError) as caught:
        load_settings(
            {
                "KB_HOME": "/x",
                "KB_CHUNK_TOKENS": "0",
                "KB_LANGUAGES": "english; drop",
                "KB_MAX_BYTES": "x",
            }
        )
    for name in ("KB_CHUNK_TOKENS", "KB_LANGUAGES", "KB_MAX_BYTES"):
        assert name in caught.value.message


def test_every_setting_is_described() -> None:
    assert all(description for _, _, description in described())
