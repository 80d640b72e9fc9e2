"""Vectors that are written as lists, in JSON Lines and elsewhere: read, or named by their line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike.dedup.vectors import written_vectors

NUMBERS = st.one_of(st.integers(-3, 3), st.floats(-2, 2, width=32))


@settings(max_examples=60, deadline=None)
@given(data=st.data(), dimensions=st.integers(1, 5))
def test_written_lists_are_read_as_numpy_reads_them(data: st.DataObject, dimensions: int) -> None:
    rows = data.draw(st.lists(st.lists(NUMBERS, min_size=dimensions, max_size=dimensions)))
    texts = [json.dumps(row) for row in rows]
    found = written_vectors(texts, np.arange(len(rows)), None, str)
    assert np.array_equal(found, np.array(rows, np.float32).reshape(found.shape))
    if not rows:
        return
    bad = data.draw(st.integers(0, len(rows) - 1))
    numbers = np.arange(len(rows)) * 10
    for what in ("[", "7", '"x"', "null", "{}", "[[1]]", "[NaN]", "[1e99]", "[true]", "[]"):
        texts = [json.dumps(row[:1]) for row in rows]
        texts[bad] = what
        expected = rf"^{bad * 10}: the vector (is|has) .*; exp"
        with pytest.raises(la.errors.DocumentError, match=expected):
            written_vectors(texts, numbers, None, str)


def test_json_lines_are_as_good_as_parquet(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 8)).astype(np.float32)
    rows[20:40] = rows[:20] * 3
    lists: list[Any] = rows.astype(float).tolist()
    lists[7], lists[50] = None, [0] * 8
    path = tmp_path / "rows.jsonl"
    lines = [json.dumps({"id": f"r{n}", "embedding": one}) for n, one in enumerate(lists)]
    path.write_text("\n\n".join(lines))
    expected = la.dedup(pa.table({"embedding": lists}), kind="vectors", exact=True)
    found = la.dedup(path, kind="vectors", exact=True)
    assert found.duplicate_of.tolist() == expected.duplicate_of.tolist()
    assert found.id(3) == "r3" and found.counts.without_features == 1
    assert found.counts.near_duplicates + found.counts.exact_duplicates == 19
    found.write(tmp_path / "kept.jsonl")
    assert (tmp_path / "kept.jsonl").read_text().splitlines() == [
        line for line, stays in zip(lines, found.keep, strict=True) if stays
    ]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ('"x"', "the vector is 'x'; expected a list of numbers"),
        ("[1, 2]", "the vector has 2 dimensions; expected 3, as the first has"),
        ("[]", "the vector has 0 dimensions; expected 3, as the first has"),
        ('[1, 2, "a"]', "the vector has the value 'a'; expected only numbers"),
        ("[1, 2, null]", "the vector has the value None; expected only numbers"),
        ("[1, 2, -1e200]", "the vector has the value -1e.200; expected numbers that float32 can"),
        ("[1, 2, " + 400 * "9" + "]", "the vector has the value inf; expected numbers that float"),
        ('{"a": 1}', "the vector is {'a': 1}; expected a list of numbers"),
    ],
)
def test_what_is_no_vector_is_named_by_file_and_line(value: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"v": [1, 2, 3]}\n\n{"v": null}\n')
    (tmp_path / "b.jsonl").write_text(f'\n{{"w": 1}}\n\n{{"v": {value}}}\n{{"v": [1]}}\n')
    with pytest.raises(la.errors.DocumentError, match=rf"b\.jsonl, line 4: {said}"):
        la.dedup([tmp_path / "a.jsonl", tmp_path / "b.jsonl"], kind="vectors", vectors="v")


def test_a_list_of_nothing_at_first(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"v": []}\n')
    with pytest.raises(
        la.errors.DocumentError, match="line 1: .* 0 dimensions; expected one at least"
    ):
        la.dedup(path, kind="vectors", vectors="v")
