"""Manifests of a chart, by Helm's own engine, without a cluster or a helm command.

Runs in an environment of its own with `helm-sdkpy` (Python 3.12 or newer), see `__main__`. That
package installs and lints but does not print what it renders, so each template of a copy is
followed by one that hands its text to `fail`, which a lint writes to its log instead of ending.
What it cannot show: what only a cluster knows (`lookup`, versions of its API).
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml
from helm_sdkpy import Configuration, Lint  # type: ignore[import-not-found]

LOGGED = re.compile(r'INFO funcMap fail message=("(?:[^"\\]|\\.)*")')
TELL = """{{- $_ := set $.Release "Name" "%(release)s" -}}
{{- $_ := set $.Release "Namespace" "%(namespace)s" -}}
{{- fail (printf "%(mark)s%%s" (include (print $.Template.BasePath "/%(name)s") .)) -}}
"""
MARK = "rendered %s\n"
WARNING = 2


def merged(under: Any, over: Any) -> Any:
    """Helm's rule for values: maps are merged, everything else is replaced."""
    if isinstance(under, dict) and isinstance(over, dict):
        return under | {key: merged(under.get(key), value) for key, value in over.items()}
    return over


def linted(chart: Path) -> tuple[dict[str, Any], str]:
    """What Helm's lint answers, and what it logged."""
    with tempfile.TemporaryFile() as log:
        kept = os.dup(2)
        os.dup2(log.fileno(), 2)
        try:
            answer = asyncio.run(Lint(Configuration()).run(str(chart)))
        finally:
            os.dup2(kept, 2)
            os.close(kept)
        log.seek(0)
        return dict(answer), log.read().decode()


def render(chart: Path, values: Path | None, release: str, namespace: str) -> dict[str, Any]:
    """Texts by template, and what the lint found wrong.

    Args:
        chart: the chart's folder.
        values: laid over the chart's own; None: those alone.
        release: name of the release.
        namespace: that it is installed into.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / chart.name
        shutil.copytree(chart, copy)
        own = yaml.safe_load((copy / "values.yaml").read_text())
        over = yaml.safe_load(values.read_text()) if values else {}
        whole = merged(own, over)
        (copy / "values.yaml").write_text(yaml.safe_dump(whole))
        answer, log = linted(copy)
        wrong = [
            f"{each['Path']}: refused (the library keeps Helm's reason; `helm lint` says it)"
            for each in answer["Messages"] or ()
            if each["Severity"] >= WARNING
        ]
        names = sorted(each.name for each in (copy / "templates").glob("*.yaml"))
        for name in names:
            given = {"release": release, "namespace": namespace, "name": name}
            given["mark"] = (MARK % name).replace("\n", "\\n")
            (copy / "templates" / f"zz-{name}").write_text(TELL % given)
        _answer, log = linted(copy)
        told = [json.loads(text) for text in LOGGED.findall(log)]
        texts = {name: text.removeprefix(MARK % name) for name in names
                 for text in told if text.startswith(MARK % name)}  # fmt: skip
    return {"wrong": wrong, "texts": texts, "values": whole, "log": "" if texts else log}


def main() -> None:
    """Arguments: chart, release, namespace, files of values; JSON by the stem of their names."""
    chart, release, namespace, *files = sys.argv[1:]
    sets: dict[str, Path | None] = {"defaults": None}
    sets |= {Path(name).stem.removesuffix("-values"): Path(name) for name in files}
    print(json.dumps({
        name: render(Path(chart), values, release, namespace) for name, values in sets.items()
    }))  # fmt: skip


if __name__ == "__main__":
    main()
