"""Acquire: bytes from a file, an upload or an address, sniffed, limited, stored by content."""

from typing import TYPE_CHECKING

from kb_resources.acquire.blobs import BlobStore, FolderBlobStore, open_blob_store
from kb_resources.acquire.files import MAX_BYTES, Acquired, admit, read_file
from kb_resources.acquire.sniff import sniff
from kb_resources.acquire.zips import check_zip
from kb_resources.lazy import on_demand

if TYPE_CHECKING:
    from kb_resources.acquire.fetch import Fetcher, read_address
    from kb_resources.acquire.fetch_outcome import (
        Fetched,
        FetchOutcome,
        FetchProblem,
        FetchRefusal,
        NotModified,
        Validators,
    )
    from kb_resources.acquire.fetch_policy import FetchPolicy
    from kb_resources.acquire.fetch_url import canonical_url
else:
    __getattr__ = on_demand(
        __name__,
        {
            "fetch": (
                "Fetcher",
                "read_address",
            ),
            "fetch_outcome": (
                "Fetched",
                "FetchOutcome",
                "FetchProblem",
                "FetchRefusal",
                "NotModified",
                "Validators",
            ),
            "fetch_policy": ("FetchPolicy",),
            "fetch_url": ("canonical_url",),
        },
    )

__all__ = [
    "MAX_BYTES",
    "Acquired",
    "BlobStore",
    "FetchOutcome",
    "FetchPolicy",
    "FetchProblem",
    "FetchRefusal",
    "Fetched",
    "Fetcher",
    "FolderBlobStore",
    "NotModified",
    "Validators",
    "admit",
    "canonical_url",
    "check_zip",
    "open_blob_store",
    "read_address",
    "read_file",
    "sniff",
]
