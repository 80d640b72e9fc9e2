"""Create, list, describe and delete collections and their snapshots.

A snapshot is a copy of a collection at one moment, in a file that can be downloaded.
"""

from __future__ import annotations

import re
import secrets
from datetime import UTC, datetime
from functools import partial
from pathlib import Path as FilePath
from typing import Annotated, Any

from fastapi import Path
from fastapi.responses import FileResponse, Response

from lookalike import errors
from lookalike.collection import Collection
from lookalike.collection.opening import holds_other_content
from lookalike.common_passages.signing import PassageHash
from lookalike.features import Chars, Combined, FeatureKind, Words
from lookalike.media import MEDIA
from lookalike.service.keys import Key
from lookalike.service.problems import Problem, problem_for_clients
from lookalike.service.routing import CollectionName, Context, answers, new_router, untimed, writes
from lookalike.service.service import Service
from lookalike.service.shapes import PASSAGES, CreateBody, SignerBody, measure_value
from lookalike.shown import brief
from lookalike.signatures import Signer, SimHash, signer_from_dict
from lookalike.signatures.methods import text_signer

collections = new_router("collections")
snapshots = new_router("snapshots")

_MADE = {
    "name": "pages", "documents": 3, "signatures": 3, "bits": 128, "signer": {"signer": "SimHash"},
    "medium": "text", "parts": False,
    "measure": {"measure": "cosine", "unit": "words", "weights": "count"},
    "keeps_text": True, "words": None, "vectors": 0, "dimensions": None, "version": 1,
}  # fmt: skip
_SNAPSHOTS = "/v1/collections/{name}/snapshots"
_SQLITE = "application/vnd.sqlite3"
_SNAPSHOT = {"name": "20260101T000000Z-0a1b2c3d.db", "bytes": 40960}
_SNAPSHOT_NAME = r"^[0-9]{8}T[0-9]{6}Z-[0-9a-f]{8}\.db$"
SnapshotName = Annotated[str, Path(pattern=_SNAPSHOT_NAME, description="Snapshot name")]
_MOST_SNAPSHOTS = 100


@collections.get("/v1/collections", responses=answers({"collections": [_MADE]}))
async def list_collections(context: Context) -> Response:
    """List the collections that the API key may use.

    `unavailable` lists collections that cannot be read because their database is damaged, locked or
    unreachable, each with its error.
    """
    return await context.reply(await context.service.read(_listed, context.service, context.key))


@collections.post("/v1/collections", status_code=201, responses=answers(_MADE, 409, status=201))
@writes
async def create_collection(context: Context, body: CreateBody) -> Response:
    """Create a collection: of texts for a purpose, of files of a medium, or of signatures.

    `{"signer": {"method": "images"}}` creates a collection of images; `recordings`, `videos` and
    `passages` (of texts) are other methods.
    """
    context.authorize(body.name)
    return await context.reply(await context.service.slowly(_make, context.service, body))


@collections.get("/v1/collections/{name}", responses=answers(_MADE, 404))
async def describe_collection(context: Context, name: CollectionName) -> Response:
    """Describe a collection: number of documents, signer, and state of its index."""
    return await context.reply(await context.service.use(name, partial(_describe, name)))


@collections.delete("/v1/collections/{name}", responses=answers({"deleted": "pages"}, 404))
@writes
async def delete_collection(context: Context, name: CollectionName) -> Response:
    """Delete a collection with all its documents. This cannot be undone."""
    await context.service.slowly(context.service.library.drop, name)
    context.service.forget(name)
    context.service.log.say("warning", "collection deleted", collection=name, key=context.key.name)
    return await context.reply({"deleted": name})


@snapshots.post(_SNAPSHOTS, status_code=201, responses=answers(_SNAPSHOT, 404, 409, status=201))
@writes
@untimed
async def create_snapshot(context: Context, name: CollectionName) -> Response:
    """Create a snapshot. Reads and writes continue meanwhile."""
    return await context.reply(await context.service.slowly(_snapshot, context.service, name))


@snapshots.get(_SNAPSHOTS, responses=answers({"snapshots": [_SNAPSHOT]}, 404))
async def list_snapshots(context: Context, name: CollectionName) -> Response:
    """List the snapshots of a collection, the newest first."""
    await context.service.collection(name)
    found = await context.service.read(_snapshots_in, _folder(context.service, name))
    return await context.reply({"snapshots": found})


@snapshots.get(
    f"{_SNAPSHOTS}/{{snapshot}}", response_class=FileResponse,
    responses=answers(None, 404, media=_SQLITE),
)  # fmt: skip
@untimed
async def download_snapshot(
    context: Context, name: CollectionName, snapshot: SnapshotName
) -> FileResponse:
    """Download a snapshot, an SQLite file that `la.open_collection` can open."""
    path = await context.service.read(_existing, _folder(context.service, name), snapshot)
    return FileResponse(path, media_type=_SQLITE, filename=f"{name}-{snapshot}")


@snapshots.delete(
    f"{_SNAPSHOTS}/{{snapshot}}", responses=answers({"deleted": _SNAPSHOT["name"]}, 404, 409)
)
@writes
async def delete_snapshot(
    context: Context, name: CollectionName, snapshot: SnapshotName
) -> Response:
    """Delete a snapshot."""
    path = await context.service.read(_existing, _folder(context.service, name), snapshot)
    await context.service.read(_delete, path)
    return await context.reply({"deleted": snapshot})


def _describe(name: str, docs: Collection) -> dict[str, Any]:
    """Return the description of a collection, without its path."""
    stats, signer = docs.stats(), docs.signer
    behind = stats["version"] - stats["native_version"] if stats["native_bytes"] else None
    return {
        "name": name,
        **{one: stats[one] for one in ("documents", "signatures", "bits")},
        "signer": None if signer is None else _brief(signer.to_dict()),
        "medium": None if signer is None else signer.medium,
        "parts": docs.parts,
        "measure": measure_value(signer),
        **{one: stats[one] for one in ("keeps_text", "words", "vectors", "dimensions")},
        **{one: stats[one] for one in ("version", "durability")},
        "index": {
            "kind": "PartIndex" if docs.parts else "SliceIndex",
            "slices": stats["slices"],
            "slice_bits": stats["slice_bits"],
            "bytes": stats["native_bytes"],
            "version": stats["native_version"] or None,
            "lag": behind,
            "saved": stats["cache"] is not None,
        },
    }


def _brief(description: dict[str, Any]) -> dict[str, Any]:
    """Return the description of a signer without its vocabulary, which may be large."""
    weights = description.get("weights")
    if isinstance(weights, dict) and weights.get("vocabulary") is not None:
        description = {**description, "weights": {**weights, "vocabulary": "learned"}}
    return description


def _listed(service: Service, key: Key) -> dict[str, Any]:
    """Return the collections that can be read, and the errors of the others."""
    found: list[dict[str, Any]] = []
    unavailable: list[dict[str, Any]] = []
    for name, unread in service.library.survey().items():
        if not key.reaches(name):
            continue
        try:
            if isinstance(unread, errors.CollectionBusyError):
                raise unread  # do not wait for its lock again
            found.append(service.library.use(name, partial(_describe, name)))
        except (errors.LookalikeError, Problem) as error:
            problem = problem_for_clients(error, service.library.shown)
            if problem.logged:
                service.log.failed("collection cannot be read", error, collection=name)
            if problem.status != 404:  # deleted meanwhile
                unavailable.append({"name": name, **problem.value()})
    return {"collections": found, **({"unavailable": unavailable} if unavailable else {})}


def _make(service: Service, body: CreateBody) -> dict[str, Any]:
    signer, purpose = None, body.purpose
    if body.description is not None:
        signer = _of_description(body.description)
    elif body.signer is not None:
        signer = _signer(body.signer)
    elif body.bits is None:
        purpose = purpose or "search"
    docs = service.library.create(body.name, signer, body.bits, body.keep_text, body.words, purpose)
    service.log.say("info", "collection created", collection=body.name)
    return _describe(body.name, docs)


def _of_description(description: dict[str, Any]) -> Signer:
    try:
        return signer_from_dict(description)
    except errors.ArgumentError:
        raise
    except errors.FormatError as error:  # of another version; there is no file here
        raise errors.ArgumentError(str(error)) from None
    except (ValueError, TypeError, LookupError, OverflowError) as error:
        raise errors.ArgumentError(
            f"the description of the signer is invalid ({type(error).__name__}); expected the "
            "result of Signer.to_dict"
        ) from None


def _signer(body: SignerBody) -> Signer:
    if body.method in MEDIA:
        for name in sorted(body.model_fields_set - {"method"}):
            raise errors.ArgumentError(f"{name} has no effect with {body.method}; leave it out")
        return MEDIA[body.method]().signer
    if body.method != PASSAGES and (body.words is not None or body.step is not None):
        raise errors.ArgumentError(f"words and step are for {PASSAGES}; leave them out")
    words = None if body.ngram is None else Words(ngram=body.ngram)
    chars = None if body.chars is None else Chars(ngram=body.chars)
    features: FeatureKind | None = Combined(words, chars) if words and chars else words or chars
    if body.method == PASSAGES:
        usual = PassageHash()
        by = SimHash(body.bits or usual.bits, features, seed=body.seed)
        return PassageHash(by, body.words or usual.words, body.step or usual.step)
    return text_signer(body.method, bits=body.bits, features=features, seed=body.seed)


def _folder(service: Service, name: str) -> FilePath:
    folder = service.settings.snapshots or service.library.snapshots
    if folder is None:
        message = "the service has no folder for snapshots; start it with --snapshots DIR"
        raise Problem(409, "no_folder", message)
    return FilePath(folder, name)  # the name was validated


def _snapshot(service: Service, name: str) -> dict[str, Any]:
    service.library.collection(name)
    folder = _folder(service, name)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if len(_snapshots_in(folder)) >= _MOST_SNAPSHOTS:
        message = f"the collection has {_MOST_SNAPSHOTS} snapshots; delete some first"
        raise Problem(409, "too_many_snapshots", message)
    path = folder / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}.db"
    service.library.use(name, lambda docs: docs.snapshot(path))
    return _file_value(path)


def _delete(path: FilePath) -> None:
    """Delete a snapshot, but not a file of another program with such a name."""
    try:
        foreign = holds_other_content(path)
    except errors.FormatError:
        foreign = True
    except errors.CollectionError:  # a damaged snapshot can be deleted
        foreign = False
    if foreign:
        message = f"{brief(path.name)} is not a snapshot of a collection, and was not deleted"
        raise Problem(409, "not_a_snapshot", message)
    path.unlink(missing_ok=True)


def _snapshots_in(folder: FilePath) -> list[dict[str, Any]]:
    if not folder.is_dir():
        return []
    names = [one for one in folder.iterdir() if re.fullmatch(_SNAPSHOT_NAME.strip("^$"), one.name)]
    return [_file_value(path) for path in sorted(names, reverse=True)]


def _file_value(path: FilePath) -> dict[str, Any]:
    return {"name": path.name, "bytes": path.stat().st_size}


def _existing(folder: FilePath, snapshot: str) -> FilePath:
    path = folder / snapshot
    if not path.is_file() or path.is_symlink():
        message = f"there is no snapshot {brief(snapshot)} of this collection"
        raise Problem(404, "not_found", message)
    return path
