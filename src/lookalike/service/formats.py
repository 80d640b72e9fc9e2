"""JSON and MessagePack: decoding bodies, checked against a shape, and encoding answers.

A body is measured before it is decoded, since a megabyte of it may become hundreds of megabytes of
values. Integers of MessagePack have 64 bits; metadata may have larger ones, which need JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

import msgpack
import numpy as np
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json, to_json

from lookalike._native import decoded_json, decoded_messagepack
from lookalike.service.problems import Problem
from lookalike.shown import brief, counted

JSON = "application/json"
MESSAGEPACK = "application/msgpack"
_FORMATS = {
    JSON: JSON,
    MESSAGEPACK: MESSAGEPACK,
    "application/x-msgpack": MESSAGEPACK,
    "application/vnd.msgpack": MESSAGEPACK,
}
Shape = TypeVar("Shape", bound=BaseModel)
_PER_VALUE = 160
"""Bytes of memory that a value takes: at most 80 when it is decoded, and again when it is checked,
which copies lists and objects."""
_DEEPEST = 200
"""Levels of nesting. JSON has the same limit, in its parser."""
_ENCODE_ASCII = json.JSONEncoder(separators=(",", ":")).encode


def media_type(header: str | None) -> str:
    """Return the format that a Content-Type names, or raise."""
    format = _FORMATS.get((header or "").partition(";")[0].strip().lower())
    if format is None:
        message = f"the Content-Type is {brief(header)}; expected {JSON} or {MESSAGEPACK}"
        raise Problem(415, "content_type", message)
    return format


def wanted_format(accept: str | None) -> str:
    """Return the format of the answer: MessagePack where it is asked for, else JSON."""
    if accept is None or "msgpack" not in accept:
        return JSON
    names = (one.partition(";")[0].strip().lower() for one in accept.split(","))
    return next((_FORMATS[name] for name in names if name in _FORMATS), JSON)


def decode(
    body: bytes | bytearray,
    format: str,
    shape: type[Shape],
    most_items: int,
    need: Callable[[int], object],
) -> Shape:
    """Return a body of this shape, or raise what is wrong with it.

    No list may have more than `most_items` items. `need` is called before anything is decoded, with
    the bytes of memory that it will take, and raises if there is no room for them.
    """
    size, longest = decoded_size(body, format)
    check_count("items in a list", longest, most_items)
    need(size)
    value = _parsed(body) if format == JSON else _unpacked(body)
    try:
        return shape.model_validate(value)
    except ValidationError as error:
        raise _refusal(error) from None


def decoded_size(body: bytes | bytearray, format: str) -> tuple[int, int]:
    """Return the bytes of memory that a body takes, and the items of the longest list in it."""
    data = np.frombuffer(body, np.uint8)
    found = decoded_json(data) if format == JSON else decoded_messagepack(data, _DEEPEST)
    if found is None:
        why = "it is cut off, is nested too deeply or has a key that is not a string"
        raise _not_messagepack(body, why)
    values, string_bytes, longest = found
    # Twice the body: it stays in memory, and its strings are copied as UTF-8.
    return 2 * len(body) + string_bytes + _PER_VALUE * values, longest


def check_count(what: str, count: int, most: int) -> None:
    """Refuse too many items."""
    if count > most:
        message = f"there are {count} {what}; expected at most {most}"
        raise Problem(422, "batch_too_large", f"{message}: send them in several requests")


def encode(value: Any, format: str) -> bytes:
    """Return plain values as bytes."""
    if format == JSON:
        try:
            return to_json(value)
        except ValueError:  # half of a surrogate pair, which came with metadata
            return _ENCODE_ASCII(value).encode()
    try:
        packed: bytes = msgpack.packb(value, use_bin_type=True)
    except (OverflowError, ValueError, TypeError, UnicodeEncodeError) as error:
        message = f"the answer cannot be written in MessagePack ({error}); ask for {JSON}"
        raise Problem(406, "not_in_messagepack", message) from None
    return packed


def check_answer(size: int, most: int) -> None:
    """Refuse an answer that is larger than the service gives out."""
    if size > most:
        raise Problem(
            422, "answer_too_large", f"the answer has more than {most} bytes; ask for fewer "
            "documents, or without their texts, or start the service with a larger --max-answer",
        )  # fmt: skip


class Counter:
    """Counts the bytes of an answer while it grows, and refuses too many."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = 0

    def counted(self, position: int, part: bytes) -> bytes:
        """Return the part at a position, if there is room for it; the first one begins anew."""
        self._size = len(part) + (self._size if position else 0)
        check_answer(self._size, self._most)
        return part


def answers_together(parts: list[bytes], format: str) -> bytes:
    """Return `{"answers": [...]}` of answers in a format."""
    if format == JSON:
        return b'{"answers":[' + b",".join(parts) + b"]}"
    packer = msgpack.Packer()
    begin = packer.pack_map_header(1) + packer.pack("answers")
    return b"".join([begin, packer.pack_array_header(len(parts)), *parts])


def _parsed(body: bytes | bytearray) -> Any:
    try:
        return from_json(body, cache_strings="keys")
    except ValueError as error:
        raise Problem(
            400, "not_json", f"the body is not JSON ({brief(str(error))}); correct it"
        ) from None


def _unpacked(body: bytes | bytearray) -> Any:
    try:
        return msgpack.unpackb(body, raw=False, strict_map_key=True)
    except (ValueError, msgpack.exceptions.UnpackException) as error:
        raise _not_messagepack(body, brief(str(error))) from None


def _not_messagepack(body: bytes | bytearray, why: str) -> Problem:
    return Problem(
        400, "not_messagepack", f"the body has {len(body)} bytes that are not MessagePack ({why}); "
        "correct it, or send JSON",
    )  # fmt: skip


def _refusal(error: ValidationError) -> Problem:
    """Return the first mistake, and how many others were found."""
    found = error.errors(include_url=False, include_context=False)
    first = found[0]
    place = ".".join(map(str, first["loc"])) or "the body"
    more = f"; and {len(found) - 1} more" if len(found) > 1 else ""
    came = "" if first["type"] == "missing" else f" is {_short(first.get('input'))}"
    return Problem(
        422, "bad_body", f"{place}{came}: {first['msg']}{more}; GET /v1/openapi.json says what is "
        "expected",
    )  # fmt: skip


def _short(value: Any) -> str:
    """Return a value as an error shows it, without reading all of a large one."""
    if isinstance(value, dict):
        return f"an object of {counted(len(value), 'field')}"
    if isinstance(value, list):
        return f"a list of {counted(len(value), 'value')}"
    if isinstance(value, str | bytes) and len(value) > 1000:
        return f"{brief(value[:80])} and {len(value) - 80} more"
    return brief(value)
