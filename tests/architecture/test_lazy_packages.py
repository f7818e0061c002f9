"""Packages that import their parts on demand: both lists of each say the same, and are true."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LAZY = sorted(
    path.parent.relative_to(ROOT).as_posix().replace("/", ".")
    for path in (ROOT / "kb_resources").rglob("__init__.py")
    if "on_demand(" in path.read_text("utf-8")
)


def _typed(tree: ast.Module) -> dict[str, str]:
    """Name to submodule, as the branch for the type checker has it."""
    branch = next(node for node in tree.body if isinstance(node, ast.If))
    return {
        alias.name: statement.module or ""
        for statement in branch.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }


def _run_time(tree: ast.Module, package: str) -> dict[str, str]:
    """Name to submodule, as the `__getattr__` has it."""
    call = next(
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "on_demand"
    )
    return {
        name: f"{package}.{part}"
        for part, names in ast.literal_eval(call.args[1]).items()
        for name in names
    }


def test_there_are_such_packages() -> None:
    assert {"kb_resources.embed", "kb_resources.scan", "kb_resources.parse"} <= set(LAZY)


@pytest.mark.parametrize("package", LAZY)
def test_the_type_checker_sees_what_python_finds(package: str) -> None:
    folder = ROOT / package.replace(".", "/")
    tree = ast.parse((folder / "__init__.py").read_text("utf-8"))
    found = _run_time(tree, package)
    assert found == _typed(tree)
    module = importlib.import_module(package)
    assert set(found) <= set(module.__all__)
    for name, home in found.items():
        assert getattr(module, name) is getattr(importlib.import_module(home), name)
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = module.no_such_name


@pytest.mark.parametrize("package", LAZY)
def test_no_name_is_that_of_a_submodule(package: str) -> None:
    folder = ROOT / package.replace(".", "/")
    tree = ast.parse((folder / "__init__.py").read_text("utf-8"))
    parts = {path.stem for path in folder.glob("*.py")} | {
        path.parent.name for path in folder.glob("*/__init__.py")
    }
    assert not parts & set(_run_time(tree, package))


@pytest.mark.parametrize("package", LAZY)
def test_importing_the_package_imports_none_of_those_parts(package: str) -> None:
    folder = ROOT / package.replace(".", "/")
    tree = ast.parse((folder / "__init__.py").read_text("utf-8"))
    code = f"import sys, {package}; print(' '.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert not set(done.stdout.split()) & set(_run_time(tree, package).values())
