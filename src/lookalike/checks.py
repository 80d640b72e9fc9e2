"""Small checks of arguments that every layer needs."""

from __future__ import annotations

import importlib
import math
import operator
import os
from typing import Any, SupportsFloat, SupportsIndex

from lookalike.errors import ArgumentError, MissingDependencyError

__all__ = ["optional_module", "share", "thread_count", "whole_number"]


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
