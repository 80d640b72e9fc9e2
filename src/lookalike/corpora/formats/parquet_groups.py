"""Parquet written by several threads: each makes a file of one row group, and they become one.

Nothing but places changes: the bytes of groups follow each other, and the footer of the first gets
the descriptions of all, with offsets moved to where the bytes are now (format:
apache/parquet-format, in Thrift's compact protocol).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO

from lookalike.corpora.base import pa
from lookalike.errors import FileError
from lookalike.lazy import LazyModule

parquet = LazyModule("pyarrow.parquet", "Parquet")

_MAGIC = b"PAR1"
_TAIL = 8  # the length of the footer, and the magic
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)

Field = tuple[int, int, Any]
"""Number, type and value; that of a list is the type of its elements, and these."""

_ROWS, _GROUPS = 3, 4  # of the footer
_COLUMNS, _GROUP_OFFSET, _ORDINAL = 1, 5, 7  # of a row group
_CHUNK_OFFSET, _CHUNK, _OFFSET_INDEX, _COLUMN_INDEX = 2, 3, 4, 6  # of a column in it
_PAGE_OFFSETS = (9, 10, 11, 14)  # of its description: data, index, dictionary, filter


def write_groups(
    groups: Iterator[Any], schema: Any, path: Path, compression: str, threads: int
) -> None:
    """Write tables of one schema, with its metadata, as the row groups of a file.

    As many as there are threads are in memory at once, each as a table and as bytes.
    """
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
    """Return the bytes of a file with one row group, or none."""
    sink = pa.BufferOutputStream()
    with parquet.ParquetWriter(sink, schema, compression=compression) as writer:
        if group is not None:
            writer.write_table(group, row_group_size=len(group))
    return sink.getvalue()


class _Joined:
    """A file that grows by the row groups of others."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._rows = 0
        self._groups: list[Any] = []
        self.footer: list[Field] | None = None
        file.write(_MAGIC)

    def append(self, encoded: Any) -> None:
        """Append the row groups of a file."""
        data = memoryview(encoded)
        begin = len(data) - _TAIL - int.from_bytes(data[-_TAIL:-4], "little")
        footer = _Reader(data[begin:-_TAIL]).struct()
        moved = self._file.tell() - len(_MAGIC)
        self._file.write(data[len(_MAGIC) : begin])
        fields = {number: value for number, _, value in footer}
        for group in fields[_GROUPS][1]:
            self._groups.append(_moved_group(group, moved, len(self._groups)))
        self._rows += fields[_ROWS]
        self.footer = self.footer or footer

    def finish(self) -> None:
        """Write the footer."""
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
        elif number == _ORDINAL:  # of 16 bits, so that those beyond have none
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


class _Reader:
    """Reads Thrift's compact protocol so that it can be written again, whatever is in it."""

    def __init__(self, data: memoryview) -> None:
        self._data = bytes(data)
        self._at = 0

    def struct(self) -> list[Field]:
        """Return the fields, in their order."""
        fields: list[Field] = []
        number = 0
        while head := self._take(1)[0]:
            number = number + (head >> 4) if head >> 4 else self._signed()
            kind = head & 15
            fields.append((number, kind, kind == _TRUE if kind <= _FALSE else self._value(kind)))
        return fields

    def _value(self, kind: int) -> Any:
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
            return head & 15, [self._value(head & 15) for _ in range(size)]
        if kind == _STRUCT:
            return self.struct()
        raise FileError(f"a footer of Parquet has a value of type {kind}, which was not expected")

    def _take(self, count: int) -> bytes:
        self._at += count
        return self._data[self._at - count : self._at]

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._take(1)[0]
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def _signed(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)


class _Writer:
    """Writes what `_Reader` has read."""

    def __init__(self) -> None:
        self.data = bytearray()

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
