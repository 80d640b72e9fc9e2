"""An index in memory over what a table holds, kept in step with it.

The index knows at which version of the collection it stands. Before each search it takes in what
was committed since: signatures with larger numbers, and those in the table of removals. The
exclusive or of the hashes of all its signatures must then be the one in the collection's row; if
not, whatever the reason, the index is built again. It is saved beside the database, checksummed, so
that opening does not mean building. A damaged, foreign or outdated file is not used.
"""

from __future__ import annotations

import copy
import os
import re
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from lookalike.cancellation import Cancelled, acquired, shielded
from lookalike.collection.answers import Level, MaskedDistances, Work
from lookalike.collection.stores.address import Address
from lookalike.collection.stores.base import StaleView, Store, View
from lookalike.collection.stores.schema import Numbered, State, digest, hashes
from lookalike.errors import CollectionError, FileError, FormatError, LookalikeError
from lookalike.indexes import SliceIndex, load_index
from lookalike.indexes.slices.lists import MOST_SLICE_BITS, slice_width

_CACHE_NAME = r"[0-9a-f]{32}\.lookalike"
"""What names of saved indexes look like."""
_DAY = 24 * 3600
_LEAST_COUNT = 1 << 16
_SPARE = 8


class _Savable(Protocol):
    """What both kinds of indexes can do."""

    @property
    def bits(self) -> int: ...
    @property
    def notes(self) -> dict[str, Any]: ...
    def __len__(self) -> int: ...
    @property
    def memory_bytes(self) -> int: ...
    def save(
        self, path: str | os.PathLike[str], *, notes: Mapping[str, Any] | None = None
    ) -> None: ...


Held = TypeVar("Held", bound=_Savable)
"""An index that changes with the table."""
Asked = TypeVar("Asked")
"""What of it does not."""


class KeptIndex(ABC, Generic[Held, Asked]):
    """The index of one collection. All methods may be called from many threads."""

    save_after: ClassVar[int] = 1_000
    """Signatures that were added or removed, from which on a file is worth its time at the end."""
    save_between: ClassVar[int] = 1 << 16
    """The same while the index is in use, unless that is less than a quarter of it."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._index: Held | None = None
        self._uid = ""
        self._version = 0
        self._last = 0
        self._digest = 0
        self._changes = 0
        """Signatures added or removed since the file was written."""

    def at(self, view: View, state: State) -> Asked:
        """Return an index of exactly the version of the view, which later changes do not touch.

        Bringing it up to date is not cancelled with a search: the next search would begin again.
        """
        with acquired(self._lock):
            known = self._index is not None and self._uid == state.uid
            if known and self._version > state.version:
                raise StaleView  # another thread has moved the index on
            if not known or (self._version, self._digest) != (state.version, state.digest):
                with shielded():
                    self._bring_to(view, state, known or self._load(state))
            return self._asked(self._whole)

    @property
    def version(self) -> int:
        """The version of the collection that the index stands at; 0 if there is none."""
        return 0 if self._index is None else self._version

    def went_back(self, state: State) -> None:
        """Drop an index that is ahead of what is now the last version: that was a future."""
        with self._lock:
            if self._uid == state.uid and self._version > state.version:
                self._index = None

    def save(self) -> None:
        """Write the index beside the database if much has changed since it was last written.

        A file that cannot be written is no error: it only saves time.
        """
        if self._is_here():
            with self._lock:
                self._save(self.save_after)

    def forget(self) -> None:
        """Drop the index and its file."""
        if not self._is_here():
            return
        with self._lock:
            path = self._path(self._uid) if self._uid else None
            self._index, self._uid = None, ""
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
        """How large the index is; 0 if none has been needed so far."""
        index = self._index
        return 0 if index is None else int(index.memory_bytes)

    def _is_here(self) -> bool:
        """Return whether this is no fork, in which the lock may be held by a thread left behind."""
        return os.getpid() == self._process

    # Within, under the lock

    @property
    def _whole(self) -> Held:
        if self._index is None:
            raise CollectionError("the native index is gone; open the collection again")
        return self._index

    def _bring_to(self, view: View, state: State, known: bool) -> None:
        """Bring the index to a version; `known` tells whether it stands at one of this past."""
        if known and self._version < state.version:
            self._catch_up(view, state)
        elif not known or self._digest != state.digest:
            # Not there yet; or put back to an earlier version, and written to as often since.
            self._build(view, state)

    def _path(self, uid: str) -> Path | None:
        return None if self._folder is None else cache_file(self._folder, uid)

    def _load(self, state: State) -> bool:
        """Use the saved index, if it is whole and belongs to this collection's past."""
        path = self.file(state)
        if path is None:
            return False
        try:
            index = self._loaded(path)
            notes = index.notes
            version, last, value = (int(notes[name]) for name in ("version", "last", "digest"))
            fits = notes["uid"] == state.uid and index.bits == state.bits
        except (LookalikeError, KeyError, TypeError, ValueError):
            return False
        if not fits or version > state.version:
            return False
        if last >= state.next_signature or version < state.removals_from:
            return False
        self._index = index
        self._uid, self._version, self._last, self._digest = state.uid, version, last, value
        self._changes = 0
        return True

    def _build(self, view: View, state: State) -> None:
        self._index = self._built(view, state)
        self._digest, self._uid, self._version = state.digest, state.uid, state.version
        self._last = state.next_signature - 1
        self._changes = state.signatures
        self._save(self.save_after)

    def _catch_up(self, view: View, state: State) -> None:
        if self._version < state.removals_from:
            self._build(view, state)
            return
        gone, hashed = view.removals_after(state, self._version)
        known = gone <= self._last  # others came and went since, and were never here
        index, value = self._whole, self._digest ^ digest(hashed[known])
        try:
            if known.any():
                self._remove(index, gone[known])
            changes = int(known.sum())
            for new in view.signatures_after(state, self._last):
                self._add(index, view, state, new)
                value ^= digest(hashes(new.numbers, new.signatures))
                changes += len(new)
        except Cancelled:
            self._index = None  # some of the changes are in it
            raise
        except LookalikeError:
            value = ~state.digest  # the index and the table disagree: build it again
        if value != state.digest or self._outgrown(index, state):
            self._build(view, state)
            return
        self._digest, self._version, self._last = value, state.version, state.next_signature - 1
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
                path.unlink()  # we made none, and what it leads to is not ours to replace
            self._index.save(path, notes={**notes, "digest": self._digest})
            self._changes = 0

    # What the kinds of indexes do each in their way

    @abstractmethod
    def _asked(self, index: Held) -> Asked:
        """Return what is asked, as it is now."""

    @abstractmethod
    def _loaded(self, path: Path) -> Held:
        """Return a saved index, every checksum compared."""

    @abstractmethod
    def _built(self, view: View, state: State) -> Held:
        """Return the index of all signatures; raise if they are not as written."""

    @abstractmethod
    def _add(self, index: Held, view: View, state: State, new: Numbered) -> None:
        """Take in signatures."""

    @abstractmethod
    def _remove(self, index: Held, numbers: NDArray[np.int64]) -> None:
        """Remove signatures."""

    def _outgrown(self, index: Held, state: State) -> bool:
        """Return whether so much was added that the index had better be built again."""
        return False


class NativeSearch(KeptIndex[SliceIndex, SliceIndex]):
    """The index of a collection whose documents have one signature each."""

    def _asked(self, index: SliceIndex) -> SliceIndex:
        # Changing an index replaces its parts, so a copy of the outside stays as it is.
        return copy.copy(index)

    def _loaded(self, path: Path) -> SliceIndex:
        index = load_index(path, verify=True)
        if not isinstance(index, SliceIndex):
            raise FormatError(f"{path} holds {index!r}; expected a SliceIndex")
        return index

    def _built(self, view: View, state: State) -> SliceIndex:
        found = view.whole_table(state)
        return SliceIndex(found.signatures, _width(len(found), state), found.numbers)

    def _add(self, index: SliceIndex, view: View, state: State, new: Numbered) -> None:
        index.add(new.signatures, new.numbers)

    def _remove(self, index: SliceIndex, numbers: NDArray[np.int64]) -> None:
        index.remove(numbers)

    def _outgrown(self, index: SliceIndex, state: State) -> bool:
        return _width(len(index), state) > index.slice_bits + 1


def _width(count: int, state: State) -> int:
    """Return how wide slices should be; a collection that has grown fourfold wants wider ones.

    Narrow signatures are searched by radius, for which two bits more than usual halve the time.
    """
    width = slice_width(max(count, _LEAST_COUNT), state.bits)
    return min(width + 2, MOST_SLICE_BITS, state.bits) if state.bits < 256 else width


def native_within(
    index: SliceIndex,
    queries: NDArray[np.uint8],
    radius: int,
    threads: int | None,
    explain: bool,
    masks: NDArray[np.uint8] | None,
    limit: int,
) -> list[Level]:
    """Return, for each query, every signature within the radius.

    More than `limit` in all raise `ResultTooLargeError`.
    """
    matches = index.within(
        queries, radius, limit=limit, masks=masks, explain=explain, threads=threads
    )
    offsets = matches.offsets.tolist()
    numbers, distances = matches.ids.tolist(), matches.distances.tolist()
    if matches.unmasked is not None:
        both = MaskedDistances(index.bits)
        distances = both.joined(matches.distances, matches.unmasked).tolist()
        radius = both.within(radius)
    done: list[Work | None] = [None] * len(queries)
    if matches.explanation:
        lists, verified = matches.explanation.lists, matches.explanation.candidates
        pairs = zip(lists.tolist(), verified.tolist(), strict=True)
        done = [Work("native", read, compared) for read, compared in pairs]
    return [
        Level(numbers[begin:end], distances[begin:end], radius, work)
        for begin, end, work in zip(offsets, offsets[1:], done, strict=False)
    ]


def native_levels(
    index: SliceIndex,
    query: NDArray[np.uint8],
    k: int,
    threads: int | None,
    mask: NDArray[np.uint8] | None = None,
) -> Iterator[Level]:
    """Yield ever more signatures, each time everything up to a larger distance."""
    all_and_more = len(index) + 1  # with which an answer shows that there is nothing else
    wanted = k + _SPARE
    both = MaskedDistances(index.bits)
    while True:
        wanted = min(wanted, all_and_more)
        neighbors = index.search(
            query, wanted, masks=mask, exact=True, explain=True, threads=threads
        )
        ids, distances = neighbors[0]
        reached, far = index.bits, distances.tolist()
        if neighbors.unmasked is not None:
            far = both.joined(distances, neighbors.unmasked[0][: len(ids)]).tolist()
            reached = both.within(index.bits)
        work = None
        if neighbors.explanation:
            lists, compared = neighbors.explanation.lists, neighbors.explanation.reranked
            work = Work("native", int(lists[0]), int(compared[0]))
        found = Level(ids.tolist(), far, reached, work)
        if len(ids) < wanted:
            yield found
            return
        yield found.without_last()
        wanted *= _SPARE


def cache_file(folder: Path, uid: str) -> Path:
    """Return where the index of a collection is saved."""
    return folder / f"{uid}.lookalike"


def forget_cache(address: Address, state: State) -> None:
    """Remove the saved index of a collection that is gone, from the default folder."""
    folder = address.cache_folder()
    with suppress(OSError):
        if folder is not None:
            cache_file(folder, state.uid).unlink()


def remove_old_caches(store: Store, folder: Path, *, of_this_database: bool) -> None:
    """Remove unfinished caches, and those of collections that are gone, after a day.

    A folder that is not of this database alone may hold caches of other databases.
    """
    unfinished = re.compile(rf"\.{_CACHE_NAME}\.[0-9a-f]{{12}}\.tmp")
    # Files before rows: a collection that has a file now has its row by then.
    try:
        found = [path.name for path in folder.iterdir()]
    except OSError:
        return  # there is none, or it is not ours to look at
    names = [name for name in found if unfinished.fullmatch(name)]
    saved = [name for name in found if of_this_database and re.fullmatch(_CACHE_NAME, name)]
    with suppress(CollectionError):  # then it is not known which of them are in use
        if saved:
            with store.reading() as view:
                known = {state.uid for state in (*view.states(), *view.states(hidden=True))}
            names += [name for name in saved if name.partition(".")[0] not in known]
    for name in names:
        remove_if_old(folder / name)


def remove_if_old(path: Path) -> bool:
    """Remove a file that was not written to for a day, and return whether."""
    with suppress(OSError):
        if path.lstat().st_mtime < time.time() - _DAY:
            path.unlink()
            return True
    return False
