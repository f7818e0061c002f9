"""`kb.yaml` comes with the files it speaks of; whatever it holds costs little to read or refuse."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from kb_assets import plain_yaml
from kb_assets.folders.mapping import parse_map, read_map
from kb_assets.source_files import read_sources
from kb_resources.errors import InputError

LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
# Followed, this one takes all memory: each level holds nine times the pairs of the one before.
MERGES = "a: &a {x: 1, y: 2}\n" + "".join(
    f"{name}: &{name} {{<<: [{', '.join([f'*{before}'] * 9)}]}}\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
BOMBS = {
    "laughs": LAUGHS,
    "merges": MERGES,
    "itself": "folders: &f {hr: *f}\n",
    "deep lists": "folders: " + "[" * 50_000,
    "deep mappings": "".join(f"{' ' * n}a:\n" for n in range(700)),
    "long": "folders:\n" + "".join(f"  f{n}: {{}}\n" for n in range(40_000)),
    "a call": "audiences: !!python/object/apply:os.system ['true']\n",
    "a long number": "audiences: [" + "9" * 20_000 + "]\n",
    "a NUL": "audiences: ['a\0b']\n",
    "two documents": "audiences: [hr]\n---\naudiences: []\n",
}


@pytest.mark.requirement("O-57")
@pytest.mark.parametrize("bomb", BOMBS)
def test_a_mapping_file_that_is_a_bomb_is_refused_in_bounded_memory(bomb: str) -> None:
    tracemalloc.start()
    with pytest.raises(InputError) as caught:
        parse_map(BOMBS[bomb])
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 64 << 20
    assert len(caught.value.message) < 2000
    assert "nothing is taken from this folder" in caught.value.next_step


def test_a_long_file_is_not_read_at_all(tmp_path: Path) -> None:
    with (tmp_path / "kb.yaml").open("wb") as file:
        file.truncate(1 << 40)  # a hole: reading it would take all memory
    with pytest.raises(InputError, match="longer"):
        read_map(tmp_path, (), 0.0, known=None, now_ns=1 << 62)


def test_a_declared_source_is_read_with_the_same_care(tmp_path: Path) -> None:
    (tmp_path / "sources.yaml").write_text(MERGES)
    with pytest.raises(InputError, match=r"sources\.yaml cannot be read: the anchor"):
        read_sources(tmp_path)


def test_plain_settings_are_read() -> None:
    text = "audiences: [staff]\nfolders:\n  hr: {audiences: [hr]}\n"
    assert plain_yaml.parse(text) == {
        "audiences": ["staff"],
        "folders": {"hr": {"audiences": ["hr"]}},
    }
    assert parse_map(text).rule("hr/a.md").audiences == ("hr",)
