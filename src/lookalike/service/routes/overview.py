"""Overviews of a collection: groups of near-duplicates, a map, distances.

These read all signatures. They are computed once for each version and kept. Until then the answer
is status 202, and the client asks again. A computation that no client waits for is stopped.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query
from fastapi.responses import Response

from lookalike.service.endpoint import Ask, ClientGone, Routes
from lookalike.service.formats import encode
from lookalike.service.problems import Problem
from lookalike.service.work.overviews import GONE, TOO_MUCH

overview = Routes("overview")

_BASE = "/v1/collections/{name}"
_ERRORS = (404, 422, 503)
_GROUPS = {
    "radius": 9, "version": 7,
    "groups": [
        {"size": 2, "largest_distance": 4,
         "members": [{"id": "fox", "distance": 0}, {"id": "owl", "distance": 4}]}
    ],
}  # fmt: skip
_MAP = {
    "regions": [
        {"x": 0.1, "y": -0.3, "size": 20, "mean_distance": 31.5, "example": "fox", "text": "The",
         "words": ["fox", "brown"]}
    ],
    "places": [{"id": "fox", "x": 0.1, "y": -0.2, "region": 0}], "signatures": 20, "version": 7,
}  # fmt: skip


@overview.add("GET", f"{_BASE}/groups", example=_GROUPS, errors=_ERRORS)
async def near_duplicate_groups(
    ask: Ask,
    name: str,
    radius: Annotated[
        int | None,
        Query(ge=0, le=16384, description="largest distance in bits (default: bits // 14)"),
    ] = None,
    most: Annotated[int, Query(ge=1, le=1000, description="number of groups")] = 50,
    members: Annotated[
        int, Query(ge=1, le=1000, description="number of ids listed for each group")
    ] = 10,
) -> Any:
    """Return the largest groups of near-duplicates; 202 while they are being computed.

    Every document of a group is within the radius of the group's first document; two others may be
    up to twice the radius apart. The groups are those of the `dedup` job with the same radius.
    """
    bits = (await ask.service.collection(name)).bits
    near = bits // 14 if radius is None else min(radius, bits)  # what is the same is computed once
    return await _soon(ask, name, "groups", radius=near, most=most, members=members)


@overview.add("GET", f"{_BASE}/map", example=_MAP, errors=_ERRORS)
async def map_of_collection(
    ask: Ask,
    name: str,
    most: Annotated[int, Query(ge=1, le=20_000, description="documents on the map")] = 2_000,
    regions: Annotated[int, Query(ge=1, le=200)] = 40,
) -> Any:
    """Return a map of the collection in two dimensions; 202 while it is being drawn."""
    return await _soon(ask, name, "map", most=most, regions=regions)


@overview.add(
    "GET", f"{_BASE}/distances",
    example={"random_pairs": [0, 1, 5], "nearest": [3, 2, 1], "sharing": 2, "version": 7},
    errors=_ERRORS,
)  # fmt: skip
async def distance_histogram(ask: Ask, name: str) -> Any:
    """Return histograms of distances; 202 while they are being computed.

    Element d of a list counts distances of d bits: `random_pairs` between signatures chosen at
    random, `nearest` between up to 1,000 signatures and their nearest other signature. `sharing` is
    the number of documents whose signature another document has, too.
    """
    return await _soon(ask, name, "distances")


async def _soon(ask: Ask, name: str, kind: str, **given: int) -> Response | bytes:
    service = ask.service
    docs = await service.collection(name)
    version = await service.use(name, lambda docs: docs.version)

    async def compute() -> Any:
        order = {"kind": kind, "source": service.library.source, "name": name, **given}
        return await service.overviews.compute({**order, "threads": service.threads})

    what = (docs._opened.uid, kind, *given.values())
    value = await service.kept.get(what, version, compute, ask.hung_up)
    if value is GONE:
        raise ClientGone
    if value is TOO_MUCH:
        raise Problem(
            429, "too_many_overviews", "others of these are being computed; try again later",
            retry_after=5,
        )  # fmt: skip
    if value is None:
        waiting = encode({"state": "computing"}, ask.format)
        return Response(waiting, 202, {"retry-after": "1"}, ask.format)
    return await service.read(encode, value, ask.format)
