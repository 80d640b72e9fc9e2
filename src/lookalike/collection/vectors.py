"""The vectors of documents: validation, and their bytes in the database.

A vector is stored as float32 in little-endian order. It is finite and not zero, so that it has a
cosine with every other.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.collection.documents import damaged
from lookalike.collection.query import listed
from lookalike.collection.stores.schema import MOST_DIMENSIONS
from lookalike.errors import ArgumentError, Said

VectorsInput: TypeAlias = ArrayLike | Sequence[ArrayLike | None]
"""A vector or None for each of many documents."""
_STORED = np.dtype("<f4")


def other_dimensions(found: int, expected: int) -> str:
    """Return what is wrong with a vector of another number of dimensions."""
    return f"has {found} dimensions; expected {expected}, as the other vectors of the collection"


def packed_vectors(given: Any, dimensions: int) -> list[bytes | str | None]:
    """Return each vector as bytes, None where there is none, or what is wrong with it.

    If `dimensions` is 0, all vectors have those of the first valid one.
    """
    result: list[bytes | str | None] = []
    for one in _rows(given):
        if one is None:
            result.append(None)
            continue
        vector = _checked(one, dimensions)
        if isinstance(vector, str):
            result.append(f"the vector {vector}")
            continue
        dimensions = len(vector)
        result.append(vector.tobytes())
    return result


def checked_queries(given: Any, dimensions: int, name: str) -> NDArray[np.float32]:
    """Return vectors to search for, `float32[n, dimensions]`; `name` is their argument."""
    rows = []
    for place, one in enumerate(_rows(given)):
        vector = "is missing" if one is None else _checked(one, dimensions)
        if isinstance(vector, str):
            which = "" if name == "vector" else f" {place}"
            raise ArgumentError(Said(name), f"{which} {vector}")
        rows.append(vector)
    return np.array(rows, np.float32).reshape(len(rows), dimensions)


def unpacked_vectors(values: Sequence[bytes], dimensions: int) -> NDArray[np.float32]:
    """Return stored vectors; raise if one is not valid."""
    width = _STORED.itemsize * dimensions
    if not set(map(len, values)) <= {width}:
        raise damaged(f"the table of vectors has values that are not of {dimensions} dimensions")
    rows = np.frombuffer(b"".join(values), _STORED).reshape(len(values), dimensions)
    if not (np.isfinite(rows).all() and rows.any(axis=1).all()):
        raise damaged("the table of vectors has a vector that is zero or not finite")
    return rows.astype(np.float32)


def decoded_vector(value: Any) -> Any:
    """Return the vector of a file or a request: base64 of float32, a list as JSON, or numbers."""
    if not isinstance(value, str):
        return value
    try:
        if value.startswith("["):
            return json.loads(value)
        data = base64.b64decode(value, validate=True)
    except (ValueError, RecursionError):
        return value
    return np.frombuffer(data, _STORED) if len(data) % _STORED.itemsize == 0 else value


def encoded_vector(vector: NDArray[np.float32]) -> str:
    """Return a vector as base64 of float32."""
    return base64.b64encode(vector.astype(_STORED).tobytes()).decode()


def _rows(given: Any) -> list[Any]:
    """Return the vectors of an array, a column of pyarrow or pandas, or a list."""
    to_list = getattr(given, "to_pylist", None)  # of pyarrow, with None for nulls
    rows = listed("vectors", given if to_list is None else to_list())
    if isinstance(given, np.ndarray) and given.ndim != 2:
        raise ArgumentError(
            f"vectors have shape {given.shape}; expected one row for each: (count, dimensions)"
        )
    return rows


def _checked(one: Any, dimensions: int) -> NDArray[Any] | str:
    """Return a vector, or what is wrong with it; 0 dimensions: any number."""
    if isinstance(one, str | bytes):
        return "is text; expected a list of numbers, or base64 of float32"
    try:
        array = np.asarray(one)
    except (TypeError, ValueError, OverflowError):
        return "cannot be read as an array of numbers"
    if array.ndim != 1 or array.dtype.kind not in "fiu":
        return f"is an array of {array.dtype} of shape {array.shape}; expected a list of numbers"
    if dimensions and len(array) != dimensions:
        return other_dimensions(len(array), dimensions)
    if not 1 <= len(array) <= MOST_DIMENSIONS:
        return f"has {len(array)} dimensions; expected 1 to {MOST_DIMENSIONS}"
    with np.errstate(over="ignore", invalid="ignore"):
        vector = array.astype(_STORED)
    if not np.isfinite(vector).all():
        if np.isfinite(array).all():
            return "has a value beyond what float32 can hold; scale it, which changes no cosine"
        return "has a value that is infinite or not a number; leave it out or replace it"
    if not vector.any():
        return "is zero, so that it has no direction; leave it out"
    return vector
