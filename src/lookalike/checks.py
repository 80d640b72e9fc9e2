"""Checks of arguments that every layer needs; each returns the argument in its final form."""

from __future__ import annotations

import errno
import importlib
import math
import operator
import os
import re
import warnings
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, SupportsFloat, SupportsIndex, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.errors import (
    ArgumentError,
    FileError,
    MissingDependencyError,
    ResultTooLargeError,
    Said,
)
from lookalike.shown import brief

T = TypeVar("T")

LARGEST = 2**63 - 1
"""More than there is of anything, and what the core can count to."""

_ADDRESS = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+://")
# A secret key may contain a slash that should have been percent-encoded.
_CREDENTIALS = re.compile(r"//(?:[^/@]*|[^/@:]*:[^@?]*)@")
_AMOUNT = r"\s*([0-9]{1,30}(?:\.[0-9]{1,30})?)\s*([KMGT]?)"
# empty positions of an answer, 12 bytes each, if there are few signatures
_MOST_EMPTY_PLACES = 1 << 26


def _wrong(name: str, value: object, expected: str, *, typed: bool = False) -> ArgumentError:
    """Return the error of a value that is not what was expected, with its type if that matters."""
    kind = f" of type {type(value).__name__}" if typed else ""
    return ArgumentError(Said(name), f" is {brief(value)}{kind}; expected {expected}")


def whole_number(
    name: str, value: SupportsIndex, *, at_least: int, at_most: int | None = None
) -> int:
    """Return `value` as an int within the bounds (at most `LARGEST`), or raise an error."""
    expected = f"a whole number of at least {at_least}"
    if at_most is not None:
        expected = f"a whole number from {at_least} to {at_most}"
    try:
        number = operator.index(value)
    except TypeError:
        raise _wrong(name, value, expected, typed=True) from None
    if isinstance(value, bool) or number < at_least or (at_most is not None and number > at_most):
        raise _wrong(name, value, expected)
    return number if at_most is not None else min(number, LARGEST)


def seed_number(seed: SupportsIndex) -> int:
    """Return a valid seed of random numbers: 64 bits."""
    return whole_number("seed", seed, at_least=0, at_most=2**64 - 1)


def neighbor_count(k: SupportsIndex, queries: int, count: int) -> int:
    """Return k; raise an error if nearly all of the k positions per query would be empty."""
    wanted = whole_number("k", k, at_least=1)
    if wanted > count and queries * wanted > _MOST_EMPTY_PLACES:
        raise ResultTooLargeError(
            Said("k"),
            f" is {brief(k)}, but there are {count} signatures: nearly all results of {queries} "
            "queries would be empty; ",
            Said(f"k={max(1, count)}", f"-k {max(1, count)}"),
            " returns all signatures",
        )
    return wanted


def flag(name: str, value: object) -> bool:
    """Return `value` if it is True or False, or raise an error that names it."""
    if not isinstance(value, bool | np.bool_):
        raise _wrong(name, value, "True or False")
    return bool(value)


def share(name: str, value: SupportsFloat) -> float:
    """Return `value` as a number above 0 and at most 1, or raise an error that names it."""
    number = math.nan
    if not isinstance(value, str | bytes | bool | np.bool_ | np.ndarray):
        try:
            number = float(value)
        except (TypeError, ValueError, ArithmeticError):
            number = math.nan
    if not 0 < number <= 1:
        meant = f"; did you mean {number / 100:g}?" if 10 <= number <= 100 else ""
        raise _wrong(name, value, f"a number above 0 and at most 1{meant}")
    return number


def instance(name: str, value: object, kind: type[T] | tuple[type[T], ...], expected: str) -> T:
    """Return `value` if it is one of that kind, or raise an error that says what was expected."""
    if not isinstance(value, kind):
        raise _wrong(name, value, expected, typed=True)
    return value


def whole_numbers(
    name: str, values: Iterable[SupportsIndex], *, at_least: int, at_most: int | None = None
) -> list[int]:
    """Return all `values`, each once and in order, or raise an error; there must be one."""
    try:
        several = list(values)
    except TypeError:
        several = []
    if not several or isinstance(values, str | bytes):
        raise _wrong(name, values, "a list of whole numbers")
    return sorted({whole_number(name, one, at_least=at_least, at_most=at_most) for one in several})


def instances(name: str, values: Iterable[object], kind: type[T], expected: str) -> list[T]:
    """Return all `values` in a list if they are of that kind, or raise an error."""
    try:
        several = list(values)
    except TypeError:
        raise ArgumentError(
            Said(name),
            f" are {brief(values)} of type {type(values).__name__}; expected a list of {expected}",
        ) from None
    return [instance(f"{name}[{at}]", value, kind, expected) for at, value in enumerate(several)]


def one_of(name: str, value: object, choices: Collection[str]) -> str:
    """Return `value` if it is one of these words, or raise an error that lists them."""
    if not isinstance(value, str) or value not in choices:
        raise _wrong(name, value, f"one of: {', '.join(choices)}")
    return value


def callback(name: str, value: T | None) -> T | None:
    """Return `value` if it is None or can be called, or raise an error that names it."""
    if value is not None and not callable(value):
        raise _wrong(name, value, "a function, or None")
    return value


def nested_deeper(value: object, levels: int) -> bool:
    """Return whether lists and mappings are nested more than `levels` deep."""
    level: list[Any] = [value]
    for _ in range(levels):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, Mapping) else outer)
            if isinstance(inner, Mapping | list | tuple)
        ]
        if not level:
            return False
    return True


def as_array(name: str, values: ArrayLike) -> NDArray[Any]:
    """Return `values` as NumPy sees them, or raise an error where it cannot make an array."""
    try:
        return np.asarray(values)
    except (TypeError, ValueError, OverflowError) as error:
        raise ArgumentError(
            Said(name), f" cannot be read as an array: {brief(values)} ({error})"
        ) from error


def real_array(
    name: str, values: ArrayLike, *, at_least: float = -math.inf, at_most: float = math.inf
) -> NDArray[np.float64]:
    """Return real numbers within the bounds as float64, or raise an error; NaN is refused."""
    array = as_array(name, values)
    if array.size and array.dtype.kind not in "fiu":
        raise ArgumentError(
            Said(name), f" are {array.dtype}, {brief(values)}; expected real numbers"
        )
    numbers = array.astype(np.float64)
    if not ((at_least <= numbers) & (numbers <= at_most)).all():
        raise ArgumentError(
            Said(name), f" are {brief(values)}; expected {at_least:g} to {at_most:g}"
        )
    return numbers


def file_path(name: str, path: str | os.PathLike[str]) -> Path:
    """Return the path of a file, or raise an error that names the argument."""
    try:
        text = os.fspath(path)
    except TypeError:
        text = None
    if not isinstance(text, str) or not text or "\0" in text:
        raise _wrong(name, path, "the name of a file", typed=True)
    try:
        os.lstat(text)
    except UnicodeEncodeError:
        raise ArgumentError(
            Said(name), f" is {brief(path)}, which cannot be a file's name"
        ) from None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:  # other errors are raised where it is opened
            raise FileError(f"{name} is {brief(path)}: {error.strerror}") from error
    return Path(text)


def is_address(name: object) -> bool:
    """Return whether a name is an address such as s3://bucket/key, and not that of a file."""
    return isinstance(name, str) and bool(_ADDRESS.match(name)) and not Path(name).exists()


def without_secret(text: str, instead: str = "//***@") -> str:
    """Return a text in which the credentials of addresses are masked."""
    return _CREDENTIALS.sub(instead, text)


def thread_count(threads: SupportsIndex | None) -> int:
    """Return the number of threads to use (default: the cores this process may run on)."""
    if threads is not None:
        return whole_number("threads", threads, at_least=1, at_most=4096)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def optional_module(name: str, purpose: str, *, extra: str | None = None) -> Any:
    """Import a package that `purpose` needs, or say how to install it; `extra` is "" for none."""
    try:
        with warnings.catch_warnings():
            # Deprecations inside a package do not concern the users of lookalike.
            warnings.simplefilter("ignore", DeprecationWarning)
            return importlib.import_module(name)
    except ImportError as error:
        missing = f"lookalike[{extra or name}]" if extra != "" else "lookalike"
        raise MissingDependencyError(
            f"{purpose} needs the package {name!r}, which cannot be imported ({error}); "
            f"install it with: pip install '{missing}'"
        ) from error


def byte_count(text: str) -> int:
    """Return the bytes of "8GB", "500 MB" (1,000,000 each), "1.5G" or "2GiB"."""
    match = re.fullmatch(_AMOUNT + r"(i?)B?\s*", text, re.IGNORECASE)
    if match is None:
        raise ArgumentError(f"{text!r} is not a size; expected one such as 500MB, 32MiB or 8GB")
    return _times(match[1], match[2], 1024 if match[3] else 1000)


def item_count(text: str) -> int:
    """Return the number that "60M" or "1.5G" means. "8B" is refused: it may mean bytes."""
    match = re.fullmatch(_AMOUNT + r"\s*", text, re.IGNORECASE)
    if match is None:
        raise ArgumentError(
            f"{text!r} is not a count; expected one such as 60000000, 60M or 1.5G, where K, M, G "
            "and T are thousands, millions, billions and trillions"
        )
    return _times(match[1], match[2], 1000)


def _times(amount: str, unit: str, step: int) -> int:
    from fractions import Fraction  # takes a while to import

    return int(Fraction(amount) * step ** ["", "K", "M", "G", "T"].index(unit.upper()))
