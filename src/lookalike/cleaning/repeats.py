"""Find what occurs again: hashes propose, words decide, and ranges of bytes are removed.

Two equal runs of words share a sampled window (an anchor). So only texts with anchors that occur
twice are hashed window by window. Later, these are texts that were changed, and others with anchors
of windows that this has made. Windows go to files by their hashes, and those that occur twice to
other files by their places. Each file fits into memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.cleaning.settings import BOUNDARIES, UNITS, CleanSettings
from lookalike.dedup.pairs import Ints
from lookalike.jobs.context import JobContext
from lookalike.jobs.documents import DocumentTable
from lookalike.jobs.work_folder import digest, growing_files
from lookalike.signatures.arrays import distinct

_TEXTS, _BYTES = 1 << 14, 32 << 20
"""Maximum number of texts that are hashed together, and about their bytes."""
_RANGE_BYTES, _MOST_RANGES = 8 << 20, 1 << 8
"""About the bytes of texts from which text is removed together, and how many such parts there are.
"""
_BUDGET, _LEAST_BUDGET, _SHARE = 256 << 20, 8 << 20, 16
"""Bytes of the entries of a file, and their share of all texts and of a memory limit."""
_ENTRY = 16
_MOST_BITS = 12
MOST_PLACES = 8
"""Of equal windows of a passage with gaps, the first ones, which others are compared with."""
HASH_BITS = 64
"""Bits of the hash of a window; tests lower it to see what equal hashes of other words do."""
_COLUMNS = ("documents", "begins", "ends", "words", "copy_documents", "copy_begins", "copy_ends")


class Removals(NamedTuple):
    """Ranges of bytes that are removed, by document and place, and where their first copies are."""

    documents: Ints
    begins: Ints
    ends: Ints
    words: Ints
    """Removed words of each range."""
    copy_documents: Ints
    copy_begins: Ints
    copy_ends: Ints

    @classmethod
    def joined(cls, parts: list[tuple[Ints, ...]]) -> Removals:
        """Return all ranges, sorted."""
        if not parts:
            return cls(*(np.empty(0, np.int64) for _ in _COLUMNS))
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        order = np.lexsort((columns[1], columns[0]))
        return cls(*(column[order] for column in columns))

    def offsets(self, documents: int) -> Ints:
        """Return where the ranges of each document begin, and where the last ones end."""
        return np.searchsorted(self.documents, np.arange(documents + 1)).astype(np.int64)


class UnitCounts(NamedTuple):
    """Units that were removed: where the first copy begins, documents that had it, and places."""

    documents: Ints
    begins: Ints
    document_counts: Ints
    place_counts: Ints


@dataclass(eq=False)
class RepeatFinder:
    """Finds what to remove from documents."""

    job: JobContext
    settings: CleanSettings
    documents: DocumentTable
    order: Ints
    """The positions of documents, the one whose copies come first, first."""

    def __post_init__(self) -> None:
        self.texts = _native.RepeatTexts(self.documents.texts.documents, self.order)
        self._offsets = self.documents.texts.offsets
        lengths = self.documents.texts.lengths[self.order]
        self._bases = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        limit = self.job.memory_limit
        self._budget = min(_BUDGET, max(_LEAST_BUDGET, int(self._bases[-1]) // _SHARE))
        if limit is not None:
            self._budget = min(self._budget, limit // _SHARE)
        self._anchored = False
        self._key = digest("clean", self.documents.key, self.settings.to_dict(), HASH_BITS)
        self._unit = 0 if self.settings.unit is None else UNITS.index(self.settings.unit)
        self.collisions = 0
        """Windows or units with the hash of others."""

    def find(self) -> tuple[Removals, UnitCounts, int]:
        """Return what is removed, counts of units, and the number of rounds that removed text."""
        if self.settings.unit is not None:
            removals, counts = self._kept("round-0", self._units)
            return removals, counts, int(len(removals.documents) > 0)
        removals = Removals.joined([])
        step, steps, rounds = self._windows, 0, 0
        while True:
            found, counts = self._kept(f"round-{steps}", step)
            steps += 1
            if len(found.documents):
                removals = Removals.joined([removals, found]) if rounds else found
                ranges = merged_ranges(removals)
                self._removed = ranges.offsets(len(self.documents))
                self.texts.set_removed(self._removed, ranges.begins, ranges.ends)
                rounds += 1
                # Later rounds find only what was made by removing text, unless some of it was left.
                partial = self.settings.boundary not in ("word", "auto")
                step = self._windows if partial else self._joined_windows
            elif self.settings.gap and step != self._passages:
                step = self._passages
            else:
                for words in (int(self.settings.words or 0), self.settings.piece):
                    for name in _anchor_files(words):
                        self.job.work.remove(name)
                return removals, counts, rounds

    def _kept(
        self, step: str, make: Callable[[str], tuple[Removals, UnitCounts]]
    ) -> tuple[Removals, UnitCounts]:
        """Return the result of a step, or of an earlier run that has done it."""
        counted = [f"unit-{name}" for name in UnitCounts._fields]
        work, names = self.job.work, [f"{step}.{name}" for name in (*_COLUMNS, *counted)]
        self._key = digest(self._key, step)
        if work.facts(step, self._key) is not None:
            self.job.progress.reuse("find")
        else:
            work.begin(step)
            removals, counts = make(step)
            for name, column in zip(names, (*removals, *counts), strict=True):
                with work.writer(name) as file:
                    file.write(column.tobytes())
            work.complete(step, self._key, {}, names)
        columns = [work.array(name, np.int64) for name in names]
        return Removals(*columns[: len(_COLUMNS)]), UnitCounts(*columns[len(_COLUMNS) :])

    def _batches(self) -> Iterator[tuple[int, int]]:
        """Yield ranges of documents that are hashed together."""
        begin, count = 0, len(self.documents)
        while begin < count:
            fitting = int(np.searchsorted(self._offsets, self._offsets[begin] + _BYTES, "right"))
            end = max(begin + 1, min(begin + _TEXTS, fitting - 1, count))
            yield begin, end
            begin = end

    def _progress(self, done: int, begin: float, end: float) -> None:
        total = max(1, int(self._offsets[-1]))
        share = int(self._offsets[done]) / total
        self.documents.texts.release()  # so that memory holds a few texts at a time
        self.job.progress.step("find", begin + (end - begin) * share)

    def _windows(self, step: str) -> tuple[Removals, UnitCounts]:
        return self._windows_of(step, int(self.settings.words or 0), 0)

    def _passages(self, step: str) -> tuple[Removals, UnitCounts]:
        return self._windows_of(step, self.settings.piece, int(self.settings.words or 0))

    def _windows_of(self, step: str, words: int, least: int) -> tuple[Removals, UnitCounts]:
        """Find windows, or passages of `least` words that are made of them."""
        threads, work = self.job.threads, self.job.work
        anchors, counts = self._anchors(words)
        flags = work.scratch(f"{step}.flags", np.uint8, (len(anchors),))
        bits = self._bits(len(anchors))
        for part in range(1 << bits):
            _native.mark_repeated(anchors, part, bits, flags, threads)
        firsts = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        # A window has one anchor, and about this many windows have the same.
        per_anchor = int(self._offsets[-1]) // 4 // max(1, len(anchors)) + 1
        copies = MOST_PLACES if least else 1
        bits = self._bits(int(np.count_nonzero(flags)) * per_anchor * copies)

        def hashed() -> Iterator[tuple[Any, ...]]:
            for begin, end in self._batches():
                own = np.ascontiguousarray(flags[firsts[begin] : firsts[end]])
                some = np.ascontiguousarray(counts[begin:end])
                yield self.texts.flagged_windows(
                    begin, end, words, own, some, bits, HASH_BITS, threads
                )
                self._progress(end, 0.4, 0.8)

        found = self._decide(step, hashed(), bits, words, least)
        work.remove(f"{step}.flags")
        return found

    def _anchors(self, words: int) -> tuple[NDArray[np.uint64], Ints]:
        """Return the anchors of all texts, as these are now, and how many each has."""
        work = self.job.work
        *names, stamp = _anchor_files(words)
        with growing_files(work, stamp.removesuffix(".json"), self._key, names) as files:
            done = 0 if files.facts is None else int(files.facts["documents"])
            for begin, end in self._batches():
                if end <= done:
                    continue
                begin = max(begin, done)
                hashes, counts = self.texts.anchors(begin, end, words, self.job.threads)
                files.write(names[0], hashes)
                files.write(names[1], counts)
                files.mark({"documents": end})
                self._progress(end, 0.0, 0.4)
        self._anchored = self._anchored or words == self.settings.words
        return self._known_anchors(words)

    def _known_anchors(self, words: int) -> tuple[NDArray[np.uint64], Ints]:
        hashes, counts, _ = _anchor_files(words)
        return self.job.work.array(hashes, np.uint64), self.job.work.array(counts, np.int64)

    def _joined_windows(self, step: str) -> tuple[Removals, UnitCounts]:
        """Find windows with words from both sides of something that was removed."""
        words, threads = int(self.settings.words or 0), self.job.threads
        joining: list[tuple[NDArray[np.uint64], NDArray[np.uint64]]] = []
        for begin, end in self._batches():
            joining.append(self.texts.joining_windows(begin, end, words, HASH_BITS, threads))
            self.documents.texts.release()
        wanted, own = (distinct(np.concatenate(part)) for part in zip(*joining, strict=True))
        # The anchors of texts that were changed since are others; so all of these are looked at.
        flags = (np.diff(self._removed) > 0).astype(np.uint8)
        known = self._known_anchors if self._anchored else self._anchors
        _native.mark_texts(*known(words), own, flags)

        def hashed() -> Iterator[tuple[Any, ...]]:
            for begin, end in self._batches() if len(wanted) else []:
                some = np.ascontiguousarray(flags[begin:end])
                if some.any():
                    yield self.texts.wanted_windows(
                        begin, end, words, wanted, some, 0, HASH_BITS, threads
                    )
                self._progress(end, 0.8, 1.0)

        return self._decide(step, hashed(), 0, words)

    def _units(self, step: str) -> tuple[Removals, UnitCounts]:
        words = int(self.settings.words or 0)
        bits = self._bits(int(self._offsets[-1]) // 16)

        def hashed() -> Iterator[tuple[Any, ...]]:
            for begin, end in self._batches():
                yield self.texts.units(
                    begin, end, self._unit, words, bits, HASH_BITS, self.job.threads
                )
                self._progress(end, 0.0, 0.8)

        return self._decide(step, hashed(), bits, 0)

    def _bits(self, entries: int) -> int:
        """Return the bits that tell files apart, of which each fits into memory."""
        bits = 0
        while entries * _ENTRY > self._budget << bits and bits < _MOST_BITS:
            bits += 1
        return bits

    def _decide(
        self,
        step: str,
        hashed: Iterator[tuple[Any, ...]],
        bits: int,
        words: int,
        least: int = 0,
    ) -> tuple[Removals, UnitCounts]:
        """Return what is removed, of hashes with positions: of windows of `words`, or of units."""
        total = 0
        with ExitStack() as files:
            writers = [
                (
                    files.enter_context(self.job.work.writer(f"{step}.hashes-{part}")),
                    files.enter_context(self.job.work.writer(f"{step}.positions-{part}")),
                )
                for part in range(1 << bits)
            ]
            for hashes, positions, begins in hashed:
                total += len(hashes)
                for (first, second), begin, end in zip(
                    writers, begins[:-1].tolist(), begins[1:].tolist(), strict=True
                ):
                    first.write(hashes[begin:end].data)
                    second.write(positions[begin:end].data)
        found = self._compared(step, bits, total, words, least, compared=False)
        if found is None:  # equal hashes of different words, which is very rare
            found = self._compared(step, bits, total, words, least, compared=True)
        if found is None:
            raise ValueError("words that were compared differ")
        for part in range(1 << bits):
            self.job.work.remove(f"{step}.hashes-{part}")
            self.job.work.remove(f"{step}.positions-{part}")
        return found

    def _compared(
        self, step: str, bits: int, total: int, words: int, least: int, *, compared: bool
    ) -> tuple[Removals, UnitCounts] | None:
        """Return what is removed; None if words differ whose hashes do not."""
        work, settings, threads = self.job.work, self.settings, self.job.threads
        most, gap = int(settings.max_documents or 1), int(settings.gap or 0)
        ranges = self._ranges((MOST_PLACES + 1 if least else 2) * total)
        counts: list[tuple[NDArray[Any], ...]] = []
        with ExitStack() as files:
            writers = [
                files.enter_context(work.writer(f"{step}.copies-{part}"))
                for part in range(len(ranges) + 1)
            ]
            for part in range(1 << bits):
                (places, firsts), units = self.texts.copies(
                    np.array(work.array(f"{step}.hashes-{part}", np.uint64)),
                    np.array(work.array(f"{step}.positions-{part}", np.int64)),
                    *(words, self._unit, most, settings.every, compared),
                    *(least, MOST_PLACES, threads),
                )
                counts.append((*self.texts.text_of(units[0]), *units[1:]))
                pairs = np.stack([places, firsts], axis=1)
                if not len(ranges):
                    writers[0].write(pairs.tobytes())
                    continue
                where = np.searchsorted(ranges, places, "right")
                for number in distinct(where).tolist():
                    writers[number].write(pairs[where == number].tobytes())
        found: list[tuple[Ints, ...]] = []
        collisions = 0
        for part in range(len(ranges) + 1):
            pairs = work.array(f"{step}.copies-{part}", np.int64, 2)
            if not collisions:
                columns, differing = self.texts.removals(
                    np.ascontiguousarray(pairs[:, 0]),
                    np.ascontiguousarray(pairs[:, 1]),
                    *(words, self._unit, least, gap),
                    *(BOUNDARIES.index(settings.boundary or "word"), threads),
                )
                found.append(columns)
                collisions += differing
                self.documents.texts.release()
            work.remove(f"{step}.copies-{part}")
        self.collisions += collisions
        if collisions:
            return None
        joined = [np.concatenate(column) for column in zip(*counts, strict=True)]
        return Removals.joined(found), UnitCounts(*joined)

    def _ranges(self, pairs: int) -> Ints:
        """Return positions of documents between which pairs and texts fit into memory."""
        total = int(self._bases[-1])
        parts = max(1 << self._bits(pairs), min(total // _RANGE_BYTES, _MOST_RANGES))
        cuts = np.arange(1, parts) * (total // parts)
        return distinct(self._bases[np.searchsorted(self._bases, cuts)])


def _anchor_files(words: int) -> tuple[str, str, str]:
    """Return the names of the files of anchors: hashes, counts, and the stamp of both."""
    return f"anchors-{words}.hashes", f"anchors-{words}.counts", f"anchors-{words}.json"


def merged_ranges(removals: Removals) -> Removals:
    """Return ranges of which no two meet in a document; only places and documents are merged."""
    documents, begins, ends = removals.documents, removals.begins, removals.ends
    if not len(documents):
        return removals
    first = np.ones(len(documents), np.bool_)
    first[1:] = (documents[1:] != documents[:-1]) | (begins[1:] > ends[:-1])
    at = np.flatnonzero(first)
    last = np.append(at[1:], len(documents)) - 1
    kept = [column[at] for column in removals]
    words = np.add.reduceat(removals.words, at)
    return Removals(kept[0], kept[1], ends[last], words, *kept[4:])
