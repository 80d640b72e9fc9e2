"""Plans by a sample: what they count is what an index built of everything does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import lookalike as la
from lookalike import _native
from lookalike.advice import plan, recall_at_k
from lookalike.advice import sample as sample_module
from lookalike.advice.planner import Question
from lookalike.advice.sample import Sample
from lookalike.indexes.tables.blocks import BlockChoice
from support.running.planned import COSTS

Rows = NDArray[np.uint8]


def skewed(count: int, bits: int, seed: int = 0) -> Rows:
    """Signatures around 20 centers, and a tenth anywhere."""
    generator = np.random.default_rng(seed)
    centers = generator.integers(0, 256, (20, bits // 8), dtype=np.uint8)
    rows = centers[generator.choice(20, count, p=generator.dirichlet(np.full(20, 0.5)))]
    rows ^= np.packbits(generator.random((count, bits)) < 0.08, axis=1)
    anywhere = generator.random(count) < 0.1
    rows[anywhere] = generator.integers(0, 256, (int(anywhere.sum()), bits // 8), dtype=np.uint8)
    return rows


@settings(max_examples=20)
@given(st.sampled_from([8, 64, 72, 136]), st.integers(1, 20), st.integers(0, 20), st.integers(0, 9))
def test_levels_and_scores_are_those_of_all_slices(
    bits: int, slice_bits: int, radius: int, seed: int
) -> None:
    """Against bits counted one by one."""
    rows, queries = skewed(30, bits, seed), skewed(5, bits, seed + 1)
    widths = _native.slice_widths(bits, slice_bits)
    levels = np.zeros((5, len(widths), widths[0] + 1), np.int64)
    near, scores = np.zeros_like(levels), np.zeros((3, 5, 30), np.int32)
    _native.slice_levels(rows, queries, slice_bits, radius, levels, near)
    _native.slice_scores(rows, queries, slice_bits, scores)
    differing = np.unpackbits(rows[None] ^ queries[:, None], axis=2, bitorder="little")
    starts = np.concatenate([[0], np.cumsum(widths)])
    for place, width in enumerate(widths):
        apart = differing[:, :, starts[place] : starts[place] + width].sum(axis=2)
        for ones in range(widths[0] + 1):
            assert (levels[:, place, ones] == (apart == ones).sum(axis=1)).all()
        for expand in range(3):
            scores[expand] -= np.where(apart <= expand, width - apart, 0).astype(np.int32)
    assert not scores.any()
    assert (near <= levels).all()
    assert _native.has_sketches(bits) or (near == levels).all()


@pytest.mark.parametrize(("bits", "radius", "slice_bits"), [(64, 2, 12), (256, 10, 14)])
@pytest.mark.parametrize("given_rows", [60_000, 6_000])
def test_work_within_a_radius_is_what_the_index_does(
    bits: int, radius: int, slice_bits: int, given_rows: int
) -> None:
    """Of all signatures, or of a tenth of them."""
    rows = skewed(60_200, bits)
    queries, rows = rows[:200], rows[200:]
    question = Question(len(rows), bits, radius, None, 1.0)
    every = Sample(rows[:given_rows], queries).within(question, radius, slice_bits)
    index = la.SliceIndex(rows, slice_bits)
    done = index.within(queries, radius, explain=True).explanation
    assert done is not None
    scanned = np.mean([work is None for work in every])
    assert scanned == pytest.approx((done.lists == 0).mean(), abs=0.25)
    listed = [work for work in every if work is not None]
    if listed and (done.lists > 0).any():
        entries = np.mean([work[1] for work in listed])
        assert 0.4 < (entries + 5) / (done.postings[done.lists > 0].mean() + 5) < 2.5


@pytest.mark.parametrize(("slice_bits", "expand"), [(8, 0), (8, 1), (11, 1)])
def test_the_recall_is_what_the_index_reaches(
    slice_bits: int, expand: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Expected of many queries, it is what is found; a plan asks fewer, and tries the index."""
    monkeypatch.setattr(sample_module, "_NEAREST_QUERIES", 256)
    rows = skewed(12_000, 256)
    queries, rows = rows[:1000], rows[1000:]
    question = Question(len(rows), 256, None, 10, 0.5)
    postings, candidates, recall = Sample(rows, None).nearest(question, slice_bits, 2, 1000)[expand]
    found = la.SliceIndex(rows, slice_bits).search(queries, 10, expand=expand, explain=True)
    true = la.ScanIndex(rows).search(queries, 10)
    assert recall == pytest.approx(recall_at_k(found.ids, true.ids).mean(), abs=0.04)
    assert found.explanation is not None
    assert postings == pytest.approx(found.explanation.postings.mean(), rel=0.25)
    assert candidates == pytest.approx(found.explanation.candidates.mean(), rel=0.25)


def test_buckets_hold_what_was_counted() -> None:
    rows = skewed(8000, 64)
    choice = BlockChoice(64, 5, 2)
    question = Question(len(rows), 64, 3, None, 1.0)
    tables = la.BlockIndex(rows, 3, blocks=5, lead=2)._parts[0].tables
    own = _native.bucket_rows([table.native() for table in tables], rows)
    counted = Sample(rows, None).bucket_rows(question, choice.headers(len(rows)))
    assert counted == pytest.approx(own.mean(), rel=0.5)
    assert counted > 20 * choice.steps(len(rows)).rows


def test_matches_are_those_of_the_whole_collection() -> None:
    rows = skewed(20_000, 64)
    question = Question(20_000, 64, 6, None, 1.0)
    true = la.ScanIndex(rows).within(rows[:500], 6)
    assert Sample(rows, None).matches(question, 6) == pytest.approx(len(true.ids) / 500, rel=0.3)


# What a plan makes of it


def test_a_plan_says_what_it_rests_on() -> None:
    rows = skewed(3000, 256)
    made = plan(signatures=rows, k=10, recall=0.9, costs=COSTS)
    assert (made.count, made.bits, made.sampled) == (3000, 256, 3000)
    assert "by 3,000 signatures that were looked at" in made.reason
    assert "fair" not in made.reason
    blind = plan(count=3000, bits=256, k=10, recall=0.9, costs=COSTS)
    assert blind.sampled is None
    assert "times assume bits that\nare fair and independent" in blind.reason


def test_far_neighbors_are_not_promised() -> None:
    """Random signatures have no near ones: what assumes some promises what a sample refutes."""
    rows = np.random.default_rng(0).integers(0, 256, (20_000, 32), dtype=np.uint8)
    blind = plan(count=20_000, bits=256, k=10, recall=0.9, costs=COSTS)
    seen = plan(signatures=rows, k=10, recall=0.9, costs=COSTS)
    assert next(o for o in blind.options if o.index == "slices").settings == {"expand": 0}
    assert next(o for o in seen.options if o.index == "slices").settings != {"expand": 0}


def test_long_lists_are_noticed() -> None:
    """Most bits are zero: next to everything shares next to every list."""
    generator = np.random.default_rng(1)
    rows = np.packbits(generator.random((20_000, 256)) < 0.02, axis=1)
    made = plan(signatures=rows, radius=4, costs=COSTS)
    blind = plan(count=20_000, bits=256, radius=4, costs=COSTS)
    seen, fair = (
        next(o.microseconds for o in each.options if o.index == "slices") for each in (made, blind)
    )
    assert seen > 5 * fair


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ({}, "count and bits, or signatures, are required"),
        ({"count": 10}, "count and bits, or signatures, are required"),
        (
            {"signatures": np.zeros((9, 8), np.uint8), "bits": 128},
            "bits is 128 and signatures have",
        ),
        ({"signatures": np.zeros((9, 8), np.uint8), "count": 5}, "count is 5 and 9 signatures"),
        ({"signatures": np.zeros((1, 8), np.uint8)}, "there are 1 signatures to measure on"),
        ({"signatures": np.zeros((9, 8), np.uint8), "queries": np.zeros((3, 4), np.uint8)}, "bits"),
        (
            {"signatures": np.zeros((9, 8), np.uint8), "queries": np.zeros((0, 8), np.uint8)},
            "and 0 queries",
        ),
        ({"count": 9, "bits": 64, "queries": np.zeros((3, 8), np.uint8)}, "no others to measure"),
    ],
)
def test_samples_that_make_no_sense(given_: dict[str, object], message: str) -> None:
    with pytest.raises(la.LookalikeError, match=message):
        plan(radius=3, costs=COSTS, **given_)  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [2, 5, 40])
def test_few_signatures_and_copies_will_do(count: int) -> None:
    rows = np.zeros((count, 8), np.uint8)
    for asked in ({"radius": 3}, {"k": 10, "recall": 0.5}):
        made = plan(signatures=rows, costs=COSTS, **asked)
        assert made.chosen.obstacle is None
        assert made.build(rows).search(rows[:1], 1).ids.tolist() == [[0]]
    assert plan(signatures=rows, queries=rows[:1], radius=3, costs=COSTS).sampled == count


@given(
    counts=st.lists(st.integers(0, 50), min_size=1, max_size=60),
    seed=st.integers(0, 9),
)
def test_lists_are_judged_by_those_in_as_dense_a_place(counts: list[int], seed: int) -> None:
    by = np.random.default_rng(seed).integers(0, 6, len(counts))
    mean, variance = sample_module.local_moments(np.array(counts), by)
    order = sorted(range(len(counts)), key=lambda at: by[at])
    for at in range(len(counts)):
        same = [place for place, one in enumerate(order) if by[one] == by[at]]
        most = sample_module._ALIKE
        alike = [counts[one] for one in order[max(0, same[0] - most) : same[-1] + 1 + most]]
        assert mean[at] == pytest.approx(max(np.mean(alike), 1e-12))
        assert variance[at] == pytest.approx(np.var(alike), abs=1e-6)
