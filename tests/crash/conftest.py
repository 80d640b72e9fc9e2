"""A folder for trials, and faults of the operating system only where they are asked for."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

collect_ignore = [] if os.environ.get("LOOKALIKE_FAULTS") else ["test_system_faults.py"]
"""Those need strace and minutes: `make crash` asks for them."""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A new folder, in memory where there is such a thing: trials sync files by the thousand."""
    memory = Path("/dev/shm")
    usable = memory.is_dir() and os.access(memory, os.W_OK)
    with tempfile.TemporaryDirectory(
        prefix="lookalike-", dir=memory if usable else None, ignore_cleanup_errors=True
    ) as name:
        yield Path(name)
