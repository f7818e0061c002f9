"""`kb models`: the embedding model's files."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Literal

import click

from kb.cli.options import json_option
from kb.cli.output import dump, say, table
from kb_resources.settings import load_settings


@click.group()
def models() -> None:
    """Prepare, list and verify embedding models."""


@models.command()
@click.argument("name", required=False)
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    default=None,
    metavar="PATH",
    help="Take an ONNX export: model.onnx, its data files, tokenizer.json.",
)
@click.option(
    "--endpoint",
    "url",
    default=None,
    metavar="URL",
    help="Use a server; --folder then only lends its tokenizer.json.",
)
@click.option(
    "--dialect",
    type=click.Choice(["openai", "tei"]),
    default="openai",
    show_default=True,
    help="What the server speaks.",
)
@click.option("--served-as", default="", metavar="NAME", help="The model's name at the server.")
@click.option("--force", is_flag=True, help="Prepare it again even if it is ready.")
def prepare(
    name: str | None,
    folder: Path | None,
    url: str | None,
    dialect: str,
    served_as: str,
    force: bool,
) -> None:
    """Build or take over a model's files; the default one comes from an installed package."""
    from kb_resources import embed
    from kb_resources.compose_models import embedding_transport
    from kb_resources.embed.remote import Endpoint

    settings = load_settings()
    chosen = name or settings.model
    spoken: Literal["openai", "tei"] = "tei" if dialect == "tei" else "openai"
    made = embed.prepare(
        settings.models_path,
        chosen,
        source=folder,
        endpoint=Endpoint(spoken, url, served_as or chosen) if url else None,
        transport=embedding_transport(settings),
        force=force,
    )
    say(f"{made.identity.model_id} is ready: {made.identity.dimensions} dimensions.")
    say(f"Licence of the weights: {made.licence}.")


@models.command("list")
@json_option
def list_(as_json: bool) -> None:
    """Models that are known, and those that are ready."""
    from kb_resources import embed

    ready = {m.identity.name: m.identity for m in embed.installed(load_settings().models_path)}
    rows = [
        {
            "name": spec.name,
            "ready": spec.name in ready,
            "model_id": ready[spec.name].model_id if spec.name in ready else None,
            "dimensions": spec.dimensions,
            "licence": spec.licence,
        }
        for spec in embed.known_models()
    ]
    if as_json:
        dump(rows)
        return
    table(
        ["name", "ready", "dimensions", "licence", "identity"],
        [
            [r["name"], "yes" if r["ready"] else "no", r["dimensions"], r["licence"], r["model_id"]]
            for r in rows
        ],
    )


@models.command()
@click.argument("name", required=False)
@json_option
def verify(name: str | None, as_json: bool) -> int:
    """Check the files' hashes and that the model still gives its known vectors."""
    from kb_resources import embed
    from kb_resources.compose_models import embedding_transport

    settings = load_settings()
    report = embed.verify(
        settings.models_path, name or settings.model, transport=embedding_transport(settings)
    )
    if as_json:
        dump({"ok": report.ok, **asdict(report)})
    elif report.ok:
        say(f"{report.model_id} is whole; lowest golden cosine {report.lowest_cosine}.")
    else:
        say(report.problem)
    return 0 if report.ok else 1
