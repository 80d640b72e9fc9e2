"""Snapshots: a collection as it is at one moment, in a file that can be downloaded."""

from __future__ import annotations

import re
import secrets
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path as FilePath
from typing import Annotated, Any

from fastapi import Path
from fastapi.responses import FileResponse

from lookalike.collection import Collection
from lookalike.collection.opening import holds_other_content
from lookalike.errors import CollectionError, FormatError
from lookalike.service.endpoint import Ask, Routes
from lookalike.service.problems import Problem
from lookalike.service.service import Service
from lookalike.shown import brief

snapshots = Routes("snapshots")

_BASE = "/v1/collections/{name}/snapshots"
_SNAPSHOT = {"name": "20260101T000000Z-0a1b2c3d.db", "bytes": 40960}
_NAME = r"^[0-9]{8}T[0-9]{6}Z-[0-9a-f]{8}\.db$"
SnapshotName = Annotated[str, Path(pattern=_NAME, description="The name of a snapshot")]
_MOST = 100


@snapshots.add("POST", _BASE, writes=True, status=201, example=_SNAPSHOT, errors=(404, 409, 422),
               timed=False)  # fmt: skip
async def create_snapshot(ask: Ask, name: str) -> Any:
    """Write a snapshot while others read and write."""
    return await ask.service.slowly(_create, ask.service, name)


@snapshots.add("GET", _BASE, example={"snapshots": [_SNAPSHOT]}, errors=(404, 422))
async def list_snapshots(ask: Ask, name: str) -> Any:
    """List the snapshots of a collection, the latest first."""
    await ask.service.collection(name)
    return {"snapshots": await ask.service.read(_all, _folder(ask.service, name))}


@snapshots.add("GET", f"{_BASE}/{{snapshot}}", media="application/vnd.sqlite3", errors=(404, 422),
               timed=False)  # fmt: skip
async def download_snapshot(ask: Ask, name: str, snapshot: SnapshotName) -> Any:
    """Download a snapshot: an SQLite file that `la.open_collection` opens."""
    path = await ask.service.read(_known, _folder(ask.service, name), snapshot)
    return FileResponse(
        path, media_type="application/vnd.sqlite3", filename=f"{name}-{snapshot}",
        headers={"x-content-type-options": "nosniff"},
    )  # fmt: skip


@snapshots.add("DELETE", f"{_BASE}/{{snapshot}}", writes=True, errors=(404, 409, 422),
               example={"deleted": _SNAPSHOT["name"]})  # fmt: skip
async def delete_snapshot(ask: Ask, name: str, snapshot: SnapshotName) -> Any:
    """Delete a snapshot."""
    path = await ask.service.read(_known, _folder(ask.service, name), snapshot)
    await ask.service.read(_delete, path)
    return {"deleted": snapshot}


def _folder(service: Service, name: str) -> FilePath:
    given = FilePath(service.settings.snapshots) if service.settings.snapshots else None
    folder = given or service.library.snapshots
    if folder is None:
        raise Problem(
            409, "no_folder", "there is no folder for snapshots of this database; start the "
            "service with --snapshots DIR",
        )  # fmt: skip
    return folder / name  # which is a strict name


def _create(service: Service, name: str) -> dict[str, Any]:
    service.library.collection(name)
    folder = _folder(service, name)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if len(_all(folder)) >= _MOST:
        raise Problem(
            409, "too_many_snapshots", f"there are {_MOST} snapshots of it; delete some of them"
        )
    path = folder / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}.db"

    def write(docs: Collection) -> None:
        docs.snapshot(path)

    service.library.use(name, write)
    return _value(path)


def _delete(path: FilePath) -> None:
    """Delete a snapshot; a file of another program that has such a name stays."""
    foreign = False
    with suppress(CollectionError):  # a damaged snapshot can be deleted
        try:
            foreign = holds_other_content(path)
        except FormatError:
            foreign = True
    if foreign:
        raise Problem(
            409, "not_a_snapshot", f"{brief(path.name)} is not a snapshot of a collection; it was "
            "put into the folder by another program, and stays",
        )  # fmt: skip
    path.unlink(missing_ok=True)


def _all(folder: FilePath) -> list[dict[str, Any]]:
    if not folder.is_dir():
        return []
    names = [one for one in folder.iterdir() if re.fullmatch(_NAME.strip("^$"), one.name)]
    return [_value(path) for path in sorted(names, reverse=True)]


def _value(path: FilePath) -> dict[str, Any]:
    return {"name": path.name, "bytes": path.stat().st_size}


def _known(folder: FilePath, snapshot: str) -> FilePath:
    path = folder / snapshot
    if not path.is_file() or path.is_symlink():
        raise Problem(
            404, "not_found", f"there is no snapshot {brief(snapshot)} of this collection",
            kind="NotFoundError",
        )  # fmt: skip
    return path
