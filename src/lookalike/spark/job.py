"""The whole job on Spark: a DataFrame in; who stays, who goes and why out.

The steps are those of the local job (`lookalike.dedup.job`), and so are the settings.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.corpora.columns import Columns
from lookalike.dedup.job import settings_of
from lookalike.dedup.pairs.settle import tired
from lookalike.dedup.settings import DedupSettings
from lookalike.dedup.survivors.cluster import split_warnings
from lookalike.indexes.bands import choose_bands
from lookalike.spark.columns import deciding_column, find_columns, frame_of, order_frame
from lookalike.spark.deciding import Decider
from lookalike.spark.numbering import Numbering, Piece, numbered_columns
from lookalike.spark.packed import map_arrow
from lookalike.spark.refusals import check_settings
from lookalike.spark.result import SparkCounts, SparkDedup
from lookalike.spark.rows import ResultRows
from lookalike.spark.steps import propose
from lookalike.spark.steps.collapse import Collapsed, collapse
from lookalike.spark.steps.propose import Proposed, SignedTable
from lookalike.spark.steps.resolve import ResolvedFacts
from lookalike.spark.steps.signing import SIGNED, sign_rows
from lookalike.spark.steps.survey import survey
from lookalike.spark.work import SparkWork

__all__ = ["dedup", "pairs"]


def dedup(
    frame: Any,
    *,
    text: str | None = None,
    id: str | None = None,
    order: str | None = None,
    work: str | None = None,
    **settings: Any,
) -> SparkDedup:
    """Find the near-duplicates of a DataFrame and choose who of them stays, as `la.dedup` does.

    `text` and `id` name columns; obvious ones are found. `settings` are those of `DedupSettings`,
    with the same defaults. Survivors, pairs and clusters are those of the local job on the same
    rows in the same order, whatever the partitions; but of SimHash and TopSig signatures so many
    that the local job proposes by chance, all are compared, as a warning says. Rows are in the
    order of the files they come from and of the lines there, or of the partitions; `order` names a
    column that tells rows apart, and sorts by it, which shuffles the corpus once: for a frame that
    has no order of its own.

    `work` is a folder that all workers can reach, such as hdfs:// or s3a://, for what lasts between
    steps; without it the workers hold that, and compute it again when one of them is lost. Texts
    are read twice, and sent only where pairs are compared. A function as `keep`
    is called by workers, with the rows of a whole group at a time. `exact` and containment are
    refused. The result's frames are valid until `SparkDedup.close`.
    """
    job = _Job.of(frame, text, id, order, work, settings)
    try:
        return job.run()
    except BaseException:
        job.work.close()
        raise


def pairs(
    frame: Any,
    *,
    text: str | None = None,
    id: str | None = None,
    order: str | None = None,
    work: str | None = None,
    **settings: Any,
) -> Any:
    """Return the verified pairs of a DataFrame: `left`, `right`, `similarity`, `distance`.

    As `dedup`, of which they are a part: with those that were found to be alike afterwards, among
    the documents that stay.
    """
    return dedup(frame, text=text, id=id, order=order, work=work, **settings).pairs


class _Job:
    """A job that is being done."""

    def __init__(
        self, work: SparkWork, frame: Any, columns: Columns, settings: DedupSettings
    ) -> None:
        self.work, self.frame, self.columns, self.settings = work, frame, columns, settings
        self.rule = settings.keep_rule.partition(":")[0]

    @classmethod
    def of(
        cls,
        frame: Any,
        text: str | None,
        id: str | None,
        order: str | None,
        work: str | None,
        given: dict[str, Any],
    ) -> _Job:
        settings = settings_of(given)
        check_settings(settings)
        frame = frame_of("frame", frame)
        columns = find_columns(frame, text, id, settings.keep_column)
        space = SparkWork(frame.sparkSession, work)
        if order is not None:  # ranges are drawn anew each time it is sorted
            frame = space.keep(order_frame(frame, order))
        return cls(space, frame, columns, settings)

    def run(self) -> SparkDedup:
        """Take the steps, one after the other."""
        work, settings = self.work, self.settings
        with work.timed("sign"):
            table, numbering, chunk_keys, total, short = self._sign()
        signed, proposed, gathered = self._propose(table, numbering, chunk_keys, total[0])
        collapsed = signed.collapsed
        with work.timed("verify"):
            decider = Decider(work, settings, self.frame, self.columns, signed, collapsed)
            decided = decider.decide(proposed, gathered)
        facts = decided.facts
        warnings = [*proposed.warnings, *([tired()] if facts.tired else [])]
        if settings.cluster == "components":
            warnings += split_warnings(facts.split, facts.split_largest, settings.max_cluster)
        rows = ResultRows(
            work, settings, self.frame, self.columns.id, numbering, total[0], collapsed, decided,
            proposed.needed,
        )  # fmt: skip
        return SparkDedup(
            settings=settings,
            counts=_counts(settings, total, short, collapsed, facts),
            seconds=dict(work.seconds),
            warnings=warnings,
            _rows=rows,
        )

    def _sign(self) -> tuple[Any, Any, NDArray[np.int64], tuple[int, int], int]:
        """Return the table of signatures, the numbering, Spark's numbers of the first documents of
        its rows, documents and bytes, and how many are too short.
        """
        from pyspark.sql import functions as sql

        text = sql.col(f"`{self.columns.text}`").cast("string")
        columns = [text, *deciding_column(self.frame, self.settings, self.columns)]
        rows = numbered_columns(self.frame, columns)
        table = self.work.keep(map_arrow(rows, sign_rows(self.settings), SIGNED))
        names = ("file", "start", "partition", "row", "key", "count", "bytes", "short")
        counts: dict[Piece, int] = {}
        keys: dict[Piece, int] = {}
        told = table.select(*names).toArrow()
        every = zip(*told.to_pydict().values(), strict=True)
        for file, start, partition, row, key, count, *_ in every:
            piece = (file, start, partition)
            counts[piece] = counts.get(piece, 0) + count
            keys[piece] = key - row
        numbering = Numbering.of(counts, keys)
        total = len(numbering), sum(told["bytes"].to_pylist())
        short = sum(told["short"].to_pylist())
        chunk_keys = np.sort(told["key"].to_numpy())
        return table, self.work.send(numbering), chunk_keys, total, short

    def _propose(
        self, table: Any, numbering: Any, chunk_keys: NDArray[np.int64], documents: int
    ) -> tuple[SignedTable, Proposed, Any | None]:
        """Return signatures with what is known of equal texts, pairs, and what one task has
        gathered for comparing them, if the corpus is small.
        """
        work, settings = self.work, self.settings
        by_bands = settings.method == "minhash"
        bands = choose_bands(settings.permutations, settings.threshold).bands if by_bands else 0
        if by_bands and documents * bands <= propose.ENTRIES_A_TASK:
            with work.timed("propose"):
                known = survey(work, settings, table, numbering, self.rule, documents)
                copies = work.send(known.collapsed.copies)
            signed = SignedTable(
                table, numbering, copies, known.collapsed, chunk_keys, self.rule, documents
            )
            return signed, known.proposed, known.gathered
        with work.timed("collapse"):
            collapsed = collapse(work, table, numbering, self.rule, documents)
            copies = work.send(collapsed.copies)
        signed = SignedTable(table, numbering, copies, collapsed, chunk_keys, self.rule, documents)
        with work.timed("propose"):
            by = propose.propose_by_bands if by_bands else propose.propose_by_radius
            return signed, by(work, settings, signed), None


def _counts(
    settings: DedupSettings,
    total: tuple[int, int],
    short: int,
    collapsed: Collapsed,
    facts: ResolvedFacts,
) -> SparkCounts:
    """Return how many there are of what: of documents that have pairs, and of texts that have
    copies and no pairs.
    """
    none = settings.keep == "none"  # the first of equal texts goes, too
    texts, copies = collapsed.texts - facts.texts, collapsed.count - facts.copies
    return SparkCounts(
        documents=total[0],
        bytes=total[1],
        without_features=short,
        kept=total[0] - facts.dropped - copies - (texts if none else 0),
        exact_duplicates=collapsed.count + (collapsed.texts if none else 0) - facts.estimated,
        clusters=facts.clusters + texts,
        largest_cluster=max(facts.largest, collapsed.largest, min(1, total[0])),
        compared_pairs=facts.compared,
        verified_pairs=facts.alike + collapsed.count,
    )
