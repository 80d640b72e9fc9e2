"""Whatever is given to a public function, it works or raises one of our errors, at once.

Every argument of everything public meets every odd value below. A new function, class, method or
argument is swept as soon as it is public; `argument_cases.calls` has to have a call that works.
"""

from __future__ import annotations

import contextlib
import decimal
import fractions
import inspect
import math
import resource
import signal
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lookalike as la
from support.cases.arguments import calls, public_callables

SPARE_BYTES = 2 << 30
SECONDS = 20


def odd_values() -> list[Any]:
    """Return values that somebody may pass by mistake, or to see what happens."""
    numbers: list[Any] = [0, 1, 7, -1, 2**31, 2**40, 2**63 - 1, 2**63, 2**64, -(2**63), 10**5000]
    numbers += [1.0, 0.5, 1.5, -0.5, 1e300, math.nan, math.inf, 1j, True, False]
    numbers += [np.int64(3), np.uint8(3), np.uint64(2**64 - 1), np.float32(1), np.bool_(True)]
    numbers += [decimal.Decimal(1), decimal.Decimal("sNaN"), fractions.Fraction(1, 2)]
    words: list[Any] = ["1", "", "all", "\0", "\ud800", "x" * 100_000, b"1", b"", np.str_("1")]
    things: list[Any] = [None, ..., object(), {}, {"a": 1}, set(), {1}, (), [], [[]], [None]]
    things += [[1], [1.5], [-1], [True], ["1"], [2**63], [2**64], [[1], [1, 2]], [{}], [2**70, -1]]
    things += [{1: 2}, {"kind": 3}, {"signer": []}, range(3), iter([1]), lambda *_: None]
    things += [contextlib.nullcontext(), types, np.dtype(np.uint8), Path("nowhere/x"), Path()]
    kinds = ["u1", "u8", ">u8", "u4", "i1", "i8", "f4", "f8", "f2", "c8", "?", "O", "U3", "S3"]
    kinds += ["M8[s]", "V3"]
    arrays: list[Any] = [np.zeros((5, 8), kind) for kind in kinds]
    arrays += [np.zeros((60, 8), kind) for kind in ("u1", "f4", "i8")]
    arrays += [np.zeros(shape, np.uint8) for shape in [(), (0,), (0, 8), (5, 0), (2, 2, 2), (8,)]]
    arrays += [np.zeros(shape, np.int64) for shape in [(), (0,), (0, 0), (1, 1), (5,), (60,)]]
    arrays += [np.zeros(shape, np.uint64) for shape in [(), (0,), (5,), (5, 1), (60,)]]
    arrays += [np.full((5, 64), value, "f4") for value in (np.nan, np.inf, 3e38)]
    arrays += [np.full(60, 2**63 - 1), np.full(5, -(2**63)), np.full(5, 2**64 - 1, np.uint64)]
    arrays += [
        np.arange(80, dtype=np.uint8).reshape(8, 10).T[:5],
        np.ones((10, 16), "u1")[::2, ::2],
    ]
    arrays += [
        np.ma.masked_array(np.zeros((5, 8), np.uint8), True),
        np.zeros((5, 8), np.uint8)[::-1],
    ]
    return [*numbers, *words, *things, *arrays]


@pytest.fixture(scope="module")
def working(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return calls(tmp_path_factory.mktemp("calls"))


@pytest.fixture
def bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Bound memory and time, in a folder where odd names may become files."""
    monkeypatch.chdir(tmp_path)

    def late(*_: Any) -> None:
        raise TimeoutError(f"still running after {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, late)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    status = Path("/proc/self/statm")
    if status.exists():
        used = int(status.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + SPARE_BYTES, hard))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", la.LookalikeWarning)  # what works, but slowly
        yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    signal.signal(signal.SIGALRM, before)


def outcome(call: Callable[..., Any], arguments: dict[str, Any]) -> str | None:
    """Return what is wrong with what a call did; None if it worked or refused properly."""
    signal.alarm(SECONDS)
    try:
        call(**arguments)
    except la.LookalikeError as error:
        if len(str(error)) > 2000:
            return f"a message of {len(str(error))} characters"
    except BaseException as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    finally:
        signal.alarm(0)
    return None


def test_every_public_callable_has_a_call_that_works(working: dict[str, Any]) -> None:
    assert set(public_callables()) == set(working)
    for name, (call, arguments) in working.items():
        names = inspect.signature(public_callables()[name]).parameters
        assert set(arguments) <= set(names), name
        call(**arguments)


@pytest.mark.parametrize("name", sorted(public_callables()))
def test_odd_arguments_work_or_are_refused(
    name: str, working: dict[str, Any], bounds: None
) -> None:
    call, arguments = working[name]
    wrong = []
    for argument in inspect.signature(public_callables()[name]).parameters:
        if argument == "self":
            continue
        for value in odd_values():
            problem = outcome(call, {**arguments, argument: value})
            if problem:
                wrong.append(f"{argument}={_shown(value)}: {problem}")
    assert not wrong, f"{len(wrong)} of {name}:\n" + "\n".join(wrong)


def _shown(value: Any) -> str:
    if isinstance(value, int) and abs(value) > 2**64:
        return "a huge number"
    if isinstance(value, np.ndarray):
        return f"{value.dtype} of shape {value.shape}"
    return repr(value)[:60]
