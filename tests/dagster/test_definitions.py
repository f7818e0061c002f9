"""The code location: what it declares, what loading it costs, and that it is one whole."""

from __future__ import annotations

import itertools
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg
import pytest
import yaml

from kb_resources.model import Stage

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]


@pytest.fixture
def defs(environment: Path) -> dg.Definitions:
    from kb_assets.definitions import build_defs

    return build_defs()


def spec(defs: dg.Definitions, stage: Stage) -> dg.AssetSpec:
    key = dg.AssetKey(["kb", stage.value])
    return next(found for found in defs.resolve_all_asset_specs() if found.key == key)


def test_loading_imports_no_heavy_library_and_opens_nothing(tmp_path: Path) -> None:
    code = (
        "import sys, warnings; warnings.simplefilter('ignore')\n"
        "from kb_assets.definitions import defs\n"
        "defs.get_repository_def()\n"
        "print(*sorted({'docling', 'onnxruntime', 'pandas', 'polars', 'pandera', 'torch'}"
        " & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={"KB_HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
    )
    assert done.stdout.strip() == ""
    assert not (tmp_path / "home").exists()


def test_the_eight_assets_hang_on_each_other_in_order(defs: dg.Definitions) -> None:
    order = tuple(Stage)
    for before, after in itertools.pairwise(order):
        parents = [dep.asset_key.to_user_string() for dep in spec(defs, after).deps]
        assert parents == [f"kb/{before.value}"]
    assert not list(spec(defs, Stage.ACQUIRE).deps)


@pytest.mark.parametrize("stage", list(Stage))
def test_every_asset_says_what_it_is_and_whose(defs: dg.Definitions, stage: Stage) -> None:
    found = spec(defs, stage)
    assert found.description
    assert len(found.description) > 80
    assert found.owners == ["team:kb"]
    assert found.kinds
    assert found.code_version
    assert found.group_name == "documents"
    assert found.tags["kb/stage"] == stage.value


def test_the_index_says_that_it_is_the_retrieval_table(
    defs: dg.Definitions, columns_of: Callable[[str], set[str]]
) -> None:
    found = spec(defs, Stage.INDEX)
    assert found.kinds == {"postgres", "pgvector"}
    assert found.metadata["dagster/relation_identifier"] == "kb.passage"
    schema = found.metadata["dagster/column_schema"]
    assert isinstance(schema, dg.TableSchema)
    assert {column.name for column in schema.columns} <= columns_of("passage")
    assert all(column.description for column in schema.columns)


@pytest.fixture
def columns_of(plant: object) -> Callable[[str], set[str]]:
    def columns(table: str) -> set[str]:
        with plant.line.capabilities.database.transaction("owner") as conn:  # type: ignore[attr-defined]
            rows = conn.execute(
                "select column_name from information_schema.columns "
                "where table_schema = 'kb' and table_name = %s",
                [table],
            ).fetchall()
        return {str(name) for (name,) in rows}

    return columns


def test_every_check_is_declared_with_what_to_do_and_as_blocking(defs: dg.Definitions) -> None:
    from kb_checks.registry import CHECKS

    declared = {
        (key.asset_key.path[-1], key.name): node
        for key, node in (
            (key, defs.resolve_asset_graph().get(key))
            for key in defs.resolve_asset_graph().asset_check_keys
        )
        if key.asset_key.path[0] == "kb"
    }
    expected = {(stage.value, check.name) for stage, checks in CHECKS.items() for check in checks}
    assert set(declared) == expected
    for node in declared.values():
        assert node.blocking
        assert "When it fails: " in (node.description or "")
    gated = {stage for stage, name in expected if name == "cleared"}
    assert gated == {"chunk", "embed", "index", "supersede"}


def test_there_is_one_place_for_definitions_and_it_is_named_everywhere() -> None:
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["dg"]["project"]
    (entry,) = yaml.safe_load((ROOT / "workspace.yaml").read_text())["load_from"]
    assert tool["code_location_target_module"] == entry["python_module"]["module_name"]
    assert tool["code_location_name"] == entry["python_module"]["location_name"] == "kb"
    at_module_level = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "kb_assets").rglob("*.py")
        if any(line.startswith("defs = ") for line in path.read_text().splitlines())
    ]
    assert at_module_level == ["kb_assets/definitions.py"]


def test_automation_looks_at_scopes_only(defs: dg.Definitions) -> None:
    """Evaluating 100,000 document partitions would cost tens of CPU seconds a tick."""
    conditioned = {
        key.to_user_string()
        for key in defs.resolve_asset_graph().get_all_asset_keys()
        if defs.resolve_asset_graph().get(key).automation_condition is not None
    }
    names = (
        *("health", "terms", "vector_indexes", "generations", "citations", "evaluation", "logs"),
        *("reconciliation", "dagster_history", "crowding", "cost"),
    )
    assert conditioned == {f"kb_scopes/{name}" for name in names}
    sensors = {sensor.name: sensor for sensor in defs.sensors or ()}
    selection = sensors["scope_automation"].asset_selection
    assert selection is not None
    resolved = selection.resolve(defs.resolve_asset_graph())
    assert {key.to_user_string() for key in resolved} == conditioned
    assert set(sensors) == {
        "dropzone",
        "knowledge_changes",
        "run_failures",
        "scope_automation",
        "stranded_documents",
        "watched_urls",
    }
    for key in conditioned:
        node = defs.resolve_asset_graph().get(dg.AssetKey.from_user_string(key))
        assert node.freshness_policy is not None


def test_a_declared_source_becomes_a_sensor(tmp_path: Path, environment: Path) -> None:
    from kb_assets.definitions import build_defs
    from kb_assets.source_files import read_sources

    (tmp_path / "handbook.yaml").write_text(
        "type: kb_assets.source.KbSource\nattributes:\n  name: handbook\n  scope: acme\n"
        "  folder: /srv/handbook\n  audiences: [staff]\n  every_s: 45\n"
    )
    (tmp_path / "terms.yaml").write_text(
        "type: kb_assets.source.KbSource\nattributes:\n  name: terms\n  scope: acme\n"
        "  url: https://example.org/terms\n"
    )
    defs = build_defs(sources=read_sources(tmp_path))
    sensors = {sensor.name: sensor for sensor in defs.sensors or ()}
    assert sensors["source_handbook"].minimum_interval_seconds == 45
    assert sensors["source_terms"].minimum_interval_seconds == 3600
    dg.Definitions.validate_loadable(defs)


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ("  name: a\n  scope: acme\n", "name either a folder or a url"),
        ("  name: a\n  scope: acme\n  folder: /a\n  url: https://b.example\n", "name either"),
        ("  name: A B\n  scope: acme\n  folder: /a\n", "name: "),
        ("  name: a\n  scope: No Scope\n  folder: /a\n", "is not a scope name"),
        ("  name: a\n  scope: acme\n  url: file:///etc/passwd\n", "not an http or https address"),
        ("  name: a\n  scope: acme\n  folder: /a\n  audiences: ['x y']\n", "audience"),
        ("  name: a\n  scope: acme\n  folder: /a\n  everys: 3\n", "everys"),
        ("  name: a\n  scope: acme\n  url: https://b.example\n  every_s: 5\n", "at least 60"),
    ],
)
def test_a_source_that_does_not_fit_is_refused_naming_its_file(
    tmp_path: Path, attributes: str, said: str
) -> None:
    from kb_assets.source_files import read_sources
    from kb_resources.errors import InputError

    text = f"type: kb_assets.source.KbSource\nattributes:\n{attributes}"
    (tmp_path / "wrong.yaml").write_text(text)
    with pytest.raises(InputError) as caught:
        read_sources(tmp_path)
    assert "wrong.yaml" in str(caught.value)
    assert said in str(caught.value)


def test_the_component_loads_through_dagsters_own_loader(tmp_path: Path) -> None:
    from kb_assets.source import KbSource

    component = KbSource.resolve_from_yaml("name: inbox\nscope: acme\nfolder: /srv/inbox\n")
    defs = component.build_defs(dg.ComponentTree.for_test().load_context)
    assert [sensor.name for sensor in defs.sensors or ()] == ["source_inbox"]


@pytest.mark.requirement("P-16")
def test_the_health_of_a_new_installation_is_looked_at_at_once(defs: dg.Definitions) -> None:
    from kb_assets.scopes import HEALTH

    with dg.DagsterInstance.ephemeral() as instance:
        first = dg.evaluate_automation_conditions(
            defs=defs, instance=instance, asset_selection=dg.AssetSelection.assets(HEALTH)
        )
        assert first.get_num_requested(HEALTH) == 1
        again = dg.evaluate_automation_conditions(
            defs=defs,
            instance=instance,
            asset_selection=dg.AssetSelection.assets(HEALTH),
            cursor=first.cursor,
        )
        assert again.get_num_requested(HEALTH) == 0


def test_the_instance_of_the_checkout_is_the_packaged_one() -> None:
    """A copy, since a link in a repository does not survive every way to carry one."""
    packaged = (ROOT / "kb_assets" / "dagster.yaml").read_text()
    assert (ROOT / "dagster.yaml").read_text() == packaged
