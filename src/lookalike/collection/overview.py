"""Overviews of a collection: its near-duplicate groups, a map of it, and its distances.

Signatures are read at one version. The map and the distances of a large collection come from a
sample, which is the same for the same version.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.checks import thread_count, whole_number
from lookalike.collection.collection import Collection
from lookalike.collection.documents import Row, check_row
from lookalike.collection.stores.base import View
from lookalike.collection.stores.schema import State
from lookalike.indexes import ScanIndex, cluster
from lookalike.indexes.all_pairs import pairs_of_rows

__all__ = ["Distances", "Group", "Map", "Place", "Region", "distances", "groups", "map_of"]

_MOST_PAIRS = 20_000_000
_SAMPLE = 20_000
_RANDOM_PAIRS = 50_000
_ASKED = 1_000


@dataclass(frozen=True)
class Group:
    """A document and the documents within the radius of it."""

    size: int
    """Number of documents in the group."""
    largest_distance: int
    """Largest distance between the first document and another one of the group, in bits."""
    members: list[tuple[str, int]]
    """The first ids of the group in order, each with its distance from the first document."""


@dataclass(frozen=True)
class Region:
    """A cluster of the map."""

    x: float
    y: float
    size: int
    """Signatures of the sample in it."""
    mean_distance: float
    """How far they are from its centre."""
    example: str
    """The id of a document that is nearest to the centre."""


@dataclass(frozen=True)
class Place:
    """A document on the map."""

    id: str
    x: float
    y: float
    region: int


@dataclass(frozen=True)
class Map:
    """Documents in two dimensions, those near each other that have near signatures."""

    regions: list[Region]
    places: list[Place]
    signatures: int
    """How many the collection has; of more than the places, a sample was drawn."""
    version: int


@dataclass(frozen=True)
class Distances:
    """How many pairs are how far apart: element d of a list is for d bits."""

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

    Every document of a group is within the radius of the group's first document. Documents are
    taken in the order of their ids: one that is not in a group yet starts a group, and every
    document within the radius that is not in a group yet joins it. These are the groups of
    `cluster_pairs` and of the service's `dedup` job.
    """
    near = min(whole_number("radius", radius, at_least=0), docs.bits)

    def found(view: View, state: State) -> tuple[list[Group], int]:
        table = view.whole_table(state)
        count = len(table)
        if not count:
            return [], state.version
        pairs = pairs_of_rows(
            table.signatures, np.arange(count), near, _MOST_PAIRS, True, thread_count(threads)
        )
        copies = _copies(view, state, table.numbers)
        # Only these can be in a group of two or more documents.
        rows = np.unique(np.concatenate([pairs.left, pairs.right, np.flatnonzero(copies > 1)]))
        ids = _first_ids(view, state, table.numbers[rows])
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
            far = _apart(table.signatures[some], table.signatures[center][None])
            shown = _members(view, state, table.numbers[some[:members]], far[:, 0], members)
            result.append(Group(int(sizes[center]), int(far.max()), shown))
        return result, state.version

    return docs._read(found)


def map_of(docs: Collection, *, most: int = 2_000, regions: int = 40) -> Map:
    """Return a map: clusters of `la.cluster`, and documents placed by how far they are from each.

    Centres are placed by classical scaling of their distances, documents among them as landmarks
    place what is new (landmark MDS).
    """

    def found(view: View, state: State) -> Map:
        numbers, signatures = _sample(view, state, most)
        if not len(numbers):
            return Map([], [], 0, state.version)
        count = min(regions, max(1, int(np.sqrt(len(numbers)))), len(np.unique(signatures, axis=0)))
        clusters = cluster(signatures, count)
        apart = _apart(clusters.centres, clusters.centres)
        far = _apart(signatures, clusters.centres)
        where, centres = _placed(apart, far)
        ids = _first_ids(view, state, numbers)
        named = [ids[number] for number in numbers.tolist()]
        result = []
        for number in range(len(clusters)):
            inside = clusters.members(number)
            example = named[int(inside[0])] if len(inside) else ""
            mean = float(clusters.mean_distances[number]) if len(inside) else 0.0
            x, y = centres[number]
            result.append(Region(x, y, len(inside), round(mean, 2), example))
        places = [
            Place(id, x, y, region)
            for id, (x, y), region in zip(named, where, clusters.labels.tolist(), strict=True)
        ]
        return Map(result, places, state.signatures, state.version)

    return docs._read(found)


def distances(docs: Collection, *, threads: int | None = None) -> Distances:
    """Return how far random signatures are apart, and how far the nearest other one is."""

    def found(view: View, state: State) -> Distances:
        _, signatures = _sample(view, state, _SAMPLE)
        count, rng = len(signatures), np.random.default_rng(0)
        nothing = [0] * (state.bits + 1)
        if count < 2:
            return Distances(nothing, nothing, _sharing(view, state), state.version)
        left = rng.integers(0, count, _RANDOM_PAIRS)
        right = (left + rng.integers(1, count, _RANDOM_PAIRS)) % count
        both = signatures[left] ^ signatures[right]
        apart = np.bitwise_count(both).sum(axis=1, dtype=np.int64)
        table = view.whole_table(state)
        asked = signatures[rng.permutation(count)[:_ASKED]]
        nearest = ScanIndex(table.signatures).search(asked, 2, threads=threads).distances[:, 1]
        return Distances(
            np.bincount(apart, minlength=state.bits + 1).tolist(),
            np.bincount(nearest, minlength=state.bits + 1).tolist(),
            _sharing(view, state),
            state.version,
        )

    return docs._read(found)


def _sharing(view: View, state: State) -> int:
    """Return the number of documents whose signature another document has, too."""
    copies = _copies(view, state, view.whole_table(state).numbers)
    return int(copies[copies > 1].sum())


def _copies(view: View, state: State, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many documents have each signature."""
    if state.documents == state.signatures:
        return np.ones(len(numbers), np.int64)
    counts = dict.fromkeys(numbers.tolist(), 0)
    for row, signature in view.documents_of(state, numbers, None, False):
        check_row(row, signature, text=False)
        counts[row.signature] += 1
    return np.fromiter(counts.values(), np.int64, len(counts))


def _members(
    view: View, state: State, numbers: NDArray[np.int64], far: NDArray[np.int64], most: int
) -> list[tuple[str, int]]:
    """Return the first documents of a group by id, and their distances.

    `numbers` are signatures by their first ids, `far` their distances from the first one: at most
    `most` of them, and of each at most `most` documents, are enough.
    """
    distances = dict(zip(numbers.tolist(), far.tolist(), strict=False))
    rows = []
    for row, signature in view.documents_of(state, numbers, most, False):
        check_row(row, signature, text=False)
        rows.append((row.id, int(distances[row.signature])))
    return sorted(rows)[:most]


def _sample(view: View, state: State, most: int) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    table = view.whole_table(state)
    if len(table) <= most:
        return table.numbers, table.signatures
    rows = np.sort(np.random.default_rng(0).permutation(len(table))[:most])
    return table.numbers[rows], table.signatures[rows]


def _apart(rows: NDArray[np.uint8], centres: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return how far each row is from each centre."""
    columns = [np.bitwise_count(rows ^ centre).sum(axis=1, dtype=np.int64) for centre in centres]
    return np.stack(columns, axis=1)


def _first_ids(view: View, state: State, numbers: NDArray[np.int64]) -> dict[int, str]:
    ids: dict[int, str] = {}
    row: Row
    for row, signature in view.documents_of(state, numbers, 1, False):
        check_row(row, signature, text=False)
        ids[row.signature] = row.id
    return ids


def _placed(
    apart: NDArray[np.int64], far: NDArray[np.int64]
) -> tuple[list[list[float]], list[list[float]]]:
    """Return where rows are, and where the centres are, from -1 to 1.

    `apart` are distances of centres, `far` those of rows and centres.
    """
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
    centres = -0.5 * (squared - mean) @ onto
    widest = max(float(np.abs(where).max(initial=0.0)), float(np.abs(centres).max()), 1e-9)
    return np.round(where / widest, 4).tolist(), np.round(centres / widest, 4).tolist()
