"""The lengths of documents choose the same features on Spark as in the local job."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lookalike as la
from dedup.test_lengths import LINES, LONG, drawn_lines
from lookalike import spark as on_spark
from support.cases.spark_corpora import assert_as_local, frame_of_texts


@settings(
    max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(
    seed=st.integers(0, 2**32),
    long=st.sampled_from([0, 6, 7, 40]),
    partitions=st.integers(1, 6),
    data=st.data(),
)
def test_the_same_choice_and_the_same_answer(
    session: Any, seed: int, long: int, partitions: int, data: st.DataObject
) -> None:
    """Of 60 lines, six long documents make a tenth of 66, and seven are more than that."""
    texts: list[str | None] = [*drawn_lines(seed), *(f"{LONG} {at % 4}" for at in range(long))]
    texts = [*data.draw(st.permutations(texts)), None, ""]
    local = assert_as_local(frame_of_texts(session, texts, partitions), texts)
    assert local.settings.features == ("short" if long <= 6 else "words")
    rows = [{"id": f"id{at}", "text": text} for at, text in enumerate(texts)]
    for threads in (1, 3):
        again = la.dedup(rows, threads=threads)
        assert again.settings == local.settings
        assert again.duplicate_of.tolist() == local.duplicate_of.tolist()


@pytest.mark.parametrize("given", [{"features": "words"}, {"ngram": 4}, {"threshold": 0.6}])
def test_what_the_caller_says_decides(session: Any, given: dict[str, Any]) -> None:
    local = assert_as_local(frame_of_texts(session, LINES, 2), LINES, **given)
    assert local.settings.features == ("short" if "threshold" in given else "words")


def test_an_old_corpus_does_not_count(session: Any) -> None:
    old: list[str | None] = [*(f"{LONG} {at}" for at in range(50)), LINES[0]]
    against = (frame_of_texts(session, old, 3, "old"), old)
    local = assert_as_local(frame_of_texts(session, LINES[1:], 2), LINES[1:], against=against)
    assert local.settings.features == "short" and local.counts.in_old == 1


def test_what_was_chosen_and_why_is_said(session: Any) -> None:
    with on_spark.dedup(frame_of_texts(session, LINES, 2)) as found:
        said, summary = found.to_dict(), found.summary()
    reason = "100% of the documents have at most 120 characters"
    assert said["features_reason"] == reason and said["counts"]["short_documents"] == 4
    assert said["settings"]["features"] == "short"
    assert f"features                  short  {reason}" in summary
    assert la.dedup(LINES).counts.short_documents == 4
