"""Background jobs, and overviews of a collection.

Jobs find pairs and near-duplicates, and import files. Overviews (groups of near-duplicates, a map,
distances) read all signatures, and are cached for each version. While one is computed the status
is 202, and the client asks again.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Query
from fastapi.responses import Response
from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from lookalike.collection import Collection
from lookalike.corpora import FORMATS, Format
from lookalike.service.formats import encode
from lookalike.service.problems import Problem
from lookalike.service.routing import CollectionName, Context, answers, new_router, untimed, writes
from lookalike.service.shapes import DedupBody, PairsBody
from lookalike.service.uploads import FILE, new_path, receive_file

jobs = new_router("jobs")
overviews = new_router("overview")

_JOB = {
    "id": "0123456789abcdef01234567", "collection": "pages", "kind": "pairs", "writes": False,
    "state": "running", "step": "comparing", "progress": 0.25,
    "started": "2026-01-01T00:00:00.000+00:00", "ended": None, "summary": None, "error": None,
}  # fmt: skip
_PAIR = {"left": "fox", "right": "owl", "distance": 4}
_STARTED = answers(_JOB, 404, status=202)
_BASE = "/v1/collections/{name}"
JobId = Annotated[str, Path(pattern="^[0-9a-f]{24}$", description="Job id")]
_PAGE_BYTES = 8 << 20
"""Maximum size of a page of results."""
_GROUPS = {
    "radius": 9, "version": 7,
    "groups": [
        {"size": 2, "largest_distance": 4, "least_similarity": 0.9952,
         "members": [{"id": "fox", "distance": 0, "similarity": 1.0},
                     {"id": "owl", "distance": 4, "similarity": 0.9952}]}
    ],
}  # fmt: skip
_MAP = {
    "regions": [
        {"x": 0.1, "y": -0.3, "size": 20, "mean_distance": 31.5, "example": "fox", "text": "The",
         "words": ["fox", "brown"]}
    ],
    "places": [{"id": "fox", "x": 0.1, "y": -0.2, "region": 0}], "signatures": 20, "version": 7,
}  # fmt: skip
_DISTANCES = {"random_pairs": [0, 1, 5], "nearest": [3, 2, 1], "sharing": 2, "version": 7}


def _is_uploaded(format: Format) -> bool:
    """Return whether files of a format can be uploaded: text formats with rows."""
    return format.rows and format.has_encoding


_FORMATS = [format.name for format in FORMATS if _is_uploaded(format)]


def _check_format(name: str) -> str:
    if name not in FORMATS or not _is_uploaded(FORMATS[name]):
        *some, last = map(repr, _FORMATS)
        raise PydanticCustomError("format", f"Input should be {', '.join(some)} or {last}")
    return name


UploadFormat = Annotated[
    str,
    AfterValidator(_check_format),
    Query(json_schema_extra={"enum": _FORMATS}, description="file format"),
]


@jobs.get("/v1/jobs", responses=answers({"jobs": [_JOB]}))
async def list_jobs(context: Context) -> Response:
    """List jobs, the newest first."""
    found = await context.service.read(context.service.jobs.all)
    known = [job for job in found if context.key.reaches(job["collection"])]
    return await context.reply({"jobs": known})


@jobs.get("/v1/jobs/{id}", responses=answers(_JOB, 404))
async def get_job(context: Context, id: JobId) -> Response:
    """Get the state of a job: running, done, failed or canceled."""
    return await context.reply(await _known(context, id))


@jobs.delete("/v1/jobs/{id}", responses=answers({**_JOB, "state": "canceled"}, 404))
async def cancel_job(context: Context, id: JobId) -> Response:
    """Cancel a job, or remove a finished one. Only a job that writes needs a read-write key."""
    job = await _known(context, id)
    context.authorize(writes=job["writes"])
    return await context.reply(await context.service.slowly(context.service.jobs.cancel, id))


@jobs.get("/v1/jobs/{id}/results", responses=answers({"results": [_PAIR], "next": None}, 404, 409))
async def job_results(
    context: Context,
    id: JobId,
    after: int = Query(0, ge=0, le=1 << 40, description="`next` of the previous page"),
    limit: int = Query(1_000, ge=1, le=100_000, description="maximum number of results"),
) -> Response:
    """Get the results of a job; `next` is null on the last page."""
    await _known(context, id)
    service = context.service
    most = min(_PAGE_BYTES, service.settings.max_answer // 2)  # the last result may exceed it
    found, following = await service.read_much(service.jobs.results, id, after, limit, most)
    return await context.reply({"results": found, "next": following})


@jobs.post(f"{_BASE}/pairs", status_code=202, responses=_STARTED)
async def start_pairs(context: Context, name: CollectionName, body: PairsBody) -> Response:
    """Start a job that finds all pairs of documents within a radius."""
    await _single_signatures(context, name)
    return await _start(context, name, {"kind": "pairs", **_limited(context, body)})


@jobs.post(f"{_BASE}/dedup", status_code=202, responses=_STARTED)
async def start_dedup(context: Context, name: CollectionName, body: DedupBody) -> Response:
    """Start a job that finds near-duplicates and the documents to keep.

    With `delete` the job deletes the near-duplicates, which needs a read-write key. It deletes a
    near-duplicate only if neither it nor its kept document changed since they were compared;
    `changed` in the summary counts the others.
    """
    context.authorize(writes=body.delete)
    if body.radius is not None:
        await _single_signatures(context, name)
    return await _start(context, name, {"kind": "dedup", **_limited(context, body)})


@jobs.post(
    f"{_BASE}/upload", status_code=202, responses=answers(_JOB, 404, 413, status=202),
    openapi_extra={"requestBody": {"required": True, "content": FILE}},
)  # fmt: skip
@writes
@untimed
async def upload_file(
    context: Context, name: CollectionName, format: UploadFormat = "jsonl"
) -> Response:
    """Start a job that imports a file. The body is the file, as application/octet-stream.

    Columns with ids and texts are detected as by `lookalike collection import`, and the others
    become metadata. Documents with existing ids are replaced, and invalid rows are counted. With
    the format `text`, each line that is not empty is a document.
    """
    kind = context.info.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/octet-stream":
        message = f"the Content-Type is {kind[:80]!r}; expected application/octet-stream"
        raise Problem(415, "content_type", message)
    service = context.service
    await service.collection(name)
    path = await new_path(context, f".{format}")
    try:
        await receive_file(context, path)
        order = {"kind": "import", "path": str(path), "format": format}
        return await _start(context, name, {**order, "max_text": service.settings.max_text})
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _limited(context: Context, body: PairsBody | DedupBody) -> dict[str, Any]:
    """Return the fields of a body, with the number of pairs limited by the service."""
    order: dict[str, Any] = body.model_dump()
    most, given = context.service.settings.max_results, order.get("limit")
    return {**order, "limit": most if given is None else min(given, most)}


async def _single_signatures(context: Context, name: str) -> Collection:
    """Return a collection; refuse one of many parts, whose documents have no distances."""
    docs = await context.service.collection(name)
    if docs.parts:
        raise Problem(
            422, "parts", f"documents of the collection {name!r} have many signatures each, so "
            "they have no groups, pairs, map or distances; search for a document or a file",
        )  # fmt: skip
    return docs


async def _known(context: Context, id: str) -> dict[str, Any]:
    job = await context.service.read(context.service.jobs.get, id)
    context.authorize(job["collection"])
    return job


async def _start(context: Context, name: str, order: dict[str, Any]) -> Response:
    service = context.service
    await service.collection(name)
    url, inner = await service.read(service.library.place, name)
    order = {**order, "url": url, "name": inner}
    return await context.reply(await service.slowly(service.jobs.start, name, order))


@overviews.get(f"{_BASE}/groups", responses=answers(_GROUPS, 404, 503))
async def near_duplicate_groups(
    context: Context,
    name: CollectionName,
    radius: int | None = Query(
        None, ge=0, le=16384, description="maximum Hamming distance (default: bits // 14)"
    ),
    most: int = Query(50, ge=1, le=1000, description="maximum number of groups"),
    members: int = Query(10, ge=1, le=1000, description="maximum number of ids per group"),
) -> Response:
    """Get the largest groups of near-duplicates; status 202 while they are computed.

    Every document of a group is within the radius of the group's first document; two others may be
    up to twice the radius apart. The groups are those of the `dedup` job with the same radius.
    """
    bits = (await _single_signatures(context, name)).bits
    near = bits // 14 if radius is None else min(radius, bits)
    return await _overview(context, name, "groups", radius=near, most=most, members=members)


@overviews.get(f"{_BASE}/map", responses=answers(_MAP, 404, 503))
async def map_of_collection(
    context: Context,
    name: CollectionName,
    most: int = Query(2_000, ge=1, le=20_000, description="maximum number of documents"),
    regions: int = Query(40, ge=1, le=200, description="maximum number of regions"),
) -> Response:
    """Get a two-dimensional map of the collection; status 202 while it is computed."""
    return await _overview(context, name, "map", most=most, regions=regions)


@overviews.get(f"{_BASE}/distances", responses=answers(_DISTANCES, 404, 503))
async def distance_histogram(context: Context, name: CollectionName) -> Response:
    """Get histograms of distances; status 202 while they are computed.

    Element d of a list counts distances of d bits: `random_pairs` between random pairs of
    signatures, `nearest` between up to 1,000 signatures and their nearest other signature.
    `sharing` is the number of documents that share their signature with another document.
    """
    return await _overview(context, name, "distances")


async def _overview(context: Context, name: str, kind: str, **given: int) -> Response:
    service = context.service
    docs = await _single_signatures(context, name)
    version = await service.use(name, lambda docs: docs.version)
    order = {"kind": kind, "source": service.library.source, "name": name, **given}
    order["threads"] = service.threads
    what = (docs._opened.uid, kind, *given.values())
    value = await service.overviews.get(what, version, order, context.disconnected)
    if value is None:
        waiting = encode({"state": "computing"}, context.format)
        return Response(waiting, 202, {"retry-after": "1"}, context.format)
    return await context.reply(await service.read(encode, value, context.format))
