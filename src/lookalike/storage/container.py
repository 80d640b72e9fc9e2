"""The container file: named arrays after a checksummed header, used in place by a memory map.

Layout, all numbers of the header and table little-endian:

    bytes 0-63      header   magic, format version, byte order of the arrays ("<" or ">"),
                             number of sections, length of the file, checksum of the table,
                             checksum of the header itself
    64 bytes each   table    per section: name, dtype, rows, columns, offset, checksum
    from there on   sections each begins on a multiple of 4096 bytes, zeros between them

The first section is `meta`, a JSON object. A vector has 0 columns. Checksums are XXH64. In memory,
a container has the same bytes: `container_bytes` returns what `write_container` writes.

Writing is atomic: a new name in the same folder, synced to disk, then renamed; readers of the old
file keep it. Opening checks the header, the table, the places of sections, the length of the file
and the checksum of `meta`; its cost does not grow with the file. The checksum of a section is
verified before `Container.array` returns it for the first time, unless the container was opened
with `verify=False`. The parser is Python, because files are untrusted and Python cannot be made to
read outside of their bytes.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import math
import mmap
import os
import struct
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.checks import thread_count
from lookalike.errors import ArgumentError, CorruptIndexError, FileError, FormatError
from lookalike.operation import report
from lookalike.shown import brief
from lookalike.storage.files import file_errors, whole_file
from lookalike.suggestions import did_you_mean_file

FORMAT_VERSION = 1

# Like that of PNG: the first byte is not ASCII, and a transfer as text changes the line ends.
_MAGIC = b"\x89LKLK\r\n\x1a"
_HEADER = struct.Struct("<8s H c x I Q Q 24x Q")  # the last field is the checksum of the rest
_ENTRY = struct.Struct("<24s 8s Q Q Q Q")
_ALIGNMENT = 4096
_MOST_SECTIONS = 1024
_LONGEST = 2**62  # of any dimension of an array, even if the other one is 0
_DTYPES = frozenset({"u1", "u2", "u4", "u8", "i4", "i8", "f4", "f8"})
_NATIVE_ORDER = b"<" if np.little_endian else b">"
_PIECE = 1 << 26  # bytes that are read or written between two checks whether to stop
_WORTH_A_THREAD = 1 << 23

Mapped = mmap.mmap | NDArray[np.uint8]
"""A file that is mapped, or bytes in memory."""


@dataclass(frozen=True)
class _Section:
    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int
    checksum: int

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize  # Python integers do not overflow


class Container:
    """An open container, a file or bytes. Arrays stay valid after the container itself is gone."""

    def __init__(
        self, path: Path | str, mapping: Mapped, sections: dict[str, _Section], verify: bool
    ) -> None:
        self.path = path  # or the name of bytes in messages
        self._verifies = verify
        self._mapping = mapping
        self._sections = sections
        self._unverified = set(sections)
        self.meta: dict[str, Any] = self._read_meta()

    def __contains__(self, name: str) -> bool:
        return name in self._sections

    @property
    def is_file(self) -> bool:
        """Whether it is a file."""
        return isinstance(self.path, Path)

    @property
    def digest(self) -> str:
        """A hash of the contents: copies of a file have the same one."""
        table = sorted(
            (one.name, one.dtype.newbyteorder("<").str, one.shape, one.checksum)
            for one in self._sections.values()
        )
        return hashlib.sha256(repr(table).encode()).hexdigest()[:32]

    def __deepcopy__(self, memo: dict[int, Any]) -> Container:
        return self  # a file that does not change is shared

    def array(self, name: str, dtype: type[np.generic], ndim: int) -> NDArray[Any]:
        """Return a section as a mapped, read-only array, or a copy if the byte order differs."""
        section = self._sections.get(name)
        if section is None:
            raise CorruptIndexError(
                f"{self.path}: the section {name!r} is missing; there are {sorted(self._sections)}"
            )
        if section.dtype.newbyteorder("=") != np.dtype(dtype) or len(section.shape) != ndim:
            raise CorruptIndexError(
                f"{self.path}: the section {name!r} holds {section.dtype} of shape "
                f"{section.shape}; expected {np.dtype(dtype)} with {ndim} dimensions"
            )
        if self._verifies:
            self.verify_rest(name)
        array = self._raw(section).view(section.dtype).reshape(section.shape)
        if not section.dtype.isnative:
            array = array.astype(dtype)
            array.flags.writeable = False
        return array

    def inner(self, name: str) -> Container:
        """Return the container that is a section of this one, verified if this one is."""
        data: NDArray[np.uint8] = self.array(name, np.uint8, 1)
        return _opened(f"{self.path}, section {name!r}", data, verify=False)

    def verify(self) -> None:
        """Read every section and raise `CorruptIndexError` if one is damaged."""
        self._check(list(self._sections.values()))

    def verify_rest(self, *names: str) -> None:
        """Verify the sections, or those with these names, that have not been verified so far."""
        wanted = self._unverified.intersection(names) if names else self._unverified
        self._check([section for section in self._sections.values() if section.name in wanted])

    def verify_ahead(self) -> None:
        """Verify all that `array` would, on several threads, for callers that use every section."""
        if self._verifies:
            self.verify_rest()

    def _raw(self, section: _Section) -> NDArray[np.uint8]:
        if section.nbytes == 0:
            return np.frombuffer(b"", np.uint8)
        return np.frombuffer(self._mapping, np.uint8, section.nbytes, section.offset)

    def _check(self, sections: Sequence[_Section]) -> None:
        found = checksums(self._mapping, [(each.offset, each.nbytes) for each in sections])
        for section, checksum in zip(sections, found, strict=True):
            if checksum != section.checksum:
                raise CorruptIndexError(
                    f"{self.path}: the section {section.name!r} has the checksum {checksum:016x}, "
                    f"expected {section.checksum:016x}; it is damaged, restore or rebuild it"
                )
        self._unverified.difference_update(section.name for section in sections)

    def _read_meta(self) -> dict[str, Any]:
        section = self._sections.get("meta")
        if section is None or section.dtype != np.uint8:
            raise CorruptIndexError(f"{self.path}: the section 'meta' is missing")
        self._check([section])
        try:
            meta = json.loads(self._raw(section).tobytes())
        except (ValueError, RecursionError) as error:
            raise CorruptIndexError(f"{self.path}: 'meta' is not JSON: {error}") from error
        if not isinstance(meta, dict):
            raise CorruptIndexError(f"{self.path}: 'meta' is not a JSON object")
        return meta


def write_container(
    path: str | os.PathLike[str], meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Write `meta` and `arrays` to `path`, whole or not at all, replacing what was there."""
    pieces = _pieces(meta, arrays)
    size = sum(map(len, pieces))
    with whole_file(path) as temporary, open(temporary, "x+b") as file:
        for piece in pieces:
            for begin in range(0, len(piece), _PIECE):
                file.write(piece[begin : begin + _PIECE])
                report(file.tell(), size)


def container_bytes(meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return what `write_container` would write."""
    return b"".join(_pieces(meta, arrays))


def _pieces(meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> list[Any]:
    """Return the bytes of a container in pieces; arrays are not copied."""
    contents: dict[str, NDArray[Any]] = {"meta": _encoded(meta)}
    for name, array in arrays.items():
        contents[name] = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
    sections = _laid_out({name: (array.dtype, array.shape) for name, array in contents.items()})
    found = [_native.xxh64(_as_raw(array)) for array in contents.values()]
    pieces: list[Any] = [_head(sections, found)]
    end = len(pieces[0])
    for section, array in zip(sections, contents.values(), strict=True):
        pieces += [bytes(section.offset - end), _as_raw(array).data]
        end = section.offset + section.nbytes
    return pieces


class ContainerWriter:
    """Writes a container in pieces and in any order: see `new_container`."""

    def __init__(self, file: BinaryIO, sections: Sequence[_Section]) -> None:
        self._file = file
        self._sections = {section.name: section for section in sections}

    def write(self, name: str, start: int, array: NDArray[Any]) -> None:
        """Write a piece of a section, from position `start` of the flat array on."""
        section = self._sections[name]
        if array.dtype != section.dtype or start * array.itemsize + array.nbytes > section.nbytes:
            raise ValueError(f"{array.dtype}[{array.size}] at {start} is not a part of {section}")
        self._file.seek(section.offset + start * array.itemsize)
        self._file.write(_as_raw(array).data)


@contextlib.contextmanager
def new_container(
    path: str | os.PathLike[str],
    meta: Mapping[str, Any],
    arrays: Mapping[str, tuple[np.dtype[Any], tuple[int, ...]]],
) -> Iterator[ContainerWriter]:
    """Write arrays that do not fit into memory; `arrays` are their types and shapes."""
    encoded = _encoded(meta)
    sections = _laid_out({"meta": (encoded.dtype, encoded.shape), **arrays})
    with whole_file(path) as temporary, open(temporary, "x+b") as file:
        writer = ContainerWriter(file, sections)
        writer.write("meta", 0, encoded)
        yield writer
        file.truncate(sections[-1].offset + sections[-1].nbytes)
        file.flush()
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapping:
            found = checksums(mapping, [(each.offset, each.nbytes) for each in sections])
        file.seek(0)
        file.write(_head(sections, found))


def _encoded(meta: Mapping[str, Any]) -> NDArray[np.uint8]:
    return np.frombuffer(json.dumps(dict(meta), sort_keys=True).encode(), np.uint8)


def _laid_out(arrays: Mapping[str, tuple[np.dtype[Any], tuple[int, ...]]]) -> list[_Section]:
    """Return the place of each array in the file; checksums are not known yet."""
    sections = []
    end = _HEADER.size + _ENTRY.size * len(arrays)
    for name, (dtype, shape) in arrays.items():
        section = _Section(name, dtype, shape, -(-end // _ALIGNMENT) * _ALIGNMENT, 0)
        sections.append(section)
        end = section.offset + section.nbytes
    return sections


def _head(sections: Sequence[_Section], checksums: Sequence[int]) -> bytes:
    table = b""
    for section, checksum in zip(sections, checksums, strict=True):
        rows, columns = section.shape if len(section.shape) == 2 else (section.shape[0], 0)
        dtype = section.dtype.str[1:].encode()
        table += _ENTRY.pack(section.name.encode(), dtype, rows, columns, section.offset, checksum)
    end = sections[-1].offset + sections[-1].nbytes
    fields = (_MAGIC, FORMAT_VERSION, _NATIVE_ORDER, len(sections), end, _checksum(table), 0)
    header = _HEADER.pack(*fields)[:-8]
    return header + struct.pack("<Q", _checksum(header)) + table


def is_container(path: str | os.PathLike[str]) -> bool:
    """Return whether a file begins like a container."""
    with file_errors(path), open(path, "rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def open_container(path: str | os.PathLike[str], *, verify: bool = True) -> Container:
    """Open a container; sections are verified on first use, unless `verify` is False."""
    source = Path(path)
    try:
        with open(source, "rb") as file:
            length = os.fstat(file.fileno()).st_size
            sections = _read_table(source, file, length)
            mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        meant = did_you_mean_file(source) if isinstance(error, FileNotFoundError) else ""
        raise FileError(f"{source} cannot be read: {error.strerror or error}{meant}") from error
    return Container(source, mapping, sections, verify)


def container_in(data: bytes | bytearray | memoryview) -> Container:
    """Return the container in bytes, checked like a file; mutable data is copied first."""
    try:
        view = memoryview(data if isinstance(data, bytes) else bytes(memoryview(data)))
    except (TypeError, ValueError):  # not a buffer, or not of bytes
        raise ArgumentError(
            f"data is {brief(data)}; expected bytes, as to_bytes() returns them"
        ) from None
    return _opened("the bytes", np.frombuffer(view, np.uint8), verify=True)


def _opened(source: str, data: NDArray[np.uint8], *, verify: bool) -> Container:
    head = io.BytesIO(data[: _HEADER.size + _MOST_SECTIONS * _ENTRY.size].tobytes())
    return Container(source, data, _read_table(source, head, len(data)), verify)


def _read_table(source: Path | str, file: BinaryIO, length: int) -> dict[str, _Section]:
    header = file.read(_HEADER.size)
    if header[: len(_MAGIC)] != _MAGIC:
        raise FormatError(
            f"{source} is not a lookalike file: it begins with {header[:8]!r}, expected {_MAGIC!r}"
        )
    if len(header) < _HEADER.size:
        raise CorruptIndexError(
            f"{source} ends inside its header, after {length} of {_HEADER.size} bytes"
        )
    _, version, order, count, expected_length, table_checksum, checksum = _HEADER.unpack(header)
    if version != FORMAT_VERSION:
        raise FormatError(
            f"{source} has format version {version}; this lookalike reads version "
            f"{FORMAT_VERSION}: open the file with the version that wrote it, or a newer one"
        )
    if _checksum(header[:-8]) != checksum or order not in (b"<", b">"):
        raise CorruptIndexError(f"{source}: the header does not match its checksum; it is damaged")
    if length != expected_length:
        raise CorruptIndexError(
            f"{source} has {length} bytes, its header says {expected_length}; "
            "it was truncated or extended: copy or write it again"
        )
    if count > _MOST_SECTIONS:
        raise CorruptIndexError(f"{source} names {count} sections; at most {_MOST_SECTIONS} exist")
    table = file.read(_ENTRY.size * count)
    if len(table) < _ENTRY.size * count or _checksum(table) != table_checksum:
        raise CorruptIndexError(f"{source}: the section table does not match its checksum")

    sections: dict[str, _Section] = {}
    end = _HEADER.size + len(table)
    for raw_name, raw_dtype, rows, columns, offset, section_checksum in _ENTRY.iter_unpack(table):
        name = raw_name.rstrip(b"\0").decode("ascii", "replace")
        code = raw_dtype.rstrip(b"\0").decode("ascii", "replace")
        if code not in _DTYPES:
            raise CorruptIndexError(f"{source}: the section {name!r} is of unknown type {code!r}")
        dtype = np.dtype(order.decode() + code)
        shape = (rows, columns) if columns else (rows,)
        section = _Section(name, dtype, shape, offset, section_checksum)
        if (
            max(shape) > _LONGEST
            or offset % _ALIGNMENT
            or not (end <= offset <= offset + section.nbytes <= length)
        ):
            raise CorruptIndexError(
                f"{source}: the section {name!r} at bytes {offset} to {offset + section.nbytes} "
                "overlaps another one or exceeds the file"
            )
        end = offset + section.nbytes
        sections[name] = section
    return sections


def _as_raw(array: NDArray[Any]) -> NDArray[np.uint8]:
    return array.reshape(-1).view(np.uint8)


def _checksum(data: bytes) -> int:
    return _native.xxh64(np.frombuffer(data, np.uint8))


def checksums(mapping: Mapped, ranges: Sequence[tuple[int, int]]) -> list[int]:
    """Return the XXH64 of each (offset, length), with one thread for each large range."""
    waiting = deque(sorted(range(len(ranges)), key=lambda at: -ranges[at][1]))  # longest first
    found: list[int | None] = [None] * len(ranges)
    stop = threading.Event()

    def checksum(offset: int, length: int) -> int:
        running = RunningChecksum(mapping, offset)
        running.add(length, stop)
        return running.value()

    def work() -> None:
        with contextlib.suppress(IndexError):
            while not stop.is_set():
                at = waiting.popleft()
                found[at] = checksum(*ranges[at])

    large = sum(length >= _WORTH_A_THREAD for _, length in ranges)
    helpers = []
    try:
        with contextlib.suppress(RuntimeError):  # no more threads: the others do all
            for _ in range(1, min(thread_count(None), large)):
                helper = threading.Thread(target=work, daemon=True)
                helper.start()
                helpers.append(helper)
        work()
        for helper in helpers:
            helper.join()
    except BaseException:
        stop.set()
        for helper in helpers:
            helper.join()
        raise
    # A helper may have run out of memory.
    return [checksum(*ranges[at]) if value is None else value for at, value in enumerate(found)]


class RunningChecksum:
    """The XXH64 of a part of a mapped file that is read piece by piece."""

    def __init__(self, mapping: Mapped, offset: int) -> None:
        self._mapping = mapping
        self._at = offset
        self._found = _native.Xxh64()

    def add(self, length: int, stop: threading.Event | None = None) -> None:
        """Read this many bytes more, or fewer if `stop` is set."""
        end = self._at + length
        while self._at < end and not (stop is not None and stop.is_set()):
            here = min(self._at + _PIECE, end)
            _ask_for(self._mapping, here, min(here + _PIECE, end))
            self._found.add(np.frombuffer(self._mapping, np.uint8, here - self._at, self._at))
            self._at = here

    def value(self) -> int:
        """Return the checksum so far."""
        return self._found.value()


def _ask_for(mapping: Mapped, begin: int, end: int) -> None:
    """Let the system read what comes next meanwhile: twice as fast from a disk."""
    first = begin // mmap.PAGESIZE * mmap.PAGESIZE
    if begin < end and isinstance(mapping, mmap.mmap) and hasattr(mmap, "MADV_WILLNEED"):
        with contextlib.suppress(OSError):
            mapping.madvise(mmap.MADV_WILLNEED, first, end - first)
