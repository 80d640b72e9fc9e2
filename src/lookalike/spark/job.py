"""The whole job on Spark: a DataFrame in; who stays, who goes and why out.

The steps are those of the local job (`lookalike.dedup.job`), and so are the settings.
"""

from __future__ import annotations

from typing import Any

from lookalike.corpora.columns import Columns
from lookalike.dedup.job import settings_of
from lookalike.dedup.pairs.settle import ROUNDS, TIRED
from lookalike.dedup.settings import DedupSettings
from lookalike.dedup.survivors.cluster import split_warnings
from lookalike.errors import ArgumentError, Said
from lookalike.spark.columns import deciding_column, find_columns, frame_of, order_frame
from lookalike.spark.components import connected
from lookalike.spark.equals import (
    COPIES,
    COPY,
    ENTRY,
    EQUALS,
    as_columns,
    meet_equals,
    send_fingerprints,
)
from lookalike.spark.numbering import Numbering, numbered_columns
from lookalike.spark.packed import PACKED, map_arrow, shuffled
from lookalike.spark.position_set import collect_positions
from lookalike.spark.propose import Proposed, SignedTable, propose_by_bands, propose_by_radius
from lookalike.spark.result import SparkCounts, SparkDedup
from lookalike.spark.rows import ResultRows
from lookalike.spark.signing import SIGNED, sign_rows
from lookalike.spark.survivors import chosen_frame, together, unmet_frame
from lookalike.spark.values import values_of
from lookalike.spark.verify import Verifier
from lookalike.spark.work import SparkWork

__all__ = ["dedup", "pairs"]

_PAIRS_A_TASK = 500_000
_EQUALS = ", ".join(f"{name} long" for name in EQUALS.names or ())


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
    rows in the same order, whatever the partitions. Rows are in the order of the files they come
    from and of the lines there, or of the partitions; `order` names a column that tells rows apart,
    and sorts by it, which shuffles the corpus once: for a frame that has no order of its own.

    `work` is a folder that all workers can reach, such as hdfs:// or s3a://, for what lasts between
    steps; without it the workers hold that, and compute it again when one of them is lost. Texts
    are read twice, and sent only where pairs are compared. `exact`, containment and a function as
    `keep` are refused. The result's frames are valid until `SparkDedup.close`.
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


def check_settings(settings: DedupSettings) -> None:
    """Refuse what is not done on Spark."""
    if not settings.by_signatures:
        raise ArgumentError(
            settings.said_reason,
            " compares documents by joins that need all features in one memory, and is not done "
            "on Spark; leave it out, or de-duplicate on one machine",
        )
    if callable(settings.keep):
        raise ArgumentError(
            Said("keep"),
            " is a function, which is given whole groups of rows, and is not called on Spark; "
            "expected a rule, such as max:COLUMN",
        )


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
            table, numbering, total, short = self._sign()
        with work.timed("collapse"):
            signed, copies = self._collapse(table, numbering, total)
        with work.timed("propose"):
            proposed = self._propose(signed)
        verifier = Verifier(work, settings, self.frame, self.columns.text, signed)
        with work.timed("verify"):
            found = verifier.similarities(proposed.pairs)
            accepted = work.keep(found.where(f"similarity >= {settings.threshold!r}D"))
        with work.timed("cluster"):
            fates, verified, warnings, counts = self._decide(signed, copies, verifier, accepted)
        rows = ResultRows(work, self.frame, self.columns.id, numbering, total[0], fates, verified)
        return SparkDedup(
            settings=settings,
            counts=SparkCounts(
                documents=total[0],
                bytes=total[1],
                without_features=short,
                compared_pairs=verifier.compared,
                **counts,
            ),
            seconds=dict(work.seconds),
            warnings=[*proposed.warnings, *warnings],
            _rows=rows,
        )

    def _sign(self) -> tuple[Any, Any, tuple[int, int], int]:
        """Return the table of signatures, the numbering, documents and bytes, and how many are too
        short.
        """
        from pyspark.sql import functions as sql

        text = sql.col(f"`{self.columns.text}`").cast("string")
        columns = [text, *deciding_column(self.frame, self.settings, self.columns)]
        rows = numbered_columns(self.frame, columns)
        table = self.work.keep(map_arrow(rows, sign_rows(self.settings), SIGNED))
        counted = table.groupBy("file", "start", "partition").agg(
            sql.sum("count").alias("rows"),
            sql.sum("bytes").alias("bytes"),
            sql.sum("short").alias("short"),
        )
        pieces = counted.collect()
        counts = {(row.file, row.start, row.partition): row.rows for row in pieces}
        numbering = Numbering.of(counts)
        total = len(numbering), sum(row.bytes for row in pieces)
        short = sum(row.short for row in pieces)
        return table, self.work.send(numbering), total, short

    def _collapse(
        self, table: Any, numbering: Any, total: tuple[int, int]
    ) -> tuple[SignedTable, Any]:
        """Return the signatures, and copies of texts with their firsts."""
        from pyspark.sql import functions as sql

        work, buckets = self.work, self.work.cores
        names = ("file", "start", "partition", "row", "count", "fingerprints", "values", "enough")
        send = send_fingerprints(numbering, self.rule, buckets)
        sent = work.keep(map_arrow(table.select(*names), send, PACKED))
        met = shuffled(sent.where(f"kind = {ENTRY}"), buckets)
        met = work.keep(map_arrow(met, meet_equals, PACKED))
        columns = "position long, first long"
        here, there = (
            map_arrow(frame.where(f"kind = {COPY}"), as_columns(COPIES, COPY), columns)
            for frame in (sent, met)
        )
        again = there.select(sql.col("position").alias("known"), sql.col("first").alias("least"))
        resolved = here.join(again, here["first"] == again["known"], "left").select(
            "position", sql.coalesce("least", "first").alias("first")
        )
        copies = work.keep(resolved.union(there))
        several = map_arrow(met.where(f"kind = {ENTRY}"), as_columns(EQUALS, ENTRY), _EQUALS)
        originals = work.keep(several.select("first", "second", "best", "best_value"))
        positions = work.send(collect_positions(copies, ["position"], total[0]))
        return SignedTable(table, numbering, positions, originals, self.rule, total[0]), copies

    def _propose(self, signed: SignedTable) -> Proposed:
        by_bands = self.settings.method == "minhash"
        propose = propose_by_bands if by_bands else propose_by_radius
        return propose(self.work, self.settings, signed)

    def _decide(
        self, signed: SignedTable, copies: Any, verifier: Verifier, accepted: Any
    ) -> tuple[Any, Any, list[str], dict[str, int]]:
        """Return what becomes of documents, the pairs, warnings and counts."""
        from pyspark.sql import functions as sql

        work, settings = self.work, self.settings
        warnings: list[str] = []
        labels = work.keep(connected(accepted, work.keep))
        values = values_of(work, signed, labels)
        if settings.cluster == "star":
            accepted, warnings = self._settle(signed, verifier, accepted, labels, values)
        pair_count = accepted.count()
        joined = together(accepted, labels, signed.originals, values, self._places(pair_count))
        groups = work.keep(chosen_frame(joined, settings))
        told = groups.where("first < 0").agg(
            sql.sum(-sql.col("first")).alias("split"), sql.max("cluster").alias("largest")
        )
        split = told.first()
        warnings += split_warnings(split.split or 0, split.largest or 0, settings.max_cluster)
        fates = self._fates(signed, copies, labels, self._likeness(verifier, groups))
        copied = copies.select(
            sql.col("first").alias("left"),
            sql.col("position").alias("right"),
            sql.lit(1.0).alias("similarity"),
            sql.lit(0).alias("distance"),
        )
        copy_count = copies.count()
        sizes = fates.groupBy("cluster").count()
        facts = sizes.agg(
            sql.count(sql.when(sql.col("count") > 1, 1)).alias("clusters"),
            sql.max("count").alias("largest"),
        ).first()
        # With none to stay, the first of equal texts goes, too.
        also = signed.originals.count() if settings.keep == "none" else 0
        dropped = fates.where("duplicate_of is not null").count()
        counts = {
            "kept": signed.documents - dropped,
            "exact_duplicates": copy_count + also,
            "clusters": facts.clusters,
            "largest_cluster": facts.largest or min(1, signed.documents),
            "verified_pairs": pair_count + copy_count,
        }
        return fates, accepted.union(copied), warnings, counts

    def _settle(
        self, signed: SignedTable, verifier: Verifier, accepted: Any, labels: Any, values: Any
    ) -> tuple[Any, list[str]]:
        """Return the pairs, with those added that were found among those that would stay."""
        work, settings = self.work, self.settings
        done = None
        for _ in range(ROUNDS):
            places = self._places(accepted.count())
            joined = together(accepted, labels, signed.originals, values, places)
            unmet = work.keep(unmet_frame(joined))
            if done is not None:
                unmet = work.keep(unmet.join(done, ["left", "right"], "left_anti"))
            if not unmet.count():
                return accepted, []
            tried = unmet.select("left", "right")
            done = tried if done is None else done.union(tried)
            found = verifier.similarities(unmet)
            near = work.keep(found.where(f"similarity >= {settings.threshold!r}D"))
            if not near.count():
                return accepted, []
            accepted = work.keep(accepted.union(near))
        return accepted, [TIRED]

    def _likeness(self, verifier: Verifier, groups: Any) -> Any:
        """Return the groups with all similarities: who is not a pair with the one that stands for
        it, which chains have brought together, is compared now.
        """
        from pyspark.sql import functions as sql

        groups = groups.where("first >= 0")
        unknown = groups.where("similarity is null")
        if self.settings.cluster == "star" or not unknown.count():
            return groups
        left, right = sql.least("first", "centre"), sql.greatest("first", "centre")
        pairs = unknown.select(left.alias("left"), right.alias("right")).distinct()
        found = verifier.similarities(self.work.keep(pairs), all_of_them=True)
        found = found.select("left", "right", sql.col("similarity").alias("found"))
        sides = groups.withColumn("left", left).withColumn("right", right)
        return sides.join(found, ["left", "right"], "left").select(
            "first",
            "cluster",
            "survivor",
            "centre",
            sql.coalesce("similarity", "found").alias("similarity"),
        )

    def _fates(self, signed: SignedTable, copies: Any, labels: Any, groups: Any) -> Any:
        """Return what becomes of each document that has a pair or a copy."""
        from pyspark.sql import functions as sql

        first = sql.col("first")
        stands = "second" if self.settings.keep == "none" else "best"
        alone = signed.originals.join(
            labels.select(sql.col("position").alias("first")), "first", "left_anti"
        ).select(
            "first",
            first.alias("cluster"),
            sql.col(stands).alias("survivor"),
            first.alias("centre"),
            sql.lit(1.0).alias("similarity"),
        )
        groups = self.work.keep(groups.union(alone))
        of_copies = copies.join(groups, "first")
        if self.settings.keep == "none":  # of equal texts, all but the first name that
            of_copies = of_copies.withColumn("survivor", first).withColumn(
                "similarity", sql.lit(1.0)
            )
        named = ("position", "cluster", "survivor", "similarity")
        every = groups.withColumn("position", first).select(*named).union(of_copies.select(*named))
        goes = sql.col("survivor") != sql.col("position")
        return self.work.keep(
            every.select(
                "position",
                "cluster",
                sql.when(goes, sql.col("survivor")).alias("duplicate_of"),
                sql.when(goes, sql.col("similarity")).alias("similarity"),
            )
        )

    def _places(self, pairs: int) -> int:
        return max(self.work.cores, -(-pairs // _PAIRS_A_TASK))
