"""Word vectors, and phrases made of them: a million vectors where there are fifty thousand."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

__all__ = ["FILE", "Vectors", "phrases", "words"]

FILE = "word_vectors_100d_50k.npy"
"""GloVe, float16, the most frequent word first."""
FLATTER = 100
"""Words are drawn as 1 / (rank + this): Zipf's law, without most of its stop words."""


@dataclass(frozen=True, eq=False)
class Vectors:
    """What is searched, and with what; no query is among the rows."""

    origin: str
    rows: NDArray[np.float16]
    queries: NDArray[np.float16]


def _words(folder: Path | None) -> tuple[str, NDArray[np.float16]]:
    if folder is not None and (folder / FILE).exists():
        return "GloVe word vectors", np.load(folder / FILE)
    rng = np.random.default_rng(0)  # some directions vary far more than others, as they do there
    spread = 1 / np.sqrt(np.arange(1, 101))
    centers = rng.normal(size=(2000, 100)) * spread
    rows = centers[rng.integers(0, 2000, 50_000)] + 0.7 * rng.normal(size=(50_000, 100)) * spread
    return "made-up vectors", rows.astype(np.float16)


def words(folder: Path | None, queries: int, *, part: int = 1) -> Vectors:
    """Return word vectors, some of them held out as queries."""
    origin, rows = _words(folder)
    order = np.random.default_rng(1).permutation(len(rows))[: len(rows) // part]
    return Vectors(origin, rows[np.sort(order[queries:])], rows[order[:queries]])


def phrases(folder: Path | None, count: int, queries: int) -> Vectors:
    """Return sums of two different words, drawn as often as words are used; no pair comes twice."""
    origin, rows = _words(folder)
    rng = np.random.default_rng(0)
    chance = 1 / (np.arange(len(rows)) + FLATTER)
    chance /= chance.sum()
    wanted = count + queries
    drawn = rng.choice(len(rows), (int(1.6 * wanted), 2), p=chance)
    drawn = np.sort(drawn[drawn[:, 0] != drawn[:, 1]], axis=1)
    pairs = np.unique(drawn, axis=0)
    pairs = pairs[rng.permutation(len(pairs))[:wanted]]
    sums = rows[pairs[:, 0]].astype(np.float32) + rows[pairs[:, 1]]
    halves = sums.astype(np.float16)
    return Vectors(f"sums of two {origin}", halves[queries:], halves[:queries])
