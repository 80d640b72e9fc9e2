"""The container file, read and damaged by code that shares nothing with the one under test."""

from __future__ import annotations

import json
import mmap
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xxhash

import lookalike as la
from lookalike.indexes import open_index
from lookalike.storage import container
from lookalike.storage.container import open_container, write_container
from support.oracles import scan as oracle

HEADER = 64
ENTRY = 64


def load_scan(path: Path, verify: bool = True) -> la.ScanIndex:
    index = la.load_index(path, verify=verify)
    assert isinstance(index, la.ScanIndex)
    return index


def checksum(data: bytes) -> int:
    return xxhash.xxh64_intdigest(data)


def entries(data: bytes) -> list[tuple[bytes, bytes, int, int, int, int]]:
    count = struct.unpack_from("<I", data, 12)[0]
    return [struct.unpack_from("<24s8sQQQQ", data, HEADER + ENTRY * i) for i in range(count)]


def resealed(data: bytes, table: list[Any] | None = None, **fields: Any) -> bytes:
    """Return the file with another table or header fields, and checksums that fit them."""
    count = len(table) if table is not None else struct.unpack_from("<I", data, 12)[0]
    packed = data[HEADER : HEADER + ENTRY * count]
    if table is not None:
        packed = b"".join(struct.pack("<24s8sQQQQ", *entry) for entry in table)
    header = struct.pack(
        "<8sHcxIQQ24x",
        data[:8],
        fields.get("version", 1),
        fields.get("order", data[10:11]),
        fields.get("count", count),
        fields.get("length", len(data)),
        checksum(packed),
    )
    return header + struct.pack("<Q", checksum(header)) + packed + data[HEADER + len(packed) :]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    index = la.ScanIndex(oracle.collection(20, 16, "clustered", 1), ids=np.arange(20)[::-1] * 5)
    index.save(tmp_path / "index.lookalike")
    return tmp_path / "index.lookalike"


def test_the_layout_is_as_documented(path: Path) -> None:
    data = path.read_bytes()
    magic, version, order, count, length, table_sum = struct.unpack_from("<8sHcxIQQ", data)
    assert (magic, version, count, length) == (b"\x89LKLK\r\n\x1a", 1, 3, len(data))
    assert order == (b"<" if np.little_endian else b">")
    assert struct.unpack_from("<Q", data, 56)[0] == checksum(data[:56])
    assert table_sum == checksum(data[HEADER : HEADER + 3 * ENTRY])
    for name, dtype, rows, columns, offset, section_sum in entries(data):
        itemsize = int(dtype.rstrip(b"\0")[1:])
        section = data[offset : offset + rows * max(columns, 1) * itemsize]
        assert offset % 4096 == 0
        assert section_sum == checksum(section)
        if name.rstrip(b"\0") == b"meta":
            assert json.loads(section) == {"index": "scan", "ascending_ids": False}
        if name.rstrip(b"\0") == b"signatures":
            assert (rows, columns) == (20, 16)
            assert section == oracle.collection(20, 16, "clustered", 1).tobytes()


@pytest.mark.parametrize("count", [0, 1, 33])
@pytest.mark.parametrize("with_ids", [False, True])
def test_a_loaded_index_gives_the_same_answers(tmp_path: Path, count: int, with_ids: bool) -> None:
    rows = oracle.collection(count, 24, "clustered", count)
    ids = np.random.default_rng(0).permutation(count) * 7 if with_ids else None
    index = la.ScanIndex(rows, ids)
    index.save(tmp_path / "x.lookalike")
    loaded = la.load_index(tmp_path / "x.lookalike", verify=True)
    assert isinstance(loaded, la.ScanIndex)
    assert len(loaded) == count
    assert loaded.stats()["file"] == str(tmp_path / "x.lookalike")
    assert not loaded.signatures.flags.writeable
    queries = oracle.collection(5, 24, "uniform", 9)
    assert np.array_equal(loaded.search(queries, 4).ids, index.search(queries, 4).ids)
    assert np.array_equal(loaded.within(queries, 90).ids, index.within(queries, 90).ids)
    assert np.array_equal(loaded.pairs(10).left, index.pairs(10).left)


def test_every_flipped_byte_of_header_and_table_is_noticed(path: Path) -> None:
    data = path.read_bytes()
    for position in range(HEADER + 3 * ENTRY):
        for flip in (0x01, 0x80, 0xFF):
            damaged = bytearray(data)
            damaged[position] ^= flip
            path.write_bytes(damaged)
            with pytest.raises(
                (la.errors.CorruptIndexError, la.errors.FormatError), match="index.lookalike"
            ):
                la.load_index(path)


def test_every_flipped_byte_of_a_section_is_noticed(path: Path) -> None:
    data = path.read_bytes()
    sections = [
        (offset, max(columns, 1) * rows) for _, _, rows, columns, offset, _ in entries(data)
    ]
    for start, length in sections:
        for position in range(start, start + length, 7):
            damaged = bytearray(data)
            damaged[position] ^= 0x10
            path.write_bytes(damaged)
            with pytest.raises(la.errors.CorruptIndexError, match="checksum"):
                la.load_index(path)


def test_every_length_but_the_right_one_is_noticed(path: Path) -> None:
    data = path.read_bytes()
    ends = {0, 1, 7, 8, 63, 64, 65, len(data) - 1}
    for _, _, _, _, offset, _ in entries(data):
        ends |= {offset - 1, offset, offset + 1}
    for end in sorted(ends):
        path.write_bytes(data[:end])
        with pytest.raises(
            (la.errors.CorruptIndexError, la.errors.FormatError), match="index.lookalike"
        ):
            la.load_index(path)
    path.write_bytes(data + b"\0")
    with pytest.raises(
        la.errors.CorruptIndexError, match=f"{len(data) + 1} bytes, its header says"
    ):
        la.load_index(path)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        (2, 2**63),
        (2, 2**64 - 1),
        (3, 2**62),
        (4, 2**64 - 4096),
        (4, 4096 * 3 + 1),
        (4, 0),
        (1, b"O8"),
    ],
)
def test_a_hostile_table_with_valid_checksums_is_refused(
    path: Path, column: int, value: Any
) -> None:
    data = path.read_bytes()
    table: list[Any] = [list(entry) for entry in entries(data)]
    table[1][column] = value
    path.write_bytes(resealed(data, table))
    with pytest.raises(la.errors.CorruptIndexError):
        la.load_index(path)


def test_missing_and_mistyped_sections_are_refused(path: Path) -> None:
    data = path.read_bytes()
    table = entries(data)
    path.write_bytes(resealed(data, [table[0], table[2]]))
    with pytest.raises(la.errors.CorruptIndexError, match="'signatures' is missing"):
        la.load_index(path)
    path.write_bytes(resealed(data, [table[1], table[2]]))
    with pytest.raises(la.errors.CorruptIndexError, match="'meta' is missing"):
        la.load_index(path)
    nineteen = checksum(data[table[2][4] : table[2][4] + 19 * 8])
    short = [table[0], table[1], (*table[2][:2], 19, *table[2][3:5], nineteen)]
    path.write_bytes(resealed(data, short))
    with pytest.raises(la.errors.CorruptIndexError, match="20 signatures and 19 ids"):
        la.load_index(path)
    mistyped = [table[0], (table[1][0], b"i4", 20, 4, *table[1][4:]), table[2]]
    path.write_bytes(resealed(data, mistyped))
    with pytest.raises(la.errors.CorruptIndexError, match="holds int32 .*expected uint8"):
        la.load_index(path)
    path.write_bytes(resealed(data, count=2**32 - 1))
    with pytest.raises(la.errors.CorruptIndexError, match="4294967295 sections"):
        la.load_index(path)


@pytest.mark.parametrize("meta", [b"not json", b"[1, 2]", b"\xff\xfe", b"[" * 100_000])
def test_meta_that_is_not_an_object_is_refused(tmp_path: Path, meta: bytes) -> None:
    path = tmp_path / "index.lookalike"
    write_container(path, {}, {"x": np.frombuffer(meta, np.uint8)})
    data = path.read_bytes()
    entry = entries(data)[1]
    path.write_bytes(resealed(data, [(b"meta", *entry[1:])]))
    with pytest.raises(la.errors.CorruptIndexError, match="'meta' is not"):
        la.load_index(path)


def test_a_newer_version_and_another_kind_are_told_apart_from_damage(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(resealed(data, version=2))
    with pytest.raises(
        la.errors.FormatError, match="format version 2; this lookalike reads version 1"
    ):
        la.load_index(path)
    write_container(path, {"index": "graph"}, {})
    with pytest.raises(la.errors.FormatError, match=r"kind 'graph'; this version knows \['slices'"):
        la.load_index(path)


def test_foreign_files_are_named(tmp_path: Path) -> None:
    foreign = tmp_path / "some.txt"
    foreign.write_text("hello world, this is not an index")
    with pytest.raises(
        la.errors.FormatError, match="not a lookalike file: it begins with b'hello wo'"
    ):
        la.load_index(foreign)
    with pytest.raises(la.errors.FileError, match="cannot be read: .*No such file"):
        la.load_index(tmp_path / "nowhere")
    with pytest.raises(la.errors.FileError, match="cannot be read: .*directory"):
        la.load_index(tmp_path)


def test_the_other_byte_order_is_converted(path: Path) -> None:
    data = bytearray(path.read_bytes())
    expected = load_scan(path)
    queries = np.array(expected.signatures[:3])
    answer = expected.search(queries, 5).ids
    table: list[Any] = [list(entry) for entry in entries(bytes(data))]
    rows, offset = table[2][2], table[2][4]
    swapped = np.frombuffer(bytes(data[offset : offset + 8 * rows]), np.int64).byteswap().tobytes()
    data[offset : offset + 8 * rows] = swapped
    table[2][5] = checksum(swapped)
    path.write_bytes(resealed(bytes(data), table, order=b">" if np.little_endian else b"<"))
    loaded = la.load_index(path, verify=True)
    assert np.array_equal(loaded.search(queries, 5).ids, answer)


def test_a_file_of_format_version_1_stays_readable() -> None:
    loaded = load_scan(Path(__file__).parent.parent / "data" / "scan_v1.lookalike", verify=True)
    rows = oracle.collection(40, 8, "clustered", 2026)
    assert np.array_equal(loaded.signatures, rows)
    assert loaded.ids is not None
    assert loaded.ids.tolist() == [(7 * i) % 40 + 100 for i in range(40)]


def test_saving_replaces_and_leaves_nothing_else(path: Path) -> None:
    old = load_scan(path)
    before = old.signatures.copy()
    la.ScanIndex(oracle.collection(3, 16, "uniform", 4)).save(path)
    assert len(la.load_index(path)) == 3
    assert np.array_equal(old.signatures, before)  # the old file lives on while it is mapped
    old.save(path)  # onto a file that is open
    assert len(la.load_index(path, verify=True)) == 20
    assert list(path.parent.iterdir()) == [path]


def test_a_failed_save_keeps_the_old_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = path.read_bytes()

    def full_disk(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(la.errors.FileError, match="cannot be written: .*No space left"):
        la.ScanIndex(oracle.collection(3, 16, "uniform", 4)).save(path)
    assert path.read_bytes() == data
    assert list(path.parent.iterdir()) == [path]
    with pytest.raises(la.errors.FileError, match="cannot be written"):
        la.ScanIndex(oracle.collection(3, 16, "uniform", 4)).save(path.parent / "no" / "folder")


def test_opening_reads_no_sections_if_told_not_to(path: Path) -> None:
    damage(path, b"signatures")
    index = load_scan(path, verify=False)
    assert len(index.search(np.zeros((1, 16), np.uint8), 20).ids[0]) == 20
    with pytest.raises(la.errors.CorruptIndexError, match="'signatures' has the checksum"):
        index.verify()


def damage(path: Path, section: bytes) -> None:
    """Flip a bit in the middle of a section."""
    data = bytearray(path.read_bytes())
    for name, dtype, rows, columns, offset, _ in entries(bytes(data)):
        if name.rstrip(b"\0") == section:
            data[offset + rows * max(columns, 1) * int(dtype.rstrip(b"\0")[1:]) // 2] ^= 4
            path.write_bytes(data)
            return
    raise AssertionError(f"{path} has no section {section!r}")


ROWS = oracle.collection(60, 8, "clustered", 3)
KINDS: dict[str, Callable[[], la.Index]] = {
    "scan": lambda: la.ScanIndex(ROWS),
    "slices": lambda: la.SliceIndex(ROWS, 4),
    "blocks": lambda: la.BlockIndex(ROWS, radius=3),
    "compressed": lambda: la.BlockIndex(ROWS, radius=3, compressed=True),
    "flips": lambda: la.FlipIndex(ROWS),
    "prefix": lambda: la.PrefixIndex(ROWS, 2),
    "clusters": lambda: la.ClusterIndex(ROWS, 4),
}


def ways_out(index: la.Index, path: Path) -> list[Callable[[], Any]]:
    """Return all ways in which signatures, ids and names leave an index, but for its answers."""
    ways: list[Callable[[], Any]] = [
        lambda: index.save(path),
        lambda: index.living(),
        lambda: la.ShardedIndex([index]).living(),
        lambda: la.save_signatures(path, ROWS, la.SimHash(bits=64), index.names),
    ]
    if isinstance(index, la.ScanIndex):
        ways += [lambda: index.signatures, lambda: index.ids]
    if isinstance(index, la.SliceIndex):
        ways.append(lambda: la.SliceIndex.merge([la.SliceIndex(ROWS, 4), index]))
    if isinstance(index, la.ClusterIndex):
        ways += [lambda: index.centers, lambda: index.tune_probes(1)]
    return ways


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_leaves_an_index_was_verified(kind: str, tmp_path: Path) -> None:
    """An index that was opened unverified answers; it hands on, and saves, only what is sound."""
    index = KINDS[kind]()
    index.names = [f"n{i}" for i in range(60)]
    path, again = tmp_path / "index", tmp_path / "again"
    index.save(path)
    good = path.read_bytes()
    for section in [name.rstrip(b"\0") for name, *_ in entries(good)][1:]:
        path.write_bytes(good)
        damage(path, section)
        with pytest.raises(la.errors.CorruptIndexError, match="has the checksum"):
            la.load_index(path)
        if section in (b"volatility", b"offsets"):  # it cannot be used as it is then
            with pytest.raises(la.errors.CorruptIndexError):
                la.load_index(path, verify=False)
            continue
        opened = la.load_index(path, verify=False)
        if isinstance(opened, la.SliceIndex):
            opened.add(ROWS[:3])
            opened.remove([0])
        for way in ways_out(opened, again):
            with pytest.raises(la.errors.CorruptIndexError, match="has the checksum"):
                way()
        assert not again.exists()
    path.write_bytes(good)
    opened = la.load_index(path, verify=False)
    opened.save(again)
    assert la.load_index(again).pairs(5).left.tolist() == la.ScanIndex(ROWS).pairs(5).left.tolist()


def test_damaged_signatures_are_not_handed_out(tmp_path: Path) -> None:
    path = tmp_path / "signatures"
    signer = la.SimHash(bits=64, weights="tfidf").fit(["a b", "b c", "c d e"])
    la.save_signatures(path, ROWS, signer, [f"n{i}" for i in range(60)])
    good = path.read_bytes()
    for section in [name.rstrip(b"\0") for name, *_ in entries(good)][1:]:
        path.write_bytes(good)
        damage(path, section)
        for opens in (la.load_signatures, open_index):
            with pytest.raises(la.errors.CorruptIndexError, match="has the checksum"):
                opens(path)
    # A signer is verified even where signatures need not be: little data, and much hangs on it.
    path.write_bytes(good)
    damage(path, next(name for name, *_ in entries(good) if b"signer" in name).rstrip(b"\0"))
    with pytest.raises(la.errors.CorruptIndexError, match="has the checksum"):
        open_index(path, verify=False)


@pytest.mark.parametrize("threads", [1, 5])
def test_checksums_of_ranges_on_threads(
    tmp_path: Path, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container, "_PIECE", 8192)
    monkeypatch.setattr(container, "_WORTH_A_THREAD", 1)
    monkeypatch.setattr(container, "thread_count", lambda threads_: threads)
    data = np.random.default_rng(0).integers(0, 256, 100_000, dtype=np.uint8).tobytes()
    (tmp_path / "file").write_bytes(data)
    ranges = [(0, 100_000), (0, 0), (4096, 8192), (4096, 8193), (100_000, 0), (99_999, 1), (5, 90)]
    with open(tmp_path / "file", "rb") as file:
        mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    for _ in range(20):
        found = container.checksums(mapping, ranges)
        assert found == [checksum(data[begin : begin + length]) for begin, length in ranges]


def test_an_index_in_memory_has_nothing_to_verify() -> None:
    index = la.ScanIndex(oracle.collection(3, 16, "uniform", 4))
    index.verify()
    assert index.stats()["file"] is None


def test_containers_keep_every_type(tmp_path: Path) -> None:
    arrays = {
        code: np.arange(6, dtype=code).reshape(3, 2)
        for code in ("u1", "u2", "u4", "u8", "i4", "i8", "f4", "f8")
    }
    write_container(tmp_path / "x", {"a": [1, None]}, arrays)
    container = open_container(tmp_path / "x")
    assert container.meta == {"a": [1, None]}
    for code, array in arrays.items():
        assert np.array_equal(container.array(code, array.dtype.type, 2), array)
