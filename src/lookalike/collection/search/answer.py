"""Answers to a query: signatures that are near, then the documents that have them.

Conditions and exclusions apply before the nearest are chosen, so a search looks at signatures until
it has k documents that meet them. The size of answers and their memory are counted while they grow:
see `Budget`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar, Self, TypeAlias, TypeVar

import numpy as np

from lookalike.collection.answers import (
    Answer,
    Level,
    Match,
    Work,
    joined_bound,
    match_of,
)
from lookalike.collection.documents import Row, check_row, damaged, decoded_metadata, decoded_text
from lookalike.collection.query import Question
from lookalike.collection.search.native import NativeLevels
from lookalike.collection.search.sql import SqlLevels
from lookalike.collection.signing import Masks
from lookalike.collection.stores.base import View
from lookalike.collection.stores.schema import EntryKind, Signatures
from lookalike.errors import ResultTooLargeError
from lookalike.operation import stop_if_canceled
from lookalike.signatures.estimates import chance_distance

_FOUND_AT_ONCE = 1 << 18  # signatures within the radius in memory at once, for all queries together
_FOUND = 120  # bytes of each of them, at most
_TOGETHER = 1 << 12  # documents that become answers together
_MATCH = 350  # bytes of a match beside its document
_BIT = 40  # bytes of a differing bit in an explanation
_FILTERED_CHUNK = 512
_PIECE = 1 << 14
"""Documents that are fetched with one statement at most, if each signature has k of them."""
_KEPT = 16 << 20  # bytes of documents that are kept for the next query
_ROW = 600  # bytes of a document beside its metadata and text
_TEXTS = 64
"""Documents that are read with their texts at once: a database may hold all of them in memory."""
_STEP = 1 << 20  # bytes of memory that a budget takes at once, because taking memory takes a lock

_NOTHING = Level([], [], -1)

Taken = TypeVar("Taken")
Near: TypeAlias = tuple[Sequence[int], list[Level] | list[Iterator[Level]]]
"""Positions of queries, and what is near each: all of it, or iterators of more and more."""


class AnswerTooLargeError(ResultTooLargeError):
    """Texts, metadata and explanations have more bytes than the limit."""


@dataclass(eq=False)
class Budget:
    """Limits for the searches of one answer, counted while the answer grows.

        with Budget(1 << 20) as budget:
            docs.answers_each(queries, Question(k=10_000, text=True), take, budget)

    `count` and `change` may raise an error, which ends the search.
    """

    most: int | None = None  # bytes of texts, metadata and explanations in all; None: no limit
    _: KW_ONLY
    matches: int | None = None  # matches of all queries of one search; None: no limit
    beside: int = 0  # more matches, which the caller leaves out
    count: Callable[[int], object] | None = None  # called with the bytes of the answer as it grows
    change: Callable[[int], object] | None = None
    """Called with bytes of memory before they are taken. They are given back with a negative
    number, the last of them at the end of the context."""
    work: list[Work] | None = None  # gets what the search did for each query
    held: int = field(default=0, init=False)  # bytes of memory that are taken
    _spent: int = field(default=0, init=False)
    _taken: int = field(default=0, init=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self.change is not None:
            self.change(-self._taken)
        self.held = self._taken = 0

    def spend(self, size: int) -> None:
        """Add bytes to the answer; raise `AnswerTooLargeError` if it has too many."""
        if self.most is None:
            return
        if self.count is not None:
            self.count(size)
        self._spent += size
        if self._spent > self.most:
            raise AnswerTooLargeError(
                f"the documents of the answer have more than {self.most} bytes; ask for fewer "
                "documents, or without their texts"
            )

    def check_matches(self, found: int) -> None:
        """Refuse a search that has found more matches than the limit, for all its queries."""
        if self.matches is not None and found > self.matches + self.beside:
            raise ResultTooLargeError(
                f"the queries have more than {self.matches} matches in all; send fewer queries, or "
                "use a smaller radius or a limit"
            )

    def hold(self, size: int) -> None:
        """Take memory."""
        self.held += size
        if self.change is not None and self.held > self._taken:
            more = max(_STEP, self.held - self._taken)
            self.change(more)
            self._taken += more

    def release(self, size: int) -> None:
        """Give memory back."""
        self.held -= size
        if self.change is not None and self._taken - self.held > 4 * _STEP:
            less = self._taken - self.held - _STEP
            self._taken -= less
            self.change(-less)


def answers(
    question: Question,
    signatures: Signatures,
    masks: Masks,
    search: NativeLevels | SqlLevels,
    view: View,
    take: Callable[[int, Answer], Taken],
    budget: Budget,
    sparse: bool = False,
) -> list[Taken]:
    """Return what `take` makes of the position of each query and its answer, in order.

    Matches of `sparse` signatures know the set bits, by which their similarity is estimated.
    """
    # Texts are read once it is known which ones are wanted.
    fetcher = DocumentFetcher(view, question, budget)
    before, size, count = budget.held, 0, 0
    results: list[Taken] = []
    for positions, levels in _near(question, signatures, masks, search, budget):
        found_bytes = _FOUND * sum(len(one.numbers) for one in levels if isinstance(one, Level))
        budget.hold(found_bytes)
        for group in _groups(levels, question.k):
            known = [levels[place] for place in group]
            if len(known) > 1:
                fetcher.prefetch(one for one in known if isinstance(one, Level))
            found = []
            for place, near in zip(group, known, strict=True):
                stop_if_canceled()
                at = positions[place]
                found.append(_answer(fetcher, signatures[at], masks[at], near))
                if sparse:
                    _count_ones(fetcher, signatures[at], found[-1])
                count += len(found[-1])
                budget.check_matches(count)
            if question.text:
                add_texts(view, found, budget)
            for place, answer in zip(group, found, strict=True):
                taken = take(positions[place], answer)
                results.append(taken)
                size += len(taken) if isinstance(taken, bytes) else _MATCH * len(answer)
            del found
            fetcher.trim()
            budget.release(budget.held - before - found_bytes - fetcher.held - size)
        budget.release(found_bytes)
    return results


def whole(position: int, answer: Answer) -> Answer:
    """Return the answer: the `take` of a caller that wants whole answers."""
    return answer


def _groups(levels: list[Level] | list[Iterator[Level]], k: int) -> Iterator[list[int]]:
    """Yield positions of queries that are answered together, with few documents in all."""
    group: list[int] = []
    size = 0
    for place, one in enumerate(levels):
        many = min(k, len(one.numbers)) if isinstance(one, Level) else k
        if group and size + many > _TOGETHER:
            yield group
            group, size = [], 0
        group.append(place)
        size += many
    if group:
        yield group


def _near(
    question: Question,
    signatures: Signatures,
    masks: Masks,
    search: NativeLevels | SqlLevels,
    budget: Budget,
) -> Iterator[Near]:
    """Yield what is within the radius of some signatures at a time, or more and more neighbors."""
    bits, radius = 8 * signatures.shape[1], question.radius
    counting = [mask for mask in masks if mask is not None]
    stacked = np.stack(counting) if radius is not None and counting else None  # of all, or of none
    counted = False

    def levels(position: int) -> Iterator[Level]:
        return search.levels(signatures[position], question.k, masks[position])

    def parts(begin: int, end: int, near: int) -> Iterator[Near]:
        some = slice(begin, end)
        masked = None if stacked is None else stacked[some]
        try:
            found = search.within(signatures[some], near, masked, _FOUND_AT_ONCE)
        except ResultTooLargeError:
            if end - begin > 1:
                if end - begin == len(signatures):
                    count_first(near)
                middle = (begin + end) // 2
                yield from parts(begin, middle, near)
                yield from parts(middle, end, near)
                return
        else:
            yield range(begin, end), found
            return
        farthest = joined_bound(near, stacked is not None, bits)
        yield [begin], [_cut(levels(begin), farthest)]

    def count_first(near: int) -> None:
        """Refuse queries with too many matches before any of these becomes a document."""
        nonlocal counted
        if counted or question.predicate is not None or budget.matches is None:
            return
        counted, least = True, 0
        most = question.k if question.limit is None else question.limit
        for _, some in parts(0, len(signatures), near):
            for one in some:
                found = len(one.numbers) if isinstance(one, Level) else _FOUND_AT_ONCE
                least += max(0, min(most, found) - len(question.exclude))
            budget.check_matches(least)

    every = range(len(signatures))
    if radius is None:
        yield every, [levels(position) for position in every]
    elif len(signatures):
        yield from parts(0, len(signatures), min(radius, bits))


def _cut(levels: Iterator[Level], radius: int) -> Iterator[Level]:
    for level in levels:
        if level.bound >= radius:
            end = bisect_right(level.distances, radius)
            yield Level(level.numbers[:end], level.distances[:end], radius, level.work)
            return
        yield level


def _answer(
    fetcher: DocumentFetcher,
    signature: Signatures,
    mask: Signatures | None,
    near: Level | Iterator[Level],
) -> Answer:
    question, budget, state = fetcher.question, fetcher.budget, fetcher.view.state
    if isinstance(near, Level):  # most queries of a batch may have no match
        rows, found = fetcher.first([near]) if near.numbers else ([], near)
    else:
        rows, found = fetcher.first(near)
    if mask is None:
        matches = [match_of(row, distance) for distance, row in rows]
    else:
        matches = [match_of(row, *divmod(distance, state.bits + 1)) for distance, row in rows]
    budget.hold(_MATCH * len(matches))
    if budget.work is not None and found.work is not None:
        budget.work.append(found.work)
    cut = question.limit is not None and len(matches) > question.limit
    if cut:
        matches = matches[: question.limit]
    work = None
    if question.explain:
        _explain(fetcher, signature, mask, matches, found)
        work = found.work
    by_chance = None
    if question.radius is None:
        bits = state.bits if mask is None else int(np.bitwise_count(mask).sum())
        by_chance = chance_distance(bits, state.signatures)
    return Answer(
        matches, version=state.version, exact=not cut, work=work, masked=mask is not None,
        chance_distance=by_chance,
    )  # fmt: skip


def _count_ones(fetcher: DocumentFetcher, query: Signatures, answer: Answer) -> None:
    """Add the number of set bits of the query and of the document to each match."""
    own = int.from_bytes(query.tobytes()).bit_count()
    for match in answer:
        signature = fetcher.signatures[match.id]
        vars(match)["_ones"] = own + int.from_bytes(signature).bit_count()


def _explain(
    fetcher: DocumentFetcher,
    query: Signatures,
    mask: Signatures | None,
    matches: list[Match],
    found: Level,
) -> None:
    """Add to each match the differing bits, those of each slice, and the slices that led to it."""
    slicing, budget = fetcher.view.state.slicing, fetcher.budget
    budget.spend(len(matches) * 8 * len(query))
    apart_in_all = sum(match.distance for match in matches)
    bits = apart_in_all + len(matches) * slicing.count
    budget.hold(len(matches) * 8 * len(query) + _BIT * bits)
    data = b"".join([fetcher.signatures[match.id] for match in matches])
    signatures = np.frombuffer(data, np.uint8).reshape(len(matches), len(query))
    counting = [True] * slicing.count
    if mask is not None:
        query, signatures = query & mask, signatures & mask
        counting = (slicing.differing(np.zeros_like(mask), mask[None])[0] > 0).tolist()
    thresholds = (found.work and found.work.thresholds) or (0,) * slicing.count
    apart = slicing.differing(query, signatures).tolist()
    differing = np.unpackbits(query ^ signatures, axis=1, bitorder="little")
    for match, differs, slices in zip(matches, differing, apart, strict=True):
        hits = (p for p, most in enumerate(thresholds) if slices[p] <= most and counting[p])
        vars(match).update(
            differing_bits=tuple(np.flatnonzero(differs).tolist()),
            slice_distances=tuple(slices),
            slices=tuple(hits),
        )


@dataclass
class DocumentFetcher:
    """Fetches the documents of signatures, and keeps them if they do not take much memory."""

    view: View
    question: Question
    budget: Budget
    text: bool = False  # whether to fetch texts
    signatures: dict[str, bytes] = field(default_factory=dict)
    """The signatures of what was found, by the id of the document."""
    held: int = 0  # bytes of memory of the documents
    _rows: dict[int, list[Row]] = field(default_factory=dict)
    _here: dict[str, int] = field(default_factory=dict)
    """The documents in `_rows`, and the bytes of each."""

    def first(self, levels: Iterable[Level]) -> tuple[list[tuple[int, Row]], Level]:
        """Return the first k documents by (distance, id), and the last level that was needed.

        Each level holds all signatures up to its bound, so its documents are final. Later levels,
        which may reach less far, are used beyond what earlier ones held.
        """
        k = self.question.k
        result: list[tuple[int, Row]] = []
        found, done = _NOTHING, -1
        for level in levels:
            found, begin = level, bisect_right(level.distances, done)
            done = max(done, level.bound)
            while begin < len(level.numbers) and len(result) < k:
                end = self._chunk_end(level.distances, begin, k - len(result))
                for piece in range(begin, end, self._piece):
                    stop_if_canceled()
                    last = min(end, piece + self._piece)
                    self.fetch(level.numbers[piece:last])
                    for place in range(piece, last):
                        distance = level.distances[place]
                        result += [(distance, row) for row in self._rows[level.numbers[place]]]
                    if self._much:  # of many at the same distance, keep the first by id
                        result = _first(result, k)
                        self.forget({row.id for _, row in result})
                begin = end
            if len(result) >= k:
                break
        return _first(result, k), found

    @property
    def _piece(self) -> int:
        """The number of signatures whose documents are fetched with one statement."""
        if self.view.state.documents - self.view.state.signatures <= _PIECE:
            return _PIECE
        return max(16, _PIECE // (self.question.k + len(self.question.exclude)))

    def forget(self, found: Container[str] = ()) -> None:
        """Keep only the signatures of what was found."""
        self.budget.release(self.held)
        self.budget.spend(-sum(size - _ROW for id, size in self._here.items() if id not in found))
        self.signatures = {id: one for id, one in self.signatures.items() if id in found}
        self._rows, self._here = {}, {}
        self.held = 0

    def trim(self) -> None:
        """Forget what was fetched for answered queries, if it is much."""
        if self._much:
            self.forget(self._here)
            self.signatures = {}

    @property
    def _much(self) -> bool:
        return self.held > _KEPT or len(self._rows) > 4 * _PIECE

    def prefetch(self, founds: Iterable[Level]) -> None:
        """Fetch the documents that several queries need in any case, with one statement."""
        wanted: set[int] = set()
        for found in founds:
            if found.numbers:
                end = self._chunk_end(found.distances, 0, self.question.k)
                wanted.update(found.numbers[:end])
        self.fetch(sorted(wanted))

    def fetch(self, numbers: Sequence[int]) -> None:
        """Fetch the documents of signatures that have not been fetched yet."""
        missing = [number for number in numbers if number not in self._rows]
        for begin in range(0, len(missing), self._piece):
            self._fetch(missing[begin : begin + self._piece])

    def _fetch(self, missing: list[int]) -> None:
        found: dict[int, list[Row]] = {number: [] for number in missing}
        without = set(missing)
        # Excluded ones may come first, so that many more are needed.
        k, question = self.question.k, self.question
        each = None if question.predicate else k + len(question.exclude)
        for number, row, signature in self._documents(missing, each):
            known = check_row(row, signature, self.text)
            if number not in found:
                raise damaged(f"the document {row.id[:80]!r} was found by another signature")
            without.discard(number)
            if not self._allowed(row):  # they may be many, so nothing of them is held
                continue
            if row.id in self._here:
                raise damaged(f"the document {row.id[:80]!r} exists twice")
            if row.text is not None and not self.text:
                row = row._replace(text=None)  # it came for its checksum alone
            size = len(row.metadata) + len(row.text or b"")
            self.budget.spend(size)
            self.budget.hold(size + _ROW)
            self.held += size + _ROW
            self._here[row.id] = size + _ROW
            self.signatures[row.id] = known
            found[number].append(row)
            if len(found[number]) > 2 * k + _PIECE:
                self._drop_last(found[number])
        for number in without:
            raise damaged(f"the signature {number} has no document")
        self._rows.update(found)

    def _documents(
        self, numbers: list[int], each: int | None
    ) -> Iterator[tuple[int, Row, bytes | None]]:
        """Yield documents and their signatures, each with the number that it was found by."""
        for row, signature in self.view.documents_of(numbers, each, self.text):
            yield row.signature, row, signature

    def _drop_last(self, rows: list[Row]) -> None:
        """Keep the first k documents of one signature, by id."""
        rows.sort(key=lambda row: row.id)
        for row in rows[self.question.k :]:
            del self.signatures[row.id]
            size = self._here.pop(row.id)
            self.held -= size
            self.budget.release(size)
            self.budget.spend(_ROW - size)
        del rows[self.question.k :]

    def _allowed(self, row: Row) -> bool:
        if row.id in self.question.exclude:
            return False
        predicate = self.question.predicate
        return predicate is None or bool(predicate(decoded_metadata(row)))

    def _chunk_end(self, distances: list[int], begin: int, missing: int) -> int:
        """Return the end of the signatures to fetch, which is the end of a distance."""
        if self.question.predicate:
            missing = max(missing, _FILTERED_CHUNK)
        if begin + missing >= len(distances):
            return len(distances)
        return bisect_right(distances, distances[begin + missing - 1])


class EntryFetcher(DocumentFetcher):
    """Fetches the documents of entries beside documents, one of each."""

    kind: ClassVar[EntryKind]

    def _documents(
        self, numbers: list[int], each: int | None
    ) -> Iterator[tuple[int, Row, bytes | None]]:
        yield from self.view.documents_with(self.kind, numbers, self.text)


def _first(rows: list[tuple[int, Row]], k: int) -> list[tuple[int, Row]]:
    if len(rows) > 1:
        rows.sort(key=lambda one: (one[0], one[1].id))
    return rows[:k]


def rows_with_texts(view: View, ids: Sequence[str]) -> Iterator[tuple[Row, bytes]]:
    """Yield documents of these ids and their signatures; raise if one is not as written."""
    for begin in range(0, len(ids), _TEXTS):
        for row, signature in view.documents(ids[begin : begin + _TEXTS]):
            yield row, check_row(row, signature)


def add_texts(view: View, answers: Iterable[Answer], budget: Budget) -> None:
    """Add the texts of all matches."""
    wanted: dict[str, list[dict[str, object]]] = {}
    for answer in answers:
        for match in answer:
            wanted.setdefault(match.id, []).append(vars(match))
    for row, _ in rows_with_texts(view, list(wanted)):
        text = decoded_text(row)
        places = wanted.pop(row.id)
        budget.spend(len(row.text or b"") * len(places))
        if text is not None:
            for fields in places:
                fields["text"] = text
    for id in wanted:
        raise damaged(f"the document {id[:80]!r} was found, but cannot be read")
