"""Every stable error code the code can give, read from the code: `python tools/error_codes.py`.

Belongs here: finding them. What does not: the page (`tools/reference.py` may call `codes`). A code
stands in a class of `kb_resources.errors`, in a `code="…"` where an error is made, or in the table
that translates the database's errors.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from pathlib import Path

from kb_resources import errors
from kb_resources.errors import KbError
from kb_resources.store.translate import _RULES

ROOT = Path(__file__).parents[1]
PACKAGES = ("kb_resources", "kb_assets", "kb")


def classes() -> dict[str, type[KbError]]:
    """The tree's classes by name."""
    return {
        name: kind
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, KbError)
    }


def codes() -> dict[str, set[str]]:
    """Class names by code."""
    found: dict[str, set[str]] = defaultdict(set)
    for name, kind in classes().items():
        found[kind.code].add(name)
    for kind, code, _ in _RULES.values():
        found[code].add(kind.__name__)
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for name, code in _raised(ast.parse(path.read_text("utf-8"))):
                found[code].add(name)
    return dict(found)


def _raised(tree: ast.AST) -> list[tuple[str, str]]:
    """Class and code of each error made with a code of its own."""
    known = classes()
    return [
        (node.func.id, keyword.value.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in known
        for keyword in node.keywords
        if keyword.arg == "code"
        and isinstance(keyword.value, ast.Constant)
        and isinstance(keyword.value.value, str)
    ]


def table() -> list[str]:
    """Rows of a Markdown table: code, class, whether a retry may help."""
    known = classes()
    rows = ["| code | class | a retry may help |", "|---|---|---|"]
    for code, names in sorted(codes().items()):
        helps = {"yes" if known[name].retryable else "no" for name in names}
        rows.append(f"| `{code}` | {', '.join(sorted(names))} | {' or '.join(sorted(helps))} |")
    return rows


if __name__ == "__main__":
    sys.stdout.write("\n".join([*table(), ""]))
