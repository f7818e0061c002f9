"""Zip containers are measured before a parser opens them; what they declare counts for nothing."""

from __future__ import annotations

import io
import stat
import struct
import tracemalloc
import zipfile

import pytest

from kb_resources.acquire import check_zip
from kb_resources.model import DocumentState, Refusal


def build(*entries: tuple[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for name, data in entries:
            archive.writestr(name, data)
    return out.getvalue()


def state_of(refusal: Refusal | None) -> str | None:
    return None if refusal is None else refusal.state.value


def test_an_honest_container_passes() -> None:
    assert check_zip(build(("word/document.xml", b"<w/>"), ("media/a.png", b"\x89PNG"))) is None


@pytest.mark.requirement("O-57")
def test_one_entry_too_many_is_refused() -> None:
    entries = [(f"e{n}", b"") for n in range(10_001)]
    assert state_of(check_zip(build(*entries))) == "too_large"
    assert check_zip(build(*entries[:10_000])) is None


@pytest.mark.requirement("O-57")
def test_a_bomb_stops_at_the_limit_in_constant_memory() -> None:
    bomb = build(("word/document.xml", b"a" * 200_000_000))
    tracemalloc.start()
    refusal = check_zip(bomb)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert state_of(refusal) == "too_large"
    assert peak < 8_000_000


@pytest.mark.requirement("O-57")
def test_declared_sizes_are_not_believed() -> None:
    honest = build(("a.bin", b"x" * 50_000))
    lie = struct.pack("<L", 10)
    central = honest.index(b"PK\x01\x02")
    local = honest.index(b"PK\x03\x04")
    lying = bytearray(honest)
    lying[central + 24 : central + 28] = lie  # uncompressed size
    lying[local + 22 : local + 26] = lie
    refusal = check_zip(bytes(lying), max_inflated_bytes=1_000)
    assert refusal is not None


def zip64(data: bytes) -> bytes:
    out = io.BytesIO()
    with (
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("word/document.xml", "w", force_zip64=True) as part,
    ):
        part.write(data)
    return out.getvalue()


def with_zip64_directory(container: bytes, **lies: int) -> bytes:
    """The container with a ZIP64 end record whose fields say what is asked for."""
    end = container.rindex(b"PK\x05\x06")
    count, size, at = struct.unpack("<HLL", container[end + 10 : end + 20])
    told = {"count": count, "size": size, "at": at} | lies
    record = struct.pack("<4sQ2H2L", b"PK\x06\x06", 44, 45, 45, 0, 0)
    record += struct.pack("<4Q", told["count"], told["count"], told["size"], told["at"])
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, end, 1)
    last = bytearray(container[end:])
    last[8:20] = b"\xff" * 12  # look into the ZIP64 record
    return container[:end] + record + locator + bytes(last)


@pytest.mark.requirement("O-57")
def test_zip64_is_measured_like_any_other() -> None:
    assert check_zip(zip64(b"<w/>")) is None
    assert check_zip(with_zip64_directory(zip64(b"<w/>"))) is None
    assert state_of(check_zip(zip64(b"a" * 200_000_000))) == "too_large"


@pytest.mark.requirement("O-57")
@pytest.mark.parametrize("lie", [{"count": 1 << 40}, {"size": 1 << 40}, {"at": 1 << 62}])
def test_what_a_zip64_directory_declares_costs_no_memory(lie: dict[str, int]) -> None:
    lying = with_zip64_directory(zip64(b"<w/>"), **lie)
    tracemalloc.start()
    refusal = check_zip(lying)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert state_of(refusal) in {None, "corrupt"}
    assert peak < 1_000_000


@pytest.mark.requirement("O-57")
def test_entries_that_share_bytes_are_refused() -> None:
    data = bytearray(build(("a", b"x" * 100), ("b", b"y" * 100)))
    first = data.index(b"PK\x01\x02")
    second = data.index(b"PK\x01\x02", first + 4)
    # Both directory entries point at the first local header, which needs the first one's name.
    data[second + 42 : second + 46] = data[first + 42 : first + 46]
    data[second + 46 : second + 47] = b"a"
    assert state_of(check_zip(bytes(data))) == "corrupt"


@pytest.mark.parametrize("name", ["../evil.xml", "/etc/passwd", "a/../../b", "C:/x", "..\\up"])
def test_names_that_leave_the_container_are_refused(name: str) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        info = zipfile.ZipInfo("x")
        info.filename = name
        archive.writestr(info, b"x")
    assert state_of(check_zip(out.getvalue())) == "corrupt"


def test_links_are_refused() -> None:
    info = zipfile.ZipInfo("link")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(info, b"/etc/passwd")
    assert state_of(check_zip(out.getvalue())) == "corrupt"


def test_an_encrypted_entry_is_encrypted() -> None:
    data = bytearray(build(("a", b"secret")))
    central = data.index(b"PK\x01\x02")
    data[central + 8] |= 1
    assert state_of(check_zip(bytes(data))) == "encrypted"


def test_entity_declarations_are_refused_wherever_they_stand() -> None:
    filler = b"<!DOCTYPE x [" + b" " * (65_536 - 16)
    for entity in (b"<!ENTITY a 'b'>", b"<!EnTiTy a 'b'>"):
        for data in (b"<!DOCTYPE x [" + entity + b"]>", filler + entity + b"]>"):
            refusal = check_zip(build(("_rels/.rels", data), compression=zipfile.ZIP_STORED))
            assert state_of(refusal) == "corrupt"
    wide = "<!ENTITY a 'b'>".encode("utf-16")
    assert state_of(check_zip(build(("word/document.xml", wide)))) == "corrupt"


@pytest.mark.parametrize("cut", [10, 40, 90])
def test_a_truncated_container_is_corrupt(cut: int) -> None:
    refusal = check_zip(build(("a.xml", b"<a>hello</a>" * 20))[:-cut])
    assert refusal is not None
    assert refusal.state is DocumentState.CORRUPT


def test_flipped_bytes_never_raise() -> None:
    data = build(("word/document.xml", b"<a>hello</a>" * 50), ("b", b"z" * 300))
    for position in range(0, len(data), 3):
        broken = bytearray(data)
        broken[position] ^= 0xFF
        check_zip(bytes(broken))
