"""Results are shown on one short line, and as a table in notebooks."""

from __future__ import annotations

import inspect
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import lookalike as la
from lookalike.common_passages.results import HeldTexts
from lookalike.display import Displayed, short
from lookalike.recordings.decode import AudioInfo
from lookalike.results import (
    Answer,
    Clusters,
    DedupCounts,
    DedupSettings,
    Document,
    DocumentCluster,
    Explanation,
    Fingerprint,
    ItemError,
    KeyMatch,
    KeyMatches,
    Match,
    Matches,
    Measurement,
    Neighbors,
    Option,
    Overlap,
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
    Report,
    SavedSignatures,
    Tuning,
    VectorMatches,
    VectorNeighbors,
    VectorPairs,
    VerifiedPairs,
    Work,
    Written,
)

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
    "Answer": lambda n, text: Answer([Match(text, 3, {text: text}, text)] * n, version=1),
    "Clusters": lambda n, text: Clusters(np.zeros((n, 8), np.uint8), whole(n), small(n)),
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
    "Fingerprint": lambda n, text: Fingerprint(
        np.zeros(n, np.uint32), whole(n), AudioInfo(1.5, 8000, 1, text, True)
    ),
    "ItemError": lambda n, text: ItemError(n, text, text),
    "KeyMatch": lambda n, text: KeyMatch(text, 0.5),
    "KeyMatches": lambda n, text: KeyMatches(
        np.array([0, 0, n, n]), real(n), True, whole(n), [text]
    ),
    "Match": lambda n, text: Match(text, 3, {text: text}, text, tuple(range(n))),
    "Matches": lambda n, text: Matches(np.array([0, 0, n, n]), whole(n), small(n), True),
    "Measurement": lambda n, text: measurement(n),
    "Neighbors": lambda n, text: Neighbors(whole(n, 3), small(n, 3), True, None, small(n, 3)),
    "Option": lambda n, text: Option(index=text, settings={text: n}),
    "Overlap": lambda n, text: overlap(text),
    "Overlaps": lambda n, text: Overlaps((overlap(text),) * n, n, 0, 0, 0),
    "Pair": lambda n, text: Pair(text, text, n),
    "PairGroups": lambda n, text: PairGroups([text] * n, whole(n), whole(n), ()),
    "Pairs": lambda n, text: Pairs(whole(n), whole(n), small(n), True),
    "PartAnswer": lambda n, text: PartAnswer((part_match(text),) * n, 3, 0, True),
    "PartMatch": lambda n, text: part_match(text),
    "Passage": lambda n, text: passage(text),
    "Passages": lambda n, text: Passages((passage(text),) * n, n, 0, 0),
    "Prediction": lambda n, text: Prediction(index="slices", remark=text, memory_bytes=n),
    "RecordingMatch": lambda n, text: RecordingMatch(text, 1.5, 0.5, n),
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
    assert line.startswith(f"{type(result).__name__}(")
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
    assert la.results.MediaResult._table is la.results.DedupResult._table
    for name in MAKE:
        kind = getattr(la.results, name)
        assert issubclass(kind, Displayed) or kind is KeyMatch
        own = vars(kind).get("__repr__")
        assert own is None or inspect.getsourcefile(own) is not None, f"{name} has repr=True"


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
