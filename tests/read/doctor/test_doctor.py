"""What operators get wrong most, each made wrong here for real, is found with its remedy."""

from __future__ import annotations

import errno
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner

from kb.doctor import Finding, examine, local, servers
from kb_resources import embed
from kb_resources.settings import Settings, load_settings
from kb_resources.store.server import EmbeddedServer

ROOT = Path(__file__).parents[3]
Examine = Callable[..., dict[str, list[Finding]]]


@pytest.fixture(scope="session")
def models_dir() -> Path:
    """The model cache that `make demo` uses too, filled once."""
    folder = ROOT / ".kb" / "models"
    embed.prepare(folder, embed.DEFAULT_MODEL)
    return folder


@pytest.fixture
def sound(server: EmbeddedServer, database_name: str, models_dir: Path, tmp_path: Path) -> Settings:
    """Settings of an installation on an own server with a connection for each role."""
    home = tmp_path / "home"
    home.mkdir()
    secret = home / "secret"
    secret.write_text("a secret of more than thirty-two characters")
    secret.chmod(0o600)
    return load_settings(
        {
            "KB_HOME": str(home),
            "KB_DATABASE_URL": server.dsn("owner", database_name),
            "KB_PIPELINE_DATABASE_URL": server.dsn("pipeline", database_name),
            "KB_APP_DATABASE_URL": server.dsn("app", database_name),
            "KB_MODELS_DIR": str(models_dir),
        }
    )


def changed(settings: Settings, **values: object) -> Settings:
    import dataclasses

    return dataclasses.replace(settings, **values)  # type: ignore[arg-type]


def ill(settings: Settings, environment: Mapping[str, str] | None = None) -> dict[str, Finding]:
    """What is not as it should be, by what was looked at; the last where several are."""
    return {f.about: f for f in examine(settings, environment or {}) if f.level != "ok"}


def test_a_sound_installation_is_called_so(sound: Settings) -> None:
    found = list(examine(sound, {"KB_HOME": "x"}))
    assert [f for f in found if f.level != "ok"] == []
    assert {f.about for f in found} >= {
        "variables",
        "home",
        "blobs",
        "memory",
        "model",
        "text recognition",
        "secret",
        "sign-in",
        "endpoints",
        "database (owner)",
        "database (pipeline)",
        "database (app)",
    }


def test_a_misspelt_variable_is_named_with_what_was_meant() -> None:
    (found,) = local.variables({"KB_DATABSE_URL": "x", "KB_HOME": "y", "PATH": "z"})
    assert found.level == "warning"
    assert "KB_DATABSE_URL" in found.found
    assert "KB_DATABASE_URL" in found.fix


def test_every_variable_that_is_read_is_known() -> None:
    """The list of those read beside the settings is complete."""
    import re

    read = set()
    for package in ("kb", "kb_assets", "kb_resources"):
        for file in (ROOT / package).rglob("*.py"):
            read |= set(re.findall(r'"(KB_[A-Z_]+)"', file.read_text()))
    (found,) = local.variables(dict.fromkeys(read, "x"))
    assert found.level == "ok", found.found


def test_a_home_that_is_a_file_or_cannot_be_written_is_a_problem(
    sound: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    (found,) = local.home(changed(sound, home=tmp_path / "file"))
    assert (found.level, "KB_HOME" in found.fix) == ("problem", True)

    def refuse(**_: object) -> object:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(local.tempfile, "TemporaryFile", refuse)
    (found,) = local.home(sound)
    assert found.level == "problem"
    assert "Permission denied" in found.found


def test_a_full_disk_is_a_problem_before_it_is_full(
    sound: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "LEAST_FREE_BYTES", 2**60)
    (found,) = local.home(sound)
    assert found.level == "problem"
    assert "left" in found.found


def test_a_blob_store_without_its_driver_is_a_problem(sound: Settings) -> None:
    (found,) = local.blobs(changed(sound, blob_url="nosuch://bucket"))
    assert found.level == "problem"
    assert "fsspec[nosuch]" in found.fix
    (found,) = local.blobs(changed(sound, blob_url="memory://bucket"))
    assert found.level == "ok"


def test_bytes_that_cannot_be_written_are_a_problem_in_each_scopes_folder_too(
    sound: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests run as root too, whom no mode keeps from writing."""
    folder = tmp_path / "bytes"
    (folder / "acme").mkdir(parents=True)
    given = changed(sound, blob_url=str(folder))
    (found,) = local.blobs(given)
    assert found.level == "ok"
    real = tempfile.TemporaryFile

    def read_only(*, dir: Path) -> Any:  # noqa: A002 - tempfile's word
        if dir.name == "acme":
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return real(dir=dir)

    monkeypatch.setattr("tempfile.TemporaryFile", read_only)
    (found,) = local.blobs(given)
    assert found.level == "problem"
    assert f"{folder / 'acme'} cannot be written: Read-only" in found.found


def test_files_that_lie_beside_the_scopes_folders_are_told(sound: Settings) -> None:
    zone = sound.home / "dropzone"
    (zone / "acme").mkdir(parents=True)
    assert "dropzone" not in ill(sound)
    (zone / "Not A Scope").mkdir()
    (zone / "left.pdf").write_bytes(b"%PDF")
    found = ill(sound)["dropzone"]
    assert "2 of 3 entries" in found.found
    assert "/<scope>/" in found.fix
    elsewhere = {"KB_DROPZONE": str(zone / "acme")}
    assert "dropzone" not in ill(sound, elsewhere)


def test_more_parsing_children_than_memory_is_told(sound: Settings) -> None:
    (found,) = local.memory(changed(sound, parse_workers=64, parse_memory_bytes=2**40))
    assert found.level == "warning"
    assert "KB_PARSE_WORKERS" in found.fix


def test_a_model_that_is_missing_or_damaged_is_told(
    sound: Settings, models_dir: Path, tmp_path: Path
) -> None:
    assert "kb models prepare" in ill(changed(sound, models_dir=tmp_path / "none"))["model"].fix
    import shutil

    copy = tmp_path / "models"
    shutil.copytree(models_dir / sound.model, copy / sound.model)
    weights = next((copy / sound.model).glob("*.onnx"))
    with weights.open("r+b") as stream:
        stream.seek(1000)
        stream.write(b"damaged")
    found = ill(changed(sound, models_dir=copy))["model"]
    assert found.level == "problem"
    assert "kb models prepare" in found.fix


def test_missing_text_recognition_names_the_packages(
    sound: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (found,) = local.text_recognition(changed(sound, ocr_languages=("eng", "srp_latn", "xyz")))
    assert "xyz" in found.found
    assert "tesseract-ocr-xyz" in found.fix
    monkeypatch.setenv("PATH", str(tmp_path))
    (found,) = local.text_recognition(sound)
    assert "tesseract-ocr" in found.fix
    (found,) = local.text_recognition(changed(sound, ocr=False))
    assert found.level == "ok"


def test_a_secret_that_is_short_or_open_to_others_is_a_problem(sound: Settings) -> None:
    assert ill(changed(sound, secret="short"))["secret"].level == "problem"
    (sound.home / "secret").chmod(0o644)
    assert "chmod 600" in ill(sound)["secret"].fix
    (sound.home / "secret").unlink()
    assert ill(sound)["secret"].level == "warning"
    (sound.home / "question.key").write_text("00")
    (sound.home / "question.key").chmod(0o640)
    assert "question.key" in ill(sound)["secret"].found


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ({"oidc_client_id": "kb"}, "KB_PUBLIC_URL"),
        ({"public_url": "https://kb.example"}, "KB_OIDC_CLIENT_ID"),
        ({"oidc_client_id": "kb", "public_url": "http://kb.example"}, "https"),
    ],
)
def test_half_of_a_sign_in_is_a_problem(
    sound: Settings, values: dict[str, str], wanted: str
) -> None:
    (found,) = local.sign_in(changed(sound, oidc_issuer="https://id.example", **values))
    assert found.level == "problem"
    assert wanted in found.fix
    (found,) = local.sign_in(
        changed(
            sound,
            oidc_issuer="https://id.example",
            oidc_client_id="kb",
            public_url="https://kb.example",
        )
    )
    assert found.level == "ok"


def test_endpoints_say_whose_they_are_and_what_they_lack(sound: Settings) -> None:
    found = list(
        local.endpoints(
            changed(
                sound,
                answer_url="https://models.example/v1",
                docling_url="http://10.0.0.7:5001",
            )
        )
    )
    assert [f.level for f in found] == ["ok", "problem", "warning"]
    assert "KB_ANSWER_MODEL" in found[1].fix
    assert "KB_ANSWER_HOSTING=self_hosted" in found[2].fix
    assert "only what is classed public goes there" in found[2].found


def test_a_database_that_is_away_is_a_problem_with_the_variable_to_mend(sound: Settings) -> None:
    found = ill(changed(sound, app_database_url="host=/no/such/folder dbname=kb"))
    assert found["database (app)"].level == "problem"
    assert "KB_APP_DATABASE_URL" in found["database (app)"].fix
    assert "Traceback" not in found["database (app)"].found


def test_a_reading_side_that_nothing_holds_back_is_a_problem(sound: Settings) -> None:
    """The commonest way to lose row level security: the owner's connection everywhere."""
    found = ill(
        changed(
            sound, app_database_url=sound.database_url, pipeline_database_url=sound.database_url
        )
    )
    assert "kb_app" in found["database (app)"].fix
    assert "kb_pipeline" in found["database (pipeline)"].fix


def test_a_stranger_to_the_role_is_told_the_grant(
    sound: Settings, server: EmbeddedServer, database_name: str
) -> None:
    with psycopg.connect(server.dsn("owner", database_name), autocommit=True) as conn:
        conn.execute("create role stranger login")
        try:
            dsn = psycopg.conninfo.make_conninfo(
                server.dsn("owner", database_name), user="stranger"
            )
            found = ill(changed(sound, app_database_url=dsn))
        finally:
            conn.execute("drop role stranger")
    assert found["database (app)"].fix == "GRANT kb_app TO stranger;"


def test_migrations_that_wait_are_counted(sound: Settings, empty_database: str) -> None:
    found = list(servers.database(changed(sound, database_url=empty_database)))
    (waiting,) = [f for f in found if f.about == "database (owner)"]
    assert waiting.level == "warning"
    assert "kb db migrate" in waiting.fix


def test_documents_that_failed_or_wait_are_counted(sound: Settings) -> None:
    with psycopg.connect(sound.database_url) as conn:
        conn.execute("insert into kb.scope (name) values ('acme')")
        for state, age in (("failed", "0 s"), ("pending", "2 h"), ("pending", "1 min")):
            conn.execute(
                "insert into kb.document (scope_id, document_id, source_kind, source_uri,"
                " origin, state, reason, updated_at) select scope_id, %s, 'file', %s, 'n', %s,"
                " 'r', now() - %s::interval from kb.scope",
                [f"{state}-{age[0]}", f"/{state}{age}", state, age],
            )
    found = [f for f in servers.database(sound) if f.about == "documents"]
    assert [f.found for f in found] == ["1 failed.", "1 have waited for more than 1 hour."]


def test_documents_that_wait_for_a_person_are_counted_by_scope(sound: Settings) -> None:
    with psycopg.connect(sound.database_url) as conn:
        conn.execute("insert into kb.scope (name) values ('acme'), ('law')")
        conn.execute(
            "insert into kb.document (scope_id, document_id, source_kind, source_uri, origin,"
            " state, reason) select scope_id, 'd' || n, 'file', '/' || n, 'n', 'quarantined', 'r'"
            " from kb.scope, generate_series(1, 3) n where name = 'law' or n = 1"
        )
    (found,) = [f for f in servers.database(sound) if f.about == "reviews"]
    assert found.level == "warning"
    assert found.found.startswith("4 wait for a person")
    assert found.found.endswith("law (3), acme (1).")
    assert "kb review list --scope law" in found.fix


def test_runs_that_stand_still_are_told(sound: Settings, empty_database: str) -> None:
    with psycopg.connect(empty_database) as conn:
        info = conn.info
        address = f"postgresql+psycopg2://{info.user}@/{info.dbname}?host={info.host}"
        conn.execute("create table daemon_heartbeats (timestamp timestamp)")
        conn.execute("insert into daemon_heartbeats values (now() at time zone 'utc')")
        conn.execute("create table runs (run_id text, status text, create_timestamp timestamp)")
        conn.execute(
            "insert into runs select r, s, now() at time zone 'utc' - age::interval from (values"
            " ('aaaaaaaa-1', 'STARTED', '2 h'), ('b', 'QUEUED', '3 h'), ('c', 'STARTED', '5 min'),"
            " ('d', 'SUCCESS', '9 h'), ('e', 'FAILURE', '9 h')) v (r, s, age)"
        )
    found = list(servers.dagster(changed(sound, dagster_database_url=address)))
    assert [each.level for each in found] == ["ok", "warning"]
    assert found[1].found == (
        "1 have gone on and 1 have been queued for more than 1 hour, b first."
    )
    assert "Terminate" in found[1].fix


def test_a_silent_daemon_is_told(sound: Settings, empty_database: str) -> None:
    url = empty_database
    with psycopg.connect(url) as conn:
        info = conn.info
        address = f"postgresql+psycopg2://{info.user}@/{info.dbname}?host={info.host}"
    settings = changed(sound, dagster_database_url=address)
    (found,) = servers.dagster(settings)
    assert "make up" in found.fix
    with psycopg.connect(url) as conn:
        conn.execute("create table daemon_heartbeats (timestamp timestamp)")
        conn.execute("insert into daemon_heartbeats values (now() at time zone 'utc')")
        conn.execute("create table runs (run_id text, status text, create_timestamp timestamp)")
    (found,) = servers.dagster(settings)
    assert found.level == "ok"
    with psycopg.connect(url) as conn:
        conn.execute("update daemon_heartbeats set timestamp = timestamp - interval '1 hour'")
    (found,) = servers.dagster(settings)
    assert "60 minutes" in found.found
    (found,) = servers.dagster(changed(sound, dagster_database_url="sqlite:///x"))
    assert found.level == "problem"


def test_the_command_prints_what_to_do_and_fails_where_something_is_broken(
    sound: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kb.cli.doctor import doctor
    from kb_resources.settings import as_environment

    for name in [name for name in os.environ if name.startswith("KB_")]:
        monkeypatch.delenv(name)
    for name, value in as_environment(sound).items():
        monkeypatch.setenv(name, value)
    result = CliRunner().invoke(doctor, [], standalone_mode=False)
    assert result.return_value == 0
    assert "All is well." in result.output
    monkeypatch.setenv("KB_APP_DATABASE_URL", sound.database_url)
    result = CliRunner().invoke(doctor, ["--json"], standalone_mode=False)
    assert result.return_value == 1
    (found,) = [item for item in json.loads(result.output) if item["level"] == "problem"]
    assert found["about"] == "database (app)"
    assert found["fix"]
