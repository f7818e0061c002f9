"""`kb doctor`: what is wrong with this installation, and how to mend it."""

from __future__ import annotations

import os
from dataclasses import asdict

import click

from kb.cli.options import json_option
from kb.cli.output import dump, paragraph, say

_SIGNS = {"ok": "ok  ", "warning": "!   ", "problem": "FIX "}


@click.command()
@json_option
def doctor(as_json: bool) -> int:
    """Look for what operators get wrong most, and say how to mend it.

    Nothing is changed and nothing started. Exit code 1 when something does not work.
    """
    from kb.doctor import examine
    from kb_resources.settings import load_settings

    found = []
    for finding in examine(load_settings(), os.environ):
        found.append(finding)
        if not as_json:
            say(f"{_SIGNS[finding.level]} {finding.about}: {finding.found}")
            if finding.fix:
                say(paragraph(f"→ {finding.fix}", indent="     "))
    if as_json:
        dump([asdict(finding) for finding in found])
    problems = sum(finding.level == "problem" for finding in found)
    warnings = sum(finding.level == "warning" for finding in found)
    if not as_json:
        say(f"{problems} to mend, {warnings} to know." if problems or warnings else "All is well.")
    return 1 if problems else 0
