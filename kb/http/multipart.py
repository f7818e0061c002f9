"""One uploaded file and a few short fields, streamed to disk while they arrive.

Belongs here: reading a multipart body under limits. What does not: what the fields mean. The limit
is enforced on what has come, not on what was announced; nothing is kept in memory but one chunk.
See RFC 7578; `filename*` is not used by browsers and is ignored, as the RFC says.
"""

from __future__ import annotations

import unicodedata
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser, parse_options_header

from kb_resources.errors import InputError, PolicyError

MAX_FIELDS_BYTES = 64 * 2**10
FORM_OVERHEAD_BYTES = 2**20
"""Of a body beside the file."""
_MAX_PARTS = 1000
_FILE_FIELD = "file"
_NAME_BYTES = 200


@dataclass(frozen=True, slots=True)
class Upload:
    """What came.

    Attributes:
        path: where the file's bytes are.
        name: the file's name without folders and control characters.
        size_bytes: of the file.
        fields: texts of the other fields, in order, by name.
    """

    path: Path
    name: str
    size_bytes: int
    fields: Mapping[str, tuple[str, ...]]


def boundary_of(content_type: str) -> bytes:
    """The boundary of a multipart body.

    Raises:
        PolicyError: it is another kind of body (`unsupported_media_type`).
    """
    kind, options = parse_options_header(content_type)
    if kind != b"multipart/form-data" or not options.get(b"boundary"):
        raise PolicyError(
            "An upload is multipart/form-data with a boundary.",
            next_step="Send the file as the field `file` of a form.",
            code="unsupported_media_type",
        )
    return options[b"boundary"]


class UploadReader:
    """Takes the parts apart; feed it chunks, then ask for the upload.

    Args:
        boundary: of the body.
        folder: new files are made here, under a neutral name.
        max_bytes: largest file.
    """

    def __init__(self, boundary: bytes, folder: Path, *, max_bytes: int) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._fields: dict[str, list[str]] = {}
        self._fields_bytes = 0
        self._parts = 0
        self._header = (bytearray(), bytearray())
        self._disposition = b""
        self._field: bytearray | None = None
        self._field_name = ""
        self._file: IO[bytes] | None = None
        self._name: str | None = None
        self._size = 0
        self._fed = 0
        self._done = False
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._part_begin,
                "on_header_field": self._header_field,
                "on_header_value": self._header_value,
                "on_header_end": self._header_end,
                "on_headers_finished": self._headers_finished,
                "on_part_data": self._part_data,
                "on_part_end": self._part_end,
                "on_end": self._end,
            },
        )

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the body.

        Raises:
            InputError: it is not a form, or holds too much beside the file.
            PolicyError: the file or the body is too large (`request_too_large`).
        """
        self._fed += len(chunk)
        if self._fed > self._max_bytes + FORM_OVERHEAD_BYTES:
            raise too_large(self._max_bytes)
        try:
            self._parser.write(chunk)
        except MultipartParseError as error:
            raise _malformed() from error

    def finish(self) -> Upload:
        """The upload, once the body has ended; InputError where something is missing."""
        self.close()
        if not self._done:
            raise _malformed()
        if self._name is None:
            raise InputError("The form holds no file.", next_step="Send one as the field `file`.")
        fields = {name: tuple(values) for name, values in self._fields.items()}
        return Upload(self._path, self._name, self._size, fields)

    def close(self) -> None:
        """Close the file that is being written, if any."""
        if self._file is not None:
            self._file.close()
            self._file = None

    @property
    def _path(self) -> Path:
        return self._folder / "content"

    def _part_begin(self) -> None:
        self._parts += 1
        if self._parts > _MAX_PARTS:
            raise _too_many()
        self._disposition = b""

    def _header_field(self, data: bytes, start: int, end: int) -> None:
        self._header[0].extend(data[start:end])

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._header[1].extend(data[start:end])

    def _header_end(self) -> None:
        name, value = self._header
        if bytes(name).lower() == b"content-disposition":
            self._disposition = bytes(value)
        name.clear()
        value.clear()

    def _headers_finished(self) -> None:
        _, options = parse_options_header(self._disposition)
        name = options.get(b"name", b"").decode("utf-8", "replace")
        if name == _FILE_FIELD and b"filename" in options:
            if self._name is not None:
                raise InputError(
                    "The form holds several files.", next_step="Send each in a request of its own."
                )
            self._name = safe_name(options[b"filename"].decode("utf-8", "replace"))
            self._file = self._path.open("wb")
            return
        self._field, self._field_name = bytearray(), name

    def _part_data(self, data: bytes, start: int, end: int) -> None:
        if self._file is not None:
            self._size += end - start
            if self._size > self._max_bytes:
                raise too_large(self._max_bytes)
            self._file.write(data[start:end])
        elif self._field is not None:
            self._fields_bytes += end - start
            if self._fields_bytes > MAX_FIELDS_BYTES:
                raise _too_many()
            self._field.extend(data[start:end])

    def _part_end(self) -> None:
        if self._file is not None:
            self.close()
        elif self._field is not None:
            text = self._field.decode("utf-8", "replace").replace("\0", "\ufffd")
            self._fields.setdefault(self._field_name, []).append(text)
            self._field = None

    def _end(self) -> None:
        self._done = True


async def collect(stream: AsyncIterator[bytes], *, at_least: int = 2**20) -> AsyncIterator[bytes]:
    """The stream in chunks of about `at_least` bytes, so that few hops to a thread are needed."""
    waiting = bytearray()
    async for chunk in stream:
        waiting += chunk
        if len(waiting) >= at_least:
            yield bytes(waiting)
            waiting.clear()
    if waiting:
        yield bytes(waiting)


def safe_name(name: str) -> str:
    """A file name without folders, control characters or leading dots, at most 200 bytes."""
    last = unicodedata.normalize("NFC", name).replace("\\", "/").rpartition("/")[2]
    shown = "".join(char for char in last if char.isprintable()).strip().lstrip(".")
    stem, dot, suffix = shown.rpartition(".")
    if not stem:
        stem, dot, suffix = shown, "", ""
    room = _NAME_BYTES - len(f"{dot}{suffix[:20]}".encode())
    kept = stem.encode("utf-8", "replace")[:room].decode("utf-8", "ignore")
    return f"{kept}{dot}{suffix[:20]}" or "unnamed"


def too_large(max_bytes: int) -> PolicyError:
    """What a caller hears whose file is larger than allowed."""
    return PolicyError(
        f"The file is larger than {max_bytes:,} bytes.",
        next_step="Split it, or raise KB_MAX_BYTES.",
        code="request_too_large",
    )


def _too_many() -> InputError:
    return InputError(
        "The form holds too much beside the file.", next_step="Send the documented fields only."
    )


def _malformed() -> InputError:
    return InputError(
        "The body is not a complete form.", next_step="Send multipart/form-data, to its end."
    )
