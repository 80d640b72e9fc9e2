"""Authorization, bodies, time limits, formats and errors of all routes.

Handlers are FastAPI handlers: parameters, bodies and OpenAPI come from their signatures. `Route`
reads and validates the body before FastAPI sees it, within the limits of the service.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Path, Request
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.asyncexitstack import AsyncExitStackMiddleware
from fastapi.responses import Response
from fastapi.routing import APIRoute
from starlette.convertors import Convertor, register_url_convertor
from starlette.types import Receive, Scope, Send

from lookalike.service.formats import (
    JSON,
    MESSAGEPACK,
    check_answer,
    decode,
    encode,
    media_type,
    wanted_format,
)
from lookalike.service.library import NAME, check_name
from lookalike.service.limits import HELD, Held, Limit, disconnected
from lookalike.service.middleware import RequestInfo, response_to
from lookalike.service.problems import (
    Disconnected,
    Problem,
    problem_for_clients,
    slow_request,
    too_large,
)
from lookalike.service.service import Service
from lookalike.service.shapes import Body
from lookalike.shown import brief

_LARGE = 8 << 10
"""A body with more bytes is decoded in a thread; others take less than a millisecond."""
_LARGE_ANSWER = 32 << 10
"""An answer with more bytes is sent in parts, and its memory is reserved."""
_PART = 32 << 10
_READ = 4
"""Bytes of memory reserved per byte of a body before it is decoded."""
_ERRORS = (400, 401, 403, 408, 414, 421, 429, 431)
_ERRORS_OF_BODIES = (413, 415, 422)

CollectionName = Annotated[str, Path(pattern=NAME, description="Collection name")]
Handler = TypeVar("Handler", bound=Callable[..., Any])


class _Anything(Convertor[str]):
    """The rest of a path, including line breaks, where the convertor `path` stops."""

    regex = "(?s:.*)"

    def convert(self, value: str) -> str:
        """Return the same text."""
        return value

    to_string = convert


register_url_convertor("anything", _Anything())


class Context(Request):
    """A request with its key, format and service."""

    def __init__(self, request: Request, status: int, writes: bool) -> None:
        super().__init__(request.scope, request.receive)
        self.info: RequestInfo = request.scope["lookalike"]
        self.key = self.info.key
        self.service: Service = request.app.state.service
        self.format = wanted_format(self.info.headers.get("accept"))
        self.held = Held(self.service.memory, self.key.name)
        self._status = status
        self._writes = writes
        self._decoded: Body | None = None

    def authorize(self, name: str | None = None, *, writes: bool = False) -> None:
        """Refuse a key that may not write, or may not use a collection."""
        key = self.key
        if writes and not key.writes:
            message = f"the key {key.name!r} is read-only; use a read-write key"
            raise Problem(403, "read_only", message)
        if name is not None and not key.reaches(name):
            message = f"the key {key.name!r} is not for the collection {brief(name)}"
            raise Problem(403, "collection_scope", f"{message}; use another key")

    async def body(self) -> Any:  # FastAPI passes this to the handler
        """Return the decoded and validated body, or None."""
        return self._decoded

    json = body

    async def disconnected(self) -> None:
        """Return when the client has disconnected; for requests without a body."""
        await disconnected(self.receive)

    async def reply(self, value: Any, *, bounded: bool = False) -> Response:
        """Return the response for plain values or encoded bytes (`bounded`: of a checked size)."""
        if not isinstance(value, bytes):
            if _large(value):
                value = await self.service.read(encode, value, self.format)
            else:
                value = encode(value, self.format)
        if not self._writes and not bounded:  # a refused answer would look like a failed write
            check_answer(len(value), self.service.settings.max_answer)
        if len(value) > _LARGE_ANSWER:
            return LargeResponse(value, self._status, self, refuse=not self._writes)
        return Response(value, self._status, media_type=self.format)

    async def read(self, shape: type[Body], optional: bool) -> None:
        """Read, decode and validate the body."""
        raw = await self._received()
        if not raw and optional:
            return
        format = media_type(self.info.headers.get("content-type"))
        arguments = raw, format, shape, self.service.settings.max_batch, self.held.need
        if len(raw) > _LARGE:
            self._decoded = await self.service.decode(decode, *arguments)
        else:
            self._decoded = decode(*arguments)

    async def _received(self) -> bytearray:
        """Return the bytes of the body; raise if it is too large, too slow or truncated."""
        settings = self.service.settings
        announced = self.check_length(settings.max_body, "--max-body")
        self.held.need(_READ * announced)
        body, more = bytearray(), True
        with Limit(self.service.watch, settings.slow_limit, slow_request):
            while more:
                part, more = await self.next_part()
                body += part
                if len(body) > settings.max_body:
                    raise too_large(f"more than {settings.max_body}", "--max-body")
                if len(body) > announced:
                    self.held.need(_READ * len(body))
        return body

    async def next_part(self) -> tuple[bytes, bool]:
        """Return the next part of the body, and whether there is more."""
        message = await self.receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        return message.get("body", b""), message.get("more_body", False)

    def check_length(self, most: int, option: str) -> int:
        """Return the Content-Length, or 0; refuse one that is too large."""
        given = self.info.headers.get("content-length")
        if given is None:
            return 0
        if not given.isascii() or not given.isdigit() or len(given) > 18:
            message = f"the Content-Length is {brief(given)}; expected a number of bytes"
            raise Problem(400, "content_length", message)
        if int(given) > most:
            raise too_large(given, option, most)
        return int(given)


class Route(APIRoute):
    """A route whose body is read within limits, and whose errors are all `Problem`s."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        self._shape, self._optional = _body_of(endpoint)
        self._direct = _called_directly(endpoint)
        errors: tuple[int, ...] = _ERRORS
        if self._shape is not None:
            errors += _ERRORS_OF_BODIES
            schema = {"schema": {"$ref": f"#/components/schemas/{self._shape.__name__}"}}
            options["openapi_extra"] = {"requestBody": {"content": {MESSAGEPACK: schema}}}
        elif len(inspect.signature(endpoint).parameters) > 1:
            errors += (422,)
        options["responses"] = {**_refused_by(*errors), **options["responses"]}
        options["summary"] = (endpoint.__doc__ or "").partition("\n")[0]
        super().__init__(path, endpoint, **options)
        if self._direct is None:  # FastAPI expects this layer of its application
            self.app = AsyncExitStackMiddleware(self.app)
            return
        handle = self.get_route_handler()

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            response = await handle(Request(scope, receive))
            await response(scope, receive, send)

        self.app = app

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the function that answers a request."""
        answer = self._direct or super().get_route_handler()
        path, shape, optional = self.path, self._shape, self._optional
        status = self.status_code or 200
        writes = getattr(self.endpoint, "writes", False)
        timed = not getattr(self.endpoint, "untimed", False)

        async def handle(request: Request) -> Response:
            context = Context(request, status, writes)
            info, service, held = context.info, context.service, context.held
            info.route = path
            HELD.set(held)
            try:
                name = request.path_params.get("name")
                if name is not None:
                    check_name(name)
                context.authorize(name, writes=writes)
                if shape is not None:
                    await context.read(shape, optional)
                if not timed:
                    return await answer(context)
                seconds = service.settings.time_limit
                with Limit(service.watch, seconds, _too_long, request.receive):
                    return await answer(context)
            except Disconnected:
                raise
            except RequestValidationError as error:
                return refusal(_bad_parameter(error), service)
            except Exception as error:
                problem = problem_for_clients(error, service.library.shown)
                if problem.logged:
                    service.log.failed("request failed", error, id=info.id, route=path)
                # The tracebacks would keep the decoded body in memory.
                error.__traceback__ = problem.__traceback__ = None
                return refusal(problem, service)
            finally:
                held.release()

        return handle


def new_router(tag: str) -> APIRouter:
    """Return a router for the routes with this tag."""
    return APIRouter(
        tags=[tag], route_class=Route, generate_unique_id_function=lambda route: route.name
    )


def writes(handler: Handler) -> Handler:
    """Mark a handler as one that needs a read-write key."""
    handler.writes = True  # type: ignore[attr-defined]
    return handler


def untimed(handler: Handler) -> Handler:
    """Mark a handler as one without a time limit."""
    handler.untimed = True  # type: ignore[attr-defined]
    return handler


def answers(
    example: Any, *errors: int, status: int = 200, media: str | None = None
) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI description of the answer, and of errors beside the usual ones."""
    answer: dict[str, Any] = {} if example is None else {"example": example}
    kinds = (JSON, MESSAGEPACK) if media is None else (media,)
    good = {"description": "Success", "content": dict.fromkeys(kinds, answer)}
    return {status: good, **_refused_by(*errors)}


def _refused_by(*errors: int) -> dict[int | str, dict[str, Any]]:
    return {number: {"$ref": f"#/components/responses/{number}"} for number in errors}


def _body_of(endpoint: Callable[..., Any]) -> tuple[type[Body] | None, bool]:
    """Return the type of a handler's body, if any, and whether it is optional."""
    for one in inspect.signature(endpoint, eval_str=True).parameters.values():
        if isinstance(one.annotation, type) and issubclass(one.annotation, Body):
            return one.annotation, one.default is not inspect.Parameter.empty
    return None, False


def _called_directly(
    endpoint: Callable[..., Any],
) -> Callable[[Any], Coroutine[Any, Any, Response]] | None:
    """Return a function that calls a handler whose only parameters are `name` and `body`.

    Both are validated already, so FastAPI, which would take a tenth of a query, is skipped.
    """
    parameters = list(inspect.signature(endpoint).parameters.values())[1:]
    named = any(one.name == "name" for one in parameters)
    defaults = [one.default for one in parameters if one.name == "body"]
    if len(parameters) > named + len(defaults):
        return None

    async def answer(context: Context) -> Response:
        given: dict[str, Any] = {"name": context.path_params["name"]} if named else {}
        if defaults:
            body = await context.body()
            given["body"] = defaults[0] if body is None else body
        response: Response = await endpoint(context, **given)
        return response

    return answer


class LargeResponse(Response):
    """An answer that is sent in parts, each after the client has read the previous one.

    Its memory is reserved until it is sent, so clients that do not read cannot fill the memory. If
    there is no room it is refused, unless it answers a completed write (`refuse=False`).
    """

    def __init__(
        self, content: bytes, status: int, context: Context, *, refuse: bool = True
    ) -> None:
        super().__init__(content, status, media_type=context.format)
        self._service = context.service
        self._key = context.key.name
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer; give up if the client does not read a part in time."""
        service, body = self._service, self.body
        held = Held(service.memory, self._key)
        # Twice its size, as measured: buffers and freed memory come on top.
        held.add_answer(2 * len(body), refuse=self._refuse)
        start = {"status": self.status_code, "headers": self.raw_headers}
        try:
            await send({"type": "http.response.start", **start})
            for end in range(_PART, len(body) + _PART, _PART):
                part = {"body": body[end - _PART : end], "more_body": end < len(body)}
                with Limit(service.watch, service.settings.slow_limit, Disconnected):
                    await send({"type": "http.response.body", **part})
        finally:
            held.release()


def refusal(problem: Problem, service: Service) -> Response:
    """Return the response for a problem, and count it."""
    service.metrics.refused.labels(problem.code).inc()
    return response_to(problem)


def _too_long(limit: float) -> Problem:
    message = f"the answer takes more than {limit:g} s; ask for less at once, or start a job"
    return Problem(408, "time_limit", message)


def _bad_parameter(error: RequestValidationError) -> Problem:
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"]))
    message = f"{place} is {brief(first.get('input'))}: {first['msg']}; see GET /v1/openapi.json"
    return Problem(422, "bad_parameter", message)


def _large(value: Any) -> bool:
    """Guess whether encoding takes long enough to use a thread."""
    several = value.values() if isinstance(value, dict) else [value]
    return any(isinstance(one, list) and len(one) > 20 for one in several)
