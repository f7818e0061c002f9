"""What of a folder is taken, and names that nothing can be stored under."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kb_resources.errors import InputError
from kb_resources.stages.request import expand


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
