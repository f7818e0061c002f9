"""Reading from every knowledge store: pages of documents, passages with their place, and for whom.

Numbers in brackets are those of the list of behaviours that the reference systems' own tests prove
(requirements, appendix B).
"""

from __future__ import annotations

import inspect

import pytest

from kb_resources.errors import InputError
from kb_resources.store.contract import KnowledgeStore

from .conftest import DAY, LEAVE, START, Kept, edition, vector_of

pytestmark = pytest.mark.requirement("O-09")


@pytest.mark.requirement("B-09")
def test_pages_are_newest_first_and_stable_while_documents_are_added(kept: Kept) -> None:
    for number in range(7):
        kept.put(f"d{number}", f"Text number {number}.")
    first = kept.store.documents(limit=3, scope=kept.scope)
    assert [each.document_id for each in first.items] == ["d6", "d5", "d4"]
    kept.put("late", "Came between two pages.")
    second = kept.store.documents(limit=3, cursor=first.next_cursor, scope=kept.scope)
    assert [each.document_id for each in second.items] == ["d3", "d2", "d1"]
    last = kept.store.documents(limit=3, cursor=second.next_cursor, scope=kept.scope)
    assert ([each.document_id for each in last.items], last.next_cursor) == (["d0"], None)


@pytest.mark.requirement("B-09")
@pytest.mark.parametrize("values", [{"limit": 0}, {"limit": 1001}, {"cursor": "x"}, {"cursor": ""}])
def test_bad_pages_are_refused(kept: Kept, values: dict[str, object]) -> None:
    with pytest.raises(InputError):
        kept.store.documents(scope=kept.scope, **values)
    defaults = inspect.signature(KnowledgeStore.documents).parameters
    assert defaults["limit"].default == 100


@pytest.mark.requirement("W-15")
def test_what_does_not_exist_is_none_and_removing_it_is_no_error(kept: Kept) -> None:
    """[55, 57]"""
    for odd in ("nothing", "", "nul\0", "\ud800", "no such id"):
        assert kept.store.get(odd, scope=kept.scope) is None
        assert kept.store.passage(odd, scope=kept.scope) is None
        assert kept.store.passages(odd, scope=kept.scope) == ()
        assert kept.store.work(odd, scope=kept.scope) is None
        assert kept.store.missing(odd, scope=kept.scope) == ()
        assert not kept.store.remove(odd, scope=kept.scope)
        assert not kept.store.restore(odd, scope=kept.scope)
        assert not kept.store.set_audiences(odd, ["board"], scope=kept.scope)


@pytest.mark.requirement("W-40", "W-11")
def test_a_passage_carries_its_node_path_depth_titles_and_document_title(kept: Kept) -> None:
    """[69, 71] The path starts at the root; the leaf and the title need not be given."""
    paths = [("Leave",), ("Leave", "Carry over"), ("Pay",)]
    kept.put("law", "One.", "Two.", "Three.", headings=paths, title="Labour act")
    one, two, three = kept.store.passages("law", scope=kept.scope)
    assert [each.depth for each in (one, two, three)] == [1, 2, 1]
    assert two.section_titles == ("Leave", "Carry over")
    assert {each.doc_title for each in (one, two, three)} == {"Labour act"}
    assert two.node_path[:2] == one.node_path
    assert len({each.node_path[0] for each in (one, two, three)}) == 1
    assert two.node_id == two.node_path[-1] == two.passage_id.split(".")[1]
    assert kept.store.passage(two.passage_id, scope=kept.scope) == two


@pytest.mark.requirement("W-16", "W-07")
def test_passages_under_a_heading_are_its_whole_subtree(kept: Kept) -> None:
    """[56]"""
    paths = [("Leave",), ("Leave", "Carry over"), ("Leave", "Sick"), ("Pay",)]
    kept.put("law", "One.", "Two.", "Three.", "Four.", headings=paths)

    def under(*path: str) -> list[str]:
        return [each.text for each in kept.store.passages("law", under=path, scope=kept.scope)]

    assert under("Leave") == ["One.", "Two.", "Three."]
    assert under("Leave", "Sick") == ["Three."]
    assert under() == ["One.", "Two.", "Three.", "Four."]
    assert under("Nothing") == under("Leave", "Sick", "Deeper") == []


@pytest.mark.requirement("O-12", "O-14")
def test_a_document_shows_to_holders_of_one_of_its_audiences(kept: Kept) -> None:
    """[26] For everybody else it is not there: no hit, no passage, no error that tells."""
    kept.put("open", "Leave for everyone.")
    kept.put("closed", "Leave for the board.", audiences=("board", "hr"))
    closed = edition("closed", "Leave for the board.").chunks[0].passage_id
    for audiences, expected in (
        ((), ["open"]),
        (("sales",), ["open"]),
        (("hr",), ["closed", "open"]),
        (None, ["closed", "open"]),
    ):
        assert sorted(kept.found("leave", audiences=audiences)) == expected
        assert sorted(kept.found(vector=vector_of("leave"), audiences=audiences)) == expected
        listed = kept.store.documents(audiences=audiences, scope=kept.scope)
        assert sorted(each.document_id for each in listed.items) == expected
        sees = "closed" in expected
        look = {"scope": kept.scope, "audiences": audiences}
        assert (kept.store.get("closed", **look) is not None) == sees
        assert (kept.store.passage(closed, **look) is not None) == sees
        assert bool(kept.store.passages("closed", **look)) == sees


@pytest.mark.requirement("O-13")
def test_a_decision_about_audiences_outlives_the_next_put(kept: Kept) -> None:
    kept.put("leave", *LEAVE)
    assert kept.store.set_audiences("leave", ["board"], scope=kept.scope)
    assert kept.found("leave") == []
    kept.put("leave", "Leave is 28 days.", valid_from=START + DAY)
    assert kept.found("leave") == []
    assert kept.found("leave", audiences=["board"]) == ["leave"]
