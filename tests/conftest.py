from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import lookalike as la
from lookalike.signatures.arrays import select_kernel
from support.running.exploring import EXPLORE, more_examples

# No deadline: the machine that runs the tests may be busy, and time is not what they are about.
# The same examples everywhere, so that a failure means a change. `make crash` sets
# LOOKALIKE_EXPLORE, and draws other examples, and more of them, each time.
settings.register_profile(
    "lookalike",
    deadline=None,
    derandomize=not EXPLORE,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
settings.load_profile("lookalike")

SUPPORTED = [kernel.name for kernel in la.signatures.kernels() if kernel.supported]


def set_signals() -> None:
    """Let the commands that tests start, and the tests themselves, hear signals.

    A process started by `nohup`, or in the background of a plain shell, ignores SIGHUP, or SIGINT
    and SIGQUIT, and so do its children. Those children must have the defaults, while a test run
    under `nohup` goes on when its terminal is closed: a handler that does nothing gives both.
    """
    worker = "PYTEST_XDIST_WORKER" in os.environ  # ends with the process that started it
    if worker or signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        signal.signal(signal.SIGHUP, _nothing)
    for number in (signal.SIGTERM, signal.SIGQUIT):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _nothing(number: int, frame: Any) -> None:
    """Hear a signal and do nothing."""


set_signals()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Multiply the examples of property tests where exploring is asked for."""
    more_examples(items)


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Nothing is left in the user's cache folder, nor taken from there."""
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(params=SUPPORTED)
def kernel(request: pytest.FixtureRequest) -> Iterator[str]:
    """Every kernel of this machine in turn."""
    active = next(kernel.name for kernel in la.signatures.kernels() if kernel.active)
    select_kernel(request.param)
    yield request.param
    select_kernel(active)
