"""Text that occurs again, found on Spark in the rounds of `lookalike.cleaning.repeats`.

Documents stay where they are read. What moves is a record for each window or unit and each batch of
documents that has it, with the place that comes first: so what a million documents have is a few
records. Those of one fingerprint meet in a task, which tells the first place of all to the buckets
of documents that have others. There, the texts that may lose something meet what was told.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.cleaning.repeats import Removals, merged_ranges
from lookalike.cleaning.settings import BOUNDARIES, UNITS, CleanSettings
from lookalike.corpora.base import native_documents, pa
from lookalike.dedup.pairs import Flags, Ints
from lookalike.signatures.arrays import distinct
from lookalike.spark.packed import (
    PACKED,
    Batches,
    bytes_of,
    gathered,
    map_arrow,
    packed,
    packed_row,
    shuffled,
    sql,
)
from lookalike.spark.positions import (
    KEY,
    PositionSet,
    collect_positions,
    numbered_columns,
    packed_positions,
    pieces_of,
    told_rows,
)
from lookalike.spark.signing import deciding_values, texts_of
from lookalike.spark.work import SparkWork

BYTES_A_SLICE = 4 << 20
"""Bytes of text that are hashed together."""
BYTES_A_BUCKET = 16 << 20
"""Bytes of text of the documents that one task cuts, about."""
RECORDS_A_TASK = 1_000_000
"""Records of fingerprints that meet in one task, about."""
_LEAST_BITS, _MOST_BITS = 16, 29
"""Of the numbers of hashes in a set that is sent to all workers: at most 64 MB."""
_BITS_A_HASH = 16
_BYTES_A_WORD, _WORDS_AN_ANCHOR = 6, 13
"""Of usual texts."""

_PLACES, _TOLD, UNIT_ROWS, _BITS, _DOCUMENT = range(5)
"""Kinds of packed rows."""

ANCHOR = np.dtype([("hash", "<u8"), ("again", "<u8")])
_PLACE = ("value", "document", "word")
_OTHER = tuple(f"other_{name}" for name in _PLACE)
RECORD = np.dtype(
    [
        ("first", "<u8"), ("second", "<u8"),  # the fingerprint
        ("bucket", "<i4"),  # of documents
        ("flags", "<i4"),
        ("documents", "<i8"), ("places", "<i8"),  # how many
        *((name, "<i8") for name in (*_PLACE, *_OTHER)),
    ]
)  # fmt: skip
"""A window or a unit, the place that comes first, and another one: of windows the last, of units
the second. The word of a place is the number of the first word in its text as that is now, and of a
unit the byte where it begins. A document of -1 is none.
"""
UNITS_SCHEMA = ", ".join(
    f"{name} {'int' if RECORD[name].itemsize == 4 else 'long'}" for name in RECORD.names or ()
)
"""The records of units that were removed, as columns."""
TWICE, WANTED = 1, 2
"""Flags: some document has a unit more than once; a window was made by removing text."""

PIECE = np.dtype(
    [(name, "<i8") for name in ("begin", "end", "words", "copy", "copy_begin", "copy_end")]
)
"""A range of bytes that is removed, and where its first copy is: a document, and words of it as it
was in that round, up to one that is not in the copy; of units the byte where it begins.
"""
_ROWS = "bucket int, kind int, position long, value long, words long, text string, data binary"
CHANGED = (
    "position long, value long, words long, text string, ranges binary, pieces binary, round int"
)
"""Documents that lost something: how many words, the merged ranges of bytes, and what a round
found."""
_CHANGED = ("position", "value", "words", "text", "ranges")


@dataclass(frozen=True, eq=False)
class RepeatPlan:
    """What every worker knows."""

    settings: CleanSettings
    key: tuple[int, int]
    """Of fingerprints: drawn for each job, so that no text can be made to have that of another."""
    numbering: Any
    documents: int
    buckets: int
    """Of documents: ranges of their positions."""
    tasks: int
    """In which fingerprints meet."""
    bits: int
    """Of the numbers of hashes in sets."""

    @classmethod
    def of(
        cls, settings: CleanSettings, numbering: Any, documents: int, size: int, cores: int
    ) -> RepeatPlan:
        """Return the plan for a number of documents with this number of bytes."""
        words = size // _BYTES_A_WORD
        hashes = words // (_WORDS_AN_ANCHOR if settings.unit is None else 1)
        return cls(
            settings,
            (secrets.randbits(64), secrets.randbits(64)),
            numbering,
            documents,
            buckets=max(1, min(documents, -(-size // BYTES_A_BUCKET))),
            tasks=max(cores, -(-words // RECORDS_A_TASK)),
            bits=min(max(_LEAST_BITS, (_BITS_A_HASH * hashes).bit_length()), _MOST_BITS),
        )

    @property
    def words(self) -> int:
        """The words of a window; 0 for units."""
        return int(self.settings.words or 0) if self.settings.unit is None else 0

    @property
    def unit_name(self) -> str | None:
        """The unit; None for windows."""
        return self.settings.unit

    @property
    def unit(self) -> int:
        """The unit, as the core counts them."""
        return 0 if self.settings.unit is None else UNITS.index(self.settings.unit)

    def bucket_of(self, positions: Ints) -> Ints:
        """Return the buckets of documents."""
        return positions * self.buckets // max(1, self.documents)

    def numbers(self, hashes: NDArray[np.uint64]) -> Ints:
        """Return the numbers of hashes in sets; those of fingerprints are below 2^61."""
        mixed = hashes * np.uint64(0x9E3779B97F4A7C15)
        return (mixed >> np.uint64(64 - self.bits)).astype(np.int64)

    def values(self, batch: Any, positions: Ints, lengths: Ints) -> Ints:
        """Return what decides which copy is the first, before the position does: the least is."""
        order = self.settings.order
        if order.keep_rule in ("first", "last"):
            return -positions if order.keep_rule == "last" else np.zeros(len(positions), np.int64)
        return deciding_values(order, batch, lengths)

    def hashed_set(self, rows: Any) -> PositionSet:
        """Return the numbers of hashes that rows tell."""
        return PositionSet.of(told_rows(rows, 0).get(_BITS, []), 1 << self.bits)


@dataclass(frozen=True, eq=False)
class Slice:
    """Some documents, ascending by position."""

    positions: Ints
    values: Ints
    words: Ints
    """That were removed."""
    column: Any
    """The texts, as Arrow."""
    ranges: list[bytes] | None
    """What was removed from each."""
    texts: _native.RepeatTexts = field(init=False)

    def __post_init__(self) -> None:
        count = len(self.positions)
        texts = _native.RepeatTexts(native_documents(self.column), np.arange(count))
        if self.ranges is not None:
            offsets, ranges = self.removed()
            texts.set_removed(offsets, *(np.ascontiguousarray(one) for one in ranges.T))
        object.__setattr__(self, "texts", texts)

    def removed(self) -> tuple[Ints, Ints]:
        """Return where the ranges of each document begin, and all of them."""
        parts = self.ranges or [b""] * len(self.positions)
        counts = [len(part) // 16 for part in parts]
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]).astype(np.int64)
        return offsets, np.frombuffer(b"".join(parts), np.int64).reshape(-1, 2)


def slices(plan: RepeatPlan, changed: Any, batches: Batches) -> Iterator[Slice]:
    """Yield the documents of a partition: of a frame those that are not changed, or of `CHANGED`.

    The rows of a frame are those of `numbered_columns`: the text, and a deciding column.
    """
    first = next(batches, None)
    if first is None:
        return
    batches = chain([first], batches)
    if KEY in first.schema.names:
        for piece, row, some, _ in pieces_of(batches):
            yield from _of_frame(plan, changed, piece, row, some)
        return
    for batch in batches:
        ranges = batch.column("ranges").to_pylist()
        yield from _cut(_numbers(batch), texts_of(batch.column("text")), ranges)


def _of_frame(plan: RepeatPlan, changed: Any, piece: Any, row: int, batch: Any) -> Iterator[Slice]:
    first = plan.numbering.value.first(piece, row, len(batch))
    positions = np.arange(first, first + len(batch))
    lengths = np.diff(texts_of(batch.column(0))[1])
    values = plan.values(batch, positions, lengths)
    if changed is not None:
        rest = ~changed.value.has(positions)
        batch, positions, values = batch.filter(pa.array(rest)), positions[rest], values[rest]
    nothing = np.zeros(len(positions), np.int64)
    yield from _cut((positions, values, nothing), texts_of(batch.column(0)), None)


def _numbers(batch: Any) -> tuple[Ints, Ints, Ints]:
    position, value, words = (batch.column(name) for name in ("position", "value", "words"))
    return position.to_numpy(), value.to_numpy(), words.to_numpy()


def _cut(
    numbers: tuple[Ints, Ints, Ints], texts: tuple[Any, Ints], ranges: list[bytes] | None
) -> Iterator[Slice]:
    (positions, values, words), (column, ends) = numbers, texts
    begin = 0
    while begin < len(positions):
        fitting = int(np.searchsorted(ends, ends[begin] + BYTES_A_SLICE, "right")) - 1
        end = max(begin + 1, fitting)
        part = slice(begin, end)
        own = None if ranges is None else ranges[part]
        some = column.slice(begin, end - begin)
        yield Slice(positions[part], values[part], words[part], some, own)
        begin = end


@dataclass(frozen=True, eq=False)
class Choice:
    """Which windows of a round are looked at."""

    plan: RepeatPlan
    changed: Any
    """Positions of changed documents, that were sent; None: there are none."""
    numbers: Any
    """Sent, too: numbers of anchors that occur again, or of windows that were made; None: all."""
    joined: bool

    def slices(self, batches: Batches) -> Iterator[Slice]:
        """Yield the documents of a partition."""
        return slices(self.plan, self.changed, batches)

    def places(self, some: Slice) -> tuple[Ints, Flags]:
        """Return where windows or units begin, ascending, and which windows were made."""
        plan, count = self.plan, len(some.positions)
        least = int(plan.settings.words or 0)
        if not plan.words:
            _, positions, _ = some.texts.units(0, count, plan.unit, least, 0, 64, 1)
            return positions, np.zeros(len(positions), np.bool_)
        anchors, counts = some.texts.anchors(0, count, plan.words, 1)
        if self.joined:
            flags = np.ones(len(anchors), np.uint8)
        else:
            flags = self.numbers.value.has(plan.numbers(anchors)).astype(np.uint8)
        hashes, positions, _ = some.texts.flagged_windows(
            0, count, plan.words, flags, counts, 0, 64, 1
        )
        if not self.joined:
            return positions, np.zeros(len(positions), np.bool_)
        known = self.numbers.value.has(plan.numbers(hashes))
        hashes, positions = hashes[known], positions[known]
        made, _ = some.texts.joining_windows(0, count, plan.words, 64, 1)
        return positions, np.isin(hashes, made)

    def records(self, some: Slice) -> tuple[NDArray[Any], Ints]:
        """Return a record for each window or unit of documents, by place, and the places."""
        plan = self.plan
        positions, made = self.places(some)
        records = np.zeros(len(positions), RECORD)
        first, second, words = some.texts.fingerprints(
            positions, plan.words, plan.unit, *plan.key, 1
        )
        texts, begins = some.texts.text_of(positions)
        records["first"], records["second"] = first, second
        records["documents"] = records["places"] = 1
        records["document"] = some.positions[texts]
        records["value"] = some.values[texts]
        records["word"] = words if plan.words else begins
        records["bucket"] = plan.bucket_of(records["document"])
        records["flags"] = np.where(made, WANTED, 0)
        records["other_document"] = -1
        return records, positions


def _order(records: NDArray[Any], by: tuple[str, ...]) -> Ints:
    """Return the order of records by these columns, of which the first is `first`, then by place.

    Most records come in the order of places, and nearly no fingerprints share their first half.
    """
    value, document, word = (records[name] for name in _PLACE)
    ahead, equal = value[1:] > value[:-1], value[1:] == value[:-1]
    for column in (document, word):
        ahead = ahead | (equal & (column[1:] > column[:-1]))
        equal = equal & (column[1:] == column[:-1])
    if (ahead | equal).all():
        order = np.argsort(records["first"], kind="stable")
    else:
        order = np.lexsort((word, document, value))
        order = order[np.argsort(records["first"][order], kind="stable")]
    same = np.ones(max(0, len(records) - 1), np.bool_)
    for name in by:
        column = records[name][order]
        if (same & (column[1:] < column[:-1])).any():
            return np.lexsort([records[one] for one in (*reversed(_PLACE), *reversed(by))])
        same &= column[1:] == column[:-1]
    return order


def grouped(
    records: NDArray[Any], by: tuple[str, ...], last: bool, *, once: bool = False
) -> tuple[NDArray[Any], Ints, Ints]:
    """Return a record for each group that is equal in these columns, and the order and the group
    of each.

    The other place is the `last`, or the second. With `once`, records are places: documents are
    counted once, and what one of them has twice is marked.
    """
    order = _order(records, by)
    records = records[order]
    new = np.zeros(len(records), np.bool_)
    new[:1] = True
    for name in by:
        new[1:] |= records[name][1:] != records[name][:-1]
    if once:
        again = ~new
        again[1:] &= records["document"][1:] == records["document"][:-1]
        records["documents"][again] = 0
        records["flags"][again] |= TWICE
    begins = np.flatnonzero(new)
    made = records[begins]
    if len(made):
        for name, add in (("documents", np.add), ("places", np.add), ("flags", np.bitwise_or)):
            made[name] = add.reduceat(records[name], begins)
    ends = np.append(begins[1:], len(records))
    has = ends - begins > 1
    other = np.where(has, ends - 1 if last else begins + 1, begins)
    for name, of in zip(_OTHER, _PLACE, strict=True):
        made[name] = records[of][other]
    made["other_document"][~has] = -1
    return made, order, np.cumsum(new) - 1


def send_anchors(plan: RepeatPlan, changed: Any, batches: Batches) -> Iterator[Any]:
    """Yield the anchors of documents, each once for a slice, and whether it has them again."""
    for some in slices(plan, changed, batches):
        hashes, _ = some.texts.anchors(0, len(some.positions), plan.words, 1)
        different, counts = np.unique(hashes, return_counts=True)
        records = np.empty(len(different), ANCHOR)
        records["hash"], records["again"] = different, counts > 1
        yield from packed(records, (different % np.uint64(plan.tasks)).astype(np.int64), _PLACES)


def meet_anchors(plan: RepeatPlan, batches: Batches) -> Iterator[Any]:
    """Yield the numbers of anchors that occur again."""
    records = gathered(batches, ANCHOR).get(_PLACES)
    if records is None:
        return
    hashes, groups, counts = np.unique(records["hash"], return_inverse=True, return_counts=True)
    again = counts > 1
    again[groups[records["again"] > 0]] = True
    if again.any():
        yield packed_row(_BITS, packed_positions(plan.numbers(hashes[again])))


def send_made(plan: RepeatPlan, batches: Batches) -> Iterator[Any]:
    """Yield the numbers of windows that removing text has made."""
    for some in slices(plan, None, batches):
        made, _ = some.texts.joining_windows(0, len(some.positions), plan.words, 64, 1)
        if len(made):
            yield packed_row(_BITS, packed_positions(plan.numbers(made)))


def send_places(choice: Choice, batches: Batches) -> Iterator[Any]:
    """Yield records of windows or units, those of a bucket of documents and a slice combined."""
    plan = choice.plan
    for some in choice.slices(batches):
        records, _ = choice.records(some)
        if not len(records):
            continue
        made, _, _ = grouped(records, ("first", "second", "bucket"), plan.words > 0, once=True)
        yield from packed(made, (made["first"] % np.uint64(plan.tasks)).astype(np.int64), _PLACES)


def meet_places(plan: RepeatPlan, joined: bool, batches: Batches) -> Iterator[Any]:
    """Decide what is repeated, and tell it to the buckets of documents that have it."""
    records = gathered(batches, RECORD).get(_PLACES)
    if records is None:
        return
    others = records[records["other_document"] >= 0].copy()
    for name, of in zip(_PLACE, _OTHER, strict=True):
        others[name] = others[of]
    for name in ("documents", "places", "flags"):
        others[name] = 0
    every = np.concatenate([records, others])
    made, order, groups = grouped(every, ("first", "second"), plan.words > 0)
    if plan.words:
        repeated = made["places"] > 1
        if joined:
            repeated &= (made["flags"] & WANTED) > 0
    else:
        most = int(plan.settings.max_documents or 1)
        repeated = (made["documents"] > most) | ((made["flags"] & TWICE) > 0)
    if not repeated.any():
        return
    told_to = np.unique(np.stack([groups, every["bucket"][order]], axis=1), axis=0)
    told_to = told_to[repeated[told_to[:, 0]]]
    told = made[told_to[:, 0]]
    told["bucket"] = told_to[:, 1]
    yield from packed(told, told_to[:, 1], _TOLD)
    if not plan.words:
        units = made[repeated]
        yield packed_row(_BITS, packed_positions(plan.numbers(units["first"])))
        yield from packed(units, np.zeros(len(units), np.int64), UNIT_ROWS)


def send_documents(choice: Choice, repeated: Any, batches: Batches) -> Iterator[Any]:
    """Yield the documents that may lose something; `repeated` has numbers of units, or is None."""
    plan = choice.plan
    for some in choice.slices(batches):
        if repeated is None:
            positions, _ = choice.places(some)
            texts, _ = some.texts.text_of(positions)
        else:
            records, _ = choice.records(some)
            known = repeated.value.has(plan.numbers(np.ascontiguousarray(records["first"])))
            texts = np.searchsorted(some.positions, records["document"][known])
        at = distinct(texts)
        if not len(at):
            continue
        ranges = some.ranges or [b""] * len(some.positions)
        count = len(at)
        yield pa.record_batch(
            {
                "bucket": pa.array(plan.bucket_of(some.positions[at]), pa.int32()),
                "kind": pa.array(np.full(count, _DOCUMENT), pa.int32()),
                "position": pa.array(some.positions[at]),
                "value": pa.array(some.values[at]),
                "words": pa.array(some.words[at]),
                "text": some.column.take(pa.array(at)).cast(pa.string()),
                "data": pa.array([ranges[one] for one in at.tolist()], pa.binary()),
            }
        )


def cut_documents(choice: Choice, number: int, batches: Batches) -> Iterator[Any]:
    """Yield the documents of a bucket that lose something, as `CHANGED`; these are its rows."""
    held, parts = [], []
    for batch in batches:
        told = batch.column("kind").to_numpy() == _TOLD
        if told.any():
            parts.append(bytes_of(batch.column("data").filter(pa.array(told))))
        if not told.all():
            held.append(batch.filter(pa.array(~told)))
    told = np.frombuffer(b"".join(parts), RECORD)
    if not len(told) or not held:
        return
    told = told[np.lexsort((told["second"], told["first"]))]
    rows = pa.Table.from_batches(held).sort_by("position").combine_chunks()
    for batch in rows.to_batches():
        ranges = batch.column("data").to_pylist()
        for some in _cut(_numbers(batch), texts_of(batch.column("text")), ranges):
            found = _removed(choice, told, some)
            if len(found.documents):
                yield _changed(some, found, number)


def _removed(choice: Choice, told: NDArray[Any], some: Slice) -> Removals:
    """Return what is removed from documents; copies have documents and words, as in `PIECE`."""
    plan, settings = choice.plan, choice.plan.settings
    records, places = choice.records(some)
    at = _found_at(told, records)
    known = at >= 0
    records, places, told = records[known], places[known], told[at[known]]
    pairs = _window_pairs if plan.words else _unit_pairs
    which, documents, words = pairs(settings, records, told)
    order = np.argsort(which, kind="stable")
    columns = some.texts.far_removals(
        np.ascontiguousarray(places[which[order]]),
        np.ascontiguousarray(documents[order]),
        np.ascontiguousarray(words[order]),
        some.positions,
        plan.words,
        plan.unit,
        BOUNDARIES.index(settings.boundary or "word"),
        1,
    )
    return Removals.joined([tuple(columns)])


def _found_at(told: NDArray[Any], records: NDArray[Any]) -> Ints:
    """Return where the fingerprints of records are in sorted ones; -1 where they are not."""
    firsts, seconds, last = *(told[name].copy() for name in ("first", "second")), len(told) - 1
    at = np.searchsorted(firsts, records["first"])
    while True:
        here = np.minimum(at, last)
        same = (at <= last) & (firsts[here] == records["first"])
        further = same & (seconds[here] != records["second"])
        if not further.any():
            return np.where(same, at, -1)
        at = at + further


Pairs = tuple[Ints, Ints, Ints]
"""Which record is a copy, and the document and the word of its first copy."""


def _window_pairs(settings: CleanSettings, records: NDArray[Any], told: NDArray[Any]) -> Pairs:
    """Pair windows with the first, and with `every` with the last, too."""
    which = np.arange(len(records))
    first = which, told["document"], told["word"]
    if not settings.every:
        return first  # also of the first one itself, whose words are not cut
    last = which, told["other_document"], told["other_word"]
    parts = []
    for rows, documents, words in (first, last):
        other = (documents != records["document"]) | (words != records["word"])
        parts.append((rows[other], documents[other], words[other]))
    one, two = parts
    return (
        np.concatenate([one[0], two[0]]),
        np.concatenate([one[1], two[1]]),
        np.concatenate([one[2], two[2]]),
    )


def _unit_pairs(settings: CleanSettings, records: NDArray[Any], told: NDArray[Any]) -> Pairs:
    """Pair units with that which is kept: the first one, or the first one of the document."""
    count = len(records)
    by = ("first", "second", "document")
    made, order, groups = grouped(records, by, last=False)
    group = np.empty(count, np.int64)
    group[order] = groups
    here = made[group]
    many = told["documents"] > int(settings.max_documents or 1)
    chosen = {}
    for name in ("document", "word"):
        kept = np.where(many, told[name], here[name])
        other = np.where(many, told[f"other_{name}"], here[f"other_{name}"])
        chosen[name] = kept, other
    is_kept = (chosen["document"][0] == records["document"]) & (
        chosen["word"][0] == records["word"]
    )
    lost = (many | (here["places"] > 1)) & (~is_kept | settings.every)
    which = np.flatnonzero(lost)
    documents, words = (
        np.where(is_kept, other, kept)[which].astype(np.int64) for kept, other in chosen.values()
    )
    return which, documents, words


def _changed(some: Slice, found: Removals, number: int) -> Any:
    """Return the documents from which something was removed, as `CHANGED`."""
    offsets, before = some.removed()
    count = len(some.positions)
    nothing = np.zeros(len(before), np.int64)
    own = np.repeat(np.arange(count), np.diff(offsets))
    ranges = own, before[:, 0], before[:, 1], *([nothing] * 4)
    merged = merged_ranges(Removals.joined([tuple(found), ranges]))
    merged_offsets, found_offsets = merged.offsets(count), found.offsets(count)
    both = np.stack([merged.begins, merged.ends], axis=1)
    pieces = np.empty(len(found.documents), PIECE)
    for name, column in zip(PIECE.names or (), found[1:], strict=True):
        pieces[name] = column
    words = some.words + np.bincount(found.documents, found.words, count).astype(np.int64)
    at = distinct(found.documents)

    def parts(rows: NDArray[Any], places: Ints) -> Any:
        own = [rows[places[one] : places[one + 1]].tobytes() for one in at.tolist()]
        return pa.array(own, pa.binary())

    return pa.record_batch(
        {
            "position": pa.array(some.positions[at]),
            "value": pa.array(some.values[at]),
            "words": pa.array(words[at]),
            "text": some.column.take(pa.array(at)).cast(pa.string()),
            "ranges": parts(both, merged_offsets),
            "pieces": parts(pieces, found_offsets),
            "round": pa.array(np.full(len(at), number), pa.int32()),
        }
    )


def _without(positions: Any, batches: Batches) -> Iterator[Any]:
    for batch in batches:
        yield batch.filter(pa.array(~positions.value.has(batch.column("position").to_numpy())))


@dataclass(eq=False)
class RepeatRounds:
    """Finds what to remove from the rows of a frame, round by round."""

    work: SparkWork
    plan: RepeatPlan
    frame: Any
    columns: list[Any]
    """Of the frame: the text, and what decides which copy is the first."""
    changed: Any = None
    """`CHANGED`, as it is after the last round; None: nothing was removed."""
    positions: PositionSet | None = None
    """Of changed documents."""
    found: list[Any] = field(default_factory=list)
    """What each round found, as `CHANGED`."""
    units: Any = None
    """Records of units that were removed, as packed rows."""

    def find(self) -> None:
        """Take as many rounds as it takes."""
        partial = self.plan.settings.boundary not in ("word", "auto")
        while self._round(joined=bool(self.found) and not partial):
            if self.plan.settings.unit is not None:
                return

    def _scan(self, function: Any, schema: str, *before: Any) -> Any:
        """Return what a function makes of all documents."""
        rows = numbered_columns(self.frame, self.columns)
        made = map_arrow(rows, function, schema, *before)
        if self.changed is None:
            return made
        return made.union(map_arrow(self.changed, function, schema, *before))

    def _round(self, joined: bool) -> bool:
        """Take a round; return whether it removed something."""
        work, plan = self.work, self.plan
        changed = None if self.positions is None else work.send(self.positions)
        numbers = None
        if plan.words:
            if joined:
                told = map_arrow(self.changed, send_made, PACKED, plan)
            else:
                anchors = self._scan(send_anchors, PACKED, plan, changed)
                told = map_arrow(shuffled(anchors, plan.tasks), meet_anchors, PACKED, plan)
            known = plan.hashed_set(told)
            if not len(known):
                return False
            numbers = work.send(known)
        choice = Choice(plan, changed, numbers, joined)
        places = self._scan(send_places, PACKED, choice)
        met = work.keep(map_arrow(shuffled(places, plan.tasks), meet_places, PACKED, plan, joined))
        repeated = None
        if not plan.words:
            units = plan.hashed_set(met.where(f"kind = {_BITS}"))
            if not len(units):
                return False
            repeated, self.units = work.send(units), met.where(f"kind = {UNIT_ROWS}")
        documents = self._scan(send_documents, _ROWS, choice, repeated)
        told = met.where(f"kind = {_TOLD}").select(
            "bucket", "kind", *(sql.lit(None).cast(kind).alias(name) for name, kind in _ABSENT),
            "data",
        )  # fmt: skip
        rows = documents.union(told).repartitionById(plan.buckets, "bucket")
        found = work.keep(map_arrow(rows, cut_documents, CHANGED, choice, len(self.found)))
        positions = collect_positions(found, ["position"], plan.documents)
        if not len(positions):
            return False
        self.found.append(found)
        now = found.select(*_CHANGED)
        if self.changed is not None and self.positions is not None:
            kinds = self.changed.schema
            rest = map_arrow(self.changed, _without, kinds, work.send(positions))
            now, positions = now.union(rest), positions | self.positions
        self.changed, self.positions = work.keep(now), positions
        return True


_ABSENT = (("position", "long"), ("value", "long"), ("words", "long"), ("text", "string"))
