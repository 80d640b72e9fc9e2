"""Features weigh by their rarity: what is found is what comparing all with all finds."""

from __future__ import annotations

import importlib
import random
from collections.abc import Sequence
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike import _native
from lookalike.dedup.propose import MISSED, SAMPLE, least_found
from lookalike.features.weights import NEVER_COMMON
from support.oracles import dedup as oracle

MANY = 1 << 30
ROUNDING = 1e-12
Sets = Sequence[set[int]]
Found = dict[tuple[int, int], float]

some_sets = st.lists(st.sets(st.integers(0, 15), max_size=9), max_size=14)
similar_sets = st.builds(
    lambda core, rests: [core | rest for rest in rests] + [set(core), set()],
    st.sets(st.integers(0, 12), max_size=12),
    st.lists(st.sets(st.integers(8, 60), max_size=6), max_size=12),
)
thresholds = st.sampled_from([1e-6, 0.1, 1 / 3, 0.5, 0.8, 1.0]) | st.floats(1e-6, 1.0)
weightings = st.sampled_from([(True, None), (True, 2), (True, 4), (False, 2), (False, 5)])


def every_pair(
    sets: Sets, measure: str, weighting: tuple[bool, int | None], threshold: float, old: int = 0
) -> Found:
    rare, common = weighting
    weights = oracle.frequency_weights(sets, rare=rare, common=common)
    found = {}
    for left, right in combinations(range(len(sets)), 2):
        similarity = oracle.weighted_similarity(measure, sets[left], sets[right], weights)
        if right >= old and similarity > 0 and similarity >= threshold - ROUNDING:
            found[left, right] = similarity
    return found


def source(sets: Sets) -> _native.Source:
    lists = [[*each, *each] for each in sets]  # repetitions are no features of their own
    offsets = np.cumsum([0, *map(len, lists)], dtype=np.int64)
    features = np.array([each << 28 for bag in lists for each in bag], np.uint64)
    return _native.Source.of_features(offsets, features, np.ones(len(features)))


def parts_of(sets: Sets, parts: int) -> list[_native.Source]:
    cuts = [len(sets) * part // parts for part in range(parts + 1)]
    return [source(sets[begin:end]) for begin, end in pairwise(cuts)]


def kind_of(weighting: tuple[bool, int | None]) -> _native.WeightKind:
    return _native.WeightKind.idf if weighting[0] else _native.WeightKind.uniform


def joined(
    sets: Sets,
    measure: str,
    weighting: tuple[bool, int | None],
    threshold: float,
    old: int = 0,
    *,
    parts: int = 1,
    postings: int = MANY,
    threads: int = 1,
) -> list[tuple[int, int, float]]:
    made = _native.FeatureSets(kind_of(weighting), 10, MANY, weighting[1] or NEVER_COMMON)
    for read in (made.observe, made.add):
        for part in parts_of(sets, parts):
            read(part, threads)
    marks = (np.arange(len(sets)) < old).astype(np.uint8)
    chosen = getattr(_native.Measure, measure)
    join = _native.SetJoin(made, chosen, threshold, marks, postings, threads)
    found: list[Any] = []
    while not join.finished:
        found += zip(*(column.tolist() for column in join.next(3, threads)), strict=True)
    return found


@settings(max_examples=300, deadline=None)
@given(
    some_sets | similar_sets,
    st.sampled_from(["jaccard", "containment"]),
    weightings,
    thresholds,
    st.integers(0, 6),
    st.integers(1, 3),
    st.sampled_from([1, 7, MANY]),
    st.integers(1, 3),
)
@example([{1, 2}, {1, 2}], "jaccard", (True, None), 0.5, 0, 1, MANY, 1)  # all weigh nothing
@example([{1, 2}], "containment", (True, None), 0.5, 0, 1, MANY, 1)
def test_the_join_finds_every_pair_and_no_other(
    sets: Sets,
    measure: str,
    weighting: tuple[bool, int | None],
    threshold: float,
    old: int,
    parts: int,
    postings: int,
    threads: int,
) -> None:
    truth = every_pair(sets, measure, weighting, threshold, old)
    how: Any = {"parts": parts, "postings": postings, "threads": threads}
    found = joined(sets, measure, weighting, threshold, old, **how)
    assert len({pair[:2] for pair in found}) == len(found)
    # Sums of weights are exact, so that similarities are, too.
    assert {(left, right): similarity for left, right, similarity in found} == truth


def test_the_order_of_pairs_does_not_depend_on_threads() -> None:
    rng = random.Random(7)
    sets = [set(rng.choices(range(40), k=rng.randrange(15))) for _ in range(300)]
    found = [
        joined(sets, "jaccard", (True, 60), 0.4, threads=threads, parts=threads)
        for threads in (1, 2, 3)
    ]
    assert len(found[0]) > 30
    assert found[0] == found[1] == found[2]


def vocabulary_of(sets: Sets, weighting: tuple[bool, int | None]) -> _native.Vocabulary:
    repeated, made = _native.RepeatedFeatures(10), _native.Vocabulary(MANY)
    for part in parts_of(sets, 2):
        repeated.observe(part, 2)
    for part in parts_of(sets, 2):
        made.observe(part, 2, repeated)
    if weighting[1] is not None:
        made.leave_out_above(weighting[1])
    return made


def proposed(
    sets: Sets,
    weighting: tuple[bool, int | None],
    needed: Sequence[float],
    *,
    old: int = 0,
    share: float = 0.0,
    parts: int = 1,
    threads: int = 1,
) -> set[tuple[int, int]]:
    learned = vocabulary_of(sets, weighting)
    made = _native.Samples(len(needed) - 1, MANY, 1000, kind_of(weighting), learned)
    for read in (made.observe, made.look_up):
        for part in parts_of(sets, parts):
            read(part, threads)
    some = made.pairs(0, len(sets), np.array(needed), old, threads, share)
    pairs = list(zip(np.minimum(*some).tolist(), np.maximum(*some).tolist(), strict=True))
    assert len(set(pairs)) == len(pairs)
    return set(pairs)


@settings(max_examples=150, deadline=None)
@given(
    some_sets | similar_sets,
    weightings,
    thresholds,
    st.integers(0, 5),
    st.integers(1, 3),
    st.integers(1, 2),
)
def test_of_documents_smaller_than_a_sample_all_pairs_are_proposed(
    sets: Sets,
    weighting: tuple[bool, int | None],
    threshold: float,
    old: int,
    parts: int,
    threads: int,
) -> None:
    needed = [1.0] + [80 * threshold * (1 - 1e-9)] * 80
    found = proposed(sets, weighting, needed, old=old, parts=parts, threads=threads)
    assert found == set(every_pair(sets, "containment", weighting, threshold, old))
    light = proposed(sets, weighting, needed, old=old, share=threshold * (1 - 1e-9))
    assert set(every_pair(sets, "jaccard", weighting, threshold, old)) <= light <= found


@pytest.mark.parametrize("threshold", [0.1, 0.3, 0.5, 0.8])
@pytest.mark.parametrize("ratio", [1, 10])
def test_the_chance_is_kept_whatever_the_weights(threshold: float, ratio: int) -> None:
    """Of documents with light and heavy features, at the threshold and above."""
    rng = random.Random(round(threshold * 1000) + ratio)
    light = list(range(1000))
    heavy = [1000 + each for each in range(3000 * ratio)]
    sets = [{*heavy, *light[::2]}]
    for number in range(1, 1500):
        own = {number << 20 | each for each in range(rng.randrange(1, 60))}
        sets.append({*own, *rng.sample(light, 400), *rng.sample(heavy, rng.randrange(500))})
    weights = oracle.frequency_weights(sets, rare=True, common=None)
    truth = {
        (0, row)
        for row in range(1, len(sets))
        if oracle.weighted_similarity("containment", sets[0], sets[row], weights) >= threshold
    }
    assert len(truth) > 100
    needed = [float(MANY)] * SAMPLE + [float(least_found(SAMPLE, threshold))]
    found = proposed(sets, (True, None), needed)
    assert len(found & truth) >= len(truth) * (1 - MISSED)


words = st.sampled_from("a b c d e f g h i j".split())
texts = st.lists(st.lists(words, max_size=9).map(" ".join), max_size=9)


def pairs_of(result: Any, old: int) -> Found:
    found = result.different_pairs
    rows = zip(found.left.tolist(), found.right.tolist(), found.similarity.tolist(), strict=True)
    return {(left, right): similarity for left, right, similarity in rows if right >= old}


@settings(max_examples=120, deadline=None)
@given(
    texts,
    texts,
    st.sampled_from(["jaccard", "containment"]),
    weightings,
    st.sampled_from([0.1, 0.3, 0.5, 0.8, 1.0]),
    st.booleans(),
    st.sampled_from([1, 2]),
    st.integers(1, 2),
)
@example(["a b"], [], "jaccard", (True, None), 0.5, False, 1, 1)
@example(["a b", "a b c"], ["a b"], "containment", (True, None), 0.5, True, 1, 1)
@example(["", "a b", "", "a c", "a b"], [], "jaccard", (True, None), 0.1, False, 1, 1)
def test_dedup_finds_what_brute_force_finds(
    new: list[str],
    old: list[str],
    base: str,
    weighting: tuple[bool, int | None],
    threshold: float,
    exact: bool,
    ngram: int,
    threads: int,
) -> None:
    """Also with copies, empty documents, one document, and an old corpus."""
    rare, common = weighting
    result: Any = la.dedup(
        new,
        against=old or None,
        measure=f"weighted-{base}" if rare else base,
        common=common,
        threshold=threshold,
        exact=exact,
        ngram=ngram,
        threads=threads,
    )
    every = [*old, *new]
    firsts = [row for row, text in enumerate(every) if text.strip() and every.index(text) == row]
    sets = [set(oracle.shingles(every[row], ngram)) for row in firsts]
    weights = oracle.frequency_weights(sets, rare=rare, common=common)
    truth = {}
    for (one, left), (two, right) in combinations(enumerate(firsts), 2):
        similarity = oracle.weighted_similarity(base, sets[one], sets[two], weights)
        if right >= len(old) and similarity > 0 and similarity >= threshold - ROUNDING:
            truth[left, right] = similarity
    assert pairs_of(result, len(old)) == pytest.approx(truth, abs=ROUNDING)
    # Every dropped document is as similar to a kept one as is said.
    for row in np.flatnonzero(~result.keep).tolist():
        place, kept_row = len(old) + row, result.duplicate_of[row]
        other = len(old) + kept_row if kept_row >= 0 else result.matched_old[row]
        if every[other] != every[place]:
            pair = (every.index(every[place]), every.index(every[other]))
            one, two = (firsts.index(each) for each in sorted(pair))
            similarity = oracle.weighted_similarity(base, sets[one], sets[two], weights)
            assert result.similarity[row] == pytest.approx(similarity, abs=ROUNDING)
            assert similarity >= threshold - ROUNDING


def standards(count: int, boilerplate: int) -> tuple[list[str], list[tuple[int, int]]]:
    """Return documents with much text in common, and which of them revise an earlier one."""
    rng = random.Random(3)
    front = " ".join(f"notice{each}" for each in range(boilerplate))
    texts: list[str] = []
    related = []
    for number in range(count):
        own = [f"w{rng.randrange(10**9)}" for _ in range(200)]
        if number % 4 == 3:
            related.append((number - 1, number))
            own[:60] = texts[-1].split()[boilerplate : boilerplate + 60]
        texts.append(f"{front} {' '.join(own)}")
    return texts, related


@pytest.mark.parametrize("exact", [False, True])
def test_boilerplate_relates_nothing(exact: bool) -> None:
    texts, related = standards(80, 400)
    how: Any = {"threshold": 0.15, "exact": exact}
    for chosen in (
        {"measure": "weighted-jaccard"},
        {"measure": "weighted-containment"},
        {"measure": "containment", "common": 10},
        {"measure": "jaccard", "common": 10},
    ):
        found = la.dedup(texts, **how, **chosen).different_pairs
        assert list(zip(found.left.tolist(), found.right.tolist(), strict=True)) == related
    plain = la.dedup(texts, measure="containment", **how).different_pairs
    assert len(plain) == 80 * 79 // 2


def test_a_work_folder_is_used_again_only_for_the_same_measure(tmp_path: Path) -> None:
    texts, related = standards(40, 100)
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(f'{{"text": "{text}"}}\n' for text in texts))
    how: Any = {"work": tmp_path / "work", "threshold": 0.15, "measure": "weighted-containment"}
    first = la.dedup(path, **how)
    again = la.dedup(path, **how)
    assert "verify" in again.reused and "verify" not in first.reused
    assert again.different_pairs.left.tolist() == [left for left, _ in related]
    other = la.dedup(path, common=10, **how)
    assert "verify" not in other.reused
    assert again.keep.tolist() == other.keep.tolist() == first.keep.tolist()


def test_more_features_than_fit_are_an_error_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("lookalike.dedup.rarity")  # `lookalike.dedup` is a function
    monkeypatch.setattr(module, "_BYTES_A_COUNTED_FEATURE", 1 << 20)
    texts, _ = standards(20, 600)
    how: Any = {"measure": "weighted-jaccard", "memory_limit": 640 << 20}
    with pytest.raises(la.errors.ResultTooLargeError, match="share more features than fit"):
        la.dedup(texts, **how)
    assert la.dedup(texts, **{**how, "memory_limit": 4 << 30}).counts.documents == 20


def test_what_does_not_go_together_is_refused(tmp_path: Path) -> None:
    texts = ["a b c", "a b d"]
    cases: list[tuple[dict[str, Any], str]] = [
        ({"measure": "weighted_jaccard"}, "measure is 'weighted_jaccard'; expected one of"),
        ({"measure": "weighted-jaccard", "verify": False}, "compares the documents"),
        ({"measure": "weighted-jaccard", "method": "simhash", "radius": 3}, "radius is 3"),
        ({"measure": "weighted-containment", "keep": len}, "the larger document is kept"),
        ({"common": 1}, "common is 1; expected a whole number"),
        ({"common": 5, "verify": False}, "common=5 compares the documents"),
        ({"common": 5, "method": "simhash"}, "common does nothing for cosine"),
        (
            {
                "measure": "weighted-jaccard",
                "features": la.Combined(la.Words(), la.Chars(), weights=[2, 1]),
            },
            "which do nothing with weights by rarity",
        ),
    ]
    for options, message in cases:
        with pytest.raises(la.errors.ArgumentError, match=message):
            la.dedup(texts, **options)
    saved = tmp_path / "old.lookalike"
    la.dedup(texts, save_signatures=saved)
    with pytest.raises(la.errors.ArgumentError, match="has only signatures"):
        la.dedup(texts, measure="weighted-jaccard", against=saved)


@pytest.mark.parametrize("exact", [False, True])
def test_versions_are_found_by_what_few_documents_have(exact: bool) -> None:
    texts, related = standards(80, 400)
    result = la.dedup(texts, purpose="versions", exact=exact)
    same: Any = {"measure": "weighted-jaccard", "threshold": 0.025, "common": 5, "exact": exact}
    expected = la.dedup(texts, **same)
    assert pairs_of(result, 0) == pairs_of(expected, 0)
    assert sorted(pairs_of(result, 0)) == related


def test_options_replace_those_of_the_purpose() -> None:
    made = la.results.DedupSettings
    plain = made()
    assert (plain.purpose, plain.measure, plain.threshold, plain.common) == (
        *("duplicates", "jaccard", 0.8),
        None,
    )
    for options, expected in (
        ({}, ("weighted-jaccard", 0.025, 5)),
        ({"common": 20, "threshold": 0.1}, ("weighted-jaccard", 0.1, 20)),
        ({"measure": "weighted-containment"}, ("weighted-containment", 0.8, 5)),
        ({"measure": "jaccard", "common": 3}, ("jaccard", 0.8, 3)),
    ):
        found = made(purpose="versions", **options)
        assert (found.measure, found.threshold, found.common) == expected
    with pytest.raises(la.errors.ArgumentError, match=r"purpose is 'version'.*versions"):
        la.dedup(["a"], purpose="version")
    with pytest.raises(la.errors.ArgumentError, match="purpose does nothing for vectors"):
        la.dedup(np.eye(4, dtype=np.float32), purpose="versions")
