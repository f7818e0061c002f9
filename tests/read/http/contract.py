"""What callers of version 1 rely on, taken from the API's description; and what would break them.

`python -m tests.read.http.contract` writes `contract_v1.json` anew, which is right after something
was added. What was in it before must stay: a field, its types, a route, a parameter that may be
left out. Belongs here: comparing. See https://semver.org and RFC 9745 on deprecation.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("contract_v1.json")
Contract = dict[str, dict[str, Any]]


def contract(document: Mapping[str, Any]) -> Contract:
    """Schemas and routes of an OpenAPI document, as far as callers rely on them."""
    return {
        "schemas": {
            name: {
                "fields": {
                    field: _types(shape) for field, shape in schema.get("properties", {}).items()
                },
                "required": sorted(schema.get("required", ())),
                "closed": schema.get("additionalProperties") is False,
            }
            for name, schema in sorted(document["components"]["schemas"].items())
        },
        "routes": {
            f"{method.upper()} {path}": {
                "needs": sorted(
                    parameter["name"]
                    for parameter in operation.get("parameters", ())
                    if parameter.get("required")
                ),
                "takes": sorted(p["name"] for p in operation.get("parameters", ())),
                "gives": sorted(code for code in operation["responses"] if code.startswith("2")),
            }
            for path, operations in sorted(document["paths"].items())
            for method, operation in sorted(operations.items())
        },
    }


def breaks(old: Contract, new: Contract) -> list[str]:
    """Sentences about what callers of `old` would stumble over; empty: nothing."""
    return [*_broken_schemas(old["schemas"], new["schemas"]), *_broken_routes(old, new)]


def _broken_schemas(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for name, was in old.items():
        now = new.get(name)
        if now is None:
            yield f"{name} is gone"
            continue
        for field, types in was["fields"].items():
            if field not in now["fields"]:
                yield f"{name}.{field} is gone"
            elif now["fields"][field] != types:
                yield f"{name}.{field} was {types}, is {now['fields'][field]}"
        is_input = was["closed"]
        if is_input and (more := set(now["required"]) - set(was["required"])):
            yield f"{name} demands {', '.join(sorted(more))}"
        if not is_input and (less := set(was["required"]) - set(now["required"])):
            yield f"{name} may leave out {', '.join(sorted(less))}"


def _broken_routes(old: Contract, new: Contract) -> Iterator[str]:
    for name, was in old["routes"].items():
        now = new["routes"].get(name)
        if now is None:
            yield f"{name} is gone"
            continue
        if more := set(now["needs"]) - set(was["needs"]):
            yield f"{name} needs {', '.join(sorted(more))}"
        if less := set(was["takes"]) - set(now["takes"]):
            yield f"{name} takes no {', '.join(sorted(less))}"
        if now["gives"] != was["gives"]:
            yield f"{name} gave {was['gives']}, gives {now['gives']}"


def _types(shape: Mapping[str, Any]) -> list[str]:
    if "anyOf" in shape:
        return sorted({found for one in shape["anyOf"] for found in _types(one)})
    if "$ref" in shape:
        return [str(shape["$ref"]).rpartition("/")[2]]
    if shape.get("type") == "array":
        return [f"list of {', '.join(_types(shape.get('items', {})))}"]
    return [str(shape.get("type", "any"))]


if __name__ == "__main__":
    from kb.http.openapi import schema_text

    FILE.write_text(json.dumps(contract(json.loads(schema_text())), indent=1) + "\n")
