"""Media whose files have many signatures, each with its time: what recordings and videos share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.errors import DocumentError
from lookalike.media import (
    Medium,
    Read,
    SimilarPairs,
    Tell,
    memory_for_decoders,
    read_each,
    split_problems,
)
from lookalike.parts.index import PartIndex
from lookalike.parts.signer import SignedParts
from lookalike.parts.votes import PartMatch
from lookalike.storage.file_cache import FileCache, Kept

_TOGETHER = 64  # files that are searched at a time


class HasInfo(Protocol):
    """What was read of a file, with facts about it."""

    @property
    def info(self) -> object:
        """Facts about the file, named in `Medium.facts`."""


Signed = TypeVar("Signed", bound=HasInfo)


class PartMedium(Medium[list[Signed]]):
    """A medium whose files are compared part by part, at a difference of times."""

    least_memory: ClassVar[int]
    """Bytes of a process that decodes files."""

    @abstractmethod
    def read_each(self, files: Sequence[Path], *, threads: int) -> Iterator[Signed | DocumentError]:
        """Yield what was read of each file, or why it could not be read."""

    @abstractmethod
    def describe(self, one: Signed) -> str:
        """Return the caption of a file in a report."""

    @abstractmethod
    def can_be_compared(self, one: Signed) -> bool:
        """Return whether a file has signatures."""

    @abstractmethod
    def best_first(self, files: Sequence[Path], copies: Sequence[Signed]) -> list[int]:
        """Return the positions of copies of one file, the best first."""

    @abstractmethod
    def kept(self) -> Kept[Signed]:
        """Return what is kept of a file, so that it need not be read again while it is the same."""

    def made_by(self) -> Sequence[Any]:
        """Return plain values that say what is read of files, and how."""
        return self.kept().made_by

    def read(
        self,
        files: Sequence[Path],
        *,
        threads: int,
        tell: Tell,
        memory: int | None = None,
        cache: FileCache | None = None,
    ) -> Read[list[Signed]]:
        """Read files in isolated processes, as many as there is memory for."""
        room = memory_for_decoders(memory, len(files), self.least_memory)
        if room is not None:
            threads = min(threads, room // self.least_memory)
        each = read_each(files, partial(self.read_each, threads=threads), cache, self.kept)
        good, found, problems = split_problems(files, each, tell)
        return Read(
            files=good,
            merit=np.zeros(len(good), np.int64),
            facts={name: [getattr(one.info, name) for one in found] for name in self.facts},
            described=[self.describe(one) for one in found],
            content=found,
            problems=problems,
            without_features=np.array([not self.can_be_compared(one) for one in found], bool),
        )

    def merits(self, read: Read[list[Signed]], pairs: SimilarPairs) -> NDArray[np.int64]:
        """Return the merit of each file among those that pairs connect with it."""
        merits = np.zeros(len(read.files), np.int64)
        labels = np.empty(len(read.files), np.int64)
        _native.components(pairs.left, pairs.right, labels)
        order = np.argsort(labels, kind="stable")
        for group in np.split(order, np.flatnonzero(np.diff(labels[order])) + 1):
            if len(group) > 1:
                rows = group.tolist()
                best = self.best_first(
                    [read.files[row] for row in rows], [read.content[row] for row in rows]
                )
                merits[group[best]] = -np.arange(len(group))
        return merits


def votes_of_pairs(
    indexed: Sequence[SignedParts],
    asked: Sequence[SignedParts],
    bits: int,
    *,
    radius: int,
    tolerance: int,
    is_enough: Callable[[int, PartMatch], bool],
    threads: int,
    tell: Tell | None = None,
    old: int = 0,
) -> dict[tuple[int, int], int]:
    """Return pairs of an item that asks and another item that has the same parts at one offset.

    Items are positions in `indexed` and `asked`, which may be other parts of the same items. The
    value of a pair is how much later the parts of the asking one are in the other. `is_enough` is
    called with the asking item and its votes for another one. With `old`, the first `old` items do
    not ask, and only they are found.
    """
    index = PartIndex(bits)
    told = [place for place, one in enumerate(indexed[: old or None]) if len(one.signatures)]
    index.add_many(
        told, [indexed[one].signatures for one in told], [indexed[one].offsets for one in told]
    )
    asking = [place for place, one in enumerate(asked) if len(one.signatures) and place >= old]
    found: dict[tuple[int, int], int] = {}
    for start in range(0, len(asking), _TOGETHER):
        some = asking[start : start + _TOGETHER]
        answers = index.search_many(
            [asked[one].signatures for one in some],
            [asked[one].offsets for one in some],
            radius=radius,
            tolerance=tolerance,
            k=max(1, len(told)),
            threads=threads,
        )
        for one, answer in zip(some, answers, strict=True):
            for match in answer:
                if match.item != one and is_enough(one, match):
                    found[one, int(match.item)] = match.offset
        if tell is not None:
            tell(min(1.0, (start + _TOGETHER) / len(asking)))
    return found


def either_way(found: dict[tuple[int, int], int]) -> dict[tuple[int, int], int]:
    """Return each pair once, the smaller position first, with what the smaller one has found."""
    once: dict[tuple[int, int], int] = {}
    for (one, other), later in sorted(found.items()):
        pair, moved = ((one, other), later) if one < other else ((other, one), -later)
        once.setdefault(pair, moved)
    return once


def thinned(parts: SignedParts, most: int) -> SignedParts:
    """Return at most `most` parts, from all over an item."""
    own = slice(None, None, max(1, -(-len(parts.offsets) // most)))
    return SignedParts(parts.signatures[own], parts.offsets[own])
