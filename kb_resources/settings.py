"""Every `KB_*` variable, validated once at the edge.

Belongs here: reading the environment. What does not: deciding anything; capabilities take plain
arguments, only `compose`, `bindings` and `kb` read these settings. A plain dataclass instead of
pydantic-settings, whose import alone costs a third of what `kb search` needs to start
(docs/adr/0004-settings.md).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any

from kb_resources import setting_values as values
from kb_resources.errors import InputError

LANGUAGES = ("en", "de", "bg", "ru", "sr", "mk", "hr", "sl")
OCR_LANGUAGES = ("eng", "deu", "hrv", "slv", "srp_latn", "rus", "bul", "srp", "mkd")
PREFIX = "KB_"


def _default_home() -> Path:
    import platformdirs

    return Path(platformdirs.user_data_dir("kb", appauthor=False))


def _setting(
    default: Any,
    description: str,
    read: Callable[[str], Any] = str,
    *,
    make: Any = None,
    shown: bool = True,
) -> Any:
    metadata = {"description": description, "read": read, "secret": not shown}
    if make is not None:
        return field(default_factory=make, metadata=metadata)
    return field(default=default, metadata=metadata, repr=shown)


_secret = partial(_setting, shown=False)
"""A setting that is or may hold a key or password: it is left out of what is printed."""


def _integer(default: int, description: str, low: int, high: int = 2**53) -> Any:
    return _setting(default, description, partial(values.number, kind=int, low=low, high=high))


@dataclass(frozen=True, slots=True)
class Settings:
    """Configuration of one installation; each field is the variable `KB_<NAME>`."""

    home: Path = _setting(None, "Folder of all local data.", values.path, make=_default_home)
    database_url: str = _secret("", "Your own Postgres (owner role); empty: embedded.")
    pipeline_database_url: str = _secret(
        "", "Connection of the pipeline role; empty: the owner's with SET ROLE."
    )
    app_database_url: str = _secret(
        "", "Connection of the reading role; empty: the owner's with SET ROLE."
    )
    dagster_database_url: str = _secret("", "Dagster's own storage; empty: embedded.")
    dagster_keep_days: int = _integer(
        30, "Days after which Dagster's logs and superseded events are deleted.", 1, 36_500
    )
    alert_url: str = _secret(
        "", "Webhook told of each failed run; empty: none.", values.web_address
    )
    alert_smtp_url: str = _secret(
        "",
        "Mail server told of each failed run: smtps:// or smtp+starttls://user:password@host:port.",
        values.mail_server,
    )
    alert_from: str = _setting("", "Sender of those mails; empty: the first of KB_ALERT_TO.")
    alert_to: tuple[str, ...] = _setting(
        (), "Who gets those mails, separated by commas.", values.mailboxes
    )
    pg_user: str = _setting("", "Account of the embedded server when run as root.")
    blob_url: str = _secret("", "Where source bytes are kept; empty: KB_HOME/blobs.")
    export_git: Path | None = _setting(
        None,
        "Git repository that each batch is committed to; while set, nothing is erased.",
        values.path,
    )
    models_dir: Path | None = _setting(None, "Model cache; default KB_HOME/models.", values.path)
    model: str = _setting("multilingual-e5-small", "Embedding model's name.")
    reranker: Path | None = _setting(
        None, "Folder of a cross-encoder in ONNX that orders hits; empty: none.", values.path
    )
    rerank_timeout_s: float = _setting(
        1.0,
        "Longest wait in seconds for it; then the search keeps its own order.",
        partial(values.number, kind=float, low=0.05, high=60),
    )
    rerank_candidates: int = _integer(30, "Candidates of a search that it reads.", 1, 100)
    synonyms: Path | None = _setting(
        None, "TOML file of synonyms that questions are also asked with; empty: none.", values.path
    )
    languages: tuple[str, ...] = _setting(
        LANGUAGES, "Languages new scopes accept, separated by commas.", values.languages
    )
    chunk_tokens: int = _integer(400, "Passage limit in tokens.", 50, 8192)
    max_chunks: int = _integer(10_000, "Chunks of one document at most.", 1, 1_000_000)
    max_bytes: int = _integer(50 * 2**20, "Largest source in bytes.", 1)
    parse_memory_bytes: int = _integer(
        1536 * 2**20, "Address space of a parsing child in bytes.", 2**28
    )
    parse_timeout_s: float = _setting(
        180.0,
        "Wall time of one parse in seconds.",
        partial(values.number, kind=float, low=0.1, high=86400),
    )
    ocr: bool = _setting(
        True, "Read pictures of text with Tesseract where installed: yes, no.", values.yes
    )
    ocr_languages: tuple[str, ...] = _setting(
        OCR_LANGUAGES, "Tesseract packs to choose from, separated by commas.", values.packs
    )
    ocr_timeout_s: float = _setting(
        1800.0,
        "Time for text recognition of one document in seconds.",
        partial(values.number, kind=float, low=1, high=86400),
    )
    docling_url: str = _setting(
        "",
        "docling-serve that reads PDFs and pictures; empty: they are read here.",
        values.web_address,
    )
    docling_key: str = _secret("", "API key of KB_DOCLING_URL.")
    docling_timeout_s: float = _setting(
        900.0,
        "Longest wait in seconds for one document at KB_DOCLING_URL.",
        partial(values.number, kind=float, low=1, high=86400),
    )
    docling_models: bool = _setting(
        False, "Read PDFs with docling's own models (extra docling-full): yes, no.", values.yes
    )
    parse_workers: int = _integer(1, "Parsing children kept warm.", 1, 64)
    reembed_per_night: int = _integer(
        5000, "Documents that get vectors of another model in one night, at most.", 1
    )
    prices: tuple[str, ...] = _setting(
        (),
        "Prices of models: MODEL=IN or MODEL=IN/OUT for a million tokens, cpu=PRICE for an hour of "
        "computing, separated by commas.",
        values.model_prices,
    )
    currency: str = _setting("EUR", "Currency of KB_PRICES.", values.currency)
    traces: bool = _setting(
        False, "Make spans for the OpenTelemetry agent that runs the process: yes, no.", values.yes
    )
    embed_threads: int = _integer(0, "Embedding threads; 0: the CPU quota.", 0, 256)
    fetch_allow_hosts: tuple[str, ...] = _setting(
        (),
        "Hosts that may lead to private networks, as host or host:port; empty: none.",
        values.hosts,
    )
    fetch_https_only: bool = _setting(
        False, "Whether plain http is refused: yes or no.", values.yes
    )
    fetch_timeout_s: float = _setting(
        180.0,
        "Longest time in seconds of one fetch of a web address.",
        partial(values.number, kind=float, low=0.1, high=3600),
    )
    fetch_delay_s: float = _setting(
        1.0,
        "Least seconds between two fetches from one host.",
        partial(values.number, kind=float, low=0, high=3600),
    )
    fetch_ca_file: str = _setting("", "PEM file of your own certificate authority.")
    secret: str = _secret("", "Secret of the HTTP side; empty: the file KB_HOME/secret.")
    public_url: str = _setting("", "Address people reach `kb serve` at, for sign-in redirects.")
    oidc_issuer: str = _setting("", "Issuer URL of the identity provider; empty: keys only.")
    oidc_client_id: str = _setting("", "Client id at the identity provider.")
    oidc_client_secret: str = _secret("", "Client secret, if the provider wants one.")
    roles_file: Path | None = _setting(
        None, "Feed of members and roles as JSON; empty: the table of members.", values.path
    )
    permission_keys: tuple[str, ...] = _setting(
        ("read=ai.read", "create=ai.create", "admin=ai.admin"),
        "What the feed calls the permissions read, create and admin, separated by commas.",
        values.permission_keys,
    )
    roles_max_age_s: float = _setting(
        60.0,
        "Age in seconds from which the feed is stale.",
        partial(values.number, kind=float, low=1, high=86400),
    )
    log_level: str = _setting("INFO", "Least level that `kb serve` logs.", values.level)
    log_format: str = _setting("json", "Form of a log line: json or text.", values.log_format)
    log_key: str = _secret("", "Key of the question log in hex; empty: KB_HOME/question.key.")
    scan_opinion_url: str = _setting(
        "",
        "Chat endpoint asked about clean documents (OpenAI-compatible); empty: none is.",
        values.web_address,
    )
    scan_opinion_model: str = _setting("", "Model asked at KB_SCAN_OPINION_URL.")
    scan_opinion_key: str = _secret("", "API key of KB_SCAN_OPINION_URL.")
    scan_opinion_timeout_s: float = _setting(
        15.0,
        "Longest wait in seconds for one opinion; then the rules decide alone.",
        partial(values.number, kind=float, low=0.1, high=300),
    )
    convert: bool = _setting(
        False,
        "Have the model at KB_GENERATE_URL write bodies as clean Markdown: yes, no.",
        values.yes,
    )
    convert_files: bool = _setting(
        True, "Send it PDFs of up to 20 MiB as files, else their text: yes, no.", values.yes
    )
    enrich: bool = _setting(
        False, "Have the model at KB_GENERATE_URL summarise sections: yes, no.", values.yes
    )
    enrich_calls: int = _integer(
        200, "Sections of one document that it is asked about, at most.", 1
    )
    generate_url: str = _setting(
        "", "Chat endpoint of KB_CONVERT and KB_ENRICH (OpenAI-compatible).", values.web_address
    )
    generate_model: str = _setting("", "Model asked at KB_GENERATE_URL.")
    generate_key: str = _secret("", "API key of KB_GENERATE_URL.")
    generate_timeout_s: float = _setting(
        300.0,
        "Longest wait in seconds for one reply of KB_GENERATE_URL, retries included.",
        partial(values.number, kind=float, low=0.1, high=3600),
    )
    generate_reply_tokens: int = _integer(
        16_000, "Longest reply of KB_GENERATE_URL in tokens.", 256, 1_000_000
    )
    generate_hosting: str = _setting(
        "auto",
        "Whose machine KB_GENERATE_URL is: self_hosted, external, or auto (by address).",
        values.hosting,
    )
    answer_url: str = _setting(
        "", "Chat endpoint that phrases answers (OpenAI-compatible); empty: extracts."
    )
    answer_model: str = _setting("", "Model asked at KB_ANSWER_URL.")
    answer_key: str = _secret("", "API key of KB_ANSWER_URL.")
    answer_timeout_s: float = _setting(
        60.0,
        "Longest wait in seconds for one reply of KB_ANSWER_URL.",
        partial(values.number, kind=float, low=0.1, high=3600),
    )
    embed_keys: tuple[str, ...] = _secret(
        (),
        "API keys of embedding endpoints as host=key, separated by commas; percent-encoded.",
        values.by_host,
    )
    embed_headers: tuple[str, ...] = _secret(
        (),
        "Further headers to embedding endpoints as host=name:value, separated by commas.",
        values.headers_by_host,
    )
    embed_hosting: str = _setting(
        "auto",
        "Whose machine an embedding endpoint is: self_hosted, external, or auto (by address).",
        values.hosting,
    )
    docling_hosting: str = _setting(
        "auto",
        "Whose machine KB_DOCLING_URL is: self_hosted, external, or auto (by address).",
        values.hosting,
    )
    scan_opinion_hosting: str = _setting(
        "auto",
        "Whose machine KB_SCAN_OPINION_URL is: self_hosted, external, or auto (by address).",
        values.hosting,
    )
    answer_hosting: str = _setting(
        "auto",
        "Whose machine KB_ANSWER_URL is: self_hosted, external, or auto (by address).",
        values.hosting,
    )

    @property
    def models_path(self) -> Path:
        """Model cache folder."""
        return self.models_dir or self.home / "models"

    @property
    def blob_location(self) -> str:
        """Folder or fsspec URL of the blob store."""
        return self.blob_url or str(self.home / "blobs")


def described() -> list[tuple[str, str, str]]:
    """Variable, default and description of every setting, for the reference."""
    return [
        (PREFIX + item.name.upper(), _shown_default(item), item.metadata["description"])
        for item in fields(Settings)
    ]


def as_environment(settings: Settings) -> dict[str, str]:
    """Variables that `load_settings` reads to equal settings, for a child process."""
    found = {}
    for item in fields(Settings):
        value = getattr(settings, item.name)
        if isinstance(value, bool):
            value = "yes" if value else "no"
        text = ",".join(value) if isinstance(value, tuple) else "" if value is None else str(value)
        if text:
            found[PREFIX + item.name.upper()] = text
    return found


def _shown_default(item: Field[Any]) -> str:
    if item.name == "home":
        return "the user's data folder"
    value = item.default
    return ",".join(value) if isinstance(value, tuple) else "" if value is None else str(value)


def load_settings(environment: Mapping[str, str] | None = None, **overrides: Any) -> Settings:
    """Read the environment once; empty variables count as unset.

    Args:
        environment: default: the process's.
        **overrides: fields that are given instead of read.

    Raises:
        InputError: variables do not fit; the message names each.
    """
    given = os.environ if environment is None else environment
    found: dict[str, Any] = {}
    problems = []
    for item in fields(Settings):
        text = given.get(PREFIX + item.name.upper(), "")
        if not text or item.name in overrides:
            continue
        try:
            found[item.name] = item.metadata["read"](text)
        except ValueError as error:
            problems.append(f"{PREFIX}{item.name.upper()}: {error}")
    if problems:
        raise InputError(
            f"The settings do not fit: {'; '.join(problems)}.",
            next_step="Correct the variables named.",
        )
    return Settings(**found, **overrides)
