"""What a fuzzer makes of the published schema: no answer is ever a 5xx, and each has its shape."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kb_resources.settings import Settings
from tests.read.http.conftest import make_key, serving

CHECKS = "not_a_server_error,response_schema_conformance,content_type_conformance"


def fuzz(settings: Settings, folder: Path, *options: str) -> str:
    """Run schemathesis as an administrator of every scope; what it found."""
    with serving(settings, run_worker=False) as own:
        make_key(settings, "admin", scopes=None)
        key = make_key(settings, "admin", scopes=None)
        command = [
            str(Path(sys.executable).with_name("schemathesis")),
            "--no-color",
            "run",
            f"{own.client.base}/api/v1/openapi.json",
            "--header",
            f"Authorization: Bearer {key}",
            "--generation-with-security-parameters",
            "false",
            "--checks",
            CHECKS,
            "--warnings",
            "off",
            "--continue-on-failure",
            "--no-shrink",
            *options,
        ]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=folder, timeout=3000
        )
    return "" if done.returncode == 0 else f"{done.stdout[-6000:]}\n{done.stderr[-2000:]}"


@pytest.mark.requirement("P-69")
def test_no_input_makes_the_server_break(settings: Settings, tmp_path: Path) -> None:
    found = fuzz(
        settings, tmp_path, "--max-examples", "4", "--phases", "fuzzing", "--seed", "20260601"
    )
    assert not found, found


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_no_input_makes_the_server_break_long(settings: Settings, tmp_path: Path) -> None:
    found = fuzz(settings, tmp_path, "--max-examples", "150")
    assert not found, found
