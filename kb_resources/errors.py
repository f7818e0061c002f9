"""One error tree for the whole project.

    KbError
    ├── InputError          the caller's input is wrong; change it and call again
    │   └── ScopeRequired   a call that names no scope
    ├── PolicyError         a rule forbids it (gate, audience, limit); a retry does not help
    ├── NotFound            no such scope, document, version or passage for this caller
    ├── ConflictError       somebody else holds or changed it; look again, then retry
    ├── UnavailableError    a service or resource is away (database, disk, endpoint); retry later
    └── IntegrityError      stored data contradicts itself or its digest; needs an operator

What belongs here: the classes and their stable codes. What does not: turning them into Dagster
failures (`bindings`), exit codes or HTTP problems (`kb`).
See RFC 9457 for the problem shape the codes end up in.
"""

from __future__ import annotations

from typing import ClassVar


class KbError(Exception):
    """Base of every error this project raises on purpose.

    Attributes:
        code: stable identifier, safe to match on.
        retryable: whether the same call may succeed later without a change.
        next_step: one sentence that says what to do, shown to the user.
    """

    code: ClassVar[str] = "kb_error"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, next_step: str = "", code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.next_step = next_step
        if code is not None:
            self.code = code  # type: ignore[misc]

    def __str__(self) -> str:
        return f"{self.message} {self.next_step}".strip()


class InputError(KbError):
    """The caller's input is malformed or out of range."""

    code = "invalid_input"


class ScopeRequired(InputError):
    """A call came without a scope; it is refused, never widened."""

    code = "scope_required"


class PolicyError(KbError):
    """A rule forbids the action: the gate, an audience, a limit."""

    code = "refused"


class NotFound(KbError):
    """The thing does not exist for this caller (which may not tell it from a hidden one)."""

    code = "not_found"


class ConflictError(KbError):
    """Somebody else changed or holds the thing meanwhile."""

    code = "conflict"
    retryable = True


class UnavailableError(KbError):
    """A service or resource is away: database, disk, model, endpoint."""

    code = "unavailable"
    retryable = True


class IntegrityError(KbError):
    """Stored data contradicts itself or its digest."""

    code = "integrity"
