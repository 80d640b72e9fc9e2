"""How much the pages of a Parquet file expand to, before one of them is.

A page is decompressed whole, and a value that a dictionary or a prefix stands for becomes as many
copies as there are rows: a file of some kilobytes can be gigabytes. What a page's header says is
what readers allocate, so headers are all that is looked at (format: apache/parquet-format, in
Thrift's compact protocol).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from lookalike import _native
from lookalike.corpora.base import pa
from lookalike.errors import FileError

_HEADER_BYTES, _LARGEST_HEADER = 1 << 10, 16 << 20
_DATA, _DATA_V2, _DICTIONARY = 0, 3, 2
_PREFIXED = 7  # DELTA_BYTE_ARRAY: of values that begin alike, the beginning is there once
_NESTED_DEEPEST = 16

_CODECS = {
    "UNCOMPRESSED": "",
    "SNAPPY": "snappy",
    "GZIP": "gzip",
    "ZSTD": "zstd",
    "BROTLI": "brotli",
    "LZ4": "lz4_raw",  # or an older one, which fails then
}
"""As pyarrow calls them."""
_LOOKED_INTO = 8 << 20

Fields = dict[int, Any]


@dataclass
class Pages:
    """What is known of the pages of a row group."""

    largest: int = 0
    """Bytes of a page."""
    long_value: int = 0
    """Bytes that some value has at least; its page has no room for shorter ones only."""
    repeated: int = 0
    """Bytes that a value may have which is there once and stands in many rows."""
    row: int = 0
    """Bytes of a row, in the page that has the longest on average."""

    def rows_within(self, size: int, most: int) -> int:
        """Return how many rows to decode at a time so that they take about `size` bytes."""
        longest = max(1, self.row, self.repeated // _REPEATED_ROOM)
        return max(1, min(most, size // longest))


_REPEATED_ROOM = 4
"""How many times the size may be exceeded by repeated values: they hardly are all so long."""


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
                    raise FileError(
                        f"{path}: is not readable Parquet: a page of the column "
                        f"{chunk.path_in_schema!r} has no valid header"
                    ) from error
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
        count, encoding = (
            (header[5][1], header[5][2]) if kind == _DATA else (header[8][1], header[8][4])
        )
        left -= count
        if encoding == _PREFIXED:
            found.repeated = max(found.repeated, size)
        if count > 0:
            found.row = max(found.row, int(size / count * values_a_row))
            # Besides its bytes, a value has its length and whether it is there; at most 16 bytes.
            found.long_value = max(found.long_value, size // count - 16 if is_text else 0)


def _longest_value(file: BinaryIO, packed: int, size: int, codec: str) -> int:
    """Return the bytes of the longest value of a dictionary's page, or what is more."""
    name = _CODECS.get(codec)
    if name is None or max(size, packed) > _LOOKED_INTO:
        return size
    data = file.read(packed)
    try:
        if name:
            data = pa.decompress(data, size, name, asbytes=True)
    except (OSError, pa.ArrowException):
        return size  # whoever reads it will say what is wrong
    longest = _native.longest_prefixed(np.frombuffer(data, np.uint8))
    return size if longest is None or len(data) != size else longest


def _page_header(file: BinaryIO, position: int) -> tuple[Fields, int]:
    """Return the fields of a page's header, and how many bytes it has."""
    room = _HEADER_BYTES
    while True:
        file.seek(position)
        data = file.read(room)
        try:
            reader = _Compact(data)
            return reader.struct(), reader.at
        except IndexError:
            if len(data) < room or room >= _LARGEST_HEADER:
                raise
            room *= 16


class _Compact:
    """Reads Thrift's compact protocol; IndexError where the data end too early."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def struct(self, depth: int = 0) -> Fields:
        """Return the fields by number."""
        if depth > _NESTED_DEEPEST:
            raise ValueError
        fields: Fields = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._signed()
            fields[number] = self._value(head & 15, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (1, 2):
            return kind == 1
        if kind == 3:
            return self._byte()
        if kind in (4, 5, 6):
            return self._signed()
        if kind == 7:
            return self._skip(8)
        if kind == 8:
            return self._skip(self._varint())
        if kind in (9, 10):
            head = self._byte()
            size = self._varint() if head >> 4 == 15 else head >> 4
            return [self._value(head & 15, depth + 1) for _ in range(min(size, len(self._data)))]
        if kind == 12:
            return self.struct(depth + 1)
        raise ValueError

    def _byte(self) -> int:
        self.at += 1
        return self._data[self.at - 1]

    def _skip(self, count: int) -> None:
        self.at += count
        if self.at > len(self._data):
            raise IndexError

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
            if shift > 63:
                raise ValueError

    def _signed(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
