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
from lookalike.dedup.settings import DedupSettings
from lookalike.features import similarity_pairs
from lookalike.spark import prefixes
from lookalike.spark.bands import PAIR, PAIRS
from lookalike.spark.packed import gathered, packed
from lookalike.spark.positions import PositionSet, packed_positions
from lookalike.spark.prefixes import more_than_local
from lookalike.spark.signing import documents_of
from support.cases.spark_corpora import assert_as_local, frame_of_texts, mixed_corpus, template
from support.running.spark_ways import take_way


def set_of(positions: NDArray[np.int64], bound: int) -> PositionSet:
    return PositionSet.of([packed_positions(positions)], bound)


@pytest.mark.parametrize("measure", ["jaccard", "cosine", "containment"])
@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.8, 1.0])
@pytest.mark.parametrize("most", [1, 3, 4096])
def test_first_features_bring_every_pair_together(
    measure: str, threshold: float, most: int, monkeypatch: pytest.MonkeyPatch
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
    settings = DedupSettings(exact=True, measure=measure, threshold=threshold, ngram=1)
    count, old, buckets = len(texts), 30, 3
    column = pa.array(texts)
    counts = np.zeros(prefixes.SLOTS, np.uint32)
    (told,) = prefixes.common_slots(settings, iter([pa.record_batch({"text": column})]))
    counts[told["slot"].to_numpy()[:-1]] = told["count"].to_numpy()[:-1]
    assert (counts == count).sum() == 1
    assert told["slot"][-1].as_py() == prefixes.LARGEST
    assert told["count"][-1].as_py() == settings.feature_kind().counts(texts, distinct=True).max()
    again, nobody = np.array([3, 17]), np.empty(0, np.int64)
    here = prefixes.Lookup(counts, set_of(nobody, count), old, set_of(again, count))
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
    alike = similarity_pairs(measure, texts, left, right, settings.feature_kind())
    near = alike >= threshold - 1e-12
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
    assert local.counts.verified_pairs > 1000
    assert local.warnings == []


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
        offsets, features, found = _native.list_features(source, kind, 2)
        assert offsets.tolist() == [0, 2, 2, 3]
        assert sorted(found[:2].tolist()) == weights
        assert features[2] in features[:2] and found[2] == 1.0


def la_kind(name: str) -> Any:
    return getattr(_native.WeightKind, name)
