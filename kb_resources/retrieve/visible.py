"""What every reading call asks first: which scope, which audiences, is there anything to see.

Belongs here: the checks before SQL and the errors they end in. What does not: the rows themselves
(`store`). A thing that is hidden and a thing that is not there give the same error.
"""

from __future__ import annotations

from kb_resources.errors import NotFound
from kb_resources.model import Principal, validate_audience, validate_scope
from kb_resources.store.documents import no_scope


def readable_scope(scope: str | None, principal: Principal) -> str:
    """The scope's name, if the principal may use it.

    Raises:
        ScopeRequired: none was given.
        InputError: it is not a scope name.
        NotFound: the principal does not hold it.
    """
    name = validate_scope(scope)
    if principal.scopes is not None and name not in principal.scopes:
        raise no_scope(name)
    return name


def held_audiences(principal: Principal) -> list[str] | None:
    """Audience names for SQL; None is every audience (role `system` only)."""
    if "system" in principal.roles:
        return None
    return [validate_audience(name) for name in sorted(principal.audiences)]


def asked_id(text: str) -> str:
    """An id as Postgres can compare it: without NUL and lone surrogates, at most 500 characters."""
    return text[:500].replace("\0", "").encode("utf-8", "ignore").decode()


def no_passage(passage_id: str, scope: str) -> NotFound:
    """The error for a passage that does not show."""
    return NotFound(
        f"There is no passage {passage_id!r} in {scope!r}.",
        next_step="Search for it, or look with kb documents list.",
    )


def no_document(document_id: str, scope: str, version: int | None = None) -> NotFound:
    """The error for a document, or a version of it, that does not show."""
    which = f"version {version} of {document_id!r}" if version else f"document {document_id!r}"
    return NotFound(
        f"There is no readable {which} in {scope!r}.",
        next_step="Look with kb documents list, or kb documents history for its versions.",
    )
