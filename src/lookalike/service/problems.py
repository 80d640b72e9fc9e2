"""Errors of the API, which all have the same form:

    {"error": {"code": "k_too_large", "kind": "ArgumentError", "message": "k is ...; expected ..."}}

The message says what was wrong, what is allowed and how to fix it. `kind` is the error of
`lookalike.errors` that the client raises. `items` lists the wrong items of a batch.
"""

from __future__ import annotations

import errno
import sqlite3
from typing import Any

from lookalike import errors
from lookalike.collection.search.answer import AnswerTooLargeError
from lookalike.errors import BatchError, ItemError, LookalikeError
from lookalike.shown import escape_terminal

_LONGEST = 2000
_STATUS: tuple[tuple[type[LookalikeError], int, str], ...] = (
    (BatchError, 422, "bad_items"),
    (errors.NotFoundError, 404, "not_found"),
    (errors.CollectionBusyError, 503, "busy"),
    (errors.CollectionError, 503, "collection"),
    (AnswerTooLargeError, 422, "answer_too_large"),
    (errors.ResultTooLargeError, 422, "result_too_large"),
    (errors.SignatureError, 422, "bad_signature"),
    (errors.DocumentError, 422, "bad_document"),
    (errors.ArgumentError, 422, "bad_argument"),
    (errors.NotFittedError, 422, "not_fitted"),
    (errors.MissingDependencyError, 422, "missing_dependency"),
    (errors.FileError, 500, "file"),
    (LookalikeError, 500, "internal"),
)


def _public_name(kind: type[LookalikeError]) -> str:
    """Return the name of the class, or base class, that is in `lookalike.errors`."""
    return next(one.__name__ for one in kind.__mro__ if one.__module__ == LookalikeError.__module__)


_KINDS = {code: _public_name(kind) for kind, _, code in _STATUS} | {
    "database_away": "CollectionError",
    "disk_full": "CollectionError",
    "ending": "CollectionBusyError",
    "internal": "CollectionError",
    "out_of_memory": "ResultTooLargeError",
    "overview_failed": "CollectionError",
    "too_many_connections": "CollectionBusyError",
    "too_much_at_once": "CollectionBusyError",
}
"""The kind of each code; the kind of all other codes is ArgumentError."""


class Disconnected(Exception):
    """The client has closed the connection, or does not read the answer."""


class Problem(Exception):
    """An error that is sent to the client."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        kind: str | None = None,
        items: list[dict[str, Any]] | None = None,
        retry_after: int | None = None,
        allow: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.kind = kind or _KINDS.get(code, "ArgumentError")
        self.items = items
        self.retry_after = retry_after
        self.allow = allow

    @property
    def headers(self) -> dict[str, str]:
        """The response headers that depend on the error."""
        found = {}
        if self.retry_after is not None:
            found["retry-after"] = str(self.retry_after)
        if self.allow is not None:
            found["allow"] = self.allow
        if self.status == 401:
            found["www-authenticate"] = "Bearer"
        return found

    @property
    def logged(self) -> bool:
        """Whether the log has details that the answer leaves out."""
        return self.status == 500 or self.code in ("collection", "database_away", "disk_full")

    def value(self) -> dict[str, Any]:
        """Return the error as plain values."""
        message = escape_terminal(str(self), _LONGEST)
        error: dict[str, Any] = {"code": self.code, "kind": self.kind, "message": message}
        if self.items is not None:
            error["items"] = self.items
        return {"error": error}


def service_ending() -> Problem:
    """Return the error for requests during shutdown."""
    message = "the service is shutting down; try again later"
    return Problem(503, "ending", message, retry_after=5)


def too_large(size: object, option: str, most: int | None = None) -> Problem:
    """Return the error for a body that is too large."""
    at_most = "" if most is None else f"; expected at most {most}"
    fix = f"Send less at once, or start the service with a larger {option}"
    return Problem(413, "body_too_large", f"the body has {size} bytes{at_most}. {fix}")


def slow_request(limit: float) -> Problem:
    """Return the error for a body that arrives too slowly."""
    message = f"the body did not arrive within {limit:g} s; send it without pauses"
    return Problem(408, "slow_request", message)


def problem_of(error: BaseException) -> Problem:
    """Return the error for the client; the message of an unexpected error is left out."""
    if isinstance(error, Problem):
        return error
    for kind, status, code in _STATUS:
        if isinstance(error, kind):
            items = None
            if isinstance(error, BatchError):
                items = [item_values(item) for item in error.errors]
            name, retry = _public_name(type(error)), 1 if code == "busy" else None
            return Problem(status, code, str(error), kind=name, items=items, retry_after=retry)
    if isinstance(error, MemoryError):
        return Problem(422, "out_of_memory", "the service is out of memory; ask for less at once")
    return Problem(500, "internal", "unexpected error in the service; see its log")


def problem_for_clients(error: BaseException, place: str) -> Problem:
    """Return the error for the client, without the path and the messages of the database."""
    if _disk_is_full(error) or _disk_is_full(error.__cause__):
        message = "the disk of the service is full, and not everything was written"
        return Problem(507, "disk_full", f"{message}; free some space and send it again")
    problem = problem_of(error)
    if problem.status < 500 or not isinstance(error, LookalikeError):
        return problem
    cause, message = error.__cause__, str(problem)
    if cause is not None and str(cause):
        message = message.replace(escape_terminal(str(cause)), "see the log of the service")
    problem.args = (message.replace(escape_terminal(place), "the database"),)
    if problem.code == "collection" and _is_away(cause):
        problem.code, problem.retry_after = "database_away", 5
    return problem


def _disk_is_full(error: BaseException | None) -> bool:
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_FULL
    return type(error).__name__ == "DiskFull"  # an error of PostgreSQL


def _is_away(cause: BaseException | None) -> bool:
    """Return whether the database server cannot be reached, or closed the connection."""
    return any(
        one.__name__ == "OperationalError" and one.__module__.startswith("psycopg")
        for one in type(cause).__mro__
    )


def item_values(item: ItemError) -> dict[str, Any]:
    """Return what is wrong with an item of a batch, in plain values."""
    message = item.message if item.remedy is None else f"{item.message}; {item.remedy}"
    return {
        "position": item.position,
        "id": escape_terminal(item.id, 200) if isinstance(item.id, str) else None,
        "message": escape_terminal(message, _LONGEST),
    }
