"""The installation's secret, and everything derived from it.

Belongs here: making and reading the secret, keyed hashes, sealing. What does not: what is hashed or
sealed. One secret gives one key for each purpose by HKDF (RFC 5869); sealing is AES-256-GCM.
Losing the secret ends every key and session, and nothing else.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from kb_resources.errors import PolicyError, UnavailableError

if TYPE_CHECKING:
    from kb_resources.settings import Settings

MIN_CHARS = 32
_NONCE_BYTES = 12


@dataclass(frozen=True, slots=True)
class Secret:
    """At least 32 characters that nobody else knows; never printed."""

    value: bytes = field(repr=False)

    def key(self, purpose: str, salt: bytes = b"") -> bytes:
        """32 bytes for one purpose (HKDF with SHA-256, one block)."""
        extracted = hmac.digest(salt or b"\0" * 32, self.value, "sha256")
        return hmac.digest(extracted, purpose.encode() + b"\x01", "sha256")

    def digest(self, purpose: str, token: str) -> bytes:
        """Keyed hash of a token, 32 bytes: useless without the secret."""
        return hmac.digest(self.key(purpose), token.encode(), "sha256")

    def seal(self, purpose: str, data: bytes, *, salt: bytes = b"") -> bytes:
        """Encrypt and authenticate; only the same purpose and salt open it."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce = os.urandom(_NONCE_BYTES)
        return nonce + AESGCM(self.key(purpose, salt)).encrypt(nonce, data, purpose.encode())

    def unseal(self, purpose: str, sealed: bytes, *, salt: bytes = b"") -> bytes:
        """Inverse of `seal`.

        Raises:
            PolicyError: it was sealed otherwise, or changed.
        """
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        try:
            return AESGCM(self.key(purpose, salt)).decrypt(
                sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], purpose.encode()
            )
        except (InvalidTag, ValueError) as error:
            raise PolicyError(
                "What was presented does not open.", next_step="Sign in again.", code="not_sealed"
            ) from error


def secret_path(home: Path) -> Path:
    """Where a local installation keeps its secret."""
    return home / "secret"


def load_secret(settings: Settings) -> Secret | None:
    """The secret of the settings, else of the file; None where there is none.

    Raises:
        UnavailableError: it is too short, or the file cannot be read or is readable by others.
    """
    text = settings.secret
    path = secret_path(settings.home)
    if not text and path.exists():
        try:
            if path.stat().st_mode & 0o077:
                raise UnavailableError(
                    f"{path} can be read by others.",
                    next_step=f"chmod 600 {path}, and rotate every key.",
                    code="secret_exposed",
                )
            text = path.read_text("ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise UnavailableError(
                f"{path} cannot be read: {error}.",
                next_step="Give the file to the account that runs kb.",
            ) from error
    if not text:
        return None
    if len(text) < MIN_CHARS:
        raise UnavailableError(
            f"The secret is shorter than {MIN_CHARS} characters.",
            next_step="Set KB_SECRET to a long random string.",
            code="secret_too_short",
        )
    return Secret(text.encode())


def ensure_secret(settings: Settings) -> tuple[Secret, bool]:
    """The secret, made for a local installation that has none; and whether it is new."""
    found = load_secret(settings)
    if found is not None:
        return found, False
    path = secret_path(settings.home)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = secrets.token_urlsafe(48)
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text + "\n")
        os.link(draft, path)  # whole or not at all: others may read it from now on
    except FileExistsError:  # another process made it meanwhile
        again = load_secret(settings)
        if again is not None:
            return again, False
        raise UnavailableError(
            f"{path} is empty.", next_step="Delete it and run the command again."
        ) from None
    finally:
        draft.unlink(missing_ok=True)
    return Secret(text.encode()), True


def same(one: bytes, other: bytes) -> bool:
    """Whether two hashes are equal, in constant time."""
    return hmac.compare_digest(one, other)


def fingerprint(data: bytes) -> str:
    """12 hex digits that name bytes in logs."""
    return hashlib.sha256(data).hexdigest()[:12]
