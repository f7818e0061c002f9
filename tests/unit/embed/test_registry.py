"""Models as data."""

from __future__ import annotations

from pathlib import Path

import pytest

from kb_resources import embed
from kb_resources.embed.golden import golden_set
from kb_resources.errors import InputError, NotFound


def test_the_default_model_is_built_in_and_the_others_come_from_elsewhere() -> None:
    by_name = {spec.name: spec for spec in embed.known_models()}
    assert by_name[embed.DEFAULT_MODEL].package is not None
    for name in ("bge-m3", "multilingual-e5-large", "qwen3-embedding-0.6b"):
        assert set(by_name[name].origins) == {"folder", "endpoint"}


def test_the_method_without_a_model_is_prepared_and_loaded_like_a_model(tmp_path: Path) -> None:
    manifest = embed.prepare(tmp_path, "hashing")
    loaded = embed.open_model(tmp_path, "hashing")
    with pytest.raises(InputError):
        embed.load(tmp_path, "hashing")
    assert (
        loaded.model_id
        == manifest.identity.model_id
        == embed.prepare(tmp_path, "hashing").identity.model_id
    )
    assert loaded.embed(["a word"], "query").shape == (1, manifest.dimensions)
    assert embed.load_token_counter(tmp_path, "hashing").count(["a word"]) == [2]
    assert embed.verify(tmp_path, "hashing").ok


def test_another_version_of_the_method_is_prepared_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = embed.prepare(tmp_path, "hashing")
    monkeypatch.setattr("kb_resources.embed.hashing.VERSION", 2)
    assert embed.prepare(tmp_path, "hashing").fingerprint != first.fingerprint


def test_every_model_names_its_licence_and_authors() -> None:
    for spec in embed.known_models():
        if spec.licence.startswith("LicenseRef-"):
            assert spec.origins == ("endpoint",), "a service: nothing of it is on this machine"
            assert "terms of use" in spec.notice
            continue
        assert spec.licence in {"MIT", "Apache-2.0"}
        assert spec.licence.split("-")[0] in spec.notice


def test_e5_prefixes_are_those_it_was_trained_with() -> None:
    spec = embed.find_model(embed.DEFAULT_MODEL)
    assert (spec.query_prefix, spec.passage_prefix) == ("query: ", "passage: ")


def test_an_unknown_model_is_refused_with_the_names_of_the_known(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="bge-m3"):
        embed.find_model("e5")
    with pytest.raises(NotFound, match="bge-m3"):
        embed.load(tmp_path, "e5")


def test_a_model_that_is_not_prepared_says_what_to_do(tmp_path: Path) -> None:
    for ask in (embed.load, embed.verify, embed.load_token_counter, embed.identity_of):
        with pytest.raises(NotFound, match="kb models prepare"):
            ask(tmp_path, embed.DEFAULT_MODEL)
    assert embed.installed(tmp_path) == []


def test_golden_texts_speak_all_eight_languages_in_both_kinds() -> None:
    entries = golden_set(embed.DEFAULT_MODEL)
    assert len(entries) >= 16
    assert {entry.kind for entry in entries} == {"query", "passage"}
    assert all(entry.vector.shape == (384,) for entry in entries)
