"""Binary search, interpolation and header tables find the same place."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from papers.psm_lookups import HALVING, HEADER, INTERPOLATION, Lookups

from lookalike.errors import MissingDependencyError
from papers import psm_lookups

LARGEST = 2**64 - 1


@pytest.mark.parametrize(
    "fingerprints",
    [
        np.random.default_rng(0).integers(0, 2**64, 3001, np.uint64),
        np.random.default_rng(1).integers(0, 2**64, 500, np.uint64) >> np.uint64(40),
        np.repeat(np.array([0, 5, 2**63, LARGEST], np.uint64), 100),
        np.array([LARGEST], np.uint64),
        np.zeros(64, np.uint64),
    ],
)
def test_all_ways_find_the_same(fingerprints: NDArray[np.uint64]) -> None:
    edges = np.array([0, 1, 2**63, LARGEST], np.uint64)
    queries = np.concatenate([edges, fingerprints[::7], np.arange(1, 50, dtype=np.uint64) << 57])
    for bits in (1, 8, 11):
        lookups = Lookups(fingerprints, bits)
        mask = np.uint64(LARGEST << (64 - bits) & LARGEST)
        true = np.searchsorted(np.sort(fingerprints), queries & mask)
        for name, way in lookups.ways(queries).items():
            places, looks = way()
            assert places.tolist() == true.tolist(), name
            assert looks >= len(queries)
            if name == HEADER:
                assert looks == len(queries)
            if name == HALVING:
                assert looks <= len(queries) * (len(fingerprints).bit_length() + 1)


def test_interpolation_looks_less_often_where_all_is_even() -> None:
    generator = np.random.default_rng(2)
    lookups = Lookups(generator.integers(0, 2**64, 100_000, np.uint64), 16)
    ways = lookups.ways(generator.integers(0, 2**64, 2000, np.uint64))
    assert ways[INTERPOLATION]()[1] < ways[HALVING]()[1] / 2


def test_without_a_compiler_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(MissingDependencyError, match="expected a C\\+\\+ compiler: name it in CXX"):
        psm_lookups._compiled()
