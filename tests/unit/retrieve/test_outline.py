"""The tree of headings: parents, order, recurring headings, passages in their place."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb_resources.model import passage_id
from kb_resources.retrieve.outline import Outline, node_id, tree


def heading(at: int, *path: str, page: int | None = None) -> dict[str, Any]:
    return {"kind": "heading", "bytes": [at, at + 1], "path": list(path), "page": page}


def passage(at: int, name: str, *path: str, page: int | None = None) -> dict[str, Any]:
    where = {"page": page, "byte_start": at, "byte_end": at + 1}
    return {"passage_id": name, "heading_path": list(path), **where}


def outline(headings: list[dict[str, Any]], passages: list[dict[str, Any]]) -> Outline:
    return Outline("acme", "doc", 1, "Rules", tree("Rules", headings, passages))


RULES = outline(
    [
        heading(0, "Leave", page=1),
        heading(10, "Leave", "Notice", page=1),
        heading(20, "Pay", page=2),
        heading(30, "Pay", "Notice", page=2),
        heading(40, "Pay", "Notice", page=3),
    ],
    [
        passage(1, "a", "Leave"),
        passage(10, "b", "Leave", "Notice"),
        passage(31, "c", "Pay", "Notice"),
        passage(41, "d", "Pay", "Notice"),
        passage(45, "e", "Pay", "Notice"),
    ],
)


@pytest.mark.requirement("W-22")
def test_ancestors_run_from_the_root_to_the_node() -> None:
    notice = RULES.node_of("c")
    assert notice is not None
    assert [node.title for node in RULES.ancestors(notice.node_id)] == ["Rules", "Pay", "Notice"]


@pytest.mark.requirement("W-22")
def test_a_recurring_heading_is_a_node_of_its_own() -> None:
    first, second = RULES.node_of("c"), RULES.node_of("d")
    assert first is not None
    assert second is not None
    assert first.heading_path == second.heading_path
    assert (first.page, second.page) == (2, 3)
    assert second.passage_ids == ("d", "e")


@pytest.mark.requirement("W-22")
def test_a_subtree_holds_its_passages_in_reading_order() -> None:
    root = RULES.nodes[0]
    assert RULES.passages(root.node_id) == ("a", "b", "c", "d", "e")
    [leave, pay] = RULES.children(root.node_id)
    assert RULES.passages(leave.node_id) == ("a", "b")
    assert RULES.passages(pay.node_id) == ("c", "d", "e")


@pytest.mark.requirement("W-22")
def test_unknown_ids_are_nothing() -> None:
    assert RULES.node("nope") is None
    assert RULES.node_of("nope") is None
    assert RULES.ancestors("nope") == RULES.children("nope") == RULES.subtree("nope") == ()
    assert RULES.passages("nope") == ()


def test_a_document_without_headings_is_its_root() -> None:
    flat = outline([], [passage(0, "a"), passage(5, "b")])
    assert [node.passage_ids for node in flat.nodes] == [("a", "b")]


def test_paths_that_no_heading_has_make_their_nodes() -> None:
    sheet = outline([], [passage(0, "a", "Rates", "2026"), passage(9, "b", "Rates", "2027")])
    assert [node.title for node in sheet.nodes] == ["Rules", "Rates", "2026", "2027"]


@pytest.mark.requirement("P-27")
def test_node_ids_are_the_hashes_that_passage_ids_carry() -> None:
    path = ("Pay", "Notice")
    assert passage_id("doc", path, "0" * 64, 0).split(".")[1] == node_id(path)
    before = {node.heading_path: node.node_id for node in RULES.nodes}
    inserted = outline([heading(0, "New"), heading(2, "Leave"), heading(20, "Pay")], [])
    for node in inserted.nodes:
        assert before.get(node.heading_path, node.node_id) == node.node_id


PATHS = st.lists(st.lists(st.sampled_from("ABC"), min_size=1, max_size=4), max_size=12)


@given(PATHS, PATHS)
def test_every_passage_hangs_once_under_its_own_path(
    sections: list[list[str]], places: list[list[str]]
) -> None:
    made = outline(
        [heading(10 * i, *path) for i, path in enumerate(sections)],
        [passage(7 * i, f"p{i}", *path) for i, path in enumerate(places)],
    )
    assert sorted(made.passages(made.nodes[0].node_id)) == sorted(
        f"p{i}" for i in range(len(places))
    )
    assert len({node.node_id for node in made.nodes}) == len(made.nodes)
    for i, path in enumerate(places):
        node = made.node_of(f"p{i}")
        assert node is not None
        assert node.heading_path == tuple(path)
        assert [one.heading_path for one in made.ancestors(node.node_id)] == [
            tuple(path[:depth]) for depth in range(len(path) + 1)
        ]


def test_a_passage_that_begins_with_its_headings_hangs_below_them_once() -> None:
    """A title without text of its own is part of the first passage below it."""
    first = passage(0, "p1", "Leave", "Amount") | {"byte_end": 30}
    found = outline(
        [heading(0, "Leave"), heading(15, "Leave", "Amount"), heading(40, "Leave", "Notice")],
        [first, passage(40, "p2", "Leave", "Notice")],
    )
    assert [(node.title, node.passage_ids) for node in found.nodes[1:]] == [
        ("Leave", ()),
        ("Amount", ("p1",)),
        ("Notice", ("p2",)),
    ]
