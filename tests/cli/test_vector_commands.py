"""`lookalike index` and `lookalike search` of vectors, beside all cosines."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

import lookalike as la
from lookalike.cli import main
from support.oracles.vectors import cosines
from support.running.refusals import refused

DIMENSIONS = 12


def some(count: int, seed: int) -> NDArray[np.float32]:
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(6, DIMENSIONS))
    rows = centers[rng.integers(0, 6, count)] + rng.normal(size=(count, DIMENSIONS)) / 2
    return rows.astype(np.float32)


def written(path: Path, rows: NDArray[np.float32], *, ids: bool, gaps: bool) -> list[str | int]:
    """Write rows in the format of the name; return what each is called, those without a vector too.

    `gaps`: every fifth row has none.
    """
    if path.suffix == ".npy":
        np.save(path, rows)
        return list(range(len(rows)))
    lists: list[Any] = rows.tolist()
    if gaps:
        for place in range(0, len(rows) + len(rows) // 4 + 1, 5):
            lists.insert(place, None)
    called: list[str | int] = [f"row {n}" if ids else n for n in range(len(lists))]
    columns: dict[str, Any] = {"embedding": lists, "title": ["t"] * len(lists)}
    if ids:
        columns["id"] = called
    if path.suffix == ".parquet":
        kind = pa.list_(pa.float32())
        columns["embedding"] = pa.array(lists, kind)
        pq.write_table(pa.table(columns), path)
    else:
        names = list(columns)
        rows_ = (dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True))
        path.write_text("\n".join(json.dumps(row) for row in rows_) + "\n")
    return called


def answers(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert main(["search", *map(str, arguments), "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_only_bits_are_stored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows, index = some(400, 1), tmp_path / "bits.lookalike"
    np.save(tmp_path / "rows.npy", rows)
    build = ["index", str(tmp_path / "rows.npy"), "-o", str(index), "--only-bits"]
    assert main(build) == 0
    assert "only signatures of 512 bits" in capsys.readouterr().out
    assert la.VectorIndex.load(index).only_bits
    found = answers(capsys, index, "--signatures", tmp_path / "rows.npy", "-k", 1)
    assert len(found) == 400
    refused = ["search", str(index), "--signatures", str(tmp_path / "rows.npy"), "--exact"]
    assert main(refused) != 0
    assert "--exact needs vectors, but the index holds only 512 bits" in capsys.readouterr().err


@pytest.mark.parametrize("format", ["parquet", "jsonl", "npy"])
@pytest.mark.parametrize(("ids", "gaps"), [(True, True), (False, True), (False, False)])
def test_what_is_nearest_by_cosine_is_found(
    format: str, ids: bool, gaps: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, asked = some(400, 1), some(9, 2)
    source, index = tmp_path / f"rows.{format}", tmp_path / "index.lookalike"
    called = written(source, rows, ids=ids, gaps=gaps)
    if gaps and format != "npy":
        there = [name for place, name in enumerate(called) if place % 5]
    else:
        there = called
    assert len(there) == len(rows)
    column = [] if format == "npy" else ["--vectors", "embedding"]
    assert main(["index", str(source), *column, "-o", str(index), "--threads", "1"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith(f"400 vectors of {DIMENSIONS} dimensions, float32, with signat")
    assert ("rows without a vector left out" in printed.err) == (gaps and format != "npy")
    queries = tmp_path / f"asked.{format}"
    labels = written(queries, asked, ids=True, gaps=False)
    truth = cosines(asked, rows)
    order = np.argsort(-truth, axis=1, kind="stable")
    found = answers(capsys, index, queries, "-k", 5, "--exact")
    assert [one["query"] for one in found] == labels
    for number, one in enumerate(found):
        assert one["exact"] is True
        nearest = order[number, :5]
        assert [each["id"] for each in one["results"]] == [there[place] for place in nearest]
        told = [each["similarity"] for each in one["results"]]
        assert told == pytest.approx(truth[number, nearest].tolist(), abs=1e-4)
    least = 0.6
    found = answers(capsys, index, queries, *column, "--threshold", least)
    for number, one in enumerate(found):
        alike = {there[place] for place in np.flatnonzero(truth[number] >= least)}
        assert {each["id"] for each in one["results"]} == alike and one["exact"] is True
    # Without --exact, as la.VectorIndex does: signatures propose, cosines decide.
    same = la.VectorIndex.load(index)
    expected = same.search(asked, 5, candidates=40, probe=2)
    found = answers(capsys, index, queries, "-k", 5, "--candidates", 40, "--probe", 2)
    for one, (near, similar) in zip(found, expected, strict=True):
        assert [each["id"] for each in one["results"]] == [same.name(id) for id in near.tolist()]
        assert [each["similarity"] for each in one["results"]] == similar.round(4).tolist()
        assert one["exact"] is False


def test_queries_that_are_typed_and_tables_for_people(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, index = tmp_path / "rows.jsonl", tmp_path / "index.lookalike"
    source.write_text('{"id": "east", "v": [1, 0]}\n{"id": "north", "v": [0, 1]}\n{"id": "x"}\n')
    assert main(["index", str(source), "--vectors", "v", "-o", str(index), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["vectors"], summary["without_vector"], summary["ids"]) == (2, 1, True)
    assert main(["search", str(index), "[3, 4]"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "query   id        similarity  exact",
        "[3, 4]  north         0.8000  yes",
        "[3, 4]  east          0.6000  yes",
    ]
    assert main(["search", str(index), "--file", str(source), "--vectors", "v", "-k", "1"]) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines()[1:] == [
        "east   east          1.0000  yes",
        "north  north         1.0000  yes",
        "x      -                  -  yes",
    ]
    assert "'x' has no vector; there is nothing to search for" in printed.err
    np.save(tmp_path / "one.npy", np.array([0.0, 2.0]))
    (one,) = answers(capsys, index, tmp_path / "one.npy", "-k", 1)
    assert one == {"query": 0, "exact": True, "results": [{"id": "north", "similarity": 1.0}]}
    np.save(tmp_path / "rows.npy", np.eye(2))
    found = answers(capsys, tmp_path / "rows.npy", "[0, 1]", "-k", 1)
    assert found[0]["results"] == [{"id": 1, "similarity": 1.0}]


def test_what_a_recall_takes_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "rows.npy", some(3000, 3))
    np.save(tmp_path / "asked.npy", some(20, 4))
    index = tmp_path / "index.lookalike"
    make = ["index", str(tmp_path / "rows.npy"), "-o", str(index), "--bits", "256"]
    assert main([*make, "--recall", "0.9"]) == 0
    (tuning,) = la.VectorIndex.load(index).tunings
    assert (
        f"a recall of 0.9 takes {tuning.search_settings['candidates']:,} cand"
        in capsys.readouterr().out
    )
    found = answers(capsys, index, tmp_path / "asked.npy", "--recall", 0.9)
    expected = la.VectorIndex.load(index).search(np.load(tmp_path / "asked.npy"), 10, recall=0.9)
    assert [[each["id"] for each in one["results"]] for one in found] == expected.ids.tolist()
    said = refused(["search", str(index), str([1] * 12), "--recall", "0.9", "-k", "11"], capsys)
    assert "`lookalike index --recall` does, for 10 neighbors or fewer, or pass --cand" in said
    few = tmp_path / "few.npy"
    np.save(few, some(3, 5))
    assert main(["index", str(few), "-o", str(index), "--recall", "0.9", "--quiet"]) == 0
    (one,) = answers(capsys, index, str([1] * DIMENSIONS), "--recall", 0.9)
    assert len(one["results"]) == 3
    np.save(few, some(1, 5))
    said = refused(["index", str(few), "-o", str(tmp_path / "new"), "--recall", "0.9"], capsys)
    assert "there is nothing to tune with" in said and not (tmp_path / "new").exists()


def test_what_says_nothing_of_vectors_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, index = tmp_path / "rows.parquet", tmp_path / "index.lookalike"
    written(rows, some(20, 5), ids=True, gaps=False)
    array = tmp_path / "rows.npy"
    np.save(array, some(20, 5))
    np.save(tmp_path / "bad.npy", np.full((2, DIMENSIONS), np.nan))
    assert main(["index", str(rows), "--vectors", "embedding", "-o", str(index), "--quiet"]) == 0
    bits = tmp_path / "bits.lookalike"
    la.ScanIndex(np.zeros((2, 8), np.uint8)).save(bits)
    make, out = ["index", str(rows), "--vectors", "embedding"], ["-o", str(tmp_path / "new")]
    ask, one = ["search", str(index)], json.dumps([1] * DIMENSIONS)
    cases: dict[str, list[str]] = {
        "--type does nothing with vectors": [*make, *out, "--type", "scan"],
        "--slice-bits does nothing with vectors": [*make, *out, "--slice-bits", "8"],
        "--signature does nothing with vectors": [*make, *out, "--signature", "x"],
        "has no column 'x' for the vectors": ["index", str(rows), "--vectors", "x", *out],
        "the vector is 't'; expected a list": ["index", str(rows), "--vectors", "title", *out],
        "--vectors does nothing: .* is an array": ["index", str(array), *make[2:], *out],
        "--id does nothing: .* is an array": ["index", str(array), "--id", "id", *out],
        "--bits needs vectors": ["index", str(bits), *out, "--bits", "8"],
        "bits is 7": [*make, *out, "--bits", "7"],
        "which is also an input": ["index", str(array), "-o", str(array)],
        "infinite or not a number": ["index", str(tmp_path / "bad.npy"), *out],
        "--radius does nothing with an index of vec": [*ask, one, "--radius", "3"],
        "--in does nothing with an index of vectors": [*ask, one, "--in", str(rows)],
        "--mask does nothing with an index of vect": [*ask, one, "--mask", "yes"],
        "--expand does nothing with an index of ve": [*ask, one, "--expand", "1"],
        "--probe needs -k": [*ask, one, "--threshold", "0.5", "--probe", "1"],
        "--recall and --exact exclude each other": [*ask, one, "--exact", "--recall", "0.5"],
        "--candidates and --exact exclude each other": [*ask, one, "--exact", "--candidates", "50"],
        "--probe and --exact exclude each other": [*ask, one, "--exact", "--probe", "5"],
        "--threshold is 2.0; expected a number from -1 to 1": [*ask, one, "--threshold", "2"],
        "QUERY 2: the vector is 'words'; expected a list": [*ask, one, "words"],
        r"QUERY 1: .* has 2 dimensions; expected 12, as the index": [*ask, "[1, 2]"],
        "--signatures is .*, but the index has vectors": [*(*ask, "--signatures", str(bits))],
        "--candidates needs an index of vectors": [
            *("search", str(bits), "x", "--candidates", "3")
        ],
        "--vectors needs an index of vectors": [*("search", str(bits), "x", "--vectors", "v")],
    }
    for expected, arguments in cases.items():
        said = refused(arguments, capsys)
        assert re.search(expected, said), (expected, said)
    assert not (tmp_path / "new").exists()


def test_names_of_vectors_last(tmp_path: Path) -> None:
    index = la.VectorIndex(some(4, 6))
    assert index.name(2) == 2
    index.names = ["a", "b", "ü\n", ""]
    index.save(tmp_path / "index")
    for same in (
        la.VectorIndex.load(tmp_path / "index"),
        la.VectorIndex.load(tmp_path / "index", verify=False),
        pickle.loads(pickle.dumps(index)),
    ):
        assert [same.name(id) for id in range(5)] == ["a", "b", "ü\n", "", 4]
    with pytest.raises(la.errors.ArgumentError, match="id is 'a'; expected a whole number"):
        index.name("a")  # type: ignore[arg-type]


def test_vectors_that_are_added_have_no_name_of_rows_without_one(tmp_path: Path) -> None:
    rows, path = tmp_path / "rows.jsonl", tmp_path / "index.lookalike"
    lines = [{"id": "a", "v": [1, 0]}, {"id": "b", "v": None}, {"id": "c", "v": [0, 1]}]
    lines += [{"id": "d", "v": None}, {"id": "e", "v": None}]
    rows.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert main(["index", str(rows), "--vectors", "v", "-o", str(path), "--quiet"]) == 0
    index = la.VectorIndex.load(path)
    (new,) = index.add(np.array([[1, 1]], np.float32)).tolist()
    found = index.search(np.array([[1, 1], [0, 1], [1, 0]], np.float32), 1).ids[:, 0].tolist()
    assert [index.name(id) for id in found] == [new, "c", "a"]
