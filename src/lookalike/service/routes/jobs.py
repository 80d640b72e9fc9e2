"""Jobs in the background: pairs, de-duplication, and files that are brought in."""

from __future__ import annotations

import os
import secrets
import shutil
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import Path, Query

from lookalike.service.endpoint import (
    Ask,
    ClientGone,
    Routes,
    check_length,
    slow_request,
    too_large,
)
from lookalike.service.guard.watch import Limit
from lookalike.service.problems import Problem
from lookalike.service.shapes import DedupBody, PairsBody

jobs = Routes("jobs")

_JOB = {
    "id": "0123456789abcdef01234567", "collection": "pages", "kind": "pairs", "writes": False,
    "state": "running", "step": "comparing", "progress": 0.25,
    "started": "2026-01-01T00:00:00.000+00:00", "ended": None, "summary": None, "error": None,
}  # fmt: skip
JobId = Annotated[str, Path(pattern="^[0-9a-f]{24}$", description="The id of a job")]
_CHUNK = 1 << 20
_LEAST = 256 << 10
"""Bytes of a file that have to arrive within the time limit for slow requests."""
_PAGE_BYTES = 8 << 20
"""With which a page of results ends, however many were asked for."""


@jobs.add("GET", "/v1/jobs", example={"jobs": [_JOB]})
async def list_jobs(ask: Ask) -> Any:
    """List jobs, the latest first."""
    found = await ask.service.read(ask.service.jobs.all)
    return {"jobs": [job for job in found if ask.key.reaches(job["collection"])]}


@jobs.add("GET", "/v1/jobs/{id}", example=_JOB, errors=(404, 422))
async def get_job(ask: Ask, id: JobId) -> Any:
    """Say how far a job is: running, done, failed or cancelled."""
    return await _known(ask, id)


@jobs.add("DELETE", "/v1/jobs/{id}", example={**_JOB, "state": "cancelled"}, errors=(404, 422))
async def cancel_job(ask: Ask, id: JobId) -> Any:
    """Cancel a job; forget one that has ended. A key for reading may do so unless it writes."""
    job = await _known(ask, id)
    if job["writes"] and not ask.key.writes:
        raise Problem(
            403, "read_only", f"the key {ask.key.name!r} is for reading, and the job writes; use "
            "another one",
        )  # fmt: skip
    return await ask.service.slowly(ask.service.jobs.cancel, id)


@jobs.add(
    "GET", "/v1/jobs/{id}/results",
    example={"results": [{"left": "fox", "right": "owl", "distance": 4}], "next": None},
    errors=(404, 409, 422),
)  # fmt: skip
async def job_results(
    ask: Ask,
    id: JobId,
    after: Annotated[int, Query(ge=0, le=1 << 40, description="the `next` of the page before")] = 0,
    limit: Annotated[int, Query(ge=1, le=100_000)] = 1_000,
) -> Any:
    """Return what a job has found; `next` is null at the end."""
    await _known(ask, id)
    service = ask.service
    most = min(_PAGE_BYTES, service.settings.max_answer // 2)  # so that the last one fits as well
    found, following = await service.read_much(service.jobs.results, id, after, limit, most)
    return {"results": found, "next": following}


@jobs.add("POST", "/v1/collections/{name}/pairs", body=PairsBody, status=202, example=_JOB,
          errors=(404,))  # fmt: skip
async def start_pairs(ask: Ask, name: str) -> Any:
    """Begin to look for every pair of documents within a radius."""
    return await _start(ask, name, {"kind": "pairs", **_limited(ask)})


@jobs.add("POST", "/v1/collections/{name}/dedup", body=DedupBody, status=202, example=_JOB,
          errors=(404,))  # fmt: skip
async def start_dedup(ask: Ask, name: str) -> Any:
    """Begin to look for near-duplicates and the documents to keep.

    With `delete` the duplicates are deleted, for which the key must be one that may write. A
    duplicate is deleted only if it and the document that is kept for it have not been written to
    since they were compared; `changed` in the summary counts the others.
    """
    if ask.body.delete and not ask.key.writes:
        raise Problem(
            403, "read_only", f"the key {ask.key.name!r} is for reading; leave `delete` out"
        )
    return await _start(ask, name, {"kind": "dedup", **_limited(ask)})


@jobs.add(
    "POST", "/v1/collections/{name}/upload", writes=True, timed=False, status=202, example=_JOB,
    errors=(404, 413, 422),
)  # fmt: skip
async def upload_file(
    ask: Ask,
    name: str,
    format: Annotated[Literal["jsonl", "json", "csv", "tsv", "text"], Query()] = "jsonl",
) -> Any:
    """Bring in a file: the body is the file as it is, of the type application/octet-stream.

    Columns with ids and texts are found as `lookalike collection import` finds them, and the
    others become metadata; documents of the same ids are replaced, rows that cannot be documents
    are counted. Of `text`, each line that is not empty is a document.
    """
    kind = (ask.visit.header(b"content-type") or "").partition(";")[0].strip().lower()
    if kind != "application/octet-stream":
        raise Problem(
            415, "content_type", f"the Content-Type is {kind[:80]!r}; expected "
            "application/octet-stream",
        )  # fmt: skip
    service = ask.service
    await service.collection(name)
    check_length(ask.visit, service.settings.max_upload, "--max-upload")
    folder = service.run / "uploads"
    path = folder / f"{secrets.token_hex(12)}.{format}"
    await service.slowly(lambda: folder.mkdir(mode=0o700, exist_ok=True))
    try:
        await _receive(ask, path)
        order = {"kind": "import", "path": str(path), "format": format,
                 "max_text": service.settings.max_text}  # fmt: skip
        return await _start(ask, name, order)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


async def _receive(ask: Ask, path: os.PathLike[str]) -> None:
    """Write the body to a file as it comes."""
    service, size, waiting = ask.service, 0, bytearray()
    seconds = service.settings.slow_limit
    ask.held.need(2 * _CHUNK)  # what waits to be written, and its copy for the thread that writes
    file = await service.slowly(open, path, "wb")
    try:
        more = True
        while more:
            with Limit(service.watch, seconds, partial(slow_request, seconds)):
                more = await _receive_part(ask, waiting)
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


async def _receive_part(ask: Ask, waiting: bytearray) -> bool:
    """Add at least 256 KiB of the body, or its end; return whether there is more."""
    enough = len(waiting) + _LEAST
    while len(waiting) < enough:
        message = await ask.request.receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        waiting += message.get("body", b"")
        if not message.get("more_body", False):
            return False
    return True


def _limited(ask: Ask) -> dict[str, Any]:
    """Return the order of a body; nobody gets more pairs than the service gives out."""
    order: dict[str, Any] = ask.body.model_dump()
    most = ask.service.settings.max_results
    given = order.get("limit")
    order["limit"] = most if given is None else min(given, most)
    return order


async def _known(ask: Ask, id: str) -> dict[str, Any]:
    job = await ask.service.read(ask.service.jobs.get, id)
    if not ask.key.reaches(job["collection"]):
        raise Problem(
            403, "collection_scope", f"the key {ask.key.name!r} is not for the collection of this "
            "job; use another one",
        )  # fmt: skip
    return job


async def _start(ask: Ask, name: str, order: dict[str, Any]) -> Any:
    service = ask.service
    await service.collection(name)
    url, inner = await service.read(service.library.place, name)
    return await service.slowly(service.jobs.start, name, {**order, "url": url, "name": inner})
