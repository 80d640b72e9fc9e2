"""Step 4, propose: which pairs of documents are worth comparing?

MinHash proposes by shared bands, SimHash and TopSig by the distance of signatures, containment and
measures with weights by samples of features.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.dedup.pairs import Flags, Floats, Ints
from lookalike.dedup.rarity import Rarity
from lookalike.dedup.settings import DedupSettings
from lookalike.dedup.sign import DedupJob, Signed, feature_sources
from lookalike.errors import ResultTooLargeError, Said
from lookalike.features import Weights
from lookalike.indexes.all_pairs import pairs_of_rows, seconds_for_all
from lookalike.indexes.bands import BandedPairs, BandLayout, CoreBands, choose_bands
from lookalike.indexes.base import DEFAULT_LIMIT
from lookalike.indexes.results import Pairs, as_int64
from lookalike.jobs.documents import DocumentTable
from lookalike.jobs.work_folder import release
from lookalike.shown import counted
from lookalike.signatures import hamming
from lookalike.signatures.minhash import VALUE_BYTES

LARGEST_GROUP = 200
"""Maximum number of rows with the same band that are all paired with each other."""
_GOOD_CHANCE = 0.99
"""Of proposing a pair at the threshold; a lower one is a warning."""
_REMEDY = "; --exact (in Python exact=True) finds every pair"
_AT_A_TIME = 1 << 16
_KEYS_AT_A_TIME = 1 << 14
"""Keys of bands that are read before progress is reported and memory is released."""
_STANDARD_ERRORS = 5
"""How far an estimate may be below the threshold for a pair to be compared."""


@dataclass
class Candidates:
    """What is known of the candidates, which are pairs of rows of `Signed` in files."""

    proposed: int = 0
    """Their number, including those whose estimates are far below the threshold."""
    partly_compared: int = 0
    """Different documents with too many possible partners to be compared with all of them."""
    common_features: int = 0
    """Features that do not count, because too many documents have them."""
    only_common: int = 0
    """Different documents whose features all weigh nothing."""
    warnings: list[str] = field(default_factory=list)


Batch = tuple[Ints, Ints, NDArray[np.int32]]


def propose_pairs(
    job: DedupJob, documents: DocumentTable, signed: Signed, rank: Ints, rarity: Rarity
) -> Candidates:
    """Write the candidates to the files `left`, `right` and `distance`.

    More than fit into memory are an error. `rank` is the order in which rows are kept. In a group
    that is too large to pair all rows with each other, they are paired with the best ones.
    """
    found = Candidates()
    job.work.begin("pairs")
    if not job.settings.by_signatures:
        found.common_features, found.only_common = rarity.left_out()
        batches = sampled_pairs(job, documents, signed, found, rarity.weights)
    elif job.settings.by_bands:
        batches = _by_bands(job, signed, rank, found)
    else:
        batches = _by_radius(job, signed, rank, found)
    write_batches(job, signed, ("left", "right", "distance"), batches)
    return found


def write_batches(
    job: DedupJob, signed: Signed, names: Iterable[str], batches: Iterable[Sequence[NDArray[Any]]]
) -> None:
    """Write columns of pairs to files; refuse more than fit into memory beside the documents."""
    count, most = 0, job.most_pairs(len(signed.too_short))
    with ExitStack() as opened:
        files = [opened.enter_context(job.work.writer(name)) for name in names]
        for batch in batches:
            for file, column in zip(files, batch, strict=True):
                file.write(column.data)
            count += len(batch[0])
            if most is not None and count > most:
                raise ResultTooLargeError(
                    f"more than {most:,} pairs of documents are candidates, which do not fit into ",
                    Said("memory_limit"),
                    ". Raise it, choose a higher threshold or a smaller radius, or de-duplicate "
                    "parts one after the other, each against those before",
                )


def row_distances(
    settings: DedupSettings, signatures: NDArray[np.uint8], left: Ints, right: Ints, threads: int
) -> NDArray[np.int32]:
    """Return in how many values (MinHash) or bits signatures differ."""
    found = np.empty(len(left), np.int32)
    if settings.by_bands:
        _native.equal_values_at(signatures, VALUE_BYTES, left, right, threads, found)
        np.subtract(settings.permutations, found, out=found)
    else:
        for begin in range(0, len(left), _AT_A_TIME):
            part = slice(begin, begin + _AT_A_TIME)
            found[part] = hamming(signatures[left[part]], signatures[right[part]])
    release(signatures)
    return found


def promising(distances: NDArray[np.int32], settings: DedupSettings) -> Flags:
    """Return which distances of signatures make a pair worth comparing."""
    if not settings.by_signatures:
        return np.ones(len(distances), bool)
    if not settings.by_bands:
        return distances <= (settings.radius or 0)
    error = math.sqrt(settings.threshold * (1 - settings.threshold) / settings.permutations)
    least = settings.permutations * (settings.threshold - _STANDARD_ERRORS * error)
    return settings.permutations - distances >= least


def _by_bands(job: DedupJob, signed: Signed, rank: Ints, found: Candidates) -> Iterator[Batch]:
    """Yield pairs of MinHash signatures that share a band and are not clearly far apart."""
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
        maker=_band_maker(job.device),
    )

    def told(share: float) -> None:
        progress.step("propose", share / 2)
        release(signed.signatures)
        release(keys)

    pairs.fill_keys(told)
    bands_at_a_time = 1 + _KEYS_AT_A_TIME // max(1, count)
    for band in range(layout.bands):
        for left, right in pairs.of_band(band):
            found.proposed += len(left)
            distances = row_distances(settings, signed.signatures, left, right, job.threads)
            near = promising(distances, settings)
            yield left[near], right[near], distances[near]
        if not (band + 1) % bands_at_a_time:
            release(keys)
            progress.step("propose", (1 + (band + 1) / layout.bands) / 2)
    work.remove("keys")
    found.partly_compared = int(pairs.partly_paired.sum())
    found.warnings += band_warnings(
        settings, layout, pairs.large_groups, pairs.rows_in_large_groups
    )


def _band_maker(device: str) -> CoreBands:
    if device == "gpu":
        from lookalike.gpu.bands import GpuBands

        return GpuBands()
    return CoreBands()


def band_warnings(
    settings: DedupSettings, layout: BandLayout, large_groups: int, rows_in_large_groups: int
) -> list[str]:
    """Return the warnings about pairs that were proposed by bands."""
    warnings = []
    chance = float(layout.chance(settings.threshold))
    if chance < _GOOD_CHANCE:
        warnings.append(
            f"with {settings.permutations} permutations, a pair at the threshold is found with a "
            f"probability of only {chance:.0%}; use more permutations"
        )
    if large_groups:
        warnings.append(
            f"{counted(large_groups, 'group')} of more than {LARGEST_GROUP:,} documents "
            f"{'shares' if large_groups == 1 else 'share'} a band "
            f"of their signatures ({rows_in_large_groups:,} documents, some in several "
            f"groups). In these, each document was compared with only some others{_REMEDY}"
        )
    return warnings


def _by_radius(job: DedupJob, signed: Signed, rank: Ints, found: Candidates) -> Iterator[Batch]:
    """Yield pairs within the radius; see `NearbyRows`."""
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
        left, right = np.minimum(better, worse), np.maximum(better, worse)
        new = right >= signed.first_new
        found.proposed += int(new.sum())
        yield left[new], right[new], distances[new]
    found.partly_compared = rows.crowded
    found.warnings += crowd_warnings(radius, rows.crowded)
    if rows.drawn:
        found.warnings.append(drawn_warning(len(signed.positions), radius))


def drawn_warning(signatures: int, radius: int) -> str:
    """Return the warning that pairs were found by random bits."""
    return (
        f"{counted(signatures, 'signature')} are too many to compare all pairs. Each pair within "
        f"{radius} bits was found with a probability of {CHANCE:.0%} or more{_REMEDY}"
    )


def crowd_warnings(radius: int, crowded: int) -> list[str]:
    """Return the warnings about pairs that were proposed by a radius."""
    if not crowded:
        return []
    return [
        f"the signatures of {crowded:,} documents are within {radius} bits of those of "
        f"more than {LARGEST_GROUP:,} others; each of these was compared with only some of "
        f"them{_REMEDY}"
    ]


CHANCE, PATIENCE = 0.99, 10.0
"""The least chance to find a pair if not all can be compared within `PATIENCE` seconds."""

LEADERS, NEAREST = 16, 32
"""Partners of a signature that has too many: the best by rank, and the nearest."""

_ROWS_AT_A_TIME = 256
_MATCHES_AT_A_TIME = 1 << 23


def most_pairs(signatures: int, most: int) -> int:
    """Return the limit of pairs above which those of crowds are left out."""
    return min(DEFAULT_LIMIT, most * signatures)


def may_be_drawn(signatures: int, width: int) -> bool:
    """Return whether this number of signatures of `width` bytes is compared by random bits."""
    return seconds_for_all(signatures, width) > PATIENCE


@dataclass(eq=False)
class NearbyRows:
    """Pairs of signatures that differ in at most `radius` bits, with their distances.

    Equal signatures are paired with the best of them by rank. Some pairs are left out if
    there are more than `most` per signature on average, or more than `limit` in all. Then a
    signature with more than `most` better ones within the radius is paired with the `LEADERS` best
    and the `NEAREST` nearest of these. `crowded` counts such signatures.

    If comparing all pairs would take more than about `PATIENCE` seconds of one thread, only
    signatures that agree in some random bits are compared. Each pair within the radius is then
    found with a chance of at least `CHANCE`, and `drawn` is True.
    """

    signatures: NDArray[np.uint8]
    rank: Ints
    radius: int
    _: KW_ONLY
    most: int
    limit: int | None
    threads: int
    device: str = "cpu"
    crowded: int = field(default=0, init=False)
    drawn: bool = field(default=False, init=False)

    def pairs(self, progress: Callable[[float], None]) -> Iterator[Batch]:
        """Yield pairs of rows, the better first; `progress` is called with the share done."""
        by_rank = np.argsort(self.rank, kind="stable")
        places = np.empty(len(by_rank), np.int64)
        places[by_rank] = np.arange(len(by_rank))
        try:
            found = self._found(places)
        except ResultTooLargeError:
            for left, right, distances in self._some_pairs(by_rank, progress):
                yield by_rank[left], by_rank[right], distances
        else:
            self.drawn = not found.exact
            yield by_rank[found.left], by_rank[found.right], found.distances

    def _found(self, ids: Ints) -> Pairs:
        """Return pairs of these ids: by the GPU, or by the quickest method."""
        limit = min(most_pairs(len(ids), self.most), self.limit or DEFAULT_LIMIT)
        if self.device == "gpu":
            from lookalike.gpu import GpuIndex

            return GpuIndex(self.signatures, ids).pairs(self.radius, limit=limit, collapse=True)
        recall = CHANCE if may_be_drawn(*self.signatures.shape) else None
        return pairs_of_rows(
            self.signatures, ids, self.radius, limit, True, self.threads, recall=recall
        )

    def _some_pairs(self, by_rank: Ints, progress: Callable[[float], None]) -> Iterator[Batch]:
        """Yield pairs of places in the order of ranks, left before right."""
        rows = self.signatures[by_rank]
        release(self.signatures)
        equal, offsets = _native.equal_rows(rows)
        groups = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        best = np.minimum.reduceat(equal, offsets[:-1]) if len(equal) else equal
        others = equal != best[groups]
        yield best[groups][others], equal[others], np.zeros(int(others.sum()), np.int32)
        alone = np.ones(len(rows), bool)
        alone[equal[others]] = False
        kept = np.flatnonzero(alone)
        rows = rows[kept]
        begin, count = 0, _ROWS_AT_A_TIME
        while begin < len(rows):
            end = min(len(rows), begin + count)
            limit = max(_MATCHES_AT_A_TIME, end)  # one row is never too many
            try:
                matches = _native.scan_within(
                    rows[:end], None, True, rows[begin:end], self.radius, limit, self.threads
                )
            except _native.TooManyResults:
                count //= 2
                continue
            left, right, distances = self._chosen(begin, *matches)
            yield kept[left], kept[right], distances
            begin, count = end, min(_ROWS_AT_A_TIME, 2 * count)
            progress(begin / len(rows))

    def _chosen(self, begin: int, offsets: Ints, ids: Ints, distances: NDArray[np.int32]) -> Batch:
        """Return the matches of rows from `begin` on that become pairs: by (distance, id)."""
        rows = begin + np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        better = as_int64(ids) < rows
        left, right, distances = as_int64(ids)[better], rows[better], distances[better]
        counts = np.bincount(right - begin, minlength=len(offsets) - 1)
        wanted, crowded = of_crowds(left, right - begin, counts, counts, self.most)
        self.crowded += crowded
        return left[wanted], right[wanted], distances[wanted]


def of_crowds(left: Ints, right: Ints, known: Ints, counts: Ints, most: int) -> tuple[Flags, int]:
    """Return which matches become pairs, and the number of rows that have too many.

    Row r of `right`, which ascends, has `known[r]` matches here, by (distance, left), and
    `counts[r]` in all. Of more than `most`, the `LEADERS` least `left` and the `NEAREST` nearest
    become pairs.
    """
    crowded = counts > most
    by_distance = np.arange(len(left)) - np.repeat(np.cumsum(known) - known, known)
    by_rank = np.empty(len(left), np.int64)
    by_rank[np.lexsort((left, right))] = by_distance
    wanted = ~crowded[right] | (by_rank < LEADERS) | (by_distance < NEAREST)
    return wanted, int(crowded.sum())


SAMPLE, LARGEST_SAMPLE = 64, 512
"""Minimum and maximum number of features that are drawn of a document."""
ALL_SAMPLES = 1 << 22
"""Features that are drawn of all documents together, where the minimum allows it. Larger samples
propose fewer pairs in vain; the smallest miss no more.
"""
MISSED = 0.001
"""The largest chance of not proposing a pair at the threshold."""
LARGEST_SAMPLED_GROUP, SAMPLED_LEADERS = 1000, 64
"""A feature of more samples than the first number is looked up only for the largest documents that
have it; the second number is how many.
"""

_SAMPLES_AT_A_TIME = 1 << 13
_SLACK = 1e-9
"""More than rounding takes from a sum."""


def sample_size(documents: int) -> int:
    """Return the number of features that are drawn of each document."""
    return max(SAMPLE, min(LARGEST_SAMPLE, ALL_SAMPLES // max(1, documents)))


def least_found(size: int, threshold: float) -> int:
    """Return how many features of a sample must be in the larger document.

    A pair at the threshold has fewer with a chance of at most 0.1%, by the Chernoff-Hoeffding
    bound, which also holds for draws without replacement.
    """
    least = math.floor(size * threshold)
    while least > 1 and _bound(least - 1, size, threshold) > MISSED:
        least -= 1
    return max(1, least)


def _bound(found: int, size: int, threshold: float) -> float:
    """Return an upper bound of the chance of `found` or fewer features at the threshold."""
    if threshold >= 1:
        return 0.0
    share = found / size
    divergence = (1 - share) * math.log((1 - share) / (1 - threshold))
    if found:
        divergence += share * math.log(share / threshold)
    return math.exp(-size * divergence)


Similarity = TypeVar("Similarity", float, Floats)


def least_containment(settings: DedupSettings, similarity: Similarity) -> Similarity:
    """Return the least containment of a pair of this similarity.

    For a Jaccard similarity J it is 2 J / (1 + J): that of two documents of equal size or weight.
    """
    return similarity if settings.contains else 2 * similarity / (1 + similarity)


def sampled_pairs(
    job: DedupJob,
    documents: DocumentTable,
    signed: Signed,
    found: Candidates,
    weights: Weights | None,
) -> Iterator[Batch]:
    """Yield pairs of which the smaller document seems to be contained in the larger one.

    Some features of each document are drawn, by weight if they have weights, and looked up in all
    larger ones (see `native/pairs/samples.hpp`). The share that is found estimates the containment.
    Reads the documents twice. Memory holds about 2 KB per document, or 150 MB.
    """
    count = len(signed.positions)
    size = sample_size(count)
    settings = job.settings
    learned = () if weights is None else weights.native()
    samples = _native.Samples(size, LARGEST_SAMPLED_GROUP, SAMPLED_LEADERS, *learned)
    for number, read in enumerate((samples.observe, samples.look_up)):
        for source, share in feature_sources(job, documents, signed):
            read(source, job.threads)
            documents.texts.release()
            job.progress.step("propose", (number + share) / 3)
    least = least_containment(settings, settings.threshold)
    needed = _needed(size, least, weighted=weights is not None)
    least_share = 0.0 if settings.contains else settings.threshold * (1 - _SLACK)
    for begin in range(0, count, _SAMPLES_AT_A_TIME):
        end = min(count, begin + _SAMPLES_AT_A_TIME)
        some = samples.pairs(begin, end, needed, signed.first_new, job.threads, least_share)
        left, right = np.minimum(*some), np.maximum(*some)
        found.proposed += len(left)
        distances = row_distances(settings, signed.signatures, left, right, job.threads)
        yield left, right, distances
        job.progress.step("propose", (2 + end / count) / 3)
    found.partly_compared = samples.in_large_groups
    if samples.in_large_groups:
        found.warnings.append(
            f"{samples.in_large_groups:,} documents have features in common with more than "
            f"{LARGEST_SAMPLED_GROUP:,} others, and were compared with only the {SAMPLED_LEADERS} "
            "largest of them"
        )


def _needed(size: int, least: float, *, weighted: bool) -> Floats:
    """Return how many features of a sample must be found, by its size.

    A smaller sample than the others is the whole document: its share is the containment itself.
    With weights, its features count `size` in all.
    """
    counts = np.full(size + 1, float(size)) if weighted else np.arange(size + 1.0)
    needed = counts * least * (1 - _SLACK)
    needed[size] = least_found(size, least)
    needed[0] = 1  # a document without features is contained in none
    return needed
