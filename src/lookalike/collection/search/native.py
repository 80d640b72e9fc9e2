"""Searching in memory: a `SliceIndex` over the signatures of the table, kept in step with it.

The index knows at which version of the collection it stands. Before each search it takes in what
was committed since: signatures with larger numbers, and those in the table of removals. The
exclusive or of the hashes of all its signatures must then be the one in the collection's row; if
not, whatever the reason, the index is built again. It is saved beside the database, checksummed, so
that opening does not mean building; a damaged, foreign or outdated file is not used.
"""

from __future__ import annotations

import copy
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lookalike.collection.answers import Work
from lookalike.collection.search.level import Level, MaskedDistances
from lookalike.collection.slicing import digest, hashes
from lookalike.collection.stores.base import StaleView, State, View
from lookalike.errors import CollectionError, FileError, LookalikeError
from lookalike.indexes import SliceIndex, load_index
from lookalike.indexes.slices.width import MOST_SLICE_BITS, slice_width

CACHE_NAME = r"[0-9a-f]{32}\.lookalike"
"""What names of saved indexes look like."""

_LEAST_COUNT = 1 << 16
_SAVE_AFTER = 1_000
_SPARE = 8


class NativeSearch:
    """The index of one collection. All methods may be called from many threads."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._index: SliceIndex | None = None
        self._uid = ""
        self._version = 0
        self._last = 0
        self._digest = 0
        self._changes = 0
        """Signatures added or removed since the file was written."""

    def at(self, view: View, state: State) -> SliceIndex:
        """Return an index of exactly the version of the view, which later changes do not touch."""
        with self._lock:
            if self._index is None or self._uid != state.uid:
                self._open(view, state)
            elif self._version > state.version:
                raise StaleView  # another thread has moved the index on
            elif self._version < state.version:
                self._catch_up(view, state)
            elif self._digest != state.digest:
                # Put back to an earlier version, and written to again as often as since that.
                self._build(view, state)
            # Changing an index replaces its parts, so a copy of the outside stays as it is.
            return copy.copy(self._whole)

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
                self._save(_SAVE_AFTER)

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
            load_index(path, verify=True)
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
        return 0 if index is None else index.memory_bytes

    def _is_here(self) -> bool:
        """Return whether this is no fork, in which the lock may be held by a thread left behind."""
        return os.getpid() == self._process

    # Within, under the lock

    @property
    def _whole(self) -> SliceIndex:
        if self._index is None:
            raise CollectionError("the native index is gone; open the collection again")
        return self._index

    def _path(self, uid: str) -> Path | None:
        return None if self._folder is None else cache_file(self._folder, uid)

    def _open(self, view: View, state: State) -> None:
        if not self._load(state):
            self._build(view, state)
        elif self._version < state.version:
            self._catch_up(view, state)
        elif self._digest != state.digest:
            self._build(view, state)

    def _load(self, state: State) -> bool:
        """Use the saved index, if it is whole and belongs to this collection's past."""
        path = self.file(state)
        if path is None:
            return False
        try:
            index = load_index(path, verify=True)
            notes = index.notes
            version, last, value = (int(notes[name]) for name in ("version", "last", "digest"))
            fits = notes["uid"] == state.uid and isinstance(index, SliceIndex)
        except (LookalikeError, KeyError, TypeError, ValueError):
            return False
        if not fits or index.bits != state.bits or version > state.version:
            return False
        if last >= state.next_signature or version < state.removals_from:
            return False
        self._index = index if isinstance(index, SliceIndex) else None
        self._uid, self._version, self._last, self._digest = state.uid, version, last, value
        self._changes = 0
        return True

    def _build(self, view: View, state: State) -> None:
        found = view.whole_table(state)
        self._index = SliceIndex(found.signatures, _width(len(found), state), found.numbers)
        self._digest, self._uid, self._version = state.digest, state.uid, state.version
        self._last = state.next_signature - 1
        self._changes = len(found)
        self._save(_SAVE_AFTER)

    def _catch_up(self, view: View, state: State) -> None:
        if self._version < state.removals_from:
            self._build(view, state)
            return
        gone, hashed = view.removals_after(state, self._version)
        known = gone <= self._last  # others came and went since, and were never here
        index, value = self._whole, self._digest ^ digest(hashed[known])
        try:
            if known.any():
                index.remove(gone[known])
            changes = int(known.sum())
            for new in view.signatures_after(state, self._last):
                index.add(new.signatures, new.numbers)
                value ^= digest(hashes(new.numbers, new.signatures))
                changes += len(new)
        except LookalikeError:
            value = ~state.digest  # the index and the table disagree: build it again
        if value != state.digest or _width(len(index), state) > index.slice_bits + 1:
            self._build(view, state)
            return
        self._digest, self._version, self._last = value, state.version, state.next_signature - 1
        self._changes += changes
        self._save(max(_LEAST_COUNT, len(index) // 4))

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


def cache_file(folder: Path, uid: str) -> Path:
    """Return where the index of a collection is saved."""
    return folder / f"{uid}.lookalike"


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
    masks: NDArray[np.uint8] | None = None,
) -> list[Level]:
    """Return, for each query, every signature within the radius."""
    matches = index.within(queries, radius, masks=masks, explain=explain, threads=threads)
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
