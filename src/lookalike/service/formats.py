"""JSON and MessagePack: what comes in, checked against a shape, and what goes out.

MessagePack has whole numbers of 64 bits; metadata may have larger ones, which only JSON can tell.
"""

from __future__ import annotations

import json
from typing import Any, TypeVar

import msgpack
from pydantic import BaseModel, ValidationError

from lookalike.service.problems import Problem
from lookalike.shown import brief

__all__ = ["JSON", "MESSAGEPACK", "decode", "encode", "media_type", "wanted_format"]

JSON = "application/json"
MESSAGEPACK = "application/msgpack"
_MESSAGEPACKS = (MESSAGEPACK, "application/x-msgpack", "application/vnd.msgpack")

Shape = TypeVar("Shape", bound=BaseModel)

_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_ENCODE_ASCII = json.JSONEncoder(separators=(",", ":")).encode


def media_type(header: str | None) -> str:
    """Return the format that a Content-Type names, or raise."""
    if header is not None:
        name = header.partition(";")[0].strip().lower()
        if name == JSON:
            return JSON
        if name in _MESSAGEPACKS:
            return MESSAGEPACK
    raise Problem(
        415, "content_type",
        f"the Content-Type is {brief(header)}; expected {JSON} or {MESSAGEPACK}",
    )  # fmt: skip


def wanted_format(accept: str | None) -> str:
    """Return the format of the answer: MessagePack where it is asked for, else JSON."""
    if accept is None or "msgpack" not in accept:
        return JSON
    for one in accept.split(","):
        name = one.partition(";")[0].strip().lower()
        if name in _MESSAGEPACKS:
            return MESSAGEPACK
        if name == JSON:
            return JSON
    return JSON


def decode(body: bytes, format: str, shape: type[Shape]) -> Shape:
    """Return what a body says, or raise what is wrong with it."""
    try:
        if format == JSON:
            return shape.model_validate_json(body)
        return shape.model_validate(_unpacked(body))
    except ValidationError as error:
        raise _refusal(error) from None


def encode(value: Any, format: str) -> bytes:
    """Return plain values as bytes."""
    if format == JSON:
        try:
            return _ENCODE(value).encode()
        except UnicodeEncodeError:  # half of a surrogate pair, which came with somebody's metadata
            return _ENCODE_ASCII(value).encode()
    try:
        packed: bytes = msgpack.packb(value, use_bin_type=True)
    except (OverflowError, ValueError, TypeError, UnicodeEncodeError) as error:
        raise Problem(
            406, "not_in_messagepack",
            f"the answer cannot be written in MessagePack ({error}); ask for {JSON}",
        ) from None  # fmt: skip
    return packed


def _unpacked(body: bytes) -> Any:
    try:
        return msgpack.unpackb(body, raw=False, strict_map_key=True)
    except (ValueError, msgpack.exceptions.UnpackException) as error:
        raise Problem(
            400, "not_messagepack",
            f"the body is {len(body)} bytes that are no MessagePack ({brief(str(error))}); "
            "correct it, or send JSON",
        ) from None  # fmt: skip


def _refusal(error: ValidationError) -> Problem:
    """Return what is wrong in a few words: the first thing, and how many more there are."""
    found = error.errors(include_url=False, include_context=False)
    first = found[0]
    if first["type"] == "json_invalid":
        return Problem(
            400, "not_json", f"the body is no JSON ({brief(first['msg'])}); correct it",
        )  # fmt: skip
    place = ".".join(map(str, first["loc"])) or "the body"
    more = f"; and {len(found) - 1} more" if len(found) > 1 else ""
    came = "" if first["type"] == "missing" else f" is {brief(first.get('input'))}"
    return Problem(
        422, "bad_body", f"{place}{came}: {first['msg']}{more}; GET /v1/openapi.json says what is "
        "expected",
    )  # fmt: skip
