"""Small checks of arguments that every layer needs."""

from __future__ import annotations

import errno
import importlib
import math
import operator
import os
from collections.abc import Collection
from pathlib import Path
from typing import Any, SupportsFloat, SupportsIndex, TypeVar

from lookalike.errors import ArgumentError, FileError, MissingDependencyError

__all__ = [
    "callback",
    "file_path",
    "flag",
    "one_of",
    "optional_module",
    "share",
    "thread_count",
    "whole_number",
]

T = TypeVar("T")


def whole_number(
    name: str, value: SupportsIndex, *, at_least: int, at_most: int | None = None
) -> int:
    """Return `value` as an int between the bounds, or raise an error that names it."""
    expected = f"a whole number of at least {at_least}"
    if at_most is not None:
        expected = f"a whole number from {at_least} to {at_most}"
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentError(
            f"{name} is {value!r} of type {type(value).__name__}; expected {expected}"
        ) from None
    if isinstance(value, bool) or number < at_least or (at_most is not None and number > at_most):
        raise ArgumentError(f"{name} is {value!r}; expected {expected}")
    return number


def flag(name: str, value: object) -> bool:
    """Return `value` if it is True or False, or raise an error that names it."""
    if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):  # NumPy's, too
        return bool(value)
    raise ArgumentError(f"{name} is {value!r}; expected True or False")


def one_of(name: str, value: object, choices: Collection[str]) -> str:
    """Return `value` if it is one of these words, or raise an error that lists them."""
    if not isinstance(value, str) or value not in choices:
        raise ArgumentError(f"{name} is {value!r}; expected {' or '.join(map(repr, choices))}")
    return value


def callback(name: str, value: T | None) -> T | None:
    """Return `value` if it can be called, or is None, or raise an error that names it."""
    if value is not None and not callable(value):
        raise ArgumentError(f"{name} is {value!r}; expected a function, or None")
    return value


def file_path(name: str, path: str | os.PathLike[str]) -> Path:
    """Return the path of a file, or raise an error that names it: numbers are no names."""
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(text, str) or not text or "\0" in text:
        raise ArgumentError(
            f"{name} is {path!r} of type {type(path).__name__}; expected the name of a file"
        )
    try:
        os.lstat(text)
    except UnicodeEncodeError:
        raise ArgumentError(f"{name} is {path!r}, which cannot be a file's name") from None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:  # other troubles are for those who open it
            raise FileError(f"{name} is {text[:80]!r}...: {error.strerror}") from error
    return Path(text)


def share(name: str, value: SupportsFloat) -> float:
    """Return `value` as a number above 0 and at most 1, or raise an error that names it."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 < number <= 1:
        raise ArgumentError(f"{name} is {value!r}; expected a number above 0 and at most 1")
    return number


def thread_count(threads: SupportsIndex | None) -> int:
    """Return how many threads to use: all cores this process may run on unless told otherwise."""
    if threads is not None:
        return whole_number("threads", threads, at_least=1, at_most=4096)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def optional_module(name: str, purpose: str, *, extra: str | None = None) -> Any:
    """Import a package that only `purpose` needs, or say which extra installs it.

    The extra has the package's name unless told.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingDependencyError(
            f"{purpose} needs the package {name!r}, which cannot be imported ({error}); "
            f"install it with: pip install 'lookalike[{extra or name}]'"
        ) from error
