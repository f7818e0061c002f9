"""Pages that are gone, documents that are: what is removed, what comes back, what never does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kb_resources.model import DocumentKey
from kb_resources.stages import removal
from kb_resources.stages.erase import Eraser
from kb_resources.stages.erase_files import ErasableFiles
from kb_resources.store.erasure_journal import ErasureJournal
from tests.integration.watch.conftest import FORTY, THIRTY, only_key

if TYPE_CHECKING:
    from tests.integration.watch.conftest import Watching


@pytest.mark.requirement("P-71")
@pytest.mark.parametrize("status", ["404 Not Found", "410 Gone"])
def test_a_missing_page_is_removed_after_so_many_looks_and_comes_back(
    watching: Watching, status: str
) -> None:
    watching.page("/leave", THIRTY)
    row = watching.watch("/leave", on_missing="remove", remove_after=3)
    key = only_key(watching.round().keys)
    watching.gone("/leave", status)
    for look in range(3):
        assert watching.bench.texts("annual leave"), f"still there after {look} looks"
        watching.wall.pass_by(hours=2)
        watching.round()
    assert watching.bench.texts("annual leave") == []
    assert watching.bench.state(key)[0] == "removed"
    assert watching.rows(row)[0]["state"] == "removed"

    watching.page("/leave", THIRTY, nonce="again")
    watching.wall.pass_by(hours=2)
    watching.round()
    assert watching.bench.state(key)[0] == "indexed"
    assert watching.bench.texts("annual leave")
    assert watching.versions(key) == [1]


def test_a_removal_that_died_halfway_is_finished_by_the_next_look(
    watching: Watching, monkeypatch: pytest.MonkeyPatch
) -> None:
    watching.page("/leave", THIRTY)
    watching.watch("/leave", on_missing="remove", remove_after=1)
    key = only_key(watching.round().keys)
    watching.gone("/leave")

    def dying(*_: object, **__: object) -> None:
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(removal, "remove", dying)
        watching.wall.pass_by(hours=2)
        with pytest.raises(RuntimeError):
            watching.check()
    assert watching.bench.state(key)[0] == "indexed"
    watching.wall.pass_by(hours=2)
    watching.check()
    assert watching.bench.state(key)[0] == "removed"
    watching.page("/leave", THIRTY)
    watching.wall.pass_by(hours=2)
    watching.round()
    assert watching.bench.state(key)[0] == "indexed"


@pytest.mark.requirement("P-71")
def test_a_missing_page_is_kept_where_that_is_the_policy(watching: Watching) -> None:
    watching.page("/leave", THIRTY)
    row = watching.watch("/leave")
    watching.round()
    watching.gone("/leave", "410 Gone")
    for _ in range(5):
        watching.wall.pass_by(hours=2)
        watching.round()
    assert watching.bench.texts("annual leave")
    found = watching.rows(row)[0]
    assert (found["state"], found["missing"]) == ("missing", 5)
    assert "410" in str(found["reason"])


def test_looks_in_between_start_the_count_anew(watching: Watching) -> None:
    watching.page("/leave", THIRTY)
    watching.watch("/leave", on_missing="remove", remove_after=2)
    watching.round()
    for present in (False, True, False, True):
        watching.page("/leave", THIRTY) if present else watching.gone("/leave")
        watching.wall.pass_by(hours=2)
        watching.round()
    assert watching.bench.texts("annual leave")


def test_what_a_person_removed_no_page_brings_back(watching: Watching) -> None:
    watching.page("/leave", THIRTY)
    row = watching.watch("/leave", on_missing="remove")
    key = only_key(watching.round().keys)
    removal.remove(watching.bench.line.capabilities, key, actor="ada", reason="Out of date.")
    watching.page("/leave", FORTY)
    watching.wall.pass_by(hours=2)
    assert watching.round().keys == {}
    assert watching.bench.state(key)[0] == "removed"
    assert "removed by somebody" in str(watching.rows(row)[0]["reason"])

    watching.gone("/leave")  # nor by being missing for a while and coming back
    for _ in range(4):
        watching.wall.pass_by(hours=2)
        watching.round()
    watching.page("/leave", THIRTY)
    watching.wall.pass_by(hours=2)
    watching.round()
    assert watching.bench.state(key)[0] == "removed"


def test_what_was_erased_no_page_brings_back(watching: Watching, tmp_path: Path) -> None:
    """A sitemap goes on naming the page; it is looked at, and nothing of it is kept."""
    url = watching.site.url
    urls = "".join(f"<url><loc>{url(path)}</loc></url>" for path in ("/leave", "/other"))
    listing = f"<urlset>{urls}</urlset>".encode()
    watching.site.routes["/map.xml"] = lambda asked: asked.reply(body=listing)
    watching.page("/leave", THIRTY)
    watching.page("/other", FORTY, title="Other")
    row = watching.watch("/map.xml", expand="sitemap")
    watching.round()
    watching.round()
    (name,) = [p["document_id"] for p in watching.rows(row) if str(p["url"]).endswith("/leave")]
    key = DocumentKey("acme", str(name))
    home = tmp_path / "erasing"
    eraser = Eraser(
        watching.bench.line.capabilities,
        ErasureJournal(home / "erasures.jsonl"),
        ErasableFiles(home, (home / "postgres",)),
        lambda _: {},
        scrub=lambda: "",
        exporting="",
    )
    eraser.erase(key, actor="ada", reason="Asked for by the person.")
    for day in range(3):
        watching.page("/leave", f"{THIRTY} Day {day}.")
        watching.wall.pass_by(days=1)
        watching.round()
        assert watching.round().keys == {}
    assert watching.asked("/leave") > 1
    assert not [text for text in watching.bench.texts("days of paid leave") if "thirty" in text]
    blobs = list(watching.bench.line.capabilities.blobs("acme").iter())
    assert len(blobs) == 1, "only the other page's bytes are kept"
