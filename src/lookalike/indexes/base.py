"""What all indexes share: `StoredIndex` is saved and opened, `Index` is searched by signatures."""

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
from typing import TYPE_CHECKING, Any, ClassVar, Self, SupportsFloat, SupportsIndex

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
from lookalike.indexes.rows import Rows, as_ids
from lookalike.indexes.segments import Segment
from lookalike.shown import brief
from lookalike.signatures import Signer, as_queries
from lookalike.signatures.signer import signer_contents, signer_in

if TYPE_CHECKING:
    from lookalike.storage.container import Container


Signatures = NDArray[np.uint8]
Masks = Signatures | None

DEFAULT_LIMIT = 100_000_000
"""Results that `within` and `pairs` return at most by default: about 2 GB."""

_SHARED = ("_container", "_writing", "signer")  # with a deep copy; it has a lock of its own


class StoredIndex(ABC):
    """An index of any kind: how it is named, copied, pickled, saved and opened.

    A kind says what it consists of (`_meta` and `_arrays`) and takes that over from a container
    (`_restore`). `lookalike.indexes.kinds` lists all kinds.
    """

    kind: ClassVar[str]
    """The name of this kind of index in files."""

    signer: Signer | None = None
    """The signer of the indexed items, if it is known; saved with the index."""

    names: Sequence[str] | None = None
    """The names of documents, `names[id]`, if they are known; saved with the index."""

    _container: Container | None = None
    """The file behind the index, if it was loaded from one."""

    _pointers: ClassVar[str] = "it points"
    """What points to signatures, for the message that it points nowhere."""

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
        """Return another index over the same arrays; what changes one does not change the other."""
        twin = type(self).__new__(type(self))
        vars(twin).update(vars(self))
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the same with arrays of its own, in memory; the file and the signer are shared."""
        twin = copy(self)
        for name, value in vars(twin).items():
            if name not in _SHARED:
                vars(twin)[name] = deepcopy(value, memo)
        return twin

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_bytes, (self.to_bytes(),)

    # Saving

    def save(self, path: str | os.PathLike[str], *, notes: Mapping[str, Any] | None = None) -> None:
        """Write the index to a file, whole or not at all; `la.load_index` opens it.

        `notes`, plain values, are kept in the file and come back as `index.notes`.
        """
        from lookalike.storage.container import write_container  # not needed to search

        target = file_path("path", path)
        write_container(target, *self._saved(None if notes is None else plain_notes(notes)))

    def to_bytes(self) -> bytes:
        """Return what `save` writes, and a pickle holds; `from_bytes` is its inverse.

        For processes on one machine to share a large index, save it, and open the file in each.
        """
        from lookalike.storage.container import container_bytes

        return container_bytes(*self._saved(self.notes or None))

    def _saved(
        self, notes: dict[str, Any] | None
    ) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what a container needs to hold the index with all that belongs to it."""
        from lookalike.storage.strings import Strings

        self._verify_rest()
        meta, arrays = self._contents()
        if notes is not None:
            meta = {**meta, "notes": notes}
        if self.signer is not None:
            description, learnt = signer_contents(self.signer)
            meta, arrays = {**meta, **description}, {**arrays, **learnt}
        names = {} if self.names is None else Strings.of(self.names).arrays("name")
        return meta, {**arrays, **names}

    def _contents(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return description and arrays that belong together."""
        return self._meta(), self._arrays()

    def _meta(self) -> dict[str, Any]:
        return {"index": self.kind}

    @abstractmethod
    def _arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that make up the index, by the names they are saved under."""

    # Opening

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, verify: bool = True) -> Self:
        """Open a saved index of this kind; see `la.load_index`, which opens all kinds."""
        from lookalike.storage.container import open_container

        return cls._of(open_container(file_path("path", path), verify=flag("verify", verify)))

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview) -> Self:
        """Return the index that `to_bytes` wrote, its arrays within the bytes, and verified."""
        from lookalike.storage.container import container_in

        return cls._of(container_in(data))

    @classmethod
    def _of(cls, container: Container) -> Self:
        """Return the index that a container holds, if it is of this kind."""
        from lookalike.indexes.kinds import index_in  # which knows all kinds

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
        """Raise if a container holds something else."""
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
        """Return the index that a container holds, its arrays mapped."""
        from lookalike.storage.strings import Strings

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
        """Take over what `_meta` and `_arrays` saved."""

    @property
    def notes(self) -> dict[str, Any]:
        """What `save` was given to keep with the index, if it was loaded from a file."""
        notes = self._container.meta.get("notes") if self._container else None
        return dict(notes) if isinstance(notes, dict) else {}

    @property
    def file(self) -> str | None:
        """The path of the file behind the index; None if it was not loaded from one."""
        container = self._container
        return str(container.path) if container and container.is_file else None

    def verify(self) -> None:
        """Read the file behind the index and raise `CorruptIndexError` if it is damaged."""
        if self._container:
            self._container.verify()

    def _verify_rest(self) -> None:
        """Verify what has not been verified so far, of a file opened with `verify=False`.

        Called before items leave the index other than as answers: damage must not get into a new
        file with checksums that fit.
        """
        if self._container:
            self._container.verify_rest()

    def _damaged(self) -> CorruptIndexError:
        name = self._container.path if self._container else "the index"
        return CorruptIndexError(f"{name}: {self._pointers} outside of the collection; rebuild it")


class GrowingIndex(StoredIndex):
    """An index that items are added to: it gives them ids, and one thread writes at a time.

    Searches that are running meanwhile see the index as it was when they began.
    """

    _own_ids: bool
    _next_id: int
    _writing: threading.Lock

    @property
    def own_ids(self) -> bool:
        """Whether ids are the caller's, and not positions."""
        return self._own_ids

    @property
    def next_id(self) -> int:
        """The id that the next item without an id gets."""
        return self._next_id

    def remove(self, ids: ArrayLike) -> None:
        """Remove items by id; raises if one is not there, and then removes none.

        They are only marked; `compact` frees their place.
        """
        wanted = np.unique(as_ids(np.atleast_1d(as_array("ids", ids))))
        with self._writing:
            self._remove(wanted)

    def _ids_for(self, given: NDArray[np.int64] | None, count: int) -> NDArray[np.int64]:
        """Return the ids of new items: the given ones, or the next free numbers."""
        if given is not None:
            self._refuse_known(given)
            self._own_ids = True
        elif self._next_id + count > 2**63:
            raise ArgumentError(
                f"the largest id so far is {self._next_id - 1}, and int64 ends at 2**63 - 1; "
                "give new items ids of your own"
            )
        ids = np.arange(self._next_id, self._next_id + count) if given is None else given
        self._next_id = max(self._next_id, int(ids.max(initial=-1)) + 1)
        return ids

    @classmethod
    def _merging(cls, indexes: Iterable[Self]) -> tuple[Self, list[Self], list[int]]:
        """Return an index without items, the parts to make it of, and the first id of each."""
        parts = instances("indexes", indexes, cls, f"a {cls.__name__}")
        if not parts:
            raise ArgumentError("there are no indexes to merge; expected at least one")
        if len({part.own_ids for part in parts}) > 1:
            raise ArgumentError("some indexes have ids of the caller's and some do not")
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
        """Give up the room for new items, which belongs to the original of this copy."""

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
    """A collection of signatures that can be searched.

    The signatures are used in place; changing them changes the answers. All searches may be called
    from many threads at once, release the GIL, can be interrupted, and give the same answer for any
    number of threads.
    """

    @property
    @abstractmethod
    def bits(self) -> int:
        """How many bits each signature has."""

    @property
    @abstractmethod
    def own_ids(self) -> bool:
        """Whether ids are the caller's, and not positions."""

    @property
    @abstractmethod
    def next_id(self) -> int:
        """One more than the largest id there has been."""

    @property
    def takes_masks(self) -> bool:
        """Whether queries may have masks, which say which of their bits count."""
        return False

    def living(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Return all signatures that have not been removed, and their ids."""
        self._verify_rest()
        return self._living()

    @abstractmethod
    def _living(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]: ...

    @abstractmethod
    def search(
        self,
        queries: ArrayLike,
        k: SupportsIndex,
        *,
        among: Among | None = None,
        threads: SupportsIndex | None = None,
    ) -> Neighbors:
        """Return the k nearest signatures of each query, nearest first, ties by id.

        Args:
            among: Search only these ids; unknown ids are ignored. Or a mask, True or False for each
                id from 0 to `next_id`.
        """

    @abstractmethod
    def within(
        self,
        queries: ArrayLike,
        radius: SupportsIndex,
        *,
        limit: SupportsIndex = DEFAULT_LIMIT,
        among: Among | None = None,
        threads: SupportsIndex | None = None,
    ) -> Matches:
        """Return every signature at distance `radius` or less from each query; `among`: of these.

        More than `limit` matches in all raise `ResultTooLargeError`: no answer is cut short.
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
        """Return every pair of the collection at distance `radius` or less, each once; exact.

        Args:
            limit: More pairs than this raise `ResultTooLargeError`.
            collapse: Pair each signature with the first of its equals and no other, which keeps a
                million copies linear.
            recall: Find each pair with at least this chance, whatever the signatures are. At a wide
                radius that is quicker: only signatures that agree in some random bits are compared.
                The answer is then not `exact`, unless finding all is as quick.
        """
        near = min(whole_number("radius", radius, at_least=0), self.bits)
        most = whole_number("limit", limit, at_least=0)
        together, workers = flag("collapse", collapse), thread_count(threads)
        part = None if recall is None else share("recall", recall)
        how = self._pairing(near)
        return pairs_of_rows(*self.living(), near, most, together, workers, recall=part, **how)

    def _pairing(self, radius: int) -> dict[str, Any]:
        """Return how pairs are compared: by blocks where that is cheaper, or otherwise."""
        return {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} signatures of {self.bits} bits)"

    def summary(self) -> str:
        """Return what the index holds, and what was chosen for it, in a few words."""
        return f"{len(self):,} signatures of {self.bits} bits"

    @property
    def memory_bytes(self) -> int:
        """How many bytes the arrays take, in memory or mapped from a file."""
        return sum(array.nbytes for array in self._arrays().values())

    def stats(self) -> dict[str, Any]:
        """Return what there is to know about the index, in plain values."""
        return {
            "index": self.kind,
            "signatures": len(self),
            "bits": self.bits,
            "memory_bytes": self.memory_bytes,
            "file": self.file,
        }

    def settings(self, method: str) -> frozenset[str]:
        """Return the settings that `search` or `within` of this index takes, by name."""
        return _parameters(type(self), one_of("method", method, ("search", "within")))


class RowsIndex(Index):
    """An index over rows that never change."""

    _rows: Rows

    @property
    def bits(self) -> int:
        """How many bits each signature has."""
        return self._rows.bits

    @property
    def own_ids(self) -> bool:
        """Whether ids are the caller's, and not positions."""
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

    def _living(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        return self._rows.signatures, self._rows.all_ids()

    def _meta(self) -> dict[str, Any]:
        return {**super()._meta(), "ascending_ids": self._rows.ascending}

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return self._rows.arrays()

    def _restore(self, container: Container) -> None:
        self._rows = Rows.restored(container, container.meta.get("ascending_ids") is not False)


class PlainSearch(Index):
    """An index whose `search` is exact and has no settings."""

    def search(
        self,
        queries: ArrayLike,
        k: SupportsIndex,
        *,
        among: Among | None = None,
        masks: ArrayLike | None = None,
        threads: SupportsIndex | None = None,
    ) -> Neighbors:
        """Return the k nearest signatures of each query, nearest first, ties by id; exact.

        Args:
            among: Search only these ids, or those whose place in a mask is True.
            masks: One for each query: only bits that are 1 there are compared. `distances` count
                these; ties are broken by the distance over all bits, then by id. Refused by an
                index that does not take them (`takes_masks`).
        """
        rows = as_queries(queries, self.bits)
        wanted = neighbor_count(k, len(rows), len(self))
        own = None if masks is None else self._masks(masks, len(rows))
        return self._nearest(rows, wanted, among, own, thread_count(threads))

    @abstractmethod
    def _nearest(
        self, rows: Signatures, k: int, among: Among | None, masks: Masks, threads: int
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
        among: Among | None = None,
        masks: ArrayLike | None = None,
        threads: SupportsIndex | None = None,
    ) -> Matches:
        """Return every signature at distance `radius` or less from each query; exact.

        `among` and `masks` as for `search`. More than `limit` matches in all raise
        `ResultTooLargeError`, before memory runs out.
        """
        rows = as_queries(queries, self.bits)
        most = whole_number("limit", limit, at_least=0)
        near = min(whole_number("radius", radius, at_least=0), self.bits)
        own = None if masks is None else self._masks(masks, len(rows))
        try:
            return self._within(rows, near, most, among, own, thread_count(threads))
        except _native.TooManyResults:
            raise too_many_matches(most, radius, len(rows)) from None

    @abstractmethod
    def _within(
        self,
        rows: Signatures,
        radius: int,
        limit: int,
        among: Among | None,
        masks: Masks,
        threads: int,
    ) -> Matches:
        """Return what `within` does, or raise `TooManyResults`."""


@lru_cache
def _parameters(kind: type[Index], method: str) -> frozenset[str]:
    return frozenset(signature(getattr(kind, method)).parameters)


@contextmanager
def described(container: Container, what: str) -> Iterator[None]:
    """Raise `CorruptIndexError` for what goes wrong while the description of `what` is read."""
    try:
        yield
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise CorruptIndexError(
            f"{container.path}: the description of the {what} cannot be used: {error!r}"
        ) from error


def plain_notes(notes: Mapping[str, Any]) -> dict[str, Any]:
    """Return notes that a file can keep, or say why it cannot."""
    try:
        plain: dict[str, Any] = json.loads(json.dumps(dict(notes)))
    except (TypeError, ValueError, RecursionError) as error:
        raise ArgumentError(
            f"notes are {brief(notes)}; expected a dictionary of plain values ({error})"
        ) from error
    return plain
