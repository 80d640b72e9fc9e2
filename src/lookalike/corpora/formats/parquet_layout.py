"""The layout of Parquet files (apache/parquet-format, in Thrift's compact protocol).

`measure_pages` finds the decompressed size of the pages of a row group from their headers. A page
is decompressed whole, and a value of a dictionary is copied for each row, so a file of some
kilobytes can expand to gigabytes.

`write_groups` writes a file with several threads: each encodes one row group as a file, and these
are joined. The footer of the first gets the row groups of all, with their offsets adjusted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from lookalike import _native
from lookalike.corpora.base import pa
from lookalike.errors import FileError
from lookalike.lazy import LazyModule

parquet = LazyModule("pyarrow.parquet", "Parquet")

_HEADER_BYTES, _LARGEST_HEADER = 1 << 10, 16 << 20
_DATA, _DATA_V2, _DICTIONARY = 0, 3, 2
_PREFIXED = 7  # DELTA_BYTE_ARRAY: a common prefix of values is stored once
_NESTED_DEEPEST = 16
_REPEATED_ROOM = 4  # repeated values may exceed the size by this factor: few are that long

# pyarrow's names of codecs
_CODECS = {"UNCOMPRESSED": "", "LZ4": "lz4_raw"} | {
    name.upper(): name for name in ("snappy", "gzip", "zstd", "brotli")
}
_LOOKED_INTO = 8 << 20

_MAGIC = b"PAR1"
_TAIL = 8  # the length of the footer, and the magic
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)

Field = tuple[int, int, Any]
"""Number, type and value; the value of a list is the type of its elements, and the elements."""

_ROWS, _GROUPS = 3, 4  # of the footer
_COLUMNS, _GROUP_OFFSET, _ORDINAL = 1, 5, 7  # of a row group
_CHUNK_OFFSET, _CHUNK, _OFFSET_INDEX, _COLUMN_INDEX = 2, 3, 4, 6  # of a column in it
_PAGE_OFFSETS = (9, 10, 11, 14)  # of its description: data, index, dictionary, filter


@dataclass
class Pages:
    """Sizes in bytes of the pages of a row group."""

    largest: int = 0
    long_value: int = 0  # a lower bound on the size of the longest value
    repeated: int = 0  # the largest size of a value that is stored once for many rows
    row: int = 0  # the average size of a row, in the page with the longest rows

    def rows_within(self, size: int, most: int) -> int:
        """Return the number of rows to decode at a time, so that they take about `size` bytes."""
        longest = max(1, self.row, self.repeated // _REPEATED_ROOM)
        return max(1, min(most, size // longest))


def measure_pages(path: Path, group: Any, columns: Collection[str]) -> Pages:
    """Read the headers of all pages of some columns of a row group."""
    found = Pages()
    with open(path, "rb") as file:
        for index in range(group.num_columns):
            chunk = group.column(index)
            if chunk.path_in_schema.partition(".")[0] in columns:
                try:
                    _measure(file, chunk, group.num_rows, found)
                except (IndexError, KeyError, TypeError, ValueError) as error:
                    page = f"a page of the column {chunk.path_in_schema!r} has no valid header"
                    raise FileError(f"{path} is not valid Parquet: {page}") from error
    return found


def _measure(file: BinaryIO, chunk: Any, rows: int, found: Pages) -> None:
    position: int = chunk.data_page_offset
    if chunk.dictionary_page_offset is not None and 0 < chunk.dictionary_page_offset < position:
        position = chunk.dictionary_page_offset
    end = position + chunk.total_compressed_size
    values_a_row = max(1, chunk.num_values) / max(1, rows)
    is_text = chunk.physical_type == "BYTE_ARRAY"
    left = chunk.num_values
    while left > 0 and position < end:
        header, length = _page_header(file, position)
        kind, size, packed = header[1], header[2], header[3]
        if min(length, size, packed) < 0:
            raise ValueError
        found.largest = max(found.largest, size)
        if kind == _DICTIONARY and is_text:
            file.seek(position + length)
            longest = _longest_value(file, packed, size, chunk.compression)
            found.repeated = max(found.repeated, longest)
        position += length + packed
        if kind not in (_DATA, _DATA_V2):
            continue
        of_data = _numbered(header[5] if kind == _DATA else header[8])
        count, encoding = of_data[1], of_data[2 if kind == _DATA else 4]
        left -= count
        if encoding == _PREFIXED:
            found.repeated = max(found.repeated, size)
        if count > 0:
            found.row = max(found.row, int(size / count * values_a_row))
            # A value also has its length and definition level, at most 16 bytes.
            found.long_value = max(found.long_value, size // count - 16 if is_text else 0)


def _longest_value(file: BinaryIO, packed: int, size: int, codec: str) -> int:
    """Return an upper bound on the bytes of the longest value in a dictionary page."""
    name = _CODECS.get(codec)
    if name is None or max(size, packed) > _LOOKED_INTO:
        return size
    data = file.read(packed)
    try:
        if name:
            data = pa.decompress(data, size, name, asbytes=True)
    except (OSError, pa.ArrowException):
        return size  # reading it will report the error
    longest = _native.longest_prefixed(np.frombuffer(data, np.uint8))
    return size if longest is None or len(data) != size else longest


def _page_header(file: BinaryIO, position: int) -> tuple[dict[int, Any], int]:
    room = _HEADER_BYTES
    while True:
        file.seek(position)
        data = file.read(room)
        try:
            reader = _Reader(data)
            return _numbered(reader.struct()), reader.at
        except IndexError:
            if len(data) < room or room >= _LARGEST_HEADER:
                raise
            room *= 16


def write_groups(
    groups: Iterator[Any], schema: Any, path: Path, compression: str, threads: int
) -> None:
    """Write tables of one schema, with its metadata, as the row groups of a file."""
    with open(path, "wb") as file, ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[Any]] = deque()
        made = _Joined(file)
        for group in groups:
            waiting.append(pool.submit(_encoded, group, schema, compression))
            if len(waiting) > threads:
                made.append(waiting.popleft().result())
        while waiting:
            made.append(waiting.popleft().result())
        if made.footer is None:
            made.append(_encoded(None, schema, compression))
        made.finish()


def _encoded(group: Any, schema: Any, compression: str) -> Any:
    sink = pa.BufferOutputStream()
    with parquet.ParquetWriter(sink, schema, compression=compression) as writer:
        if group is not None:
            writer.write_table(group, row_group_size=len(group))
    return sink.getvalue()


class _Joined:
    """A file that the row groups of other files are appended to."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._rows = 0
        self._groups: list[Any] = []
        self.footer: list[Field] | None = None
        file.write(_MAGIC)

    def append(self, encoded: Any) -> None:
        data = memoryview(encoded)
        begin = len(data) - _TAIL - int.from_bytes(data[-_TAIL:-4], "little")
        footer = _Reader(bytes(data[begin:-_TAIL])).struct()
        moved = self._file.tell() - len(_MAGIC)
        self._file.write(data[len(_MAGIC) : begin])
        fields = _numbered(footer)
        for group in fields[_GROUPS][1]:
            self._groups.append(_moved_group(group, moved, len(self._groups)))
        self._rows += fields[_ROWS]
        self.footer = self.footer or footer

    def finish(self) -> None:
        changed = {_ROWS: self._rows, _GROUPS: (_STRUCT, self._groups)}
        writer = _Writer()
        writer.struct([(at, kind, changed.get(at, value)) for at, kind, value in self.footer or ()])
        footer = bytes(writer.data)
        self._file.write(footer + len(footer).to_bytes(4, "little") + _MAGIC)


def _moved_group(group: list[Field], by: int, ordinal: int) -> list[Field]:
    moved: list[Field] = []
    for number, kind, value in group:
        if number == _COLUMNS:
            value = (value[0], [_moved_chunk(chunk, by) for chunk in value[1]])
        elif number == _GROUP_OFFSET:
            value += by
        elif number == _ORDINAL:  # has 16 bits, so later row groups have none
            value = ordinal
            if ordinal >= 1 << 15:
                continue
        moved.append((number, kind, value))
    return moved


def _moved_chunk(chunk: list[Field], by: int) -> list[Field]:
    moved: list[Field] = []
    for number, kind, value in chunk:
        if number == _CHUNK:
            value = [
                (at, of, inner + by if at in _PAGE_OFFSETS else inner) for at, of, inner in value
            ]
        elif number in (_OFFSET_INDEX, _COLUMN_INDEX) or (number == _CHUNK_OFFSET and value):
            value += by
        moved.append((number, kind, value))
    return moved


@dataclass
class _Reader:
    """Reads Thrift's compact protocol; hostile data raises `IndexError` or `ValueError`."""

    _data: bytes
    at: int = 0

    def struct(self, depth: int = 0) -> list[Field]:
        """Return the fields, in their order."""
        if depth > _NESTED_DEEPEST:
            raise ValueError("nested too deeply")
        fields: list[Field] = []
        number = 0
        while head := self._take(1)[0]:
            number = number + (head >> 4) if head >> 4 else self._signed()
            kind = head & 15
            value = kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind, depth)
            fields.append((number, kind, value))
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (_TRUE, _FALSE, _BYTE):
            return self._take(1)
        if kind in (_I16, _I32, _I64):
            return self._signed()
        if kind == _DOUBLE:
            return self._take(8)
        if kind == _BINARY:
            return self._take(self._varint())
        if kind in (_LIST, _SET):
            head = self._take(1)[0]
            size = self._varint() if head >> 4 == 15 else head >> 4
            return head & 15, [self._value(head & 15, depth + 1) for _ in range(size)]
        if kind == _STRUCT:
            return self.struct(depth + 1)
        raise ValueError(f"has a value of type {kind}")

    def _take(self, count: int) -> bytes:
        self.at += count
        if self.at > len(self._data):
            raise IndexError
        return self._data[self.at - count : self.at]

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._take(1)[0]
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
            if shift > 63:
                raise ValueError("has a number of more than 64 bits")

    def _signed(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)


def _numbered(fields: list[Field]) -> dict[int, Any]:
    return {number: value for number, _, value in fields}


@dataclass
class _Writer:
    """Writes what `_Reader` has read."""

    data: bytearray = field(default_factory=bytearray)

    def struct(self, fields: list[Field]) -> None:
        """Append fields, which are ascending."""
        last = 0
        for number, kind, value in fields:
            if 0 < number - last < 16:
                self.data.append((number - last) << 4 | kind)
            else:
                self.data.append(kind)
                self._signed(number)
            if kind > _FALSE:
                self._value(kind, value)
            last = number
        self.data.append(0)

    def _value(self, kind: int, value: Any) -> None:
        if kind in (_I16, _I32, _I64):
            self._signed(value)
        elif kind == _BINARY:
            self._varint(len(value))
            self.data += value
        elif kind in (_LIST, _SET):
            of, values = value
            self.data.append(min(15, len(values)) << 4 | of)
            if len(values) >= 15:
                self._varint(len(values))
            for one in values:
                self._value(of, one)
        elif kind == _STRUCT:
            self.struct(value)
        else:
            self.data += value

    def _varint(self, value: int) -> None:
        while value > 127:
            self.data.append(value & 127 | 128)
            value >>= 7
        self.data.append(value)

    def _signed(self, value: int) -> None:
        self._varint(value << 1 if value >= 0 else (-value << 1) - 1)
