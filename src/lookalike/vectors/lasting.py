"""Vectors in copies, files and pickles."""

from __future__ import annotations

import os
import threading
from copy import copy, deepcopy
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import file_path, flag
from lookalike.errors import FormatError
from lookalike.indexes.named import Named
from lookalike.indexes.tuning import Option, Tuning
from lookalike.shown import brief
from lookalike.signatures import Projection
from lookalike.vectors import saved
from lookalike.vectors.search import Parts
from lookalike.vectors.store import Store

if TYPE_CHECKING:
    from lookalike.storage import Container

__all__ = ["Lasting"]


class Lasting(Named):
    """What an index of vectors is made of, and how it lasts."""

    signer: Projection
    _parts: Parts
    _own_ids: bool
    _next_id: int
    _tunings: tuple[Tuning[Option], ...]
    _writing: threading.Lock
    _container: Container | None = None
    """The file behind the index, if it was loaded from one."""

    def __copy__(self) -> Self:
        """Return another index over the same arrays; what changes one does not change the other."""
        twin = type(self).__new__(type(self))
        with self._writing:
            vars(twin).update(vars(self))
            twin._parts = Parts(copy(self._parts.signatures), self._parts.store.without_room())
        twin._writing = threading.Lock()
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the same with arrays of its own, in memory; the file and the signer are shared."""
        twin = copy(self)
        store = twin._parts.store
        own = Store(
            np.array(store.first),
            np.array(store.added),
            None if store.ids is None else np.array(store.ids),
            None if store.removed is None else np.array(store.removed),
        )
        twin._parts = Parts(deepcopy(twin._parts.signatures, memo), own)
        return twin

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_bytes, (self.to_bytes(),)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index, vectors included, to a file, whole or not at all; `load` opens it."""
        from lookalike.storage import write_container

        write_container(file_path("path", path), *self._contents())

    def to_bytes(self) -> bytes:
        """Return what `save` writes; `from_bytes` is its inverse, and what a pickle holds."""
        from lookalike.storage import container_bytes

        return container_bytes(*self._contents())

    def _contents(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        self._verify_rest()
        with self._writing:
            meta, arrays = saved.contents(
                self._parts, self.signer, self._own_ids, self._next_id, self._tunings
            )
        return meta, {**arrays, **self._name_arrays()}

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, verify: bool = True) -> Self:
        """Open a saved index, its arrays memory-mapped, after all checksums have been compared.

        With `verify=False`, as for `la.load_index`, only header and layout are checked, and opening
        costs the same for any size.
        """
        from lookalike.storage import open_container

        checked = flag("verify", verify)
        return cls._of(open_container(file_path("path", path), verify=checked))

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview) -> Self:
        """Return the index that `to_bytes` wrote, its arrays within the bytes."""
        from lookalike.storage import container_in

        return cls._of(container_in(data))

    @classmethod
    def _of(cls, container: Container) -> Self:
        if container.meta.get("index") != saved.KIND:
            found = brief(container.meta.get("index", "no index"))
            raise FormatError(
                f"{container.path} holds {found}; expected a VectorIndex; la.load_index opens "
                "other indexes"
            )
        container.verify_ahead()
        index = cls.__new__(cls)
        index._container, index._writing = container, threading.Lock()
        (
            index._parts,
            index.signer,
            index._own_ids,
            index._next_id,
            index._tunings,
        ) = saved.restored(container)
        index._restore_names(container)
        return index

    def verify(self) -> None:
        """Read the file behind the index and raise `CorruptIndexError` if it is damaged."""
        if self._container:
            self._container.verify()

    def _verify_rest(self) -> None:
        if self._container:
            self._container.verify_rest()
