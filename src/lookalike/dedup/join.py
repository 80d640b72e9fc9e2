"""Steps 4 and 5 with `exact`: every pair at or above the threshold, by a join of feature sets.

Signatures are not used: see `native/pairs/set_join.hpp`. Features that documents share are in
memory, pairs on disk until all are found.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.dedup.pairs import COLUMNS, Ints, VerifiedPairs
from lookalike.dedup.propose import Candidates, row_distances, write_batches
from lookalike.dedup.rarity import BYTES_A_FEATURE, Rarity
from lookalike.dedup.sign import DedupJob, Signed, feature_sources
from lookalike.dedup.verify import Verdict, complete
from lookalike.errors import ResultTooLargeError, Said
from lookalike.features import unrounded
from lookalike.features.weights import NEVER_COMMON
from lookalike.jobs.documents import DocumentTable

_PAIRS_AT_A_TIME = 1 << 20
_BYTES_A_SHARED_FEATURE = 64
"""Of memory, at most: itself, its number, its place in the lists of the join, its weight."""

_MOST_FEATURES = 1 << 62
_MOST_POSTINGS = 1 << 26


def join_documents(
    job: DedupJob, documents: DocumentTable, signed: Signed, first: Ints, rarity: Rarity
) -> Verdict:
    """Return every pair of different texts whose exact similarity reaches the threshold.

    Two old documents are a pair only if a new one has the text of one of them; `first` is the
    first document with the same text.
    """
    job.work.begin("pairs")
    is_new = np.zeros(len(documents), bool)
    is_new[first[documents.old :]] = True
    with job.progress.timed("propose"):
        sets = _read_sets(job, documents, signed)
    with job.progress.timed("verify"):
        join = _native.SetJoin(
            sets,
            getattr(_native.Measure, job.settings.set_measure),
            job.settings.threshold,
            (~is_new[signed.positions]).astype(np.uint8),
            _MOST_POSTINGS if job.memory_limit is None else job.memory_limit // 64,
            job.threads,
        )
        write_batches(job, signed, COLUMNS, _found(job, signed, join))
        columns = {name: job.work.array(name, kind) for name, kind in COLUMNS.items()}
        order = np.argsort(columns["left"] * len(signed.positions) + columns["right"])
        found = {name: np.asarray(column[order]) for name, column in columns.items()}
        for side in ("left", "right"):
            found[side] = signed.positions[found[side]]
        pairs = VerifiedPairs(**found)
        common_features, only_common = rarity.left_out()
        candidates = Candidates(
            join.candidates, common_features=common_features, only_common=only_common
        )
        verdict = Verdict(pairs, pairs[:0], join.compared, candidates)
        complete(job, signed, verdict)
    for name in COLUMNS:
        job.work.remove(name)
    return verdict


def _read_sets(job: DedupJob, documents: DocumentTable, signed: Signed) -> _native.FeatureSets:
    """Read the documents twice: to see which features repeat, then to keep those."""
    settings = job.settings
    if settings.by_frequency:
        kind = settings.new_weights().native_kind
    else:
        counted = settings.measure == "cosine"
        kind = _native.WeightKind.count if counted else _native.WeightKind.uniform
    size = int(documents.texts.lengths[signed.positions].sum())
    most = _MOST_FEATURES
    if job.memory_limit is not None:
        most = job.memory_limit // 2 // _BYTES_A_SHARED_FEATURE
    common = NEVER_COMMON if settings.common is None else settings.common
    sets = _native.FeatureSets(kind, size // BYTES_A_FEATURE, most, common)
    try:
        for number, read in enumerate((sets.observe, sets.add)):
            for source, share in feature_sources(job, documents, signed):
                read(source, job.threads)
                documents.texts.release()
                job.progress.step("propose", (number + share) / 2)
    except _native.TooManyResults:
        raise ResultTooLargeError(
            "the documents share more features than fit into ",
            Said("memory_limit"),
            ". Raise it, leave out ",
            Said("exact"),
            ", or de-duplicate parts one after the other, each against those before",
        ) from None
    return sets


def _found(
    job: DedupJob, signed: Signed, join: _native.SetJoin
) -> Iterator[tuple[NDArray[Any], ...]]:
    """Yield rows, similarities and distances of the signatures, as they are found."""
    settings = job.settings
    while not join.finished:
        left, right, similarity = join.next(_PAIRS_AT_A_TIME, job.threads)
        distances = row_distances(settings, signed.signatures, left, right, job.threads)
        yield left, right, unrounded(similarity, settings.threshold), distances
        job.progress.step("verify", join.share)
