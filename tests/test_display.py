"""Results are shown on one short line and as a table, and become tables of other packages."""

from __future__ import annotations

import inspect
import json
import math
import pickle
import re
import sys
import time
from collections.abc import Callable
from copy import copy
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lookalike as la
from lookalike.common_passages.results import HeldTexts
from lookalike.display import Column, Displayed, arrow_batch, short
from lookalike.recordings.decode import AudioInfo
from lookalike.results import (
    Added,
    Answer,
    Answers,
    BatchMatches,
    Chroma,
    Clusters,
    CoverMatch,
    DedupCounts,
    DedupSettings,
    Document,
    DocumentCluster,
    Explanation,
    Fingerprint,
    Imported,
    IncomingLinks,
    ItemError,
    KeyMatch,
    KeyMatches,
    Match,
    Matches,
    Measurement,
    Neighbors,
    Option,
    Overlap,
    OverlapPair,
    Overlaps,
    Pair,
    PairGroups,
    Pairs,
    PartAnswer,
    PartMatch,
    Passage,
    Passages,
    Prediction,
    RecordingMatch,
    Records,
    Report,
    SavedSignatures,
    Tuning,
    VectorMatches,
    VectorNeighbors,
    VectorPairs,
    VerifiedPairs,
    VideoFrames,
    Work,
    Written,
)
from lookalike.videos.frames import VideoInfo

HOSTILE = "<script>alert('x')</script>&\"\x1b[31m\u202e\ud800"
NOW = datetime(2024, 1, 1, tzinfo=UTC)
FEW = 50
MANY = 300_000


def whole(*shape: int) -> Any:
    return np.zeros(shape, np.int64)


def small(*shape: int) -> Any:
    return np.zeros(shape, np.int32)


def real(*shape: int) -> Any:
    return np.full(shape, 0.5)


def valid(text: str) -> str:
    return text.replace("\ud800", "")


def overlap(text: str) -> Overlap:
    return Overlap(text, text, 9, (0, 9), (0, 9), (0, 50), (0, 50), [(0, 0, 9)], 0, 1, HeldTexts())


def passage(text: str) -> Passage:
    return Passage(
        text, 0, 9, 0.5, (0, 9), (0, 9), (0, 50), (0, 50), (1, 2), [(0, 0, 9)], text, text, text
    )


def part_match(text: str) -> PartMatch:
    return PartMatch(text, 3, 2, 0.5, whole(2), whole(2), small(2))


def measurement(count: int) -> Measurement:
    names = (
        "milliseconds batch_milliseconds build_seconds bytes_per_signature cdr recall_by_distance "
        "nearest_hit_rate near_duplicate_recall top_10_in_10 top_10_in_100 lists touched"
    )
    shares: dict[str, Any] = dict.fromkeys(names.split(), 0.5)
    return Measurement(index="slices", count=count, **shares)


MAKE: dict[str, Callable[[int, str], Any]] = {
    "Added": lambda n, text: Added(Path(text.replace("\0", "")), n, text),
    "Answers": lambda n, text: Answers(
        [Answer([], version=1), Answer([Match(text, 3, {text: text}, text)] * n, version=1)]
    ),
    "BatchMatches": lambda n, text: BatchMatches(
        np.array([0, 0, n, n]), whole(n), small(n), True, query_ids=whole(3)
    ),
    "Answer": lambda n, text: Answer([Match(text, 3, {text: text}, text)] * n, version=1),
    "Clusters": lambda n, text: Clusters(np.zeros((n, 8), np.uint8), whole(n), small(n)),
    "BenchmarkCounts": lambda n, text: la.results.BenchmarkCounts(text, n, n, n),
    "CleanCounts": lambda n, text: la.clean([valid(text)] * min(n, FEW)).counts,
    "CleanResult": lambda n, text: la.clean([f"{valid(text)} a b"] * min(n, FEW), words=2),
    "ContaminatedDocument": lambda n, text: la.results.ContaminatedDocument(n, text, [], [], text),
    "Contamination": lambda n, text: la.decontaminate([f"{valid(text)} a b"] * min(n, FEW), ["a b"],
                                                      ngram=2),
    "Evidence": lambda n, text: la.results.Evidence(text, text, n, n, 0.5, (n, n), text),
    "RemovedUnit": lambda n, text: la.results.RemovedUnit(text, n, n),
    "Comparison": lambda n, text: la.compare_texts(valid(text) * min(n, 3), valid(text)),
    "DedupCounts": lambda n, text: DedupCounts(
        documents=n, kept=n, exact_duplicates=0, near_duplicates=0, groups=0, largest_group=0,
        verified_pairs=0,
    ),
    "DedupResult": lambda n, text: la.dedup([valid(text)] * min(n, FEW)),
    "DedupSettings": lambda n, text: DedupSettings(min_features=n + 1, stop_words=[valid(text)]),
    "Document": lambda n, text: Document(
        text, np.zeros(n, np.uint8), {text: [text] * n}, text, NOW, NOW
    ),
    "DocumentCluster": lambda n, text: DocumentCluster(0, n, 3.5, [(text, 0.5)] * n, [0] * n),
    "DocumentClusters": lambda n, text: la.cluster_documents(
        [f"{valid(text)} {i}" for i in range(min(n, FEW))]
    ),
    "Explanation": lambda n, text: Explanation.of_scan(n, 100),
    "Chroma": lambda n, text: Chroma(
        np.zeros((n, 12), np.uint8), whole(n), AudioInfo(1.5, 8000, 1, text, True)
    ),
    "CoverMatch": lambda n, text: CoverMatch(text, 1.5, 0.5, 30.0, n, 1.1, 0.5),
    "Fingerprint": lambda n, text: Fingerprint(
        np.zeros(n, np.uint32), whole(n), AudioInfo(1.5, 8000, 1, text, True)
    ),
    "VideoFrames": lambda n, text: VideoFrames(
        np.zeros((n, 32), np.uint8),
        whole(n),
        np.zeros(n, np.uint8),
        VideoInfo(1.5, 8, 8, 25.0, text, text),
    ),
    "Imported": lambda n, text: Imported(n, n, n, [text] * n, {text: n}),
    "ItemError": lambda n, text: ItemError(n, text, text),
    "KeyMatch": lambda n, text: KeyMatch(text, 0.5),
    "KeyMatches": lambda n, text: KeyMatches(
        np.array([0, 0, n, n]), real(n), True, whole(n), [text]
    ),
    "Match": lambda n, text: Match(text, 3, {text: text}, text, tuple(range(n))),
    "Matches": lambda n, text: Matches(np.array([0, 0, n, n]), whole(n), small(n), True),
    "Measurement": lambda n, text: measurement(n),
    "Neighbors": lambda n, text: Neighbors(whole(n, 3), small(n, 3), True, None, small(n, 3)),
    "IncomingLinks": lambda n, text: IncomingLinks(text, n, n, n, n, n, {text: n}, [text], [text]),
    "Option": lambda n, text: Option(index=text, settings={text: n}),
    "Overlap": lambda n, text: overlap(text),
    "OverlapPair": lambda n, text: OverlapPair(text, text, n, 0.5, 0.5, 1, 0, 1),
    "Overlaps": lambda n, text: Overlaps((overlap(text),) * n, n, 0, 0, 0, whole(n)),
    "Pair": lambda n, text: Pair(text, text, n),
    "PairGroups": lambda n, text: PairGroups([text] * n, whole(n), whole(n), ()),
    "Pairs": lambda n, text: Pairs(whole(n), whole(n), small(n), True),
    "PartAnswer": lambda n, text: PartAnswer((part_match(text),) * n, 3, 0, True),
    "PartMatch": lambda n, text: part_match(text),
    "Passage": lambda n, text: passage(text),
    "Passages": lambda n, text: Passages((passage(text),) * n, n, 0, 0),
    "Prediction": lambda n, text: Prediction(index="slices", remark=text, memory_bytes=n),
    "RecordingMatch": lambda n, text: RecordingMatch(text, 1.5, 0.5, n),
    "Records": lambda n, text: Records(Pair, [Pair(text, text, n)] * n),
    "Report": lambda n, text: Report(n, n, n, [text] * n, [text] * n),
    "SavedSignatures": lambda n, text: SavedSignatures(
        np.zeros((n, 512), np.uint8), la.SimHash(4096), [text] * n
    ),
    "TextResult": lambda n, text: la.dedup([valid(text)] * min(n, FEW)),
    "Tuning": lambda n, text: Tuning(
        target=0.9, chosen=measurement(3), options=(measurement(3),) * min(n, FEW)
    ),
    "VectorMatches": lambda n, text: VectorMatches(
        np.array([0, 0, n, n]), whole(n), real(n), True
    ),
    "VectorNeighbors": lambda n, text: VectorNeighbors(whole(n, 3), real(n, 3), True),
    "VectorPairs": lambda n, text: VectorPairs(whole(n), whole(n), real(n), True),
    "VectorResult": lambda n, text: la.dedup(
        [{"v": [1.0, float(i)], "id": i} for i in range(min(n, FEW))] or [{"v": [1.0], "id": 0}],
        vectors="v",
    ),
    "VerifiedPairs": lambda n, text: VerifiedPairs(whole(n), whole(n), real(n), small(n)),
    "Work": lambda n, text: Work(text, n, n, (1,) * n),
    "Written": lambda n, text: Written(n, n, n, [ItemError(0, text, text)] * n, 1),
}  # fmt: skip
"""A result of about so many rows, with this text wherever it has one."""


class Checker(HTMLParser):
    """Collects tags, and fails for those that are not closed."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def check(result: Any) -> tuple[str, str]:
    """Return the line and the table of a result, which are small, safe and quick."""
    begin = time.perf_counter()
    line, table = repr(result), result._repr_html_()
    assert time.perf_counter() - begin < 2
    assert line.startswith("[" if isinstance(result, Records) else f"{type(result).__name__}(")
    assert len(line) <= 1000
    assert len(table) < 200_000
    assert not re.search("[\x00-\x1f\x7f\u202e\ud800]", line)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e\ud800]", table)
    table.encode()
    checker = Checker()
    checker.feed(table)
    assert not checker.open
    assert set(checker.tags) <= {*("div", "p", "code", "table", "thead", "tbody", "tr", "th", "td")}
    assert checker.tags.count("tr") <= 26
    return line, table


def test_every_result_is_here() -> None:
    assert {*MAKE, "MediaResult"} == set(vars(la.results)["__all__"])
    for name in MAKE:
        kind = getattr(la.results, name)
        assert issubclass(kind, Displayed)
        own = vars(kind).get("__repr__")
        assert own is None or inspect.getsourcefile(own) is not None, f"{name} has repr=True"


NOT_RESULTS = {
    *("Any", "Callable", "Generator", "Iterator", "Mapping", "None", "NDArray", "Self", "Sequence"),
    *("ArrayLike", "Decimal", "Literal", "Path", "SupportsIndex", "False", "True", "Iterable"),
    # Objects that do something, and their settings.
    *("AudioHash", "Collection", "Combined", "FeatureKind", "Index", "Indexed", "RemoteCollection"),
    "RemoteIndex",
    *("RunReader", "Said", "SignatureFile", "Signer", "SliceIndex", "Source", "Vocabulary"),
    *("VoteSettings", "WeightKind", "Weights", "DocumentSigner", "Lengths", "T", "FlipIndex"),
    *("SignedParts", "DocumentError", "ClusterIndex", "HashedImage", "Item", "Signatures"),
    "Cut",  # the widths of slices
    "Changes",  # a record of what was done to files, with a journal
}
"""Names in the annotations of what public functions return."""


def returned_names() -> dict[str, str]:
    """Return the names in the annotations of what functions and methods of `la` return."""
    found: dict[str, str] = {}
    for name in vars(la)["__all__"]:
        made = getattr(la, name)
        functions = {name: made}
        if inspect.isclass(made):
            functions = {
                f"{name}.{own}": getattr(member, "fget", member)
                for own, member in inspect.getmembers(made)
                if not own.startswith("_")
            }
        for said, function in functions.items():
            annotation = getattr(function, "__annotations__", {}).get("return", "")
            for one in re.findall(r"\b[A-Z]\w*", str(annotation)):
                found.setdefault(one, said)
    return found


def test_no_function_returns_what_is_not_a_result() -> None:
    """What a new function returns is in `la.results`, or is named above as something else."""
    found = returned_names()
    assert {"DedupResult", "Passages", "Overlaps", "Answer", "DocumentClusters"} <= set(found)
    known = {*MAKE, "MediaResult", *NOT_RESULTS}
    assert {name: said for name, said in found.items() if name not in known} == {}


@pytest.mark.parametrize("name", sorted(MAKE))
@pytest.mark.parametrize("text", ["plain words", HOSTILE, HOSTILE * 10_000], ids=["a", "b", "c"])
def test_a_result_is_shown(name: str, text: str) -> None:
    check(MAKE[name](3, text))


@pytest.mark.parametrize("name", sorted(MAKE))
@pytest.mark.parametrize("count", [0, MANY])
def test_empty_and_huge_results_are_shown(name: str, count: int) -> None:
    check(MAKE[name](count, HOSTILE))


def test_rows_that_are_left_out_are_counted() -> None:
    for name, count in (("Pairs", MANY), ("Matches", MANY), ("Neighbors", 3 * MANY)):
        _, table = check(MAKE[name](MANY, ""))
        assert f"<p>… and {count - 25:,} more</p>" in table
    _, table = check(MAKE["Answer"](3, "one"))
    assert "more" not in table
    assert table.count("<td>one</td>") == 6


def test_rows_belong_to_their_queries() -> None:
    found = Matches(np.array([0, 0, 2, 2, 3]), np.array([7, 8, 9]), small(3), True)
    _, table = check(found)
    assert re.findall(r"<tr><td>(\d)</td><td>(\d)</td>", table) == [
        ("1", "7"),
        ("1", "8"),
        ("3", "9"),
    ]
    by_key = KeyMatches(np.array([0, 0, 2, 2, 3]), real(3), True, np.array([2, 0, 1]), list("abc"))
    _, table = check(by_key)
    assert re.findall(r"<tr><td>(\d)</td><td>(\w)</td>", table) == [
        ("1", "c"),
        ("1", "a"),
        ("3", "b"),
    ]


def test_what_has_its_default_is_not_shown() -> None:
    assert repr(Written(added=2, version=1)) == "Written(added=2, version=1)"
    assert (
        repr(Match("a", 3, {"year": 2001})) == "Match(id='a', distance=3, metadata={'year': 2001})"
    )


def test_values_are_short() -> None:
    assert short(0.1 + 0.2) == "0.3"
    assert short(np.int64(3)) == "3"
    assert short(np.zeros((3, 8), np.uint8)) == "uint8[3, 8]"
    assert short(("a",)) == "('a',)"
    assert short(list(range(100))) == "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...]"
    assert short({"a": [{"b": [[1]]}]}) == "{'a': [{'b': ...}]}"
    assert short("x" * 200) == "'" + "x" * 100 + "'..."


# Tables of other packages


def plain(value: Any) -> Any:
    """Return a cell as Python has it; None for what is missing, and for NaN."""
    if isinstance(value, np.ndarray | list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, str):
        return value.replace("\ud800", "\ufffd")  # which tables cannot hold
    if value is None or value is pandas.NA or value is pandas.NaT or value is np.ma.masked:
        return None
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and math.isnan(value) else value


def agreed(result: Any) -> pa.Table:
    """Return the table of a result, which all packages have the same way."""
    table, frame, other, arrays = (
        result.to_arrow(), result.to_pandas(), result.to_polars(), result.to_numpy()
    )  # fmt: skip
    table.validate(full=True)
    assert table.column_names == list(frame.columns) == other.columns == list(arrays)
    assert len(table) == len(frame) == len(other)
    for name, column in zip(table.column_names, table.columns, strict=True):
        values = [plain(value) for value in column.to_pylist()]
        assert [plain(value) for value in frame[name].tolist()] == values, name
        assert [plain(value) for value in other[name].to_list()] == values, name
        assert len(arrays[name]) == len(values)
        if not pa.types.is_string(column.type):  # there, containers are JSON and others text
            assert [plain(value) for value in arrays[name].tolist()] == values, name
        if pa.types.is_integer(column.type):
            assert str(frame[name].dtype).lower() == str(column.type), name
        elif pa.types.is_floating(column.type):
            assert column.type == pa.float64() and frame[name].dtype == np.float64, name
        elif pa.types.is_boolean(column.type):
            assert frame[name].dtype == np.bool_, name
        elif pa.types.is_string(column.type):
            assert frame[name].dtype == "str", name
    return table


IDS = {"id", "left", "right", "key", "item", "recording", "group_id", "duplicate_of"}
REAL = {"similarity", "score", "share", "mean_distance", "recall", "estimate"}
TRUE = {"kept", "exact", "chosen", "equal", "verify"}
EXACT = {"Comparison"}  # whose column `exact` is a similarity


@pytest.mark.parametrize("name", sorted(MAKE))
@pytest.mark.parametrize("count", [0, 3, 2_000])
def test_every_result_becomes_the_same_table_everywhere(name: str, count: int) -> None:
    empty, table = (agreed(MAKE[name](n, HOSTILE)) for n in (0, count))
    shared = [one for one in table.column_names if one in empty.column_names]
    for one in shared:
        if name not in ("VectorResult", "PairGroups", "KeyMatches", "PartAnswer"):
            assert table.schema.field(one).type == empty.schema.field(one).type, one
    for one in table.schema:
        if one.name in IDS:
            assert one.type in (pa.string(), pa.int64()), one
        elif one.name in REAL or (one.name == "exact" and name in EXACT):
            assert one.type == pa.float64() or name == "Neighbors", one
        elif one.name in TRUE and name != "DedupCounts":
            assert one.type == pa.bool_(), one


@pytest.mark.parametrize("name", sorted(MAKE))
def test_a_table_has_a_row_for_each_that_the_notebook_counts(name: str) -> None:
    result = MAKE[name](FEW, "words")
    count = len(result.to_arrow())
    shown = result._repr_html_()
    rows = shown.count("<tr>") - shown.count("<thead>")
    left = re.search(r"… and ([\d,]+) more", shown)
    if hasattr(result, "_columns"):
        assert rows + (int(left[1].replace(",", "")) if left else 0) == count
    else:
        assert count == 1


def test_tables_have_what_the_attributes_have() -> None:
    found = Neighbors(np.array([[5, 7], [9, -1]]), np.array([[0, 3], [2, -1]], np.int32), True)
    assert agreed(found).to_pydict() == {"query": [0, 0, 1], "id": [5, 7, 9], "distance": [0, 3, 2]}
    groups = PairGroups(["a", "b", "c"], np.array([0, 0, 2]), np.array([-1, 0, -1]), ())
    assert agreed(groups).to_pylist()[1:] == [
        {"id": "b", "group_id": "a", "kept": False, "duplicate_of": "a"},
        {"id": "c", "group_id": None, "kept": True, "duplicate_of": None},
    ]
    numbered = PairGroups([4, 5], np.array([0, 0]), np.array([-1, 0]), ())
    assert agreed(numbered).schema.field("duplicate_of").type == pa.int64()
    assert agreed(numbered)["duplicate_of"].to_pylist() == [None, 4]
    match = Match("a", 3, {"year": 2001, "tags": ["x"]}, "text", votes=2, score=0.5)
    (row,) = agreed(Answer([match], version=1)).to_pylist()
    assert (row["id"], row["distance"], row["votes"], row["score"]) == ("a", 3, 2, 0.5)
    assert json.loads(row["metadata"]) == match.metadata and row["parts"] is None
    one, none = Answer([match], version=1), Answer([], version=1)
    many = Answers([one, none, Answer([match] * 2, version=1)])
    assert agreed(many)["query"].to_pylist() == [0, 2, 2] and isinstance(many, list)
    (row,) = agreed(Passages((passage("p"),), 1, 9, 0)).to_pylist()
    assert (row["lines_begin"], row["lines_end"], row["exact"], row["text"]) == (1, 2, True, "p")
    tuning = Tuning(target=0.9, chosen=measurement(3), options=(measurement(2), measurement(3)))
    assert agreed(tuning)["chosen"].to_pylist() == [False, True]
    assert agreed(tuning)["count"].to_pylist() == [2, 3]
    keys = KeyMatches(np.array([0, 1, 3]), real(3), True, np.array([2, 0, 1]), [7, "b", (1, "c")])
    assert agreed(keys)["key"].to_pylist() == ['[1, "c"]', "7", "b"]
    report = Report(3, 3, 9, ["a", HOSTILE], [], None)
    (row,) = agreed(report).to_pylist()
    assert row["problems"] == ["a", HOSTILE.replace("\ud800", "\ufffd")] and row["damaged"] == []


def test_a_dedup_result_is_a_table() -> None:
    text = "the early bird gets the worm and sings in the tree"
    texts = {"a": text, "b": "other words", "c": text}
    rows = [{"id": name, "text": one} for name, one in texts.items()]
    result = la.dedup(rows)
    table = agreed(result)
    assert table.to_pydict() == {
        "id": ["a", "b", "c"],
        "kept": result.keep.tolist(),
        "group_id": ["a", None, "a"],
        "duplicate_of": [None, None, "a"],
        "similarity": [None, None, 1.0],
    }
    assert agreed(result.pairs)["left"].to_pylist() == result.pairs.left.tolist()


def test_a_list_of_records_is_a_list_and_a_table() -> None:
    pairs = Records(Pair, [Pair("a", "b", 3), Pair("a", "c", 4)])
    assert pairs == [Pair("a", "b", 3), Pair("a", "c", 4)] and isinstance(pairs, list)
    assert repr(pairs) == repr(list(pairs))
    for twin in (copy(pairs), pickle.loads(pickle.dumps(pairs))):
        assert twin == pairs and twin.to_arrow().equals(pairs.to_arrow())
    assert agreed(Records(Pair)).schema.types == [pa.string(), pa.string(), pa.int64()]
    many = Records(Pair, [Pair("a", "b", 3)] * 1_000)
    assert repr(many).endswith("... and 990 more]")


@given(
    st.lists(
        st.none()
        | st.integers()
        | st.text()
        | st.binary(max_size=5)
        | st.booleans()
        | st.tuples(st.integers(), st.text(max_size=3))
    )
)
def test_ids_of_any_kind_become_numbers_or_text(ids: list[Any]) -> None:
    column = arrow_batch({"id": Column(ids, object)})["id"]
    known = [one for one in ids if one is not None]
    fits = [type(one) is int and -(2**63) <= one < 2**63 for one in known]
    assert column.type == (pa.int64() if known and all(fits) else pa.string())
    assert [one is None for one in column.to_pylist()] == [one is None for one in ids]
    for one, made in zip(ids, column.to_pylist(), strict=True):
        if isinstance(one, str):
            assert made == re.sub("[\ud800-\udfff]", "\ufffd", one)
        elif type(one) is int:
            assert made == (one if column.type == pa.int64() else str(one))


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for package, convert in (("pandas", Pair.to_pandas), ("polars", Pair.to_polars)):
        monkeypatch.setitem(sys.modules, package, None)
        expected = rf"to_{package}\(\) needs .*pip install 'lookalike\[{package}\]'"
        with pytest.raises(la.errors.MissingDependencyError, match=expected):
            convert(Pair("a", "b", 1))
