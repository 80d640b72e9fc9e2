"""Items that were added together: their parts by signature, in arrays that never change.

Each distinct signature is stored once, with the parts that have it: a million seconds of silence
are one signature. Signatures are sorted, so that the order of ties does not depend on the order of
additions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Item = str | int
Integers: TypeAlias = NDArray[np.int64]
MOST_PARTS = 2**32 - 2  # parts are numbered in 32 bits


def distinct(rows: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], Integers]:
    """Return different rows, sorted by their bytes, and which of them each row is."""
    width = rows.shape[1]
    if width in (1, 2, 4, 8):
        keys = rows.view(f">u{width}").ravel().astype(f"u{width}")
        values, which = np.unique(keys, return_inverse=True)
        values = values.astype(f">u{width}")
    else:
        keys = np.ascontiguousarray(rows).view(np.dtype((np.void, width))).ravel()
        values, which = np.unique(keys, return_inverse=True)
    words = values.view(np.uint8).reshape(-1, width)
    return np.ascontiguousarray(words), which.astype(np.int64)


def spread(begins: Integers, lengths: Integers) -> Integers:
    """Return ranges of numbers, one after the other."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(begins - ends + lengths, lengths) + np.arange(total)


@dataclass(frozen=True, eq=False)
class Segment:
    """Some items. Arrays may be mapped from a file."""

    ids: Sequence[Item]
    serials: Integers  # ascending numbers, in the order in which items were added
    begins: Integers  # int64[items + 1]: where the parts of each item begin
    offsets: Integers  # positions of parts in their items
    words: NDArray[np.uint8]  # different signatures, sorted
    part_words: NDArray[np.uint32]  # positions in `words`, of each part
    word_begins: Integers  # int64[words + 1]: where the parts of each signature begin
    word_parts: NDArray[np.uint32]  # parts by signature, ascending for each
    removed: NDArray[np.bool_] | None = None  # whether each item was removed; None: no item was

    @classmethod
    def of(
        cls,
        ids: Sequence[Item],
        serials: Integers,
        lengths: Integers,
        offsets: Integers,
        words: NDArray[np.uint8],
        part_words: Integers,
    ) -> Segment:
        """Return items by the signatures of their parts, given as positions in sorted words."""
        counts = np.bincount(part_words, minlength=len(words))
        narrow = part_words.astype(np.uint32)
        return cls(
            ids,
            serials,
            np.concatenate([[0], np.cumsum(lengths)]),
            offsets,
            words,
            narrow,
            np.concatenate([[0], np.cumsum(counts)]),
            np.argsort(narrow, kind="stable").astype(np.uint32),
        )

    @cached_property
    def part_items(self) -> Integers:
        """The item of each part, by its position in the segment."""
        return np.repeat(np.arange(len(self.ids)), np.diff(self.begins))

    @cached_property
    def living_counts(self) -> Integers:
        """The number of parts with each signature, those of removed items not counted."""
        if self.removed is None:
            return np.diff(self.word_begins)
        living = self.part_words[~self.removed[self.part_items]]
        return np.bincount(living, minlength=len(self.words)).astype(np.int64)

    @cached_property
    def living_parts(self) -> int:
        """The number of parts, those of removed items not counted."""
        return len(self.offsets) if self.removed is None else int(self.living_counts.sum())

    @property
    def wasteful(self) -> bool:
        """Whether more than half of the parts or items were removed."""
        if self.removed is None:
            return False
        few = 2 * self.living_parts < len(self.offsets)
        return few or 2 * int(self.removed.sum()) > len(self.ids)

    def parts_of(self, place: int) -> tuple[NDArray[np.uint8], Integers]:
        """Return the signatures and positions of the parts of the item at this position."""
        own = slice(int(self.begins[place]), int(self.begins[place + 1]))
        return self.words[self.part_words[own]], np.array(self.offsets[own], np.int64)

    def without(self, serials: Integers) -> Segment:
        """Return the segment without these items; those of other segments are ignored."""
        gone = np.isin(self.serials, serials)
        if not gone.any():
            return self
        return replace(self, removed=gone if self.removed is None else self.removed | gone)


def merged(segments: Sequence[Segment]) -> Segment:
    """Return all items of several segments in one, in their order, without removed ones."""
    words, which = distinct(np.concatenate([one.words for one in segments]))
    firsts = np.cumsum([0, *(len(one.words) for one in segments)])
    ids: list[Item] = []
    serials, lengths, offsets, part_words = [], [], [], []
    for one, first in zip(segments, firsts.tolist(), strict=False):
        there = np.ones(len(one.ids), bool) if one.removed is None else ~one.removed
        kept = there[one.part_items]
        ids += [id for id, is_there in zip(one.ids, there.tolist(), strict=True) if is_there]
        serials.append(one.serials[there])
        lengths.append(np.diff(one.begins)[there])
        offsets.append(one.offsets[kept])
        part_words.append(which[first + one.part_words[kept].astype(np.int64)])
    numbers = np.concatenate(part_words)
    used = np.bincount(numbers, minlength=len(words)) > 0
    if not used.all():
        words, numbers = words[used], (np.cumsum(used) - 1)[numbers]
    return Segment.of(
        ids,
        np.concatenate(serials),
        np.concatenate(lengths),
        np.concatenate(offsets),
        words,
        numbers,
    )


def tidied(segments: Sequence[Segment]) -> list[Segment]:
    """Merge segments until each has more than twice the parts of the next one, so that there are
    few; wasteful ones are built again.
    """
    result = [merged([one]) if one.wasteful else one for one in segments]
    result = [one for one in result if len(one.ids)]
    while len(result) > 1 and len(result[-2].offsets) <= 2 * len(result[-1].offsets):
        last = result.pop()
        result[-1] = merged([result[-1], last])
    return result
