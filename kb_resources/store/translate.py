"""One place that turns a psycopg error into the project's error tree.

Belongs here: the mapping of SQLSTATEs. What does not: retrying, which the caller decides by
`KbError.retryable`. Codes: https://www.postgresql.org/docs/current/errcodes-appendix.html;
class KB is ours, raised by the migrations.
"""

from __future__ import annotations

import psycopg

from kb_resources.errors import (
    ConflictError,
    InputError,
    IntegrityError,
    KbError,
    NotFound,
    PolicyError,
    UnavailableError,
)

_Rule = tuple[type[KbError], str, str]

# SQLSTATE or its two-character class: error class, code, what to do. Longest match wins.
_RULES: dict[str, _Rule] = {
    "KB001": (PolicyError, "gate", "See the document's verdict and reason, then scan it again."),
    "KB002": (PolicyError, "append_only", "Write a new entry instead of changing an old one."),
    "KB003": (NotFound, "not_found", ""),
    "KB004": (ConflictError, "not_ready", "Run the stages before this one, then try again."),
    "KB005": (PolicyError, "last_admin", ""),
    "KB007": (InputError, "embedding_invalid", "Embed with the model that is named."),
    "KB": (PolicyError, "refused", ""),
    "08": (UnavailableError, "unavailable", "Check that the database runs, then try again."),
    "22": (InputError, "invalid_input", "Correct the value and call again."),
    "23P01": (ConflictError, "conflict", "Look at the current state, then try again."),
    "23": (IntegrityError, "integrity", "Look at the rows the message names."),
    "25P03": (UnavailableError, "timeout", "Try again; the transaction was left idle too long."),
    "28": (UnavailableError, "not_admitted", "Check user and password in the database URL."),
    "3D000": (UnavailableError, "no_database", "Create the database or correct its URL."),
    "40": (ConflictError, "conflict", "Try again; another transaction was in the way."),
    "42501": (PolicyError, "no_right", "Use the role that holds this right."),
    "42P01": (IntegrityError, "schema_missing", "Run `kb db migrate`."),
    "3F000": (IntegrityError, "schema_missing", "Run `kb db migrate`."),
    "53100": (UnavailableError, "disk_full", "Free space on the database's disk, then try again."),
    "53300": (UnavailableError, "too_many_connections", "Close other clients, then try again."),
    "53": (UnavailableError, "out_of_resources", "Free memory or connections, then try again."),
    "55P03": (ConflictError, "locked", "Try again; somebody else holds the lock."),
    "55": (ConflictError, "conflict", "Try again; the object is in use."),
    "57014": (UnavailableError, "timeout", "Try again, or allow the statement more time."),
    "57": (UnavailableError, "unavailable", "Wait until the database is up, then try again."),
    "58": (UnavailableError, "server_disk", "Look at the server's disk and its log."),
    "XX": (
        IntegrityError,
        "server_damage",
        "Look at the server's log; restore if data is damaged.",
    ),
}


def translate(error: psycopg.Error, *, doing: str = "") -> KbError:
    """The error of our tree that says what a psycopg error means.

    Args:
        error: as psycopg raised it; keep it as the cause (`raise translate(e) from e`).
        doing: what was tried ("migration 0002_passages"), put before the server's message.

    Returns:
        An instance to raise. Our own SQLSTATEs bring the server's message and hint; errors that
        only a programming mistake can cause (bad SQL) become a plain KbError.
    """
    message = (error.diag.message_primary or str(error)).strip() or type(error).__name__
    if doing:
        message = f"{doing[0].upper()}{doing[1:]} failed: {message}"
    return _built(_rule(error), error.sqlstate or "", message, error.diag.message_hint or "")


def reported(sqlstate: str, message: str, hint: str) -> KbError:
    """The error for what a statement reported as a row instead of failing by it."""
    return _built(_rule_of(sqlstate), sqlstate, message, hint)


def cannot_connect(error: psycopg.Error) -> KbError:
    """The error of our tree for a connection that was not made.

    Of an address that cannot be read nothing is repeated: it holds a password.
    """
    if isinstance(error, psycopg.ProgrammingError):
        return InputError(
            "The database's address cannot be read.",
            next_step="Write postgresql://user:password@host/database in KB_DATABASE_URL, "
            "KB_PIPELINE_DATABASE_URL or KB_APP_DATABASE_URL.",
        )
    return translate(error, doing="connecting to the database")


def _rule(error: psycopg.Error) -> _Rule:
    state = error.sqlstate or ""
    if state == "0A000" and "cached plan" in (error.diag.message_primary or ""):
        return ConflictError, "migrated", "Try again; the database was migrated meanwhile."
    if not state and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return _RULES["08"]  # refused, reset or closed: no server was left to send a SQLSTATE
    return _rule_of(state)


def _rule_of(sqlstate: str) -> _Rule:
    for key in (sqlstate, sqlstate[:2]):
        if key in _RULES:
            return _RULES[key]
    return KbError, "database_error", "This is a defect; report the message."


def _built(rule: _Rule, sqlstate: str, message: str, hint: str) -> KbError:
    kind, code, next_step = rule
    if sqlstate.startswith("KB"):
        next_step = hint or next_step
    return kind(_sentence(message), next_step=next_step, code=code)


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."
