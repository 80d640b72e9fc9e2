"""Errors as the API tells them: one shape, whatever went wrong.

    {"error": {"code": "k_too_large", "kind": "ArgumentError", "message": "k is ...; expected ..."}}

The message says what came, what was expected and what to do. `kind` is the error of
`lookalike.errors` that the client raises. `items` names the items of a batch that are wrong.
"""

from __future__ import annotations

import errno
import sqlite3
from typing import Any

from lookalike.collection.search.answer import AnswerTooLargeError
from lookalike.errors import (
    ArgumentError,
    BatchError,
    CollectionBusyError,
    CollectionError,
    DocumentError,
    FileError,
    ItemError,
    LookalikeError,
    MissingDependencyError,
    NotFittedError,
    NotFoundError,
    ResultTooLargeError,
    SignatureError,
)
from lookalike.shown import escape_terminal

__all__ = [
    "ClientGone",
    "Problem",
    "item_values",
    "problem_for_strangers",
    "problem_of",
    "service_ending",
]

_LONGEST = 2000


class ClientGone(Exception):
    """Whoever asked has hung up, or does not take the answer."""


class Problem(Exception):
    """An answer that is an error."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        kind: str = "ArgumentError",
        items: list[dict[str, Any]] | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.kind = kind
        self.items = items
        self.retry_after = retry_after

    @property
    def headers(self) -> dict[str, str]:
        """What goes with the status."""
        found = {}
        if self.retry_after is not None:
            found["retry-after"] = str(self.retry_after)
        if self.status == 401:
            found["www-authenticate"] = "Bearer"
        return found

    @property
    def logged(self) -> bool:
        """Whether the log says more about it than the answer does."""
        return self.status == 500 or self.code in ("collection", "database_away", "disk_full")

    def value(self) -> dict[str, Any]:
        """Return it in plain values."""
        error: dict[str, Any] = {
            "code": self.code,
            "kind": self.kind,
            "message": escape_terminal(str(self), _LONGEST),
        }
        if self.items is not None:
            error["items"] = self.items
        return {"error": error}


def service_ending() -> Problem:
    """Return the answer for what a service that is about to end does not do any more."""
    return Problem(
        503, "ending", "the service is ending; ask another one, or try again later",
        kind="CollectionBusyError", retry_after=5,
    )  # fmt: skip


_STATUS: tuple[tuple[type[LookalikeError], int, str], ...] = (
    (BatchError, 422, "bad_items"),
    (NotFoundError, 404, "not_found"),
    (CollectionBusyError, 503, "busy"),
    (CollectionError, 503, "collection"),
    (AnswerTooLargeError, 422, "answer_too_large"),
    (ResultTooLargeError, 422, "result_too_large"),
    (SignatureError, 422, "bad_signature"),
    (DocumentError, 422, "bad_document"),
    (ArgumentError, 422, "bad_argument"),
    (NotFittedError, 422, "not_fitted"),
    (MissingDependencyError, 422, "missing_dependency"),
    (FileError, 500, "file"),
    (LookalikeError, 500, "internal"),
)


def problem_of(error: BaseException) -> Problem:
    """Return how an error is told; what nobody has foreseen is told without what is in it."""
    if isinstance(error, Problem):
        return error
    for kind, status, code in _STATUS:
        if isinstance(error, kind):
            items = None
            if isinstance(error, BatchError):
                items = [item_values(item) for item in error.errors]
            public = LookalikeError.__module__
            name = next(one.__name__ for one in type(error).__mro__ if one.__module__ == public)
            retry = 1 if code == "busy" else None
            return Problem(status, code, str(error), kind=name, items=items, retry_after=retry)
    if isinstance(error, MemoryError):
        return Problem(
            422, "out_of_memory", "there is not enough memory for this; ask for less at once",
            kind="ResultTooLargeError",
        )  # fmt: skip
    return Problem(
        500, "internal", "something went wrong in the service; its log says what",
        kind="CollectionError",
    )  # fmt: skip


def problem_for_strangers(error: BaseException, place: str) -> Problem:
    """Return how an error is told to whom the service is for, and not the database.

    Where that is, and what it said itself, is left out.
    """
    if disk_is_full(error) or disk_is_full(error.__cause__):
        return Problem(
            507, "disk_full", "the disk of the service is full: this was not written, or not "
            "all of it; make room and send it again", kind="CollectionError",
        )  # fmt: skip
    problem = problem_of(error)
    if problem.status < 500 or not isinstance(error, LookalikeError):
        return problem
    cause = error.__cause__
    message = str(problem)
    if cause is not None and str(cause):
        message = message.replace(escape_terminal(str(cause)), "see the log of the service")
    message = message.replace(escape_terminal(place), "the database")
    if problem.code == "collection" and _is_away(cause):
        return Problem(503, "database_away", message, kind=problem.kind, retry_after=5)
    return Problem(
        problem.status, problem.code, message, kind=problem.kind, retry_after=problem.retry_after
    )


def disk_is_full(error: BaseException | None) -> bool:
    """Return whether a file system, or a database, has no room left."""
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_FULL
    return type(error).__name__ == "DiskFull"  # of PostgreSQL


def _is_away(cause: BaseException | None) -> bool:
    """Return whether a server cannot be reached, or has ended the connection."""
    kinds = type(cause).__mro__
    return any(
        one.__name__ == "OperationalError" and one.__module__.startswith("psycopg") for one in kinds
    )


def item_values(item: ItemError) -> dict[str, Any]:
    """Return what is wrong with an item of a batch, in plain values."""
    message = item.message if item.remedy is None else f"{item.message}; {item.remedy}"
    id = item.id if isinstance(item.id, str) else None
    return {
        "position": item.position,
        "id": None if id is None else escape_terminal(id, 200),
        "message": escape_terminal(message, _LONGEST),
    }
