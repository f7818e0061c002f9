"""The bytes of an answer, counted while they come and while they are inflated.

Belongs here: Content-Length, Content-Encoding and the limits on them. An answer that was cut short
is refused, never taken for the whole. See RFC 9110 section 8.4 and RFC 1952.
"""

from __future__ import annotations

import http.client
import zlib

from kb_resources.acquire.fetch_connect import too_large
from kb_resources.acquire.fetch_outcome import FetchProblem, FetchRefusal, FetchStopped

_STEP = 65_536
_RATIO_FROM = 2**20


def read_body(response: http.client.HTTPResponse, max_bytes: int, max_ratio: int) -> bytes:
    """Read an answer's content.

    Args:
        response: after its headers.
        max_bytes: most bytes, on the wire and inflated.
        max_ratio: most times inflating may enlarge what exceeds 1 MiB.

    Raises:
        FetchStopped: it is too large, cut short, or packed in a way that cannot be undone.
    """
    declared = response.getheader("Content-Length")
    length = int(declared) if declared is not None and declared.strip().isdigit() else None
    if length is not None and length > max_bytes:
        raise FetchStopped(
            too_large(f"announces {length:,} bytes, over the limit of {max_bytes:,}")
        )
    inflate = _inflater(response.getheader("Content-Encoding"), max_bytes, max_ratio)
    wire = 0
    kept: list[bytes] = []
    size = 0
    while part := response.read(_STEP):
        wire += len(part)
        for piece in inflate.feed(part) if inflate else (part,):
            size += len(piece)
            if size > max_bytes:
                raise FetchStopped(too_large(f"sends more than {max_bytes:,} bytes"))
            kept.append(piece)
    if length is not None and wire < length:
        raise FetchStopped(_cut_short(f"{wire:,} of {length:,} bytes came"))
    if inflate and not inflate.is_whole:
        raise FetchStopped(_cut_short("its compression has no end"))
    return b"".join(kept)


class Inflater:
    """Undoes gzip or deflate in bounded memory.

    Args:
        kind: `gzip` or `deflate`.
        max_bytes: most bytes out.
        max_ratio: most bytes out for one in, once more than 1 MiB is out.
    """

    def __init__(self, kind: str, max_bytes: int, max_ratio: int) -> None:
        self._kind = kind
        self._max_bytes = max_bytes
        self._max_ratio = max_ratio
        self._stream: zlib._Decompress | None = None
        self._read = self._written = 0

    @property
    def is_whole(self) -> bool:
        """Whether the last stream came to its end (or none began)."""
        return self._stream is None or self._stream.eof

    def feed(self, data: bytes) -> list[bytes]:
        """What some more bytes inflate to.

        Raises:
            FetchStopped: over a limit, or no such stream.
        """
        self._read += len(data)
        pieces: list[bytes] = []
        try:
            while data:
                if self._stream is None or self._stream.eof:
                    if self._stream is not None and not data.strip(b"\0"):
                        break
                    self._stream = self._open(data)
                piece = self._stream.decompress(data, _STEP)
                self._written += len(piece)
                self._check()
                pieces.append(piece)
                data = self._stream.unused_data or self._stream.unconsumed_tail
        except zlib.error as error:
            raise FetchStopped(
                FetchRefusal(
                    FetchProblem.ENCODING,
                    f"The answer's {self._kind} compression is damaged.",
                    "Try again later, or tell the site's operator.",
                )
            ) from error
        return pieces

    def _open(self, data: bytes) -> zlib._Decompress:
        if self._kind == "gzip":
            return zlib.decompressobj(31)
        # "deflate" means zlib, but some servers send the bare stream.
        bare = data[0] & 0x0F != 8 or (len(data) > 1 and (data[0] << 8 | data[1]) % 31)
        return zlib.decompressobj(-15 if bare else 15)

    def _check(self) -> None:
        if self._written > self._max_bytes:
            raise FetchStopped(too_large(f"sends more than {self._max_bytes:,} bytes inflated"))
        if self._written > _RATIO_FROM and self._written > self._read * self._max_ratio:
            raise FetchStopped(too_large(f"sends what inflates more than {self._max_ratio} times"))


def gunzip(data: bytes, max_bytes: int, max_ratio: int) -> bytes:
    """The content of a gzip file under limits; FetchStopped as `Inflater.feed`, or cut short."""
    inflate = Inflater("gzip", max_bytes, max_ratio)
    whole = b"".join(
        piece
        for start in range(0, len(data), _STEP)
        for piece in inflate.feed(data[start : start + _STEP])
    )
    if not inflate.is_whole:
        raise FetchStopped(_cut_short("its compression has no end"))
    return whole


def _inflater(encoding: str | None, max_bytes: int, max_ratio: int) -> Inflater | None:
    kind = (encoding or "identity").strip().lower().removeprefix("x-")
    if kind in {"", "identity"}:
        return None
    if kind not in {"gzip", "deflate"}:
        raise FetchStopped(
            FetchRefusal(
                FetchProblem.ENCODING,
                f"The answer is encoded as {kind[:40]!r}, though only gzip was offered.",
                "Tell the site's operator.",
            )
        )
    return Inflater(kind, max_bytes, max_ratio)


def _cut_short(why: str) -> FetchRefusal:
    return FetchRefusal(
        FetchProblem.CONNECTION, f"The answer broke off ({why}).", "Try again later."
    )
