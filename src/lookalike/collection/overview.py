"""A collection from above: its near-duplicate groups, a map of it, how far documents are apart.

Signatures are read at one version. Where there are many, the map and the distances are those of a
sample, which is the same for the same version.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import thread_count, whole_number
from lookalike.collection.collection import Collection
from lookalike.collection.documents import Row, check_row
from lookalike.collection.stores.base import State, View
from lookalike.indexes import ScanIndex, cluster
from lookalike.indexes.all_pairs import pairs_of_rows

__all__ = ["Distances", "Group", "Map", "Place", "Region", "distances", "groups", "map_of"]

_MOST_PAIRS = 20_000_000
_SAMPLE = 20_000
_RANDOM_PAIRS = 50_000
_ASKED = 1_000


@dataclass(frozen=True)
class Group:
    """Documents that pairs within the radius connect."""

    size: int
    """Documents in it."""
    members: list[tuple[str, int]]
    """Ids of some of them, by id, and how far each is from the first."""


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
    """Of signatures and their nearest other one."""
    version: int


def groups(
    docs: Collection, radius: int, *, most: int = 50, members: int = 10, threads: int | None = None
) -> tuple[list[Group], int]:
    """Return the largest groups of near-duplicates, and the version of the collection.

    Documents of the same signature belong together at every radius.
    """
    near = min(whole_number("radius", radius, at_least=0), docs.bits)

    def found(view: View, state: State) -> tuple[list[Group], int]:
        table = view.whole_table(state)
        if not len(table):
            return [], state.version
        places = np.arange(len(table))
        pairs = pairs_of_rows(
            table.signatures, places, near, _MOST_PAIRS, True, thread_count(threads)
        )
        labels = _connected(len(table), pairs.left, pairs.right)
        copies = _copies(view, state, table.numbers)
        sizes = np.bincount(labels, weights=copies, minlength=len(table)).astype(np.int64)
        largest = np.argsort(-sizes, kind="stable")[:most]
        result = []
        for label in largest.tolist():
            if sizes[label] < 2:
                break
            rows = np.flatnonzero(labels == label)
            result.append(_group(view, state, table.numbers[rows], int(sizes[label]), members))
        return result, state.version

    return docs._versions.read(found)


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

    return docs._versions.read(found)


def distances(docs: Collection, *, threads: int | None = None) -> Distances:
    """Return how far random signatures are apart, and how far the nearest other one is."""

    def found(view: View, state: State) -> Distances:
        _, signatures = _sample(view, state, _SAMPLE)
        count, rng = len(signatures), np.random.default_rng(0)
        nothing = [0] * (state.bits + 1)
        if count < 2:
            return Distances(nothing, nothing, state.version)
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
            state.version,
        )

    return docs._versions.read(found)


def _connected(count: int, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the smallest member of each one's component: the smaller label wins, until none
    changes, and labels of labels are followed meanwhile."""
    labels = np.arange(count)
    while True:
        before = labels.copy()
        np.minimum.at(labels, left, labels[right])
        np.minimum.at(labels, right, labels[left])
        labels = labels[labels]
        if np.array_equal(labels, before):
            return labels


def _copies(view: View, state: State, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many documents have each signature."""
    if state.documents == state.signatures:
        return np.ones(len(numbers), np.int64)
    counts = dict.fromkeys(numbers.tolist(), 0)
    for row, signature in view.documents_of(state, numbers, None, False):
        check_row(row, signature, text=False)
        counts[row.signature] += 1
    return np.fromiter(counts.values(), np.int64, len(counts))


def _group(view: View, state: State, numbers: NDArray[np.int64], size: int, most: int) -> Group:
    # As many of each signature as are shown, so that those that come first by id are among them.
    rows: list[tuple[str, bytes]] = []
    for row, signature in view.documents_of(state, numbers[: 50 * most], most, False):
        rows.append((row.id, check_row(row, signature, text=False)))
    rows.sort()
    first = np.frombuffer(rows[0][1], np.uint8)
    members = [
        (id, int(np.bitwise_count(first ^ np.frombuffer(signature, np.uint8)).sum()))
        for id, signature in rows[:most]
    ]
    return Group(size, members)


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
