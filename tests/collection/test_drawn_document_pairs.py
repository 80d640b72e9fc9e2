"""Pairs of a collection's documents, each with a chance: none that is none, and equal ones all."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import lookalike as la


def test_pairs_with_a_recall_are_some_of_all(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    rows = rng.integers(0, 256, (10_000, 16), dtype=np.uint8)
    flips = np.packbits(rng.random((4_000, 128)) < 0.18, axis=1)
    rows[6_000:] = rows[:4_000] ^ flips
    rows[5_990:6_000] = rows[5_980:5_990]
    with la.open_collection(tmp_path / "docs.db", bits=128, cache=None) as docs:
        docs.upsert([f"d{number}" for number in range(10_000)], signatures=rows)
        docs.delete([f"d{number}" for number in range(0, 10_000, 500)])
        everything = {(one.left, one.right): one.distance for one in docs.pairs(30)}
        found = {(one.left, one.right): one.distance for one in docs.pairs(30, recall=0.9)}
        alike = {pair for pair, distance in everything.items() if distance == 0}
    assert len(everything) > 3_000
    assert found.items() < everything.items()
    assert len(found) > 0.9 * len(everything)
    assert len(alike) >= 9
    assert alike <= set(found)
