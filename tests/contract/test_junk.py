"""Whatever a caller passes, a store answers or refuses by type; nothing else comes out of it."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kb_resources.errors import KbError
from kb_resources.store.contract import KnowledgeStore

from .conftest import edition, vector_of

TEXT = st.one_of(
    st.sampled_from(
        ["a", "mirror", "w1", "junk", "%s", "'; drop table kb.scope; --", "\0", "\ud800"]
    ),
    st.text(st.characters(), max_size=12),
)
CLEAN = TEXT.map(lambda text: text.encode("utf-8", "ignore").decode() or "x")
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "edition": st.builds(edition, CLEAN, CLEAN, title=CLEAN),
    "vectors": st.dictionaries(TEXT, st.just(vector_of("a")), max_size=2),
    "audiences": st.lists(TEXT, max_size=2),
    "under": st.lists(TEXT, max_size=2),
    "document_ids": st.lists(TEXT, max_size=2),
    "event_ids": st.lists(TEXT, max_size=2),
    "limit": st.integers(-2, 2000),
    "k": st.integers(-2, 200),
    "attempts": st.integers(1, 3),
    "text": TEXT,
    "error": TEXT,
}
NAMES = ("document_id", "passage_id", "confirm", "holder", "consumer", "cursor")
METHODS = [
    name
    for name, member in vars(KnowledgeStore).items()
    if not name.startswith("_") and inspect.isfunction(member)
]


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A method and arguments for some of its parameters."""
    method = draw(st.sampled_from(METHODS))
    parameters = inspect.signature(getattr(KnowledgeStore, method)).parameters.values()
    given: dict[str, Any] = {}
    for each in parameters:
        strategy = TEXT if each.name in NAMES else VALUES.get(each.name)
        needed = each.default is inspect.Parameter.empty
        if strategy is not None and (needed or draw(st.booleans())):
            given[each.name] = draw(strategy)
    return method, given


def answers_or_refuses(store: Any, call: tuple[str, dict[str, Any]], scope: str) -> None:
    method, arguments = call
    refused: KbError | None = None
    try:
        getattr(store, method)(**arguments, scope=scope)
    except KbError as error:
        refused = error
    assert refused is None or (refused.code and refused.message)


def fresh(make_store: Any, kind: str) -> Any:
    store = make_store(kind)[0]
    if kind == "memory" or "junk" not in [scope.name for scope in store.scopes.all()]:
        store.scopes.create("junk")
    store.subscribe("mirror", scope="junk")
    return store


@pytest.mark.requirement("O-59")
@settings(max_examples=1500, deadline=None)
@given(data=st.data())
def test_no_call_of_the_reference_raises_but_by_type(make_store: Any, data: Any) -> None:
    _KEPT.setdefault("memory", fresh(make_store, "memory"))
    answers_or_refuses(_KEPT["memory"], data.draw(calls()), "junk")


@pytest.mark.requirement("O-59")
@settings(max_examples=250, deadline=None)
@given(call=calls())
def test_no_call_of_the_postgres_store_raises_but_by_type(make_store: Any, call: Any) -> None:
    answers_or_refuses(fresh(make_store, "postgres"), call, "junk")


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.requirement("O-59")
@pytest.mark.parametrize("part", range(5))
@settings(max_examples=2000, deadline=None, derandomize=False)
@given(call=calls())
def test_no_call_in_ten_thousand_raises_but_by_type(
    make_store: Any,
    part: int,
    call: Any,
) -> None:
    """Two thousand in each part, drawn anew with every run."""
    answers_or_refuses(fresh(make_store, "postgres"), call, "junk")


_KEPT: dict[str, Any] = {}
