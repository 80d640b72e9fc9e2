"""Step 5, verify: the exact similarity of the documents themselves decides."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.dedup.progress import JobProgress
from lookalike.dedup.propose import propose_pairs
from lookalike.dedup.read import DocumentTable
from lookalike.dedup.settings import DedupSettings
from lookalike.dedup.sign import Signed
from lookalike.dedup.work_folder import WorkFolder, digest
from lookalike.features import cosine_pairs, jaccard_pairs

__all__ = ["VerifiedPairs", "similarities", "verified_pairs"]

_PAIRS_AT_A_TIME = 1 << 16
_BYTES_AT_A_TIME = 32 << 20
_REJECTED = 200
_ROUNDING = 1e-12
"""A cosine that is the threshold exactly may come out this much below it."""

_SORTED_AT_A_TIME = 1 << 22


@dataclass
class VerifiedPairs:
    """Pairs of documents, left before right, by (left, right)."""

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    similarity: NDArray[np.float64]
    distance: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.left)

    def __getitem__(self, which: NDArray[np.generic]) -> VerifiedPairs:
        return VerifiedPairs(
            self.left[which], self.right[which], self.similarity[which], self.distance[which]
        )


@dataclass
class Verdict:
    """What verification found."""

    accepted: VerifiedPairs
    rejected: VerifiedPairs
    """The most similar ones of those that were not accepted, at most 200."""
    proposed: int
    compared: int
    estimated: int
    """Accepted on the word of their signatures, because a text was missing or not to be read."""
    warnings: list[str]


def verified_pairs(
    work: WorkFolder,
    documents: DocumentTable,
    signed: Signed,
    settings: DedupSettings,
    *,
    without_text: int,
    most: int | None,
    threads: int,
    progress: JobProgress,
) -> Verdict:
    """Propose pairs and compare their documents, or take what an earlier run has found.

    Of the first `without_text` documents there are only signatures: estimates stand for them. More
    than `most` candidates are an error.
    """
    key = digest("pairs", signed.key, settings.threshold, settings.radius, settings.verify)
    facts = work.facts("pairs", key)
    if facts is not None:
        progress.reuse("propose", "verify")
    else:
        work.begin("pairs")
        with progress.timed("propose"):
            found = propose_pairs(work, signed, settings, threads, progress, most)
        with progress.timed("verify"):
            facts = _compare(work, documents, signed, settings, without_text, threads, progress)
        facts |= {"proposed": found.proposed, "warnings": found.warnings}
        files = [f"{name}.{column}" for name in ("accepted", "rejected") for column in _COLUMNS]
        work.complete("pairs", key, facts, files)
    return Verdict(
        _load(work, "accepted"),
        _load(work, "rejected"),
        facts["proposed"],
        facts["compared"],
        facts["estimated"],
        facts["warnings"],
    )


def similarities(
    documents: DocumentTable,
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    settings: DedupSettings,
    threads: int,
    progress: Callable[[float], None] = lambda share: None,
) -> NDArray[np.float64]:
    """Return the exact similarity of documents, some at a time, so that memory is bounded."""
    compare = jaccard_pairs if settings.measure == "jaccard" else cosine_pairs
    features = settings.features()
    found = np.empty(len(left))
    for part in _parts(documents.texts.lengths, left, right):
        both = np.concatenate([left[part], right[part]])
        positions, places = np.unique(both, return_inverse=True)
        some = documents.texts.documents.take(positions)
        half = len(places) // 2
        found[part] = compare(some, places[:half], places[half:], features, threads=threads)
        documents.texts.release()
        progress(part.stop / len(left))
    return found


def _compare(
    work: WorkFolder,
    documents: DocumentTable,
    signed: Signed,
    settings: DedupSettings,
    without_text: int,
    threads: int,
    progress: JobProgress,
) -> dict[str, Any]:
    """Write the accepted pairs, and the best of the others."""
    rows = [work.array(name, np.int64) for name in ("left", "right")]
    distances = work.array("distance", np.int32)
    accepted, rejected, estimated = [], [], 0
    for begin in range(0, max(1, len(distances)), _SORTED_AT_A_TIME):
        part = slice(begin, begin + _SORTED_AT_A_TIME)
        order = np.lexsort((rows[1][part], rows[0][part]))
        order = order[_differing(*(row[part][order] for row in rows))]
        left, right = (signed.positions[row[part][order]] for row in rows)
        some = _compared(
            documents,
            VerifiedPairs(left, right, np.empty(len(left)), np.array(distances[part][order])),
            settings,
            without_text,
            threads,
            partial(_tell, progress, begin, len(left), len(distances)),
        )
        near = some.similarity >= settings.threshold - _ROUNDING
        accepted.append(some[near])
        rejected.append(_most_similar(some[~near]))
        if not settings.verify:
            estimated += int(near.sum())
        else:
            estimated += int((some.left[near] < without_text).sum())
    _save(work, "accepted", _sorted(accepted))
    _save(work, "rejected", _most_similar(_sorted(rejected)))
    for name in ("left", "right", "distance"):
        work.remove(name)
    return {"compared": len(distances), "estimated": estimated}


def _tell(progress: JobProgress, begin: int, count: int, total: int, share: float) -> None:
    progress.step("verify", (begin + count * share) / total)


def _compared(
    documents: DocumentTable,
    pairs: VerifiedPairs,
    settings: DedupSettings,
    without_text: int,
    threads: int,
    progress: Callable[[float], None],
) -> VerifiedPairs:
    """Fill in the similarities."""
    known = pairs.left >= (without_text if settings.verify else len(documents))
    pairs.similarity[~known] = settings.estimate(pairs.distance[~known])
    pairs.similarity[known] = similarities(
        documents, pairs.left[known], pairs.right[known], settings, threads, progress
    )
    return pairs


def _sorted(parts: list[VerifiedPairs]) -> VerifiedPairs:
    """Return all in one, by (left, right), each once."""
    columns = [np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS]
    pairs = VerifiedPairs(*columns)[np.lexsort((columns[1], columns[0]))]
    differing = _differing(pairs.left, pairs.right)
    return pairs if differing.all() else pairs[differing]


def _differing(left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which of sorted pairs differ from the one before."""
    differing = np.ones(len(left), bool)
    differing[1:] = (left[1:] != left[:-1]) | (right[1:] != right[:-1])
    return differing


def _most_similar(pairs: VerifiedPairs) -> VerifiedPairs:
    order = np.lexsort((pairs.right, pairs.left, -pairs.similarity))
    return pairs[order[:_REJECTED]]


def _parts(
    lengths: NDArray[np.int64], left: NDArray[np.int64], right: NDArray[np.int64]
) -> Iterator[slice]:
    """Cut pairs into runs of at most so many pairs, and about so many bytes of text."""
    begin = 0
    while begin < len(left):
        end = min(len(left), begin + _PAIRS_AT_A_TIME)
        # Pairs come by left document, so that it counts once.
        weights = lengths[right[begin:end]]
        end = begin + max(1, int(np.searchsorted(np.cumsum(weights), _BYTES_AT_A_TIME)))
        end = min(end, len(left))
        yield slice(begin, end)
        begin = end


_COLUMNS: dict[str, type[np.generic]] = {
    "left": np.int64,
    "right": np.int64,
    "similarity": np.float64,
    "distance": np.int32,
}


def _save(work: WorkFolder, name: str, pairs: VerifiedPairs) -> None:
    for column, dtype in _COLUMNS.items():
        with work.writer(f"{name}.{column}") as file:
            file.write(np.ascontiguousarray(getattr(pairs, column), dtype).data)


def _load(work: WorkFolder, name: str) -> VerifiedPairs:
    """Return saved pairs in memory: a temporary folder may go before the result does."""
    return VerifiedPairs(
        *(np.array(work.array(f"{name}.{column}", kind)) for column, kind in _COLUMNS.items())
    )
