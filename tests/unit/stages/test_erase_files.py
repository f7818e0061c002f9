"""Files of the data folder that others delete while an erasure looks through them."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from kb_resources.stages.erase_files import SPOOL, ErasableFiles

SECRET = b"The warbler was seen near the harbour."
HELD = [(hashlib.sha256(SECRET).hexdigest(), len(SECRET))]


def home_with(tmp_path: Path, *names: str) -> Path:
    for name in names:
        file = tmp_path / "home" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(SECRET)
    return tmp_path / "home"


@pytest.mark.requirement("O-12")
def test_a_file_that_goes_by_itself_meanwhile_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = home_with(tmp_path, "copy")
    seen = [home / "gone-before-it-was-looked-at", home / "copy"]
    monkeypatch.setattr(ErasableFiles, "_files", lambda _: iter(seen))
    counts = ErasableFiles(home).delete("upload:x", HELD)
    assert counts == {"deleted": 1, "compared": 1}
    assert not (home / "copy").exists()


def test_a_folder_that_goes_while_its_neighbours_are_looked_at_is_no_error(tmp_path: Path) -> None:
    home = home_with(tmp_path, "copy", "b/one", "c/d/two")
    found = []
    for file in ErasableFiles(home)._files():
        found.append(file.name)
        shutil.rmtree(home / "b", ignore_errors=True)
        shutil.rmtree(home / "c", ignore_errors=True)
    assert found == ["copy"]


def test_an_upload_that_its_worker_is_deleting_goes_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = home_with(tmp_path, f"{SPOOL}/job/content", f"{SPOOL}/job/rest")
    whole = shutil.rmtree
    tries = []

    def interrupted(folder: Path) -> None:
        tries.append(folder)
        if len(tries) == 1:
            (folder / "content").unlink()
            raise FileNotFoundError("content")
        whole(folder)

    monkeypatch.setattr(shutil, "rmtree", interrupted)
    assert ErasableFiles(home).delete("upload:x", [], ["job"])["deleted"] == 2
    assert not (home / SPOOL / "job").exists()
