"""Prepared models by identity, also those that another build took the place of.

Belongs here: finding a folder by `name@fingerprint` and loading it. What does not: filling the
cache (`preparation`). A build that is replaced stays beside the new one, as `name@fingerprint`,
since scopes may still be searched by it; blobs of hub caches are kept by content the same way.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from kb_resources.embed.cache import open_embedder
from kb_resources.embed.golden import check_golden
from kb_resources.embed.identity import Embedder, ModelIdentity
from kb_resources.embed.manifest import Manifest, read_manifest
from kb_resources.errors import IntegrityError, NotFound, UnavailableError

if TYPE_CHECKING:
    from kb_resources.embed.remote import HttpTransport

_STARTUP_GOLDEN = 2


def kept_folder(models_dir: Path, model_id: str) -> Path:
    """Where a build lies that is no longer the current one of its name."""
    return models_dir / model_id


def find_build(models_dir: Path, model_id: str) -> tuple[Path, Manifest]:
    """The folder of a build and its manifest.

    Raises:
        UnavailableError: this machine has no such build (`model_missing`).
    """
    name = model_id.partition("@")[0]
    for folder in (models_dir / name, kept_folder(models_dir, model_id)):
        try:
            manifest = read_manifest(folder)
        except (NotFound, IntegrityError):
            continue
        if manifest.identity.model_id == model_id:
            return folder, manifest
    raise UnavailableError(
        f"The embedding model {model_id} is not on this machine.",
        next_step=f"Prepare it with kb models prepare {name}, or re-embed with another one.",
        code="model_missing",
    )


def identity_of_build(models_dir: Path, model_id: str) -> ModelIdentity:
    """The identity of a build on this machine, without loading it; see `find_build`."""
    return find_build(models_dir, model_id)[1].identity


def open_build(
    models_dir: Path, model_id: str, threads: int = 0, *, transport: HttpTransport | None = None
) -> Embedder:
    """Load a build by its identity; see `cache.open_model`.

    Raises:
        UnavailableError: this machine has no such build, or its endpoint is away.
        IntegrityError: a file is missing, damaged, or the model calculates something else.
    """
    folder, manifest = find_build(models_dir, model_id)
    embedder = open_embedder(folder, manifest, threads=threads, transport=transport)
    if manifest.from_package:
        check_golden(embedder, limit=_STARTUP_GOLDEN)
    return embedder


def keep_build(folder: Path, old: Manifest) -> None:
    """Move a build out of the way of the next one of its name.

    Args:
        folder: where it lies.
        old: its manifest.
    """
    kept = kept_folder(folder.parent, old.identity.model_id)
    if kept.exists():
        shutil.rmtree(folder)
    else:
        folder.rename(kept)
