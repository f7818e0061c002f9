"""Reading a file: limits, unreadable and moving files, and reasons a person understands."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

import pytest

from kb_resources.acquire import Acquired, admit, files, read_file
from kb_resources.errors import ConflictError, InputError
from kb_resources.model import DocumentState, Refusal


def test_a_text_file_is_admitted_with_digest_and_type(tmp_path: Path) -> None:
    path = tmp_path / "note.md"
    path.write_bytes(b"# Title\n")
    got = read_file(path)
    assert got == Acquired(
        b"# Title\n", hashlib.sha256(b"# Title\n").hexdigest(), 8, "text/markdown", "note.md"
    )


@pytest.mark.parametrize("content", [b"", b" \n\t\r\n", b"\xef\xbb\xbf\n"])
def test_nothing_to_read_is_empty(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    got = read_file(path)
    assert isinstance(got, Refusal)
    assert got.state is DocumentState.EMPTY


@pytest.mark.requirement("O-52")
def test_one_byte_over_the_limit_is_never_read(tmp_path: Path) -> None:
    path = tmp_path / "big.txt"
    with path.open("wb") as file:
        file.truncate(50 * 1024 * 1024 + 1)  # sparse
    got = read_file(path)
    assert isinstance(got, Refusal)
    assert got.state is DocumentState.TOO_LARGE
    assert "52,428,801" in got.reason


def test_the_limit_itself_is_allowed(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"x" * 100)
    assert isinstance(read_file(path, max_bytes=100), Acquired)
    assert isinstance(read_file(path, max_bytes=99), Refusal)


def test_a_missing_file_and_a_folder_are_the_callers_mistake(tmp_path: Path) -> None:
    for path in (tmp_path / "none.txt", tmp_path):
        with pytest.raises(InputError):
            read_file(path)


@pytest.mark.skipif(sys.platform == "win32", reason="no named pipes in folders")
def test_a_pipe_does_not_block(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(InputError):
        read_file(pipe)


def test_a_file_that_grows_while_it_is_read_is_a_conflict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.txt"
    path.write_bytes(b"one\n")
    read_all = files._read_all

    def read_and_append(file: object, max_bytes: int) -> bytes | None:
        data = read_all(file, max_bytes)  # type: ignore[arg-type]
        with path.open("ab") as writer:
            writer.write(b"two\n")
        return data

    monkeypatch.setattr(files, "_read_all", read_and_append)
    with pytest.raises(ConflictError) as error:
        read_file(path)
    assert error.value.retryable


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_file_without_read_permission_is_refused_with_its_reason(open_folder: Path) -> None:
    path = open_folder / "secret.txt"
    path.write_bytes(b"words")
    path.chmod(0)
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:  # root reads anything, so the child reads as somebody else
        try:
            if os.geteuid() == 0:
                os.setgid(65_534)
                os.setuid(65_534)
            got = read_file(path)
            text = f"{got.state.value}: {got.reason}" if isinstance(got, Refusal) else "read it"
            os.write(writer, text.encode())
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    os.close(writer)
    answer = os.read(reader, 500).decode()
    os.close(reader)
    assert answer.startswith("failed: secret.txt may not be read")


def test_a_program_is_refused_by_what_it_is() -> None:
    got = admit(b"MZ\x90\x00" + b"\x00" * 100, "invoice.pdf")
    assert isinstance(got, Refusal)
    assert got.state is DocumentState.UNSUPPORTED
    assert "program" in got.reason


def test_a_locked_office_file_is_encrypted() -> None:
    data = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\x00" * 600
    got = admit(data + "EncryptedPackage".encode("utf-16-le"), "a.docx")
    assert isinstance(got, Refusal)
    assert got.state is DocumentState.ENCRYPTED
