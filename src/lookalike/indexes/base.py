"""Base classes of indexes: `StoredIndex` is saved and loaded, `Index` is searched by signatures."""

from __future__ import annotations

import json
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy, deepcopy
from functools import cached_property, lru_cache
from inspect import signature
from itertools import accumulate
from typing import Any, ClassVar, Self, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike import _native
from lookalike.checks import (
    as_array,
    file_path,
    flag,
    instances,
    neighbor_count,
    one_of,
    share,
    thread_count,
    whole_number,
)
from lookalike.errors import ArgumentError, CorruptIndexError, FormatError
from lookalike.indexes.all_pairs import pairs_of_rows
from lookalike.indexes.filters import Among, as_masks, no_masks
from lookalike.indexes.results import Matches, Neighbors, Pairs, too_many_matches
from lookalike.indexes.rows import Rows, Signatures, as_ids
from lookalike.indexes.segments import Segment
from lookalike.shown import brief, counted
from lookalike.signatures import Signer, as_queries
from lookalike.signatures.arrays import distinct
from lookalike.signatures.signer import signer_contents, signer_in
from lookalike.storage.container import (
    Container,
    container_bytes,
    container_in,
    open_container,
    write_container,
)
from lookalike.storage.strings import Strings

Masks = Signatures | None
DEFAULT_LIMIT = 100_000_000
"""Maximum number of results of `within` and `pairs` by default: about 2 GB."""

_SHARED = (
    "_container",
    "_writing",
    "signer",
    "_estimator",
)  # attributes that a deep copy does not copy


class StoredIndex(ABC):
    """Base class of all indexes: copying, pickling, saving and loading.

    A subclass defines what is saved (`_meta` and `_arrays`) and how it is loaded (`_restore`).
    """

    kind: ClassVar[str]
    """The name of this kind of index in files."""

    signer: Signer | None = None
    """Signer of the indexed items, or None if unknown. Saved with the index."""

    names: Sequence[str] | None = None
    """Names of documents, `names[id]`, or None. Saved with the index."""

    _container: Container | None = None
    """The file behind the index, if it was loaded from one."""

    _pointers: ClassVar[str] = "it points"
    """What refers to signatures, for the error message of a damaged file."""

    @abstractmethod
    def __len__(self) -> int: ...

    def name(self, id: int) -> str | int:
        """Return the name of a document, or its id if it has no name."""
        if not isinstance(id, int | np.integer):
            raise ArgumentError(f"id is {brief(id)}; expected a whole number")
        if self.names is None or not 0 <= id < len(self.names):
            return id
        return self.names[id]

    # Copying

    def __copy__(self) -> Self:
        """Return a copy that shares the arrays; changes to one do not affect the other."""
        twin = type(self).__new__(type(self))
        vars(twin).update(vars(self))
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return a copy with its own arrays in memory; the file and the signer are shared."""
        twin = copy(self)
        for name, value in vars(twin).items():
            if name not in _SHARED:
                vars(twin)[name] = deepcopy(value, memo)
        return twin

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_bytes, (self.to_bytes(),)

    # Saving

    def save(self, path: str | os.PathLike[str], *, notes: Mapping[str, Any] | None = None) -> None:
        """Write the index to a file atomically. `la.load_index` opens it.

        Args:
            path: File to write; an existing file is replaced.
            notes: Values to store with the index, fit for JSON. They return as `index.notes`.
        """
        target = file_path("path", path)
        write_container(target, *self._saved(None if notes is None else plain_notes(notes)))

    def to_bytes(self) -> bytes:
        """Return the bytes that `save` writes. `from_bytes` is the inverse."""
        return container_bytes(*self._saved(self.notes or None))

    def _saved(
        self, notes: dict[str, Any] | None
    ) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return metadata and arrays of the index with its signer, names and notes."""
        self._verify_rest()
        meta, arrays = self._contents()
        if notes is not None:
            meta = {**meta, "notes": notes}
        if self.signer is not None:
            description, learned = signer_contents(self.signer)
            meta, arrays = {**meta, **description}, {**arrays, **learned}
        names = {} if self.names is None else Strings.of(self.names).arrays("name")
        return meta, {**arrays, **names}

    def _contents(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return metadata and arrays of one state of the index."""
        return self._meta(), self._arrays()

    def _meta(self) -> dict[str, Any]:
        return {"index": self.kind}

    @abstractmethod
    def _arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays to save, by name."""

    # Opening

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, verify: bool = True) -> Self:
        """Open a saved index of this class. `la.load_index` opens any class."""
        return cls._of(open_container(file_path("path", path), verify=flag("verify", verify)))

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview) -> Self:
        """Return the index that `to_bytes` returned the bytes of, without copying its arrays."""
        return cls._of(container_in(data))

    @classmethod
    def _of(cls, container: Container) -> Self:
        """Return the index in a container, if it is of this class."""
        from lookalike.indexes.kinds import index_in  # imports this module

        if hasattr(cls, "kind"):
            cls._expect(container)
            return cls.from_container(container)
        if not isinstance(index := index_in(container), cls):
            raise FormatError(
                f"{container.path}: found a {type(index).__name__}; expected an {cls.__name__}"
            )
        return index

    @classmethod
    def _expect(cls, container: Container) -> None:
        """Raise if a container holds something other than an index of this kind."""
        from lookalike.indexes.kinds import kind_in

        if (found := container.meta.get("index")) == cls.kind:
            return
        what = "no index" if found is None else f"a {kind_in(container).cls.__name__}"
        raise FormatError(
            f"{container.path}: found {what}; expected a {cls.__name__}; la.load_index opens all "
            "kinds of index"
        )

    @classmethod
    def from_container(cls, container: Container) -> Self:
        """Return the index in a container, with its arrays memory-mapped."""
        container.verify_ahead()
        index = cls.__new__(cls)
        index._container = container
        index._restore(container)
        if index.signer is None:
            index.signer = signer_in(container)
        index.names = Strings.restored(container, "name")
        return index

    @abstractmethod
    def _restore(self, container: Container) -> None:
        """Load what `_meta` and `_arrays` saved."""

    @property
    def notes(self) -> dict[str, Any]:
        """Notes that were saved with the index; empty if there are none."""
        notes = self._container.meta.get("notes") if self._container else None
        return dict(notes) if isinstance(notes, dict) else {}

    @property
    def file(self) -> str | None:
        """Path of the file that the index was loaded from, or None."""
        container = self._container
        return str(container.path) if container and container.is_file else None

    def verify(self) -> None:
        """Check the file of the index against its checksums.

        Raises:
            CorruptIndexError: If the file is damaged.
        """
        if self._container:
            self._container.verify()

    def _verify_rest(self) -> None:
        """Verify what `verify=False` skipped, before damage could get into a new file."""
        if self._container:
            self._container.verify_rest()

    def _damaged(self) -> CorruptIndexError:
        name = self._container.path if self._container else "the index"
        return CorruptIndexError(f"{name}: {self._pointers} outside the collection; rebuild it")


class GrowingIndex(StoredIndex):
    """An index that can be added to while it is searched; one thread writes at a time."""

    _own_ids: bool
    _next_id: int
    _writing: threading.Lock

    @property
    def own_ids(self) -> bool:
        """Whether the caller gave ids; otherwise ids are positions."""
        return self._own_ids

    @property
    def next_id(self) -> int:
        """Id of the next item that is added without an id."""
        return self._next_id

    def remove(self, ids: ArrayLike) -> None:
        """Remove items by id. Removed items are only marked; `compact` frees their space.

        Raises:
            ArgumentError: If an id is not in the index. Nothing is removed then.
        """
        wanted = distinct(as_ids(np.atleast_1d(as_array("ids", ids))))
        with self._writing:
            self._remove(wanted)

    def _ids_for(self, given: NDArray[np.int64] | None, count: int) -> NDArray[np.int64]:
        """Return the ids of new items: the given ids, or the next free numbers."""
        if given is not None:
            self._refuse_known(given)
            self._own_ids = True
        elif self._next_id + count > 2**63:
            raise ArgumentError(
                f"the largest id is {self._next_id - 1}; ids must be less than 2**63. Pass ids "
                "for the new items"
            )
        ids = np.arange(self._next_id, self._next_id + count) if given is None else given
        self._next_id = max(self._next_id, int(ids.max(initial=-1)) + 1)
        return ids

    @classmethod
    def _merging(cls, indexes: Iterable[Self]) -> tuple[Self, list[Self], list[int]]:
        """Return an empty index, the indexes to merge, and what to add to the ids of each."""
        parts = instances("indexes", indexes, cls, f"a {cls.__name__}")
        if not parts:
            raise ArgumentError("there are no indexes to merge; expected at least one")
        if len({part.own_ids for part in parts}) > 1:
            raise ArgumentError("some indexes were built with ids and some without")
        merged, next_ids = cls.__new__(cls), [part.next_id for part in parts]
        merged._writing, merged._own_ids = threading.Lock(), parts[0].own_ids
        if merged._own_ids:
            merged._next_id, starts = max(next_ids), [0] * len(parts)
        else:
            *starts, merged._next_id = accumulate(next_ids, initial=0)
        return merged, parts, starts

    @abstractmethod
    def _refuse_known(self, ids: NDArray[np.int64]) -> None:
        """Raise if one of the ids is in use."""

    @abstractmethod
    def _remove(self, ids: NDArray[np.int64]) -> None:
        """Remove these ids, or raise if one is not there."""

    @abstractmethod
    def _without_room(self) -> None:
        """Drop the spare room for new items, which belongs to the original of this copy."""

    def __copy__(self) -> Self:
        with self._writing:
            twin = super().__copy__()
            twin._without_room()
        twin._writing = threading.Lock()
        return twin

    def _contents(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        with self._writing:
            return super()._contents()


class Index(StoredIndex):
    """Base class of indexes of signatures.

    Signatures are used in place: do not change them afterwards. Searches are thread-safe, release
    the GIL, can be interrupted, and return the same results for any number of threads.
    """

    @property
    @abstractmethod
    def bits(self) -> int:
        """Number of bits of a signature."""

    @property
    @abstractmethod
    def own_ids(self) -> bool:
        """Whether the caller gave ids; otherwise ids are positions."""

    @property
    @abstractmethod
    def next_id(self) -> int:
        """One more than the largest id so far."""

    @property
    def takes_masks(self) -> bool:
        """Whether `search` and `within` accept masks, which select the bits to compare."""
        return False

    @property
    def is_remote(self) -> bool:
        """Whether a search waits for another machine and does not use the cores of this one."""
        return False

    def living(self) -> tuple[Signatures, NDArray[np.int64]]:
        """Return all signatures that were not removed, and their ids."""
        self._verify_rest()
        return self._living()

    @abstractmethod
    def _living(self) -> tuple[Signatures, NDArray[np.int64]]: ...

    @abstractmethod
    def search(
        self,
        queries: ArrayLike,
        k: SupportsIndex,
        *,
        among: Among = None,
        threads: SupportsIndex | None = None,
    ) -> Neighbors:
        """Return the k nearest signatures of each query, nearest first, ties by id.

        Args:
            queries: Signatures, `uint8[n, bits // 8]`, or texts if the index has a `signer`. One of
                them is a batch of one.
            k: Number of neighbors.
            among: Ids to search; unknown ids are ignored. Or a mask, `bool[next_id]` (default: all
                ids).
            threads: Number of threads (default: all cores).
        """

    @abstractmethod
    def within(
        self,
        queries: ArrayLike,
        radius: SupportsIndex,
        *,
        limit: SupportsIndex = DEFAULT_LIMIT,
        among: Among = None,
        threads: SupportsIndex | None = None,
    ) -> Matches:
        """Return every signature within Hamming distance `radius` of each query.

        Args:
            queries: Signatures, `uint8[n, bits // 8]`, or a single signature.
            radius: Largest Hamming distance.
            limit: Maximum number of matches of all queries together.
            among: Ids to search, or a mask `bool[next_id]` (default: all ids).
            threads: Number of threads (default: all cores).

        Raises:
            ResultTooLargeError: If there are more matches than `limit`.
        """

    def pairs(
        self,
        radius: SupportsIndex,
        *,
        limit: SupportsIndex = DEFAULT_LIMIT,
        collapse: bool = False,
        threads: SupportsIndex | None = None,
        recall: SupportsFloat | None = None,
    ) -> Pairs:
        """Return every pair of signatures within Hamming distance `radius`, each pair once.

        Args:
            radius: Largest Hamming distance.
            limit: Maximum number of pairs.
            collapse: Pair each signature only with the first signature equal to it, so that n
                copies make n - 1 pairs.
            threads: Number of threads (default: all cores).
            recall: Find each pair with at least this probability (default: all pairs). Faster at a
                large radius; the result is then usually not `exact`.

        Raises:
            ResultTooLargeError: If there are more pairs than `limit`.
        """
        near = min(whole_number("radius", radius, at_least=0), self.bits)
        most = whole_number("limit", limit, at_least=0)
        together, workers = flag("collapse", collapse), thread_count(threads)
        part = None if recall is None else share("recall", recall)
        how = self._pairing(near)
        return pairs_of_rows(*self.living(), near, most, together, workers, recall=part, **how)

    def _pairing(self, radius: int) -> dict[str, Any]:
        """Return the arguments of `pairs_of_rows` that depend on the kind of index."""
        return {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({counted(len(self), 'signature')} of {self.bits} bits)"

    def summary(self) -> str:
        """Return a one-line description of the index."""
        return f"{counted(len(self), 'signature')} of {self.bits} bits"

    @property
    def memory_bytes(self) -> int:
        """Size of the arrays in bytes, in memory or memory-mapped."""
        return sum(array.nbytes for array in self._arrays().values())

    def stats(self) -> dict[str, Any]:
        """Return facts about the index, fit for JSON."""
        return {
            "index": self.kind,
            "signatures": len(self),
            "bits": self.bits,
            "memory_bytes": self.memory_bytes,
            "file": self.file,
        }

    def settings(self, method: str) -> frozenset[str]:
        """Return the names of the parameters of `search` or `within`."""
        return _parameters(type(self), one_of("method", method, ("search", "within")))


class RowsIndex(Index):
    """An index over rows that never change."""

    _rows: Rows

    @property
    def bits(self) -> int:
        """Number of bits of a signature."""
        return self._rows.bits

    @property
    def own_ids(self) -> bool:
        """Whether the caller gave ids; otherwise ids are positions."""
        return self._rows.ids is not None

    @property
    def next_id(self) -> int:
        """One more than the largest id."""
        return self._rows.next_id

    def __len__(self) -> int:
        return len(self._rows)

    @cached_property
    def _segment(self) -> Segment:
        return Segment(self._rows, 1)  # without lists, so that the width does not matter

    def _living(self) -> tuple[Signatures, NDArray[np.int64]]:
        return self._rows.signatures, self._rows.all_ids()

    def _meta(self) -> dict[str, Any]:
        return {**super()._meta(), "ascending_ids": self._rows.ascending}

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return self._rows.arrays()

    def _restore(self, container: Container) -> None:
        self._rows = Rows.restored(container, container.meta.get("ascending_ids") is not False)


class PlainSearch(Index):
    """An index whose `search` is exact and has no further options."""

    def search(
        self,
        queries: ArrayLike,
        k: SupportsIndex,
        *,
        among: Among = None,
        masks: ArrayLike | None = None,
        threads: SupportsIndex | None = None,
    ) -> Neighbors:
        """Return the k nearest signatures of each query, nearest first, ties by id; exact.

        Args:
            queries: Signatures, `uint8[n, bits // 8]`, or texts if the index has a `signer`. One of
                them is a batch of one.
            k: Number of neighbors.
            among: Ids to search, or a mask `bool[next_id]` (default: all ids).
            masks: One mask per query: only bits that are 1 in it are compared. Ties are broken by
                the distance over all bits, then by id. Only if `takes_masks`.
            threads: Number of threads (default: all cores).
        """
        rows = as_queries(queries, self.bits, signer=self.signer)
        wanted = neighbor_count(k, len(rows), len(self))
        own = None if masks is None else self._masks(masks, len(rows))
        return self._nearest(rows, wanted, among, own, thread_count(threads))

    @abstractmethod
    def _nearest(
        self, rows: Signatures, k: int, among: Among, masks: Masks, threads: int
    ) -> Neighbors: ...

    def _masks(self, masks: ArrayLike, queries: int) -> Signatures:
        if not self.takes_masks:
            no_masks(self, masks)
        return as_masks(masks, self.bits, queries)


class ExhaustiveIndex(PlainSearch):
    """An index that compares every signature."""

    def within(
        self,
        queries: ArrayLike,
        radius: SupportsIndex,
        *,
        limit: SupportsIndex = DEFAULT_LIMIT,
        among: Among = None,
        masks: ArrayLike | None = None,
        threads: SupportsIndex | None = None,
    ) -> Matches:
        """Return every signature within Hamming distance `radius` of each query; exact.

        Args:
            queries: Signatures, `uint8[n, bits // 8]`, or a single signature.
            radius: Largest Hamming distance.
            limit: Maximum number of matches of all queries together.
            among: Ids to search, or a mask `bool[next_id]` (default: all ids).
            masks: One mask per query: only bits that are 1 in it are compared.
            threads: Number of threads (default: all cores).

        Raises:
            ResultTooLargeError: If there are more matches than `limit`.
        """
        rows = as_queries(queries, self.bits, signer=self.signer)
        most = whole_number("limit", limit, at_least=0)
        near = min(whole_number("radius", radius, at_least=0), self.bits)
        own = None if masks is None else self._masks(masks, len(rows))
        try:
            return self._within(rows, near, most, among, own, thread_count(threads))
        except _native.TooManyResults:
            raise too_many_matches(most, radius, len(rows)) from None

    @abstractmethod
    def _within(
        self, rows: Signatures, radius: int, limit: int, among: Among, masks: Masks, threads: int
    ) -> Matches:
        """Return the result of `within`, or raise `TooManyResults`."""


@lru_cache
def _parameters(kind: type[Index], method: str) -> frozenset[str]:
    return frozenset(signature(getattr(kind, method)).parameters)


@contextmanager
def described(container: Container, what: str) -> Iterator[None]:
    """Turn errors while the metadata of `what` is read into `CorruptIndexError`."""
    try:
        yield
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise CorruptIndexError(
            f"{container.path}: the metadata of the {what} is invalid: {error!r}"
        ) from error


def plain_notes(notes: Mapping[str, Any]) -> dict[str, Any]:
    """Return notes as JSON stores them, or raise."""
    try:
        plain: dict[str, Any] = json.loads(json.dumps(dict(notes)))
    except (TypeError, ValueError, RecursionError) as error:
        raise ArgumentError(
            f"notes are {brief(notes)}; expected a dictionary fit for JSON ({error})"
        ) from error
    return plain
