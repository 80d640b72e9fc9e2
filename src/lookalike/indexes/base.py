"""What every index is and answers."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from copy import copy, deepcopy
from typing import TYPE_CHECKING, Any, ClassVar, Self, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.checks import file_path, flag, share, thread_count, whole_number
from lookalike.errors import ArgumentError, FormatError
from lookalike.indexes.all_pairs import pairs_of_rows
from lookalike.indexes.among import Among
from lookalike.indexes.named import Named
from lookalike.indexes.results import Matches, Neighbors, Pairs
from lookalike.shown import brief
from lookalike.signatures import Signer
from lookalike.signatures.signer import signer_contents, signer_in

if TYPE_CHECKING:
    from lookalike.storage import Container

__all__ = ["DEFAULT_LIMIT", "Index", "plain_notes"]

DEFAULT_LIMIT = 100_000_000
"""Results that `within` and `pairs` return at most unless told otherwise: some 2 GB."""

_SHARED = ("_container", "_writing", "signer")
"""What a deep copy has of the original: what never changes; a copy's lock is its own already."""


class Index(Named, ABC):
    """A collection of signatures that can be searched.

    The signatures are used where they are and not copied; changing them changes the answers. All
    searches may be called from many threads at once, release the GIL, can be interrupted, and
    give the same answer for any number of threads.
    """

    kind: ClassVar[str]
    """The name of this sort of index in files."""

    _container: Container | None = None
    """The file behind the index, if it was loaded from one."""

    signer: Signer | None = None
    """What made the signatures, where the index was told; saved with it."""

    _each_with_each: ClassVar[bool] = False
    """Whether `pairs` compares each with each, and not by blocks where that is cheaper."""

    @property
    @abstractmethod
    def bits(self) -> int:
        """How many bits each signature has."""

    @abstractmethod
    def __len__(self) -> int: ...

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

        `among`: only these are searched, as if there were no others. Ids, in any order; those that
        are not there are passed over. Or a mask, True or False for each id from 0 to `next_id`.
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
        (`Collection.within` cuts at its limit, and says so in the answer.)
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

        Equal signatures are compared with others only once. With `collapse=True` each of them is
        paired with the first of its equals and no other, which keeps a million copies linear.
        More than `limit` pairs raise `ResultTooLargeError`.

        At a wide radius, time grows with the square of the collection. With a `recall`, each pair
        is found with a chance of at least that, whatever the signatures are, and nearer ones with
        more: only those are compared that agree in some bits, which are drawn. The answer then is
        not `exact`, but it is where finding all is as quick.
        """
        near = min(whole_number("radius", radius, at_least=0), self.bits)
        most = whole_number("limit", limit, at_least=0)
        together, workers = flag("collapse", collapse), thread_count(threads)
        part = None if recall is None else share("recall", recall)
        return pairs_of_rows(
            *self.living(),
            near,
            most,
            together,
            workers,
            each_with_each=self._each_with_each,
            recall=part,
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} signatures of {self.bits} bits)"

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

    @property
    def memory_bytes(self) -> int:
        """How many bytes the arrays take, in memory or mapped from a file."""
        return sum(array.nbytes for array in self._arrays().values())

    def stats(self) -> dict[str, Any]:
        """Return what there is to know about the index, in plain values."""
        file = self._container.path if self._container and self._container.is_file else None
        return {
            "index": self.kind,
            "signatures": len(self),
            "bits": self.bits,
            "memory_bytes": self.memory_bytes,
            "file": None if file is None else str(file),
        }

    def save(self, path: str | os.PathLike[str], *, notes: Mapping[str, Any] | None = None) -> None:
        """Write the index to a file, whole or not at all; `la.load_index` opens it.

        `notes`, plain values, are kept in the file and come back as `index.notes`.
        """
        from lookalike.storage import write_container  # not needed to search

        target = file_path("path", path)
        write_container(target, *self._saved(None if notes is None else plain_notes(notes)))

    def to_bytes(self) -> bytes:
        """Return what `save` writes, `notes` included; `from_bytes` is its inverse.

        That is also what a pickle holds, of a mapped index all that the file has. Where processes
        on one machine are to share a large index, save it, and open the file in each.
        """
        from lookalike.storage import container_bytes

        return container_bytes(*self._saved(self.notes or None))

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview) -> Self:
        """Return the index that `to_bytes` wrote, its arrays within the bytes.

        They are verified as a file is: damaged ones raise `CorruptIndexError`.
        """
        from lookalike.indexes.files import index_in  # which knows all kinds
        from lookalike.storage import container_in

        index = index_in(container_in(data))
        if not isinstance(index, cls):
            raise FormatError(f"the bytes hold a {type(index).__name__}; expected a {cls.__name__}")
        return index

    def _saved(
        self, notes: dict[str, Any] | None
    ) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what a container needs to hold the index with all that belongs to it."""
        self._verify_rest()
        meta, arrays = self._contents()
        if notes is not None:
            meta = {**meta, "notes": notes}
        if self.signer is not None:
            description, learnt = signer_contents(self.signer)
            meta, arrays = {**meta, **description}, {**arrays, **learnt}
        return meta, {**arrays, **self._name_arrays()}

    @property
    def notes(self) -> dict[str, Any]:
        """What `save` was given to keep with the index, if it was loaded from a file."""
        notes = self._container.meta.get("notes") if self._container else None
        return dict(notes) if isinstance(notes, dict) else {}

    def verify(self) -> None:
        """Read the file behind the index and raise `CorruptIndexError` if it is damaged.

        An index that was not loaded from a file has nothing to verify.
        """
        if self._container:
            self._container.verify()

    def _verify_rest(self) -> None:
        """Verify what has not been verified so far, of a file opened with `verify=False`.

        Searches do without it. To be called before signatures leave the index in any other way, so
        that damage is not written to a new file with checksums that fit.
        """
        if self._container:
            self._container.verify_rest()

    @classmethod
    def from_container(cls, container: Container) -> Self:
        """Return the index that a container holds, its arrays mapped."""
        index = cls.__new__(cls)
        index._container = container
        index._restore(container)
        index.signer = signer_in(container)
        index._restore_names(container)
        return index

    def _contents(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return description and arrays that belong together."""
        return self._meta(), self._arrays()

    def _meta(self) -> dict[str, Any]:
        return {"index": self.kind}

    @abstractmethod
    def _arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that make up the index, by the names they are saved under."""

    @abstractmethod
    def _restore(self, container: Container) -> None:
        """Take over what `_meta` and `_arrays` saved."""


def plain_notes(notes: Mapping[str, Any]) -> dict[str, Any]:
    """Return notes that a file can keep, or say why it cannot."""
    try:
        plain: dict[str, Any] = json.loads(json.dumps(dict(notes)))
    except (TypeError, ValueError, RecursionError) as error:
        raise ArgumentError(
            f"notes are {brief(notes)}; expected a dictionary of plain values ({error})"
        ) from error
    return plain
