"""The service as an ASGI application: routes, page, description, gate."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import Response
from pydantic.json_schema import models_json_schema
from starlette.exceptions import HTTPException

from lookalike import __version__
from lookalike.service.assets import add_page
from lookalike.service.endpoint import refusal
from lookalike.service.formats import JSON, MESSAGEPACK, encode
from lookalike.service.guard.connections import allow_files
from lookalike.service.guard.gate import Gate
from lookalike.service.guard.hosts import Hosts
from lookalike.service.guard.keys import KeyFile
from lookalike.service.guard.memory import return_freed_memory
from lookalike.service.problems import Problem, problem_of
from lookalike.service.routes.collections import collections
from lookalike.service.routes.compare import compare
from lookalike.service.routes.documents import documents
from lookalike.service.routes.health import health
from lookalike.service.routes.jobs import jobs
from lookalike.service.routes.overview import overview
from lookalike.service.routes.queries import queries
from lookalike.service.routes.snapshots import snapshots
from lookalike.service.service import Service
from lookalike.shown import brief

__all__ = ["make_app"]

_SUBJECTS = (health, queries, documents, collections, compare, overview, jobs, snapshots)
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


def make_app(service: Service, at_end: Callable[[], None] | None = None) -> Gate:
    """Return the application of a service, behind its gate."""

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
        subject.install(app)
    described = _description(app)

    async def openapi(request: Request) -> Response:
        request.scope["lookalike"].route = "/v1/openapi.json"
        return Response(described, media_type=JSON)

    app.add_route("/v1/openapi.json", openapi, ["GET"])
    add_page(app)
    app.add_exception_handler(RequestValidationError, _bad_parameter)
    app.add_exception_handler(HTTPException, _no_route)
    app.add_exception_handler(Problem, _refused)
    settings = service.settings
    keys = None if settings.key_file is None else KeyFile(settings.key_file)
    hosts = Hosts(settings.host, settings.allow_host)
    allow_files(settings.max_connections)
    return_freed_memory()
    return Gate(app, hosts, keys, settings, service.metrics, service.log)


def _description(app: FastAPI) -> bytes:
    """Return the OpenAPI description, with the bodies of requests in it."""
    schema = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes
    )
    bodies = {key: body for subject in _SUBJECTS for key, body in subject.bodies.items()}
    _, shapes = models_json_schema(
        [(body, "validation") for body in bodies.values()],
        ref_template="#/components/schemas/{model}",
    )
    parts = schema.setdefault("components", {})
    parts["schemas"] = {**shapes["$defs"], "Error": _ERROR}
    parts["responses"] = {
        str(status): {
            "description": meaning,
            "content": {JSON: {"schema": {"$ref": "#/components/schemas/Error"}}},
        }
        for status, meaning in _MEANINGS.items()
    }
    parts["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    schema["security"] = [{"key": []}, {}]
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            if operation.get("parameters"):
                operation["responses"]["422"] = {"$ref": "#/components/responses/422"}
            body = bodies.get((path, method))
            if body is not None:
                of = {"schema": {"$ref": f"#/components/schemas/{body.__name__}"}}
                operation["requestBody"] = {
                    "required": True, "content": {JSON: of, MESSAGEPACK: of},
                }  # fmt: skip
            elif path.endswith("/upload"):
                of = {"schema": {"type": "string", "format": "binary"}}
                operation["requestBody"] = {
                    "required": True, "content": {"application/octet-stream": of},
                }  # fmt: skip
    return encode(schema, JSON)


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


async def _bad_parameter(request: Request, error: Exception) -> Response:
    found = error.errors() if isinstance(error, RequestValidationError) else []
    first = found[0] if found else {"loc": ("?",), "msg": "?"}
    place = ".".join(map(str, first["loc"]))
    return await _refused(
        request,
        Problem(
            422, "bad_parameter", f"{place} is {brief(first.get('input'))}: {first['msg']}; "
            "GET /v1/openapi.json says what is expected",
        ),
    )  # fmt: skip


async def _no_route(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 404
    path = brief(request.url.path)
    problem = Problem(
        404, "no_route", f"there is nothing at {path}; GET /v1/openapi.json lists the routes"
    )
    if status == 405:
        problem = Problem(405, "method", f"{path} has no {brief(request.method)}")
    answer = await _refused(request, problem)
    allowed = (error.headers or {}).get("Allow") if isinstance(error, HTTPException) else None
    if allowed is not None:
        answer.headers["allow"] = allowed
    return answer


async def _refused(request: Request, problem: Exception) -> Response:
    return refusal(problem_of(problem), request.app.state.service)
