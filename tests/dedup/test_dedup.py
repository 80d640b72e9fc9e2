"""The job from end to end, beside brute force."""

from __future__ import annotations

import importlib
import json
import random
from dataclasses import FrozenInstanceError, fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike.dedup import verify
from lookalike.dedup.job import STEPS
from lookalike.dedup.result import TextResult
from lookalike.indexes.bands import CoreBands
from support.oracles import dedup as dedup_oracle

WORDS = [f"w{number}" for number in range(400)]


def corpus(seed: int, count: int = 60) -> list[str]:
    """Documents with planted copies: equal, edited a little, edited much, and short ones."""
    rng = random.Random(seed)
    texts: list[str] = []
    for _ in range(count):
        kind = rng.random()
        if texts and kind < 0.15:
            texts.append(rng.choice(texts))
        elif texts and kind < 0.5:
            words = rng.choice(texts).split()
            for _ in range(rng.choice([1, 1, 2, 5])):
                if words:
                    words[rng.randrange(len(words))] = rng.choice(WORDS)
            texts.append(" ".join(words))
        elif kind < 0.55:
            texts.append(rng.choice(["", "  ", "!?", "one", "one two", "日本語"]))
        else:
            texts.append(" ".join(rng.choices(WORDS, k=rng.randrange(3, 150))))
    return texts


def measure(result: TextResult) -> Any:
    how = dedup_oracle.jaccard if result.settings.measure == "jaccard" else dedup_oracle.cosine
    return partial(how, ngram=result.settings.ngram or 0)


def check(result: TextResult, texts: list[str]) -> None:
    """Everything that can be said of any result."""
    similarity = measure(result)
    threshold = result.settings.threshold
    pairs = set(zip(result.pairs.left.tolist(), result.pairs.right.tolist(), strict=True))
    assert len(pairs) == len(result.pairs)
    for left, right, value in zip(
        result.pairs.left.tolist(),
        result.pairs.right.tolist(),
        result.pairs.similarity.tolist(),
        strict=True,
    ):
        assert left < right
        truth = similarity(texts[left], texts[right])
        assert value == pytest.approx(truth, abs=1e-12)
        assert truth >= threshold - 1e-12
    too_short = [not dedup_oracle.shingles(text, 1) for text in texts]
    assert result.counts.without_features == sum(too_short)
    assert all(result.keep[row] for row, short in enumerate(too_short) if short)
    if result.settings.grouping == "components":
        assert result.group_of.tolist() == dedup_oracle.components(len(texts), pairs)
    for row, (keep, other) in enumerate(zip(result.keep, result.duplicate_of, strict=True)):
        assert keep == (other < 0) == np.isnan(result.similarity[row])
        if other >= 0:
            assert result.keep[other] and result.group_of[other] == result.group_of[row]
            truth = similarity(texts[row], texts[other])
            assert result.similarity[row] == pytest.approx(truth, abs=1e-12)
    kept_in = [result.group_of[row] for row in np.flatnonzero(result.keep)]
    assert len(kept_in) == len(set(kept_in)) == len(set(result.group_of.tolist()))
    counts = result.counts
    assert counts.documents == len(texts) == counts.kept + int((~result.keep).sum())
    assert counts.exact_duplicates + counts.near_duplicates == counts.documents - counts.kept
    assert result.kept() == [text for text, keep in zip(texts, result.keep, strict=True) if keep]


@pytest.mark.parametrize("method", ["minhash", "simhash", "topsig"])
@settings(max_examples=15)
@given(seed=st.integers(0, 2**32), threshold=st.sampled_from([0.5, 0.8, 0.95, 1.0]))
def test_every_verified_pair_is_one_and_the_rest_follows(
    method: str, seed: int, threshold: float
) -> None:
    texts = corpus(seed)
    result = la.dedup(texts, method=method, threshold=threshold)
    check(result, texts)
    if method == "minhash":
        # Pairs well above the threshold are as good as sure to be found: the chance of missing one
        # is below 1e-6. Copies are paired with their first alone.
        first = [texts.index(text) for text in texts]
        truth = dedup_oracle.similar_pairs(texts, min(1.0, threshold + 0.15), measure(result))
        found = set(zip(result.pairs.left.tolist(), result.pairs.right.tolist(), strict=True))
        wanted = {pair for pair in truth if first[pair[0]] == pair[0] and first[pair[1]] == pair[1]}
        assert wanted <= found


@settings(max_examples=15)
@given(
    seed=st.integers(0, 2**32),
    keep=st.sampled_from(["first", "last", "longest", "shortest", "max:score", "min:score"]),
    grouping=st.sampled_from(["components", "star"]),
)
def test_the_right_one_stays(seed: int, keep: str, grouping: str) -> None:
    texts = corpus(seed)
    rng = random.Random(seed)
    scores = [rng.choice([None, 1, 2, 10]) for _ in texts]
    rows = [{"text": text, "score": score} for text, score in zip(texts, scores, strict=True)]
    result = la.dedup(rows, keep=keep, grouping=grouping)

    def rank(row: int) -> tuple[float, int]:
        length, score = len(texts[row].encode()), scores[row]
        value = {
            "first": row,
            "last": -row,
            "longest": -length,
            "shortest": length,
            "max:score": float("inf") if score is None else -score,
            "min:score": float("inf") if score is None else score,
        }[keep]
        return value, row

    expected = dedup_oracle.kept(result.group_of.tolist(), rank)
    assert np.flatnonzero(result.keep).tolist() == sorted(set(expected))
    for row, other in enumerate(result.duplicate_of.tolist()):
        assert other == (-1 if expected[row] == row else expected[row])
    if grouping == "star":
        values = result.similarity[~result.keep]
        assert (values >= result.settings.threshold).all()


@pytest.mark.parametrize(
    "options", [{}, {"keep": "longest"}, {"grouping": "components"}, {"method": "simhash"}]
)
def test_threads_and_batches_change_nothing(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    texts = corpus(7, 300)
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    expected = la.dedup(texts, threads=1, **options)
    check(expected, texts)
    for module, name, size in [
        ("lookalike.corpora.formats.lines", "BATCH_BYTES", 700),
        ("lookalike.corpora.tables", "BATCH_ROWS", 7),
        ("lookalike.dedup.sign", "_AT_A_TIME", 11),
        ("lookalike.dedup.verify", "_PAIRS_AT_A_TIME", 3),
        ("lookalike.dedup.verify", "_BYTES_AT_A_TIME", 2000),
        ("lookalike.dedup.verify", "_SORTED_AT_A_TIME", 5),
        ("lookalike.indexes.bands", "_PAIRS_AT_A_TIME", 4),
    ]:
        monkeypatch.setattr(importlib.import_module(module), name, size)
    monkeypatch.setattr(CoreBands, "rows_at_a_time", 9)
    for threads in (1, 2, 5):
        for source in (texts, path):
            result = la.dedup(source, threads=threads, **options)
            assert np.array_equal(result.keep, expected.keep)
            assert np.array_equal(result.group_of, expected.group_of)
            assert np.array_equal(result.duplicate_of, expected.duplicate_of)
            assert np.array_equal(result.pairs.left, expected.pairs.left)
            assert np.array_equal(result.pairs.right, expected.pairs.right)
            assert np.array_equal(result.pairs.similarity, expected.pairs.similarity)
            assert np.array_equal(result.pairs.distance, expected.pairs.distance)


def test_a_million_equal_documents_are_one() -> None:
    result = la.dedup(["the same text every time"] * 1_000_000)
    assert result.keep.sum() == 1 and result.keep[0]
    assert result.counts.largest_group == 1_000_000


def test_many_documents_with_the_same_words_are_not_compared_each_with_each() -> None:
    """Equal features, different bytes: all in one group of every band."""
    texts = [f"these words are the same every time{'!' * number}" for number in range(4000)]
    result = la.dedup(texts)
    assert result.counts.kept == 1
    assert result.counts.proposed_pairs < 40 * len(texts)
    assert "share a band" in result.warnings[0]


def test_no_documents_and_one() -> None:
    for texts in ([], ["one"], [""]):
        result = la.dedup(texts)
        assert result.keep.all() and len(result.keep) == len(texts) and len(result.pairs) == 0
        assert result.kept() == texts
        result.summary()


def test_scripts_of_the_world() -> None:
    base = [
        "日本語の文章がここにあります。とても長い文章です。",
        "Это русский текст, который достаточно длинный для сравнения слов между собой",
        "هذا نص عربي طويل بما يكفي للمقارنة بين الكلمات في هذا الاختبار",
        "यह हिंदी का एक लंबा पाठ है जिसमें बहुत सारे शब्द हैं",
        "นี่คือข้อความภาษาไทยที่ยาวพอสมควรสำหรับการทดสอบ",
    ]
    result = la.dedup(base + [text + "!" for text in base] + base)
    assert result.keep.tolist() == [True] * 5 + [False] * 10
    assert result.counts.exact_duplicates == result.counts.near_duplicates == 5


def test_without_verification_signatures_decide() -> None:
    texts = corpus(3)
    result = la.dedup(texts, verify=False)
    assert result.counts.estimated_pairs > 0
    near = result.pairs.distance > 0
    estimate = 1 - result.pairs.distance[near] / 128
    assert np.allclose(result.pairs.similarity[near], estimate) and (estimate >= 0.8).all()


@pytest.mark.parametrize(
    ("given_name", "own"),
    [("num_perm", "permutations"), ("ngram_size", "ngram"), ("bit_diff", "radius")],
)
def test_names_that_other_tools_use(given_name: str, own: str) -> None:
    options: dict[str, Any] = {given_name: 16}
    if own == "radius":
        options["method"] = "simhash"
    assert getattr(la.dedup(["a"], **options).settings, own) == 16
    with pytest.raises(la.errors.ArgumentError, match="the same setting"):
        la.dedup(["a"], **(options | {own: 16}))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "magic"}, "method is 'magic'; expected one of minhash"),
        ({"threshold": 0}, "threshold is 0; expected a number above 0"),
        ({"threshold": 1.5}, "threshold is 1.5"),
        ({"threshold": float("nan")}, "threshold is nan"),
        ({"threshold": "0.8"}, "threshold is '0.8'"),
        ({"keep": 5}, "keep is 5"),
        ({"num_perm": 64, "permutations": 64}, "num_perm and permutations are the same"),
        ({"method": "simhash", "bits": 0}, "bits is 0"),
        ({"keep": "best"}, "keep is 'best', which does nothing for text"),
        ({"keep": "max:"}, "keep is 'max:'"),
        ({"keep": "max:score"}, "no column 'score'"),
        ({"grouping": "ring"}, "grouping is 'ring'"),
        ({"permutations": 1}, "permutations is 1"),
        ({"ngram": 0}, "ngram is 0"),
        ({"method": "simhash", "bits": 7}, "bits"),
        ({"text": "body"}, "no column 'body' for the text; its columns: text"),
        ({"memory_limit": 1000}, "memory_limit is 1,000 bytes"),
        ({"threads": 0}, "threads is 0"),
        ({"format": "xml"}, "format is 'xml'"),
    ],
)
def test_bad_settings_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(la.LookalikeError, match=message):
        la.dedup(["a", "b"], **options)


def test_a_result_tells_what_it_is() -> None:
    result = la.dedup(["a b c d e f", "a b c d e f", "x y z"], id=None)
    assert repr(result) == (
        "TextResult(kind='text', documents=3, kept=2, exact_duplicates=1, near_duplicates=0, "
        "groups=1)"
    )
    assert json.loads(json.dumps(result.to_dict()))["counts"]["kept"] == 2
    assert result.id(1) == 1 and result.text(2) == "x y z"
    assert "exact duplicates" in result.summary()


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["b", None, "c"]).dictionary_encode(),
        pa.array(["9", None, "10"], pa.string_view()),
        pa.array([1.5, float("nan"), 2.5]),
        pa.array([1, None, 2]),
    ],
)
def test_any_type_with_an_order_decides(values: pa.Array) -> None:
    table = pa.table({"text": ["the same text"] * 3, "by": values})
    assert la.dedup(table, keep="max:by").keep.tolist() == [False, False, True]
    assert la.dedup(table, keep="min:by").keep.tolist() == [True, False, False]


def test_without_any_value_the_first_stays() -> None:
    rows = [{"text": "the same text", "by": None}] * 2
    assert la.dedup(rows, keep="max:by").keep.tolist() == [True, False]


def test_one_column_may_be_everything() -> None:
    table = pa.table({"text": ["a b", "a b", "c d"]})
    result = la.dedup(table, id="text", keep="max:text")
    assert result.keep.tolist() == [True, False, True] and result.id(2) == "c d"


def test_categories_of_polars() -> None:
    frame = polars.DataFrame({"text": ["a b", "a b", "c d"]}).with_columns(
        polars.col("text").cast(polars.Categorical)
    )
    assert la.dedup(frame, keep="max:text").keep.tolist() == [True, False, True]


def test_estimates_stand_for_every_dropped_document() -> None:
    """Also where a chain leads to the one that stays, and nobody compared the two."""
    words = [f"w{number}" for number in range(60)]
    texts = [" ".join(words[at : at + 40]) for at in range(0, 12, 2)]
    for method in ("minhash", "simhash"):
        options: dict[str, Any] = {"method": method, "grouping": "components"}
        result = la.dedup(texts, verify=False, threshold=0.6, **options)
        assert result.counts.estimated_duplicates > 1 and result.counts.near_duplicates == 0
        assert not np.isnan(result.similarity[~result.keep]).any()
        assert result.similarity[~result.keep].min() < result.pairs.similarity.max()


def test_too_few_permutations_are_warned_of() -> None:
    texts = ["one two three four five six seven"] * 2
    assert "probability of" in la.dedup(texts, permutations=2).warnings[0]
    assert not la.dedup(texts).warnings


def test_more_pairs_than_memory_is_allowed_for() -> None:
    texts = [f"these words are the same every time{'!' * number}" for number in range(400)]
    with pytest.raises(la.errors.ResultTooLargeError, match="memory_limit"):
        la.dedup(texts, memory_limit=(600 << 20) + 60_000 + 100)


@pytest.mark.parametrize(("method", "bits"), [("simhash", 128), ("topsig", 1024)])
def test_a_cosine_that_is_the_threshold_exactly_counts(method: str, bits: int) -> None:
    """Of n different words, all but n/5 shared: 0.8 exactly, whatever rounding makes of it."""
    for count in range(5, 200, 5):
        shared = [f"s{at}" for at in range(count * 4 // 5)]
        texts = [" ".join([*shared, *(f"{side}{at}" for at in range(count // 5))]) for side in "ab"]
        result = la.dedup(texts, method=method, ngram=1, radius=bits)
        assert result.counts.near_duplicates == 1, count


def test_a_result_is_complete_and_stays_as_it_is(tmp_path: Path) -> None:
    told: list[str] = []
    result = la.dedup(
        ["one two", "one two", "three"], progress=lambda step, share: told.append(step)
    )
    assert tuple(dict.fromkeys(told)) == tuple(result.seconds) == STEPS[:-1]
    for name in [field.name for field in fields(result)]:
        value = getattr(result, name)
        assert value is not None or name == "source_identity"  # a list in memory has none
        with pytest.raises(FrozenInstanceError):
            setattr(result, name, value)
    file = tmp_path / "corpus.txt"
    file.write_text("one two\nthree\n")
    assert la.dedup(file).source_identity is not None


def test_documents_of_many_pairs_are_read_once_a_run() -> None:
    """Runs are bounded by the text that is read for them, not by that of every pair."""
    rng = np.random.default_rng(3)
    few = np.stack(np.triu_indices(100, 1))
    many = np.sort(rng.integers(0, 2000, (2, 5000)), axis=0)
    many = many[:, np.lexsort(many[::-1])]
    cases = [(few, np.full(100, 200_000)), (many, rng.integers(0, 500_000, 2000))]
    counts = []
    for pairs, lengths in cases:
        parts = list(verify.bounded_parts(lengths, pairs[0], pairs[1]))
        assert [part.start for part in parts] == [0, *(part.stop for part in parts[:-1])]
        assert parts[-1].stop == pairs.shape[1]
        for part in parts:
            read = np.unique(pairs[:, part])
            assert lengths[read].sum() <= verify._BYTES_AT_A_TIME + 2 * lengths.max()
        counts.append(len(parts))
    assert counts[0] == 1 and counts[1] > 1


def test_a_name_with_a_slash_at_its_end_is_a_folder(tmp_path: Path) -> None:
    texts = ["one two three four five six seven"] * 2
    target = tmp_path / "out"
    for name in (f"{target}/", f"{target}.jsonl/"):
        with pytest.raises(la.errors.ArgumentError, match="ends with a slash, so it names"):
            la.dedup(texts).write(name)
    assert not list(tmp_path.iterdir())
    for name in ("a", "b"):
        (tmp_path / "texts").mkdir(exist_ok=True)
        (tmp_path / "texts" / f"{name}.txt").write_text(texts[0])
    la.dedup(tmp_path / "texts").write(f"{target}/")
    assert [path.name for path in target.iterdir()] == ["a.txt"]
