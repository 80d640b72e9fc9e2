"""JSON and MessagePack: decode and validate request bodies, and encode answers.

A body is measured before it is decoded, since a megabyte of it may become hundreds of megabytes of
values. MessagePack has integers of up to 64 bits; metadata with larger integers needs JSON.
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
"""Bytes of memory per value: at most 80 to decode it, and again to validate it, which copies lists
and objects."""
_DEEPEST = 200
"""Levels of nesting; the parser of JSON has the same limit."""
_ENCODE_ASCII = json.JSONEncoder(separators=(",", ":")).encode


def media_type(header: str | None) -> str:
    """Return the format of a Content-Type, or raise `Problem`."""
    format = _FORMATS.get((header or "").partition(";")[0].strip().lower())
    if format is None:
        message = f"the Content-Type is {brief(header)}; expected {JSON} or {MESSAGEPACK}"
        raise Problem(415, "content_type", message)
    return format


def wanted_format(accept: str | None) -> str:
    """Return the format of the answer: MessagePack if the client accepts it, else JSON."""
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
    """Decode and validate a body, or raise `Problem`.

    No list may have more than `most_items` items. `need` is called before anything is decoded, with
    the bytes of memory that decoding takes; it raises if there is no room for them.
    """
    size, longest = decoded_size(body, format)
    check_count("items in a list", longest, most_items)
    need(size)
    value = _parsed(body) if format == JSON else _unpacked(body)
    try:
        return shape.model_validate(value)
    except ValidationError as error:
        raise bad_body(error) from None


def decoded_size(body: bytes | bytearray, format: str) -> tuple[int, int]:
    """Return the bytes of memory that a body takes, and the length of its longest list."""
    data = np.frombuffer(body, np.uint8)
    found = decoded_json(data) if format == JSON else decoded_messagepack(data, _DEEPEST)
    if found is None:
        why = "it is truncated, nested too deeply, or has a key that is not a string"
        raise _not_messagepack(body, why)
    values, string_bytes, longest = found
    # Twice the body: it stays in memory, and its strings are copied as UTF-8.
    return 2 * len(body) + string_bytes + _PER_VALUE * values, longest


def check_count(what: str, count: int, most: int) -> None:
    """Refuse too many items."""
    if count > most:
        message = f"there are {count} {what}; expected at most {most}. Send several requests"
        raise Problem(422, "batch_too_large", message)


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
        message = f"the answer cannot be encoded as MessagePack ({error}); accept {JSON} instead"
        raise Problem(406, "not_in_messagepack", message) from None
    return packed


def check_answer(size: int, most: int) -> None:
    """Refuse an answer that is too large."""
    if size > most:
        raise Problem(
            422, "answer_too_large", f"the answer has more than {most} bytes. Ask for fewer "
            "documents, leave out their texts, or start the service with a larger --max-answer",
        )  # fmt: skip


def answers_together(parts: list[bytes], format: str) -> bytes:
    """Return `{"answers": [...]}` of encoded answers."""
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
            400, "not_json", f"the body is not valid JSON ({brief(str(error))})"
        ) from None


def _unpacked(body: bytes | bytearray) -> Any:
    try:
        return msgpack.unpackb(body, raw=False, strict_map_key=True)
    except (ValueError, msgpack.exceptions.UnpackException) as error:
        raise _not_messagepack(body, brief(str(error))) from None


def _not_messagepack(body: bytes | bytearray, why: str) -> Problem:
    return Problem(
        400, "not_messagepack", f"the body ({len(body)} bytes) is not valid MessagePack: {why}. "
        "Correct it, or send JSON",
    )  # fmt: skip


_MEANT = {
    **dict.fromkeys(("query", "q"), "text"),
    **dict.fromkeys(("limit", "size", "top", "top_k"), "k"),
    "for": "purpose",
}
"""Fields of other services, and what they are called here."""


def bad_body(error: ValidationError) -> Problem:
    """Return the first error, and the number of others."""
    found = error.errors(include_url=False, include_context=False)
    first = found[0]
    place = ".".join(map(str, first["loc"])) or "the body"
    more = f" (and {counted(len(found) - 1, 'more error')})" if len(found) > 1 else ""
    if first["type"] == "extra_forbidden":
        meant = _MEANT.get(str(first["loc"][-1]))
        asked = "" if meant is None else f" (did you mean {meant!r}?)"
        first["msg"] = f"there is no such field{asked}"
    given = "" if first["type"] == "missing" else f" is {_short(first.get('input'))}"
    message = f"{place}{given}: {first['msg']}{more}; see GET /v1/openapi.json"
    return Problem(422, "bad_body", message)


def _short(value: Any) -> str:
    """Return a value for an error message, without reading all of a large value."""
    if isinstance(value, dict):
        return f"an object of {counted(len(value), 'field')}"
    if isinstance(value, list):
        return f"a list of {counted(len(value), 'value')}"
    if isinstance(value, str | bytes) and len(value) > 1000:
        return f"{brief(value[:80])} and {len(value) - 80} more"
    return brief(value)
