"""Step 4, propose: which pairs of signatures are worth a look at the documents?"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.dedup.context import JobContext
from lookalike.dedup.pairs.nearby import CHANCE, NearbyRows
from lookalike.dedup.pairs.samples import sampled_pairs
from lookalike.dedup.read import DocumentTable
from lookalike.dedup.settings import DedupSettings
from lookalike.dedup.sign import Signed
from lookalike.dedup.work_folder import release
from lookalike.errors import ResultTooLargeError, Said
from lookalike.indexes.bands import BandedPairs, BandLayout, choose_bands
from lookalike.shown import counted
from lookalike.signatures import hamming
from lookalike.signatures.minhash import VALUE_BYTES

__all__ = [
    "LARGEST_GROUP",
    "Candidates",
    "band_warnings",
    "check_pair_count",
    "crowd_warnings",
    "distances_of_rows",
    "promising",
    "propose_pairs",
    "row_distances",
    "signature_distances",
]

LARGEST_GROUP = 200
"""Rows that share a band and are still all paired with each other."""

_GOOD_CHANCE = 0.99
"""Of proposing a pair at the threshold; below it, people are told."""

_REMEDY = "; --exact (in Python exact=True) finds every pair"

_AT_A_TIME = 1 << 16

_STANDARD_ERRORS = 5
"""How far an estimate may be below the threshold before a pair is not worth a look."""


@dataclass
class Candidates:
    """Pairs of rows of `Signed`, in files, with the distance of their signatures."""

    count: int = 0
    proposed: int = 0
    """Before estimates far below the threshold were left out."""
    warnings: list[str] = field(default_factory=list)


Batch = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]


def propose_pairs(
    job: JobContext, documents: DocumentTable, signed: Signed, rank: NDArray[np.int64]
) -> Candidates:
    """Write the candidates to the files `left`, `right` and `distance`.

    More than there is memory for are an error. `rank` is the order in which rows are to survive.
    Where not all of a group can be paired with each other, they are paired with the best of it, who
    is the likeliest to stand for them.
    """
    found = Candidates()
    work, check = job.work, check_pair_count(job, len(signed.too_short))
    work.begin("pairs")
    if job.settings.measure == "containment":
        batches = _by_samples(job, documents, signed, found)
    elif job.settings.by_bands:
        batches = _by_bands(job, signed, rank, found)
    else:
        batches = _by_radius(job, signed, rank, found)
    with (
        work.writer("left") as left_file,
        work.writer("right") as right_file,
        work.writer("distance") as distance_file,
    ):
        for left, right, distances in batches:
            left_file.write(left.data)
            right_file.write(right.data)
            distance_file.write(distances.data)
            found.count += len(left)
            check(found.count)
    return found


def check_pair_count(job: JobContext, documents: int) -> Callable[[int], None]:
    """Return what refuses more pairs than so many documents leave memory for."""
    most = job.most_pairs(documents)

    def check(count: int) -> None:
        if most is not None and count > most:
            raise ResultTooLargeError(
                f"more than {most:,} pairs of documents look alike, for which ",
                Said("memory_limit"),
                " leaves no room; raise it, choose a higher threshold or a smaller radius, or "
                "de-duplicate parts one after the other, each against those before",
            )

    return check


def signature_distances(
    job: JobContext, signed: Signed, left: NDArray[np.int64], right: NDArray[np.int64]
) -> NDArray[np.int32]:
    """Return in how many values, or bits, the signatures of pairs of documents differ."""
    one, two = (np.searchsorted(signed.positions, side) for side in (left, right))
    return distances_of_rows(job, signed, one, two)


def distances_of_rows(
    job: JobContext, signed: Signed, left: NDArray[np.int64], right: NDArray[np.int64]
) -> NDArray[np.int32]:
    """Return the same for pairs of rows."""
    found = row_distances(job.settings, signed.signatures, left, right, job.threads)
    release(signed.signatures)
    return found


def row_distances(
    settings: DedupSettings,
    signatures: NDArray[np.uint8],
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    threads: int,
) -> NDArray[np.int32]:
    """Return the same for pairs of rows of any signatures."""
    found = np.empty(len(left), np.int32)
    if settings.by_bands:
        _native.equal_values_at(signatures, VALUE_BYTES, left, right, threads, found)
        np.subtract(settings.permutations, found, out=found)
    else:
        for begin in range(0, len(left), _AT_A_TIME):
            part = slice(begin, begin + _AT_A_TIME)
            found[part] = hamming(signatures[left[part]], signatures[right[part]])
    return found


def promising(distances: NDArray[np.int32], settings: DedupSettings) -> NDArray[np.bool_]:
    """Return which distances of signatures make a look at the documents worth while."""
    if not settings.by_signatures:
        return np.ones(len(distances), bool)
    if not settings.by_bands:
        return distances <= (settings.radius or 0)
    error = math.sqrt(settings.threshold * (1 - settings.threshold) / settings.permutations)
    least = settings.permutations * (settings.threshold - _STANDARD_ERRORS * error)
    return settings.permutations - distances >= least


def _by_samples(
    job: JobContext, documents: DocumentTable, signed: Signed, found: Candidates
) -> Iterator[Batch]:
    """Pairs of which the smaller one seems to be in the larger one."""
    for left, right in sampled_pairs(job, documents, signed, found.warnings):
        found.proposed += len(left)
        yield left, right, distances_of_rows(job, signed, left, right)


def _by_bands(
    job: JobContext, signed: Signed, rank: NDArray[np.int64], found: Candidates
) -> Iterator[Batch]:
    """Pairs of MinHash signatures that share a band, without those that are clearly far."""
    settings, work, progress = job.settings, job.work, job.progress
    layout = choose_bands(settings.permutations, settings.threshold)
    count = len(signed.positions)
    keys = work.scratch("keys", np.uint32, (layout.bands, count))
    pairs = BandedPairs(
        signed.signatures,
        VALUE_BYTES,
        layout,
        keys,
        most=LARGEST_GROUP,
        first_new=signed.first_new,
        rank=rank,
        threads=job.threads,
    )

    def told(share: float) -> None:
        progress.step("propose", share / 2)
        release(signed.signatures)
        release(keys)

    pairs.fill_keys(told)
    for band in range(layout.bands):
        for left, right in pairs.of_band(band):
            found.proposed += len(left)
            distances = distances_of_rows(job, signed, left, right)
            near = promising(distances, settings)
            yield left[near], right[near], distances[near]
        release(keys)
        progress.step("propose", (1 + (band + 1) / layout.bands) / 2)
    work.remove("keys")
    found.warnings += band_warnings(
        settings, layout, pairs.large_groups, pairs.rows_in_large_groups
    )


def band_warnings(
    settings: DedupSettings, layout: BandLayout, large_groups: int, rows_in_large_groups: int
) -> list[str]:
    """Return what people should know of pairs that were proposed by bands."""
    warnings = []
    chance = float(layout.chance(settings.threshold))
    if chance < _GOOD_CHANCE:
        warnings.append(
            f"with {settings.permutations} permutations a pair at the threshold is proposed with a "
            f"chance of {chance:.0%} only; more permutations find more"
        )
    if large_groups:
        warnings.append(
            f"{counted(large_groups, 'group')} of more than {LARGEST_GROUP:,} documents "
            f"{'shares' if large_groups == 1 else 'share'} a band "
            f"of their signatures ({rows_in_large_groups:,} documents, some in several "
            f"groups); in these each document was compared with some others, not with all{_REMEDY}"
        )
    return warnings


def _by_radius(
    job: JobContext, signed: Signed, rank: NDArray[np.int64], found: Candidates
) -> Iterator[Batch]:
    """Pairs within the radius; see `NearbyRows`."""
    radius = job.settings.radius or 0
    rows = NearbyRows(
        signed.signatures,
        rank,
        radius,
        most=LARGEST_GROUP,
        limit=job.most_pairs(len(signed.too_short)),
        threads=job.threads,
        device=job.device,
    )
    for better, worse, distances in rows.pairs(partial(job.progress.step, "propose")):
        found.proposed += len(better)
        left, right = np.minimum(better, worse), np.maximum(better, worse)
        new = right >= signed.first_new
        yield left[new], right[new], distances[new]
    found.warnings += crowd_warnings(radius, rows.crowded)
    if rows.drawn:
        found.warnings.append(
            f"{counted(len(signed.positions), 'signature')} are too many to compare each with "
            f"each: those within {radius} bits were proposed with a chance of {CHANCE:.0%} or "
            f"more each, the nearer the surer{_REMEDY}"
        )


def crowd_warnings(radius: int, crowded: int) -> list[str]:
    """Return what people should know of pairs that were proposed by a radius."""
    if not crowded:
        return []
    return [
        f"the signatures of {crowded:,} documents are within {radius} bits of those of "
        f"more than {LARGEST_GROUP:,} others; each of these was compared with some of them, "
        f"not with all{_REMEDY}"
    ]
