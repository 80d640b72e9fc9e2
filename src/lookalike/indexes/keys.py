"""Keys in files: whole numbers and strings as arrays, other values as JSON.

A tuple becomes a list, bytes become {"bytes": base64}. Strings with lone surrogates are stored
under "halves". There is no pickle, so opening a file runs no code from it.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.errors import ArgumentError, CorruptIndexError
from lookalike.shown import brief
from lookalike.storage.container import Container
from lookalike.storage.strings import Strings

_NUMBERS, _STRINGS, _VALUES = "key_numbers", "key", "key_json"


def key_arrays(keys: Sequence[Hashable]) -> dict[str, NDArray[Any]]:
    """Return arrays that hold keys: strings, numbers, bytes, None and tuples of these."""
    kinds = set(map(type, keys))
    if kinds <= {int}:
        try:
            return {_NUMBERS: np.array(keys, np.int64)}
        except OverflowError:
            pass
    if kinds == {str}:
        try:
            return Strings.of(keys).arrays(_STRINGS)  # type: ignore[arg-type]
        except ArgumentError:  # half a character
            pass
    return Strings.of(map(_in_json, keys)).arrays(_VALUES)


def restored_keys(container: Container) -> list[Any]:
    """Return the keys that `key_arrays` stored in a container."""
    if _NUMBERS in container:
        numbers: list[int] = container.array(_NUMBERS, np.int64, 1).tolist()
        return numbers
    strings = Strings.restored(container, _STRINGS)
    if strings is not None:
        return list(strings)
    values = Strings.restored(container, _VALUES)
    if values is None:
        raise CorruptIndexError(f"{container.path} holds no keys; it is damaged")
    try:
        return [_key(json.loads(value)) for value in values]
    except (ValueError, TypeError, KeyError, RecursionError, binascii.Error) as error:
        raise CorruptIndexError(
            f"{container.path} holds keys that cannot be read ({error}); it is damaged"
        ) from error


def _in_json(key: Hashable) -> str:
    try:
        return json.dumps(_plain(key))
    except (ValueError, RecursionError) as error:
        if isinstance(error, ArgumentError):
            raise
        raise ArgumentError(
            f"a key of type {type(key).__name__} cannot be saved ({error}); expected numbers of "
            "at most some thousand digits, and tuples that are not nested deeply"
        ) from error


def _plain(key: Hashable) -> Any:
    if key is None or type(key) in (int, float, bool):
        return key
    if type(key) is str:
        if not any("\ud800" <= character <= "\udfff" for character in key):
            return key
        return {"halves": base64.b64encode(key.encode("utf-8", "surrogatepass")).decode()}
    if type(key) is bytes:
        return {"bytes": base64.b64encode(key).decode()}
    if type(key) is tuple:
        return [_plain(part) for part in key]
    raise ArgumentError(
        f"the key {brief(key)} is of type {type(key).__name__}; files hold keys that are strings, "
        "numbers, bytes, None or tuples of these"
    )


def _key(value: Any) -> Any:
    if isinstance(value, dict):
        ((kind, encoded),) = value.items()
        data = base64.b64decode(encoded, validate=True)
        if kind == "bytes":
            return data
        if kind == "halves":
            return data.decode("utf-8", "surrogatepass")
        raise ValueError(f"a key of kind {kind!r}")
    return tuple(map(_key, value)) if isinstance(value, list) else value
