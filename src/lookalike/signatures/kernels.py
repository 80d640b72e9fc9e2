"""Which distance kernel runs.

The widest one that the processor supports, chosen when the package is imported. The environment
variable LOOKALIKE_KERNEL names another one; all of them give the same numbers.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from lookalike import _native
from lookalike.errors import ArgumentError

__all__ = ["Kernel", "kernels"]

VARIABLE = "LOOKALIKE_KERNEL"


class Kernel(NamedTuple):
    """One implementation of the distance loops."""

    name: str
    supported: bool
    """Whether this processor can run it."""
    active: bool
    """Whether it is the one in use."""


def kernels() -> tuple[Kernel, ...]:
    """Return the kernels in this build, widest first."""
    return tuple(Kernel(*row) for row in _native.kernels())


def select_kernel(name: str) -> None:
    """Use the kernel of that name from now on, in the whole process."""
    if not _native.select_kernel(name):
        usable = ", ".join(kernel.name for kernel in kernels() if kernel.supported)
        raise ArgumentError(
            f"{VARIABLE} is {name!r}, which this build or processor does not have; "
            f"expected one of: {usable}"
        )


if os.environ.get(VARIABLE):
    select_kernel(os.environ[VARIABLE])
