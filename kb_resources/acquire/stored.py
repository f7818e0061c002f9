"""Bytes that came by upload and lie in the blob store already.

Belongs here: the address `stored:<scope>/<digest>/<name>` and reading it. What does not: putting
the bytes there. An upload has no place to be read from again; its blob is that place, so that a
later run finds what the first one did.
"""

from __future__ import annotations

from collections.abc import Callable

from kb_resources.acquire.blobs import BlobStore
from kb_resources.acquire.files import MAX_BYTES, Acquired, admit
from kb_resources.errors import NotFound
from kb_resources.model import DocumentState, Refusal

SCHEME = "stored:"


def stored_uri(scope: str, digest: str, name: str) -> str:
    """The address of uploaded bytes.

    Args:
        scope: scope name; its blobs hold them.
        digest: SHA-256 hex of the bytes.
        name: file name without folders.
    """
    return f"{SCHEME}{scope}/{digest}/{name}"


def stored_digest(uri: str) -> str:
    """The digest in an address of `stored_uri`; empty for any other address."""
    return uri.split("/", 2)[1] if uri.startswith(SCHEME) and uri.count("/") >= 2 else ""


def read_stored(
    uri: str, blobs: Callable[[str], BlobStore], *, max_bytes: int = MAX_BYTES
) -> Acquired | Refusal:
    """The bytes of an address, admitted as a file's would be.

    Args:
        uri: as `stored_uri` made it.
        blobs: the blob store of a scope.
        max_bytes: largest size admitted.

    Returns:
        The bytes, or a Refusal as in `admit`; `failed` where they were deleted meanwhile.

    Raises:
        IntegrityError: the stored bytes no longer match the digest.
        UnavailableError: the store is away.
    """
    scope, digest, name = uri.removeprefix(SCHEME).split("/", 2)
    try:
        data = blobs(scope).get(digest)
    except NotFound:
        return Refusal(
            DocumentState.FAILED, "The uploaded bytes were deleted; upload the file again."
        )
    return admit(data, name, max_bytes=max_bytes)
