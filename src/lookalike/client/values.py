"""Documents, queries and answers as a service sends and takes them.

What is sent is checked here, with the messages of a collection that is here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lookalike.checks import one_of
from lookalike.collection.answers import Answer, Match, Work
from lookalike.collection.documents import Document, prepare_items
from lookalike.collection.query import Query, Where, compile_where, listed
from lookalike.collection.signing import no_signer_of_texts
from lookalike.collection.writing import Written, check_numbers
from lookalike.errors import ArgumentError, BatchError, ItemError, Said
from lookalike.signatures import as_queries

__all__ = ["Sent", "answer_of", "asked_value", "document_of", "sendable_where"]


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


@dataclass(frozen=True)
class Sent:
    """Documents that can be sent, and what is wrong with the others."""

    documents: list[dict[str, Any]]
    positions: list[int]
    """Where each was in the batch."""
    ids: list[Any]
    errors: list[ItemError]

    @classmethod
    def of(
        cls,
        ids: Sequence[str],
        texts: Sequence[str] | None,
        signatures: ArrayLike | None,
        metadata: Sequence[Mapping[str, Any] | None] | None,
        *,
        on_error: str,
        unique: bool,
        keep_text: bool,
        bits: int,
        name: str,
        unsigned: str | None,
    ) -> Sent:
        """Check all items as `Batch.of` does for a collection that is here.

        `unsigned` says that the collection signs no texts, and names its signer, if it has one.
        """
        one_of("on_error", on_error, ("raise", "skip"))
        names = listed("ids", ids)
        rows = None if signatures is None else as_queries(signatures, bits, "signatures")
        contents = None if texts is None else listed("texts", texts)
        described = None if metadata is None else listed("metadata", metadata)
        check_numbers(len(names), texts=contents, signatures=rows, metadata=described)
        if rows is None and unsigned is not None:
            raise no_signer_of_texts(name, unsigned)
        items, errors = prepare_items(
            names, contents, described, need_text=rows is None, keep_text=keep_text, unique=unique
        )
        if errors and on_error == "raise":
            raise BatchError(errors, len(names))
        documents = []
        for place in items.positions:
            one: dict[str, Any] = {"id": names[place]}
            if contents is not None and contents[place] is not None:
                one["text"] = contents[place]
            if rows is not None:
                one["signature"] = rows[place].tobytes().hex()
            given = None if described is None else described[place]
            if given:
                one["metadata"] = dict(given)
            documents.append(one)
        return cls(documents, items.positions, names, errors)

    def refused(self, error: BatchError) -> BatchError:
        """Return what the service says of the items, by their places here."""
        return BatchError([self._placed(one) for one in error.errors], len(self.ids))

    def written(self, done: Mapping[str, Any]) -> Written:
        """Return what the service has done."""
        found = [
            self._placed(ItemError(place, None, result["message"]))
            for place, result in enumerate(done["results"])
            if result["status"] == "refused"
        ]
        everything = sorted([*self.errors, *found], key=lambda error: error.position)
        return Written(done["added"], done["updated"], errors=everything, version=done["version"])

    def _placed(self, error: ItemError) -> ItemError:
        position = self.positions[error.position]
        return ItemError(position, self.ids[position], error.message, error.remedy)
