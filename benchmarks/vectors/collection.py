"""Word vectors, and phrases made of them: a million vectors where there are fifty thousand."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["FILE", "Vectors", "clustered", "descriptions", "phrases", "words"]

FILE = "word_vectors_100d_50k.npy"
"""GloVe, float16, the most frequent word first."""
FLATTER = 100
"""Words are drawn as 1 / (rank + this): Zipf's law, without most of its stop words."""


@dataclass(frozen=True, eq=False)
class Vectors:
    """What is searched, and with what; no query is among the rows."""

    origin: str
    rows: NDArray[Any]
    queries: NDArray[Any]


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


TEXTS = "debian_descriptions.jsonl.gz"
DESCRIPTIONS, DIMENSIONS = 28_880, 100


def descriptions(folder: Path | None, queries: int, *, part: int = 1) -> Vectors:
    """Return descriptions of Debian packages, as TF-IDF and a singular value decomposition say."""
    if folder is None or not (folder / TEXTS).exists():
        return words(None, queries, part=part)
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    with gzip.open(folder / TEXTS, "rt") as lines:
        texts = list(dict.fromkeys(json.loads(line)["text"] for line in lines))
    chosen = np.random.default_rng(0).permutation(len(texts))[: DESCRIPTIONS // part + queries]
    terms = TfidfVectorizer(sublinear_tf=True, min_df=2, dtype=np.float32)
    weights = terms.fit_transform([texts[at] for at in chosen])
    rows = TruncatedSVD(DIMENSIONS, random_state=0).fit_transform(weights).astype(np.float32)
    rows = rows[np.linalg.norm(rows, axis=1) > 0]
    return Vectors("TF-IDF and SVD of descriptions", rows[queries:], rows[:queries])


def clustered(count: int, queries: int) -> Vectors:
    """Return made-up vectors around 10,000 centers of very different sizes."""
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(10_000, DIMENSIONS)).astype(np.float32)
    chance = 1 / (np.arange(len(centers)) + 10)
    which = rng.choice(len(centers), count + queries, p=chance / chance.sum())
    rows = (0.8 * rng.normal(size=(len(which), DIMENSIONS))).astype(np.float32) + centers[which]
    halves = rows.astype(np.float16)
    return Vectors("made-up vectors in clusters", halves[queries:], halves[:queries])
