"""The tables between stages as pandera schemas: chunks, staged vectors, published passages.

Belongs here: columns, their types and ranges. The database holds the same invariants as
constraints; these restate them in words for operators. pandera and polars are imported inside the
functions, because loading them costs seconds that a sensor or the code location must not pay.
See https://pandera.readthedocs.io/en/stable/polars.html.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandera.polars as pa

NORM_TOLERANCE = 2e-3
"""Distance of a half-precision vector's norm from 1 that rounding explains."""


@cache
def chunks() -> pa.DataFrameSchema:
    """One row per chunk of a group of documents."""
    import pandera.polars as pa
    import polars as pl

    return pa.DataFrameSchema(
        {
            "document": pa.Column(pl.String),
            "ordinal": pa.Column(pl.Int64, pa.Check.ge(0)),
            "passage_id": pa.Column(pl.String, pa.Check.str_length(min_value=1)),
            "page": pa.Column(pl.Int64, pa.Check.ge(1), nullable=True),
            "byte_start": pa.Column(pl.Int64, pa.Check.ge(0)),
            "byte_length": pa.Column(pl.Int64, pa.Check.gt(0)),
            "char_start": pa.Column(pl.Int64, pa.Check.ge(0)),
            "char_length": pa.Column(pl.Int64, pa.Check.gt(0)),
            "token_count": pa.Column(pl.Int64, pa.Check.gt(0)),
            "content_hash": pa.Column(pl.String, pa.Check.str_matches(r"^[0-9a-f]{64}$")),
            "embed_hash": pa.Column(pl.String, pa.Check.str_matches(r"^[0-9a-f]{64}$")),
        },
        unique=["document", "passage_id"],
        strict=True,
    )


@cache
def vectors() -> pa.DataFrameSchema:
    """One row per document: its staged vectors, counted and measured by the database."""
    import pandera.polars as pa
    import polars as pl

    return pa.DataFrameSchema(
        {
            "document": pa.Column(pl.String, unique=True),
            "missing": pa.Column(pl.Int64, pa.Check.eq(0)),
            "doubled": pa.Column(pl.Int64, pa.Check.eq(0)),
            "models": pa.Column(pl.Int64, pa.Check.le(1)),
            "worst_norm_error": pa.Column(pl.Float64, pa.Check.le(NORM_TOLERANCE)),
        },
        strict=True,
    )


@cache
def passages() -> pa.DataFrameSchema:
    """One row per document: what the retrieval tables hold of its newest version."""
    import pandera.polars as pa
    import polars as pl

    return pa.DataFrameSchema(
        {
            "document": pa.Column(pl.String, unique=True),
            "without_lexical_row": pa.Column(pl.Int64, pa.Check.eq(0)),
            "without_vector": pa.Column(pl.Int64, pa.Check.eq(0)),
            "models": pa.Column(pl.Int64, pa.Check.le(1)),
            "worst_norm_error": pa.Column(pl.Float64, pa.Check.le(NORM_TOLERANCE)),
        },
        strict=True,
    )


def problems_by_document(
    schema: pa.DataFrameSchema, rows: Sequence[Mapping[str, Any]]
) -> dict[str, list[dict[str, str]]]:
    """Validate rows and say which documents break the schema, and how.

    Args:
        schema: one of this module.
        rows: dicts with the schema's columns, `document` among them.

    Returns:
        Problem rows (`what`, `where`) by document; a document without any is absent.
    """
    import polars as pl
    from pandera.errors import SchemaErrors

    if not rows:
        return {}
    types = {name: column.dtype.type for name, column in schema.columns.items()}
    frame = pl.DataFrame([dict(row) for row in rows], schema=types)
    try:
        schema.validate(frame, lazy=True)
    except SchemaErrors as errors:
        found: dict[str, list[dict[str, str]]] = {}
        for failure in errors.failure_cases.iter_rows(named=True):
            row = rows[failure["index"]] if failure["index"] is not None else {}
            what = (
                f"{failure['column']}: {failure['failure_case']} breaks {failure['check']}"
                if failure["column"]
                else str(failure["check"])
            )
            where = f"row {row['ordinal']}" if "ordinal" in row else "document"
            found.setdefault(str(row.get("document", "")), []).append(
                {"what": what, "where": where}
            )
        return found
    return {}
