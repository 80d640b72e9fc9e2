"""PartIndex: items of many signatures; the answer is the item, and the place in it, that most parts
of a query are near.

So a recording is found by a snippet, and a document by a passage.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from typing import Any, Self, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.checks import as_array, file_path, flag, thread_count, whole_number
from lookalike.errors import ArgumentError, CorruptIndexError, NotFoundError, Said, SignatureError
from lookalike.indexes import Index
from lookalike.indexes.base import StoredIndex
from lookalike.indexes.keys import key_arrays, restored_keys
from lookalike.indexes.kinds import KINDS, signature_index_in
from lookalike.parts.segment import MOST_PARTS, Integers, Item, Segment, distinct, merged, tidied
from lookalike.parts.signer import SignedParts
from lookalike.parts.votes import Indexed, PartAnswer, Reach, ballots
from lookalike.shown import brief, counted
from lookalike.signatures import as_signatures
from lookalike.signatures.simhash import signature_bits
from lookalike.storage.container import Container, open_container

FARTHEST = 2**59  # the largest position, on both sides of 0, so that differences can be counted
MOST_NEAR = 500_000  # near parts that the parts of a query may have together by default
AUTO = "auto"
_SCANNED = 4096  # signatures below which a scan is faster than lists
Maker = Callable[[NDArray[np.uint8]], Any]


def _listed(name: str, values: Iterable[Any]) -> list[Any]:
    try:
        if not isinstance(values, str | bytes):
            return list(values)
    except TypeError:
        pass
    raise ArgumentError(Said(name), f" are {brief(values)}; expected a list, one for each")


def _item_id(item: object) -> Item:
    """Return the id of an item: NumPy's numbers and strings as Python's."""
    if isinstance(item, np.str_ | np.integer):
        item = item.item()
    if isinstance(item, bool) or not isinstance(item, str | int):
        raise ArgumentError(
            f"an item is called {brief(item)} of type {type(item).__name__}; expected a string or "
            "a whole number"
        )
    return item if type(item) in (str, int) else str(item) if isinstance(item, str) else int(item)


def _distinct_ids(items: Iterable[Item], outcome: str) -> list[Item]:
    """Return the ids of items; refuse an item that is given twice."""
    ids: dict[Item, None] = {}
    for one in map(_item_id, _listed("items", items)):
        if one in ids:
            raise ArgumentError(f"the item {brief(one)} is given more than once; {outcome}")
        ids[one] = None
    return list(ids)


def rows_of(signatures: ArrayLike, bits: int) -> NDArray[np.uint8]:
    """Return the signatures of parts; one part may lack the first axis, none may have any shape.

    Numbers of as many bits, such as `uint32[n]` for 32, are signatures here, too.
    """
    words = as_array("signatures", signatures)
    if words.size == 0 and words.ndim <= 2:
        return np.empty((0, bits // 8), np.uint8)
    if words.ndim == 1 and words.dtype.kind == "u" and 8 * words.dtype.itemsize == bits:
        little = np.ascontiguousarray(words.astype(words.dtype.newbyteorder("<")))
        words = little.view(np.uint8).reshape(-1, bits // 8)
    rows = as_signatures(words, single=True)
    if 8 * rows.shape[1] != bits:
        raise SignatureError(
            f"signatures have {8 * rows.shape[1]} bits, the index has {bits}; sign both with the "
            "same signer"
        )
    return rows


def all_positions(
    name: str, offsets: Iterable[ArrayLike | None] | None, counts: Sequence[int]
) -> list[Integers]:
    """Return positions of the parts of several items or queries."""
    if offsets is None:
        return [np.arange(count) for count in counts]
    several = _listed(name, offsets)
    if len(several) != len(counts):
        raise ArgumentError(Said(name), f" are those of {len(several)}; expected {len(counts)}")
    return [
        np.arange(count) if one is None else _positions(name, one, count)
        for one, count in zip(several, counts, strict=True)
    ]


def _positions(name: str, offsets: ArrayLike, count: int) -> Integers:
    array = as_array(name, offsets)
    if array.size == 0:
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu" or array.shape != (count,):
        raise ArgumentError(
            Said(name),
            f" are {array.dtype} of shape {array.shape}, {brief(offsets)}; expected {count} whole "
            "numbers, one for each part",
        )
    if count and not -FARTHEST <= int(array.min()) <= int(array.max()) <= FARTHEST:
        raise ArgumentError(
            Said(name), f" are {brief(offsets)}; expected numbers from -2**59 to 2**59"
        )
    return array.astype(np.int64)


def _suitable(rows: NDArray[np.uint8]) -> Any:
    """Return an exact index: a scan of few signatures, slices of many.

    Signatures of up to 32 bits are cut in two, so that those that differ in five bits are found by
    lists of values that differ in two.
    """
    if len(rows) < _SCANNED:
        return KINDS["scan"].build(rows)
    return KINDS["slices"].build(rows, slice_bits=4 * rows.shape[1] if rows.shape[1] <= 4 else None)


def _maker_of(index: object) -> tuple[str, Maker]:
    """Return the name of a kind of index and the function that makes one of signatures.

    The name for a caller's own function is "auto".
    """
    if isinstance(index, str) and index == AUTO:
        return AUTO, _suitable
    if isinstance(index, str) and index in KINDS and (kind := KINDS.get(index)).is_built:
        return kind.name, kind.build
    if callable(index):
        return AUTO, lambda rows: _checked(index(rows), len(rows))
    known = ", ".join(kind.name for kind in KINDS if kind.is_built)
    raise ArgumentError(
        Said("index"),
        f" is {brief(index)}; expected one of {AUTO}, {known}, or a class or function that makes "
        "an index of signatures",
    )


def _checked(index: Any, count: int) -> Any:
    """Return the index that a caller's function made; raise if it cannot be searched."""
    if callable(getattr(index, "within", None)) or callable(getattr(index, "search", None)):
        return index
    raise ArgumentError(
        Said("index"),
        f" made {brief(index)} of {count} signatures; expected something with the methods within "
        "or search",
    )


def _segment(container: Container) -> Segment:
    """Return the segment in a container; the file is untrusted."""
    ids = restored_keys(container)
    begins = container.array("begins", np.int64, 1)
    offsets = container.array("offsets", np.int64, 1)
    words = container.array("words", np.uint8, 2)
    part_words = container.array("part_words", np.uint32, 1)
    word_begins = container.array("word_begins", np.int64, 1)
    word_parts = container.array("word_parts", np.uint32, 1)
    count = len(offsets)
    fits = (
        all(type(one) in (str, int) for one in ids)
        and len(set(ids)) == len(ids)
        and _cut(begins, len(ids), count)
        and _cut(word_begins, len(words), count)
        and len(part_words) == len(word_parts) == count
        and bool((np.abs(offsets) <= FARTHEST).all())
        and _each_once(part_words, word_begins, word_parts)
    )
    if not fits:
        raise _damaged(container, "its items, parts and signatures do not fit together")
    serials = np.arange(len(ids))
    return Segment(ids, serials, begins, offsets, words, part_words, word_begins, word_parts)


def _cut(begins: Integers, pieces: int, count: int) -> bool:
    if len(begins) != pieces + 1 or begins[0] != 0 or begins[-1] != count:
        return False
    return bool((np.diff(begins) >= 0).all())


def _each_once(part_words: NDArray[np.uint32], begins: Integers, parts: NDArray[np.uint32]) -> bool:
    """Return whether each part is listed once, with its signature."""
    if len(parts) == 0:
        return True
    if int(parts.max()) >= len(parts):
        return False
    words = np.repeat(np.arange(len(begins) - 1), np.diff(begins))
    ascending = np.diff(parts.astype(np.int64)) > 0
    ascending[np.diff(words) > 0] = True
    return bool((part_words[parts] == words).all() and ascending.all())


def _damaged(container: Container, reason: str) -> CorruptIndexError:
    return CorruptIndexError(f"{container.path}: {reason}; it is damaged")


class PartIndex(StoredIndex):
    """Find items by the signatures of their parts, such as a recording by a snippet.

    A query is a sequence of signatures. Each part of the query votes for every item that has a near
    part, at the difference of their positions. Results are the items with the most votes at one
    difference. Items can be added and removed at any time. Searches are thread-safe.

    Args:
        bits: Number of bits of a signature (default: 32).
        index: Index of signatures: "auto" (exact), the name of a kind such as "slices" or "blocks",
            or a class or function that builds one.

    Examples:
        >>> index = la.PartIndex(bits=32)
        >>> index.add("song", np.arange(100, dtype=np.uint32) * 40503)
        >>> index.search(np.arange(20, 30, dtype=np.uint32) * 40503)[0]
        PartMatch(item='song', offset=20, votes=10, score=1.0)
    """

    kind = "parts"

    def __init__(self, bits: SupportsIndex = 32, *, index: Any = AUTO) -> None:
        self._begin(signature_bits(bits), index)

    def _begin(self, bits: int, index: Any) -> None:
        self.bits = bits
        self.signature_kind, self._make = _maker_of(index)
        self._writing = threading.Lock()
        self._known: dict[Item, tuple[int, int]] = {}  # serial number, and number of parts
        self._next = 0
        self._parts = 0
        self._waiting: dict[int, tuple[Item, NDArray[np.uint8], Integers]] = {}
        self._gone: list[int] = []
        self._segments: tuple[Indexed, ...] = ()

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, item: object) -> bool:
        return type(item) in (str, int) and item in self._known

    def items(self) -> list[Item]:
        """Return all items, in the order in which they were added."""
        return list(self._known)

    def living(self) -> Iterator[tuple[Item, SignedParts]]:
        """Yield all items with their parts, in the order in which they were added."""
        for one in self.settled():
            segment = one.segment
            for place, item in enumerate(segment.ids):
                if segment.removed is None or not segment.removed[place]:
                    yield item, SignedParts(*segment.parts_of(place))

    def parts_of(self, item: Item) -> SignedParts:
        """Return the signatures of the parts of an item, and their positions, as they were added.

        Raises:
            NotFoundError: The index does not have the item.
        """
        with self._writing:
            self._settle()
            known, segments = self._known.get(_item_id(item)), self._segments
        if known is None:
            raise NotFoundError(f"the item {brief(item)} is not in the index")
        serial = known[0]
        for one in segments:
            segment = one.segment
            place = int(np.searchsorted(segment.serials, serial))
            if place < len(segment.serials) and segment.serials[place] == serial:
                break
        return SignedParts(*segment.parts_of(place))

    @property
    def part_count(self) -> int:
        """The number of parts of all items."""
        return self._parts

    def __repr__(self) -> str:
        items, parts = counted(len(self), "item"), counted(self.part_count, "part")
        return f"PartIndex({items}, {parts} of {self.bits} bits)"

    def add(
        self,
        item: Item,
        signatures: ArrayLike,
        offsets: ArrayLike | None = None,
        *,
        replace: bool = False,
    ) -> None:
        """Add an item with the signatures of its parts, `uint8[n, bits // 8]`; n may be 0.

        `offsets` are their positions in the item, whole numbers in any order (default: 0, 1, 2,
        ...). An item that exists is an error, or is replaced with `replace=True`.
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
        ids = _distinct_ids(items, "nothing was added")
        rows = [rows_of(one, self.bits) for one in _listed("signatures", signatures)]
        if len(ids) != len(rows):
            raise ArgumentError(f"there are {len(ids)} items and signatures of {len(rows)}")
        places = all_positions("offsets", offsets, [len(one) for one in rows])
        with self._writing:
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
        ids = _distinct_ids(items, "nothing was removed")
        with self._writing:
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
        rarity: bool = False,
        nearness: bool = False,
        threads: SupportsIndex | None = None,
    ) -> PartAnswer:
        """Return the k items that most parts of a query vote for, with the place in them.

        A part has one vote for an item, at an offset. If an item has several places, the best one
        counts: by votes, then by the sum of distances, then the first.

        Args:
            signatures: The signatures of the parts of the query; one signature is one part.
            offsets: Their positions (default: 0, 1, 2, ...).
            radius: A part votes for items with a part within this many bits (default: a tenth of
                the bits).
            neighbors: In place of `radius`: a part votes for items with one of this many nearest
                different signatures, for indexes that have only the method `search`.
            tolerance: Differences of positions within this of each other count together.
            k: The number of items.
            min_votes: Votes that an item needs (default: 2, or 1 if the query has one part).
            most_near: Bounds the work: common parts (silence, boilerplate) tell little, so parts of
                the query vote in the order of how many parts are near them, few first, as long as
                these are this many together. `left_out` of the answer counts the others.
            rarity: Order items by how rare the parts are that voted, not by their number: a part
                that one in 2**n of all parts is near counts as n + 1 votes in this order.
            nearness: Choose the place in an item by how near its parts are, not only by how many:
                a vote counts as `radius` + 1 less its distance. So the place is right if most parts
                of an item are near each other, such as frames of a still scene.
            threads: The number of threads (default: one for each processor).
        """
        return self.search_many(
            [signatures], None if offsets is None else [offsets], radius=radius,
            neighbors=neighbors, tolerance=tolerance, k=k, min_votes=min_votes,
            most_near=most_near, rarity=rarity, nearness=nearness, threads=threads,
        )[0]  # fmt: skip

    def search_many(
        self, signatures: Iterable[ArrayLike], offsets: Iterable[ArrayLike | None] | None = None,
        *, radius: SupportsIndex | None = None, neighbors: SupportsIndex | None = None,
        tolerance: SupportsIndex = 0, k: SupportsIndex = 10,
        min_votes: SupportsIndex | None = None, most_near: SupportsIndex = MOST_NEAR,
        rarity: bool = False, nearness: bool = False, threads: SupportsIndex | None = None,
    ) -> list[PartAnswer]:  # fmt: skip
        """Return what `search` returns for each of many queries."""
        reach = self._reach(radius, neighbors)
        apart = whole_number("tolerance", tolerance, at_least=0, at_most=FARTHEST)
        most = whole_number("k", k, at_least=1)
        least = None if min_votes is None else whole_number("min_votes", min_votes, at_least=1)
        near = whole_number("most_near", most_near, at_least=1, at_most=MOST_PARTS)
        rare, workers = flag("rarity", rarity), thread_count(threads)
        nearest = flag("nearness", nearness)
        if nearest and reach.radius is None:
            raise ArgumentError("nearness needs radius; neighbors have no maximum distance")
        queries = [rows_of(one, self.bits) for one in _listed("signatures", signatures)]
        places = all_positions("offsets", offsets, [len(one) for one in queries])
        found = ballots(self.settled(), queries, places, reach, near, workers)
        return [
            ballot.answer(apart, most, least, rarity=rare, nearness=nearest) for ballot in found
        ]

    @property
    def memory_bytes(self) -> int:
        """Bytes of all arrays, in memory or mapped from a file; items are not counted."""
        return sum(_bytes_of(one) for one in self.settled())

    def stats(self) -> dict[str, Any]:
        """Return facts about the index, in plain values."""
        segments = self.settled()
        return {
            "index": self.kind,
            "items": len(self),
            "parts": self.part_count,
            "bits": self.bits,
            "signatures": sum(len(one.segment.words) for one in segments),
            "segments": len(segments),
            "memory_bytes": sum(_bytes_of(one) for one in segments),
        }

    def compact(self) -> None:
        """Merge all segments into one without removed items, as `save` does."""
        with self._writing:
            self._settle()
            if len(self._segments) > 1 or any(
                one.segment.removed is not None for one in self._segments
            ):
                self._segments = self._arranged([merged([one.segment for one in self._segments])])

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, verify: bool = True, index: Any = None) -> Self:
        """Open a saved index, its arrays mapped, after all checksums have been compared.

        `index` makes the indexes of signatures that are added from now on (default: as before); a
        caller's own function is not saved.
        """
        container = open_container(file_path("path", path), verify=flag("verify", verify))
        cls._expect(container)
        return cls.from_container(container, index)

    @classmethod
    def from_container(cls, container: Container, index: Any = None) -> Self:
        """Return the index that a container holds; `index` as for `load`."""
        parts = super().from_container(container)
        if index is not None:
            parts.signature_kind, parts._make = _maker_of(index)
        (one,) = parts._segments
        if one.index is None and len(one.segment.words):
            parts._segments = parts._arranged([one.segment])
        return parts

    def __copy__(self) -> Self:
        return self.from_bytes(self.to_bytes())

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return copy(self)

    def _meta(self) -> dict[str, Any]:
        return {**super()._meta(), "bits": self.bits, "signatures": self.signature_kind}

    def _arrays(self) -> dict[str, NDArray[Any]]:
        """Return all parts, in one segment, and the index of their signatures."""
        self.compact()
        none = np.empty(0, np.int64)
        empty = Segment.of([], none, none, none, np.empty((0, self.bits // 8), np.uint8), none)
        with self._writing:
            (one,) = self._segments or (Indexed(empty, None, 0, 0),)
        segment = one.segment
        arrays: dict[str, NDArray[Any]] = {
            **key_arrays(segment.ids),
            "begins": segment.begins,
            "offsets": segment.offsets,
            "words": segment.words,
            "part_words": segment.part_words,
            "word_begins": segment.word_begins,
            "word_parts": segment.word_parts,
        }
        if isinstance(one.index, Index):
            arrays["index"] = np.frombuffer(one.index.to_bytes(), np.uint8)
        return arrays

    def _restore(self, container: Container) -> None:
        meta = container.meta
        kind, notes = str(meta.get("signatures")), meta.get("notes", {})
        try:
            self._begin(signature_bits(meta.get("bits")), kind)  # type: ignore[arg-type]
        except ArgumentError as error:
            raise _damaged(container, str(error)) from error
        if not isinstance(notes, dict):
            raise _damaged(container, f"its notes are {brief(notes)}")
        segment, index = _segment(container), None
        if segment.words.shape[1] != self.bits // 8:
            shape = segment.words.shape
            raise _damaged(container, f"signatures of {self.bits} bits have shape {shape}")
        if "index" in container:
            index = signature_index_in(container.inner("index"))
            fits = (len(segment.words), self.bits, False)
            if (len(index), index.bits, index.own_ids) != fits:
                raise _damaged(container, f"its signatures are in {index!r}")
        lengths = np.diff(segment.begins).tolist()
        self._known = {
            id: (serial, many)
            for serial, (id, many) in enumerate(zip(segment.ids, lengths, strict=True))
        }
        self._next, self._parts = len(segment.ids), len(segment.offsets)
        self._segments = (Indexed(segment, index, 0, 0),)

    def _forget(self, item: Item) -> None:
        serial, many = self._known.pop(item)
        self._parts -= many
        if serial in self._waiting:
            del self._waiting[serial]
        else:
            self._gone.append(serial)

    def settled(self) -> tuple[Indexed, ...]:
        """Return all items there are now, in segments that do not change."""
        with self._writing:
            self._settle()
            return self._segments

    def _settle(self) -> None:
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
    part = one.segment
    arrays = (part.begins, part.offsets, part.words, part.part_words)
    inner = getattr(one.index, "memory_bytes", 0)
    return int(inner) + sum(a.nbytes for a in (*arrays, part.word_begins, part.word_parts))
