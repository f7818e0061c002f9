"""The model cache: which models are there, whether they are whole, and loading them.

Belongs here: reading prepared folders. What does not: filling them (`preparation`) and calculating
(`onnx_embedder`). The layout, one folder with a manifest for each model, is that of hub caches.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kb_resources.embed.golden import MIN_COSINE, check_golden, golden_cosines
from kb_resources.embed.identity import Embedder, ModelIdentity, TokenCounter
from kb_resources.embed.manifest import (
    ENDPOINT_FORM,
    HASHING_FORM,
    TOKENIZER_FILE,
    Manifest,
    changed_files,
    read_manifest,
)
from kb_resources.embed.registry import find_model, known_models
from kb_resources.errors import InputError, IntegrityError, NotFound

if TYPE_CHECKING:
    from kb_resources.embed.onnx_embedder import OnnxEmbedder
    from kb_resources.embed.remote import HttpTransport, RemoteEmbedder

MODEL_FILE = "model.onnx"
CANARY_FILE = "canary.json"
HEAD_FILE = "sparse_linear.pt"
_STARTUP_GOLDEN = 2


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What `verify` found.

    Attributes:
        name: the registry's name.
        model_id: identity of the prepared model.
        changed: files whose content is not what the manifest says.
        lowest_cosine: against the golden vectors; None where none are known or files changed.
        problem: why the model can't be used, a sentence; empty when it can.
    """

    name: str
    model_id: str
    changed: tuple[str, ...]
    lowest_cosine: float | None
    problem: str = ""

    @property
    def ok(self) -> bool:
        """Whether the model may be used."""
        return not self.problem

    def to_json(self) -> dict[str, object]:
        """The report as JSON-serialisable values."""
        return asdict(self) | {"ok": self.ok}

    def __str__(self) -> str:
        """One line for a person."""
        if self.problem:
            return f"{self.model_id}: {self.problem}"
        golden = "" if self.lowest_cosine is None else f", golden cosine {self.lowest_cosine:.4f}"
        return f"{self.model_id}: all files as made{golden}."


def model_folder(models_dir: Path, name: str) -> Path:
    """Where a model of the registry lies once prepared.

    Raises:
        NotFound: the registry has no such model.
    """
    return models_dir / find_model(name).name


def _prepared(models_dir: Path, name: str) -> tuple[Path, Manifest]:
    folder = models_dir / name
    try:
        manifest = read_manifest(folder)
    except NotFound:
        find_model(name)  # says so where the registry has no such model
        raise
    if manifest.name != name:
        raise IntegrityError(
            f"{folder} holds the model {manifest.name}.", next_step="Run `kb models prepare`."
        )
    return folder, manifest


def installed(models_dir: Path) -> list[Manifest]:
    """The prepared models whose manifest can be read, by name."""
    found = []
    for spec in known_models():
        try:
            found.append(read_manifest(models_dir / spec.name))
        except (NotFound, IntegrityError):
            continue
    return found


def verify(models_dir: Path, name: str, *, transport: HttpTransport | None = None) -> VerifyReport:
    """Read every byte of a prepared model and calculate its golden vectors.

    An endpoint is asked for its canaries instead.

    Args:
        models_dir: the cache.
        name: the registry's name.
        transport: what sends to an endpoint, with its API key; a plain one by default.

    Raises:
        NotFound: the model is unknown or not prepared.
        IntegrityError: its manifest can't be read.
        UnavailableError: the endpoint is away.
    """
    folder, manifest = _prepared(models_dir, name)
    model_id = manifest.identity.model_id
    changed = tuple(changed_files(folder, manifest))
    if changed:
        problem = f"Changed since they were made: {', '.join(changed)}."
        return VerifyReport(name, model_id, changed, None, problem)
    try:
        embedder = open_embedder(folder, manifest, threads=1, transport=transport)
        lowest = min(golden_cosines(embedder)) if manifest.from_package else None
    except IntegrityError as error:
        return VerifyReport(name, model_id, (), None, str(error))
    problem = ""
    if lowest is not None and not lowest >= MIN_COSINE:
        problem = f"The lowest golden cosine is {lowest:.4f}, needed are {MIN_COSINE}."
    return VerifyReport(name, model_id, (), lowest, problem)


def open_embedder(
    folder: Path,
    manifest: Manifest,
    *,
    threads: int = 0,
    transport: HttpTransport | None = None,
) -> Embedder:
    """Load a folder's files without judging them; an endpoint is asked for its canaries.

    Raises:
        IntegrityError: a file is missing or damaged, or another model answers at the endpoint.
        UnavailableError: the endpoint is away.
    """
    identity = manifest.identity
    if manifest.form == HASHING_FORM:
        from kb_resources.embed.hashing import HashingEmbedder

        return HashingEmbedder(manifest.dimensions)
    if manifest.form == ENDPOINT_FORM:
        from kb_resources.embed.remote import CanaryRecord, HttpTransport, RemoteEmbedder

        record = CanaryRecord.from_json((folder / CANARY_FILE).read_text(encoding="utf-8"))
        endpoint = manifest.endpoint
        remote = RemoteEmbedder(identity, endpoint, record, transport or HttpTransport())
        remote.check()
        return remote
    from kb_resources.embed.onnx_embedder import OnnxEmbedder
    from kb_resources.embed.session import OnnxSession
    from kb_resources.embed.tokens import ModelTokenizer

    tokenizer = ModelTokenizer.open(folder, identity)
    head = None
    if manifest.sparse_dimensions and (folder / HEAD_FILE).is_file():
        from kb_resources.embed.sparse import SparseHead

        head = SparseHead.read(folder / HEAD_FILE, manifest.dimensions)
    session = OnnxSession(folder / MODEL_FILE, manifest.pooling, sparse_head=head)
    return OnnxEmbedder(
        identity,
        session,
        tokenizer,
        threads=threads,
        sparse_dimensions=manifest.sparse_dimensions if session.sparse else 0,
    )


def load(
    models_dir: Path, name: str, threads: int = 0, *, transport: HttpTransport | None = None
) -> OnnxEmbedder | RemoteEmbedder:
    """Load a prepared model with weights; see `open_model`.

    Raises:
        InputError: the name stands for a method without weights.
    """
    from kb_resources.embed.onnx_embedder import OnnxEmbedder
    from kb_resources.embed.remote import RemoteEmbedder

    found = open_model(models_dir, name, threads, transport=transport)
    if isinstance(found, OnnxEmbedder | RemoteEmbedder):
        return found
    raise InputError(f"{name} is no model with weights.", next_step="Open it with open_model.")


def open_model(
    models_dir: Path, name: str, threads: int = 0, *, transport: HttpTransport | None = None
) -> Embedder:
    """Load whatever was prepared under a name.

    When it is returned, a local model has calculated two golden vectors, an endpoint has given
    its recorded canaries.

    Args:
        models_dir: the cache.
        name: the registry's name.
        threads: caller threads for bulk work; 0 takes the CPU quota.
        transport: what sends to an endpoint, with its API key; a plain one by default.

    Raises:
        NotFound: the model is unknown or not prepared.
        IntegrityError: a file is missing, damaged, or the model calculates something else.
        UnavailableError: the endpoint is away.
    """
    folder, manifest = _prepared(models_dir, name)
    embedder = open_embedder(folder, manifest, threads=threads, transport=transport)
    if manifest.from_package:
        check_golden(embedder, limit=_STARTUP_GOLDEN)
    return embedder


def identity_of(models_dir: Path, name: str) -> ModelIdentity:
    """The identity of a prepared model, without loading it.

    Raises:
        NotFound: the model is unknown or not prepared.
        IntegrityError: a file is missing or damaged.
    """
    return _prepared(models_dir, name)[1].identity


def load_token_counter(models_dir: Path, name: str) -> TokenCounter:
    """Load a prepared model's tokenizer alone, for counting.

    Raises:
        NotFound: the model is unknown or not prepared, or it is an endpoint that was taken into
            use without a tokenizer.
        IntegrityError: a file is missing or damaged.
    """
    folder, manifest = _prepared(models_dir, name)
    if manifest.form == HASHING_FORM:
        from kb_resources.embed.hashing import HashingEmbedder

        return HashingEmbedder(manifest.dimensions)
    from kb_resources.embed.tokens import ModelTokenizer
    from kb_resources.embed.unigram import VOCABULARY_FILE

    if not {TOKENIZER_FILE, VOCABULARY_FILE} & set(manifest.files):
        raise NotFound(
            f"The endpoint of {name} was taken into use without a tokenizer.",
            next_step="Prepare it again and name the folder of its tokenizer.json.",
        )
    return ModelTokenizer.open(folder, manifest.identity)
