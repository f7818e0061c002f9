"""Error codes are flat and stable: one name each, one class each, in every door the same."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

_SPEC = importlib.util.spec_from_file_location(
    "error_codes", Path(__file__).parents[2] / "tools" / "error_codes.py"
)
assert _SPEC is not None
assert _SPEC.loader is not None
error_codes = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(error_codes)


@pytest.mark.requirement("O-59")
def test_every_code_is_a_plain_name_of_exactly_one_class() -> None:
    found = error_codes.codes()
    assert len(found) > 40
    assert [code for code in found if not re.fullmatch(r"[a-z][a-z0-9_]*", code)] == []
    assert {code: names for code, names in found.items() if len(names) != 1} == {}
    assert len(error_codes.table()) == len(found) + 2
