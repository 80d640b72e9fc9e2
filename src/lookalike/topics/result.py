"""The documents of a corpus in clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import file_path, whole_number
from lookalike.corpora import Corpus, check_table_target, write_table
from lookalike.corpora.columns import Columns
from lookalike.dedup.pairs import Ints
from lookalike.display import Column, Displayed, Records, TableColumns, Tabular, arrow_batch
from lookalike.jobs.documents import DocumentTable
from lookalike.pages.marks import without_marks
from lookalike.shown import counted, escape_terminal
from lookalike.topics.settings import TopicSettings
from lookalike.topics.titles import Headings

_AT_A_TIME = 1 << 16
_NAMING = 3
"""Words in the name of a cluster."""

_PRINTED, _PRINTED_CENTRAL, _PRINTED_ID = 50, 3, 60
"""Clusters, central documents of each, and characters of an id in the summary."""
MOST_OF_A_TITLE = 100
_TITLE_BYTES, _BEGINNING_BYTES = 1200, 4000
"""Bytes of a title, and of a text where a heading is searched."""
_HEADINGS = 1000
"""Documents whose first lines are compared, to find boilerplate."""


@dataclass(frozen=True, eq=False)
class Assigned:
    """The nearest and the next nearest cluster of each row; -1 where there is none."""

    centers: NDArray[np.float32]
    """float32[clusters, dimensions]: the points that clusters are around, of length 1."""
    labels: Ints
    """int64[n]: the cluster of each row; -1 for one without features."""
    similarities: NDArray[np.float32]
    """float32[n]: the cosine of each row and its center; NaN where there is none."""
    other_labels: Ints
    """int64[n]: the cluster with the next nearest center."""
    other_similarities: NDArray[np.float32]

    @classmethod
    def of_none(cls, documents: int, centers: NDArray[np.float32]) -> Assigned:
        """Return documents that are in no cluster."""
        labels = np.full(documents, -1, np.int64)
        similarities = np.full(documents, np.nan, np.float32)
        return cls(centers, labels, similarities, labels.copy(), similarities.copy())


@dataclass(frozen=True, repr=False)
class DocumentCluster(Displayed):
    """What a cluster is about."""

    _SHOWN: ClassVar[tuple[str, ...]] = (
        *("number", "size", "name", "mean_similarity", "words", "central"),
    )

    number: int
    size: int
    """The number of documents."""
    mean_similarity: float
    """Of its documents and the center, as a cosine."""
    words: list[tuple[str, float]]
    """Words that tell it from the others, with their weights, highest first."""
    central: list[int]
    """Rows of the documents nearest to the center, nearest first."""

    @property
    def name(self) -> str:
        """The first words."""
        return " ".join(word for word, _ in self.words[:_NAMING])


@dataclass(frozen=True, eq=False, repr=False)
class DocumentClusters(Tabular, Assigned):
    """Clusters of documents, the largest first; arrays have an element per row of the source.

    The table has a row per document: `id`, `cluster`, `words` (the first three of its cluster),
    `similarity` to the center, `other_cluster` and `other_similarity` (the next nearest cluster).
    Values are null where there is no cluster. `clusters` is a table with a row per cluster.
    """

    settings: TopicSettings
    clusters: Records[DocumentCluster]
    seconds: dict[str, float]
    wanted: int | None
    """The number of clusters that was asked for."""
    source: Corpus
    columns: Columns
    documents: DocumentTable
    common_features: int = 0
    """Features that were left out because too many documents have them."""
    made: datetime = field(default_factory=lambda: datetime.now(UTC))

    def __len__(self) -> int:
        return len(self.clusters)

    @property
    def without_features(self) -> int:
        """The number of rows without words, which are in no cluster."""
        return int(np.count_nonzero(self.labels < 0))

    @property
    def mean_similarity(self) -> float:
        """The mean cosine of rows and their centers; 0 if there are none."""
        return _mean(self.similarities)

    def id(self, row: int) -> str | int:
        """Return the id of a row, or its number."""
        return self.documents.id_of(self._row(row))

    def text(self, row: int) -> str:
        """Return the text of a row."""
        return without_marks(self.documents.texts[self._row(row)])

    def title(self, row: int) -> str:
        """Return the title of a row: from its column, or the first line that looks like a heading.

        Without one it is the id, and without ids the beginning of the text.
        """
        documents, at = self.documents, self._row(row)
        title = "" if documents.titles is None else documents.titles.beginning(at, _TITLE_BYTES)
        if found := " ".join(title.split()):
            return found
        beginning = documents.texts.beginning(at, _BEGINNING_BYTES)
        if found := self._headings.of_text(beginning):
            return found
        return " ".join((beginning if documents.ids is None else str(self.id(at))).split())

    @cached_property
    def _headings(self) -> Headings:
        texts = self.documents.texts
        some = np.linspace(0, len(texts) - 1, min(len(texts), _HEADINGS)).astype(np.int64)
        return Headings.of(texts.beginning(row, _BEGINNING_BYTES) for row in some.tolist())

    def members(self, number: int) -> Ints:
        """Return the rows of a cluster, nearest to its center first."""
        chosen = whole_number("number", number, at_least=0, at_most=max(0, len(self) - 1))
        rows = np.flatnonzero(self.labels == chosen)
        return rows[np.argsort(-self.similarities[rows], kind="stable")]

    def write(self, path: str | Path) -> int:
        """Write the rows of `to_arrow`, in the format of the file extension; return how many."""
        target, count = file_path("path", path), self._row_count()
        check_table_target(target)
        parts = range(0, max(1, count), _AT_A_TIME)
        batches = (self._columns(begin, min(begin + _AT_A_TIME, count)) for begin in parts)
        return write_table(map(arrow_batch, batches), target)

    def report(self, path: str | Path, *, command: Sequence[str] | None = None) -> None:
        """Write one self-contained HTML file that shows the clusters.

        `command` is the command that made the result, word by word. By default, the page says how
        to make it again in Python.
        """
        from lookalike.topics.report.page import write_report

        write_report(self, file_path("path", path), command)

    def summary(self) -> str:
        """Return counts, then each cluster with its words and documents, the largest first."""
        lines = [f"  {name:<18} {value:>12}  {note}".rstrip() for name, value, note in about(self)]
        if self.clusters:
            lines += ["", f"  {'cluster':>7}  {'documents':>9}  words"]
        for one in self.clusters[:_PRINTED]:
            lines += _lines(self, one)
        if len(self) > _PRINTED:
            lines.append(f"  and {counted(len(self) - _PRINTED, 'more cluster')}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return settings, counts, seconds and what each cluster is about, in plain values."""
        return {
            "settings": self.settings.to_dict(),
            "documents": len(self.labels),
            "without_features": self.without_features,
            "common_features": self.common_features,
            "bad_rows": self.documents.bad,
            "left_out": dict(self.documents.left_out),
            "mean_similarity": round(self.mean_similarity, 4),
            "seconds": {step: round(passed, 4) for step, passed in self.seconds.items()},
            "clusters": [
                {
                    "cluster": one.number,
                    "documents": one.size,
                    "mean_similarity": round(one.mean_similarity, 4),
                    "words": [{"word": word, "weight": round(w, 3)} for word, w in one.words],
                    "central": [
                        {
                            "id": self.id(row),
                            "title": clipped(self.title(row)),
                            "similarity": round(float(self.similarities[row]), 4),
                        }
                        for row in one.central
                    ],
                }
                for one in self.clusters
            ],
        }

    def _row(self, row: int) -> int:
        return whole_number("row", row, at_least=0, at_most=max(0, len(self.labels) - 1))

    def _columns(self, begin: int, end: int) -> TableColumns:
        ids, rows, every = self.documents.ids, slice(begin, end), range(begin, end)
        names = {one.number: one.name for one in self.clusters}
        words = [names.get(label) for label in self.labels[rows].tolist()]
        return {
            "id": np.arange(begin, end)
            if ids is None
            else Column([ids[row] for row in every], str),
            "cluster": _known(self.labels[rows], int | None),
            "words": Column(words, str | None),
            "similarity": _known(_rounded(self.similarities[rows]), float | None),
            "other_cluster": _known(self.other_labels[rows], int | None),
            "other_similarity": _known(_rounded(self.other_similarities[rows]), float | None),
        }

    def _row_count(self) -> int:
        return len(self.labels)

    def _values(self) -> dict[str, object]:
        return {
            "documents": len(self.labels),
            "clusters": len(self),
            "mean_similarity": round(self.mean_similarity, 2),
        }


def _known(values: NDArray[Any], kind: Any) -> Column:
    """Return numbers; labels below 0 and similarities that are NaN are missing."""
    return Column(values, kind, np.isnan(values) if values.dtype.kind == "f" else values < 0)


def _rounded(similarities: NDArray[np.float32]) -> NDArray[np.float64]:
    rounded: NDArray[np.float64] = similarities.astype(np.float64)
    return rounded.round(5)


def _mean(values: NDArray[np.float32]) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean(dtype=np.float64)) if len(known) else 0.0


def clipped(title: str) -> str:
    """Return a title in at most `MOST_OF_A_TITLE` characters."""
    return title if len(title) <= MOST_OF_A_TITLE else title[: MOST_OF_A_TITLE - 1].rstrip() + "…"


def about(result: DocumentClusters) -> list[tuple[str, str, str]]:
    """Return the facts about all clusters: name, value and note."""
    sizes = [one.size for one in result.clusters]
    found = [("documents", f"{len(result.labels):,}", "")]
    note = ""
    if sizes:
        note = f"the largest has {counted(sizes[0], 'document')}, the smallest {sizes[-1]:,}"
    if result.wanted is not None and len(sizes) < result.wanted:
        note += f"; {result.wanted:,} were asked for, and no more differ"
    found.append(("clusters", f"{len(sizes):,}", note))
    if result.without_features:
        found.append(("without words", f"{result.without_features:,}", "in no cluster"))
    if result.common_features:
        note = "left out: in more documents than --common"
        found.append(("common features", f"{result.common_features:,}", note))
    if sizes:
        note = "mean cosine of documents and the center of their cluster"
        if len(sizes) > 1:
            note += f"; {_mean(result.other_similarities):.2f} with the next nearest center"
        found.append(("similarity", f"{result.mean_similarity:.2f}", note))
    for count, name in (
        (result.documents.bad, "bad rows"),
        (result.documents.binary, "binary files"),
        *((count, kind) for kind, count in result.documents.left_out.items()),
    ):
        if count:
            found.append((name, f"{count:,}", "left out"))
    seconds = sum(result.seconds.values())
    steps = ", ".join(f"{step} {passed:.1f}" for step, passed in result.seconds.items())
    found.append(("seconds", f"{seconds:.1f}", steps))
    return found


def _lines(result: DocumentClusters, one: DocumentCluster) -> list[str]:
    words = " ".join(escape_terminal(word) for word, _ in one.words) or "-"
    lines = [f"  {one.number:>7}  {one.size:>9,}  {words}"]
    for row in one.central[:_PRINTED_CENTRAL]:
        id = escape_terminal(result.id(row), _PRINTED_ID)
        title = escape_terminal(clipped(result.title(row)))
        lines.append(f"  {'':>7}  {'':>9}    {id}  {title}".rstrip())
    return lines
