"""What of a folder is taken, and names that nothing can be stored under."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kb_resources.errors import InputError
from kb_resources.stages.request import UNREADABLE, expand


@pytest.mark.parametrize("inside", ["", "sub"])
def test_a_name_that_is_not_utf_8_is_named_itself(tmp_path: Path, inside: str) -> None:
    """Else a whole folder is refused, and nobody is told for which of its files."""
    (tmp_path / "a.md").write_text("text")
    folder = tmp_path / inside
    folder.mkdir(exist_ok=True)
    odd = folder / os.fsdecode(b"caf\xe9.md")
    odd.write_text("text")
    with pytest.raises(InputError) as caught:
        list(expand(tmp_path))
    assert "caf\\udce9.md' is not UTF-8" in str(caught.value)
    str(caught.value).encode()
    odd.rename(folder / "café.md")
    assert sorted(Path(source.uri).name for source in expand(tmp_path)) == ["a.md", "café.md"]


def test_what_is_not_taken_in_is_told_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As for everybody but root, whom nothing is closed to.
    monkeypatch.setattr(os, "access", lambda path, _mode: bool(Path(path).stat().st_mode & 0o500))
    (tmp_path / "open.md").write_text("text")
    (tmp_path / "link.md").symlink_to(tmp_path / "nowhere.md")
    closed = tmp_path / "closed"
    closed.mkdir()
    (closed / "inside.md").write_text("text")
    closed.chmod(0)
    told: dict[str, str] = {}
    try:
        taken = list(expand(tmp_path, passed_over=lambda path, why: told.update({path.name: why})))
        with pytest.raises(InputError, match="cannot be read"):
            list(expand(closed))
    finally:
        closed.chmod(0o700)
    assert "open.md" in {Path(source.uri).name for source in taken}
    assert set(told) == {"closed", "link.md"}
    assert told["closed"] == UNREADABLE
