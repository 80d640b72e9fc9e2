"""The steps, one after the other: read, fit a sample, find centers, assign documents, words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from lookalike import _native
from lookalike.checks import flag, thread_count, whole_number
from lookalike.corpora.base import limited
from lookalike.corpora.columns import Filters
from lookalike.dedup.kinds import chosen
from lookalike.dedup.pairs import Ints
from lookalike.dedup.rarity import BYTES_A_FEATURE
from lookalike.dedup.sign import collapse
from lookalike.display import Records
from lookalike.errors import ArgumentError, Said
from lookalike.features import FeatureKind, Weights
from lookalike.features.choice import chosen_words
from lookalike.jobs.context import JobContext, JobProgress, longest_document
from lookalike.jobs.documents import DocumentTable, Reading, read_documents
from lookalike.jobs.work_folder import WorkFolder
from lookalike.progress import listener
from lookalike.topics.blocks import one_blas_thread
from lookalike.topics.centers import find_centers, nearest
from lookalike.topics.function_words import Hashes, meaningless_words
from lookalike.topics.listed import Listed, are_long, prominence
from lookalike.topics.result import Assigned, DocumentCluster, DocumentClusters
from lookalike.topics.settings import TopicSettings
from lookalike.topics.space import Entries, Points, TopicSpace
from lookalike.topics.words import WordCounts, cluster_words

_AT_A_TIME, _BYTES_AT_A_TIME = 4096, 64 << 20
"""Maximum number of documents in a batch, and about the bytes of their texts."""
_SAMPLE, _SAMPLE_FEATURES = 1 << 14, 1 << 22
"""Maximum number of documents of the sample, and of their distinct features together."""
_A_CLUSTER = 8
"""Minimum number of documents of the sample for each cluster that is asked for."""


def run_job(options: dict[str, Any]) -> DocumentClusters:
    """Run the steps, with the arguments of `lookalike.topics.cluster_documents`."""
    settings = TopicSettings(**chosen(options, TopicSettings))
    wanted = None if options["k"] is None else whole_number("k", options["k"], at_least=1)
    reading = Reading(
        filters=Filters(**chosen(options, Filters)),
        longest=longest_document(options["max_document"], None),
        was_given=True,
        **chosen(options, Reading),
    )
    skip_bad, tell = (
        flag("skip_bad", options["skip_bad"]),
        listener(options["progress"]),
    )
    workers = thread_count(options["threads"])
    opened = reading.source(
        options["source"],
        settings.feature_kind,
        options["text"],
        options["id"],
        None,
        titles=True,
        title=options["title"],
    )
    folder, progress = WorkFolder(None), JobProgress(tell)
    job = JobContext(
        skip_bad=skip_bad, memory_limit=None, threads=workers, progress=progress, work=folder
    )
    try:
        with limited(*job.limits), one_blas_thread():
            with progress.timed("read"):
                documents = read_documents(job, opened, None, None)
            with progress.timed("fit"):
                common = _common_features(job, documents, settings.feature_kind, settings)
                sample = _Sample.of(job, documents, settings, wanted, common)
            with progress.timed("cluster"):
                having = sample.points[sample.entries.having]
                centers = _centers(having, wanted, settings, workers)
            with progress.timed("assign"):
                assigned, counts = _assigned(job, documents, settings, sample, centers)
            with progress.timed("words"):
                clusters = _described(job, documents, assigned, sample, counts, settings)
            return DocumentClusters(
                **vars(assigned),
                settings=settings,
                clusters=Records(DocumentCluster, clusters),
                seconds=progress.seconds,
                wanted=wanted,
                source=opened.corpus,
                columns=opened.columns,
                documents=documents,
                common_features=len(common),
            )
    finally:
        folder.close()


@dataclass(frozen=True, eq=False)
class _Sample:
    """Some documents in random order, as points of the space that they span."""

    positions: Ints
    space: TopicSpace
    entries: Entries
    points: Points
    meaningless: Hashes
    """Words that say nothing about topics."""
    common: Hashes
    """Features that do not count, because too many documents have them."""
    listed: Listed
    """All features of the documents."""

    def is_whole(self, documents: int) -> bool:
        """Return whether these are all of the documents."""
        return len(self.positions) == documents

    @classmethod
    def of(
        cls,
        job: JobContext,
        documents: DocumentTable,
        settings: TopicSettings,
        wanted: int | None,
        common: Hashes,
    ) -> _Sample:
        """Read the features of documents until the sample is large enough."""
        seed, texts = int(settings.seed), documents.texts.documents
        least = _A_CLUSTER * (wanted or 0)
        order = np.random.default_rng(seed).permutation(len(documents))[: max(_SAMPLE, least)]
        parts: list[Listed] = []
        features = taken = 0
        for some in _batches(order, documents):
            if features >= _SAMPLE_FEATURES and taken >= least:
                break
            parts.append(Listed.of(settings.feature_kind, texts.take(some), job.threads))
            features += len(parts[-1].features)
            taken += len(some)
            job.progress.step("fit", taken / len(order))
        listed = Listed.joined(parts)
        words = chosen_words(settings.feature_kind)
        nothing = np.empty(0, np.uint64) if words is None else meaningless_words(words, listed)
        listed = listed.without(common)
        space = TopicSpace.fit(listed, seed, job.threads, nothing)
        entries = space.entries(listed)
        points = space.points(entries, job.threads)
        return cls(order[:taken], space, entries, points, nothing, common, listed)


def _common_features(
    job: JobContext, documents: DocumentTable, kind: FeatureKind, settings: TopicSettings
) -> Hashes:
    """Return the features that too many different documents have, ascending: see `la.dedup`."""
    if settings.common is None:
        return np.empty(0, np.uint64)
    texts = documents.texts.documents
    first = collapse(job, documents)
    different = np.flatnonzero(first == np.arange(len(first)))

    def sources() -> Iterator[_native.Source]:
        for some in _batches(different, documents):
            yield kind.source(texts.take(some))

    expected = int(documents.texts.lengths[different].sum()) // BYTES_A_FEATURE
    weights = Weights("uniform", common=settings.common)
    return weights.fit_whole(sources, expected=expected, threads=job.threads).common_features()


def _batches(positions: Ints, documents: DocumentTable) -> Iterator[Ints]:
    """Yield positions of documents in batches that fit into memory."""
    sizes, begin, before = np.cumsum(documents.texts.lengths[positions]), 0, 0
    while begin < len(positions):
        fitting = int(np.searchsorted(sizes, before + _BYTES_AT_A_TIME, side="right"))
        end = max(begin + 1, min(begin + _AT_A_TIME, fitting))
        yield np.ascontiguousarray(positions[begin:end])
        begin, before = end, int(sizes[end - 1])


def _centers(points: Points, wanted: int | None, settings: TopicSettings, threads: int) -> Points:
    """Return the centers of clusters; raise if there are fewer documents than clusters."""
    if wanted is not None and wanted > len(points):
        words = "words"
        if settings.common is not None:
            words += f" that at most {settings.common:,} documents have"
        problem = (
            f"expected at most {len(points):,}, the documents that have {words}: ask for fewer "
            "clusters"
            if len(points)
            else f"but no document has {words}, and nothing can be clustered"
        )
        raise ArgumentError(Said("k"), f" is {wanted:,}; {problem}")
    return find_centers(points, wanted, int(settings.seed), threads)


def _assigned(
    job: JobContext,
    documents: DocumentTable,
    settings: TopicSettings,
    sample: _Sample,
    centers: Points,
) -> tuple[Assigned, Ints]:
    """Put all documents into clusters, the largest first; count the prominent features of each.

    Counts are int64[clusters, columns of the space].
    """
    texts, space = documents.texts.documents, sample.space
    assigned = Assigned.of_none(len(documents), centers)
    counts = np.zeros((len(centers), len(space.features)), np.int64)

    def assign(positions: Ints, points: Points, entries: Entries) -> None:
        having = entries.having
        found, cosines = nearest(points[having], centers, job.threads)
        at = positions[having]
        assigned.labels[at], assigned.other_labels[at] = found.T
        assigned.similarities[at], assigned.other_similarities[at] = cosines.T
        counted = entries.counts >= prominence(entries.lengths)[entries.rows]
        rows, columns = entries.rows[counted], entries.columns[counted]
        cells = assigned.labels[positions][rows] * counts.shape[1] + columns
        counts.reshape(-1)[:] += np.bincount(cells, minlength=counts.size)

    if len(centers):
        assign(sample.positions, sample.points, sample.entries)
        rest = np.ones(len(documents), np.bool_)
        rest[sample.positions] = False
        others, done = np.flatnonzero(rest), 0
        for some in _batches(others, documents):
            listed = Listed.of(settings.feature_kind, texts.take(some), job.threads)
            entries = space.entries(listed.without(sample.common))
            assign(some, space.points(entries, job.threads), entries)
            done += len(some)
            job.progress.step("assign", done / len(others))
    return _largest_first(assigned, counts)


def _largest_first(assigned: Assigned, counts: Ints) -> tuple[Assigned, Ints]:
    """Return clusters in the order of their sizes, without those that have no documents."""
    labels = assigned.labels
    sizes = np.bincount(labels[labels >= 0], minlength=len(assigned.centers))
    order = np.argsort(-sizes, kind="stable")
    order = order[sizes[order] > 0]
    names = np.full(len(sizes) + 1, -1, np.int64)  # also of -1, where there is no cluster
    names[order] = np.arange(len(order))
    others = names[assigned.other_labels]
    far = np.where(others >= 0, assigned.other_similarities, np.float32(np.nan))
    renamed = Assigned(
        np.ascontiguousarray(assigned.centers[order]),
        names[labels],
        assigned.similarities,
        others,
        far.astype(np.float32),
    )
    return renamed, counts[order]


def _described(
    job: JobContext,
    documents: DocumentTable,
    assigned: Assigned,
    sample: _Sample,
    counts: Ints,
    settings: TopicSettings,
) -> list[DocumentCluster]:
    """Return what each cluster is about; `counts` has the documents of each with a feature."""
    texts, labels, count = documents.texts.documents, assigned.labels, len(assigned.centers)
    kind, meaningless = settings.shown_words, sample.meaningless
    if kind == settings.feature_kind:
        sizes = np.bincount(labels[labels >= 0], minlength=count).astype(np.int64)
        features = sample.space.features
        counted = WordCounts(kind, sizes, [(features, one) for one in counts])
        # Nearly all long documents mention frequent words, which are not columns then. Some
        # repeat them, and are about them.
        if sample.is_whole(len(labels)) and are_long(sample.listed.lengths):
            own = labels[sample.positions]
            counted = WordCounts.of_listed(kind, sample.listed, own, count)
    else:
        some = texts.take(np.ascontiguousarray(sample.positions[:_AT_A_TIME]))
        meaningless = meaningless_words(kind, Listed.of(kind, some, job.threads))
        common = _common_features(job, documents, kind, settings)
        counted = WordCounts.of(kind, texts, labels, count, job.threads, common=common)
    words = cluster_words(counted, texts, labels, int(settings.words), meaningless, job.threads)
    order = np.lexsort((-assigned.similarities, labels))
    order = order[np.searchsorted(labels[order], 0) :]
    ends = np.cumsum(np.bincount(labels[order], minlength=count))
    found = []
    for number, rows in enumerate(np.split(order, ends[:-1]) if count else []):
        found.append(
            DocumentCluster(
                number,
                size=len(rows),
                mean_similarity=float(assigned.similarities[rows].mean(dtype=np.float64)),
                words=words[number],
                central=_central(documents, rows, int(settings.central)),
            )
        )
    return found


def _central(documents: DocumentTable, rows: Ints, most: int) -> list[int]:
    """Return the first rows whose texts differ."""
    found: list[int] = []
    for row in rows.tolist():
        if len(found) == most:
            break
        if not any(documents.texts.equal(row, other) for other in found):
            found.append(row)
    return found
