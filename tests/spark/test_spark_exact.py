"""Every pair: what the local job finds by a join in memory, Spark finds by the first features."""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import lookalike as la
from lookalike import _native
from lookalike import spark as on_spark
from lookalike.dedup.settings import DedupSettings
from lookalike.features import similarity_pairs
from lookalike.spark import prefixes, rarity
from lookalike.spark.bands import PAIR, PAIRS
from lookalike.spark.packed import gathered, packed
from lookalike.spark.positions import PositionSet, packed_positions
from lookalike.spark.prefixes import more_than_local
from lookalike.spark.rarity import SharedFeatures
from lookalike.spark.signing import documents_of
from support.cases.spark_corpora import assert_as_local, frame_of_texts, mixed_corpus, template
from support.running.spark_ways import take_way


def set_of(positions: NDArray[np.int64], bound: int) -> PositionSet:
    return PositionSet.of([packed_positions(positions)], bound)


class Sent:
    """What every worker has."""

    def __init__(self, value: Any) -> None:
        self.value = value


def counted(settings: DedupSettings, texts: list[str], buckets: int) -> SharedFeatures:
    """Return what the workers would count."""
    found: dict[int, list[Any]] = {}
    documents, _ = documents_of(pa.array(texts))
    _, features, _ = prefixes.listed_features(settings, documents, None)
    entries = np.ones(len(features), rarity._COUNTED)
    entries["feature"] = features
    bucket = prefixes.feature_bucket(features, buckets)
    for one in range(buckets):
        mine = bucket == one
        batches = list(packed(entries[mine], bucket[mine], rarity._FEATURES))
        for batch in rarity.add_counts(iter(batches)):
            for kind, part in gathered(iter([batch]), rarity._COUNTED).items():
                found.setdefault(kind, []).append(part)
    shared = np.concatenate(found[rarity._FEATURES])
    assert len(np.unique(shared["feature"])) == len(shared)
    return SharedFeatures(
        settings,
        np.ascontiguousarray(shared["feature"]),
        shared["documents"].astype(np.uint64),
        sum(bool(text) for text in texts),
    )


@pytest.mark.parametrize("common", [None, 2, 30])
@pytest.mark.parametrize("measure", ["weighted-jaccard", "weighted-containment", "jaccard"])
def test_counts_of_workers_are_those_of_the_local_job(measure: str, common: int | None) -> None:
    if measure == "jaccard" and common is None:
        common = 5
    settings = DedupSettings(measure=measure, common=common, ngram=1)
    texts = [f"all {' '.join(f'w{number % place}' for place in (2, 3, 7))}" for number in range(40)]
    texts += ["once", "all"]
    kind = settings.feature_kind()
    expected = settings.new_weights().fit(texts, kind)
    found = counted(settings, texts, 3).weights
    assert found.native()[0] == expected.native()[0]
    source = kind.source(texts)
    lists = [_native.list_features(source, *one.native(), 1) for one in (expected, found)]
    for one, two in zip(*lists, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    ("measure", "common"),
    [
        ("jaccard", None),
        ("cosine", None),
        ("containment", None),
        ("weighted-jaccard", None),
        ("weighted-containment", None),
        ("weighted-jaccard", 45),
        ("containment", 40),
        ("jaccard", 45),
    ],
)
@pytest.mark.parametrize("threshold", [0.05, 0.2, 0.5, 0.8, 1.0])
@pytest.mark.parametrize("most", [1, 3, 4096])
def test_first_features_bring_every_pair_together(
    measure: str,
    common: int | None,
    threshold: float,
    most: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Against all pairs, with features that all have, and so many of them common that each meets in
    several places; two old documents are no pair, unless the text of one has come again.
    """
    monkeypatch.setattr(prefixes, "MOST_AT_A_PLACE", most)
    monkeypatch.setattr(prefixes, "_LEAST_COUNT", 2)
    chance = random.Random(f"{measure}{threshold}{most}")
    words = [f"w{number}" for number in range(40)]
    texts = ["all " + " ".join(chance.choices(words, k=chance.randint(0, 25))) for _ in range(70)]
    texts += [f"{text} {chance.choice(words)}" for text in chance.choices(texts, k=50)]
    settings = DedupSettings(
        exact=True, measure=measure, common=common, threshold=threshold, ngram=1
    )
    count, old, buckets = len(texts), 30, 3
    column = pa.array(texts)
    counts = np.zeros(prefixes.SLOTS, np.uint32)
    (told,) = prefixes.common_slots(settings, iter([pa.record_batch({"text": column})]))
    counts[told["slot"].to_numpy()[:-1]] = told["count"].to_numpy()[:-1]
    assert (counts == count).sum() == 1
    assert told["slot"][-1].as_py() == prefixes.LARGEST
    assert told["count"][-1].as_py() == settings.feature_kind().counts(texts, distinct=True).max()
    again, nobody = np.array([3, 17]), np.empty(0, np.int64)
    weights = Sent(counted(settings, texts, buckets)) if settings.by_frequency else None
    here = prefixes.Lookup(counts, set_of(nobody, count), old, set_of(again, count), weights)
    documents, _ = documents_of(column)
    entries = prefixes.prefix_entries(settings, documents, np.arange(count), here)
    bucket = prefixes.bucket_of(entries, buckets)
    found: set[tuple[int, int]] = set()
    for one in range(buckets):
        batches = packed(entries[bucket == one], bucket[bucket == one], PAIRS)
        for batch in prefixes.meet_prefixes(settings, 2, iter(list(batches))):
            found |= set(map(tuple, gathered(iter([batch]), PAIR)[PAIRS].tolist()))
    left, right = np.triu_indices(count, 1)
    is_new = (np.arange(count) >= old) | np.isin(np.arange(count), again)
    new = is_new[left] | is_new[right]
    left, right = left[new].astype(np.int64), right[new].astype(np.int64)
    named = settings.set_measure if weights is None else f"weighted_{settings.set_measure}"
    how = () if weights is None else (weights.value.weights,)
    alike = similarity_pairs(named, texts, left, right, settings.feature_kind(), *how)
    near = (alike >= threshold - 1e-12) & (alike > 0)
    expected = set(zip(left[near].tolist(), right[near].tolist(), strict=True))
    assert expected and expected <= found
    assert found <= set(zip(left.tolist(), right.tolist(), strict=True))
    if threshold == 1:
        assert len(found) < len(left) / 2


@pytest.mark.parametrize(
    ("way", "settings"),
    [
        ("one task", {"exact": True, "method": "simhash", "keep": "last", "min_features": 5}),
        ("rounds", {"measure": "containment", "threshold": 0.7, "keep": "shortest"}),
        ("one task", {"exact": True, "measure": "weighted-jaccard", "threshold": 0.3}),
        ("rounds", {"measure": "weighted-containment", "threshold": 0.2, "keep": "shortest"}),
        ("crowd", {"measure": "weighted-jaccard", "threshold": 0.1, "common": 40}),
        ("crowd in rounds", {"measure": "weighted-containment", "threshold": 0.1, "exact": True}),
        ("components", {"measure": "containment", "common": 90, "threshold": 0.5}),
        ("settled", {"exact": True, "common": 90, "threshold": 0.3, "grouping": "components"}),
    ],
)
def test_as_the_local_job(
    session: Any, way: str, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against an old corpus, some of whose texts come again; copies are pairs with each other."""
    take_way(way, monkeypatch)
    texts: list[str | None] = [*mixed_corpus(60), *template(70, words=30), None, ""]
    texts += [text and " ".join(text.split()[3:15]) for text in texts[:15]]
    random.Random(8).shuffle(texts)
    old, new = texts[:60], [*texts[60:], *texts[:20]]
    against = frame_of_texts(session, old, 2, "old"), old
    frame = frame_of_texts(session, new, 3)
    local = assert_as_local(frame, new, against=against, **settings)
    assert local.counts.verified_pairs > (20 if local.settings.by_frequency else 1000)
    assert local.warnings == []


def test_more_shared_features_than_fit_are_refused(
    session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rarity, "MOST_SHARED", 4)
    frame = frame_of_texts(session, ["a b c d e f g h", "a b c d e f g i"], 2)
    with pytest.raises(la.errors.ResultTooLargeError, match="7 features are in several documents"):
        on_spark.dedup(frame, measure="weighted-jaccard", ngram=1)


def test_what_the_local_job_may_miss_is_said() -> None:
    """Of documents that have more features than samples, one machine looks some up."""
    settings = DedupSettings(measure="containment")
    assert more_than_local(settings, 100, 512, 1000) == []
    for features, shared_by in ((513, 2), (5, 1001)):
        (warning,) = more_than_local(settings, 100, features, shared_by)
        assert re.fullmatch(r"all features of .* misses a pair at the threshold .* 0.1%", warning)
        exact = DedupSettings(measure="containment", exact=True)
        assert more_than_local(exact, 100, features, shared_by) == []


def test_features_of_documents() -> None:
    """Different ones, each with how often it comes, or with 1."""
    documents, _ = documents_of(pa.array(["a b a", None, "b"]))
    source = la.Words().source(documents)
    for kind, weights in ((la_kind("count"), [1.0, 2.0]), (la_kind("uniform"), [1.0, 1.0])):
        offsets, features, found = _native.list_features(source, kind, None, 2)
        assert offsets.tolist() == [0, 2, 2, 3]
        assert sorted(found[:2].tolist()) == weights
        assert features[2] in features[:2] and found[2] == 1.0


def la_kind(name: str) -> Any:
    return getattr(_native.WeightKind, name)
