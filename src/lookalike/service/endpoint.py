"""What every route has in common: who may use it, its body, its time, its format, its errors."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import Response
from pydantic import BaseModel
from starlette.convertors import Convertor, register_url_convertor

from lookalike.service.answers import LargeResponse, check_answer
from lookalike.service.formats import JSON, MESSAGEPACK, decode, encode, media_type, wanted_format
from lookalike.service.guard.gate import Visit
from lookalike.service.guard.keys import Key
from lookalike.service.guard.memory import HELD, Held
from lookalike.service.guard.watch import Limit
from lookalike.service.library import NAME, check_name
from lookalike.service.problems import ClientGone, Problem, problem_for_strangers
from lookalike.service.service import Service
from lookalike.shown import brief

__all__ = ["Ask", "ClientGone", "Routes", "refusal"]

_LARGE = 8 << 10
"""Bytes from which a body is decoded in a thread: fewer take less than a millisecond, whatever is
in them."""
_LARGE_ANSWER = 32 << 10
"""Bytes from which on answers are counted, and sent as they are taken."""
_READ = 4
"""Bytes of memory taken for each byte of a body before it is known what is in it."""

Handler = Callable[..., Awaitable[Any]]


class _Anything(Convertor[str]):
    """The rest of a path, line ends and all: `path` stops at them, and leads to another id."""

    regex = "(?s:.*)"

    def convert(self, value: str) -> str:
        """Return what is in a path."""
        return value

    def to_string(self, value: str) -> str:
        """Return what comes into a path."""
        return value


register_url_convertor("anything", _Anything())

_NAMED = {
    "name": "name",
    "in": "path",
    "required": True,
    "description": "The name of a collection",
    "schema": {"type": "string", "pattern": NAME},
}


@dataclass(slots=True)
class Ask:
    """A request that may be answered."""

    request: Request
    service: Service
    visit: Visit
    format: str
    held: Held
    body: Any = None

    @property
    def key(self) -> Key:
        """Whom it is from."""
        return self.visit.key

    async def hung_up(self) -> None:
        """Return when whoever asked has gone; for requests without a body."""
        while (await self.request.receive())["type"] != "http.disconnect":
            pass


@dataclass(frozen=True)
class _Kind:
    path: str
    body: type[BaseModel] | None
    optional_body: bool
    writes: bool
    timed: bool
    status: int


class Routes:
    """The routes of one subject."""

    def __init__(self, tag: str) -> None:
        self._tag = tag
        self._routes: list[dict[str, Any]] = []
        self.bodies: dict[tuple[str, str], type[BaseModel]] = {}

    def install(self, app: FastAPI) -> None:
        """Add the routes to an application; directly, which is quicker than a router in it."""
        for route in self._routes:
            app.add_api_route(**route)

    def add(
        self,
        method: str,
        path: str,
        *,
        body: type[BaseModel] | None = None,
        optional_body: bool = False,
        writes: bool = False,
        timed: bool = True,
        status: int = 200,
        example: Any = None,
        errors: tuple[int, ...] = (),
        media: str | None = None,
    ) -> Callable[[Handler], Handler]:
        """Declare a route; its handler gets an `Ask` and what is in the path and the query.

        It returns plain values, bytes that are encoded already, or a whole response. `timed` says
        that it has to answer within the time limit.
        """
        kind = _Kind(path, body, optional_body, writes, timed, status)

        def declare(handler: Handler) -> Handler:
            async def run(*, request: Request, **given: Any) -> Response:
                return await _run(kind, handler, request, given)

            signature = inspect.signature(handler, eval_str=True)
            named = "name" in signature.parameters
            of_request = inspect.Parameter(
                "request", inspect.Parameter.KEYWORD_ONLY, annotation=Request
            )
            others = [
                one.replace(kind=inspect.Parameter.KEYWORD_ONLY)
                for one in list(signature.parameters.values())[1:]
                if one.name != "name"  # of a collection: `_run` has it from the path, and checks it
            ]
            run.__signature__ = inspect.Signature([of_request, *others])  # type: ignore[attr-defined]
            run.__name__, run.__doc__ = handler.__name__, handler.__doc__
            answer: dict[str, Any] = {} if example is None else {"example": example}
            kinds = (JSON, MESSAGEPACK) if media is None else (media,)
            told: dict[int | str, dict[str, Any]] = {
                status: {"description": "done", "content": dict.fromkeys(kinds, answer)}
            }
            general = (400, 401, 403, 408, 414, 421, 429, 431, *((413, 415, 422) if body else ()))
            for number in sorted({*general, *errors}):
                told[number] = {"$ref": f"#/components/responses/{number}"}
            self._routes.append(
                {
                    "path": path, "endpoint": run, "methods": [method], "response_model": None,
                    "responses": told, "status_code": status, "tags": [self._tag],
                    "summary": (handler.__doc__ or "").partition("\n")[0],
                    "description": inspect.getdoc(handler), "operation_id": handler.__name__,
                    "openapi_extra": {"parameters": [_NAMED]} if named else None,
                }
            )  # fmt: skip
            if body is not None:
                self.bodies[path, method.lower()] = body
            return handler

        return declare


async def _run(kind: _Kind, handler: Handler, request: Request, given: dict[str, Any]) -> Response:
    visit: Visit = request.scope["lookalike"]
    service: Service = request.app.state.service
    visit.route = kind.path
    format = wanted_format(visit.header(b"accept"))
    held = service.memory.hold(visit.key.name)
    HELD.set(held)
    try:
        name = request.path_params.get("name")
        if name is not None:
            given["name"] = check_name(name)
        _authorise(visit.key, name, kind.writes)
        ask = Ask(request, service, visit, format, held)
        if kind.body is not None:
            ask.body = await _read(request, visit, kind, service, held)
        if not kind.timed:
            return await _reply(await handler(ask, **given), kind, ask)
        seconds = service.settings.time_limit
        with Limit(service.watch, seconds, partial(_too_long, seconds), request.receive):
            return await _reply(await handler(ask, **given), kind, ask)
    except ClientGone:
        raise
    except Exception as error:
        problem = problem_for_strangers(error, service.library.shown)
        if problem.logged:
            service.log.failed("request failed", error, id=visit.id, route=kind.path)
        error.__traceback__ = problem.__traceback__ = None  # which refer to all that was decoded
        return refusal(problem, service)
    finally:
        held.release()


def _too_long(limit: float) -> Problem:
    return Problem(
        408, "time_limit", f"the answer takes more than {limit:g} s; ask for less at once, or as a "
        "job",
    )  # fmt: skip


def _authorise(key: Key, name: str | None, writes: bool) -> None:
    if writes and not key.writes:
        raise Problem(
            403, "read_only", f"the key {key.name!r} is for reading; use one that may write"
        )
    if name is not None and not key.reaches(name):
        raise Problem(
            403, "collection_scope",
            f"the key {key.name!r} is not for the collection {brief(name)}; use another one",
        )  # fmt: skip


async def _received(request: Request, visit: Visit, service: Service, held: Held) -> bytearray:
    """Return the body, or raise: it is too large, too slow or cut off."""
    settings = service.settings
    held.need(_READ * check_length(visit, settings.max_body, "--max-body"))
    receive, body, more = request.receive, bytearray(), True
    with Limit(service.watch, settings.slow_limit, partial(slow_request, settings.slow_limit)):
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            body += message.get("body", b"")
            if len(body) > settings.max_body:
                raise too_large(f"more than {settings.max_body}", "--max-body")
            held.need(_READ * len(body))
            more = message.get("more_body", False)
    return body


def check_length(visit: Visit, most: int, option: str) -> int:
    """Return the length that the headers announce, 0 if they do not; refuse one too large."""
    given = visit.header(b"content-length")
    if given is None:
        return 0
    if not given.isascii() or not given.isdigit() or len(given) > 18:
        raise Problem(
            400, "content_length", f"the Content-Length is {brief(given)}; expected bytes"
        )
    if int(given) > most:
        raise too_large(given, option, most)
    return int(given)


def too_large(size: object, option: str, most: int | None = None) -> Problem:
    """Return the answer to a body that is too large."""
    at_most = "" if most is None else f"; expected at most {most}"
    return Problem(
        413, "body_too_large", f"the body has {size} bytes{at_most}: send less at once, or start "
        f"the service with a larger {option}",
    )  # fmt: skip


def slow_request(limit: float) -> Problem:
    """Return the answer to a body that does not come."""
    return Problem(
        408, "slow_request", f"the body did not arrive within {limit:g} s; send it at once"
    )


async def _read(
    request: Request, visit: Visit, kind: _Kind, service: Service, held: Held
) -> BaseModel:
    """Return the body of a request, decoded and checked."""
    shape = kind.body or BaseModel
    raw = await _received(request, visit, service, held)
    if not raw and kind.optional_body:
        return shape()
    format = media_type(visit.header(b"content-type"))
    most = service.settings.max_batch
    if len(raw) > _LARGE:
        return await service.decode(decode, raw, format, shape, most, held.need)
    return decode(raw, format, shape, most, held.need)


async def _reply(value: Any, kind: _Kind, ask: Ask) -> Response:
    if isinstance(value, Response):
        return value
    if not isinstance(value, bytes):
        if _large(value):
            value = await ask.service.read(encode, value, ask.format)
        else:
            value = encode(value, ask.format)
    if not kind.writes:  # a write has been done: refusing its answer would deny that
        check_answer(len(value), ask.service.settings.max_answer)
    if len(value) > _LARGE_ANSWER:
        return LargeResponse(value, kind.status, ask.format, ask.service, refuse=not kind.writes)
    return Response(value, kind.status, media_type=ask.format)


def _large(value: Any) -> bool:
    """Guess whether writing it takes long enough for a thread."""
    if isinstance(value, dict):
        return any(isinstance(one, list) and len(one) > 20 for one in value.values())
    return isinstance(value, list) and len(value) > 20


def refusal(problem: Problem, service: Service) -> Response:
    """Return the answer that a problem is."""
    service.metrics.refused.labels(problem.code).inc()
    return Response(encode(problem.value(), JSON), problem.status, problem.headers, JSON)
