"""The whole job on Spark: a DataFrame in; who stays, who goes and why out.

The steps are those of the local job (`lookalike.dedup.job`), and so are the settings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lookalike.corpora.columns import Columns
from lookalike.dedup.job import settings_of
from lookalike.dedup.pairs.settle import ROUNDS, tired
from lookalike.dedup.settings import DedupSettings
from lookalike.dedup.survivors.cluster import split_warnings
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
from lookalike.spark.refusals import check_settings
from lookalike.spark.result import SparkCounts, SparkDedup
from lookalike.spark.rows import ResultRows
from lookalike.spark.signing import SIGNED, sign_rows
from lookalike.spark.survivors import GROUP, SPLIT, UNMET, chosen_frame, together
from lookalike.spark.values import values_of
from lookalike.spark.verify import SIMILARITIES, Verifier
from lookalike.spark.work import SparkWork

__all__ = ["dedup", "pairs"]

_DOCUMENTS_A_TASK = 200_000
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


@dataclass(frozen=True, eq=False)
class _Decided:
    """What becomes of documents, the verified pairs, and how many were compared for it."""

    fates: Any
    verified: Any
    compared: int
    warnings: list[str]
    counts: dict[str, int]


@dataclass(frozen=True, eq=False)
class _Settled:
    """Pairs, and who stays (see `lookalike.spark.survivors.GROUPS`); how many pairs were compared
    for that, and found alike.
    """

    accepted: Any
    groups: Any
    compared: int
    alike: int
    warnings: list[str]


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
            if found is None:
                found = work.spark.createDataFrame([], SIMILARITIES)
        with work.timed("cluster"):
            decided = self._decide(signed, copies, verifier, proposed.pairs, found)
        rows = ResultRows(
            work,
            self.frame,
            self.columns.id,
            numbering,
            total[0],
            decided.fates,
            decided.verified,
        )
        return SparkDedup(
            settings=settings,
            counts=SparkCounts(
                documents=total[0],
                bytes=total[1],
                without_features=short,
                compared_pairs=decided.compared,
                **decided.counts,
            ),
            seconds=dict(work.seconds),
            warnings=[*proposed.warnings, *decided.warnings],
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
            sql.min(sql.col("key") - sql.col("row")).alias("key"),
        )
        pieces = counted.collect()
        counts = {(row.file, row.start, row.partition): row.rows for row in pieces}
        keys = {(row.file, row.start, row.partition): row.key for row in pieces}
        numbering = Numbering.of(counts, keys)
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
        sent = map_arrow(table.select(*names), send, PACKED)
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
        originals = several.select("first", "second", "best", "best_value")
        positions = work.send(collect_positions(copies, ["position"], total[0]))
        return SignedTable(table, numbering, positions, originals, self.rule, total[0]), copies

    def _propose(self, signed: SignedTable) -> Proposed:
        by_bands = self.settings.method == "minhash"
        propose = propose_by_bands if by_bands else propose_by_radius
        return propose(self.work, self.settings, signed)

    def _decide(
        self, signed: SignedTable, copies: Any, verifier: Verifier, proposed: Any, found: Any
    ) -> _Decided:
        """Return what becomes of documents."""
        from pyspark.sql import functions as sql

        work, settings = self.work, self.settings
        accepted = found.where(self._near)
        labels = work.keep(connected(accepted, work.keep))
        values = values_of(work, signed, labels)
        settled = self._settle(signed, verifier, proposed, accepted, labels, values)
        accepted, groups, warnings = settled.accepted, settled.groups, settled.warnings
        if settings.cluster == "components":
            told = groups.where(f"kind = {SPLIT}").agg(
                sql.sum("first").alias("split"), sql.max("cluster").alias("largest")
            )
            split = told.first()
            warnings += split_warnings(split.split or 0, split.largest or 0, settings.max_cluster)
        groups = groups.where(f"kind = {GROUP}").drop("kind")
        fates, estimated = self._fates(signed, copies, labels, self._likeness(verifier, groups))
        copied = copies.select(
            sql.col("first").alias("left"),
            sql.col("position").alias("right"),
            sql.lit(1.0).alias("similarity"),
            sql.lit(0).alias("distance"),
        )
        verified = accepted.union(copied)
        copy_count = len(signed.copies.value)
        # With none to stay, the first of equal texts goes, too.
        also = signed.originals.count() if settings.keep == "none" else 0
        sizes = fates.groupBy("cluster").agg(
            sql.count("*").alias("size"), sql.count("duplicate_of").alias("dropped")
        )
        facts = sizes.agg(
            sql.count(sql.when(sql.col("size") > 1, 1)).alias("clusters"),
            sql.max("size").alias("largest"),
            sql.sum("dropped").alias("dropped"),
        ).first()
        counts = {
            "kept": signed.documents - (facts.dropped or 0),
            "exact_duplicates": copy_count + also - estimated,
            "clusters": facts.clusters,
            "largest_cluster": facts.largest or min(1, signed.documents),
            "verified_pairs": settled.alike + copy_count,
        }
        alike = sql.count(sql.when(sql.expr(self._near), 1)).alias("alike")
        total = found.agg(sql.count("*").alias("compared"), alike).first()
        counts["verified_pairs"] += total.alike
        return _Decided(fates, verified, settled.compared + total.compared, warnings, counts)

    def _settle(
        self,
        signed: SignedTable,
        verifier: Verifier,
        proposed: Any,
        accepted: Any,
        labels: Any,
        values: Any,
    ) -> _Settled:
        """Return who stays, with the pairs added that were found among those that would. Who was
        proposed before is not compared again.
        """
        from pyspark.sql import functions as sql

        work, compared, alike = self.work, 0, 0
        done = proposed.select("left", "right")
        for _ in range(ROUNDS):
            joined = together(accepted, labels, signed.originals, values, self._places(signed))
            groups = work.keep(chosen_frame(joined, self.settings))
            if self.settings.cluster != "star":
                return _Settled(accepted, groups, 0, 0, [])
            unmet = groups.where(f"kind = {UNMET}").select(
                sql.col("first").alias("left"), sql.col("cluster").alias("right")
            )
            unmet = work.keep(unmet.join(done, ["left", "right"], "left_anti"))
            found = verifier.similarities(unmet)
            near = None if found is None else found.where(self._near)
            more = 0 if near is None else near.count()
            compared += 0 if found is None else found.count()
            if not more:
                return _Settled(accepted, groups, compared, alike, [])
            alike += more
            done = work.keep(done.union(unmet))
            accepted = work.keep(accepted.union(near))
        return _Settled(accepted, groups, compared, alike, [tired()])

    @property
    def _near(self) -> str:
        return f"similarity >= {float(self.settings.threshold)!r}D"

    def _likeness(self, verifier: Verifier, groups: Any) -> Any:
        """Return the groups with all similarities: who is not a pair with the one that stands for
        it, which chains have brought together, is compared now.
        """
        from pyspark.sql import functions as sql

        if self.settings.cluster == "star":
            return groups
        unknown = groups.where("similarity is null")
        left, right = sql.least("first", "centre"), sql.greatest("first", "centre")
        pairs = unknown.select(left.alias("left"), right.alias("right")).distinct()
        found = verifier.similarities(self.work.keep(pairs), all_of_them=True)
        if found is None:
            return groups
        found = found.select("left", "right", sql.col("similarity").alias("found"))
        sides = groups.withColumn("left", left).withColumn("right", right)
        return sides.join(found, ["left", "right"], "left").select(
            "first",
            "cluster",
            "survivor",
            "centre",
            sql.coalesce("similarity", "found").alias("similarity"),
        )

    def _fates(self, signed: SignedTable, copies: Any, labels: Any, groups: Any) -> tuple[Any, int]:
        """Return what becomes of each document that has a pair or a copy, and how many copies are
        dropped for another text on the word of signatures.
        """
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
        estimated = 0
        if self.settings.keep != "none" and not self.settings.verify:
            estimated = of_copies.where("centre <> first and survivor <> position").count()
        if self.settings.keep == "none":  # of equal texts, all but the first name that
            of_copies = of_copies.withColumn("survivor", first).withColumn(
                "similarity", sql.lit(1.0)
            )
        named = ("position", "cluster", "survivor", "similarity")
        every = groups.withColumn("position", first).select(*named).union(of_copies.select(*named))
        goes = sql.col("survivor") != sql.col("position")
        fates = every.select(
            "position",
            "cluster",
            sql.when(goes, sql.col("survivor")).alias("duplicate_of"),
            sql.when(goes, sql.col("similarity")).alias("similarity"),
        )
        return self.work.keep(fates), estimated

    def _places(self, signed: SignedTable) -> int:
        return max(self.work.cores, -(-signed.documents // _DOCUMENTS_A_TASK))
