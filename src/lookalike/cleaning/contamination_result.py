"""Which documents contain benchmark items, and how the rest is written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import one_of
from lookalike.cleaning.benchmarks import Benchmark
from lookalike.corpora import Corpus, Problems, check_table_target, write_source, write_table
from lookalike.corpora.base import pa
from lookalike.corpora.columns import Columns
from lookalike.corpora.writing import local_file, write_corpus
from lookalike.dedup.pairs import Flags, Ints
from lookalike.dedup.summary import columns_text, left_out_lines, share_text
from lookalike.display import (
    Displayed,
    Records,
    TableColumns,
    Tabular,
    arrow_batch,
    record_columns,
)
from lookalike.shown import escape_terminal

if TYPE_CHECKING:
    from lookalike.cleaning.contamination import ContaminationSettings

_AT_A_TIME = 1 << 14


@dataclass(frozen=True, repr=False)
class Evidence(Displayed):
    """An item of a benchmark that a document contains."""

    benchmark: str
    item: str
    """The id of the item, or its row."""
    number: int
    """Its number among the items of all benchmarks."""
    words: int
    """Words of the longest run that both have."""
    share: float
    """What the rule compares: the share of the item's n-grams, or of its words."""
    characters: tuple[int, int]
    """From the first common passage to the last, in the document."""
    passage: str
    """The beginning of these, with some text around."""


@dataclass(frozen=True, repr=False)
class ContaminatedDocument(Displayed):
    """A document that contains items."""

    row: int
    id: str
    evidence: list[Evidence]
    cuts: list[tuple[int, int]]
    """Ranges of characters around the common passages, with the margin."""
    new_text: str | None
    """The text without these, with the action "cut"."""

    @property
    def items_text(self) -> str:
        """The items, such as "gsm8k.jsonl:17, mmlu.jsonl:4"."""
        return ", ".join(f"{one.benchmark}:{one.item}" for one in self.evidence)


@dataclass(frozen=True, repr=False)
class BenchmarkCounts(Displayed):
    """How many items of a benchmark were found."""

    benchmark: str
    items: int
    contaminated: int
    """Items that some document contains."""
    documents: int
    """Documents that contain some item."""


@dataclass(frozen=True, repr=False)
class _Hit(Evidence):
    id: str
    _SHOWN: ClassVar[tuple[str, ...]] = (
        *("id", "benchmark", "item", "words", "share", "characters", "passage"),
    )


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class FoundItems(ABC):
    """What is known of the items that documents contain, on every engine."""

    settings: ContaminationSettings
    benchmarks: list[Benchmark]
    skipped_items: int
    """Items with too few words to be looked for."""
    document_count: int
    seconds: dict[str, float]
    warnings: list[str]
    columns: Columns
    problems: Problems

    @property
    @abstractmethod
    def contaminated_count(self) -> int:
        """The number of documents that contain an item."""

    @property
    @abstractmethod
    def contaminated_items(self) -> Ints:
        """Numbers of items that some document contains, ascending."""

    @property
    @abstractmethod
    def documents_having(self) -> Mapping[str, int]:
        """The number of documents that contain items of a benchmark, for those that have any."""

    @property
    def about_documents(self) -> str:
        """A note beside the number of documents."""
        return columns_text(self.columns)

    @property
    def items(self) -> int:
        """The number of items of all benchmarks."""
        return sum(map(len, self.benchmarks))

    def by_benchmark(self) -> Records[BenchmarkCounts]:
        """Return counts for each benchmark."""
        made = []
        for benchmark in self.benchmarks:
            first, last = benchmark.first, benchmark.first + len(benchmark)
            begin, end = np.searchsorted(self.contaminated_items, [first, last]).tolist()
            having = self.documents_having.get(benchmark.name, 0)
            made.append(BenchmarkCounts(benchmark.name, len(benchmark), end - begin, having))
        return Records(BenchmarkCounts, made)

    def write_benchmark(self, path: str | Path, *, name: str | None = None) -> int:
        """Write a benchmark without the items that some document contains; return how many.

        `name` is needed if there are several benchmarks.
        """
        names = [one.name for one in self.benchmarks]
        if name is None and len(names) == 1:
            name = names[0]
        benchmark = self.benchmarks[names.index(one_of("name", name, names))]
        keep = np.ones(len(benchmark), np.bool_)
        first = benchmark.first
        own = self.contaminated_items
        keep[own[(own >= first) & (own < first + len(benchmark))] - first] = False
        with local_file(path, benchmark.corpus) as target:
            return write_corpus(benchmark.corpus, target, keep=keep, identity=benchmark.identity)

    def summary(self) -> str:
        """Return counts and times, a line each, and a line for each benchmark."""
        lines = [f"  {name:<18} {value:>12}  {note}".rstrip() for name, value, note in about(self)]
        lines += ["", f"  {'benchmark':<30} {'items':>9} {'contaminated':>13} {'documents':>10}"]
        for one in self.by_benchmark():
            name = escape_terminal(one.benchmark, 30)
            lines.append(
                f"  {name:<30} {one.items:>9,} {one.contaminated:>13,} {one.documents:>10,}"
            )
        lines += [f"\nwarning: {warning}" for warning in self.warnings]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return settings, counts, benchmarks, seconds and warnings in plain values."""
        return {
            "settings": self.settings.to_dict(),
            "documents": self.document_count,
            "contaminated": self.contaminated_count,
            "items": self.items,
            "contaminated_items": len(self.contaminated_items),
            "skipped_items": self.skipped_items,
            "benchmarks": [vars(one) for one in self.by_benchmark()],
            "seconds": {step: round(passed, 4) for step, passed in self.seconds.items()},
            "warnings": list(self.warnings),
            "bad_rows": self.problems.bad,
            "left_out": dict(self.problems.left_out),
        }

    def read_counts(self) -> tuple[int, list[str]]:
        """Return how many rows could not be read, and examples."""
        return self.problems.left_out_count, self.problems.examples


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Contamination(FoundItems, Tabular):
    """Which documents contain items of benchmarks.

    The table has a row for each document and item: `id`, `benchmark`, `item`, `words` (of the
    longest common run), `share`, the characters of the document, and a `passage` of it.
    """

    contaminated: list[ContaminatedDocument]
    source: Corpus
    source_identity: list[Any] | None
    skip_bad: bool = False
    limits: tuple[int | None, int | None] = (None, None)
    made: datetime = field(default_factory=lambda: datetime.now(UTC))

    def __len__(self) -> int:
        return len(self._hits)

    @cached_property
    def _hits(self) -> list[tuple[ContaminatedDocument, Evidence]]:
        return [(one, found) for one in self.contaminated for found in one.evidence]

    @cached_property
    def rows(self) -> Ints:
        """Positions of contaminated documents, ascending."""
        return np.array([one.row for one in self.contaminated], np.int64)

    @property
    def keep(self) -> Flags:
        """Whether a document is written."""
        keep = np.ones(self.document_count, np.bool_)
        if self.settings.action == "drop":
            keep[self.rows] = False
        return keep

    @cached_property
    def contaminated_items(self) -> Ints:
        """Numbers of items that some document contains, ascending."""
        return np.unique(np.array([found.number for _, found in self._hits], np.int64))

    @property
    def contaminated_count(self) -> int:
        """The number of documents that contain an item."""
        return len(self.contaminated)

    @cached_property
    def documents_having(self) -> Mapping[str, int]:
        """The number of documents that contain items of a benchmark, for those that have any."""
        pairs = {(found.benchmark, one.row) for one, found in self._hits}
        return Counter(benchmark for benchmark, _ in pairs)

    @property
    def about_documents(self) -> str:
        """A note beside the number of documents."""
        return self.source.unit or ("" if self.source.fixed_columns else super().about_documents)

    def item_text(self, number: int) -> str:
        """Return the text of an item, by its number among all."""
        for benchmark in self.benchmarks:
            if benchmark.first <= number < benchmark.first + len(benchmark):
                return str(benchmark.texts[number - benchmark.first].as_py())
        raise IndexError(number)

    def write(self, path: str | Path | BinaryIO, *, in_place: bool = False) -> int:
        """Write the documents after the action; return how many.

        With "drop", documents without items. With "cut", all of them, without the passages. With
        "mark", all of them with the columns of `write_annotated`. The corpus is read again.
        """
        if self.settings.action == "mark":
            return self.write_annotated(path, in_place=in_place)
        replaced = self.columns.text, self._replaced
        return write_source(
            self,
            path,
            in_place,
            keep=self.keep,
            replaced=replaced if self.settings.action == "cut" else None,
        )

    def write_annotated(self, path: str | Path | BinaryIO, *, in_place: bool = False) -> int:
        """Write every document unchanged, with `contaminated` and `contaminated_by`.

        `contaminated_by` lists items such as "gsm8k.jsonl:17, mmlu.jsonl:4". Others have none.
        """
        every = np.ones(self.document_count, np.bool_)
        return write_source(self, path, in_place, keep=every, added=self._added)

    def write_hits(self, path: str | Path) -> int:
        """Write the table of documents and items; return how many rows."""
        with local_file(path, self.source) as target:
            check_table_target(target)
            begins = range(0, max(1, len(self)), _AT_A_TIME)
            batches = (self._columns(begin, begin + _AT_A_TIME) for begin in begins)
            return write_table(map(arrow_batch, batches), target)

    def report(self, path: str | Path, *, command: Sequence[str] | None = None) -> None:
        """Write one self-contained HTML file that shows documents and items side by side."""
        from lookalike.cleaning.report.page import write_contamination

        with local_file(path, self.source) as target:
            write_contamination(self, target, command)

    def _between(self, begin: int, end: int) -> list[ContaminatedDocument]:
        first, last = np.searchsorted(self.rows, [begin, end]).tolist()
        return self.contaminated[first:last]

    def _replaced(self, begin: int, end: int) -> tuple[NDArray[np.bool_], Any]:
        some = self._between(begin, end)
        mask = np.zeros(end - begin, np.bool_)
        mask[[one.row - begin for one in some]] = True
        return mask, pa.array([one.new_text for one in some], pa.large_string())

    def _added(self, begin: int, end: int) -> dict[str, Any]:
        by = [""] * (end - begin)
        for one in self._between(begin, end):
            by[one.row - begin] = one.items_text
        return {
            "contaminated": pa.array([bool(one) for one in by], pa.bool_()),
            "contaminated_by": pa.array(by, pa.string()),
        }

    def _columns(self, begin: int, end: int) -> TableColumns:
        hits = [_Hit(**vars(found), id=one.id) for one, found in self._hits[begin:end]]
        return record_columns(_Hit, hits)

    def _row_count(self) -> int:
        return len(self)

    def _values(self) -> dict[str, object]:
        return {
            "documents": self.document_count,
            "contaminated": len(self.contaminated),
            "contaminated_items": len(self.contaminated_items),
        }


_ACTIONS: Mapping[str, str] = {
    "drop": "dropped",
    "cut": "the passages are cut, with a margin of {margin} characters",
    "mark": "marked",
}


def about(result: FoundItems) -> list[tuple[str, str, str]]:
    """Return the facts about a result: name, value and note."""
    settings = result.settings
    action = _ACTIONS[settings.action].format(margin=settings.margin)
    contaminated = len(result.contaminated_items)
    lines = [
        ("documents", f"{result.document_count:,}", result.about_documents),
        ("contaminated", f"{result.contaminated_count:,}", action),
        ("benchmark items", f"{result.items:,}", rule_text(settings)),
        ("found items", f"{contaminated:,}", share_text(contaminated, result.items)),
    ]
    if result.skipped_items:
        note = f"fewer than {settings.shortest} words: not looked for"
        lines.append(("short items", f"{result.skipped_items:,}", note))
    if result.problems.bad:
        lines.append(("bad rows", f"{result.problems.bad:,}", "left out"))
    if result.problems.binary:
        lines.append(("binary files", f"{result.problems.binary:,}", "left out: not text"))
    lines += left_out_lines(result.problems.left_out)
    steps = ", ".join(f"{step} {passed:.2f}" for step, passed in result.seconds.items())
    lines.append(("seconds", f"{sum(result.seconds.values()):.2f}", steps))
    return lines


def rule_text(settings: ContaminationSettings) -> str:
    """Return the rule in words."""
    least = f"{float(settings.min_share or 0):g}"
    return {
        "ngram": f"a document has a run of {settings.ngram} words of the item",
        "share": f"a document has at least {least} of the item's {settings.ngram}-word runs",
        "run": f"a document has a run of at least {least} of the item's words",
        "near": f"a document has a passage with at least {least} of the item's words",
    }[settings.rule]


def most_frequent(result: Contamination, most: int) -> list[tuple[str, int]]:
    """Return items that most documents contain, with the number of these."""
    counts = Counter((found.benchmark, found.item) for _, found in result._hits)
    return [(f"{name}: {item}", count) for (name, item), count in counts.most_common(most)]
