"""PartIndex: many signatures an item; the answer is the item, and the place in it, most parts name.

A recording is found by a snippet, a document by a passage, though no signature of the whole is like
that of the piece.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.checks import file_path, flag, thread_count, whole_number
from lookalike.errors import ArgumentError, FormatError, NotFoundError
from lookalike.parts.answers import PartAnswer
from lookalike.parts.given import (
    FARTHEST,
    Item,
    all_positions,
    check_distinct,
    item_id,
    listed,
    rows_of,
)
from lookalike.parts.inner import AUTO, maker_of
from lookalike.parts.near import Indexed, Reach
from lookalike.parts.segment import MOST_PARTS, Segment, distinct, merged, tidied
from lookalike.parts.votes import ballots
from lookalike.shown import brief
from lookalike.signatures import Signer
from lookalike.signatures.signer import signer_contents, signer_in
from lookalike.signatures.simhash import signature_bits

if TYPE_CHECKING:
    from lookalike.storage import Container

__all__ = ["PartIndex"]

MOST_NEAR = 500_000
"""Near parts that the parts of a query may have together, unless told otherwise."""


class PartIndex:
    """Signatures of the parts of items, each with its position in the item.

    A query is a sequence of signatures. Each of its parts votes for every item that has a part near
    it, at the difference of their positions; the answer has the items with the most votes at one
    difference. Each distinct signature is held once, in an index that `index` chooses: "auto"
    (exact), the name of a kind such as "slices" or "blocks", or a class or function that makes one
    of signatures.

    Items come and go; what was added is taken into the index when it is next asked. Searches may
    run in many threads at once, also meanwhile: they see what was there when they began.
    """

    signer: Signer | None = None
    """What made the signatures, where the index was told; saved with it."""

    def __init__(self, bits: SupportsIndex = 32, *, index: Any = AUTO) -> None:
        self.bits = signature_bits(bits)
        self.kind, self._make = maker_of(index)
        self.notes: dict[str, Any] = {}
        self._writing = threading.Lock()
        self._known: dict[Item, tuple[int, int]] = {}  # serial number, and parts
        self._next = 0
        self._parts = 0
        self._waiting: dict[int, tuple[Item, NDArray[np.uint8], NDArray[np.int64]]] = {}
        self._gone: list[int] = []
        self._segments: tuple[Indexed, ...] = ()

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, item: object) -> bool:
        return type(item) in (str, int) and item in self._known

    def items(self) -> list[Item]:
        """Return all items, as added."""
        return list(self._known)

    @property
    def part_count(self) -> int:
        """How many parts all items have together."""
        return self._parts

    def __repr__(self) -> str:
        return f"PartIndex({len(self)} items, {self.part_count} parts of {self.bits} bits)"

    def add(
        self,
        item: Item,
        signatures: ArrayLike,
        offsets: ArrayLike | None = None,
        *,
        replace: bool = False,
    ) -> None:
        """Add an item with the signatures of its parts, `uint8[n, bits // 8]`; n may be 0.

        `offsets` are their positions in the item, whole numbers in any order; 0, 1, 2, ... unless
        told. An item that is there already is refused, unless `replace`: then the old one goes.
        """
        self.add_many([item], [signatures], None if offsets is None else [offsets], replace=replace)

    def add_many(
        self,
        items: Iterable[Item],
        signatures: Iterable[ArrayLike],
        offsets: Iterable[ArrayLike | None] | None = None,
        *,
        replace: bool = False,
    ) -> None:
        """Add many items at once, all or none: signatures, and offsets, of each."""
        anew = flag("replace", replace)
        ids = [item_id(one) for one in listed("items", items)]
        rows = [rows_of(one, self.bits) for one in listed("signatures", signatures)]
        if len(ids) != len(rows):
            raise ArgumentError(f"there are {len(ids)} items and signatures of {len(rows)}")
        places = all_positions("offsets", offsets, [len(one) for one in rows])
        with self._writing:
            check_distinct(ids, "nothing was added")
            old = [one for one in ids if one in self._known]
            if old and not anew:
                raise ArgumentError(
                    f"the item {brief(old[0])} is in the index already; remove it first, or pass "
                    "replace=True; nothing was added"
                )
            if self._parts + sum(map(len, rows)) > MOST_PARTS:
                raise ArgumentError(f"there would be more than {MOST_PARTS:,} parts")
            for one in old:
                self._forget(one)
            for one, own, at in zip(ids, rows, places, strict=True):
                self._waiting[self._next] = one, own.copy(), at
                self._known[one] = self._next, len(own)
                self._parts += len(own)
                self._next += 1

    def remove(self, item: Item) -> None:
        """Remove an item and its parts; it may be added again."""
        self.remove_many([item])

    def remove_many(self, items: Iterable[Item]) -> None:
        """Remove many items at once, all or none."""
        ids = [item_id(one) for one in listed("items", items)]
        with self._writing:
            check_distinct(ids, "nothing was removed")
            for one in ids:
                if one not in self._known:
                    raise NotFoundError(f"the item {brief(one)} is not in the index")
            for one in ids:
                self._forget(one)

    def search(
        self,
        signatures: ArrayLike,
        offsets: ArrayLike | None = None,
        *,
        radius: SupportsIndex | None = None,
        neighbors: SupportsIndex | None = None,
        tolerance: SupportsIndex = 0,
        k: SupportsIndex = 10,
        min_votes: SupportsIndex | None = None,
        most_near: SupportsIndex = MOST_NEAR,
        threads: SupportsIndex | None = None,
    ) -> PartAnswer:
        """Return the k items that most parts of a query name, with the place in them.

        A part votes for items with a part within `radius` bits (a tenth of the bits unless told),
        or that is among the `neighbors` nearest different signatures, where the index of signatures
        only answers `search`. It has one vote for an item, at an offset: differences of positions
        that are within `tolerance` of each other count together. `min_votes` is 2 unless told, or 1
        where the query has one part. Several places of one item give its best one: by votes, then
        by the sum of distances, then the first.

        Work is bounded: parts that everybody has (silence, boilerplate) say little, so parts of the
        query vote in the order of how many parts are near them, few first, as long as these are
        `most_near` at most together. The others are left out, and `left_out` of the answer says
        how many they are.
        """
        return self.search_many(
            [signatures],
            None if offsets is None else [offsets],
            radius=radius,
            neighbors=neighbors,
            tolerance=tolerance,
            k=k,
            min_votes=min_votes,
            most_near=most_near,
            threads=threads,
        )[0]

    def search_many(
        self,
        signatures: Iterable[ArrayLike],
        offsets: Iterable[ArrayLike | None] | None = None,
        *,
        radius: SupportsIndex | None = None,
        neighbors: SupportsIndex | None = None,
        tolerance: SupportsIndex = 0,
        k: SupportsIndex = 10,
        min_votes: SupportsIndex | None = None,
        most_near: SupportsIndex = MOST_NEAR,
        threads: SupportsIndex | None = None,
    ) -> list[PartAnswer]:
        """Return for each of several queries what `search` does."""
        reach = self._reach(radius, neighbors)
        apart = whole_number("tolerance", tolerance, at_least=0, at_most=FARTHEST)
        most = whole_number("k", k, at_least=1)
        least = None if min_votes is None else whole_number("min_votes", min_votes, at_least=1)
        near = whole_number("most_near", most_near, at_least=1, at_most=MOST_PARTS)
        workers = thread_count(threads)
        queries = [rows_of(one, self.bits) for one in listed("signatures", signatures)]
        places = all_positions("offsets", offsets, [len(one) for one in queries])
        found = ballots(self.settled(), queries, places, reach, near, workers)
        return [ballot.answer(apart, most, least) for ballot in found]

    @property
    def memory_bytes(self) -> int:
        """How many bytes arrays take, in memory or mapped from a file; items are not counted."""
        return sum(_bytes_of(one) for one in self.settled())

    def stats(self) -> dict[str, Any]:
        """Return what there is to know about the index, in plain values."""
        segments = self.settled()
        return {
            "index": "parts",
            "items": len(self),
            "parts": self.part_count,
            "bits": self.bits,
            "signatures": sum(len(one.segment.words) for one in segments),
            "segments": len(segments),
            "memory_bytes": sum(_bytes_of(one) for one in segments),
        }

    def compact(self) -> None:
        """Put everything into one piece without what was removed, as `save` does."""
        with self._writing:
            self._settle()
            if len(self._segments) > 1 or any(
                one.segment.removed is not None for one in self._segments
            ):
                self._segments = self._arranged([merged([one.segment for one in self._segments])])

    def save(self, path: str | os.PathLike[str], *, notes: Mapping[str, Any] | None = None) -> None:
        """Write everything to a file, whole or not at all; `PartIndex.load` opens it.

        `notes`, plain values, are kept in the file and come back as `notes`.
        """
        from lookalike.storage import write_container  # not needed to search

        target = file_path("path", path)
        write_container(target, *self._saved(notes))

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, index: Any = None) -> Self:
        """Open a saved index, its arrays mapped, after all checksums have been compared.

        `index` is what makes indexes of signatures that are added from now on, as when it was made
        unless told; a caller's own function is not in the file.
        """
        from lookalike.storage import open_container

        return cls._opened(open_container(file_path("path", path)), index)

    def to_bytes(self) -> bytes:
        """Return what `save` writes; `from_bytes` is its inverse, and what unpickling calls."""
        from lookalike.storage import container_bytes

        return container_bytes(*self._saved(self.notes))

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview) -> Self:
        """Return the index that `to_bytes` wrote; damaged bytes are refused as a file is."""
        from lookalike.storage import container_in

        return cls._opened(container_in(data), None)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_bytes, (self.to_bytes(),)

    def _saved(
        self, notes: Mapping[str, Any] | None
    ) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        from lookalike.parts.saved import contents

        self.compact()
        with self._writing:
            segments = self._segments
        meta, arrays = contents(self.bits, self.kind, segments, notes)
        if self.signer is not None:
            description, learnt = signer_contents(self.signer)
            meta, arrays = {**meta, **description}, {**arrays, **learnt}
        return meta, arrays

    @classmethod
    def _opened(cls, container: Container, index: Any) -> Self:
        from lookalike.parts.saved import restored

        if container.meta.get("index") != "parts":
            raise FormatError(
                f"{container.path} holds {brief(container.meta.get('index', 'no index'))}; "
                "expected a PartIndex; la.load_index opens other indexes"
            )
        bits, kind, notes, segment, own = restored(container)
        parts = cls(bits, index=kind if index is None else index)
        parts.notes = notes
        parts.signer = signer_in(container)
        lengths = np.diff(segment.begins).tolist()
        parts._known = {
            id: (serial, many)
            for serial, (id, many) in enumerate(zip(segment.ids, lengths, strict=True))
        }
        parts._next, parts._parts = len(segment.ids), len(segment.offsets)
        if own is None and len(segment.words):
            own = parts._make(segment.words)
        parts._segments = (Indexed(segment, own, 0, 0),)
        return parts

    def _forget(self, item: Item) -> None:
        serial, many = self._known.pop(item)
        self._parts -= many
        if serial in self._waiting:
            del self._waiting[serial]
        else:
            self._gone.append(serial)

    def settled(self) -> tuple[Indexed, ...]:
        """Return all there is now, in segments that do not change."""
        with self._writing:
            self._settle()
            return self._segments

    def _settle(self) -> None:
        """Take in what was added and removed since; whole or not at all."""
        if not self._waiting and not self._gone:
            return
        gone = np.array(self._gone, np.int64)
        segments = [one.segment.without(gone) for one in self._segments]
        if self._waiting:
            segments.append(self._taken_in())
        self._segments = self._arranged(tidied(segments))
        self._waiting, self._gone = {}, []

    def _taken_in(self) -> Segment:
        items = self._waiting.values()
        words, numbers = distinct(np.concatenate([rows for _, rows, _ in items]))
        return Segment.of(
            [id for id, _, _ in items],
            np.fromiter(self._waiting, np.int64, len(self._waiting)),
            np.array([len(rows) for _, rows, _ in items], np.int64),
            np.concatenate([at for _, _, at in items]),
            words,
            numbers,
        )

    def _arranged(self, segments: Sequence[Segment]) -> tuple[Indexed, ...]:
        """Return segments one after the other, each with the index of its signatures."""
        made = {id(one.segment.words): one.index for one in self._segments}
        result, item, part = [], 0, 0
        for one in segments:
            index = made.get(id(one.words))
            if index is None and len(one.words):
                index = self._make(one.words)
            result.append(Indexed(one, index, item, part))
            item, part = item + len(one.ids), part + len(one.offsets)
        return tuple(result)

    def _reach(self, radius: SupportsIndex | None, neighbors: SupportsIndex | None) -> Reach:
        if radius is not None and neighbors is not None:
            raise ArgumentError("radius and neighbors are given; one of them says what is near")
        if neighbors is not None:
            return Reach(None, whole_number("neighbors", neighbors, at_least=1))
        near = self.bits // 10 if radius is None else radius
        return Reach(min(whole_number("radius", near, at_least=0), self.bits), None)


def _bytes_of(one: Indexed) -> int:
    segment = one.segment
    arrays = (segment.begins, segment.offsets, segment.words, segment.part_words)
    more = (segment.word_begins, segment.word_parts)
    inner = getattr(one.index, "memory_bytes", 0)
    return int(inner) + sum(array.nbytes for array in (*arrays, *more))
