"""Documents, questions and answers in the JSON of the service.

Arguments are checked before they are sent, with the error messages of a local collection.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

import numpy as np

from lookalike.collection.answers import Answer, Match, Work
from lookalike.collection.documents import Document
from lookalike.collection.query import Question, Where, compile_where
from lookalike.collection.signing import Signed
from lookalike.collection.vectors import decoded_vector
from lookalike.collection.writing import BatchInput, Written
from lookalike.errors import ArgumentError, BatchError, ItemError, Said
from lookalike.signatures import as_queries


def document_of(value: Mapping[str, Any]) -> Document:
    """Return a document."""
    return Document(
        value["id"],
        np.frombuffer(bytes.fromhex(value["signature"]), np.uint8),
        value["metadata"],
        value.get("text"),
        datetime.fromisoformat(value["added"]),
        datetime.fromisoformat(value["updated"]),
        decoded_vector(value["vector"]) if value.get("vector") else None,
    )


def answer_of(value: Mapping[str, Any]) -> Answer:
    """Return an answer."""
    work = value.get("work")
    return Answer(
        [_match(one) for one in value["matches"]],
        version=value["version"],
        exact=value["exact"],
        masked=value["masked"],
        by=value.get("by", "similar"),
        unknown=tuple(value.get("unknown", ())),
        searched=value.get("searched", 0),
        left_out=value.get("left_out", 0),
        chance_distance=value.get("chance_distance"),
        estimate=partial(_similarities, value["matches"]),
        work=None if work is None else Work(**{**work, "thresholds": tuple(work["thresholds"])}),
    )


def _similarities(matches: Sequence[Mapping[str, Any]], answer: Answer) -> list[float]:
    """Return the similarities that the service told of the first matches."""
    return [value["similarity"] for value in matches[: len(answer)]]


def _match(value: Mapping[str, Any]) -> Match:
    names = ("differing_bits", "slice_distances", "slices", "words", "ranks")
    told: dict[str, Any] = {name: tuple(value[name]) for name in names if name in value}
    told["score"] = value.get("score")
    if "place" in value:
        place = value["place"]
        units = 1000 if place["unit"] == "seconds" else 1
        for name in ("query_start", "length", "offset"):
            told[name] = round(place[name] * units)
        told["start"] = told["query_start"] + told["offset"]
        told |= {"votes": value["votes"], "score": value["similarity"]}
        if "parts" in value:
            told["parts"] = tuple(map(tuple, value["parts"]))
    return Match(
        value["id"], value["distance"], value["metadata"], value.get("text"),
        unmasked=value.get("unmasked"), **told,
    )  # fmt: skip


def question_value(question: Question, bits: int) -> dict[str, Any]:
    """Return a question as it is sent."""
    asked: dict[str, Any] = {"limit": question.limit}
    if question.limit is None:
        asked = {"k": question.k, "mask": question.mask, "by": question.by}
        asked["exact_vectors"] = question.exact
    return {
        "radius": None if question.radius is None else min(question.radius, bits),
        "where": sendable_where(question.where),
        "exclude": sorted(question.exclude),
        "explain": question.explain,
        "include_text": question.text,
        "plan": question.plan,
        "min_score": question.min_score,
        **asked,
    }


def sendable_where(where: Where | None) -> dict[str, Any] | None:
    """Return a condition as it is sent; raise if it is not valid."""
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
        Said("where"), f" has a value of type {type(value).__name__}, which JSON cannot represent"
    )


@dataclass(frozen=True)
class Sent:
    """Documents that can be sent, and what is wrong with others."""

    documents: list[dict[str, Any]]
    positions: list[int]  # positions in the batch
    ids: list[Any]
    errors: list[ItemError]

    @classmethod
    def of(
        cls,
        given: BatchInput,
        bits: int,
        parts: bool,
        check_signs: Callable[[], None],
        keep_text: bool,
        dimensions: int,
    ) -> Sent:
        """Check all items as a local collection does."""
        if parts and given.signatures is not None:
            raise ArgumentError(
                "signatures of parts cannot be sent to a service; send texts, or files with "
                "add_file"
            )
        items, rows, errors = given.checked(
            lambda rows: Signed(as_queries(rows, bits, "signatures")), check_signs, keep_text,
            dimensions,
        )  # fmt: skip
        documents = []
        for at, vector in zip(items.positions, items.vectors, strict=True):
            one: dict[str, Any] = {"id": given.ids[at]}
            if given.texts is not None and given.texts[at] is not None:
                one["text"] = given.texts[at]
            if rows is not None:
                one["signature"] = rows.rows[at].tobytes().hex()
            if given.metadata is not None and given.metadata[at]:
                one["metadata"] = dict(given.metadata[at])
            if vector is not None:
                one["vector"] = base64.b64encode(vector).decode()
            documents.append(one)
        return cls(documents, items.positions, given.ids, errors)

    def refused(self, error: BatchError) -> BatchError:
        """Return the errors of the service, with positions in the batch."""
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
