"""Waiting for what another process or thread does, however slow the machine is."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(holds: Callable[[], object], seconds: float = 120.0) -> None:
    """Return when something holds; give up after a time that no working machine needs."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it does not come"
        time.sleep(0.02)
