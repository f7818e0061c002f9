"""Settings: read once, all problems named at once."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from kb_resources.errors import InputError
from kb_resources.settings import Settings, as_environment, described, load_settings


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


SECRETS = {
    "KB_DATABASE_URL": "postgresql://kb:s3cr3t@host/kb",
    "KB_PIPELINE_DATABASE_URL": "postgresql://kb:s3cr3t@host/kb",
    "KB_APP_DATABASE_URL": "postgresql://kb:s3cr3t@host/kb",
    "KB_DAGSTER_DATABASE_URL": "postgresql://kb:s3cr3t@host/dagster",
    "KB_ALERT_URL": "https://hooks.example.org/s3cr3t",
    "KB_ALERT_SMTP_URL": "smtps://kb:s3cr3t@mail.example.org:465",
    "KB_BLOB_URL": "s3://key:s3cr3t@bucket",
    "KB_DOCLING_KEY": "s3cr3t",
    "KB_SECRET": "s3cr3t",
    "KB_OIDC_CLIENT_SECRET": "s3cr3t",
    "KB_LOG_KEY": "s3cr3t",
    "KB_SCAN_OPINION_KEY": "s3cr3t",
    "KB_ANSWER_KEY": "s3cr3t",
    "KB_GENERATE_KEY": "s3cr3t",
    "KB_EMBED_KEYS": "api.example.org=s3cr3t,127.0.0.1:8080=s3cr3t%2C2",
    "KB_EMBED_HEADERS": "api.example.org=X-Key: s3cr3t",
}


def test_what_is_printed_of_settings_holds_no_key_and_no_password() -> None:
    found = load_settings({"KB_HOME": "/x", **SECRETS})
    assert "s3cr3t" not in repr(found)
    assert "s3cr3t" not in str(found)
    secret = {f"KB_{item.name.upper()}" for item in fields(Settings) if not item.repr}
    assert secret == set(SECRETS)
    assert load_settings(as_environment(found)) == found, "a child process is given them all"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("KB_EMBED_KEYS", "s3cr3t"),
        ("KB_EMBED_KEYS", "host="),
        ("KB_EMBED_KEYS", "host=s3cr3t%0d%0aX-Evil: 1"),
        ("KB_EMBED_KEYS", "https://host/v1=s3cr3t"),
        ("KB_EMBED_HEADERS", "host=s3cr3t"),
        ("KB_EMBED_HEADERS", "host=X-Key: s3cr3t%0a"),
        ("KB_EMBED_HEADERS", "host=X Key: s3cr3t"),
    ],
)
def test_a_malformed_key_or_header_is_named_and_not_repeated(name: str, value: str) -> None:
    with pytest.raises(InputError) as caught:
        load_settings({"KB_HOME": "/x", name: value})
    assert name in caught.value.message
    assert "s3cr3t" not in str(caught.value)
