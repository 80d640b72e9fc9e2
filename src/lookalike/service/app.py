"""The ASGI application of the service: routes, health checks, web page, OpenAPI description."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.openapi.utils import get_openapi
from fastapi.responses import PlainTextResponse, Response

from lookalike import __version__
from lookalike.errors import CollectionBusyError, LookalikeError
from lookalike.service.formats import JSON, encode
from lookalike.service.library import IndexLibrary
from lookalike.service.limits import return_freed_memory
from lookalike.service.middleware import Middleware
from lookalike.service.problems import Problem, service_ending
from lookalike.service.protocol import allow_files
from lookalike.service.routes.background import jobs, overviews
from lookalike.service.routes.collections import collections, snapshots
from lookalike.service.routes.documents import compare, documents
from lookalike.service.routes.files import files
from lookalike.service.routes.indexes import indexes
from lookalike.service.routes.queries import queries
from lookalike.service.routing import Context, answers, new_router
from lookalike.service.service import Service
from lookalike.service.telemetry import CONTENT_TYPE

_MEANINGS = {
    400: "Malformed request",
    401: "Missing or invalid API key",
    403: "The API key does not allow this, or the request comes from a page of another site",
    404: "Not found",
    405: "Method not allowed",
    406: "The answer cannot be encoded in the requested format",
    408: "The request arrived too slowly, or the answer takes too long",
    409: "Conflict with the current state",
    413: "Request body too large",
    414: "URL too long",
    415: "Unsupported media type",
    421: "The Host header is not a name of this service",
    422: "Invalid body or parameter",
    429: "Too many requests; retry later",
    431: "Request headers too large",
    503: "The database is locked or unavailable, or the service is shutting down",
    507: "The disk is full",
}
_DESCRIPTION = """\
Find near-duplicates and nearest neighbors in live collections, or in a saved index. Bodies and
answers are JSON, or MessagePack if `Content-Type` and `Accept` are `application/msgpack`. All
errors have the same form; their messages say what was wrong, what is allowed and how to fix it.
"""
_LEAST_FREE = 1 << 20
"""A disk with less free space counts as full."""

health = new_router("health")


@health.get("/healthz", responses=answers({"status": "ok", "version": __version__}))
async def alive(context: Context) -> Response:
    """Check that the service is running."""
    return await context.reply({"status": "ok", "version": __version__})


@health.get(
    "/readyz", responses=answers({"status": "ready", "collections": 1, "writable": True}, 503)
)
async def ready(context: Context) -> Response:
    """Check that the collections can be read, and that the disk has space for writes.

    A service whose disk is full still answers searches: it is ready, and `writable` is false.
    `busy` lists the collections that are locked by another process, if any.
    """
    if context.service.ending:
        raise service_ending()
    return await context.reply(await context.service.probe(_readiness, context.service))


def _readiness(service: Service) -> dict[str, Any]:
    places = [service.run]
    if os.path.exists(service.library.source):  # noqa: PTH110  # takes every name; no URL
        places.append(Path(service.library.source))
    if isinstance(service.library, IndexLibrary):
        return {"status": "ready", "index": service.library.name}
    writable = all(shutil.disk_usage(place).free >= _LEAST_FREE for place in places)
    found = service.library.survey()
    busy = [name for name, error in found.items() if isinstance(error, CollectionBusyError)]
    ready = {"status": "ready", "collections": len(found), "writable": writable}
    return {**ready, "busy": busy} if busy else ready


@health.get(
    "/metrics", response_class=PlainTextResponse, responses=answers(None, media="text/plain")
)
async def metrics(context: Context) -> Response:
    """Return metrics for Prometheus. The API key must be valid for all collections."""
    service = context.service
    if "*" not in context.key.collections:
        message = f"metrics need a key for all collections; {context.key.name!r} is for some"
        raise Problem(403, "collection_scope", message)
    known = await service.read(_gauges, service)
    return Response(service.metrics.text(known), media_type=CONTENT_TYPE)


def _gauges(service: Service) -> list[tuple[str, dict[str, float]]]:
    found = []
    for name, docs in service.library.opened().items():
        try:
            stats = docs.stats()
        except LookalikeError as error:  # still report the other collections
            service.log.failed("collection cannot be read", error, collection=name)
            continue
        behind = stats["version"] - stats["native_version"] if stats["native_bytes"] else 0
        values = {"documents": stats["documents"], "version": stats["version"]}
        values |= {"index_lag": max(0, behind), "index_bytes": stats["native_bytes"]}
        found.append((name, values))
    return found


_SUBJECTS = (queries, health, documents, files, collections, compare, overviews, jobs, snapshots)


def make_app(service: Service, at_end: Callable[[], None] | None = None) -> Middleware:
    """Return the application of a service, wrapped in its middleware."""

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        yield
        service.ending = True
        if at_end is not None:
            await asyncio.to_thread(at_end)

    app = FastAPI(
        title="lookalike", version=__version__, description=_DESCRIPTION, lifespan=life,
        docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False,
    )  # fmt: skip
    app.state.service = service
    serves_index = isinstance(service.library, IndexLibrary)
    for subject in (indexes, health) if serves_index else _SUBJECTS:
        app.router.routes.extend(subject.routes)  # faster than include_router
    described = encode(_description(app), JSON)

    async def openapi(request: Request) -> Response:
        request.scope["lookalike"].route = "/v1/openapi.json"
        return Response(described, media_type=JSON)

    app.add_route("/v1/openapi.json", openapi, ["GET"])
    if not serves_index:
        _add_page(app)
    allow_files(service.settings.max_connections)
    return_freed_memory()
    return Middleware(app, service.settings, service.metrics, service.log)


def _description(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI description, with the errors of all routes."""
    schema = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes
    )
    parts = schema["components"]
    parts["schemas"]["Error"] = _object(["error"], error=_DETAILS)
    error = {JSON: {"schema": {"$ref": "#/components/schemas/Error"}}}
    parts["responses"] = {
        str(status): {"description": meaning, "content": error}
        for status, meaning in _MEANINGS.items()
    }
    parts["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    schema["security"] = [{"key": []}, {}]
    return schema


def _object(required: list[str], **properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "required": required, "properties": properties}


_ITEM = _object(
    ["position", "id", "message"],
    position={"type": "integer", "description": "Position in the batch, from 0"},
    id={"type": ["string", "null"]},
    message={"type": "string"},
)
_DETAILS = _object(
    ["code", "kind", "message"],
    code={"type": "string", "description": "Error code for programs"},
    kind={"type": "string", "description": "Name of the error in lookalike.errors"},
    message={"type": "string", "description": "What was wrong, what is allowed, how to fix it"},
    items={"type": "array", "items": _ITEM, "description": "Invalid items of a batch"},
)


PAGE = Path(__file__).parent / "page"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


def _add_page(app: FastAPI) -> None:
    """Serve the web page: `/` is index.html, `/page/NAME` a file of the folder `page`.

    The files are read now and looked up by name, so nothing outside the folder can be reached.
    """
    files = {}
    for path in sorted(PAGE.rglob("*")):
        kind = _TYPES.get(path.suffix)
        if path.is_file() and kind is not None:
            content = path.read_bytes()
            tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
            files[path.relative_to(PAGE).as_posix()] = content, kind, tag

    async def file(request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        request.scope["lookalike"].route = "/page"
        if name not in files:
            raise Problem(404, "no_route", "file not found; the page is at /")
        content, kind, tag = files[name]
        headers = {"etag": tag, "cache-control": "no-cache"}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(content, headers=headers, media_type=kind)

    app.add_route("/", file, ["GET"], include_in_schema=False)
    app.add_route("/page/{name:path}", file, ["GET"], include_in_schema=False)
