"""Overviews of a collection: its near-duplicate groups, a map of it, and its distances.

Signatures are read at one version. The map and the distances of a large collection use a sample,
which is the same for the same version.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from lookalike import _native
from lookalike.checks import thread_count, whole_number
from lookalike.collection.answers import estimates
from lookalike.collection.collection import Collection
from lookalike.collection.documents import check_row
from lookalike.collection.stores.base import View
from lookalike.collection.stores.schema import Numbered, Numbers, Signatures
from lookalike.errors import LookalikeError
from lookalike.indexes import ScanIndex, cluster
from lookalike.indexes.all_pairs import pairs_of_rows
from lookalike.signatures.arrays import distinct
from lookalike.signatures.estimates import ones_of_pairs

_MOST_PAIRS = 20_000_000
_SAMPLE = 20_000
_RANDOM_PAIRS = 50_000
_ASKED = 1_000

T = TypeVar("T")


@dataclass(frozen=True)
class Group:
    """A document and the documents within the radius of it."""

    size: int
    """Number of documents in the group."""
    largest_distance: int
    """Largest distance between the first document and another one of the group, in bits."""
    members: list[tuple[str, int]]
    """The first ids of the group in order, each with its distance from the first document."""
    similarities: list[float]
    """Of these with the first document, from 0 to 1, estimated from signatures."""
    least_similarity: float
    """The smallest such similarity of all documents of the group."""


@dataclass(frozen=True)
class Region:
    """A cluster of the map."""

    x: float
    y: float
    size: int
    """Signatures of the sample in it."""
    mean_distance: float
    """Mean distance between these and the center."""
    example: str
    """The id of a document that is nearest to the center."""


@dataclass(frozen=True)
class Place:
    """A document on the map."""

    id: str
    x: float
    y: float
    region: int


@dataclass(frozen=True)
class Map:
    """Documents in two dimensions; those with near signatures are near each other."""

    regions: list[Region]
    places: list[Place]
    signatures: int
    """Signatures of the collection; if it has more than there are places, these are a sample."""
    version: int


@dataclass(frozen=True)
class Distances:
    """The number of pairs at each distance: element d of a list is for d bits."""

    random_pairs: list[int]
    nearest: list[int]
    """Distances between signatures and their nearest other signature."""
    sharing: int
    """Number of documents whose signature at least one other document has, too."""
    version: int


def groups(
    docs: Collection, radius: int, *, most: int = 50, members: int = 10, threads: int | None = None
) -> tuple[list[Group], int]:
    """Return the largest groups of near-duplicates, and the version of the collection.

    Documents are taken in the order of their ids. One without a group starts a group, and every
    document without a group within the radius of it joins. These are the groups of `group_pairs`
    and of the service's `dedup` job.
    """
    near = min(whole_number("radius", radius, at_least=0), docs.bits)
    signer = None
    with suppress(LookalikeError):  # groups need no signer, which may be damaged
        signer = docs.signer

    def found(view: View) -> tuple[list[Group], int]:
        table = view.whole_table()
        count = len(table)
        if not count:
            return [], view.state.version
        pairs = pairs_of_rows(
            table.signatures, np.arange(count), near, _MOST_PAIRS, True, thread_count(threads)
        )
        copies = _copies(view, table.numbers)
        # Only these can be in a group of two or more documents.
        rows = distinct(np.concatenate([pairs.left, pairs.right, np.flatnonzero(copies > 1)]))
        ids = dict(_documents_of(view, table.numbers[rows], 1))
        rows = rows[sorted(range(len(rows)), key=lambda at: ids[int(table.numbers[rows[at]])])]
        others = np.setdiff1d(np.arange(count), rows, assume_unique=True)
        centers = np.empty(count, np.int64)
        _native.stars(np.concatenate([rows, others]), pairs.left, pairs.right, centers)
        sizes = np.bincount(centers, weights=copies, minlength=count).astype(np.int64)
        by_center: dict[int, list[int]] = {}
        for row in rows.tolist():
            if sizes[centers[row]] > 1:
                by_center.setdefault(int(centers[row]), []).append(row)
        largest = sorted(by_center, key=lambda center: -sizes[center])[:most]
        result = []
        for center in largest:
            some = np.array(by_center[center])  # the center first: its id is the smallest
            far = _apart(table.signatures[some], table.signatures[center][None])[:, 0]
            each, ones = np.arange(len(some)), np.zeros(len(some), np.int64)
            if signer is not None:
                ones = ones_of_pairs(signer, table.signatures[some], each, np.zeros_like(each))
            similar = estimates(signer, docs.bits, far, ones)
            told = list(zip(far.tolist(), similar, strict=True))
            shown = _members(view, table.numbers[some[:members]], told, members)
            result.append(
                Group(
                    int(sizes[center]),
                    int(far.max()),
                    [(id, distance) for id, (distance, _) in shown],
                    [similarity for _, (_, similarity) in shown],
                    min(similar),
                )
            )
        return result, view.state.version

    return docs._read(found)


def map_of(docs: Collection, *, most: int = 2_000, regions: int = 40) -> Map:
    """Return a map: clusters of `la.cluster`, and documents placed by their distances from each.

    Centers are placed by classical scaling of their distances, documents by landmark MDS with the
    centers as landmarks.
    """

    def found(view: View) -> Map:
        sample = _sample(view.whole_table(), most)
        signatures = sample.signatures
        if not len(sample):
            return Map([], [], 0, view.state.version)
        count = min(regions, max(1, int(np.sqrt(len(sample)))), len(np.unique(signatures, axis=0)))
        clusters = cluster(signatures, count)
        apart = _apart(clusters.centers, clusters.centers)
        far = _apart(signatures, clusters.centers)
        where, centers = _placed(apart, far)
        ids = dict(_documents_of(view, sample.numbers, 1))
        named = [ids[number] for number in sample.numbers.tolist()]
        result = []
        for number in range(len(clusters)):
            inside = clusters.members(number)
            example = named[int(inside[0])] if len(inside) else ""
            mean = float(clusters.mean_distances[number]) if len(inside) else 0.0
            x, y = centers[number]
            result.append(Region(x, y, len(inside), round(mean, 2), example))
        places = [
            Place(id, x, y, region)
            for id, (x, y), region in zip(named, where, clusters.labels.tolist(), strict=True)
        ]
        return Map(result, places, view.state.signatures, view.state.version)

    return docs._read(found)


def distances(docs: Collection, *, threads: int | None = None) -> Distances:
    """Return the distances of random signatures, and of the nearest other ones."""

    def found(view: View) -> Distances:
        state, table = view.state, view.whole_table()
        copies, signatures = _copies(view, table.numbers), _sample(table, _SAMPLE).signatures
        sharing = int(copies[copies > 1].sum())
        count, rng = len(signatures), np.random.default_rng(0)
        nothing = [0] * (state.bits + 1)
        if count < 2:
            return Distances(nothing, nothing, sharing, state.version)
        left = rng.integers(0, count, _RANDOM_PAIRS)
        right = (left + rng.integers(1, count, _RANDOM_PAIRS)) % count
        both = signatures[left] ^ signatures[right]
        apart = np.bitwise_count(both).sum(axis=1, dtype=np.int64)
        asked = signatures[rng.permutation(count)[:_ASKED]]
        nearest = ScanIndex(table.signatures).search(asked, 2, threads=threads).distances[:, 1]
        return Distances(
            np.bincount(apart, minlength=state.bits + 1).tolist(),
            np.bincount(nearest, minlength=state.bits + 1).tolist(),
            sharing,
            state.version,
        )

    return docs._read(found)


def _documents_of(view: View, numbers: Numbers, each: int | None) -> Iterator[tuple[int, str]]:
    """Yield number of the signature and id of documents, at most `each` of a signature."""
    for row, signature in view.documents_of(numbers.tolist(), each, False):
        check_row(row, signature, text=False)
        yield row.signature, row.id


def _copies(view: View, numbers: Numbers) -> Numbers:
    if view.state.documents == view.state.signatures:
        return np.ones(len(numbers), np.int64)
    counts = dict.fromkeys(numbers.tolist(), 0)
    for number, _ in _documents_of(view, numbers, None):
        counts[number] += 1
    return np.fromiter(counts.values(), np.int64, len(counts))


def _members(view: View, numbers: Numbers, told: Sequence[T], most: int) -> list[tuple[str, T]]:
    """Return the first documents of a group by id, and what is told of their signatures."""
    known = dict(zip(numbers.tolist(), told, strict=False))
    rows = [(id, known[number]) for number, id in _documents_of(view, numbers, most)]
    return sorted(rows, key=lambda row: row[0])[:most]


def _sample(table: Numbered, most: int) -> Numbered:
    if len(table) <= most:
        return table
    rows = np.sort(np.random.default_rng(0).permutation(len(table))[:most])
    return Numbered(table.numbers[rows], table.signatures[rows])


def _apart(rows: Signatures, centers: Signatures) -> Numbers:
    columns = [np.bitwise_count(rows ^ center).sum(axis=1, dtype=np.int64) for center in centers]
    return np.stack(columns, axis=1)


def _placed(apart: Numbers, far: Numbers) -> tuple[list[list[float]], list[list[float]]]:
    """Return positions of rows and centers, from -1 to 1, by their distances from the centers."""
    squared = apart.astype(np.float64) ** 2
    mean = squared.mean(axis=0)
    doubly = -0.5 * (squared - mean - mean[:, None] + squared.mean())
    values, vectors = np.linalg.eigh(doubly)
    order = np.argsort(values)[::-1][:2]
    values, vectors = np.maximum(values[order], 1e-9), vectors[:, order]
    if len(values) < 2:
        values, vectors = np.append(values, 1e-9), np.column_stack([vectors, np.zeros(len(apart))])
    onto = vectors / np.sqrt(values)
    onto[:, values <= 1e-6] = 0.0
    where = -0.5 * (far.astype(np.float64) ** 2 - mean) @ onto
    centers = -0.5 * (squared - mean) @ onto
    widest = max(float(np.abs(where).max(initial=0.0)), float(np.abs(centers).max()), 1e-9)
    return np.round(where / widest, 4).tolist(), np.round(centers / widest, 4).tolist()
