"""The dedup job on Spark, with the steps and settings of `lookalike.dedup.job`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np

from lookalike.corpora.columns import Filters
from lookalike.corpora.lengths import TextLengths
from lookalike.dedup.decide import rounds_exhausted_warning, split_warnings
from lookalike.dedup.result import DedupCounts
from lookalike.dedup.settings import DedupSettings, given_settings
from lookalike.features import FeatureKind
from lookalike.features.choice import FeatureChoice
from lookalike.features.text import Lengths
from lookalike.indexes.bands import choose_bands
from lookalike.pages import PageLimits
from lookalike.spark import propose
from lookalike.spark.collapse import Collapsed, collapse
from lookalike.spark.deciding import Decider
from lookalike.spark.packed import map_arrow, sql
from lookalike.spark.positions import TOLD, Numbering, is_old, numbered_columns
from lookalike.spark.prefixes import alone_positions, propose_by_prefixes
from lookalike.spark.propose import Proposed
from lookalike.spark.rarity import count_features
from lookalike.spark.result import ANNOTATED as ANNOTATED
from lookalike.spark.result import ResultRows, SparkDedup
from lookalike.spark.signing import LENGTHS, SIGNED, SignedTable, sign_rows
from lookalike.spark.sources import (
    Preparation,
    Sources,
    deciding_column,
    frame_of,
    old_frame,
    order_frame,
)
from lookalike.spark.survey import survey
from lookalike.spark.work import SparkWork

_TOTALS = {"documents": "count", "bytes": "bytes", "without_features": "short"}
"""Counts of the corpus, and the columns of the table of signatures that have them."""


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
    max_repetition: float = 1.0,
    language: str | None = None,
    min_links: int = 0,
    min_bytes: int = 0,
    strip_urls: bool = False,
    work: str | None = None,
    purpose: str = "duplicates",
    method: str = "minhash",
    threshold: SupportsFloat | None = None,
    ngram: Lengths | None = None,
    permutations: SupportsIndex = 128,
    bits: SupportsIndex | None = None,
    radius: SupportsIndex | None = None,
    seed: SupportsIndex = 0,
    verify: bool = True,
    min_features: SupportsIndex = 1,
    grouping: str = "star",
    max_group: SupportsIndex = 1000,
    keep: str | Callable[[list[dict[str, Any]]], Any] | None = None,
    exact: bool = False,
    features: FeatureChoice | None = None,
    stop_words: Any = None,
    stem: str | None = None,
    measure: str | None = None,
    direction: str = "contained",
    common: SupportsIndex | None = None,
    num_perm: SupportsIndex | None = None,
    ngram_size: Lengths | None = None,
    bit_diff: SupportsIndex | None = None,
) -> SparkDedup:
    """Find the near-duplicates of a DataFrame and choose which rows to keep, as `la.dedup` does.

    Kept documents, pairs and groups are those of the local job on the same rows in the same order,
    whatever the partitions. Only where the local job proposes by chance, of very many SimHash or
    TopSig signatures, Spark compares all, and a warning says so. For containment and weights every
    pair is found, also those that samples of features may miss.

    Texts are read twice, once more if they turn out to be short, and sent only where pairs are
    compared. For weights they are read once more, and features that several documents have are in
    the memory of all workers: at most 16,777,216, or an error is raised. The result's frames are
    valid until `SparkDedup.close`. With `html`, or an option that leaves out or changes documents,
    a copy of the corpus with texts in place of pages is kept in `work`.

    Args:
        frame: The DataFrame. Rows are in the order of the files they come from and of the lines
            there, or of the partitions.
        text: The column with the document text (default: detected).
        id: The column with ids (default: detected, or the positions of rows).
        order: A column of unique values to sort by, for a frame without an order of its own.
            This shuffles the corpus once.
        against: An old corpus, a DataFrame or files. Rows that are already there are dropped, and
            none of its rows is among the kept rows.
        html: The column with web pages, whose main text is compared.
        page_limits: Limits on the depth, tags, time and memory of a web page.
        min_words: Leave out documents with fewer words.
        max_repetition: Leave out documents that repeat a larger share of their runs of five words.
        language: Leave out documents in other languages than these: "en", or "en,de".
        min_links: Leave out pages with fewer links.
        min_bytes: Leave out smaller texts (in UTF-8), and pages with less HTML.
        strip_urls: Ignore URLs when comparing texts.
        work: A folder that all workers can reach, such as hdfs:// or s3a://, for what lasts between
            steps. Without it workers hold that, and compute it again when one of them is lost.
        purpose: "duplicates", or "versions" of long documents; see `la.dedup`.
        method: The signatures: "minhash" (Jaccard similarity of sets of word n-grams), "simhash" or
            "topsig" (cosine of word n-gram counts).
        threshold: The least similarity (default: 0.8; features "short" 0.75).
        ngram: Words or characters of a feature, or several such lengths. Also `ngram_size`.
        permutations: Of MinHash: a pair at the threshold is proposed with a chance of at least
            99.5%. Also `num_perm`.
        bits: Bits of a signature, of SimHash and TopSig.
        radius: The maximum Hamming distance of a candidate pair (default: derived from the
            threshold). Also `bit_diff`.
        seed: The random seed for signatures.
        verify: Compare candidate pairs exactly. Without it, signatures estimate similarities.
        min_features: Keep documents with fewer features, without comparing them.
        grouping: "star": drop only near-duplicates of a kept document. "components": keep one of
            all documents that pairs connect.
        max_group: With components: split larger ones into stars.
        keep: Which document of a group to keep: "first", "last", "longest", "shortest",
            "max:COLUMN", "min:COLUMN", "none" to drop the whole group, or a function that gets the
            rows of a group as a list of dicts, and returns the one to keep, or its position.
            Workers call it, with a whole group at a time.
        exact: Find every pair at or above the threshold, not only those that signatures propose.
        features: "words", "chars", both ("words,chars"), "short" (`la.ShortText`), an object such
            as `la.Words(...)`, or a function from a text to its features (default: words, or by the
            lengths of the documents "short", as in `la.dedup`).
        stop_words: Words to leave out: a language such as "english", or a list.
        stem: Compare the stems of words of this language.
        measure: "jaccard", "cosine" or "containment" (default: what the signatures estimate), or
            "weighted-jaccard" or "weighted-containment", as in `la.dedup`.
        direction: With containment, which documents `against` drops; as in `la.dedup`.
        common: Leave out features that more than this number of documents have (default: none).

    Returns:
        A `SparkDedup`, with frames of the kept rows, of all rows and of the pairs.

    Raises:
        ArgumentError: An option has a value that is not allowed, or `frame` is not a DataFrame.
    """
    options = dict(locals())
    chosen = given_settings(options, dedup)
    filters = Filters(
        min_words=min_words,
        max_repetition=max_repetition,
        language=language,
        min_links=min_links,
        min_bytes=min_bytes,
        strip_urls=strip_urls,
    )
    frame = frame_of("frame", frame)
    how = Preparation(html, page_limits, filters)
    space = SparkWork(frame.sparkSession, work)
    try:
        named = (text, id, chosen.keep_column)
        sources = _sources(space, frame, named, order, against, how, chosen.feature_kind())
        return _Job(space, sources, chosen).run()
    except BaseException:
        space.close()
        raise


def _sources(
    work: SparkWork,
    frame: Any,
    named: tuple[str | None, str | None, str | None],
    order: str | None,
    against: Any,
    how: Preparation,
    features: FeatureKind,
) -> Sources:
    if order is not None:  # ranges are drawn anew each time it is sorted
        frame = work.keep(order_frame(frame, order))
    corpus = how.prepared(work, frame, named, features)
    old = old_frame(frame.sparkSession, against, corpus.columns, how.html)
    if old is None:
        return Sources.of(corpus, None)
    if order is not None and order in old.columns:
        old = work.keep(order_frame(old, order))
    like = (corpus.columns.text, corpus.columns.id, None)
    return Sources.of(corpus, how.for_old(old).prepared(work, old, like, features, optional=True))


class _Job:
    """A job that is being done."""

    def __init__(self, work: SparkWork, sources: Sources, settings: DedupSettings) -> None:
        self.work, self.sources, self.settings = work, sources, settings
        self.lengths: TextLengths | None = None
        self.rarity: Any | None = None
        """What features weigh, a `SharedFeatures` that was sent; None: they have no weights."""

    def run(self) -> SparkDedup:
        """Take the steps, one after the other."""
        work, sources = self.work, self.sources
        with work.timed("sign"):
            signed, totals, lengths = self._sign()
            if self.settings.features_open:
                by_words = self.settings.signer()
                self.lengths, self.settings = lengths, self.settings.with_features(lengths.features)
                if self.settings.signer() != by_words:
                    signed, totals, _ = self._sign()
        settings = self.settings
        signed, proposed, gathered = self._propose(signed)
        with work.timed("verify"):
            frame, compared, names = sources.documents, sources.compared, sources.corpus.names
            decider = Decider(work, settings, frame, compared, names, signed, self.rarity)
            decided = decider.decide(proposed, gathered)
        facts = decided.facts
        warnings = [*proposed.warnings, *([rounds_exhausted_warning()] if facts.exhausted else [])]
        if settings.grouping == "components":
            warnings += split_warnings(facts.split, facts.split_largest, settings.max_group)
        rows = ResultRows(work, settings, sources, signed, decided, proposed.needed)
        return SparkDedup(
            settings=settings,
            features_reason=None if self.lengths is None else self.lengths.reason,
            counts=self._counts(totals, rows),
            seconds=dict(work.seconds),
            warnings=warnings,
            left_out=dict(sources.left_out),
            _rows=rows,
        )

    def _sign(self) -> tuple[SignedTable, dict[str, int], TextLengths]:
        """Return the table of signatures, and counts and lengths of the corpus.

        The lengths are told with the signatures, so that only short texts are read once more.
        """
        sources = self.sources
        text = sql.col(f"`{sources.compared.text}`").cast("string")
        decides = deciding_column(sources.corpus.frame, self.settings, sources.corpus.columns)
        rows = numbered_columns(sources.documents, [text, *decides])
        table = self.work.keep(map_arrow(rows, sign_rows, SIGNED, self.settings))
        names = dict.fromkeys((*TOLD, *_TOTALS.values(), *LENGTHS))
        told = table.select(*names).toArrow()
        numbering = Numbering.told(told)
        pieces = zip(*(told[name].to_pylist() for name in TOLD[:3]), strict=True)
        new = np.array([not is_old(piece) for piece in pieces], bool)
        sums = {
            name: int(told[name].to_numpy()[new].sum()) for name in (*_TOTALS.values(), *LENGTHS)
        }
        totals = {name: sums[column] for name, column in _TOTALS.items()}
        signed = SignedTable(
            table,
            self.work.send(numbering),
            chunk_keys=np.sort(told["key"].to_numpy()),
            rule=self.settings.keep_rule.partition(":")[0],
            documents=numbering.documents,
            text_bytes=sum(told["bytes"].to_pylist()),
        )
        return signed, totals, TextLengths(*(sums[name] for name in LENGTHS))

    def _propose(self, signed: SignedTable) -> tuple[SignedTable, Proposed, Any | None]:
        """Return signatures with what is known of equal texts, pairs, and what one task has
        gathered for comparing them, if the corpus is small.
        """
        work, settings = self.work, self.settings
        by_bands = settings.by_bands and settings.by_signatures
        bands = choose_bands(settings.permutations, settings.threshold).bands if by_bands else 0
        if by_bands and signed.documents * bands <= propose.ENTRIES_A_TASK:
            with work.timed("propose"):
                known = survey(work, settings, signed)
                return self._with_copies(signed, known.collapsed), known.proposed, known.gathered
        with work.timed("collapse"):
            signed = self._with_copies(signed, collapse(work, signed))
        with work.timed("propose"):
            if not settings.by_signatures:
                alone = alone_positions(signed)
                how = settings, self.sources.documents, self.sources.compared.text, signed, alone
                self.rarity = count_features(work, *how)
                return signed, propose_by_prefixes(work, *how, self.rarity), None
            by = propose.propose_by_bands if by_bands else propose.propose_by_radius
            return signed, by(work, settings, signed), None

    def _with_copies(self, signed: SignedTable, collapsed: Collapsed) -> SignedTable:
        return replace(signed, collapsed=collapsed, copies=self.work.send(collapsed.copies))

    def _counts(self, totals: dict[str, int], rows: ResultRows) -> DedupCounts:
        """Return the counts: of documents that have pairs, and of texts that have copies alone."""
        facts, collapsed = rows.decided.facts, rows.signed.collapsed
        documents = totals["documents"]
        named = {
            **totals,
            "compared_pairs": facts.compared,
            "left_out": sum(self.sources.left_out.values()),
        }
        if self.sources.has_old:
            named |= rows.counted(documents)
        else:
            none = self.settings.keep == "none"  # the first of equal texts is dropped, too
            texts, copies = collapsed.texts - facts.texts, collapsed.count - facts.copies
            equal = collapsed.count + (collapsed.texts if none else 0)
            named |= {
                "kept": documents - facts.dropped - copies - (texts if none else 0),
                "exact_duplicates": equal - facts.estimated,
                "groups": facts.groups + texts,
                "largest_group": max(facts.largest, collapsed.largest),
                "verified_pairs": rows.pair_count,
            }
        others = documents - named["kept"] - named["exact_duplicates"]
        by = "near_duplicates" if self.settings.verify else "estimated_duplicates"
        short = None if self.lengths is None else self.lengths.short
        return DedupCounts(**{"near_duplicates": 0, **named, by: others}, short_documents=short)
