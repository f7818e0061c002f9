"""Stage 7 as an asset: the retrieval table, published in one transaction."""

from __future__ import annotations

import dagster as dg

from kb_assets.stage_op import StageAsset, stage_op
from kb_resources.model import Stage

COLUMNS = dg.TableSchema(
    columns=[
        dg.TableColumn("passage_id", "text", description="Stable id: document, place and content."),
        dg.TableColumn("version_key", "bigint", description="The version it is a slice of."),
        dg.TableColumn("ordinal", "int", description="Position within the version, from 0."),
        dg.TableColumn("text", "text", description="Exactly the body's bytes of its span."),
        dg.TableColumn("context", "text", description="Title and headings; never cited."),
        dg.TableColumn("heading_path", "text[]", description="Headings above it, root first."),
        dg.TableColumn("page", "int", description="Page from 1, empty where there are none."),
        dg.TableColumn("byte_start", "int", description="In the body, UTF-8 bytes."),
        dg.TableColumn("byte_end", "int", description="Exclusive."),
        dg.TableColumn("char_start", "int", description="In the page text, code points."),
        dg.TableColumn("char_end", "int", description="Exclusive."),
        dg.TableColumn("locator", "text", description="Place in the document's own terms."),
        dg.TableColumn("token_count", "int", description="With context, prefix and specials."),
        dg.TableColumn("language", "text", description="Of the version; und where untold."),
    ]
)

ASSET = StageAsset(
    stage=Stage.INDEX,
    description=(
        "The retrieval table `kb.passage` with its lexical rows and vectors. One transaction "
        "closes the version that held before and publishes this one; a trigger refuses rows "
        "without a clean verdict for these bytes, whoever writes them."
    ),
    kinds=frozenset({"postgres", "pgvector"}),
    metadata={"dagster/relation_identifier": "kb.passage", "dagster/column_schema": COLUMNS},
)

index = stage_op(ASSET)
