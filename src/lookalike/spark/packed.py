"""Arrays in rows: thousands of records travel as one binary value, so that a row costs little.

A record is an element of a NumPy array with named fields. Spark sees the bucket that it goes to,
what kind it is, and bytes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial, update_wrapper
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.corpora.base import pa
from lookalike.dedup.pairs import Ints
from lookalike.lazy import LazyModule

sql = LazyModule("pyspark.sql.functions", "lookalike.spark", extra="spark")
"""Functions on columns; imported when the first one is called."""

Batches = Iterator[Any]
"""Record batches, of one partition."""

_TYPES = {"int": "int32", "long": "int64", "double": "float64"}
"""Names of types in Arrow, where Spark has others."""

PACKED = "bucket int, kind int, data binary"

_BYTES_A_ROW = 1 << 16
"""Of records in a row; more would make large batches, few would make rows dear."""


def map_arrow(frame: Any, function: Callable[..., Iterable[Any]], schema: Any, *before: Any) -> Any:
    """Return `frame.mapInArrow(...)` of a function that takes `before` and then the batches."""
    names = frame.columns
    function = update_wrapper(partial(function, *before), function)  # which names it in plans
    if any("." in name for name in names):  # which PySpark takes for parts of structures
        frame = frame.toDF(*(f"c{at}" for at in range(len(names))))
        function = partial(_with_names, function, names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return frame.mapInArrow(function, schema)


def _with_names(
    function: Callable[[Batches], Iterable[Any]], names: list[str], batches: Batches
) -> Iterable[Any]:
    return function(batch.rename_columns(names) for batch in batches)


def table_of(batches: Batches) -> Any | None:
    """Return all rows of a partition; None if there are none."""
    parts = [batch for batch in batches if len(batch)]
    return pa.Table.from_batches(parts) if parts else None


def rows_of(schema: str, **columns: Any) -> Any:
    """Return a record batch of a schema such as "kind int, left long".

    A column is an array, or a number for all rows; those that are not given are null.
    """
    count = next(len(values) for values in columns.values() if not isinstance(values, int))
    made = {}
    for name, kind in (part.split() for part in schema.split(", ")):
        values, type = columns.get(name), pa.type_for_alias(_TYPES.get(kind, kind))
        if values is None:
            made[name] = pa.nulls(count, type)
        elif isinstance(values, pa.Array):
            made[name] = values
        else:
            full = np.full(count, values) if isinstance(values, int) else values
            made[name] = pa.array(full, type)
    return pa.record_batch(made)


def runs(values: NDArray[np.integer[Any]]) -> Iterator[tuple[int, int]]:
    """Yield where runs of equal values, which are not negative, begin and end."""
    return pairwise(np.flatnonzero(np.diff(values, prepend=-1, append=-1)).tolist())


def steps(counts: NDArray[np.integer[Any]]) -> Ints:
    """Return 0, 1, ... for each count, up to it, one after the other."""
    found: Ints = np.arange(counts.sum()) - np.repeat(counts.cumsum() - counts, counts)
    return found


def shuffled(frame: Any, buckets: int) -> Any:
    """Return packed rows by bucket: a partition each."""
    return frame.repartitionById(buckets, "bucket")


def packed(records: NDArray[Any], buckets: NDArray[np.integer[Any]], kind: int) -> Batches:
    """Yield records as packed rows, each in its bucket; they are sorted by it."""
    if not len(records):
        return
    # Short numbers are sorted digit by digit, and 16 bytes are copied as one number.
    short = buckets.astype(np.uint16) if int(buckets.max()) < 1 << 16 else buckets
    order = np.argsort(short, kind="stable")
    buckets = buckets[order]
    if records.dtype.itemsize == np.dtype(np.complex128).itemsize:
        records = records.view(np.complex128)[order].view(records.dtype)
    else:
        records = records[order]
    begins = np.flatnonzero(np.diff(buckets, prepend=-1))
    yield from packed_by_bucket(records, buckets[begins], np.append(begins, len(records)), kind)


def packed_by_bucket(
    records: NDArray[Any], buckets: NDArray[np.integer[Any]], begins: Ints, kind: int
) -> Batches:
    """Yield records as packed rows; those of bucket i are records[begins[i] : begins[i + 1]]."""
    if not len(records):
        return
    most = max(1, _BYTES_A_ROW // records.dtype.itemsize)
    sizes, begins = np.diff(begins), begins[:-1]
    pieces = -(-sizes // most)
    begins = np.repeat(begins, pieces) + steps(pieces) * most
    ends = np.append(begins[1:], len(records))
    bucket = np.repeat(buckets, pieces).astype(np.int32)
    for one, end in runs(ends * records.dtype.itemsize >> 26):  # far from Arrow's 2 GB
        first, last = begins[one], ends[end - 1]
        offsets = (np.append(begins[one:end], last) - first) * records.dtype.itemsize
        data = _binary(records[first:last], offsets)
        yield rows_of(PACKED, bucket=bucket[one:end], kind=kind, data=data)


def packed_row(kind: int, data: bytes) -> Any:
    """Return bytes of any kind as a packed row, of the first bucket."""
    return rows_of(PACKED, bucket=0, kind=kind, data=[data])


def _binary(records: NDArray[Any], offsets: Ints) -> Any:
    data = pa.py_buffer(np.ascontiguousarray(records).view(np.uint8))
    ends = pa.py_buffer(offsets.astype(np.int32))
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, [None, ends, data])


def fixed_binary(rows: NDArray[Any]) -> Any:
    """Return the rows of an array, or records, as a column of bytes."""
    width = rows.dtype.itemsize * (rows.shape[1] if rows.ndim == 2 else 1)
    return _binary(rows, np.arange(len(rows) + 1) * width)


def bytes_of(column: Any) -> bytes:
    """Return the bytes of all rows of a column, one after the other."""
    if isinstance(column, pa.ChunkedArray):
        return b"".join(bytes_of(chunk) for chunk in column.chunks if len(chunk))
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int32)[[column.offset, column.offset + len(column)]]
    return bytes(memoryview(data)[ends[0] : ends[1]]) if data is not None else b""


def signatures_of(column: Any, width: int = -1) -> NDArray[np.uint8]:
    """Return a column of signatures as an array; `width` is needed if there may be none."""
    return np.frombuffer(bytes_of(column), np.uint8).reshape(len(column), width)


def by_kind(table: Any, *kinds: int) -> list[Any]:
    """Return the rows of a table of each kind."""
    known = table["kind"].to_numpy()
    return [table.filter(pa.array(known == kind)) for kind in kinds]


def gathered(batches: Batches, dtype: Any) -> dict[int, NDArray[Any]]:
    """Return all records of a partition, by kind; `dtype` gives that of each kind."""
    found: dict[int, list[bytes]] = {}
    for batch in batches:
        kinds = batch.column("kind").to_numpy()
        data = batch.column("data")
        for kind in np.unique(kinds).tolist():
            mine = data if (kinds == kind).all() else data.filter(pa.array(kinds == kind))
            found.setdefault(kind, []).append(bytes_of(mine))
    return {
        kind: np.frombuffer(b"".join(parts), dtype[kind] if isinstance(dtype, dict) else dtype)
        for kind, parts in found.items()
    }


def as_columns(dtype: Any, kind: int, batches: Batches) -> Iterator[Any]:
    """Yield a row for each record of a kind, with a column for each of its fields."""
    for batch in batches:
        found = gathered(iter([batch]), dtype).get(kind)
        if found is not None:
            columns = {}
            for name in found.dtype.names or ():
                values = np.ascontiguousarray(found[name])
                wide = values.dtype.itemsize == 8  # Spark has no unsigned numbers
                columns[name] = pa.array(values.view(np.int64) if wide else values)
            yield pa.record_batch(columns)
