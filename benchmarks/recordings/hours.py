"""A hundred hours of recordings: pieces that are made in memory, and their words.

Samples are real ones of made-up music, and words those that `AudioHash` makes of them; what is left
out is writing and decoding files. Words are kept in the cache, a file for each hundred minutes or
so, since making the samples takes longer than everything else.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.recordings.sounds import Samples, music
from lookalike.recordings.audio_hash import AudioHash

__all__ = ["MINUTES", "RATE", "piece", "words_of_hours"]

RATE = 8000
MINUTES = 4
"""Of a piece."""
_TOGETHER = 25
_FIRST = 1_000_000
"""Seeds from here on: others tune."""

Words = tuple[NDArray[np.uint32], NDArray[np.int64]]


def piece(number: int) -> Samples:
    """Return the samples of one of the pieces."""
    return music(_FIRST + number, MINUTES * 60, RATE)


def words_of_hours(hours: int, cache: Path) -> Iterator[tuple[int, Words]]:
    """Yield the number of each piece and its words, from the cache where they are there."""
    pieces = hours * 60 // MINUTES
    folder = cache / "recordings"
    folder.mkdir(parents=True, exist_ok=True)
    starts = range(0, pieces, _TOGETHER)
    with ProcessPoolExecutor(2) as pool:
        for start, path in zip(starts, pool.map(partial(_made, folder), starts), strict=True):
            with np.load(path) as kept:
                for number in range(start, min(pieces, start + _TOGETHER)):
                    yield number, (kept[f"words{number}"], kept[f"offsets{number}"])


def _made(folder: Path, start: int) -> Path:
    path = folder / f"words-{RATE}-{MINUTES}-{start}.npz"
    if path.exists():
        return path
    arrays: dict[str, NDArray[Any]] = {}
    for number in range(start, start + _TOGETHER):
        found = AudioHash().fingerprint((piece(number), RATE))
        arrays |= {f"words{number}": found.words, f"offsets{number}": found.offsets}
    temporary = path.with_suffix(".part.npz")
    np.savez(temporary, **arrays)  # type: ignore[arg-type]
    temporary.rename(path)
    return path
