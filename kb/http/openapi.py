"""`python -m kb.http.openapi`: write the API's description to docs/reference/openapi.json.

Belongs here: the description as committed. What does not: routes, which it is made from. A test
holds the file equal to what the server says; see https://spec.openapis.org/oas/v3.1.0.
"""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from pathlib import Path

from kb.http.app import create_app
from kb.http.services import Services

DOCUMENT = Path(__file__).parents[2] / "docs" / "reference" / "openapi.json"


def schema_text() -> str:
    """The description as JSON text; nothing is opened for it."""
    return json.dumps(create_app(_nothing).openapi(), ensure_ascii=False, indent=1) + "\n"


def _nothing() -> AbstractContextManager[Services]:
    raise NotImplementedError("an application that only describes itself does not start")


def main() -> None:
    """Write the file."""
    DOCUMENT.write_text(schema_text(), "utf-8")


if __name__ == "__main__":
    main()
