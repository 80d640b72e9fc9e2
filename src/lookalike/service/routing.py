"""What all routes share: authorization, body, time limit, format and errors.

Handlers are those of FastAPI: parameters, bodies and OpenAPI come from their signatures. `Route`
reads and checks the body before FastAPI sees it, within the limits of the service.
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
from lookalike.service.limits import HELD, Held, Limit, hung_up
from lookalike.service.middleware import RequestInfo, response_to
from lookalike.service.problems import (
    ClientGone,
    Problem,
    problem_for_strangers,
    slow_request,
    too_large,
)
from lookalike.service.service import Service
from lookalike.service.shapes import Body
from lookalike.shown import brief

_LARGE = 8 << 10
"""Bytes from which a body is decoded in a thread; fewer always take less than a millisecond."""
_LARGE_ANSWER = 32 << 10
"""Bytes from which answers are counted, and sent in parts."""
_PART = 32 << 10
_READ = 4
"""Bytes of memory taken for each byte of a body before it is known what is in it."""
_ERRORS = (400, 401, 403, 408, 414, 421, 429, 431)
_ERRORS_OF_BODIES = (413, 415, 422)

CollectionName = Annotated[str, Path(pattern=NAME, description="The name of a collection")]
Handler = TypeVar("Handler", bound=Callable[..., Any])


class _Anything(Convertor[str]):
    """The rest of a path with its line ends, at which the convertor `path` stops."""

    regex = "(?s:.*)"

    def convert(self, value: str) -> str:
        """Return the same text."""
        return value

    to_string = convert


register_url_convertor("anything", _Anything())


class Context(Request):
    """A request that may be answered, and what its handler needs."""

    def __init__(self, request: Request, status: int, writes: bool) -> None:
        super().__init__(request.scope, request.receive)
        self.info: RequestInfo = request.scope["lookalike"]
        self.key = self.info.key
        self.service: Service = request.app.state.service
        self.format = wanted_format(self.info.header(b"accept"))
        self.held = Held(self.service.memory, self.key.name)
        self._status = status
        self._writes = writes
        self._decoded: Body | None = None

    def authorize(self, name: str | None = None, *, writes: bool = False) -> None:
        """Refuse a key that may not write, or not use a collection."""
        key = self.key
        if writes and not key.writes:
            message = f"the key {key.name!r} is for reading; use one that may write"
            raise Problem(403, "read_only", message)
        if name is not None and not key.reaches(name):
            message = f"the key {key.name!r} is not for the collection {brief(name)}"
            raise Problem(403, "collection_scope", f"{message}; use another one")

    async def body(self) -> Any:  # FastAPI gives the handler what this returns
        """Return the body, decoded and checked; None if there is none."""
        return self._decoded

    json = body

    async def hung_up(self) -> None:
        """Return when the client has gone; for requests without a body."""
        await hung_up(self.receive)

    async def reply(self, value: Any, *, bounded: bool = False) -> Response:
        """Return a response with plain values, or with encoded bytes that may be `bounded`."""
        if not isinstance(value, bytes):
            if _large(value):
                value = await self.service.read(encode, value, self.format)
            else:
                value = encode(value, self.format)
        if not self._writes and not bounded:  # a write whose answer was refused would seem to fail
            check_answer(len(value), self.service.settings.max_answer)
        if len(value) > _LARGE_ANSWER:
            return LargeResponse(value, self._status, self, refuse=not self._writes)
        return Response(value, self._status, media_type=self.format)

    async def read(self, shape: type[Body], optional: bool) -> None:
        """Read the body, decode it and check it."""
        raw = await self._received()
        if not raw and optional:
            return
        format = media_type(self.info.header(b"content-type"))
        arguments = raw, format, shape, self.service.settings.max_batch, self.held.need
        if len(raw) > _LARGE:
            self._decoded = await self.service.decode(decode, *arguments)
        else:
            self._decoded = decode(*arguments)

    async def _received(self) -> bytearray:
        """Return the bytes of the body, or raise: it is too large, too slow or cut off."""
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
            raise ClientGone
        return message.get("body", b""), message.get("more_body", False)

    def check_length(self, most: int, option: str) -> int:
        """Return the length that the headers announce, 0 if they do not; refuse one too large."""
        given = self.info.header(b"content-length")
        if given is None:
            return 0
        if not given.isascii() or not given.isdigit() or len(given) > 18:
            message = f"the Content-Length is {brief(given)}; expected bytes"
            raise Problem(400, "content_length", message)
        if int(given) > most:
            raise too_large(given, option, most)
        return int(given)


class Route(APIRoute):
    """A route whose body is read within limits, and whose errors have one shape."""

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
        if self._direct is None:  # FastAPI needs what its application puts around the router
            self.app = AsyncExitStackMiddleware(self.app)
            return
        handle = self.get_route_handler()

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            response = await handle(Request(scope, receive))
            await response(scope, receive, send)

        self.app = app

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
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
            except ClientGone:
                raise
            except RequestValidationError as error:
                return refusal(_bad_parameter(error), service)
            except Exception as error:
                problem = problem_for_strangers(error, service.library.shown)
                if problem.logged:
                    service.log.failed("request failed", error, id=info.id, route=path)
                # Both tracebacks refer to all that was decoded.
                error.__traceback__ = problem.__traceback__ = None
                return refusal(problem, service)
            finally:
                held.release()

        return handle


def new_router(tag: str) -> APIRouter:
    """Return a router for the routes of one subject."""
    return APIRouter(
        tags=[tag], route_class=Route, generate_unique_id_function=lambda route: route.name
    )


def writes(handler: Handler) -> Handler:
    """Decorate a handler that only keys that may write can use."""
    handler.writes = True  # type: ignore[attr-defined]
    return handler


def untimed(handler: Handler) -> Handler:
    """Decorate a handler that may take longer than the time limit."""
    handler.untimed = True  # type: ignore[attr-defined]
    return handler


def told(
    example: Any, *errors: int, status: int = 200, media: str | None = None
) -> dict[int | str, dict[str, Any]]:
    """Return the responses that OpenAPI describes: the answer, and errors beside the usual ones."""
    answer: dict[str, Any] = {} if example is None else {"example": example}
    kinds = (JSON, MESSAGEPACK) if media is None else (media,)
    good = {"description": "done", "content": dict.fromkeys(kinds, answer)}
    return {status: good, **_refused_by(*errors)}


def _refused_by(*errors: int) -> dict[int | str, dict[str, Any]]:
    return {number: {"$ref": f"#/components/responses/{number}"} for number in errors}


def _body_of(endpoint: Callable[..., Any]) -> tuple[type[Body] | None, bool]:
    """Return the shape of a handler's body, None if it takes none, and whether it is optional."""
    for one in inspect.signature(endpoint, eval_str=True).parameters.values():
        if isinstance(one.annotation, type) and issubclass(one.annotation, Body):
            return one.annotation, one.default is not inspect.Parameter.empty
    return None, False


def _called_directly(
    endpoint: Callable[..., Any],
) -> Callable[[Any], Coroutine[Any, Any, Response]] | None:
    """Return what calls a handler that takes only the name of a collection and a body.

    Both are checked by then. FastAPI, which checks other parameters, takes a tenth of a query.
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
    """An answer that is sent in parts, each when the client has taken the one before.

    Its memory is counted until it is sent: clients that read nothing cannot fill the memory with
    answers. It is refused if there is no room, unless it answers a write, which has been done
    (`refuse=False`).
    """

    def __init__(
        self, content: bytes, status: int, context: Context, *, refuse: bool = True
    ) -> None:
        super().__init__(content, status, media_type=context.format)
        self._service = context.service
        self._key = context.key.name
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it; a client that does not take a part in time gets no more."""
        service, body = self._service, self.body
        held = Held(service.memory, self._key)
        # Measured: buffers and freed memory come on top of the answer.
        held.need_for_answer(2 * len(body), refuse=self._refuse)
        start = {"status": self.status_code, "headers": self.raw_headers}
        try:
            await send({"type": "http.response.start", **start})
            for end in range(_PART, len(body) + _PART, _PART):
                part = {"body": body[end - _PART : end], "more_body": end < len(body)}
                with Limit(service.watch, service.settings.slow_limit, ClientGone):
                    await send({"type": "http.response.body", **part})
        finally:
            held.release()


def refusal(problem: Problem, service: Service) -> Response:
    """Return a problem as an answer, and count it."""
    service.metrics.refused.labels(problem.code).inc()
    return response_to(problem)


def _too_long(limit: float) -> Problem:
    message = f"the answer takes more than {limit:g} s; ask for less at once, or as a job"
    return Problem(408, "time_limit", message)


def _bad_parameter(error: RequestValidationError) -> Problem:
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"]))
    return Problem(
        422, "bad_parameter", f"{place} is {brief(first.get('input'))}: {first['msg']}; "
        "GET /v1/openapi.json says what is expected",
    )  # fmt: skip


def _large(value: Any) -> bool:
    """Guess whether encoding it takes long enough for a thread."""
    several = value.values() if isinstance(value, dict) else [value]
    return any(isinstance(one, list) and len(one) > 20 for one in several)
