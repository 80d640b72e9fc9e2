"""The core refuses arrays that do not fit together, whichever of our own mistakes made them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lookalike import _native

ROWS = np.arange(40, dtype=np.uint8).reshape(5, 8)
DRAWS = np.arange(4, dtype=np.int32).reshape(1, 4)
WIDE = np.zeros((2, 16), np.uint8)
IDS = np.arange(5)


def ints(*shape: int) -> NDArray[np.int32]:
    return np.zeros(shape, np.int32)


def deal_bands(**wrong: Any) -> None:
    given: dict[str, Any] = {
        "keys": np.zeros((2, 2), np.uint32),
        "positions": longs(0, 1),
        "buckets": 2,
        "entries": np.zeros((4, 2), np.uint64),
        "begins": longs(0, 0, 0),
    }
    _native.deal_bands(**{**given, **wrong})


def longs(*values: int) -> NDArray[np.int64]:
    return np.array(values, np.int64)


def words(*values: int) -> NDArray[np.uint32]:
    return np.array(values, np.uint32)


def source() -> _native.Source:
    texts = _native.Documents.from_list(["a b", "c"], 0)
    return _native.Source.of_texts(texts, _native.TextFeatures(False, [1], True, 1, [], False))


def segment(rows: NDArray[np.uint8] = ROWS) -> _native.Segment:
    return _native.Segment(rows, None, True, None, len(rows))


def nearest(**arrays: Any) -> None:
    """Search for the nearest of one query, with one array of the answer another one."""
    answer: dict[str, Any] = {
        "ids": np.zeros((1, 2), np.int64),
        "distances": ints(1, 2),
        "scores": ints(1, 2),
        "rest": ints(1),
        "proven": np.zeros(1, np.uint8),
        "work": np.zeros((5, 1), np.int64),
    } | arrays
    settings = _native.NearestSettings(
        k=2, expand=1, admit=1, rerank=5, exact=False, or_scan=False, explain=False
    )
    query = ROWS[:1]
    _native.slice_nearest([segment()], 8, query, settings, 1, _native.NearestAnswer(**answer))


def table() -> _native.Table:
    return _native.Table(ROWS.copy(), [], None, words(0, 5), False)


def prefix_search(**given: Any) -> None:
    """Look for one query in one order, with one argument another one."""
    order = _native.Table(ROWS.copy(), [], words(0, 1, 2, 3, 4), words(0, 5), False)
    fitting: dict[str, Any] = {
        "orders": [order],
        "rows": ROWS,
        "ids": None,
        "removed": None,
        "queries": ROWS[:1],
        "keys": np.zeros((1, 1), np.uint64),
        "examine": 5,
        "threads": 1,
        "work": np.zeros((2, 1), np.int64),
    }
    answer = {"near": np.zeros((1, 2), np.int64), "distances": ints(1, 2)}
    if given.keys() & answer.keys():
        _native.prefix_nearest(**fitting | answer | given)
    else:
        _native.prefix_within(radius=3, limit=9, **fitting | given)


def flip_within(weights: Any, queries: Any = ROWS, flips: int = 2, ids: Any = None) -> Any:
    settings = _native.FlipSettings(radius=1, flips=flips, first=False, differences=False)
    weighed = _native.FlipWeights(weights, 0)
    return _native.flip_within(table(), ids, queries, weighed, costs(), settings, 9, 1)


def costs(steps: int = 1023) -> _native.FlipCosts:
    return _native.FlipCosts(1.0, np.zeros(steps, np.uint16))


def pairs_of(kind: str, left: Any, right: Any, size: int = 1) -> None:
    similar = np.zeros(size)
    if kind != "cosine":
        compare = getattr(_native, kind)
        compare(source(), source(), left, right, 1, similar)
    else:
        _native.cosine(source(), source(), left, right, 1, similar, _native.WeightKind.count, None)


def reals(*values: float) -> NDArray[np.float64]:
    return np.array(values, np.float64)


def sampled(looked_up: bool = True) -> _native.Samples:
    samples = _native.Samples(2, 9, 9)
    samples.observe(source(), 1)
    if looked_up:
        samples.look_up(source(), 1)
    return samples


KEYS = np.zeros((2, 5), np.uint32)


def group_pairs(**given: Any) -> None:
    fitting: dict[str, Any] = {
        "keys": KEYS,
        "large_keys": words(),
        "large_offsets": longs(0, 0),
        "band": 0,
        "rows": words(0, 1),
        "offsets": longs(0, 2),
        "most": 9,
        "first_new": 0,
        "threads": 1,
    }
    _native.group_pairs(**fitting | given)


LISTS = np.zeros(8 * 256, np.uint32)
MARKS = np.ones(5, np.uint8)


def repeat_texts() -> _native.RepeatTexts:
    return _native.RepeatTexts(_native.Documents.from_list(["a b", "c"], 0), longs(0, 1))


def far_removals(**wrong: Any) -> None:
    """Cut one window of the first text, with one argument another one."""
    given: dict[str, Any] = {
        **dict.fromkeys(("places", "documents", "firsts"), longs(0)),
        "own": longs(7, 8),
        "words": 2,
        "unit": 0,
        "boundary": 0,
        "threads": 1,
    }
    repeat_texts().far_removals(**{**given, **wrong})


MISFITS: dict[str, Callable[[], Any]] = {
    "scan_nearest: width": lambda: _native.scan_nearest(
        ROWS, None, True, WIDE, 1, 1, np.zeros((2, 1), np.int64), ints(2, 1)
    ),
    "scan_nearest: k": lambda: _native.scan_nearest(
        ROWS, None, True, ROWS, 6, 1, np.zeros((5, 6), np.int64), ints(5, 6)
    ),
    "scan_nearest: ids": lambda: _native.scan_nearest(
        ROWS, IDS[:4], True, ROWS, 1, 1, np.zeros((5, 1), np.int64), ints(5, 1)
    ),
    "scan_nearest: answer": lambda: _native.scan_nearest(
        ROWS, None, True, ROWS, 2, 1, np.zeros((5, 2), np.int64), ints(5, 1)
    ),
    "scan_nearest: marks": lambda: _native.scan_nearest(
        ROWS, None, True, ROWS, 1, 1, np.zeros((5, 1), np.int64), ints(5, 1), ROWS[0, :1]
    ),
    "scan_nearest: k of those without a mark": lambda: _native.scan_nearest(
        ROWS, None, True, ROWS, 1, 1, np.zeros((5, 1), np.int64), ints(5, 1), MARKS
    ),
    "scan_within: marks": lambda: _native.scan_within(
        ROWS, None, True, ROWS, 1, 9, 1, np.zeros(1, np.uint8)
    ),
    "scan_within: width": lambda: _native.scan_within(ROWS, None, True, WIDE, 1, 9, 1),
    "scan_within: ids": lambda: _native.scan_within(ROWS, IDS[:1], True, ROWS, 1, 9, 1),
    "scan_pairs: ids": lambda: _native.scan_pairs(ROWS, IDS[:1], True, 1, 9, 1),
    "scan_all: width": lambda: _native.scan_all(ROWS, WIDE, 1, ints(5, 2)),
    "scan_all: answer": lambda: _native.scan_all(ROWS, ROWS, 1, ints(5, 4)),
    "paired_distances: count": lambda: _native.paired_distances(ROWS, ROWS[:2], ints(5)),
    "paired_distances: answer": lambda: _native.paired_distances(ROWS, ROWS, ints(4)),
    "hash_rows": lambda: _native.hash_rows(ROWS, np.zeros(4, np.uint64)),
    "segment: ids": lambda: _native.Segment(ROWS, IDS[:3], True, None, 5),
    "segment: removed": lambda: _native.Segment(ROWS, None, True, np.zeros(3, np.uint8), 5),
    "segment: alive": lambda: _native.Segment(ROWS, None, True, None, 6),
    "slice_nearest: ids": lambda: nearest(ids=np.zeros((1, 1), np.int64)),
    "slice_nearest: distances": lambda: nearest(distances=ints(2, 2)),
    "slice_nearest: scores": lambda: nearest(scores=ints(1, 3)),
    "slice_nearest: rest": lambda: nearest(rest=ints(0)),
    "slice_nearest: proven": lambda: nearest(proven=np.zeros(0, np.uint8)),
    "slice_nearest: work": lambda: nearest(work=np.zeros((4, 1), np.int64)),
    "prefix_within: width": lambda: prefix_search(rows=np.zeros((5, 16), np.uint8)),
    "prefix_within: ids": lambda: prefix_search(ids=IDS[:4]),
    "prefix_within: marks": lambda: prefix_search(removed=MARKS[:4]),
    "prefix_within: keys": lambda: prefix_search(keys=np.zeros((2, 1), np.uint64)),
    "prefix_within: examine": lambda: prefix_search(examine=6),
    "prefix_within: work": lambda: prefix_search(work=np.zeros((1, 1), np.int64)),
    "prefix_within: orders": lambda: prefix_search(
        orders=[_native.Table(WIDE, [], words(0, 1), words(0, 2), False)]
    ),
    "prefix_nearest: ids": lambda: prefix_search(near=np.zeros((2, 2), np.int64)),
    "prefix_nearest: distances": lambda: prefix_search(distances=ints(1, 3)),
    "prefix_keys: bits": lambda: _native.prefix_keys(ROWS, words(64), 1, np.zeros(5, np.uint64)),
    "prefix_keys: too many": lambda: _native.prefix_keys(
        ROWS, words(*range(65)), 1, np.zeros(5, np.uint64)
    ),
    "prefix_keys: keys": lambda: _native.prefix_keys(ROWS, words(1), 1, np.zeros(4, np.uint64)),
    "slice_nearest: scores that are to be proven": lambda: _native.NearestSettings(
        k=1, expand=1, admit=1, rerank=1, exact=True, or_scan=False, explain=False, by_score=True
    ),
    "slice_within: width": lambda: _native.slice_within([segment()], 8, WIDE, 1, 9, 1),
    "slice_widths: none": lambda: _native.slice_widths(64, 0),
    "optimistic_distances": lambda: _native.optimistic_distances(264, 33, 1),
    "slice_proofs: distances": lambda: _native.slice_proofs(
        64, 8, 1, 1, ints(2), ints(1), np.zeros(2, np.uint8)
    ),
    "slice_proofs: proofs": lambda: _native.slice_proofs(
        64, 8, 1, 1, ints(2), ints(2), np.zeros(1, np.uint8)
    ),
    "slice_proofs: scores": lambda: _native.slice_proofs(
        64, 8, 1, 1, ints(1) + 65, ints(1), np.zeros(1, np.uint8)
    ),
    "build_lists: offsets": lambda: _native.build_lists(
        ROWS, 8, 1, LISTS[1:], words(*[0] * 40), np.zeros(40, np.uint16), None, 32
    ),
    "build_lists: postings": lambda: _native.build_lists(
        ROWS, 8, 1, LISTS, words(*[0] * 39), None, None, 32
    ),
    "build_lists: sketches": lambda: _native.build_lists(
        ROWS, 8, 1, LISTS, words(*[0] * 40), np.zeros(39, np.uint16), None, 32
    ),
    "build_lists: values": lambda: _native.build_lists(
        ROWS, 8, 1, LISTS, words(*[0] * 40), None, words(*[0] * 40), 32
    ),
    "build_lists: no values": lambda: _native.build_lists(
        ROWS, 8, 1, words(*[0] * 128), words(*[0] * 40), None, None, 4
    ),
    "slice_widths: too many": lambda: _native.optimistic_distances(8, [4, 5], 1),
    "count_lists": lambda: _native.count_lists(ROWS, 8, 1, LISTS[1:], 32),
    "fill_lists: lists": lambda: _native.fill_lists(
        ROWS, 8, 1, LISTS, 0, 8 * 256 + 1, words(*[0] * 40), None, None, 32
    ),
    "merge_lists: none": lambda: _native.merge_lists([], 8, 1, LISTS, words(), None),
    "merge_lists: no lists": lambda: _native.merge_lists(
        [segment()], 8, 1, LISTS, words(*[0] * 40), None
    ),
    "table: header": lambda: _native.Table(ROWS, [(60, 8)], None, words(0, 5), False),
    "build_table: places": lambda: _native.build_table(ROWS, [], 1, None, words(0), words(0, 0)),
    "build_table: offsets": lambda: _native.build_table(
        ROWS, [(0, 1)], 1, None, words(*[0] * 5), words(0, 0)
    ),
    "build_table: copy": lambda: _native.build_table(
        ROWS, [], 1, np.zeros((4, 8), np.uint8), words(*[0] * 5), words(0, 0)
    ),
    "find_offsets": lambda: _native.find_offsets(ROWS, [(0, 1)], 1, words(0, 0)),
    "block_within: width": lambda: _native.block_within([table()], None, WIDE, 1, False, 9, 1),
    "block_within: ids": lambda: _native.block_within(
        [table()], IDS[:2], ROWS, 1, False, 9, 1
    ),
    "flip_within: width": lambda: flip_within(None, queries=WIDE),
    "flip_within: ids": lambda: flip_within(None, ids=IDS[:2]),
    "flip_within: weights": lambda: flip_within(np.zeros((4, 64), np.float32)),
    "flip_within: sets": lambda: flip_within(np.zeros((5, 3), np.uint32)),
    "flip_attempts: weights": lambda: _native.flip_attempts(
        np.zeros(1, np.uint64), _native.FlipWeights(np.zeros((1, 8), np.float32), 4), costs(),
        5, 2, 1, longs(0),
    ),
    "flip_costs": lambda: costs(1022),
    "flip_attempts": lambda: _native.flip_attempts(
        np.zeros(2, np.uint64), _native.FlipWeights(None, 0), costs(), 8, 2, 1, longs(0)
    ),
    "band_keys: bands": lambda: _native.band_keys(ROWS, 5, 0, KEYS),
    "band_keys: rows": lambda: _native.band_keys(ROWS, 4, 1, KEYS),
    "band_groups": lambda: _native.band_groups(KEYS, 2),
    "group_pairs: band": lambda: group_pairs(band=2),
    "group_pairs: rows": lambda: group_pairs(rows=words(0, 5)),
    "group_pairs: offsets": lambda: group_pairs(offsets=longs(0, 3)),
    "group_pairs: descending": lambda: group_pairs(offsets=longs(2, 0)),
    "group_pairs: large": lambda: group_pairs(large_offsets=longs(0, 1)),
    "equal_values_at: rows": lambda: _native.equal_values_at(
        ROWS, 2, longs(0), longs(5), 1, ints(1)
    ),
    "equal_values_at: negative": lambda: _native.equal_values_at(
        ROWS, 2, longs(-1), longs(0), 1, ints(1)
    ),
    "equal_values_at: answer": lambda: _native.equal_values_at(
        ROWS, 2, longs(0), longs(0), 1, ints(2)
    ),
    "equal_values_at: values": lambda: _native.equal_values_at(
        ROWS, 3, longs(0), longs(0), 1, ints(1)
    ),
    "deal_bands: buckets": lambda: deal_bands(buckets=0),
    "deal_bands: positions": lambda: deal_bands(positions=longs(0)),
    "deal_bands: entries": lambda: deal_bands(entries=np.zeros((3, 2), np.uint64)),
    "deal_bands: begins": lambda: deal_bands(begins=longs(0, 0)),
    "components: rows": lambda: _native.components(longs(0), longs(2), longs(0, 0)),
    "components: sides": lambda: _native.components(longs(0, 1), longs(1), longs(0, 0)),
    "stars: order": lambda: _native.stars(longs(0, 2), longs(), longs(), longs(0, 0)),
    "stars: pairs": lambda: _native.stars(longs(0, 1), longs(0), longs(), longs(0, 0)),
    "stars: neighbors": lambda: _native.stars(longs(0, 1), longs(0), longs(2), longs(0, 0)),
    "block_pairs: marks": lambda: _native.block_pairs(ROWS, np.zeros(4, np.uint8), 1, 9, 1),
    "drawn_pairs: marks": lambda: _native.drawn_pairs(
        ROWS, np.zeros(4, np.uint8), DRAWS, 2, 0, 1, 1e9, 9, 1
    ),
    "drawn_pairs: keys": lambda: _native.drawn_pairs(ROWS, None, DRAWS, 5, 0, 1, 1e9, 9, 1),
    "drawn_pairs: no key": lambda: _native.drawn_pairs(ROWS, None, DRAWS, 0, 0, 1, 1e9, 9, 1),
    "drawn_pairs: near": lambda: _native.drawn_pairs(ROWS, None, DRAWS, 2, 3, 1, 1e9, 9, 1),
    "drawn_pairs: bits": lambda: _native.drawn_pairs(
        ROWS, None, DRAWS + 8 * ROWS.shape[1], 2, 0, 1, 1e9, 9, 1
    ),
    "drawn_pairs: negative": lambda: _native.drawn_pairs(ROWS, None, DRAWS - 1, 2, 0, 1, 1e9, 9, 1),
    "drawn_pairs: width": lambda: _native.drawn_pairs(
        ROWS, None, np.zeros((1, 65), np.int32), 2, 0, 1, 1e9, 9, 1
    ),
    "of_features: offsets": lambda: _native.Source.of_features(
        longs(0, 2), np.zeros(1, np.uint64), np.zeros(1)
    ),
    "of_features: weights": lambda: _native.Source.of_features(
        longs(0, 1), np.zeros(1, np.uint64), np.zeros(2)
    ),
    "vocabulary": lambda: _native.Vocabulary(9).add(
        np.zeros(2, np.uint64), np.zeros(1, np.uint64), np.zeros(2, np.uint64)
    ),
    "count_features": lambda: _native.count_features(source(), 1, longs(0)),
    "simhash: rows": lambda: _native.simhash(
        source(), _native.WeightKind.count, None, 0, 1, ROWS.copy(), None
    ),
    "simhash: sums": lambda: _native.simhash(
        source(), _native.WeightKind.count, None, 0, 1, ROWS[:2].copy(),
        np.zeros((2, 8), np.float32),
    ),
    "minhash: rows": lambda: _native.minhash(source(), [1], [0], 1, np.zeros((1, 1), np.uint32)),
    "minhash: terms": lambda: _native.minhash(source(), [1], [], 1, np.zeros((2, 1), np.uint32)),
    "packed_minhash": lambda: _native.packed_minhash(
        source(), [1] * 8, [0] * 8, 2, 1, np.zeros((2, 1), np.uint8)
    ),
    "pack_minima: rows": lambda: _native.pack_minima(
        np.zeros((3, 8), np.uint32), 1, True, 1, np.zeros((2, 1), np.uint8)
    ),
    "given_hashes: modulus": lambda: _native.GivenHashes().add_linear(1, 1, 0),
    "given_hashes: table": lambda: _native.GivenHashes().add_table(
        np.zeros(2, np.uint64), np.zeros(1, np.uint32)
    ),
    "given_hashes: values": lambda: _native.GivenHashes().minima(
        source(), 1, np.zeros((2, 1), np.uint32)
    ),
    "ngrams: none": lambda: _native.TextFeatures(False, [], True, 1, [], False),
    "ngrams: order": lambda: _native.TextFeatures(False, [2, 1], True, 1, [], False),
    "ngrams: twice": lambda: _native.TextFeatures(False, [2, 2], True, 1, [], False),
    "of_kinds: factors": lambda: _native.Source.of_kinds([source()], []),
    "of_kinds: documents": lambda: _native.Source.of_kinds(
        [source(), _native.Source.of_features(longs(0), np.zeros(0, np.uint64), np.zeros(0))],
        [1.0, 1.0],
    ),
    "equal_values": lambda: _native.equal_values(ROWS, ROWS, 65, 1, ints(5)),
    "project: matrix": lambda: _native.project(
        np.zeros((2, 3), np.float32), np.zeros((3, 7), np.float32), 1, np.zeros((2, 1), np.uint8)
    ),
    "jaccard: documents": lambda: pairs_of("jaccard", longs(0), longs(2)),
    "jaccard: sides": lambda: pairs_of("jaccard", longs(0, 1), longs(1)),
    "containment: documents": lambda: pairs_of("containment", longs(0), longs(2)),
    "containment: answer": lambda: pairs_of("containment", longs(0), longs(0), 2),
    "count_distinct": lambda: _native.count_distinct(source(), 1, longs(0)),
    "total_weights: answer": lambda: _native.total_weights(
        source(), _native.WeightKind.count, None, 1, reals(0)
    ),
    "total_weights: vocabulary": lambda: _native.total_weights(
        source(), _native.WeightKind.idf, None, 1, reals(0, 0)
    ),
    "FeatureSets: common": lambda: _native.FeatureSets(_native.WeightKind.count, 9, 9, 3),
    "Samples: weights": lambda: _native.Samples(1, 1, 1, _native.WeightKind.idf, None),
    "list_features": lambda: _native.list_features(source(), _native.WeightKind.tfidf, None, 1),
    "Samples: size": lambda: _native.Samples(0, 1, 1),
    "Samples: leaders": lambda: _native.Samples(1, 1, 0),
    "Samples: late": lambda: sampled().observe(source(), 1),
    "Samples: unknown": lambda: sampled().look_up(source(), 1),
    "Samples: early": lambda: sampled(False).pairs(0, 1, reals(1, 1, 1), 0, 1),
    "Samples: needs": lambda: sampled().pairs(0, 1, reals(1, 1), 0, 1),
    "Samples: places": lambda: sampled().pairs(0, 9, reals(1, 1, 1), 0, 1),
    "cosine: documents": lambda: pairs_of("cosine", longs(-1), longs(0)),
    "cosine: answer": lambda: pairs_of("cosine", longs(0), longs(0), 2),
    "take": lambda: _native.Documents.from_list(["a"], 0).take(longs(1)),
    "part": lambda: _native.Documents.from_list(["a"], 0).part(2, 3),
    "first_equal": lambda: _native.Documents.from_list(["a"], 0).first_equal(1, longs(0, 0)),
    "json_columns: beyond": lambda: _native.json_columns(
        np.frombuffer(b"{}", np.uint8), longs(3), ["a"], 1
    ),
    "json_columns: descending": lambda: _native.json_columns(
        np.frombuffer(b"{}", np.uint8), longs(2, 1), ["a"], 1
    ),
    "far_removals: places": lambda: far_removals(places=longs(4)),
    "far_removals: documents": lambda: far_removals(documents=longs()),
    "far_removals: descending": lambda: far_removals(
        places=longs(2, 0), documents=longs(0, 0), firsts=longs(0, 0)
    ),
    "far_removals: own": lambda: far_removals(own=longs(7)),
    "far_removals: no window": lambda: far_removals(places=longs(2)),
    "far_removals: too long": lambda: far_removals(words=3),
    "far_removals: boundary": lambda: far_removals(boundary=5),
    "fingerprints: beyond": lambda: repeat_texts().fingerprints(longs(4), 1, 0, 1, 2, 1),
    "fingerprints: descending": lambda: repeat_texts().fingerprints(longs(2, 0), 1, 0, 1, 2, 1),
    "fingerprints: unit": lambda: repeat_texts().fingerprints(longs(0), 0, 3, 1, 2, 1),
}  # fmt: skip


@pytest.mark.parametrize("misfit", MISFITS)
def test_what_does_not_fit_is_refused(misfit: str) -> None:
    with pytest.raises(_native.BorderError, match="the core was called with"):
        MISFITS[misfit]()


def test_what_fits_is_not() -> None:
    """The helpers above, with nothing changed: only the misfit makes them fail."""
    nearest()
    far_removals()
    _native.slice_proofs(64, 8, 1, 1, ints(2) + 64, ints(2) - 1, np.zeros(2, np.uint8))
    flip_within(None)
    flip_within(np.zeros((5, 64), np.float32))
    flip_within(np.zeros((5, 2), np.uint32))
    group_pairs()
    sampled().pairs(0, 1, reals(1, 1, 1), 0, 1)
    pairs_of("jaccard", longs(0), longs(1))
    pairs_of("containment", longs(0), longs(1))
    pairs_of("cosine", longs(0), longs(1))


def test_the_query_whose_weights_are_no_numbers_is_told() -> None:
    weights = np.zeros((3, 64), np.float32)
    weights[2, 5] = np.nan
    with pytest.raises(_native.NotFinite) as raised:
        _native.flip_choices(
            _native.FlipWeights(weights, 0), None, costs(), 8, 2, 1, np.zeros((3, 4), np.uint32)
        )
    assert raised.value.query == 2
