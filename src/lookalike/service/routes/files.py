"""Images, recordings and videos: add them as documents, and search for them.

A file is received on disk, decoded by isolated worker processes, and forgotten. A document keeps
its signatures and a small preview, never the file itself.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import Query
from fastapi.responses import Response
from pydantic import ValidationError

from lookalike.collection import Collection, Written
from lookalike.collection.documents import as_id
from lookalike.errors import BatchError, CollectionError
from lookalike.media import SignedFile, WrongMediumError, medium_of_signer
from lookalike.service.formats import bad_body
from lookalike.service.limits import Limit
from lookalike.service.problems import Problem, item_values
from lookalike.service.routes.documents import DocumentId
from lookalike.service.routes.queries import Queries, check_options, question_options
from lookalike.service.routing import CollectionName, Context, answers, new_router, untimed, writes
from lookalike.service.shapes import QueryOptions
from lookalike.service.uploads import FILE_OR_FORM, uploaded_file

files = new_router("files")

_PREVIEW = {"format": "FLAC", "seconds": 20.0, "waveform": "AGT/yP8="}
_WRITTEN = {"id": "song", "status": "added", "version": 7, "preview": _PREVIEW}
_FOUND = {
    "matches": [
        {
            "id": "song", "distance": 31, "similarity": 0.31, "metadata": {"preview": _PREVIEW},
            "votes": 45, "place": {
                "unit": "seconds", "start": 8.1, "query_start": 0.1, "length": 7.7, "offset": 8.0
            },
        }
    ],
    "left_out": 0, "exact": True, "version": 7, "masked": False, "by": "similar", "no_match": "",
    "query": {"format": "OGG", "seconds": 8.0, "waveform": "AGT/yP8="},
}  # fmt: skip
_BODY = {"requestBody": {"required": True, "content": FILE_OR_FORM}}
_LONGEST = 4_000
Json = Annotated[str, Query(max_length=_LONGEST, description="JSON object")]


@files.put(
    "/v1/collections/{name}/files/{id:anything}", openapi_extra=_BODY,
    responses=answers(_WRITTEN, 404, 409, 413, 415),
)  # fmt: skip
@writes
@untimed
async def write_file(
    context: Context,
    name: CollectionName,
    id: DocumentId,
    metadata: Json = "",
    mode: Literal["upsert", "add"] = Query(
        "upsert", description="`add` refuses an id that exists, `upsert` replaces its document"
    ),
) -> Response:
    """Add an image, a recording or a video, or replace the document with this id.

    The body is the file, of any Content-Type, or a form (multipart/form-data) with one file. Its
    type is recognized by its first bytes. The file itself is not stored. `preview` in the metadata
    has facts about it and a small picture or waveform, of at most 13,000 bytes in all.
    """
    service = context.service
    described = _object("metadata", metadata)
    as_id(id)
    await _of_files(context, name)

    def sign(docs: Collection) -> tuple[Collection, SignedFile]:
        return docs, _signed(docs, path, True)

    async with uploaded_file(context) as path:
        with Limit(service.watch, service.settings.decode_limit, _too_long, context.receive):
            docs, signed = await service.files(service.library.use, name, sign)
            try:
                written = await service.write(name, _writing(docs, id, signed, described, mode))
            except BatchError as error:
                raise _of_one(error) from None
    service.metrics.written.labels(name).inc()
    status = "updated" if written.updated else "added"
    told = {"id": id, "status": status, "version": written.version, "preview": signed.preview}
    return await context.reply(told)


@files.post(
    "/v1/collections/{name}/query/file", openapi_extra=_BODY,
    responses=answers(_FOUND, 404, 413, 415),
)  # fmt: skip
@untimed
async def query_file(
    context: Context,
    name: CollectionName,
    k: int = Query(10, ge=1, le=1 << 40, description="number of documents"),
    radius: int | None = Query(
        None,
        ge=0,
        le=16384,
        description="maximum Hamming distance: of images, or of parts that vote",
    ),
    where: Json = "",
    exclude: Annotated[list[str] | None, Query(description="id to leave out; repeat it")] = None,
    min_score: float | None = Query(
        None, gt=0, le=1, description="minimum share of the file's parts that vote for a document"
    ),
    include_text: bool = Query(False, description="return the texts of documents, their paths"),
    explain: bool = Query(False, description="return differing bits, or the parts that vote"),
    preview: bool = Query(True, description="return a preview of the file as `query`"),
) -> Response:
    """Find documents that resemble a file: an image, or a snippet of a recording or video.

    The body is the file, or a form with one file, as for PUT .../files/ID. Of recordings and
    videos, `similarity` is the share of the parts of the file that vote for a document. `place`
    says where the stretch that matches begins in the document (`start`) and in the file
    (`query_start`), and its `length`, in seconds. Images are compared as a whole.
    """
    service = context.service
    try:
        body = QueryOptions.model_validate({
            "k": k, "radius": radius, "where": _object("where", where) or None,
            "exclude": exclude or [], "min_score": min_score, "include_text": include_text,
            "explain": explain,
        })  # fmt: skip
    except ValidationError as error:
        raise bad_body(error) from None
    check_options(body, 1, service)
    docs = await _of_files(context, name)
    asking = Queries(service, name, context.format, question_options(body, service, docs.parts))

    def found(docs: Collection) -> bytes:
        return asking.of_file(docs, _signed(docs, path, preview, query=True))

    async with uploaded_file(context) as path:
        with Limit(service.watch, service.settings.decode_limit, _too_long, context.receive):
            answer = await service.files(service.library.use, name, found)
            return await context.reply(answer)


async def _of_files(context: Context, name: str) -> Collection:
    """Return a collection of files, or refuse one of texts or signatures."""
    docs = await context.service.collection(name)
    medium = medium_of_signer(await context.service.read(lambda: docs.signer))
    if medium is None:
        raise Problem(
            422, "no_files", f"the collection {name!r} does not hold images, recordings or videos; "
            "send texts or signatures, or create one with such a signer",
        )  # fmt: skip
    return docs


def _signed(docs: Collection, path: Path, preview: bool, *, query: bool = False) -> SignedFile:
    try:
        return docs._sign_file(path, preview=preview, query=query)
    except WrongMediumError as error:
        raise Problem(415, "file_type", str(error), kind="DocumentError") from None


def _writing(
    docs: Collection, id: str, signed: SignedFile, metadata: dict[str, Any], mode: str
) -> Any:
    def write(now: Collection) -> Written:
        if now is not docs:  # it may have another signer
            raise CollectionError("the collection was replaced; send the file again")
        return (docs.upsert if mode == "upsert" else docs.add)(
            [id], signatures=[signed.signature], metadata=[{"preview": signed.preview, **metadata}]
        )

    return write


def _of_one(error: BatchError) -> Exception:
    """Return the error of the one document; one that exists is a conflict."""
    (one,) = error.errors
    if not one.exists:
        return error
    message = f"{one.message}; use the mode upsert to replace it"
    return Problem(409, "exists", message, kind="BatchError", items=[item_values(one)])


def _object(name: str, text: str) -> dict[str, Any]:
    """Return the JSON object of a parameter; {} if it is empty."""
    try:
        value = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        message = f"{name} is {text[:80]!r}; expected a JSON object"
        raise Problem(422, "bad_parameter", f'{message} such as {{"year": 1987}}')
    return value


def _too_long(limit: float) -> Problem:
    return Problem(
        408, "decode_limit", f"the file takes more than {limit:g} s to be decoded; send a shorter "
        "or smaller one, try again later, or start the service with a larger --decode-limit",
    )  # fmt: skip
