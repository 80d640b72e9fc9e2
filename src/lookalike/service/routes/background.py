"""What takes long: jobs in the background, and overviews of a collection.

Jobs look for pairs and near-duplicates, and bring in files. Overviews (groups of near-duplicates, a
map, distances) read all signatures. They are computed once for each version and kept. Until then
the answer is status 202, and the client asks again. A computation that no client waits for is
stopped.
"""

from __future__ import annotations

import os
import secrets
import shutil
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import Path, Query
from fastapi.responses import Response

from lookalike.service.formats import encode
from lookalike.service.limits import Limit
from lookalike.service.overviews import GONE, TOO_MUCH
from lookalike.service.problems import ClientGone, Problem
from lookalike.service.routing import (
    CollectionName,
    Context,
    authorize,
    new_router,
    slow_request,
    told,
    too_large,
    untimed,
    writes,
)
from lookalike.service.shapes import DedupBody, PairsBody

jobs = new_router("jobs")
overviews = new_router("overview")

_JOB = {
    "id": "0123456789abcdef01234567", "collection": "pages", "kind": "pairs", "writes": False,
    "state": "running", "step": "comparing", "progress": 0.25,
    "started": "2026-01-01T00:00:00.000+00:00", "ended": None, "summary": None, "error": None,
}  # fmt: skip
_STARTED = told(_JOB, 404, status=202)
_FILE = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
JobId = Annotated[str, Path(pattern="^[0-9a-f]{24}$", description="The id of a job")]
_CHUNK = 1 << 20
_LEAST = 256 << 10
"""Bytes of a file that have to arrive within the time limit for slow requests."""
_PAGE_BYTES = 8 << 20
"""With which a page of results ends, however many were asked for."""
_BASE = "/v1/collections/{name}"
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


@jobs.get("/v1/jobs", responses=told({"jobs": [_JOB]}))
async def list_jobs(context: Context) -> Response:
    """List jobs, the latest first."""
    found = await context.service.read(context.service.jobs.all)
    known = [job for job in found if context.key.reaches(job["collection"])]
    return await context.reply({"jobs": known})


@jobs.get("/v1/jobs/{id}", responses=told(_JOB, 404))
async def get_job(context: Context, id: JobId) -> Response:
    """Say how far a job is: running, done, failed or cancelled."""
    return await context.reply(await _known(context, id))


@jobs.delete("/v1/jobs/{id}", responses=told({**_JOB, "state": "cancelled"}, 404))
async def cancel_job(context: Context, id: JobId) -> Response:
    """Cancel a job; forget one that has ended. A key for reading may do so unless it writes."""
    job = await _known(context, id)
    authorize(context.key, None, writes=job["writes"])
    return await context.reply(await context.service.slowly(context.service.jobs.cancel, id))


@jobs.get(
    "/v1/jobs/{id}/results",
    responses=told(
        {"results": [{"left": "fox", "right": "owl", "distance": 4}], "next": None}, 404, 409
    ),
)
async def job_results(
    context: Context,
    id: JobId,
    after: Annotated[int, Query(ge=0, le=1 << 40, description="the `next` of the page before")] = 0,
    limit: Annotated[int, Query(ge=1, le=100_000)] = 1_000,
) -> Response:
    """Return what a job has found; `next` is null at the end."""
    await _known(context, id)
    service = context.service
    most = min(_PAGE_BYTES, service.settings.max_answer // 2)  # so that the last one fits as well
    found, following = await service.read_much(service.jobs.results, id, after, limit, most)
    return await context.reply({"results": found, "next": following})


@jobs.post("/v1/collections/{name}/pairs", status_code=202, responses=_STARTED)
async def start_pairs(context: Context, name: CollectionName, body: PairsBody) -> Response:
    """Begin to look for every pair of documents within a radius."""
    return await _start(context, name, {"kind": "pairs", **_limited(context, body)})


@jobs.post("/v1/collections/{name}/dedup", status_code=202, responses=_STARTED)
async def start_dedup(context: Context, name: CollectionName, body: DedupBody) -> Response:
    """Begin to look for near-duplicates and the documents to keep.

    With `delete` the duplicates are deleted, for which the key must be one that may write. A
    duplicate is deleted only if it and the document that is kept for it have not been written to
    since they were compared; `changed` in the summary counts the others.
    """
    authorize(context.key, None, writes=body.delete)
    return await _start(context, name, {"kind": "dedup", **_limited(context, body)})


@jobs.post(
    "/v1/collections/{name}/upload", status_code=202, responses=told(_JOB, 404, 413, status=202),
    openapi_extra={"requestBody": {"required": True, "content": _FILE}},
)  # fmt: skip
@writes
@untimed
async def upload_file(
    context: Context,
    name: CollectionName,
    format: Annotated[Literal["jsonl", "json", "csv", "tsv", "text"], Query()] = "jsonl",
) -> Response:
    """Bring in a file: the body is the file as it is, of the type application/octet-stream.

    Columns with ids and texts are found as `lookalike collection import` finds them, and the
    others become metadata; documents of the same ids are replaced, rows that cannot be documents
    are counted. Of `text`, each line that is not empty is a document.
    """
    kind = (context.info.header(b"content-type") or "").partition(";")[0].strip().lower()
    if kind != "application/octet-stream":
        raise Problem(
            415, "content_type", f"the Content-Type is {kind[:80]!r}; expected "
            "application/octet-stream",
        )  # fmt: skip
    service = context.service
    await service.collection(name)
    context.check_length(service.settings.max_upload, "--max-upload")
    folder = service.run / "uploads"
    path = folder / f"{secrets.token_hex(12)}.{format}"
    await service.slowly(lambda: folder.mkdir(mode=0o700, exist_ok=True))
    try:
        await _receive(context, path)
        order = {"kind": "import", "path": str(path), "format": format,
                 "max_text": service.settings.max_text}  # fmt: skip
        return await _start(context, name, order)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


async def _receive(context: Context, path: os.PathLike[str]) -> None:
    """Write the body to a file as it comes."""
    service, size, waiting = context.service, 0, bytearray()
    seconds = service.settings.slow_limit
    context.held.need(2 * _CHUNK)  # what waits to be written, and its copy for the writing thread
    file = await service.slowly(open, path, "wb")
    try:
        more = True
        while more:
            with Limit(service.watch, seconds, partial(slow_request, seconds)):
                more = await _receive_part(context, waiting)
            if len(waiting) >= _CHUNK or not more:
                size += len(waiting)
                if size > service.settings.max_upload:
                    raise too_large(f"more than {service.settings.max_upload}", "--max-upload")
                if waiting and shutil.disk_usage(service.run).free < 2 * len(waiting) + (64 << 20):
                    raise Problem(413, "no_room", "there is no room for the file; remove others")
                await service.slowly(file.write, bytes(waiting))
                waiting.clear()
        if not size:
            raise Problem(422, "empty_file", "the file is empty; send its bytes as the body")
    finally:
        file.close()


async def _receive_part(context: Context, waiting: bytearray) -> bool:
    """Add at least 256 KiB of the body, or its end; return whether there is more."""
    enough = len(waiting) + _LEAST
    while len(waiting) < enough:
        message = await context.receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        waiting += message.get("body", b"")
        if not message.get("more_body", False):
            return False
    return True


def _limited(context: Context, body: PairsBody | DedupBody) -> dict[str, Any]:
    """Return the order of a body, with no more pairs than the service gives out."""
    order: dict[str, Any] = body.model_dump()
    most = context.service.settings.max_results
    given = order.get("limit")
    order["limit"] = most if given is None else min(given, most)
    return order


async def _known(context: Context, id: str) -> dict[str, Any]:
    job = await context.service.read(context.service.jobs.get, id)
    authorize(context.key, job["collection"])
    return job


async def _start(context: Context, name: str, order: dict[str, Any]) -> Response:
    service = context.service
    await service.collection(name)
    url, inner = await service.read(service.library.place, name)
    whole = {**order, "url": url, "name": inner}
    return await context.reply(await service.slowly(service.jobs.start, name, whole))


@overviews.get(f"{_BASE}/groups", responses=told(_GROUPS, 404, 503))
async def near_duplicate_groups(
    context: Context,
    name: CollectionName,
    radius: Annotated[
        int | None,
        Query(ge=0, le=16384, description="largest distance in bits (default: bits // 14)"),
    ] = None,
    most: Annotated[int, Query(ge=1, le=1000, description="number of groups")] = 50,
    members: Annotated[
        int, Query(ge=1, le=1000, description="number of ids listed for each group")
    ] = 10,
) -> Response:
    """Return the largest groups of near-duplicates; 202 while they are being computed.

    Every document of a group is within the radius of the group's first document; two others may be
    up to twice the radius apart. The groups are those of the `dedup` job with the same radius.
    """
    bits = (await context.service.collection(name)).bits
    near = bits // 14 if radius is None else min(radius, bits)  # what is the same is computed once
    return await _soon(context, name, "groups", radius=near, most=most, members=members)


@overviews.get(f"{_BASE}/map", responses=told(_MAP, 404, 503))
async def map_of_collection(
    context: Context,
    name: CollectionName,
    most: Annotated[int, Query(ge=1, le=20_000, description="documents on the map")] = 2_000,
    regions: Annotated[int, Query(ge=1, le=200)] = 40,
) -> Response:
    """Return a map of the collection in two dimensions; 202 while it is being drawn."""
    return await _soon(context, name, "map", most=most, regions=regions)


@overviews.get(
    f"{_BASE}/distances",
    responses=told(
        {"random_pairs": [0, 1, 5], "nearest": [3, 2, 1], "sharing": 2, "version": 7}, 404, 503
    ),
)
async def distance_histogram(context: Context, name: CollectionName) -> Response:
    """Return histograms of distances; 202 while they are being computed.

    Element d of a list counts distances of d bits: `random_pairs` between signatures chosen at
    random, `nearest` between up to 1,000 signatures and their nearest other signature. `sharing` is
    the number of documents whose signature another document has, too.
    """
    return await _soon(context, name, "distances")


async def _soon(context: Context, name: str, kind: str, **given: int) -> Response:
    service = context.service
    docs = await service.collection(name)
    version = await service.use(name, lambda docs: docs.version)

    async def compute() -> Any:
        order = {"kind": kind, "source": service.library.source, "name": name, **given}
        return await service.overviews.compute({**order, "threads": service.threads})

    what = (docs._opened.uid, kind, *given.values())
    value = await service.kept.get(what, version, compute, context.hung_up)
    if value is GONE:
        raise ClientGone
    if value is TOO_MUCH:
        raise Problem(
            429, "too_many_overviews", "others of these are being computed; try again later",
            retry_after=5,
        )  # fmt: skip
    if value is None:
        waiting = encode({"state": "computing"}, context.format)
        return Response(waiting, 202, {"retry-after": "1"}, context.format)
    return await context.reply(await service.read(encode, value, context.format))
