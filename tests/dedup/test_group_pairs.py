"""Clusters of pairs that people already have."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike.cli import main
from support.oracles import dedup as dedup_oracle

PAIRS = [("b", "a"), ("c", "b"), ("d", "e"), ("b", "a"), ("f", "f")]


@settings(max_examples=100, deadline=None)
@given(
    count=st.integers(1, 12),
    data=st.data(),
    grouping=st.sampled_from(["star", "components"]),
    keep=st.sampled_from(["first", "last", "max", "min", "none", "function"]),
)
def test_against_the_oracle(count: int, data: st.DataObject, grouping: str, keep: str) -> None:
    place = st.integers(0, count - 1)
    pairs = data.draw(st.lists(st.tuples(place, place), max_size=25))
    names = data.draw(st.permutations([f"n{at}" for at in range(count)]))
    values = data.draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))
    asked: Any = keep
    if keep == "function":
        asked = lambda group: max(group, key=lambda id: (values[names.index(id)], id))  # noqa: E731
    found = la.group_pairs(
        [(names[one], names[two]) for one, two in pairs],
        ids=names, grouping=grouping, keep=asked,
        values=values if keep in ("max", "min") else None,
    )  # fmt: skip
    order = {
        "last": list(range(count))[::-1],
        "max": sorted(range(count), key=lambda at: -values[at]),
        "min": sorted(range(count), key=lambda at: values[at]),
    }.get(keep, list(range(count)))
    if keep == "function":
        order = sorted(range(count), key=lambda at: (values[at], names[at]), reverse=True)
    together = {(min(pair), max(pair)) for pair in pairs if pair[0] != pair[1]}
    if keep == "none":
        assert {*np.flatnonzero(~found.keep).tolist()} == {at for pair in together for at in pair}
    elif grouping == "star":
        assert {*np.flatnonzero(found.keep).tolist()} == dedup_oracle.stay(order, together, 0)
    else:
        labels = dedup_oracle.components(count, together)
        best: dict[int, int] = {}
        for at in order:
            best.setdefault(labels[at], at)
        assert {*np.flatnonzero(found.keep).tolist()} == set(best.values())
        assert found.group_of.tolist() == labels
    for at in np.flatnonzero(~found.keep).tolist():
        other = int(found.duplicate_of[at])
        if grouping == "star" or keep == "none":
            assert (min(at, other), max(at, other)) in together
        assert found.keep[other] == (keep != "none")
    assert found.kept() == [names[at] for at in np.flatnonzero(found.keep).tolist()]
    grouped = [id for group in found.groups() for id in group]
    assert len(grouped) == len(set(grouped))


@pytest.mark.parametrize(
    "form", ["tuples", "arrow", "pandas", "polars", "dicts", "csv", "jsonl", "parquet", "json"]
)
def test_pairs_come_in_any_form(form: str, tmp_path: Path) -> None:
    left, right = [one for one, _ in PAIRS], [two for _, two in PAIRS]
    table = pa.table({"left": left, "right": right})
    path = tmp_path / f"p.{form}"
    given: Any = {
        "tuples": iter(PAIRS),
        "arrow": table,
        "pandas": pd.DataFrame({"left": left, "right": right}),
        "polars": polars.DataFrame({"left": left, "right": right}),
        "dicts": table.to_pylist(),
    }.get(form, path)
    if form == "csv":
        path.write_text("\n".join(["one,two", *map(",".join, PAIRS)]))
    elif form == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    elif form == "json":
        path.write_text(json.dumps(table.to_pylist()))
    elif form == "parquet":
        pa.parquet.write_table(table, path)
    found = la.group_pairs(given)
    assert list(found.ids) == ["b", "a", "c", "d", "e", "f"]  # as they appear
    assert found.groups() == [["b", "a", "c"], ["d", "e"]]
    assert found.kept() == ["b", "d", "f"]
    columns = found.to_arrow().to_pydict()
    assert columns["group_id"] == ["b", "b", "b", "d", "d", None]
    assert columns["duplicate_of"] == [None, "b", "b", None, "d", None]
    assert repr(found) == "PairGroups(documents=6, kept=3, groups=2)"


def test_pairs_of_an_index_and_numbers_in_files(tmp_path: Path) -> None:
    rows = np.zeros((6, 8), np.uint8)
    rows[4:] = 255
    rows[3, :4] = 255
    pairs = la.ScanIndex(rows).pairs(0)
    found = la.group_pairs(pairs, ids=range(6))
    assert found.groups() == [[0, 1, 2], [4, 5]] and found.kept() == [0, 3, 4]
    assert la.group_pairs(pairs).ids == [0, 1, 2, 4, 5]
    assert la.group_pairs(np.array([[9, 2], [2, 5]])).ids == [2, 5, 9]
    (tmp_path / "p.csv").write_text("left,right\n10,9\n9,10\n")
    assert la.group_pairs(tmp_path / "p.csv").ids == [9, 10]
    (tmp_path / "p.csv").write_text("left,right\n010,9\n")
    assert la.group_pairs(tmp_path / "p.csv").ids == ["010", "9"]


def test_none_names_the_most_similar(tmp_path: Path) -> None:
    table = pa.table(
        {"left": ["a", "a", "b"], "right": ["b", "c", "c"], "similarity": [0.8, 0.9, 0.85]}
    )
    found = la.group_pairs(table, keep="none").to_numpy()
    assert dict(zip(found["id"], found["duplicate_of"], strict=True)) == {
        "a": "c", "b": "c", "c": "a",
    }  # fmt: skip


def test_ids_may_be_anything_that_can_be_looked_up() -> None:
    found = la.group_pairs([((1, 2), "x"), (b"y", "x"), (True, 2.5)], ids=None)
    assert found.groups() == [[(1, 2), "x"], [True, 2.5]] and b"y" in found.kept()


@pytest.mark.parametrize(
    ("pairs", "options", "message"),
    [
        ([("a",)], {}, "pair 0 has 1 elements"),
        (["ab"], {}, "pair 0 is 'ab'; expected two ids"),
        (7, {}, "pairs is 7"),
        (np.zeros((2, 3), int), {}, r"shape \(2, 3\); expected \(n, 2\)"),
        ([("a", None)], {}, "None for an id"),
        ([("a", float("nan"))], {}, "nan for an id"),
        ([("a", ["b"])], {}, "cannot be looked up"),
        ([("a", "b")], {"ids": ["a"]}, "'b' of type str, which is not in ids"),
        ([("a", "b")], {"ids": ["a", "b", "a"]}, "'a' twice"),
        ([("a", "b")], {"keep": "longest"}, "keep is 'longest'"),
        ([("a", "b")], {"grouping": "ring"}, "grouping is 'ring'"),
        ([("a", "b")], {"keep": "max"}, "go with values"),
        ([("a", "b")], {"values": [1, 2]}, "give ids, too"),
        ([("a", "b")], {"ids": "ab", "values": [1], "keep": "max"}, "a number for each of 2 ids"),
        ([("a", "b")], {"keep": lambda ids: "c"}, "keep returned 'c' for a group of 2"),
        (pa.table({"left": ["a"]}), {}, "expected left and right"),
        (pa.table({"id": ["a"], "text": ["b"]}), {}, "columns id, text; expected left and right"),
        (pa.table({"Text": ["a"], "b": ["b"]}), {}, "columns Text, b; expected left and right"),
        (pa.table({"a": [1], "b": [2], "c": [3]}), {}, "columns a, b, c; expected left and right"),
    ],
)
def test_what_cannot_be_understood_is_refused(pairs: Any, options: Any, message: str) -> None:
    with pytest.raises((la.errors.ArgumentError, la.errors.DocumentError), match=message):
        la.group_pairs(pairs, **options)


def test_the_only_two_columns_are_the_ids() -> None:
    for more in ({}, {"similarity": [0.9]}, {"distance": [3]}):
        found = la.group_pairs(pa.table({"one": ["a"], "two": ["b"], **more}))
        assert found.groups() == [["a", "b"]]


def test_no_pairs_are_no_clusters() -> None:
    assert len(la.group_pairs([])) == 0 and la.group_pairs([], ids="abc").kept() == [
        "a", "b", "c",
    ]  # fmt: skip
    assert la.group_pairs([], ids="ab", keep=lambda ids: ids[0]).groups() == []


def test_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = np.zeros((4, 8), np.uint8)
    rows[3] = 255
    np.save("s.npy", rows)
    assert main(["pairs", "s.npy", "--radius", "0", "--groups", "-o", "c.csv"]) == 0
    assert "4 documents, 1 group, 2 kept: c.csv" in capsys.readouterr().out
    with open("c.csv") as file:
        assert list(csv.reader(file)) == [
            ["id", "group_id", "kept", "duplicate_of"],
            ["0", "0", "true", ""],
            ["1", "0", "false", "0"],
            ["2", "0", "false", "0"],
            ["3", "", "true", ""],
        ]
    Path("p.csv").write_text("left,right\na,b\nb,c\n")
    assert main(["pairs", "p.csv", "--groups", "--json", "--quiet"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["id"] for line in lines if line["kept"]] == ["a", "c"]
    assert main(["pairs", "p.csv", "--groups", "--grouping", "components", "--keep", "last"]) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines()[1] == "a\ta\tFalse\tc"
    assert "3 documents, 1 group, 1 kept" in printed.err
    for arguments, message in [
        (["p.csv"], "add --groups"),
        (["p.csv", "--groups", "--radius", "3"], "--radius needs signatures"),
        (["s.npy", "--radius", "1", "--keep", "none"], "--keep needs --groups"),
        (["p.csv", "--groups", "-o", "p.csv"], "which is also an input"),
    ]:
        assert main(["pairs", *arguments]) in (1, 2)  # an error, or wrong usage of an option
        assert message in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["pairs", "s.npy", "--groups"])
    assert "--radius --threshold is required" in capsys.readouterr().err


@pytest.mark.parametrize("grouping", ["star", "components"])
def test_of_those_that_go_with_all_of_a_group_none_stands_alone(grouping: str) -> None:
    """The last of a chain is in no star of others, and goes because of one that is in one."""
    found = la.group_pairs([("a", "b"), ("b", "c"), ("x", "y")], grouping=grouping, keep="none")
    assert found.groups() == [["a", "b", "c"], ["x", "y"]] and found.kept() == []
