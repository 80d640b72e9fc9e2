"""Binary indexes as bytes and files, and by a description in words."""

from __future__ import annotations

import os
import re
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import file_path
from lookalike.compat.faiss.base import FaissError, IndexBinary, State
from lookalike.compat.faiss.indexes import (
    IndexBinaryFlat,
    IndexBinaryHash,
    IndexBinaryIDMap,
    IndexBinaryIDMap2,
    IndexBinaryMultiHash,
)
from lookalike.errors import ArgumentError, CorruptIndexError, FileError, FormatError
from lookalike.shown import brief
from lookalike.storage import (
    Container,
    container_bytes,
    container_in,
    open_container,
    write_container,
)

_KIND = "compat.faiss"
_MAPS: dict[str, type[IndexBinaryIDMap]] = {"IDMap": IndexBinaryIDMap, "IDMap2": IndexBinaryIDMap2}
_CLASSES: dict[str, type[IndexBinary]] = {
    each.__name__: each
    for each in (IndexBinaryFlat, IndexBinaryHash, IndexBinaryMultiHash, *_MAPS.values())
}


def write_index_binary(index: IndexBinary, fname: str | os.PathLike[str]) -> None:
    """Write an index to a file of lookalike's, whole or not at all."""
    write_container(file_path("fname", fname), *_contents(index))


def read_index_binary(fname: str | os.PathLike[str]) -> IndexBinary:
    """Read an index that `write_index_binary` wrote, its signatures mapped, and verified."""
    path = file_path("fname", fname)
    try:
        return index_in(open_container(path))
    except FormatError as error:
        with open(path, "rb") as file:
            raise _foreign(file.read(4), str(path)) or error from None


def serialize_index_binary(index: IndexBinary) -> NDArray[np.uint8]:
    """Return what `write_index_binary` would write."""
    return np.frombuffer(container_bytes(*_contents(index)), np.uint8)


def deserialize_index_binary(data: NDArray[np.uint8] | bytes) -> IndexBinary:
    """Return the index that `serialize_index_binary` turned to bytes."""
    raw = data.tobytes() if isinstance(data, np.ndarray) else data
    try:
        return index_in(container_in(raw))
    except FormatError as error:
        raise _foreign(bytes(raw[:4]), "the bytes") or error from None


def clone_binary_index(index: IndexBinary) -> IndexBinary:
    """Return a copy."""
    return deserialize_index_binary(serialize_index_binary(index))


def downcast_IndexBinary(index: IndexBinary) -> IndexBinary:  # noqa: N802
    """Return the index: here it is of its own class already."""
    return index


def index_binary_factory(d: SupportsIndex, description: str) -> IndexBinary:
    """Return an index by words: BFlat, BHash12, BHash5x6; with IDMap or IDMap2 before or after."""
    words = str(description).split(",")
    maps = [word for word in words if word in _MAPS]
    kinds = [word for word in words if word not in _MAPS]
    hashed = re.fullmatch(r"BHash(?:(\d+)x)?(\d+)", kinds[0]) if len(kinds) == 1 else None
    index: IndexBinary
    if kinds == ["BFlat"]:
        index = IndexBinaryFlat(d)
    elif hashed and hashed[1]:
        index = IndexBinaryMultiHash(d, int(hashed[1]), int(hashed[2]))
    elif hashed:
        index = IndexBinaryHash(d, int(hashed[2]))
    else:
        raise FaissError(
            f"description is {brief(description)}; expected BFlat, BHash12 or BHash5x6, with "
            "IDMap, or IDMap2, before or after a comma: there are no others here"
        )
    if len(maps) > 1:
        raise FaissError(f"description is {brief(description)}; expected one IDMap at most")
    return _MAPS[maps[0]](index) if maps else index


def index_in(container: Container) -> IndexBinary:
    """Return the index that a container holds."""
    name = container.meta.get("class")
    if container.meta.get("kind") != _KIND or name not in _CLASSES:
        raise FormatError(f"{container.path} holds no index that lookalike.compat.faiss wrote")
    try:
        return _CLASSES[name]._restored(container)
    except (KeyError, ArgumentError, RecursionError) as error:
        raise CorruptIndexError(
            f"{container.path}: the description of the index cannot be used: {error!r}"
        ) from error


def _contents(index: IndexBinary) -> State:
    if not isinstance(index, IndexBinary):
        raise FaissError(f"index is {brief(index)}; expected one of lookalike.compat.faiss")
    meta, arrays = index._state()
    described: dict[str, Any] = {"kind": _KIND, "class": type(index).__name__, **meta}
    return described, arrays


def _foreign(begin: bytes, name: str) -> FileError | None:
    """Return an error that says what to do with bytes of faiss' own, if these are some."""
    if begin[:2] != b"IB":  # their binary indexes: IBxF, IBMp, IBM2, IBHh, IBHm, ...
        return None
    return FormatError(
        f"{name} was written by faiss (it begins with {begin!r}), lookalike reads only what it "
        "wrote itself: read it with faiss, and add "
        "faiss.vector_to_array(index.xb).reshape(-1, index.code_size) to an index of these"
    )
