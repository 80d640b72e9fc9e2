"""How far a job is: told to whoever wants to show it, and timed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["STEPS", "JobProgress"]

STEPS = ("read", "collapse", "sign", "propose", "verify", "cluster", "write")

Listener = Callable[[str, float], None]
"""Hears the name of a step and the share of it that is done."""


class JobProgress:
    """Passes on how far each step is, and adds up its seconds."""

    def __init__(self, listener: Listener | None = None) -> None:
        self._listener = listener
        self.seconds: dict[str, float] = {}
        self.reused: list[str] = []
        self.overlapped: list[str] = []

    def step(self, name: str, share: float) -> None:
        """Tell that this share of a step is done."""
        if self._listener is not None:
            self._listener(name, share)

    def reuse(self, *names: str) -> None:
        """Tell that steps need not be done, or not from their beginning: an earlier run was here.

        Those that are not timed take no time.
        """
        for name in names:
            self.reused.append(name)
            self.seconds.setdefault(name, 0.0)

    def overlap(self, name: str) -> None:
        """Tell that a part of a step was done while documents were read."""
        if name not in self.overlapped:
            self.overlapped.append(name)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Time a step."""
        self.step(name, 0.0)
        start = time.perf_counter()
        try:
            yield
        finally:
            passed = time.perf_counter() - start
            self.seconds[name] = self.seconds.get(name, 0.0) + passed
        self.step(name, 1.0)
