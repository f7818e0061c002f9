"""`kb scopes` as a user types it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kb.cli.errors import EXIT_NOT_FOUND, EXIT_REFUSED, EXIT_USAGE


@pytest.mark.requirement("W-26", "W-13")
def test_scopes_are_made_configured_renamed_closed_and_listed(kb: Any, tmp_path: Path) -> None:
    made = kb(
        "scopes", "create", "legal", "--title", "Legal", "--language", "en", "--language", "de",
        "--audience", "board", "--retention-days", "365", "--opaque-ids", "--actor", "anna",
        "--json",
    )  # fmt: skip
    assert made.code == 0, made.err
    assert made.json["settings"] == {
        "languages": ["en", "de"],
        "audiences": ["board"],
        "retention_days": 365,
        "opaque_ids": True,
    }
    again = kb("scopes", "create", "legal", "--json")
    assert again.code == 1
    assert '"code": "scope_exists"' in again.err
    for arguments, code in (
        (("scopes", "create", "Not A Name"), EXIT_USAGE),
        (("scopes", "create", ""), EXIT_USAGE),
        (("scopes", "set", "legal", "--chunk-tokens", "3"), EXIT_USAGE),
        (("scopes", "set", "legal"), EXIT_USAGE),
        (("scopes", "show", "nobody"), EXIT_NOT_FOUND),
    ):
        assert kb(*arguments).code == code, arguments
    changed = kb(
        "scopes", "set", "legal", "--everyone", "--chunk-tokens", "120", "--language", "de"
    )
    assert changed.code == 0
    assert changed.out.splitlines() == [
        "legal: languages en, de → de",
        "legal: audiences board → not set",
        "legal: chunk_tokens not set → 120",
    ]
    unknown = kb("scopes", "set", "legal", "--language", "all", "--json")
    assert unknown.code == EXIT_USAGE
    assert '"code": "unknown_language"' in unknown.err
    assert " de " in unknown.err
    again = kb("scopes", "set", "legal", "--language", "de", "--language", "en", "--json").json
    assert (again["before"]["languages"], again["settings"]["languages"]) == (["de"], ["de", "en"])
    assert kb("scopes", "rename", "legal", "--title", "Law", "--actor", "bert").code == 0

    note = tmp_path / "note.md"
    note.write_text("# Keys\n\nThe keys of the large hall hang beside the green door.\n")
    assert kb("ingest", str(note), "--scope", "legal", "--no-dagster").code == 0
    assert kb("scopes", "close", "legal").code == 0
    refused = kb("ingest", str(note), "--scope", "legal", "--no-dagster")
    assert refused.code in (EXIT_USAGE, EXIT_REFUSED)
    assert "closed" in refused.err
    found = kb("search", "keys of the hall", "--scope", "legal", "--mode", "text", "--json").json
    assert "green door" in str(found)

    shown = kb("scopes", "show", "legal", "--json").json
    assert (shown["title"], shown["documents"], shown["passages"]) == ("Law", 1, 1)
    assert shown["settings"]["chunk_tokens"] == 120
    assert "audiences" not in shown["settings"]
    assert [(entry["event"], entry["actor"].split(":")[0]) for entry in shown["history"]] == [
        ("created", "anna"),
        ("settings", "cli"),
        ("settings", "cli"),
        ("renamed", "bert"),
        ("closed", "cli"),
    ]
    listed = kb("scopes", "list")
    assert "legal" in listed.out
    assert "Law" in listed.out
    assert kb("scopes", "reopen", "legal").code == 0
    dry = kb("scopes", "expire", "legal", "--dry-run", "--json").json
    assert dry == {"scope": "legal", "removed": False, "documents": []}
