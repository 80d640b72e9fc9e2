"""Indexes in memory over the signatures, words and vectors of a collection.

Each is kept in step with its tables. The index knows the version of the collection that it has.
Before each search it takes in what was committed since: what has larger numbers, and what is in the
table of removals. The exclusive or of the hashes of all that it has must then be the one in the
collection's row; otherwise the index is built again. It is saved beside the database, checksummed,
so that opening a collection does not build it. A damaged, foreign or outdated file is not used.
"""

from __future__ import annotations

import copy
import os
import re
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lookalike.collection.answers import Level, Work, joined, joined_bound
from lookalike.collection.stores.address import Address
from lookalike.collection.stores.base import StaleView, Store, View
from lookalike.collection.stores.schema import Numbered, Numbers, Signatures, State, digest
from lookalike.errors import CollectionError, FileError, LookalikeError
from lookalike.indexes.kinds import KINDS
from lookalike.indexes.slices.lists import MOST_CHOSEN_BITS, slice_width
from lookalike.operation import Canceled, acquired, shielded

_SUFFIXES = ("", "-words", "-vectors")  # what distinguishes the files of one collection
_CACHE_NAME = rf"[0-9a-f]{{32}}({'|'.join(_SUFFIXES)})\.lookalike"
"""The pattern of names of saved indexes."""
_DAY = 24 * 3600
_LEAST_COUNT = 1 << 16
_SPARE = 8


class Target(NamedTuple):
    """What an index of some version has."""

    digest: int
    last: int  # the largest number that was given out
    size: int  # signatures, or documents


class CachedIndex(ABC):
    """The index of one collection. All methods may be called from many threads."""

    kind: ClassVar[str]  # the kind of index, by its name in `KINDS`
    suffix: ClassVar[str] = ""  # one of `_SUFFIXES`
    save_after: ClassVar[int] = 1_000
    """Signatures added or removed after which the index is saved at the end."""
    save_between: ClassVar[int] = 1 << 16
    """The same while the index is in use, if that is at least a quarter of it."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._index: Any = None
        self._current: Any = None  # what searches use, made of the index when that has changed
        self._uid = ""
        self._version = 0
        self._last = 0
        self._digest = 0
        self._changes = 0  # signatures added or removed since the file was written

    def at(self, view: View) -> Any:
        """Return an index of exactly the version of the view, which later changes do not affect."""
        state = view.state
        with acquired(self._lock):
            known = self._index is not None and self._uid == state.uid
            if known and self._version > state.version:
                raise StaleView  # another thread has moved the index on
            wanted = self._target(state).digest
            if not known or (self._version, self._digest) != (state.version, wanted):
                self._current = None
                with shielded():  # if it were canceled, the next search would begin again
                    known = known or self._load(state)
                    if known and self._version < state.version:
                        self._catch_up(view)
                    elif not known or self._digest != wanted:
                        # There is none; or the collection went back to an earlier version and on.
                        self._build(view)
                self._current = self._searchable(self._whole)
            return self._current

    @property
    def version(self) -> int:
        """The version of the collection that the index has; 0 if there is no index."""
        return 0 if self._index is None else self._version

    def went_back(self, state: State) -> None:
        """Drop an index of a later version than the collection has now."""
        with self._lock:
            if self._uid == state.uid and self._version > state.version:
                self._index = self._current = None

    def save(self) -> None:
        """Write the index beside the database if much has changed, and if that is possible."""
        if self._is_here():
            with self._lock:
                self._save(self.save_after)

    def forget(self) -> None:
        """Drop the index and its file."""
        if not self._is_here():
            return
        with self._lock:
            path = self._path(self._uid) if self._uid else None
            self._index = self._current = None
            self._uid = ""
        if path:
            with suppress(OSError):
                path.unlink()

    def check_file(self, state: State) -> str | None:
        """Return what is wrong with the file, if there is one."""
        path = self.file(state)
        if path is None:
            return None
        try:
            self._loaded(path)
        except LookalikeError as error:
            return f"the cache cannot be used and will be rebuilt: {error}"
        return None

    def file(self, state: State) -> Path | None:
        """Return the file in which the index is saved, if there is one."""
        path = self._path(state.uid)
        return path if path is not None and os.path.exists(path) else None  # noqa: PTH110  # any

    @property
    def memory_bytes(self) -> int:
        """The size of the index; 0 if there is none."""
        index = self._index
        return 0 if index is None else int(index.memory_bytes)

    def _is_here(self) -> bool:
        """Return False in a fork, where the lock may be held by a thread of the parent."""
        return os.getpid() == self._process

    # Under the lock

    @property
    def _whole(self) -> Any:
        if self._index is None:
            raise CollectionError("the native index no longer exists; open the collection again")
        return self._index

    def _path(self, uid: str) -> Path | None:
        return None if self._folder is None else cache_file(self._folder, uid, self.suffix)

    def _loaded(self, path: Path) -> Any:
        return KINDS[self.kind].cls.load(path)

    def _load(self, state: State) -> bool:
        """Use the saved index, if it is valid and has an earlier version of this collection."""
        path = self.file(state)
        if path is None:
            return False
        try:
            index = self._loaded(path)
            notes = index.notes
            version, last, value = (int(notes[name]) for name in ("version", "last", "digest"))
            fits = notes["uid"] == state.uid and self._fits(index, state)
        except (LookalikeError, KeyError, TypeError, ValueError):
            return False
        if not fits or version > state.version:
            return False
        if last > self._target(state).last or version < state.removals_from:
            return False
        self._index = index
        self._uid, self._version, self._last, self._digest = state.uid, version, last, value
        self._changes = 0
        return True

    def _build(self, view: View) -> None:
        state, target = view.state, self._target(view.state)
        self._index = self._built(view)
        self._digest, self._uid, self._version = target.digest, state.uid, state.version
        self._last, self._changes = target.last, target.size
        self._save(self.save_after)

    def _catch_up(self, view: View) -> None:
        state, target = view.state, self._target(view.state)
        if self._version < state.removals_from:
            self._build(view)
            return
        gone, hashed = self._removed(view)
        known = gone <= self._last  # others were added and removed since
        index, value = self._whole, self._digest ^ digest(hashed[known])
        try:
            if known.any():
                self._remove(index, gone[known])
            changes = int(known.sum())
            for new in self._added(view):
                self._add(index, view, new)
                value ^= new.digest()
                changes += len(new)
        except Canceled:
            self._index = None  # it has some of the changes
            raise
        except LookalikeError:
            value = ~target.digest  # the index and the table disagree: build it again
        if value != target.digest or self._outgrown(index, state):
            self._build(view)
            return
        self._digest, self._version, self._last = value, state.version, target.last
        self._changes += changes
        self._save(max(self.save_between, len(index) // 4))

    def _save(self, after: int) -> None:
        path = self._path(self._uid) if self._uid else None
        if path is None or self._index is None or self._changes < after:
            return
        notes = {"uid": self._uid, "version": self._version, "last": self._last}
        with suppress(FileError, OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.is_symlink():
                path.unlink()  # not ours: do not replace what it leads to
            self._index.save(path, notes={**notes, "digest": self._digest})
            self._changes = 0

    # What depends on the kind of index: by default, it is one of signatures

    def _target(self, state: State) -> Target:
        return Target(state.digest, state.next_signature - 1, state.signatures)

    def _removed(self, view: View) -> tuple[Numbers, NDArray[np.uint64]]:
        """Return number and hash of what was removed since the version of the index."""
        return view.removals_after(self._version)

    def _added(self, view: View) -> Iterator[Any]:
        """Yield what was added since, in batches that have a digest."""
        return view.signatures_after(self._last)

    def _fits(self, index: Any, state: State) -> bool:
        """Return whether a saved index can be one of this collection."""
        return bool(index.bits == state.bits)

    @abstractmethod
    def _searchable(self, index: Any) -> Any:
        """Return what searches use: the index as it is now, which later changes do not affect."""

    @abstractmethod
    def _built(self, view: View) -> Any:
        """Return the index of all signatures; raise if they are not as written."""

    @abstractmethod
    def _add(self, index: Any, view: View, new: Any) -> None: ...

    @abstractmethod
    def _remove(self, index: Any, numbers: Numbers) -> None: ...

    def _outgrown(self, index: Any, state: State) -> bool:
        """Return whether so much was added that the index should be built again."""
        return False


class NativeSearch(CachedIndex):
    """The index of a collection whose documents have one signature each."""

    kind = "slices"

    def _searchable(self, index: Any) -> Any:
        return copy.copy(index)  # changing an index replaces its arrays, so a copy stays as it is

    def _built(self, view: View) -> Any:
        found = view.whole_table()
        width = _width(len(found), view.state.bits)
        return KINDS[self.kind].build(found.signatures, found.numbers, slice_bits=width)

    def _add(self, index: Any, view: View, new: Numbered) -> None:
        index.add(new.signatures, new.numbers)

    def _remove(self, index: Any, numbers: Numbers) -> None:
        index.remove(numbers)

    def _outgrown(self, index: Any, state: State) -> bool:
        return _width(len(index), state.bits) > int(index.slice_bits) + 1


def _width(count: int, bits: int) -> int:
    """Return the width of slices for a number of signatures.

    Narrow signatures are searched by radius, for which two bits more than usual halve the time.
    """
    width = slice_width(max(count, _LEAST_COUNT), bits)
    return min(width + 2, MOST_CHOSEN_BITS, bits) if bits < 256 else width


@dataclass(frozen=True)
class NativeLevels:
    """Searches in an index in memory."""

    index: Any
    threads: int
    explain: bool  # whether `within` returns what it did

    def within(
        self, queries: Signatures, radius: int, masks: Signatures | None, limit: int
    ) -> list[Level]:
        """Return every signature within the radius of each query; raise if there are too many."""
        matches = self.index.within(
            queries, radius, limit=limit, masks=masks, explain=self.explain, threads=self.threads
        )
        bits, offsets, numbers = self.index.bits, matches.offsets.tolist(), matches.ids.tolist()
        distances = joined(matches.distances, matches.unmasked, bits).tolist()
        bound = joined_bound(radius, masks is not None, bits)
        done: list[Work | None] = [None] * len(queries)
        if matches.explanation:
            lists, verified = matches.explanation.lists, matches.explanation.candidates
            pairs = zip(lists.tolist(), verified.tolist(), strict=True)
            done = [Work("native", read, compared) for read, compared in pairs]
        return [
            Level(numbers[begin:end], distances[begin:end], bound, work)
            for begin, end, work in zip(offsets, offsets[1:], done, strict=False)
        ]

    def levels(self, query: Signatures, k: int, mask: Signatures | None) -> Iterator[Level]:
        """Yield more and more signatures, each time everything up to a larger distance."""
        index = self.index
        all_and_more = len(index) + 1  # an answer with fewer shows that there is nothing else
        wanted, bound = k + _SPARE, joined_bound(index.bits, mask is not None, index.bits)
        while True:
            wanted = min(wanted, all_and_more)
            neighbors = index.search(
                query, wanted, masks=mask, exact=True, explain=True, threads=self.threads
            )
            ids, distances = neighbors[0]
            unmasked = None if neighbors.unmasked is None else neighbors.unmasked[0][: len(ids)]
            far = joined(distances, unmasked, index.bits).tolist()
            work = None
            if neighbors.explanation:
                lists, compared = neighbors.explanation.lists, neighbors.explanation.reranked
                work = Work("native", int(lists[0]), int(compared[0]))
            found = Level(ids.tolist(), far, bound, work)
            if len(ids) < wanted:
                yield found
                return
            yield found.without_last()
            wanted *= _SPARE


def cache_file(folder: Path, uid: str, suffix: str = "") -> Path:
    """Return the path of a saved index of a collection."""
    return folder / f"{uid}{suffix}.lookalike"


def forget_cache(address: Address, state: State) -> None:
    """Remove the saved indexes of a dropped collection from the default folder."""
    folder = address.cache_folder()
    if folder is not None:
        for suffix in _SUFFIXES:
            with suppress(OSError):
                cache_file(folder, state.uid, suffix).unlink()


def remove_old_caches(store: Store, folder: Path, *, of_this_database: bool) -> None:
    """Remove unfinished caches, and those of dropped collections, after a day.

    A folder that is not of this database alone may hold caches of other databases.
    """
    unfinished = re.compile(rf"\.{_CACHE_NAME}\.[0-9a-f]{{12}}\.tmp")
    # Files before rows: a collection that has a file now has its row by then.
    try:
        found = [path.name for path in folder.iterdir()]
    except OSError:
        return  # it does not exist, or may not be read
    names = [name for name in found if unfinished.fullmatch(name)]
    saved = [name for name in found if of_this_database and re.fullmatch(_CACHE_NAME, name)]
    with suppress(CollectionError):  # then it is not known which of them are in use
        if saved:
            with store.reading() as view:
                known = {state.uid for state in (*view.states(), *view.states(hidden=True))}
            names += [name for name in saved if name[:32] not in known]
    for name in names:
        remove_if_old(folder / name)


def remove_if_old(path: Path) -> bool:
    """Remove a file that was not written to for a day, and return whether."""
    with suppress(OSError):
        if path.lstat().st_mtime < time.time() - _DAY:
            path.unlink()
            return True
    return False
