"""Whether the service lives, is ready, and what it has counted."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from fastapi.responses import Response

from lookalike import __version__
from lookalike.errors import LookalikeError
from lookalike.service.endpoint import Ask, Routes
from lookalike.service.metrics import CONTENT_TYPE
from lookalike.service.problems import Problem, service_ending
from lookalike.service.service import Service

health = Routes("health")

_LEAST_FREE = 1 << 20
"""Bytes without which a disk counts as full."""


@health.add("GET", "/healthz", example={"status": "ok", "version": __version__})
async def alive(ask: Ask) -> Any:
    """Say that the service lives."""
    return {"status": "ok", "version": __version__}


@health.add(
    "GET", "/readyz", example={"status": "ready", "collections": 1, "writable": True},
    errors=(503,),
)  # fmt: skip
async def ready(ask: Ask) -> Any:
    """Say whether the collections can be read, and whether the disk has room for writes.

    A service whose disk is full goes on answering searches: it is ready, and `writable` is false.
    """
    if ask.service.ending:
        raise service_ending()
    return await ask.service.probe(_readiness, ask.service)


def _readiness(service: Service) -> dict[str, Any]:
    places = [service.run]
    if os.path.exists(service.library.source):  # noqa: PTH110  # takes every name; no URL
        places.append(Path(service.library.source))
    writable = all(shutil.disk_usage(place).free >= _LEAST_FREE for place in places)
    names = service.library.names()
    return {"status": "ready", "collections": len(names), "writable": writable}


@health.add("GET", "/metrics", media="text/plain")
async def metrics(ask: Ask) -> Any:
    """Return what was counted, as Prometheus reads it; for keys that are for all collections."""
    service = ask.service
    if "*" not in ask.key.collections:
        raise Problem(
            403, "collection_scope", f"the key {ask.key.name!r} is not for all collections, of "
            "which metrics tell; use another one",
        )  # fmt: skip
    known = await service.read(_known, service)
    return Response(service.metrics.told(known), media_type=CONTENT_TYPE)


def _known(service: Service) -> list[tuple[str, dict[str, float]]]:
    found = []
    for name, docs in service.library.opened().items():
        try:
            stats = docs.stats()
        except LookalikeError as error:  # the others are counted all the same
            service.log.failed("collection cannot be read", error, collection=name)
            continue
        behind = stats["version"] - stats["native_version"] if stats["native_bytes"] else 0
        found.append(
            (
                name,
                {
                    "documents": stats["documents"],
                    "version": stats["version"],
                    "index_lag": max(0, behind),
                    "index_bytes": stats["native_bytes"],
                },
            )
        )
    return found
