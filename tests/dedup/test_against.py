"""Day by day: what is already in an old corpus goes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from dedup.test_dedup import corpus
from support.oracles import dedup as dedup_oracle


def split(seed: int) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    texts = corpus(seed, 80)
    old = [{"id": f"old{at}", "text": text} for at, text in enumerate(texts[:40])]
    new = [{"id": f"new{at}", "text": text} for at, text in enumerate(texts[40:])]
    return old, new


@settings(max_examples=20)
@given(
    seed=st.integers(0, 2**32),
    keep=st.sampled_from(["first", "last", "longest"]),
    grouping=st.sampled_from(["components", "star"]),
)
def test_what_matches_an_old_document_goes(seed: int, keep: str, grouping: str) -> None:
    old, new = split(seed)
    result = la.dedup(new, against=old, keep=keep, grouping=grouping)
    texts, old_texts = [row["text"] for row in new], [row["text"] for row in old]
    pairs = list(zip(result.old_pairs.left.tolist(), result.old_pairs.right.tolist(), strict=True))
    for (left, right), value in zip(pairs, result.old_pairs.similarity, strict=True):
        truth = dedup_oracle.jaccard(old_texts[left], texts[right], 5)
        assert value == pytest.approx(truth) and truth >= 0.8
    best: dict[int, tuple[float, int]] = {}
    for left, right in pairs:
        value = dedup_oracle.jaccard(old_texts[left], texts[right], 5)
        best[right] = min(best.get(right, (0.0, 0)), (-value, left))
    for row, text in enumerate(texts):
        if row in best:
            matched = int(result.matched_old[row])
            assert not result.keep[row] and result.duplicate_of[row] == -1
            truth = dedup_oracle.jaccard(old_texts[matched], text, 5)
            assert truth == pytest.approx(-best[row][0])
            assert result.similarity[row] == pytest.approx(truth)
            assert result.old_id(matched) == f"old{matched}"
    kept = [texts[row] for row in np.flatnonzero(result.keep)]
    for text in kept:
        if dedup_oracle.shingles(text, 1):
            assert text not in old_texts and kept.count(text) == 1
            assert all(dedup_oracle.jaccard(text, other, 5) < 0.95 for other in old_texts)
    assert result.counts.in_old == int((result.matched_old >= 0).sum())
    assert result.kept() == [new[row] for row in np.flatnonzero(result.keep)]


def test_day_by_day_with_signatures(tmp_path: Path) -> None:
    """Three days, each against the signatures of all before: no text is seen twice."""
    texts = corpus(5, 240)
    seen = tmp_path / "seen.lookalike"
    kept: list[str] = []
    for day in range(3):
        rows = [
            {"id": f"d{day}-{at}", "text": text}
            for at, text in enumerate(texts[80 * day : 80 * (day + 1)])
        ]
        result = la.dedup(rows, against=seen if day else None, save_signatures=seen)
        for row in np.flatnonzero(result.matched_old >= 0).tolist():
            assert str(result.old_id(int(result.matched_old[row]))).startswith(("d0", "d1"))
        if day:
            assert result.counts.in_old > 0 and result.counts.estimated_pairs > 0
        kept += [row["text"] for row in result.kept()]
    saved = la.load_signatures(seen)
    comparable = [text for text in kept if dedup_oracle.shingles(text, 1)]
    assert len(saved.signatures) == len(comparable) == len(set(comparable))
    assert saved.ids is not None and len(set(saved.ids)) == len(saved.ids)
    assert np.array_equal(saved.signatures, saved.signer.sign(comparable))


def test_signatures_of_another_kind_are_refused(tmp_path: Path) -> None:
    seen = tmp_path / "seen.lookalike"
    la.dedup(["a b c d e f"], save_signatures=seen)
    with pytest.raises(la.errors.FormatError, match="sign both in the same way"):
        la.dedup(["a"], against=seen, ngram=3)
    la.ScanIndex(np.zeros((1, 8), np.uint8)).save(tmp_path / "index.lookalike")
    with pytest.raises(la.errors.ArgumentError, match="signatures of documents with their signer"):
        la.dedup(["a"], against=tmp_path / "index.lookalike")


@pytest.mark.parametrize("kind", ["list", "file"])
def test_an_old_corpus_in_any_form(kind: str, tmp_path: Path) -> None:
    old: Any = ["the same words in both of them", "something else that is only here"]
    if kind == "file":
        path = tmp_path / "old.jsonl"
        path.write_text("".join(json.dumps({"text": text}) + "\n" for text in old))
        old = path
    new = ["the same words in both of them", "", "the new text that only the new one has"]
    result = la.dedup(new, against=old)
    assert result.keep.tolist() == [False, True, True]
    assert result.matched_old.tolist() == [0, -1, -1]
    target = tmp_path / "annotated.jsonl"
    result.write_pairs(target)
    assert json.loads(target.read_text()) == {
        "left": "0", "right": "0", "similarity": 1.0, "distance": 0, "old": True,
    }  # fmt: skip


def test_empty_sides() -> None:
    assert la.dedup([], against=["a"]).counts.documents == 0
    assert la.dedup(["a"], against=[]).keep.all()


def test_the_format_that_was_given_is_that_of_nameless_old_files_too(tmp_path: Path) -> None:
    for name in ("old", "new"):
        (tmp_path / name).write_text('{"text": "one two three"}\n{"text": "four five six"}\n')
    result = la.dedup(tmp_path / "new", against=tmp_path / "old", format="jsonl")
    assert result.matched_old.tolist() == [0, 1]


def test_the_ids_of_the_old_corpus_have_the_name_of_the_new(tmp_path: Path) -> None:
    text = "the same words of a text that is long enough to be compared"
    for name, id in (("old", "o7"), ("new", "n7")):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"ref": id, "text": text}) + "\n")
    result = la.dedup(tmp_path / "new.jsonl", id="ref", against=tmp_path / "old.jsonl")
    assert result.matched_old.tolist() == [0] and result.old_id(0) == "o7"


def test_old_signatures_may_have_no_ids(tmp_path: Path) -> None:
    text = "the same words of a text that is long enough to be compared"
    signer = la.dedup([text]).settings.signer()
    la.save_signatures(tmp_path / "old.lookalike", signer.sign(["another", text]), signer)
    result = la.dedup([text, "different"], against=tmp_path / "old.lookalike")
    assert result.matched_old.tolist() == [1, -1] and result.old_id(1) == 1
