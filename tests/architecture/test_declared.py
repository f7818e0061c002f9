"""What the packages import is declared in pyproject.toml, not met by another's dependency."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("kb_resources", "kb_checks", "kb_assets", "kb")
# Looked for before they are imported: a second engine, frameworks of whoever uses an adapter.
OPTIONAL = {"llama_index", "langchain_core", "rapidocr", "rapidocr_onnxruntime"}


def _imported() -> Iterator[tuple[str, str]]:
    """Top-level modules of others, and who imports each."""
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                names: list[str] = []
                if isinstance(node, ast.Import):
                    names = [alias.name for alias in node.names]
                elif isinstance(node, ast.ImportFrom) and not node.level:
                    names = [node.module or ""]
                for name in names:
                    yield name.partition(".")[0], path.relative_to(ROOT).as_posix()


def _declared() -> set[str]:
    """Distributions named by the project or one of its extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    wanted = [*project["dependencies"], *(line for extra in extras for line in extra)]
    return {_plain(re.split(r"[^\w.-]", line)[0]) for line in wanted}


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_import_is_a_declared_dependency() -> None:
    known = sys.stdlib_module_names | set(PACKAGES) | OPTIONAL
    providers = packages_distributions()
    declared = _declared()
    missing = {
        (module, who)
        for module, who in _imported()
        if module not in known
        and not {_plain(name) for name in providers.get(module, [module])} & declared
    }
    assert not missing
