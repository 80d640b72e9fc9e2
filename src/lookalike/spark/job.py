"""The whole job on Spark: a DataFrame in; who stays, who goes and why out.

The steps are those of the local job (`lookalike.dedup.job`), and so are the settings.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.corpora.columns import Filters
from lookalike.dedup.decide import rounds_exhausted_warning, split_warnings
from lookalike.dedup.job import settings_of
from lookalike.dedup.result import DedupCounts
from lookalike.dedup.settings import DedupSettings
from lookalike.features import FeatureKind
from lookalike.indexes.bands import choose_bands
from lookalike.pages import PageLimits
from lookalike.spark import propose
from lookalike.spark.collapse import collapse
from lookalike.spark.deciding import Decider
from lookalike.spark.packed import map_arrow, sql
from lookalike.spark.positions import Numbering, Piece, is_old, numbered_columns
from lookalike.spark.prefixes import propose_by_prefixes
from lookalike.spark.propose import Proposed, SignedTable
from lookalike.spark.result import ResultRows, SparkDedup
from lookalike.spark.signing import SIGNED, sign_rows
from lookalike.spark.sources import (
    Sources,
    Wishes,
    deciding_column,
    frame_of,
    old_frame,
    order_frame,
)
from lookalike.spark.survey import survey
from lookalike.spark.work import SparkWork


def dedup(
    frame: Any,
    *,
    text: str | None = None,
    id: str | None = None,
    order: str | None = None,
    against: Any = None,
    html: str | None = None,
    page_limits: PageLimits | None = None,
    min_words: int = 0,
    language: str | None = None,
    min_links: int = 0,
    strip_urls: bool = False,
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

    `against` is an old corpus, a DataFrame or files of it: what is already there goes, and none of
    it is among the survivors.

    `html` names a column of web pages, of which the main text is compared, and `page_limits`,
    `min_words`, `language`, `min_links` and `strip_urls` say which documents are wanted, as in
    `la.dedup`. Then a copy of the corpus, with texts in place of pages, lies in `work`, and
    what was left out is counted.

    `work` is a folder that all workers can reach, such as hdfs:// or s3a://, for what lasts between
    steps; without it the workers hold that, and compute it again when one of them is lost. Texts
    are read twice, and sent only where pairs are compared. A function as `keep`
    is called by workers, with the rows of a whole group at a time. For containment every pair is
    found, also those that samples of features may miss. The result's frames are valid until
    `SparkDedup.close`.
    """
    chosen = settings_of(settings)
    filters = Filters(
        min_words=min_words, language=language, min_links=min_links, strip_urls=strip_urls
    )
    frame = frame_of("frame", frame)
    wishes = Wishes(html, page_limits, filters)
    space = SparkWork(frame.sparkSession, work)
    try:
        named = (text, id, chosen.keep_column)
        features = chosen.feature_kind()
        sources = _sources(space, frame, named, order, against, wishes, features)
        return _Job(space, sources, chosen).run()
    except BaseException:
        space.close()
        raise


def pairs(
    frame: Any,
    *,
    text: str | None = None,
    id: str | None = None,
    **settings: Any,
) -> Any:
    """Return the verified pairs of a DataFrame: `left`, `right`, `similarity`, `distance`.

    As `dedup`, which takes the same arguments, and of which they are a part: with those that were
    found to be alike afterwards, among the documents that stay.
    """
    return dedup(frame, text=text, id=id, **settings).pairs


def _sources(
    work: SparkWork,
    frame: Any,
    named: tuple[str | None, str | None, str | None],
    order: str | None,
    against: Any,
    wishes: Wishes,
    features: FeatureKind,
) -> Sources:
    """Return what is to be read."""
    if order is not None:  # ranges are drawn anew each time it is sorted
        frame = work.keep(order_frame(frame, order))
    corpus = wishes.prepared(work, frame, named, features)
    old = old_frame(frame.sparkSession, against, corpus.columns, wishes.html)
    if old is None:
        return Sources.of(corpus, None)
    if order is not None and order in old.columns:
        old = work.keep(order_frame(old, order))
    like = (corpus.columns.text, corpus.columns.id, None)
    wishes = wishes.for_old(old)
    return Sources.of(corpus, wishes.prepared(work, old, like, features, optional=True))


class _Job:
    """A job that is being done."""

    def __init__(self, work: SparkWork, sources: Sources, settings: DedupSettings) -> None:
        self.work, self.sources, self.settings = work, sources, settings
        self.rule = settings.keep_rule.partition(":")[0]

    def run(self) -> SparkDedup:
        """Take the steps, one after the other."""
        work, settings = self.work, self.settings
        sources = self.sources
        with work.timed("sign"):
            table, numbering, chunk_keys, total, text_bytes = self._sign()
        documents = len(numbering.value)
        signed, proposed, gathered = self._propose(table, numbering, chunk_keys, documents)
        signed = replace(signed, text_bytes=text_bytes)
        collapsed = signed.collapsed
        with work.timed("verify"):
            decider = Decider(
                work,
                settings,
                sources.documents,
                sources.compared,
                sources.corpus.names,
                signed,
                collapsed,
            )
            decided = decider.decide(proposed, gathered)
        facts = decided.facts
        warnings = [*proposed.warnings, *([rounds_exhausted_warning()] if facts.tired else [])]
        if settings.cluster == "components":
            warnings += split_warnings(facts.split, facts.split_largest, settings.max_cluster)
        rows = ResultRows(
            work, settings, sources, numbering, documents, collapsed, decided, proposed.needed
        )
        return SparkDedup(
            settings=settings,
            counts=self._counts(total, rows),
            seconds=dict(work.seconds),
            warnings=warnings,
            left_out=dict(sources.left_out),
            _rows=rows,
        )

    def _sign(self) -> tuple[Any, Any, NDArray[np.int64], _Total, int]:
        """Return the table of signatures, the numbering, Spark's numbers of the first documents of
        its rows, what there is of the corpus in all, and the bytes of texts, also of an old one.
        """
        sources = self.sources
        text = sql.col(f"`{sources.compared.text}`").cast("string")
        decides = deciding_column(sources.corpus.frame, self.settings, sources.corpus.columns)
        rows = numbered_columns(sources.documents, [text, *decides])
        table = self.work.keep(map_arrow(rows, sign_rows(self.settings), SIGNED))
        names = ("file", "start", "partition", "row", "key", "count", "bytes", "short")
        counts: dict[Piece, int] = {}
        keys: dict[Piece, int] = {}
        told = table.select(*names).toArrow()
        total = _Total()
        every = zip(*told.to_pydict().values(), strict=True)
        for file, start, partition, row, key, count, bytes, short in every:
            piece = (file, start, partition)
            counts[piece] = counts.get(piece, 0) + count
            keys[piece] = key - row
            if not is_old(piece):
                total += _Total(count, bytes, short)
        numbering = Numbering.of(counts, keys)
        chunk_keys = np.sort(told["key"].to_numpy())
        return table, self.work.send(numbering), chunk_keys, total, sum(told["bytes"].to_pylist())

    def _propose(
        self, table: Any, numbering: Any, chunk_keys: NDArray[np.int64], documents: int
    ) -> tuple[SignedTable, Proposed, Any | None]:
        """Return signatures with what is known of equal texts, pairs, and what one task has
        gathered for comparing them, if the corpus is small.
        """
        work, settings = self.work, self.settings
        by_bands = settings.by_bands and settings.by_signatures
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
            if not settings.by_signatures:
                frame, text = self.sources.documents, self.sources.compared.text
                return signed, propose_by_prefixes(work, settings, frame, text, signed), None
            by = propose.propose_by_bands if by_bands else propose.propose_by_radius
            return signed, by(work, settings, signed), None

    def _counts(self, total: _Total, rows: ResultRows) -> DedupCounts:
        """Return how many there are of what: of documents that have pairs, and of texts that have
        copies and no pairs.
        """
        facts, collapsed = rows.decided.facts, rows.collapsed
        named: dict[str, int] = {
            "documents": total.documents,
            "bytes": total.bytes,
            "without_features": total.short,
            "compared_pairs": facts.compared,
            "left_out": sum(self.sources.left_out.values()),
        }
        if self.sources.has_old:
            named |= rows.counted(total.documents)
        else:
            none = self.settings.keep == "none"  # the first of equal texts goes, too
            texts, copies = collapsed.texts - facts.texts, collapsed.count - facts.copies
            named |= {
                "kept": total.documents - facts.dropped - copies - (texts if none else 0),
                "exact_duplicates": collapsed.count
                + (collapsed.texts if none else 0)
                - facts.estimated,
                "clusters": facts.clusters + texts,
                "largest_cluster": max(facts.largest, collapsed.largest, min(1, total.documents)),
                "verified_pairs": rows.pair_count,
            }
        others = total.documents - named["kept"] - named["exact_duplicates"]
        by = "near_duplicates" if self.settings.verify else "estimated_duplicates"
        return DedupCounts(**{"near_duplicates": 0, **named, by: others})


@dataclass(frozen=True)
class _Total:
    """Documents of the corpus, the bytes of their texts, and how many are too short."""

    documents: int = 0
    bytes: int = 0
    short: int = 0

    def __add__(self, other: _Total) -> _Total:
        return _Total(
            self.documents + other.documents, self.bytes + other.bytes, self.short + other.short
        )
