"""Vectors as callers pass them: arrays, or columns of lists."""

from __future__ import annotations

from typing import Any, SupportsFloat

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import as_array
from lookalike.errors import ArgumentError, DocumentError, Said
from lookalike.shown import brief

_CHECKED = 1 << 22  # values that are looked at together
Vectors = NDArray[Any]  # float32 or float16, in C order, all finite


def as_vectors(
    values: Any,
    dimensions: int | None = None,
    *,
    numbers: NDArray[np.int64] | None = None,
    held: np.dtype[Any] | None = None,
    single: bool = False,
) -> Vectors:
    """Return vectors as rows of float32 or float16, or raise.

    Args:
        values: Array of two dimensions, or a pyarrow column of lists.
        dimensions: Expected number of dimensions (default: any).
        numbers: Numbers of the rows for messages (default: positions).
        held: Type to round to (default: float16 if given as such, else float32).
        single: Accept an array of one dimension as one vector.
    """
    array = _of_arrow(values, numbers) if _is_arrow(values) else as_array("vectors", values)
    if single and array.ndim == 1:
        array = array[None]
    if array.ndim != 2:
        raise DocumentError(
            f"vectors have shape {array.shape}; expected (count, {dimensions or 'dimensions'}); "
            "for one vector pass vector[None]"
        )
    if dimensions is not None and array.shape[1] != dimensions:
        raise DocumentError(
            f"vectors have {array.shape[1]} dimensions; expected {dimensions}, as the index has"
        )
    if dimensions is None and array.shape[1] == 0:
        raise DocumentError("vectors have no dimensions; expected one at least")
    if array.dtype.kind not in "fiu":
        raise DocumentError(f"vectors are {array.dtype}; expected float32 or float16")
    if held is not None:
        rows = _finite(array, held, numbers)
        vanished = array.any(axis=1) & ~rows.any(axis=1)
        if held == np.float16 and vanished.any():
            raise DocumentError(
                f"vector {int(vanished.argmax())} is too short for {held}, which the index holds: "
                "it would be zero; scale it, or make an index of float32"
            )
        return rows
    half = array.dtype.newbyteorder("=") == np.float16
    return _finite(array, np.dtype(np.float16 if half else np.float32), numbers)


def in_single_precision(vectors: Vectors) -> NDArray[np.float32]:
    """Return validated vectors as float32."""
    return np.ascontiguousarray(vectors, np.float32)


def _finite(
    array: NDArray[Any], dtype: np.dtype[Any], numbers: NDArray[np.int64] | None
) -> Vectors:
    if array.dtype == dtype:
        rows = np.ascontiguousarray(array)
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            rows = np.ascontiguousarray(array, dtype)
    if not _all_finite(rows):
        bad = ~np.isfinite(rows).all(axis=1)
        row = int(bad.argmax())
        given = np.asarray(array[row], np.float64)
        if np.isfinite(given).all():
            problem = (
                f"has the value {given[np.abs(given).argmax()]:g}, beyond what {dtype} can hold; "
                "scale it, which changes no cosine"
            )
        else:
            problem = "has a value that is infinite or not a number; leave it out or replace it"
        raise DocumentError(f"vector {_number(row, numbers)} {problem}")
    return rows


def _all_finite(rows: NDArray[Any]) -> bool:
    """Return whether all values are finite, looking at some rows at a time to save memory."""
    step = max(1, _CHECKED // max(1, rows.shape[1]))
    return all(np.isfinite(rows[at : at + step]).all() for at in range(0, len(rows), step))


def _number(row: int, numbers: NDArray[np.int64] | None) -> int:
    return row if numbers is None else int(numbers[row])


def _is_arrow(values: Any) -> bool:
    return type(values).__module__.partition(".")[0] == "pyarrow"


def _of_arrow(column: Any, numbers: NDArray[np.int64] | None) -> NDArray[Any]:
    """Return a column of lists as an array, without a copy if possible."""
    import pyarrow  # it is there: the values are its

    if isinstance(column, pyarrow.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column, pyarrow.ChunkedArray):  # pyarrow gives one back where there is none
        column = column.chunk(0) if column.num_chunks else pyarrow.array([], column.type)
    if not isinstance(column, pyarrow.Array):
        raise DocumentError(
            f"vectors are a {type(column).__name__} of pyarrow; expected one column of it"
        )
    kinds = pyarrow.types
    listed = (kinds.is_list, kinds.is_large_list, kinds.is_fixed_size_list)
    inner = column.type.value_type if any(kind(column.type) for kind in listed) else None
    if inner is None or not (kinds.is_floating(inner) or kinds.is_integer(inner)):
        raise DocumentError(f"vectors are {column.type}; expected lists of numbers")
    if column.null_count:
        row = column.is_null().index(True).as_py()
        raise DocumentError(f"vector {row} is null; leave it out")
    lengths = _lengths(column)
    if len(column) and (lengths != lengths[0]).any():
        row = int((lengths != lengths[0]).argmax())
        raise DocumentError(
            f"vector {_number(row, numbers)} has {lengths[row]} dimensions, and vector "
            f"{_number(0, numbers)} has {lengths[0]}; expected the same for all"
        )
    width = int(lengths[0]) if len(column) else int(getattr(column.type, "list_size", 0))
    values = column.flatten()
    if values.null_count:
        row = values.is_null().index(True).as_py() // max(1, width)
        row = _number(row, numbers)
        raise DocumentError(f"vector {row} has a value that is null; leave it out or replace it")
    flat: NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return flat.reshape(len(column), width)


def _lengths(column: Any) -> NDArray[np.int64]:
    size = getattr(column.type, "list_size", None)
    if size is not None:
        return np.full(len(column), size, np.int64)
    lengths: NDArray[np.int64] = column.value_lengths().to_numpy(zero_copy_only=False)
    return lengths.astype(np.int64)


def as_cosine(similarity: SupportsFloat, name: str = "similarity") -> float:
    """Return a cosine, or raise."""
    number = np.nan
    if not isinstance(similarity, str | bytes | bool | np.bool_ | np.ndarray):
        try:
            number = float(similarity)
        except (TypeError, ValueError, ArithmeticError):
            number = np.nan
    if not -1 <= number <= 1:
        raise ArgumentError(Said(name), f" is {brief(similarity)}; expected a number from -1 to 1")
    return float(number)
