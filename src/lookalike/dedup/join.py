"""Steps 4 and 5 with `exact`: every pair at or above the threshold, by a join of feature sets.

Signatures have no part in it: see `native/pairs/set_join.hpp`. Features that two documents share
lie in memory, and pairs on disk until all are found.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.dedup.pairs import COLUMNS
from lookalike.dedup.propose import check_pair_count, distances_of_rows
from lookalike.dedup.sign import DedupJob, Signed, feature_sources
from lookalike.dedup.verify import Verdict, complete_pairs
from lookalike.errors import ResultTooLargeError, Said
from lookalike.features import unrounded
from lookalike.jobs.documents import DocumentTable

_PAIRS_AT_A_TIME = 1 << 20
_BYTES_A_FEATURE = 4
"""Of text, at least; what is made ready to count them is larger by that."""

_BYTES_A_SHARED_FEATURE = 64
"""Of memory, at the most: by itself, as a number, in the lists of the join, with its weight."""

_MOST_FEATURES = 1 << 62
_MOST_POSTINGS = 1 << 26


def join_documents(
    job: DedupJob, documents: DocumentTable, signed: Signed, first: NDArray[np.int64]
) -> Verdict:
    """Return every pair of different texts whose exact similarity reaches the threshold.

    Two old documents are a pair only if the text of one of them has come again among the new ones,
    `first` being the first with the same text.
    """
    job.work.begin("pairs")
    is_new = np.zeros(len(documents), bool)
    is_new[first[documents.old :]] = True
    with job.progress.timed("propose"):
        sets = _read_sets(job, documents, signed)
    with job.progress.timed("verify"):
        join = _native.SetJoin(
            sets,
            getattr(_native.Measure, job.settings.measure),
            job.settings.threshold,
            (~is_new[signed.positions]).astype(np.uint8),
            _MOST_POSTINGS if job.memory_limit is None else job.memory_limit // 64,
            job.threads,
        )
        _write_pairs(job, signed, join)
        order = _in_order(job, len(signed.positions))
        columns = {name: job.work.array(name, kind) for name, kind in COLUMNS.items()}
        columns |= {side: signed.positions[columns[side]] for side in ("left", "right")}
        found = complete_pairs(job, signed, columns, order, join.candidates, join.compared)
    for name in COLUMNS:
        job.work.remove(name)
    return found


def _read_sets(job: DedupJob, documents: DocumentTable, signed: Signed) -> _native.FeatureSets:
    """Read the documents twice: first to see which features come again, then to keep those."""
    counted = job.settings.measure == "cosine"
    kind = _native.WeightKind.count if counted else _native.WeightKind.uniform
    size = int(documents.texts.lengths[signed.positions].sum())
    most = _MOST_FEATURES
    if job.memory_limit is not None:
        most = job.memory_limit // 2 // _BYTES_A_SHARED_FEATURE
    sets = _native.FeatureSets(kind, size // _BYTES_A_FEATURE, most)
    try:
        for number, read in enumerate((sets.observe, sets.add)):
            for source, share in feature_sources(job, documents, signed):
                read(source, job.threads)
                documents.texts.release()
                job.progress.step("propose", (number + share) / 2)
    except _native.TooManyResults:
        raise ResultTooLargeError(
            "the documents share more features than ",
            Said("memory_limit"),
            " leaves room for, and ",
            Said("exact"),
            " keeps those in memory; raise it, leave ",
            Said("exact"),
            " out, or de-duplicate parts one after the other, each against those before",
        ) from None
    return sets


def _write_pairs(job: DedupJob, signed: Signed, join: _native.SetJoin) -> None:
    """Write rows, similarities and distances of the signatures, as they are found."""
    work, count = job.work, 0
    check = check_pair_count(job, len(signed.too_short))
    with (
        work.writer("left") as left_file,
        work.writer("right") as right_file,
        work.writer("similarity") as similarity_file,
        work.writer("distance") as distance_file,
    ):
        while not join.finished:
            left, right, similarity = join.next(_PAIRS_AT_A_TIME, job.threads)
            left_file.write(left.data)
            right_file.write(right.data)
            similarity_file.write(unrounded(similarity, job.settings.threshold).data)
            distance_file.write(distances_of_rows(job, signed, left, right).data)
            count += len(left)
            check(count)
            job.progress.step("verify", join.share)


def _in_order(job: DedupJob, rows: int) -> NDArray[np.int64]:
    """Return the order of the pairs by (left, right)."""
    keys = job.work.array("left", np.int64) * rows + job.work.array("right", np.int64)
    return np.argsort(keys)
