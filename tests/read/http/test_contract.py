"""Version 1 of the API keeps its word: nothing a caller relies on goes away or changes its type."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from kb.http.openapi import schema_text
from tests.read.http.contract import FILE, Contract, breaks, contract


def promised() -> Contract:
    found: Contract = json.loads(FILE.read_text())
    return found


@pytest.mark.requirement("P-25", "P-26", "P-74")
def test_nothing_that_was_promised_is_broken() -> None:
    document = json.loads(schema_text())
    assert document["info"]["version"] == "1"
    assert breaks(promised(), contract(document)) == []


@pytest.mark.requirement("P-25", "P-26")
def test_a_search_promises_passages_to_cite_and_says_how_they_were_ranked() -> None:
    schemas = promised()["schemas"]
    assert {"hits", "mode", "score_kind", "reranked", "correlation_id"} <= set(
        schemas["SearchResponse"]["required"]
    )
    assert {
        *("passage_id", "document_id", "version", "digest", "heading_path", "page"),
        *("byte_start", "byte_end", "char_start", "char_end", "valid_from", "valid_until", "text"),
    } <= set(schemas["HitOut"]["required"])
    assert "audiences" not in schemas["HitOut"]["fields"]
    assert {"query", "k", "as_of", "include_historical"} <= set(schemas["SearchRequest"]["fields"])


@pytest.mark.requirement("P-74")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda c: c["schemas"]["HitOut"]["fields"].pop("page"), "HitOut.page is gone"),
        (lambda c: c["schemas"]["HitOut"]["fields"].update(page=["string"]), "HitOut.page was"),
        (lambda c: c["schemas"].pop("HitOut"), "HitOut is gone"),
        (lambda c: c["schemas"]["HitOut"]["required"].remove("text"), "may leave out text"),
        (lambda c: c["schemas"]["SearchRequest"]["required"].append("k"), "demands k"),
        (lambda c: c["routes"].pop("POST /api/v1/search"), "POST /api/v1/search is gone"),
        (lambda c: c["routes"]["GET /api/v1/documents"]["needs"].append("q"), "needs q"),
        (lambda c: c["routes"]["GET /api/v1/documents"]["takes"].remove("q"), "takes no q"),
        (lambda c: c["routes"]["POST /api/v1/search"].update(gives=["202"]), "gives ['202']"),
    ],
)
def test_a_break_is_noticed(change: Callable[[Any], object], said: str) -> None:
    changed = copy.deepcopy(promised())
    change(changed)
    [sentence] = breaks(promised(), changed)
    assert said in sentence


@pytest.mark.requirement("P-74")
def test_more_is_no_break() -> None:
    more = copy.deepcopy(promised())
    more["schemas"]["HitOut"]["fields"]["colour"] = ["string"]
    more["schemas"]["HitOut"]["required"].append("colour")
    more["routes"]["GET /api/v1/colours"] = {"needs": [], "takes": [], "gives": ["200"]}
    more["routes"]["GET /api/v1/documents"]["takes"].append("colour")
    assert breaks(promised(), more) == []
