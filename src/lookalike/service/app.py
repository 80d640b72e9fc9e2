"""The service as an ASGI application: routes, health, page, description, middleware."""

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
from lookalike.service.limits import return_freed_memory
from lookalike.service.middleware import Middleware
from lookalike.service.problems import Problem, service_ending
from lookalike.service.protocol import allow_files
from lookalike.service.routes.background import jobs, overviews
from lookalike.service.routes.collections import collections, snapshots
from lookalike.service.routes.documents import compare, documents
from lookalike.service.routes.queries import queries
from lookalike.service.routing import Context, new_router, told
from lookalike.service.service import Service
from lookalike.service.telemetry import CONTENT_TYPE

_MEANINGS = {
    400: "The request cannot be read",
    401: "There is no key, or one that is not known",
    403: "The key may not do this, or another site's page asks",
    404: "There is no such thing",
    405: "This cannot be done here",
    406: "The answer cannot be written in the format that is wanted",
    408: "The request came, or its answer would come, too slowly",
    409: "This is in the way of what was asked",
    413: "The body is too large",
    414: "The URL is too long",
    415: "The body is of another type than expected",
    421: "The service was called by a name that is not its own",
    422: "Something in the request is not as expected",
    429: "There is too much to do; come again later",
    431: "The headers are too large",
    503: "The database is locked by another process, or the service is ending",
    507: "The disk is full",
}
_DESCRIPTION = """\
Near-duplicates and nearest neighbours in live collections. Bodies and answers are JSON, or
MessagePack where `Content-Type` and `Accept` say `application/msgpack`. Errors have one shape, and
their messages say what came, what was expected and what to do.
"""
_LEAST_FREE = 1 << 20
"""A disk with fewer free bytes counts as full."""

health = new_router("health")


@health.get("/healthz", responses=told({"status": "ok", "version": __version__}))
async def alive(context: Context) -> Response:
    """Say that the service lives."""
    return await context.reply({"status": "ok", "version": __version__})


@health.get("/readyz", responses=told({"status": "ready", "collections": 1, "writable": True}, 503))
async def ready(context: Context) -> Response:
    """Say whether the collections can be read, and whether the disk has room for writes.

    A service whose disk is full goes on answering searches: it is ready, and `writable` is false.
    `busy` lists the collections whose files are locked by another process, if there are any.
    """
    if context.service.ending:
        raise service_ending()
    return await context.reply(await context.service.probe(_readiness, context.service))


def _readiness(service: Service) -> dict[str, Any]:
    places = [service.run]
    if os.path.exists(service.library.source):  # noqa: PTH110  # takes every name; no URL
        places.append(Path(service.library.source))
    writable = all(shutil.disk_usage(place).free >= _LEAST_FREE for place in places)
    found = service.library.survey()
    busy = [name for name, error in found.items() if isinstance(error, CollectionBusyError)]
    ready = {"status": "ready", "collections": len(found), "writable": writable}
    return {**ready, "busy": busy} if busy else ready


@health.get("/metrics", response_class=PlainTextResponse, responses=told(None, media="text/plain"))
async def metrics(context: Context) -> Response:
    """Return what was counted, as Prometheus reads it; for keys that are for all collections."""
    service = context.service
    if "*" not in context.key.collections:
        key = f"the key {context.key.name!r} is not for all collections"
        raise Problem(403, "collection_scope", f"{key}, of which metrics tell; use another one")
    known = await service.read(_gauges, service)
    return Response(service.metrics.told(known), media_type=CONTENT_TYPE)


def _gauges(service: Service) -> list[tuple[str, dict[str, float]]]:
    found = []
    for name, docs in service.library.opened().items():
        try:
            stats = docs.stats()
        except LookalikeError as error:  # the others are counted all the same
            service.log.failed("collection cannot be read", error, collection=name)
            continue
        behind = stats["version"] - stats["native_version"] if stats["native_bytes"] else 0
        values = {"documents": stats["documents"], "version": stats["version"]}
        values |= {"index_lag": max(0, behind), "index_bytes": stats["native_bytes"]}
        found.append((name, values))
    return found


_SUBJECTS = (queries, health, documents, collections, compare, overviews, jobs, snapshots)


def make_app(service: Service, at_end: Callable[[], None] | None = None) -> Middleware:
    """Return the application of a service, within its middleware."""

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
    for subject in _SUBJECTS:
        app.router.routes.extend(subject.routes)  # quicker than routers in the application
    described = encode(_description(app), JSON)

    async def openapi(request: Request) -> Response:
        request.scope["lookalike"].route = "/v1/openapi.json"
        return Response(described, media_type=JSON)

    app.add_route("/v1/openapi.json", openapi, ["GET"])
    _add_page(app)
    allow_files(service.settings.max_connections)
    return_freed_memory()
    return Middleware(app, service.settings, service.metrics, service.log)


def _description(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI description, with the errors that all routes share."""
    schema = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes
    )
    parts = schema["components"]
    parts["schemas"]["Error"] = _ERROR
    error = {JSON: {"schema": {"$ref": "#/components/schemas/Error"}}}
    parts["responses"] = {
        str(status): {"description": meaning, "content": error}
        for status, meaning in _MEANINGS.items()
    }
    parts["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    schema["security"] = [{"key": []}, {}]
    return schema


_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "kind", "message"],
            "properties": {
                "code": {"type": "string", "description": "what it is about, for programs"},
                "kind": {"type": "string", "description": "the error of lookalike.errors"},
                "message": {"type": "string", "description": "what came, was expected, is to do"},
                "items": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "position": {"type": "integer"},
                            "id": {"type": ["string", "null"]},
                            "message": {"type": "string"},
                        },
                    },
                },
            },
        }
    },
}


PAGE = Path(__file__).parent / "page"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


def _add_page(app: FastAPI) -> None:
    """Serve the page: `/` is index.html, `/page/NAME` every file of the folder `page`.

    The files are read now and served by name, so nothing outside the folder can be reached.
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
            raise Problem(404, "no_route", "there is no such file; the page is at /")
        content, kind, tag = files[name]
        headers = {"etag": tag, "cache-control": "no-cache"}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(content, headers=headers, media_type=kind)

    app.add_route("/", file, ["GET"], include_in_schema=False)
    app.add_route("/page/{name:path}", file, ["GET"], include_in_schema=False)
