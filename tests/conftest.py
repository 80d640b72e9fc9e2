from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

import lookalike as la
from lookalike.signatures.kernels import select_kernel

# No deadline: the machine that runs the tests may be busy, and time is not what they are about.
# CI tries the same examples each time, so that a red run means a change; people try new ones.
settings.register_profile(
    "lookalike",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
settings.load_profile("lookalike")

SUPPORTED = [kernel.name for kernel in la.kernels() if kernel.supported]


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Nothing is left in the user's cache folder, nor taken from there."""
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(params=SUPPORTED)
def kernel(request: pytest.FixtureRequest) -> Iterator[str]:
    """Every kernel of this machine in turn."""
    active = next(kernel.name for kernel in la.kernels() if kernel.active)
    select_kernel(request.param)
    yield request.param
    select_kernel(active)
