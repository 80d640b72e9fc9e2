"""A collection from above: groups of near-duplicates, a map, distances.

These read all signatures. They are computed once for each version and kept; while that is going on
the answer is status 202, and whoever wants it asks again.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import numpy as np
from fastapi import Query
from fastapi.responses import Response

from lookalike import _native
from lookalike.collection import Collection
from lookalike.collection.overview import distances, groups, map_of
from lookalike.features import Words
from lookalike.images import ImageHash
from lookalike.service.endpoint import Ask, Routes
from lookalike.service.formats import encode
from lookalike.service.problems import Problem
from lookalike.service.work.kept import TOO_MUCH
from lookalike.topics.words import WordCounts, cluster_words

overview = Routes("overview")

_BASE = "/v1/collections/{name}"
_GROUPS = {
    "radius": 9, "version": 7,
    "groups": [
        {"size": 2, "members": [{"id": "fox", "distance": 0}, {"id": "owl", "distance": 4}]}
    ],
}  # fmt: skip
_MAP = {
    "regions": [
        {"x": 0.1, "y": -0.3, "size": 20, "mean_distance": 31.5, "example": "fox", "text": "The",
         "words": ["fox", "brown"]}
    ],
    "places": [{"id": "fox", "x": 0.1, "y": -0.2, "region": 0}], "signatures": 20, "version": 7,
}  # fmt: skip
_LETTERS = 160
_WORDS = 5
_LONGEST = 10_000
"""Characters of a text that are looked at for words: a map is drawn while somebody waits."""


@overview.add("GET", f"{_BASE}/groups", example=_GROUPS, errors=(404, 422))
async def near_duplicate_groups(
    ask: Ask,
    name: str,
    radius: Annotated[
        int | None, Query(ge=0, le=16384, description="bits // 14 unless told")
    ] = None,
    most: Annotated[int, Query(ge=1, le=1000, description="groups")] = 50,
    members: Annotated[int, Query(ge=1, le=1000, description="of each group")] = 10,
) -> Any:
    """Return the largest groups of near-duplicates; 202 while they are being looked for."""

    def found(docs: Collection) -> dict[str, Any]:
        near = docs.bits // 14 if radius is None else min(radius, docs.bits)
        largest, version = groups(docs, near, most=most, members=members)
        shown = [
            {
                "size": group.size,
                "members": [{"id": id, "distance": far} for id, far in group.members],
            }
            for group in largest
        ]
        return {"radius": near, "version": version, "groups": shown}

    bits = (await ask.service.collection(name)).bits
    near = bits // 14 if radius is None else min(radius, bits)  # what is the same is computed once
    return await _soon(ask, name, ("groups", near, most, members), found)


@overview.add("GET", f"{_BASE}/map", example=_MAP, errors=(404, 422))
async def map_of_collection(
    ask: Ask,
    name: str,
    most: Annotated[int, Query(ge=1, le=20_000, description="documents on the map")] = 2_000,
    regions: Annotated[int, Query(ge=1, le=200)] = 40,
) -> Any:
    """Return a map of the collection in two dimensions; 202 while it is being drawn."""

    def found(docs: Collection) -> dict[str, Any]:
        drawn = asdict(map_of(docs, most=most, regions=regions))
        examples = docs.get_many([one["example"] for one in drawn["regions"]])
        words = _words(docs, drawn["places"], len(examples))
        for region, document, told in zip(drawn["regions"], examples, words, strict=True):
            text = None if document is None else document.text
            region["text"] = None if text is None else text[:_LETTERS]
            region["words"] = told
        return drawn

    return await _soon(ask, name, ("map", most, regions), found)


@overview.add(
    "GET", f"{_BASE}/distances",
    example={"random_pairs": [0, 1, 5], "nearest": [3, 2, 1], "version": 7}, errors=(404, 422),
)  # fmt: skip
async def distance_histogram(ask: Ask, name: str) -> Any:
    """Return how many random pairs, and nearest neighbours, are how far apart; 202 meanwhile."""
    return await _soon(ask, name, ("distances",), lambda docs: asdict(distances(docs)))


async def _soon(ask: Ask, name: str, what: tuple[Any, ...], found: Any) -> Response | bytes:
    service = ask.service
    docs = await service.collection(name)
    version = await service.use(name, lambda docs: docs.version)

    def compute() -> dict[str, Any]:
        result: dict[str, Any] = service.library.use(name, found)
        return result

    value = await service.kept.get((docs._opened.uid, *what), version, compute, service.oversee)
    if value is TOO_MUCH:
        raise Problem(
            429, "too_many_overviews", "others of these are being computed; try again later",
            retry_after=5,
        )  # fmt: skip
    if value is None:
        waiting = encode({"state": "computing"}, ask.format)
        return Response(waiting, 202, {"retry-after": "1"}, ask.format)
    return await service.read(encode, value, ask.format)


def _words(docs: Collection, places: list[dict[str, Any]], regions: int) -> list[list[str]]:
    """Return the words that tell each region of the map from the others; none without texts."""
    found = docs.get_many([place["id"] for place in places])
    texts = ["" if one is None or one.text is None else one.text[:_LONGEST] for one in found]
    if not any(texts) or isinstance(docs.signer, ImageHash):
        return [[] for _ in range(regions)]
    labels = np.array([place["region"] for place in places], np.int64)
    documents, kind = _native.Documents.from_list(texts, 0), Words(stopwords="english")
    counts = WordCounts.of(kind, documents, labels, regions, 1)
    return [[word for word, _ in told] for told in cluster_words(counts, documents, labels, _WORDS)]
