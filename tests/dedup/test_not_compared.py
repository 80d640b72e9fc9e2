"""What was not compared, and why: counts of a result, and its summary."""

from __future__ import annotations

import json
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike.dedup.propose import LARGEST_GROUP, LARGEST_SAMPLED_GROUP, promising
from lookalike.dedup.settings import DedupSettings
from lookalike.indexes.bands import choose_bands
from lookalike.jobs.work_folder import digest

texts = st.lists(
    st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=8).map(" ".join), max_size=12
)
BY_WORDS: Any = {"features": "words", "ngram": 1}


def crowd(size: int) -> list[str]:
    """Texts that are near-duplicates of each other, and one that is alone."""
    same = " ".join(f"word{number}" for number in range(60))
    return [*(f"{same} and {number}" for number in range(size)), "nothing like the others at all"]


@settings(max_examples=60, deadline=None)
@given(texts, st.sampled_from([0.3, 0.5, 0.8]), st.integers(0, 5))
def test_pairs_that_are_not_compared_are_those_whose_signatures_differ_too_much(
    documents: list[str], threshold: float, seed: int
) -> None:
    how: Any = {**BY_WORDS, "threshold": threshold, "permutations": 16, "seed": seed}
    chosen = DedupSettings(**how)
    result = la.dedup(documents, **how, grouping="components")
    different = sorted(set(documents))
    values = chosen.signer().sign(different).view("<u2")
    layout = choose_bands(16, threshold)
    proposed = compared = 0
    for left, right in combinations(range(len(different)), 2):
        equal = values[left] == values[right]
        bands = equal[: layout.bands * layout.rows].reshape(layout.bands, layout.rows)
        if bands.all(axis=1).any():
            proposed += 1
            distance = np.array([16 - int(equal.sum())], np.int32)
            compared += int(promising(distance, chosen)[0])
    counts = result.counts
    assert (counts.proposed_pairs, counts.compared_pairs) == (proposed, compared)
    told = f"of {proposed:,} proposed ones; the signatures of the others differ too much"
    assert (told in result.summary()) == (proposed > compared)
    assert counts.partly_compared == counts.common_features == counts.only_common == 0


@pytest.mark.parametrize("measure", ["jaccard", "weighted-containment"])
@pytest.mark.parametrize("exact", [False, True])
@settings(max_examples=40, deadline=None)
@given(documents=texts, old=texts, common=st.integers(2, 5))
def test_what_is_common_is_counted(
    documents: list[str], old: list[str], common: int, measure: str, exact: bool
) -> None:
    how: Any = {**BY_WORDS, "measure": measure, "exact": exact, "threshold": 0.5}
    counts = la.dedup(documents, common=common, against=old, **how).counts
    every = {*documents, *old}
    having = Counter(word for text in every for word in set(text.split()))
    left_out = {word for word, number in having.items() if number > common}
    weightless = set(left_out)
    if measure.startswith("weighted"):  # what all have tells nothing
        weightless |= {word for word, number in having.items() if number == len(every)}
    assert counts.common_features == len(left_out)
    new = set(documents) - set(old)
    assert counts.only_common == sum(set(text.split()) <= weightless for text in new)
    unlimited = la.dedup(documents, against=old, **how).counts
    assert unlimited.common_features == unlimited.only_common == 0


@pytest.mark.parametrize(
    ("how", "many"),
    [
        ({"method": "minhash", **BY_WORDS}, LARGEST_GROUP + 60),
        ({"method": "simhash", "bits": 256, "radius": 60}, 3 * LARGEST_GROUP),
        ({"measure": "containment", **BY_WORDS}, LARGEST_SAMPLED_GROUP + 200),
    ],
    ids=["bands", "radius", "samples"],
)
def test_documents_of_crowds_are_counted(how: dict[str, Any], many: int) -> None:
    result = la.dedup(crowd(many), **how)
    counts = result.counts
    assert 0 < counts.partly_compared <= many and len(result.warnings) == 1
    assert f"{counts.partly_compared:,}  with some of too many similar ones" in result.summary()
    few = la.dedup(crowd(LARGEST_GROUP // 2), **how)
    assert few.counts.partly_compared == 0 and not few.warnings
    assert "partly compared" not in few.summary()


def test_with_exact_all_are_compared() -> None:
    result = la.dedup(crowd(260), **BY_WORDS, exact=True)
    assert result.counts.partly_compared == 0 and not result.warnings
    assert result.counts.verified_pairs == 260 * 259 // 2


def test_counts_are_kept_in_a_work_folder(tmp_path: Path) -> None:
    work = tmp_path / "work"
    source = tmp_path / "source.txt"
    source.write_text("".join(f"{text}\n" for text in crowd(260)))
    how: Any = {**BY_WORDS, "work": work}
    first = la.dedup(source, **how)
    again = la.dedup(source, **how)
    assert "verify" in again.reused
    assert again.counts == first.counts and again.counts.partly_compared == 260
    stamp = json.loads((work / "pairs.json").read_text())["stamp"]
    del stamp["facts"]["partly_compared"]  # as earlier versions wrote it
    (work / "pairs.json").write_text(json.dumps({"stamp": stamp, "checksum": digest(stamp)}))
    later = la.dedup(source, **how)
    assert "verify" not in later.reused and later.counts == first.counts


def test_the_report_tells_it(tmp_path: Path) -> None:
    la.dedup(crowd(260), **BY_WORDS).report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "partly compared" in page and "with some of too many similar ones" in page
