"""Documents and answers out of what a service sends, and questions as it takes them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import numpy as np

from lookalike.collection.answers import Answer, Match, Work
from lookalike.collection.documents import Document
from lookalike.collection.query import Query, Where, compile_where
from lookalike.errors import ArgumentError, Said

__all__ = ["answer_of", "asked_value", "document_of", "sendable_where"]


def document_of(value: Mapping[str, Any]) -> Document:
    """Return a document."""
    return Document(
        value["id"],
        np.frombuffer(bytes.fromhex(value["signature"]), np.uint8),
        value["metadata"],
        value.get("text"),
        datetime.fromisoformat(value["added"]),
        datetime.fromisoformat(value["updated"]),
    )


def answer_of(value: Mapping[str, Any]) -> Answer:
    """Return an answer."""
    work = value.get("work")
    return Answer(
        [_match(one) for one in value["matches"]],
        version=value["version"],
        exact=value["exact"],
        masked=value["masked"],
        work=None if work is None else Work(**{**work, "thresholds": tuple(work["thresholds"])}),
    )


def _match(value: Mapping[str, Any]) -> Match:
    told: dict[str, Any] = {
        name: _tuple(value.get(name)) for name in ("differing_bits", "slice_distances", "slices")
    }
    return Match(
        value["id"], value["distance"], value["metadata"], value.get("text"),
        unmasked=value.get("unmasked"), **told,
    )  # fmt: skip


def _tuple(value: list[int] | None) -> tuple[int, ...] | None:
    return None if value is None else tuple(value)


def asked_value(query: Query, where: Where | None, way: str | None) -> dict[str, Any]:
    """Return what every query says."""
    return {
        "where": sendable_where(where),
        "exclude": sorted(query.exclude),
        "explain": query.explain,
        "include_text": query.text,
        "way": way,
    }


def sendable_where(where: Where | None) -> dict[str, Any] | None:
    """Return a condition that can be sent; it is checked here as it would be there."""
    compile_where(where)
    if callable(where):
        raise ArgumentError(
            Said("where"), " is a function, which cannot be sent to a service; expected a dict "
            'such as {"lang": "en", "year": {">=": 2020}}',
        )  # fmt: skip
    return None if where is None else _plain(where)


def _plain(value: Any) -> Any:
    """Return conditions as JSON has them: sets and tuples as lists."""
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(one) for one in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise ArgumentError(
        Said("where"), f" holds something of type {type(value).__name__}, which JSON does not have"
    )
