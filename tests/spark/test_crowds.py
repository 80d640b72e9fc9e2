"""What counts as a crowd: many pairs of few documents that a task can hold; without a Spark."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lookalike.dedup.settings import DedupSettings
from lookalike.spark.deciding import Decider
from lookalike.spark.positions import PositionSet, packed_positions
from lookalike.spark.propose import Proposed
from lookalike.spark.signing import SignedTable

NOTHING: Any = None


@pytest.mark.parametrize(
    ("documents", "pairs", "text_bytes", "crowd"),
    [
        (100_000, 10_000_000, 300, True),
        (100_000, 10_000_000, 10_000, False),  # a gigabyte of texts
        (100_000, 700_000, 300, False),
        (100_000, 900_000, 300, False),  # less than a million
        (150_000, 1_100_000, 300, False),  # seven for each
        (250_000, 10_000_000, 300, False),
    ],
)
def test_crowds_are_small_enough_to_be_held(
    documents: int, pairs: int, text_bytes: int, crowd: bool
) -> None:
    signed = SignedTable(
        NOTHING, NOTHING, np.empty(0, np.int64), "first", 2 * documents,
        text_bytes=2 * documents * text_bytes,
    )  # fmt: skip
    needed = PositionSet.of([packed_positions(np.arange(documents))], 2 * documents)
    decider = Decider(NOTHING, DedupSettings(), NOTHING, NOTHING, [], signed)
    assert decider.is_crowd(Proposed(NOTHING, pairs, needed, [])) is crowd
