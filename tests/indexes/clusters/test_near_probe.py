"""What is read unless told finds near-duplicates, whether signatures make groups or not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import lookalike as la
from lookalike.indexes.clusters.groups import groups_until_near
from support.oracles import scan as oracle

Rows = NDArray[np.uint8]
COUNT = 20_000


def packed(bits: NDArray[np.bool_]) -> Rows:
    return np.packbits(bits, axis=1)


def uniform(generator: np.random.Generator, bits: int) -> Rows:
    return packed(generator.random((COUNT, bits)) < 0.5)


def around_a_hub(generator: np.random.Generator, bits: int) -> Rows:
    away = generator.random((COUNT, bits)) < generator.uniform(0.1, 0.3, (COUNT, 1))
    return packed(away ^ (generator.random(bits) < 0.5))


def biased(generator: np.random.Generator, bits: int) -> Rows:
    return packed(generator.random((COUNT, bits)) < generator.random(bits))


def in_groups(generator: np.random.Generator, bits: int) -> Rows:
    middles = generator.random((100, bits)) < 0.5
    noise = generator.random((COUNT, bits)) < 0.15
    return packed(middles[generator.integers(0, 100, COUNT)] ^ noise)


def changed(rows: Rows, generator: np.random.Generator) -> tuple[Rows, NDArray[np.int64]]:
    """Return each with so many bits changed, of none to a tenth, and how many."""
    bits = 8 * rows.shape[1]
    counts = generator.integers(0, bits // 10 + 1, len(rows))
    flips = generator.permuted(np.arange(bits) < counts[:, None], axis=1)
    return rows ^ packed(flips), counts


@pytest.mark.parametrize(
    ("kind", "bits"), [(uniform, 128), (around_a_hub, 128), (biased, 256), (in_groups, 128)]
)
def test_near_duplicates_are_found_at_the_usual_probe(
    kind: Callable[[np.random.Generator, int], Rows], bits: int
) -> None:
    generator = np.random.default_rng(bits)
    rows = kind(generator, bits)
    queries, counts = changed(rows[generator.integers(0, COUNT, 20_000)], generator)
    index = la.ClusterIndex(rows, threads=2)
    found = index.search(queries, 1, threads=2)
    assert (found.distances[:, 0] <= counts).mean() >= 0.999
    if kind is in_groups:  # where a few do, no more are read
        assert index.stats()["probe"] == -(-index.clusters // 12)
    else:
        assert index.stats()["probe"] < index.clusters / 2


def test_as_many_are_read_as_it_takes() -> None:
    """Two signatures far apart, and centers of which the nearest are not their own."""
    rows = np.zeros((2, 16), np.uint8)
    rows[1] = 255
    centers = np.zeros((4, 16), np.uint8)
    centers[:2, 8:] = 255  # as far from both
    centers[2], centers[3] = 0, 255
    assert groups_until_near(rows, np.array([0, 0, 0, 1, 2]), centers) == 1
    assert groups_until_near(rows, np.array([0, 0, 0, 2, 2]), centers) == 4
    assert groups_until_near(rows, np.array([0, 0, 2, 2, 2]), centers) == 3
    assert groups_until_near(rows, np.array([0, 2]), centers[:1]) == 1
    assert groups_until_near(rows[:0], np.array([0]), centers[:0]) == 0


def test_what_was_measured_is_saved(tmp_path: Path) -> None:
    rows = oracle.collection(4000, 16, "uniform", 5)
    index = la.ClusterIndex(rows)
    index.save(tmp_path / "index")
    loaded = la.load_index(tmp_path / "index")
    assert isinstance(loaded, la.ClusterIndex)
    assert loaded._state.groups.saved_probe == index._state.groups.near_probe
    assert loaded.stats()["probe"] == index.stats()["probe"] > -(-index.clusters // 12)
    queries = oracle.collection(20, 16, "uniform", 6)
    assert np.array_equal(loaded.search(queries, 5).ids, index.search(queries, 5).ids)
