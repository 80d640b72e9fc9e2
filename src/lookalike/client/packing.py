"""Results of an index as plain values: lists of numbers, or base64 of little-endian arrays.

A service encodes them, and `RemoteIndex` decodes and checks them.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from lookalike.errors import UnavailableError
from lookalike.indexes import Explanation, Matches, Neighbors

_INT64, _INT32 = "<i8", "<i4"
_TYPES = {
    "ids": _INT64, "offsets": _INT64, "distances": _INT32, "scores": _INT32, "unmasked": _INT32,
    "exact": "|b1", "optimistic": _INT32, "pessimistic": _INT32,
}  # fmt: skip
"""Types of the arrays; all others, which are counts, are int64."""
PACKED_BYTES = 44
"""Maximum size of a neighbor or match in an answer that is packed, in bytes."""


def packed(array: NDArray[Any], dtype: DTypeLike) -> str:
    """Return an array as base64 of its values in little-endian order."""
    return base64.b64encode(np.ascontiguousarray(array, dtype).tobytes()).decode()


def unpacked(text: Any, dtype: DTypeLike) -> NDArray[Any]:
    """Return the array of `packed`, with one dimension, or raise ValueError."""
    try:
        raw = base64.b64decode(text, validate=True)
    except (TypeError, binascii.Error) as error:
        raise ValueError(f"it is not base64 ({error})") from None
    size = np.dtype(dtype).itemsize
    if len(raw) % size:
        raise ValueError(f"it has {len(raw)} bytes, which is not a multiple of {size}")
    array = np.frombuffer(raw, dtype)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def result_value(result: Neighbors | Matches, *, pack: bool) -> dict[str, Any]:
    """Return a result as plain values; arrays that it does not have are left out."""
    value: dict[str, Any] = {"exact": result.exact}
    names = ("offsets",) if isinstance(result, Matches) else ("scores",)
    for name in (*names, "ids", "distances", "unmasked"):
        if (array := getattr(result, name)) is not None:
            value[name] = _array_value(name, array, pack)
    if result.explanation is not None:
        told = {one.name: getattr(result.explanation, one.name) for one in fields(Explanation)}
        known = {name: array for name, array in told.items() if array is not None}
        value["explanation"] = {
            name: _array_value(name, array, pack) for name, array in known.items()
        }
    return value


def _array_value(name: str, array: NDArray[Any], pack: bool) -> Any:
    return packed(array, _TYPES.get(name, _INT64)) if pack else array.tolist()


def neighbors_of(value: Mapping[str, Any], queries: int, k: int) -> Neighbors:
    """Return the neighbors in a packed answer to this number of queries."""
    shape = (queries, k)
    return Neighbors(
        _taken(value, "ids", shape),
        _taken(value, "distances", shape),
        value.get("exact") is True,
        _explanation(value, queries, k),
        _taken(value, "scores", shape) if "scores" in value else None,
        _taken(value, "unmasked", shape) if "unmasked" in value else None,
    )


def matches_of(value: Mapping[str, Any], queries: int) -> Matches:
    """Return the matches in a packed answer to this number of queries."""
    offsets = _taken(value, "offsets", (queries + 1,))
    if offsets[0] != 0 or (np.diff(offsets) < 0).any():
        raise _unusable("the offsets are not ascending")
    count = (int(offsets[-1]),)
    return Matches(
        offsets,
        _taken(value, "ids", count),
        _taken(value, "distances", count),
        value.get("exact") is True,
        _explanation(value, queries, 0),
        _taken(value, "unmasked", count) if "unmasked" in value else None,
    )


def _explanation(value: Mapping[str, Any], queries: int, k: int) -> Explanation | None:
    told = value.get("explanation")
    if not isinstance(told, dict):
        return None
    arrays = {}
    for one in fields(Explanation):
        wide = one.name in ("optimistic", "pessimistic")
        if one.name in told:
            arrays[one.name] = _taken(told, one.name, (queries, k) if wide else (queries,))
    try:
        return Explanation(**arrays)
    except TypeError as error:
        raise _unusable(str(error)) from None


def _taken(value: Mapping[str, Any], name: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return an array of an answer, or raise if it is not of this shape."""
    try:
        array = unpacked(value.get(name), _TYPES.get(name, _INT64))
        return array.reshape(shape)
    except ValueError as error:
        raise _unusable(f"{name}: {error}") from None


def _unusable(why: str) -> UnavailableError:
    return UnavailableError(f"the answer of a service cannot be used: {why}; is it lookalike's?")
