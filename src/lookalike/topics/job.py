"""The steps, one after the other: read, fit, sign, cluster, words."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.checks import flag, thread_count, whole_number
from lookalike.corpora.base import limited
from lookalike.corpora.columns import Filters
from lookalike.dedup.kinds import chosen
from lookalike.dedup.pairs import Ints
from lookalike.display import Records
from lookalike.errors import ArgumentError, Said
from lookalike.indexes import ScanIndex
from lookalike.indexes.clusters.majority import cluster
from lookalike.jobs.context import JobContext, JobProgress, longest_document
from lookalike.jobs.documents import DocumentTable, Reading, read_documents
from lookalike.jobs.work_folder import WorkFolder
from lookalike.progress import listener
from lookalike.topics.result import Assigned, DocumentCluster, DocumentClusters
from lookalike.topics.settings import ROUNDS, SAMPLE, TopicSettings, usual_clusters
from lookalike.topics.words import WordCounts, cluster_words

_AT_A_TIME = 1 << 15
_SIGNATURES = "signatures"


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
    features = settings.signing.features
    opened = reading.source(options["source"], features, options["text"], options["id"], None)
    folder, progress = WorkFolder(None), JobProgress(tell)
    job = JobContext(
        skip_bad=skip_bad, memory_limit=None, threads=workers, progress=progress, work=folder
    )
    try:
        with limited(*job.limits):
            with progress.timed("read"):
                documents = read_documents(job, opened, None, None)
            rows, positions = _signed(job, documents, settings)
            with progress.timed("cluster"):
                assigned = _assigned(rows, positions, len(documents), wanted, settings, workers)
            with progress.timed("words"):
                clusters = _described(documents, rows, positions, assigned, settings, workers)
            return DocumentClusters(
                **vars(assigned),
                settings=settings,
                clusters=Records(DocumentCluster, clusters),
                seconds=progress.seconds,
                wanted=wanted,
                source=opened.corpus,
                columns=opened.columns,
                documents=documents,
            )
    finally:
        folder.close()


def _signed(
    job: JobContext, documents: DocumentTable, settings: TopicSettings
) -> tuple[NDArray[np.uint8], Ints]:
    """Return the signatures of all documents that have features, and which these are."""
    signer, texts, progress = settings.signer(), documents.texts, job.progress
    if signer.weights.learns:
        with progress.timed("fit"):
            signer.fit(texts.documents, threads=job.threads)
    having: list[Ints] = [np.empty(0, np.int64)]
    with progress.timed("sign"), job.work.writer(_SIGNATURES) as file:
        for begin in range(0, len(documents), _AT_A_TIME):
            end = min(len(documents), begin + _AT_A_TIME)
            part = texts.documents.part(begin, end)
            signatures = signer.sign(part, threads=job.threads)
            kept = np.flatnonzero(signer.with_features(part, signatures, threads=job.threads))
            file.write(np.ascontiguousarray(signatures[kept]).data)
            having.append(begin + kept)
            progress.step("sign", end / len(documents))
    return job.work.array(_SIGNATURES, np.uint8, signer.bits // 8), np.concatenate(having)


def _assigned(
    rows: NDArray[np.uint8],
    positions: Ints,
    documents: int,
    wanted: int | None,
    settings: TopicSettings,
    threads: int,
) -> Assigned:
    """Put documents into clusters, the largest of which is the first."""
    if wanted is not None and wanted > len(rows):
        problem = (
            f"expected at most {len(rows):,}, the documents that have words: ask for fewer clusters"
            if len(rows)
            else "but no document has words, and nothing can be clustered"
        )
        raise ArgumentError(Said("k"), f" is {wanted:,}; {problem}")
    number = usual_clusters(len(rows)) if wanted is None else wanted
    assigned = Assigned.of_none(documents, np.empty((0, rows.shape[1]), np.uint8))
    if not number:
        return assigned
    found = cluster(rows, number, seed=settings.seed, rounds=ROUNDS, threads=threads, sample=SAMPLE)
    sizes = found.sizes
    while True:
        # In the order of `cluster`, so that of equally near centers the same one is taken.
        used = np.flatnonzero(sizes)
        centers = ScanIndex(np.ascontiguousarray(found.centers[used]), used)
        for begin in range(0, len(rows), _AT_A_TIME):
            at = positions[begin : begin + _AT_A_TIME]
            nearest = centers.search(rows[begin : begin + _AT_A_TIME], 2, threads=threads)
            assigned.labels[at], assigned.other_labels[at] = nearest.ids.T
            assigned.distances[at], assigned.other_distances[at] = nearest.distances.T
        # Where `cluster` searches a tree, another center may be nearer than the one it found, and
        # one may be left without documents: it must not be the other cluster of any.
        sizes = np.bincount(assigned.labels[positions], minlength=number)
        if sizes[used].all():
            break
    order = used[np.argsort(-sizes[used], kind="stable")]
    names = np.full(number + 1, -1, np.int64)  # also of -1, where there is no cluster
    names[order] = np.arange(len(order))
    return Assigned(
        np.ascontiguousarray(found.centers[order]),
        names[assigned.labels],
        assigned.distances,
        names[assigned.other_labels],
        assigned.other_distances,
    )


def _described(
    documents: DocumentTable,
    rows: NDArray[np.uint8],
    positions: Ints,
    assigned: Assigned,
    settings: TopicSettings,
    threads: int,
) -> list[DocumentCluster]:
    """Return what each cluster is about."""
    texts, labels = documents.texts.documents, assigned.labels
    count = len(assigned.centers)
    counts = WordCounts.of(settings.shown_words(), texts, labels, count, threads)
    words = cluster_words(counts, texts, labels, int(settings.words))
    hashes = np.empty(len(rows), np.uint64)
    _native.hash_rows(np.ascontiguousarray(rows), hashes)
    far = assigned.distances[positions]
    order = np.lexsort((positions, far, labels[positions]))
    ends = np.cumsum(np.bincount(labels[positions], minlength=count)).tolist()
    found, begin = [], 0
    for number, end in enumerate(ends[:count]):
        members = order[begin:end]
        _, first = np.unique(hashes[members], return_index=True)
        nearest = members[np.sort(first)[: int(settings.central)]]
        found.append(
            DocumentCluster(
                number,
                size=end - begin,
                mean_distance=float(far[members].mean()),
                words=words[number],
                central=positions[nearest].tolist(),
            )
        )
        begin = end
    return found
