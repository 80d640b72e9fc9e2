"""Near-duplicates of a collection: all pairs within a radius, and deleting duplicates later.

Comparing takes long, and documents are written meanwhile. So documents are read with their version,
and a document is deleted only if it and the document that is kept for it still have the versions
that were compared.

Pairs are arrays here, since there may be millions.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, SupportsFloat, SupportsIndex

import numpy as np

from lookalike.checks import share, thread_count, whole_number
from lookalike.collection.answers import Pair
from lookalike.collection.documents import Document, Seen, as_document, check_row, damaged, seen
from lookalike.collection.query import how_many
from lookalike.collection.reading import row_pages
from lookalike.collection.stores.base import View
from lookalike.collection.stores.schema import Numbers
from lookalike.collection.writing import delete_duplicates
from lookalike.errors import ResultTooLargeError
from lookalike.indexes.all_pairs import pairs_of_rows
from lookalike.signatures.arrays import distinct

if TYPE_CHECKING:
    from lookalike.collection.collection import Collection

_PAGE = 1000


@dataclass(frozen=True, eq=False)
class PairTable:
    """Pairs of documents, each once, by (left, right)."""

    ids: list[str]  # the ids of the documents that are in a pair, sorted
    left: Numbers  # positions in `ids`, each smaller than its `right`
    right: Numbers
    distances: Numbers
    signatures: Numbers
    """With `checksums` and `added`, the version of each document that was compared."""
    checksums: Numbers
    added: Numbers

    def __len__(self) -> int:
        return len(self.left)

    def __iter__(self) -> Iterator[Pair]:
        ids = self.ids
        for begin in range(0, len(self), _PAGE):
            some = slice(begin, begin + _PAGE)
            columns = (column[some].tolist() for column in (self.left, self.right, self.distances))
            for left, right, distance in zip(*columns, strict=True):
                yield Pair(ids[left], ids[right], distance)

    def seen(self, position: int) -> Seen:
        """Return the version of a document that was compared."""
        columns = (self.signatures, self.checksums, self.added)
        return Seen(self.ids[position], *(int(column[position]) for column in columns))

    def distances_between(self, one: Numbers, two: Numbers) -> Numbers:
        """Return the distances of documents that are pairs, given by their positions."""
        count = len(self.ids)
        wanted = np.minimum(one, two) * count + np.maximum(one, two)
        return self.distances[np.searchsorted(self.left * count + self.right, wanted)]


def find_pairs(
    docs: Collection,
    radius: SupportsIndex,
    limit: SupportsIndex,
    threads: int | None = None,
    recall: SupportsFloat | None = None,
) -> PairTable:
    """Return what `Collection.pairs` returns, as arrays."""
    docs._refuse_parts()
    near = min(whole_number("radius", radius, at_least=0), docs.bits)
    most = how_many("limit", limit, at_least=0)
    part = None if recall is None else share("recall", recall)
    return docs._read(lambda view: _document_pairs(view, near, most, thread_count(threads), part))


def _document_pairs(
    view: View, radius: int, limit: int, threads: int, recall: float | None
) -> PairTable:
    state, table = view.state, view.whole_table()
    numbers = table.numbers
    if not len(numbers):
        nothing = np.empty(0, np.int64)
        return PairTable([], nothing, nothing, nothing, nothing, nothing, nothing)
    near = pairs_of_rows(table.signatures, numbers, radius, limit, False, threads, recall=recall)
    touched = distinct(np.concatenate([near.left, near.right]))
    found = _Found(view, touched if state.documents == state.signatures else numbers)
    sizes = found.sizes
    one, two = (np.searchsorted(found.numbers, side) for side in (near.left, near.right))
    copies = np.flatnonzero(sizes > 1)
    total = int((sizes[one] * sizes[two]).sum() + (sizes * (sizes - 1) // 2).sum())
    if total > limit:
        raise ResultTooLargeError(
            f"there are {total} pairs within radius {radius}, more than limit={limit}; "
            "use a smaller radius, or raise the limit"
        )
    pair, left, right = found.combined(one, two)
    _, equal_left, equal_right = found.combined(copies, copies)
    once = equal_left < equal_right
    left = np.concatenate([left, equal_left[once]])
    right = np.concatenate([right, equal_right[once]])
    distances = np.zeros(len(left), np.int64)
    distances[: len(pair)] = near.distances[pair]
    return found.table(left, right, distances)


class _Found:
    """The documents of signatures, in the order of the numbers of these."""

    def __init__(self, view: View, numbers: Numbers) -> None:
        self.numbers = numbers
        ids: list[str] = []
        columns = (array("q"), array("q"), array("q"))
        for row, signature in view.documents_of(numbers.tolist(), None, False):
            check_row(row, signature, text=False)
            ids.append(row.id)
            for column, value in zip(columns, seen(row)[1:], strict=True):
                column.append(value)
        signatures, checksums, added = (np.frombuffer(column, np.int64) for column in columns)
        expected = view.state.documents - view.state.signatures + len(numbers)
        if not np.array_equal(np.unique(signatures), numbers):
            raise damaged("a signature has no document")
        if len(ids) != expected or len(set(ids)) != expected:
            raise damaged(f"there are {len(set(ids))} documents, not {expected}")
        self._order = np.argsort(signatures, kind="stable")
        self._ids, self._columns = ids, (signatures, checksums, added)
        self._begins = np.searchsorted(signatures[self._order], numbers)
        self.sizes = np.diff(self._begins, append=len(ids))
        """The number of documents of each signature."""

    def combined(self, one: Numbers, two: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """Return all pairs of documents of pairs of signatures, after the position of that pair."""
        counts = self.sizes[one] * self.sizes[two]
        pair = np.repeat(np.arange(len(counts)), counts)
        place = np.arange(len(pair)) - np.repeat(np.cumsum(counts) - counts, counts)
        first, second = np.divmod(place, self.sizes[two][pair])
        return pair, self._begins[one][pair] + first, self._begins[two][pair] + second

    def table(self, left: Numbers, right: Numbers, distances: Numbers) -> PairTable:
        """Return pairs of documents, given by the positions that `combined` returns."""
        used = self._order[distinct(np.concatenate([left, right]))]
        by_id = np.array(sorted(used.tolist(), key=self._ids.__getitem__), np.int64)
        ranks = np.empty(len(self._ids), np.int64)
        ranks[by_id] = np.arange(len(by_id))
        one, two = ranks[self._order[left]], ranks[self._order[right]]
        left, right = np.minimum(one, two), np.maximum(one, two)
        order = np.lexsort((right, left))
        ids = [self._ids[position] for position in by_id.tolist()]
        versions = (column[by_id] for column in self._columns)
        return PairTable(ids, left[order], right[order], distances[order], *versions)


def pages_with_versions(docs: Collection) -> Iterator[list[tuple[Document, Seen]]]:
    """Yield all documents by id, with their versions; each page is of one moment."""
    for page in row_pages(docs, _PAGE):
        yield [(as_document(row, signature), seen(row)) for row, signature in page]


def delete_unchanged(docs: Collection, duplicates: Sequence[tuple[Seen, Seen]]) -> int:
    """Do `delete_duplicates` in one transaction; return the number of deleted documents."""
    with docs._writing() as writer:
        return delete_duplicates(writer, duplicates).deleted
