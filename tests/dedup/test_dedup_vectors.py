"""Rows de-duplicated by the cosine of their vectors, beside an oracle that compares all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike.cli import main
from support.cases.report_pages import page_of
from support.oracles.vectors import cosines


def some_rows(seed: int, count: int, dtype: str) -> Any:
    """Return vectors of which many are equal, nearly so, multiples of others, or zero."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(max(1, count // 4), 6))
    rows = centers[rng.integers(0, len(centers), count)] * rng.choice([1, 1, 2, 0], (count, 1))
    rows += rng.normal(size=rows.shape) * rng.choice([0, 0.05, 0.3], (count, 1))
    return rows.astype(dtype)


def table_of(rows: Any, **columns: Any) -> pa.Table:
    kind = pa.list_(pa.from_numpy_dtype(rows.dtype))
    return pa.table({"vector": pa.array(list(rows), kind), **columns})


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**16),
    count=st.integers(0, 40),
    dtype=st.sampled_from(["f2", "f4", "f8"]),
    threshold=st.sampled_from([0.5, 0.9, 0.99]),
    keep=st.sampled_from(["first", "last", "max:score", "min:score"]),
    threads=st.integers(1, 2),
    exact=st.booleans(),
)
def test_what_goes_is_like_what_stays(
    seed: int, count: int, dtype: str, threshold: float, keep: str, threads: int, exact: bool
) -> None:
    rows = some_rows(seed, count, dtype)
    scores = np.random.default_rng(seed).integers(0, 5, count)
    table = table_of(rows, score=pa.array(scores, mask=scores == 0))
    result = la.dedup(
        table,
        kind="vectors",
        vectors="vector",
        threshold=threshold,
        keep=keep,
        threads=threads,
        exact=exact,
    )
    held = rows.astype("f2" if dtype == "f2" else "f4")
    truth = cosines(held, held)
    zero = ~held.any(axis=1)
    # Who comes first stays, unless one that stays already is like it.
    rank = {
        "first": np.arange(count),
        "last": -np.arange(count),
        "max:score": np.where(scores == 0, 9, -scores),
        "min:score": np.where(scores == 0, 9, scores),
    }[keep]
    stays: list[int] = []
    for row in sorted(range(count), key=lambda one: (rank[one], one)):
        # A multiple of a row is as alike as an equal one, but for rounding.
        if zero[row] or not any(truth[row, other] >= threshold - 1e-12 for other in stays):
            stays.append(row)
    kept = np.flatnonzero(result.keep).tolist()
    if exact:
        assert kept == sorted(stays)
    assert result.keep[zero].all()
    for row in np.flatnonzero(~result.keep).tolist():
        other = result.duplicate_of[row]
        assert result.keep[other]
        assert result.similarity[row] == pytest.approx(truth[row, other], abs=1e-12)
        assert result.similarity[row] >= threshold
        assert result.group_of[row] == result.group_of[other]
    assert result.counts.kept == len(kept)
    assert (
        result.counts.kept + result.counts.exact_duplicates + result.counts.near_duplicates == count
    )


def test_pairs_and_components_and_none() -> None:
    angles = np.array([0, 0.2, 0.4, 2.0, 2.0])
    rows = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype("f4")
    table = table_of(rows, id=pa.array(list("abcde")))
    least = float(np.cos(0.25))
    star = la.dedup(table, kind="vectors", vectors="vector", threshold=least, exact=True)
    assert star.keep.tolist() == [True, False, True, True, False]
    assert (star.counts.near_duplicates, star.counts.exact_duplicates) == (1, 1)
    assert [star.id(row) for row in (0, 4)] == ["a", "e"]
    assert star.pairs.left.tolist() == [0, 1, 3]  # the last is a pair of equal vectors
    assert star.different_pairs.left.tolist() == [0, 1]
    chain = la.dedup(
        table, kind="vectors", vectors="vector", threshold=least, exact=True, grouping="components"
    )
    assert chain.keep.tolist() == [True, False, False, True, False]
    assert chain.counts.below_threshold == 1
    assert chain.similarity[2] == pytest.approx(np.cos(0.4), abs=1e-6)
    none = la.dedup(
        table, kind="vectors", vectors="vector", threshold=least, exact=True, keep="none"
    )
    assert not none.keep.any()


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i4", ">f4", "u1"])
def test_an_array_is_a_source(dtype: Any) -> None:
    """The kind need not be named, and what is kept is an array of the same type."""
    some = np.random.default_rng(0).integers(0, 50, (40, 12)).astype(dtype)
    doubled = np.concatenate([some, some[:10]]).astype(dtype)
    for order in (doubled, np.asfortranarray(doubled)):
        result = la.dedup(order, threshold=0.99)
        assert result.kind == "vectors"
        kept = result.kept()
        assert kept.dtype == dtype and np.array_equal(kept, some)
    assert la.dedup(doubled[:0]).counts.documents == 0


def test_other_arrays_are_refused() -> None:
    with pytest.raises(la.LookalikeError, match="not a number"):
        la.dedup(np.full((3, 4), np.nan))
    for wrong in (np.zeros((2, 3, 4)), np.zeros((2, 0)), np.array([["a", "b"]]), np.zeros(3)):
        with pytest.raises(la.LookalikeError):
            la.dedup(wrong)


def test_rows_without_a_vector_stay_and_bad_ones_are_named() -> None:
    vectors = [[1.0, 0.0], None, [1.0, 0.0], None, [0.0, 0.0], [0.0, 0.0]]
    result = la.dedup(pa.table({"embedding": vectors}), kind="vectors")  # the column is a guess
    assert result.keep.tolist() == [True, True, False, True, True, True]
    assert result.counts.without_features == 2
    assert result.column == "embedding"
    with pytest.raises(
        la.errors.DocumentError, match="vector 3 has a value that is infinite or not"
    ):
        la.dedup(pa.table({"v": [[1.0], None, [2.0], [float("nan")]]}), kind="vectors", vectors="v")
    with pytest.raises(
        la.errors.DocumentError, match="vector 2 has 2 dimensions, and vector 1 has 1"
    ):
        la.dedup(pa.table({"v": [None, [2.0], [1.0, 2.0]]}), kind="vectors", vectors="v")
    with pytest.raises(
        la.errors.DocumentError, match="the column 'v' is of type bool; expected lists"
    ):
        la.dedup(pa.table({"v": [True]}), kind="vectors", vectors="v")
    with pytest.raises(
        la.errors.DocumentError, match="row 1: the vector is 'a'; expected a list of numb"
    ):
        la.dedup(pa.table({"v": [None, "a"]}), kind="vectors", vectors="v")
    with pytest.raises(
        la.errors.ArgumentError, match=r"say which one has the vectors with vectors="
    ):
        la.dedup(pa.table({"v": [[1.0]]}), kind="vectors")
    with pytest.raises(la.errors.ArgumentError, match="has no column 'w' for the vectors"):
        la.dedup(pa.table({"v": [[1.0]]}), kind="vectors", vectors="w")
    with pytest.raises(
        la.errors.ArgumentError, match="keep is 'longest', which does nothing for vec"
    ):
        la.dedup(pa.table({"v": [[1.0]]}), kind="vectors", vectors="v", keep="longest")


def test_widths_that_differ_between_batches(tmp_path: Path) -> None:
    for name, row in (("a", [1.0, 2.0]), ("b", [1.0])):
        pq.write_table(pa.table({"v": [row]}), tmp_path / f"{name}.parquet")
    with pytest.raises(
        la.errors.DocumentError, match="vector 1 has 1 dimensions, and the first has 2"
    ):
        la.dedup(tmp_path / "*.parquet", kind="vectors", vectors="v")


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    rows = some_rows(1, 60, "f4")
    fixed = pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), 6)
    table = pa.table(
        {"name": [f"n{row}" for row in range(60)], "embedding": fixed, "other": range(60)}
    )
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=7)
    return tmp_path / "rows.parquet"


def test_the_command_writes_rows_as_they_were(
    parquet: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, pairs = tmp_path / "out.parquet", tmp_path / "pairs.csv"
    options = ["--vectors", "embedding", "--threshold", "0.9", "--exact", "--id", "name"]
    status = main(
        ["dedup", str(parquet), *options, "-o", str(out), "--pairs", str(pairs), "--json"]
    )
    assert status == 0
    said = json.loads(capsys.readouterr().out)
    whole, left = pq.read_table(parquet), pq.read_table(out)
    result = la.dedup(parquet, kind="vectors", vectors="embedding", threshold=0.9, exact=True)
    assert left.schema.equals(whole.schema)
    assert left.equals(whole.filter(pa.array(result.keep)))
    assert 0 < said["counts"]["kept"] == len(left) < 60
    assert said["settings"] == {"vectors": "embedding", "threshold": 0.9, "recall": 1.0}
    assert set(said["seconds"]) == {"read", "index", "pairs", "group", "write"}
    assert len(pairs.read_text().splitlines()) == said["counts"]["verified_pairs"] + 1

    annotated = tmp_path / "all.parquet"
    assert main(["dedup", str(parquet), *options, "--annotate", "-o", str(annotated)]) == 0
    assert "cosine of 0.9 or more" in capsys.readouterr().out
    table = pq.read_table(annotated)
    assert table.num_rows == 60
    gone = table.filter(pa.array(~result.keep))
    assert gone["duplicate_of"].null_count == 0
    assert min(gone["similarity"].to_pylist()) >= 0.9
    assert gone["duplicate_of"].to_pylist()[0].startswith("n")

    assert main(["dedup", str(parquet), *options, "--in-place", "--quiet"]) == 0
    assert pq.read_table(parquet).equals(left)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--ngram", "2"], "--ngram does nothing for vectors: texts are not compared"),
        (["--method", "simhash"], "--method does nothing for vectors: texts are not compared"),
        (["--no-verify"], "--no-verify does nothing for vectors"),
        (["--text", "name"], "--text does nothing for vectors: texts are not compared"),
        (["--min-words", "3"], "--min-words does nothing for vectors"),
        (
            ["--engine", "spark"],
            "--engine does nothing for vectors: they are compared by",
        ),
        (["--keep", "longest"], "--keep is 'longest', which does nothing for vectors; leave"),
        (["--threshold", "2"], "--threshold is 2.0; expected a number above 0 and at most 1"),
        (["--annotate"], "--annotate needs a file to write to"),
    ],
)
def test_options_that_say_nothing_of_vectors(
    parquet: Path, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dedup", str(parquet), "--vectors", "embedding", *options]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("keep", ["first", "none"])
@pytest.mark.parametrize("grouping", ["star", "components"])
def test_a_report_lists_the_groups(keep: str, grouping: str, tmp_path: Path) -> None:
    table = table_of(some_rows(3, 60, "f4"), name=[f"<b>row {at}" for at in range(60)])
    options: dict[str, Any] = {"id": "name", "threshold": 0.9, "keep": keep, "grouping": grouping}
    result = la.dedup(table, kind="vectors", vectors="vector", **options)
    page = page_of(result, tmp_path)
    assert f"Of 60 rows, {result.counts.kept} are kept" in page.text
    (table_of_groups,) = page.part("groups").all("table")
    lines = [line.all("td") for line in table_of_groups.all("tr")[1:]]
    groups = result.groups()
    assert len(lines) == len(groups) > 2
    for (size, lowest, stays, dropped), group in zip(lines, groups, strict=True):
        named = np.array([f"<b>row {row}" for row in group.tolist()])
        kept, gone = named[result.keep[group]], named[~result.keep[group]]
        assert size.text == str(len(group))
        similar = float(np.nanmin(result.similarity[group]))
        assert float(lowest.text) == pytest.approx(similar, abs=2e-4)
        if len(group) <= 12:
            assert [one.text for one in stays.all("bdi")] == kept.tolist()
            assert [one.text for one in dropped.all("bdi")] == gone.tolist()
    settings_shown = page.part("settings").text
    assert "0.9" in settings_shown and keep in settings_shown and grouping in settings_shown


def test_a_report_of_no_groups(tmp_path: Path) -> None:
    page = page_of(la.dedup(table_of(np.eye(3, dtype="f4")), vectors="vector"), tmp_path)
    assert "All 3 rows are kept: no duplicates were found." in page.text
    assert page.by_id("groups") is None
