"""What a run costs: prices as they are written, shares of scopes that add up to the whole."""

from __future__ import annotations

import pytest

from kb_resources.errors import KbError
from kb_resources.settings import load_settings
from kb_resources.stages.usage import Money, Prices, Step, rows_of, said, tokens_in

MODEL = "bge-m3@d3120df741de53d1"


def prices(text: str, currency: str = "eur") -> Prices:
    settings = load_settings({"KB_PRICES": text, "KB_CURRENCY": currency})
    return Prices.read(settings.prices, settings.currency)


@pytest.mark.requirement("P-64", "P-79")
def test_a_price_holds_for_a_model_whatever_build_of_it() -> None:
    known = prices("bge-m3=0.02, chat=0.15/0.60, cpu=0.04")
    assert known.of_tokens(MODEL, 3_000_000) == Money(pytest.approx(0.06), "EUR")
    assert known.of_tokens("chat", 1_000_000, 1_000_000) == Money(pytest.approx(0.75), "EUR")
    assert known.of_cpu(1800) == Money(pytest.approx(0.02), "EUR")
    assert known.of_tokens("another", 5) is None
    assert prices("bge-m3=0").of_cpu(5) is None


@pytest.mark.parametrize("text", ["bge-m3", "bge-m3=", "=1", "a=1/2/3", "a=-1", "a=nan", "a=x"])
def test_a_price_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(KbError, match="KB_PRICES"):
        load_settings({"KB_PRICES": text})


@pytest.mark.parametrize(
    "documents", [{"a": 1}, {"a": 1, "b": 2}, {"a": 7, "b": 11, "c": 13}, {"a": 0, "b": 3}]
)
def test_the_shares_of_the_scopes_add_up_to_the_step(documents: dict[str, int]) -> None:
    step = Step("run", "by hand", "embed", documents, 10.0, {MODEL: 1001, "chat": 7})
    rows = rows_of(step, prices("bge-m3=1,cpu=36"))
    assert sum(row.documents for row in rows) == sum(documents.values())
    assert sum(row.cpu_s for row in rows) == pytest.approx(10.0)
    assert sum(row.tokens for row in rows if row.model == MODEL) == 1001
    assert sum(row.tokens for row in rows if row.model == "chat") == 7
    by_model = sum(row.money for row in rows if row.model == MODEL and row.money)
    assert by_model == pytest.approx(1001 / 1e6)
    assert sum(row.money for row in rows if row.model is None and row.money) == pytest.approx(0.1)
    assert all(row.money is None for row in rows if row.model == "chat")


def test_a_step_without_documents_takes_nothing_from_anybody() -> None:
    assert rows_of(Step("run", "by hand", "embed", {}, 1.0, {}), prices("cpu=1")) == []


def test_only_token_counters_are_tokens() -> None:
    counted = {"embedded": 3, f"tokens {MODEL}": 40, "tokens chat": 0}
    assert tokens_in(counted) == {MODEL: 40}


def test_the_sums_are_said_in_one_line_that_never_hides_a_missing_price() -> None:
    sums = {"documents": 35, "cpu_s": 41.23, "tokens": 12345, "money": {}, "unpriced": True}
    assert said(sums) == "35 documents · 41.2 CPU s · 12,345 tokens · no price for its model"
    paid = sums | {"money": {"EUR": 0.0003}, "unpriced": False}
    assert said(paid) == "35 documents · 41.2 CPU s · 12,345 tokens · 0.0003 EUR"
    assert said(paid | {"unpriced": True}).endswith("0.0003 EUR · no price for its model")
    assert said(sums | {"tokens": 0, "unpriced": False}).endswith("0 tokens · no price set")
