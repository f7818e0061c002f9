"""The node tree: ranges nest, ids are stable, nothing is lost on the way to JSON and back."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from html import escape

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kb_resources.model import ParsedDocument
from kb_resources.parse import (
    DraftBlock,
    Node,
    build_tree,
    parse_here,
    serialise,
    split_sentences,
)

WORD = st.text("абвšđ😀 .", min_size=1, max_size=8)
BLOCKS = st.one_of(
    st.builds(DraftBlock, kind=st.just("heading"), text=WORD, level=st.integers(1, 4)),
    st.builds(DraftBlock, kind=st.sampled_from(["paragraph", "code", "footnote"]), text=WORD),
    st.builds(DraftBlock, kind=st.just("list_item"), text=WORD, level=st.integers(1, 2)),
)


def document_of(drafts: list[DraftBlock]) -> ParsedDocument:
    body = serialise(drafts)
    return ParsedDocument("Title", "text/plain", body.text, body.blocks, body.pages)


@pytest.mark.requirement("W-01", "W-02")
@given(st.lists(BLOCKS, max_size=15))
def test_children_lie_inside_their_parents_and_ids_are_unique(drafts: list[DraftBlock]) -> None:
    document = document_of(drafts)
    root = build_tree(document, sentences=True)
    data = document.body.encode()
    for node in root.walk():
        assert (
            data[node.byte_start : node.byte_end].decode()
            == document.body[node.char_start : node.char_end]
        )
        end = node.byte_start
        for child in node.children:
            assert end <= child.byte_start <= child.byte_end <= node.byte_end
            end = child.byte_end
    ids = [node.id for node in root.walk()]
    assert len(ids) == len(set(ids))
    leaves = [n for n in root.walk() if n.kind not in {"root", "section", "list", "sentence"}]
    assert len(leaves) == len(document.blocks)
    assert Node.from_json(json.loads(json.dumps(root.to_json()))) == root


@pytest.mark.requirement("W-07")
@given(st.lists(BLOCKS, min_size=1, max_size=12), st.data())
def test_an_edited_paragraph_changes_no_id_but_its_own(
    drafts: list[DraftBlock], data: st.DataObject
) -> None:
    drafts = [*drafts, DraftBlock("paragraph", "unique first")]
    before = {node.id for node in build_tree(document_of(drafts)).walk()}
    assert before == {node.id for node in build_tree(document_of(drafts)).walk()}
    edited = [*drafts[:-1], replace(drafts[-1], text="unique second")]
    after = {node.id for node in build_tree(document_of(edited)).walk()}
    assert len(before - after) == len(after - before) == 1
    place = data.draw(st.integers(0, len(drafts)))
    longer = [*drafts[:place], DraftBlock("paragraph", "quite new"), *drafts[place:]]
    kept = {node.id for node in build_tree(document_of(longer)).walk()}
    beside = [[d.kind for d in part if d.text.strip()] for part in (drafts[:place], drafts[place:])]
    in_a_list = beside[0][-1:] == beside[1][:1] == ["list_item"]  # which is two lists from there on
    assert in_a_list or not before - kept


def paths(root: Node) -> Counter[tuple[str, ...]]:
    """The ids from the root to every node."""

    def below(node: Node, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        here = (*above, node.id)
        yield here
        for child in node.children:
            yield from below(child, here)

    return Counter(below(root, ()))


@pytest.mark.requirement("W-07")
@given(st.lists(BLOCKS, min_size=1, max_size=12), st.data())
def test_any_edited_paragraph_changes_one_path(
    drafts: list[DraftBlock], data: st.DataObject
) -> None:
    """Whichever paragraph, whatever else says the same as before or after."""
    at = data.draw(st.integers(0, len(drafts)))
    kind = data.draw(st.sampled_from(["paragraph", "list_item", "footnote"]))
    others = [draft.text for draft in drafts]
    old, new = data.draw(st.tuples(*[st.sampled_from(["аб", "в š", *others])] * 2))
    assume(old.strip() and new.strip())
    before, after = (
        paths(build_tree(document_of([*drafts[:at], DraftBlock(kind, text), *drafts[at:]])))
        for text in (old, new)
    )
    changed = old.split() != new.split()
    assert (before - after).total() == (after - before).total() <= changed


def as_markdown(sections: Sections) -> bytes:
    return "\n\n".join(
        part for title, texts in sections for part in (f"## {title}", *texts)
    ).encode()


def as_html(sections: Sections) -> bytes:
    return "".join(
        part
        for title, texts in sections
        for part in (f"<h2>{title}</h2>", *(f"<p>{escape(text)}</p>" for text in texts))
    ).encode()


def as_json(sections: Sections) -> bytes:
    return json.dumps({title: list(texts) for title, texts in sections}).encode()


def as_text(sections: Sections) -> bytes:
    return "\n\n".join(text for _, texts in sections for text in texts).encode()


Sections = Sequence[tuple[str, Sequence[str]]]
PROSE = st.lists(
    st.sampled_from(["Отпуск", "траје", "тридесет", "дана", "tražen", "pismeno", "vor", "Urlaub"]),
    min_size=8,
    max_size=20,
).map(lambda words: " ".join(words).capitalize() + ".")


@pytest.mark.requirement("W-07")
@pytest.mark.parametrize(
    ("write", "media_type"),
    [
        (as_markdown, "text/markdown"),
        (as_html, "text/html"),
        (as_json, "application/json"),
        (as_text, "text/plain"),
    ],
)
@settings(max_examples=30, deadline=None)
@given(
    texts=st.lists(st.lists(PROSE, min_size=1, max_size=4), min_size=1, max_size=4),
    edit=PROSE,
    data=st.data(),
)
def test_a_file_with_one_paragraph_edited_changes_one_path(
    write: Callable[[Sections], bytes],
    media_type: str,
    texts: list[list[str]],
    edit: str,
    data: st.DataObject,
) -> None:
    def tree(sections: Sequence[Sequence[str]]) -> Counter[tuple[str, ...]]:
        named = [(f"Section {number}", part) for number, part in enumerate(sections)]
        document = parse_here(write(named), media_type, "handbook")
        assert isinstance(document, ParsedDocument)
        return paths(build_tree(document))

    before = tree(texts)
    assert tree(texts) == before  # the same bytes give the same ids
    section = data.draw(st.integers(0, len(texts) - 1))
    at = data.draw(st.integers(0, len(texts[section]) - 1))
    assume(texts[section][at] != edit)
    edited = [list(part) for part in texts]
    edited[section][at] = edit
    after = tree(edited)
    assert (before - after).total() == (after - before).total() == 1


def test_sections_nest_by_level() -> None:
    root = build_tree(
        document_of(
            [
                DraftBlock("paragraph", "before"),
                DraftBlock("heading", "One", level=1),
                DraftBlock("heading", "Inner", level=3),
                DraftBlock("list_item", "a", level=1),
                DraftBlock("list_item", "b", level=1),
                DraftBlock("heading", "Two", level=1),
            ]
        )
    )
    assert [child.kind for child in root.children] == ["paragraph", "section", "section"]
    one = root.children[1]
    assert [child.kind for child in one.children] == ["heading", "section"]
    assert one.children[1].title == "Inner"
    assert [child.kind for child in one.children[1].children] == ["heading", "list"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("Siehe Art. 5 DSGVO. Danach § 4.", ["Siehe Art. 5 DSGVO.", "Danach § 4."]),
        ("Съгласно чл. 5 се плаща. Така е.", ["Съгласно чл. 5 се плаща.", "Така е."]),
        ("„Dobro.“ Rekao je.", ["„Dobro.“", "Rekao je."]),
        ("Version 3.5 came. it stays", ["Version 3.5 came. it stays"]),
        ("no end", ["no end"]),
        ("", []),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert [text[a:b] for a, b in split_sentences(text)] == expected
