"""Total recall, and collections as large as fit: what is counted is right."""

from __future__ import annotations

import re

import numpy as np
import pytest
from papers.issl_large import MOST_DISK, as_many_as_fit, made, model
from papers.psm_recall import queries_among, total_recall

import lookalike as la
from lookalike.indexes.slices.lists import list_bytes
from support.running.planned import COSTS


def test_total_recall_is_what_is_counted_pair_by_pair() -> None:
    generator = np.random.default_rng(0)
    weights = generator.normal(size=(600, 64)).astype(np.float32)
    weights[300:] = weights[:300] + generator.normal(0, 0.05, (300, 64))
    rows = np.packbits(weights >= 0, axis=1, bitorder="little")
    pairs = la.ScanIndex(rows).pairs(12)
    near = np.arange(len(pairs.left)) % 3 > 0
    section = total_recall(rows, weights, pairs, near, 3)
    asked = queries_among(len(rows))
    others = np.flatnonzero(~asked)
    index = la.FlipIndex(rows[others], ids=others)
    everything = list(zip(pairs.left, pairs.right, pairs.distances, near, strict=True))
    for radius, line in zip((1, 2, 3), section.rows, strict=True):
        within = hits = alike = both = 0
        for left, right, far, like in everything:
            if asked[left] == asked[right]:
                continue
            query, row = (left, right) if asked[left] else (right, left)
            found = index.within(rows[query], radius, weights=weights[query], flips=int(line[3]))
            seen = row in found.ids
            within += far <= radius
            hits += seen
            alike += like
            both += seen and like
        assert 0 < hits <= within
        assert line[1] == f"{within}"
        assert line[4] == f"{hits / within:.3f}"
        assert line[6] == f"{both / alike:.3f}"
    assert section.verdict is not None
    assert re.search(r"R\(3\) · R′ = 0\.\d{3} \(0\.\d{3} counted\)", section.verdict.why)


def test_as_many_as_fit() -> None:
    assert as_many_as_fit(1_000_000, 10**12) == 1_000_000
    count = as_many_as_fit(500_000_000, 10**12)
    assert 50_000_000 < count < 60_000_000
    taken = 256 * count + list_bytes(count, 1024, 22)
    assert MOST_DISK * 0.85 < taken <= MOST_DISK
    assert as_many_as_fit(500_000_000, 2**30) < 1_300_000


def test_made_signatures_are_as_far_from_others_as_they_should_be() -> None:
    generator = np.random.default_rng(0)
    base = generator.integers(0, 256, (1, 128), np.uint8)
    for near, shares in ((False, {256: 0.90, 128: 0.07, 64: 0.03}), (True, {128: 0.5, 64: 0.5})):
        rows = made(base, 5000, generator, near)
        distances = la.hamming(rows, np.repeat(base, len(rows), axis=0))
        found = {far: np.mean(np.abs(distances - far) < 32).item() for far in (64, 128, 256)}
        for far, share in shares.items():
            assert found[far] == pytest.approx(share, abs=0.03)


def test_the_model_is_that_of_plans() -> None:
    slices, scan = model(500_000_000, 25, COSTS)
    assert slices.memory_bytes == 500_000_000 * 128 + list_bytes(500_000_000, 1024, 25)
    assert 1 < scan.microseconds / slices.microseconds < 10_000
