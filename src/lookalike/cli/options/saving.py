"""An index that was built goes to a file: what there is to say of it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from lookalike.indexes import Index
from lookalike.vectors import VectorIndex

__all__ = ["save_built"]


def save_built(index: Index | VectorIndex, path: Path, start: float) -> dict[str, Any]:
    """Save an index, and return its summary; `start` is when its building began."""
    index.save(path)
    return {
        **index.stats(),
        "seconds": round(time.perf_counter() - start, 3),
        "file": str(path),
        "file_bytes": path.stat().st_size,
        "ids": index.names is not None,
    }
