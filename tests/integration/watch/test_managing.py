"""Watches themselves: which may be added, and listing, pausing, resuming and removing them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kb_resources.errors import ConflictError, InputError, NotFound, PolicyError
from kb_resources.stages import watch
from kb_resources.stages.watch import WatchRequest
from tests.integration.watch.conftest import THIRTY, only_key

if TYPE_CHECKING:
    from tests.integration.watch.conftest import Watching


@pytest.mark.requirement("P-49")
def test_an_address_that_must_not_be_fetched_is_refused_when_it_is_added(
    watching: Watching,
) -> None:
    database = watching.bench.line.capabilities.database

    def add(url: str, **values: object) -> None:
        watch.add(
            database,
            WatchRequest(scope="acme", url=url, **values),  # type: ignore[arg-type]
            policy=watching.policy,
            languages=("en",),
            now=watching.wall(),
        )

    for url in ("http://169.254.169.254/", "http://localhost/", "http://10.0.0.1/"):
        with pytest.raises(PolicyError, match="KB_FETCH_ALLOW_HOSTS"):
            add(url)
    for url in ("file:///etc/passwd", "http://me:secret@example.org/", "example.org"):
        with pytest.raises(InputError):
            add(url)
    for values in (
        {"every_s": 59},
        {"expand": "crawl"},
        {"on_missing": "erase"},
        {"remove_after": 0},
        {"limit": 0},
        {"audiences": ("a b",)},
        {"language": "German"},
    ):
        with pytest.raises(InputError):
            add("https://example.org/", **values)
    assert watch.list_(database) == []


def test_a_watch_can_be_listed_paused_resumed_and_removed(watching: Watching) -> None:
    database = watching.bench.line.capabilities.database
    watching.page("/leave", THIRTY)
    row = watching.watch("/leave", audiences=("staff",))
    with pytest.raises(ConflictError, match=row.watch_id):
        watching.watch("/leave")
    watch.pause(database, row.watch_id, "acme")
    assert watching.check().counts == {}
    assert watching.site.connections == 0
    watch.resume(database, row.watch_id, "acme")
    key = only_key(watching.round().keys)
    assert watching.bench.line.rows([key])[0].audiences == ["staff"]
    (listed,) = watch.list_(database, "acme")
    assert (listed.state, listed.pages, listed.states) == ("active", 1, {"current": 1})
    for scope in ("beta", "acme"):
        assert len(watch.list_(database, scope)) == (scope == "acme")
    with pytest.raises(NotFound):
        watch.remove(database, row.watch_id, "beta")
    watch.remove(database, row.watch_id, "acme")
    assert watch.list_(database) == []
    assert watching.bench.state(key)[0] == "indexed"
