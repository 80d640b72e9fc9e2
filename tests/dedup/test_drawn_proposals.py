"""Where signatures are too many to compare all, most pairs are proposed, and that is said."""

from __future__ import annotations

import random
from unittest.mock import patch

import numpy as np
import pytest

import lookalike as la
from lookalike.dedup import propose
from lookalike.indexes import all_pairs
from lookalike.indexes.all_pairs import Drawing, seconds_for_all


def corpus(count: int, seed: int) -> list[str]:
    """Return texts in twos: the second has another word in place of one or two of the first's."""
    rng = random.Random(seed)
    texts = []
    for _ in range(count // 2):
        words = [f"w{rng.randrange(5000)}" for _ in range(60)]
        texts.append(" ".join(words))
        for _ in range(rng.choice([1, 2])):
            words[rng.randrange(len(words))] = "other"
        texts.append(" ".join(words))
    return texts


@pytest.mark.parametrize("method", ["simhash", "topsig"])
def test_a_large_job_proposes_by_draws_and_says_so(method: str) -> None:
    texts = corpus(400, 7)
    whole = la.dedup(texts, method=method, threads=2)
    assert not any("probability of" in warning for warning in whole.warnings)
    bits = whole.settings.bits or 0
    with (
        patch.object(propose, "PATIENCE", 0.0),
        patch.object(all_pairs, "cheapest_drawing", return_value=Drawing(bits, 8, 4, 60)),
        patch.object(all_pairs, "seconds_for_all", return_value=np.inf),
    ):
        drawn = [la.dedup(texts, method=method, threads=threads) for threads in (1, 3)]
    for result in drawn:
        assert any("probability of 99% or more" in warning for warning in result.warnings)
        assert np.array_equal(result.pairs.left, drawn[0].pairs.left)
        assert np.array_equal(result.pairs.right, drawn[0].pairs.right)
    everything = set(zip(whole.pairs.left.tolist(), whole.pairs.right.tolist(), strict=True))
    found = set(zip(drawn[0].pairs.left.tolist(), drawn[0].pairs.right.tolist(), strict=True))
    assert len(everything) > 150
    assert found <= everything
    assert len(found) >= 0.98 * len(everything)
    assert (drawn[0].pairs.similarity >= 0.8).all()


@pytest.mark.parametrize(("count", "width"), [(293_000, 16), (103_000, 128), (1_000_000, 1)])
def test_smaller_jobs_compare_all(count: int, width: int) -> None:
    assert seconds_for_all(count, width) < propose.PATIENCE < seconds_for_all(2 * count, 2 * width)


def test_draws_are_taken_where_all_would_take_long() -> None:
    rng = np.random.default_rng(4)
    rows = rng.integers(0, 256, (12_000, 16), dtype=np.uint8)
    near = rows[:3000].copy()
    near[:, 3] ^= 0b1011
    rows = np.concatenate([rows, near])
    rank = rng.permutation(len(rows))

    def pairs(patience: float) -> tuple[set[tuple[int, int]], bool]:
        job = propose.NearbyRows(rows, rank, 24, most=200, limit=None, threads=2)
        with patch.object(propose, "PATIENCE", patience):
            parts = list(job.pairs(lambda share: None))
        found = {pair for one, two, _ in parts for pair in zip(one.tolist(), two.tolist(),
                                                               strict=True)}  # fmt: skip
        return found, job.drawn

    everything, drawn = pairs(10.0)
    assert not drawn
    found, drawn = pairs(0.0)
    assert drawn
    assert found <= everything
    assert len(found) >= 0.99 * len(everything) >= 2970
