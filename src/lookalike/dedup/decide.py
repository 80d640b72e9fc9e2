"""Decide which items are kept: one function over pairs, ranks and settings.

Texts, vectors, media, ready-made pairs and Spark call `decide` alike. It does not know how items
are read or compared; for the similarity of further pairs it calls back.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.dedup.pairs import (
    Flags,
    Floats,
    Ints,
    VerifiedPairs,
    in_order,
    known_similarities,
    merged,
    most_similar,
)
from lookalike.dedup.settings import DedupSettings
from lookalike.errors import ArgumentError
from lookalike.shown import brief, counted
from lookalike.signatures.arrays import distinct

ROUNDS = 30
"""Of comparing kept items. Each finds at least one pair, and most jobs end after two or three."""

LEADERS = 8
"""Of the kept items that share a dropped neighbor, all are compared with this many."""


class Compare(Protocol):
    """Compares pairs of items."""

    def __call__(self, left: Ints, right: Ints, *, screen: bool) -> VerifiedPairs:
        """Return pairs with their similarities.

        With `screen`, pairs that are clearly below the threshold may be left out.
        """


@dataclass(eq=False)
class FoundPairs:
    """The given pairs, and those that comparing kept items adds.

    In a large group, an item was compared with the best ones and a few others only, and signatures
    do not propose every pair. If those are dropped, all others would be kept. So kept items that
    share a dropped neighbor are compared.
    """

    pairs: VerifiedPairs
    rejected: VerifiedPairs
    """The most similar pairs that were compared and are below the threshold."""
    proposed: int = 0
    """Pairs that were given to `compare`, and those that it returned."""
    compared: int = 0
    exhausted: bool = False
    """Whether the last round of comparing kept items still found a pair."""

    def compare_kept(
        self, order_of: Callable[[VerifiedPairs], _Order], threshold: float, compare: Compare
    ) -> None:
        """Compare kept items that share a dropped neighbor until no pair is found."""
        done: Ints = np.empty(0, np.int64)
        for _ in range(ROUNDS):
            order = order_of(self.pairs)
            unmet = unmet_pairs(order.deciding(self.pairs), order.best, order.old)
            unmet = np.setdiff1d(unmet, done, assume_unique=True)
            if not len(unmet):
                return
            done = np.union1d(done, unmet)
            some = compare(*np.divmod(unmet, len(order.rank)), screen=True)
            near = some.similarity >= threshold
            self.pairs = merged(self.pairs, some[near])
            self.rejected = most_similar(in_order([self.rejected, some[~near]]))
            self.proposed += len(unmet)
            self.compared += len(some)
            if not near.any():
                return
        self.exhausted = True


@dataclass(eq=False, kw_only=True)
class Decision(FoundPairs):
    """Which items are kept; arrays have an element per item."""

    group_of: Ints
    """The first item of each item's group; the item itself if it is alone."""
    duplicate_of: Ints
    """The item that a dropped one is a duplicate of; -1 for kept items."""
    similarity: Floats
    """With that item; NaN for kept items, and where it is unknown."""
    warnings: tuple[str, ...]
    split: int
    """Components that were too large and became stars."""
    largest: int
    """Different items of the largest component."""


def decide(
    pairs: VerifiedPairs,
    rank: Ints,
    settings: DedupSettings,
    *,
    first: Ints | None = None,
    old: int = 0,
    sizes: Ints | None = None,
    choices: GroupChoices | None = None,
    compare: Compare | None = None,
    complete: bool = False,
) -> Decision:
    """Return which items are kept, and which kept item each dropped one is a duplicate of.

    "star": an item is kept unless it is a pair with a better one that was kept already. So every
    dropped item is a pair with the kept one, or equal to it, and no two kept items are a pair.
    "components": one item is kept of all that pairs connect. A component of more than `max_group`
    different items becomes stars. With `keep="none"`, every item that has a duplicate is dropped.

    Args:
        pairs: Pairs of different items at or above the threshold, each once, by (left, right).
        rank: The order in which items are kept, from 0: see `rule_ranks` and `rank_by`.
        settings: `grouping`, `max_group`, `keep` and `threshold` are used.
        first: For each item the first equal one; pairs are of these (default: all differ).
        old: The number of items of an old corpus, the first ones: never dropped, never a pair.
        sizes: For containment, the number of features; the larger item of a pair is kept.
        choices: Asks the function that `keep` is; its answers take the place of `rank`.
        compare: Compares kept items that share a dropped neighbor until no pair is found, and
            dropped items with the kept one that a chain of pairs connects them with.
        complete: Every pair at the threshold is known, so that kept items need no comparison.
    """
    count = len(rank)
    first = np.arange(count) if first is None else first
    if sizes is not None:
        sizes = sizes[first]
        rank = rank_by(-sizes, rank, old=old)
    ranked = _Order(rank, best_of_equals(rank, first), old, sizes, settings.direction)

    def order_of(pairs: VerifiedPairs) -> _Order:
        if choices is None:
            return ranked
        chosen = choices.ranks(pairs)
        return _Order(chosen, best_of_equals(chosen, first), old, None, settings.direction)

    found = FoundPairs(pairs, pairs[:0])
    if compare is not None and settings.grouping == "star" and not complete:
        found.compare_kept(order_of, settings.threshold, compare)
    order = order_of(found.pairs)
    deciding = order.deciding(found.pairs)
    labels, split, largest = _groups(first, deciding, settings, order.best)
    if settings.keep == "none":
        duplicate_of = _drop_groups(first, old, deciding)
        # Only the center of a star can be alone and dropped: its pairs are all in other stars.
        alone = (np.bincount(labels, minlength=len(labels))[labels] == 1) & (duplicate_of >= 0)
        labels = by_first(np.where(alone, labels[duplicate_of], labels), len(labels))
    else:
        duplicate_of = _choose(labels, first, order.rank, old, deciding)
    warnings = split_warnings(split, largest, settings.max_group)
    return Decision(
        **vars(found),
        group_of=labels,
        duplicate_of=duplicate_of,
        similarity=_similarities(first, duplicate_of, deciding, compare),
        warnings=((rounds_exhausted_warning(),) if found.exhausted else ()) + warnings,
        split=split,
        largest=largest,
    )


def rule_ranks(
    settings: DedupSettings,
    count: int,
    *,
    old: int = 0,
    lengths: Ints | None = None,
    order: Ints | None = None,
) -> Ints:
    """Return the order in which items are kept: old items, then by the rule, then by position.

    `lengths` are for "longest" and "shortest"; `order`, dense ranks of the items with -1 for
    missing values, is for "max:COLUMN" and "min:COLUMN".
    """
    positions = np.arange(count)
    rule = settings.keep_rule.partition(":")[0]
    if rule == "first":
        return positions
    if rule == "last":
        return rank_by(-positions, old=old)
    if rule in ("longest", "shortest"):
        if lengths is None:
            raise ValueError("the lengths were not read")
        return rank_by(-lengths if rule == "longest" else lengths, old=old)
    if order is None:
        raise ValueError("the deciding column was not read")
    return rank_by(np.where(order < 0, count + 1, -order if rule == "max" else order), old=old)


def rank_by(*keys: NDArray[Any], old: int = 0) -> Ints:
    """Return the place of each item by these keys, ascending, then by position; old items first."""
    positions = np.arange(len(keys[0]))
    rank = np.empty(len(positions), np.int64)
    rank[np.lexsort((positions, *reversed(keys), positions >= old))] = positions
    return rank


def best_of_equals(rank: Ints, first: Ints) -> Ints:
    """Return ranks in which the first of equal items has the rank of the best of them."""
    best = np.full(len(rank), len(rank), np.int64)
    np.minimum.at(best, first, rank)
    return np.where(best < len(rank), best, rank)


@dataclass(frozen=True, eq=False)
class _Order:
    """The order in which items are kept."""

    rank: Ints
    """A total order; old items come first, whatever their size."""
    best: Ints
    """The same, but the first of equal items has the rank of the best of them."""
    old: int
    sizes: Ints | None
    direction: str

    def deciding(self, pairs: VerifiedPairs) -> VerifiedPairs:
        """Return the pairs in which the worse item may be dropped for the better one.

        Not pairs of two old items; nor, for containment, those of the other direction.
        """
        if not self.old:
            return pairs
        decided = pairs.right >= self.old
        if self.sizes is not None:
            old, new = self.sizes[pairs.left], self.sizes[pairs.right]
            if self.direction != "either":
                wanted = new <= old if self.direction == "contained" else new >= old
                decided &= (pairs.left >= self.old) | wanted
        return pairs if decided.all() else pairs[decided]


def unmet_pairs(pairs: VerifiedPairs, rank: Ints, old: int) -> Ints:
    """Return pairs of items that would be kept and share a dropped neighbor.

    As `left * count + right`, ascending, without pairs of two old items. Of many items with the
    same neighbor, each is paired with the best old ones, the best new ones and some that follow it.
    """
    count = len(rank)
    kept = _stars(count, pairs, rank) == np.arange(count)
    one = np.concatenate([pairs.left, pairs.right])
    two = np.concatenate([pairs.right, pairs.left])
    which = np.flatnonzero(~kept[one] & kept[two])
    order = which[np.lexsort((rank[two[which]], one[which]))]
    dropped, staying = one[order], two[order]
    begins = np.flatnonzero(np.diff(dropped, prepend=-1))
    sizes = np.diff(begins, append=len(dropped))
    place = np.arange(len(dropped)) - np.repeat(begins, sizes)
    olds = np.add.reduceat((staying < old).astype(np.int64), begins) if len(begins) else sizes
    place_of_new = place - np.repeat(olds, sizes)
    leads = (place < LEADERS) | ((place_of_new >= 0) & (place_of_new < LEADERS))
    behind = np.repeat(sizes, sizes) - 1 - place
    partners = np.where(leads, behind, np.minimum(behind, LEADERS))
    step = np.arange(partners.sum()) - np.repeat(np.cumsum(partners) - partners, partners)
    left = np.repeat(staying, partners)
    right = staying[np.repeat(np.arange(len(staying)), partners) + 1 + step]
    left, right = np.minimum(left, right), np.maximum(left, right)
    wanted = right >= old
    return distinct(left[wanted] * count + right[wanted])


def rounds_exhausted_warning() -> str:
    """Return the warning for a job whose rounds of comparing kept items did not end."""
    return (
        f"after {ROUNDS} rounds of comparing kept documents, some of them may still be "
        "near-duplicates; de-duplicate the kept documents once more"
    )


def _groups(
    first: Ints, pairs: VerifiedPairs, settings: DedupSettings, rank: Ints
) -> tuple[Ints, int, int]:
    """Return the group of each item, how many components were split, and the largest size."""
    count = len(first)
    if settings.grouping == "star":
        return by_first(_stars(count, pairs, rank)[first], count), 0, 0
    labels, sizes = _components(count, pairs)
    large = sizes > settings.max_group
    if large.any():
        in_large = large[labels]
        labels[in_large] = _stars(count, pairs[large[labels[pairs.left]]], rank)[in_large]
    return by_first(labels[first], count), int(large.sum()), int(sizes.max(initial=0))


def _components(count: int, pairs: VerifiedPairs) -> tuple[Ints, Ints]:
    """Return the component of each item, and the number of items in pairs by component."""
    labels = np.empty(count, np.int64)
    _native.components(pairs.left, pairs.right, labels)
    members = distinct(np.concatenate([pairs.left, pairs.right]))
    return labels, np.bincount(labels[members], minlength=count)


def split_warnings(split: int, largest: int, most: int) -> tuple[str, ...]:
    """Return the warning for components of more than `most` items that were split."""
    if not split:
        return ()
    return (
        f"{counted(split, 'group')} had more than {most:,} different documents "
        f"(the largest {largest:,}): probably chains, of which neighbors are similar and the ends "
        "are not. They were split, so that each dropped document is similar to the kept one. A "
        "higher threshold makes shorter chains; star groups have none",
    )


def _stars(count: int, pairs: VerifiedPairs, rank: Ints) -> Ints:
    """Return the center of each item: by rank, an item without a center becomes one, and that of
    its neighbors without a center.
    """
    labels = np.empty(count, np.int64)
    _native.stars(np.argsort(rank, kind="stable"), pairs.left, pairs.right, labels)
    return labels


def by_first(labels: Ints, bound: int) -> Ints:
    """Name each group by the position of its first member; labels are below `bound`."""
    least = np.full(bound, len(labels), np.int64)
    np.minimum.at(least, labels, np.arange(len(labels)))
    return least[labels]


def split_old(decision: Decision, old: int) -> tuple[Ints, Ints, Ints]:
    """Return for each new item what replaces it, among the new and among the old items, or -1.

    Then the first new item of its group. All three are positions among the new or the old items.
    """
    stands_for = decision.duplicate_of[old:]
    own = np.where(stands_for >= old, stands_for - old, -1)
    matched = np.where(stands_for < old, stands_for, -1)
    return own, matched, by_first(decision.group_of[old:], len(decision.group_of))


def _choose(labels: Ints, first: Ints, rank: Ints, old: int, pairs: VerifiedPairs) -> Ints:
    """Return for each item the one that it is a duplicate of; -1 for kept items.

    The best item of each group is kept: of a star its center, or an item equal to it. A new item
    that is a pair with old ones is a duplicate of the most similar of these; centers never are,
    because every old item is a center itself.
    """
    best = np.full(len(labels), len(labels), np.int64)
    np.minimum.at(best, labels, rank)
    kept = np.argsort(rank, kind="stable")[best[labels]]
    duplicate_of = np.where(kept == np.arange(len(labels)), -1, kept)
    if old:
        matched = (pairs.left < old) & (pairs.right >= old)
        left, right = pairs.left[matched], pairs.right[matched]
        order = np.lexsort((left, -pairs.similarity[matched], right))
        news, firsts = np.unique(right[order], return_index=True)
        match = np.full(len(labels), -1, np.int64)
        match[news] = left[order][firsts]
        match = match[first]  # equal items have the same match
        equal_to_old = (first < old) & (np.arange(len(labels)) >= old)
        match[equal_to_old] = first[equal_to_old]
        duplicate_of = np.where(match >= 0, match, duplicate_of)
        duplicate_of[:old] = -1
    return duplicate_of


def _drop_groups(first: Ints, old: int, pairs: VerifiedPairs) -> Ints:
    """Return for each item one that it is a duplicate of; -1 for items that have none.

    That is the most similar old one, else the first other equal item, else the most similar one.
    """
    one = np.concatenate([pairs.left, pairs.right])
    two = np.concatenate([pairs.right, pairs.left])
    similarity = np.concatenate([pairs.similarity, pairs.similarity])
    order = np.lexsort((two, -similarity, two >= old, one))
    items, places = np.unique(one[order], return_index=True)
    found = np.full(len(first), -1, np.int64)
    found[items] = two[order][places]
    in_old = (found >= 0) & (found < old)
    copies = np.flatnonzero(first != np.arange(len(first)))
    originals, places = np.unique(first[copies], return_index=True)
    found[originals] = np.where(in_old[originals], found[originals], copies[places])
    found[copies] = np.where(in_old[first[copies]], found[first[copies]], first[copies])
    found[:old] = -1
    return found


def _similarities(
    first: Ints, duplicate_of: Ints, pairs: VerifiedPairs, compare: Compare | None
) -> Floats:
    """Return the similarity of each dropped item with the one it is a duplicate of, else NaN."""
    count = len(first)
    similarity = np.full(count, np.nan)
    dropped = np.flatnonzero(duplicate_of >= 0)
    similarity[dropped] = 1.0
    # Equal items have equal answers, so each pair of different ones is looked at once.
    one, two = first[duplicate_of[dropped]], first[dropped]
    differ = one != two
    keys, places = np.unique(
        (np.minimum(one, two) * count + np.maximum(one, two))[differ], return_inverse=True
    )
    found = known_similarities(pairs, keys, count)
    unknown = np.flatnonzero(np.isnan(found))
    if compare is not None and len(unknown):
        left, right = np.divmod(keys[unknown], count)
        found[unknown] = compare(left, right, screen=False).similarity
    similarity[dropped[differ]] = found[places]
    return similarity


@dataclass(eq=False)
class GroupChoices:
    """Asks a function which item of each group to keep, and turns its answers into ranks.

    A group is what pairs and equal items connect. The chosen item is kept, its near-duplicates are
    dropped, and the function is asked again about the others until none is left. So no two chosen
    items are a pair, and every other item is a pair with a chosen one. The function is asked once
    about the same items. A group of "components" has one choice.

    `chooser` gets the rows of a group, and returns one of them or its position. `read`
    returns the rows at some positions.
    """

    chooser: Callable[[list[dict[str, Any]]], Any]
    settings: DedupSettings
    first: Ints
    old: int
    read: Callable[[Ints], list[dict[str, Any]]]
    _rows: dict[int, dict[str, Any]] = field(default_factory=dict, init=False)
    _answers: dict[bytes, int] = field(default_factory=dict, init=False)

    def ranks(self, pairs: VerifiedPairs) -> Ints:
        """Return the order of items: old ones, the choices as they were made, the others."""
        count = len(self.first)
        split = self._split(pairs)
        gone = np.zeros(count, bool)  # because of an old one
        gone[pairs.right[pairs.left < self.old]] = True
        gone[: self.old] = True
        gone = gone[self.first]
        pairs = pairs[~gone[pairs.left] & ~gone[pairs.right]]
        labels = _components(count, pairs)[0][self.first]
        members = np.flatnonzero((np.bincount(labels, minlength=count)[labels] > 1) & ~gone)
        missing = members[[position not in self._rows for position in members.tolist()]]
        if len(missing):
            self._rows.update(zip(missing.tolist(), self.read(missing), strict=True))
        members = members[np.argsort(labels[members], kind="stable")]
        groups = np.split(members, np.flatnonzero(np.diff(labels[members])) + 1)
        neighbors = _neighbors(pairs)
        choices = [
            row
            for group in groups
            if len(group)
            for row in self._ask(group, neighbors, once=not split[self.first[group[0]]])
        ]
        order = np.concatenate([np.arange(self.old), np.array(choices, np.int64)])
        others = np.setdiff1d(np.arange(count), order, assume_unique=True)
        rank = np.empty(count, np.int64)
        rank[np.concatenate([order, others])] = np.arange(count)
        return rank

    def _split(self, pairs: VerifiedPairs) -> Flags:
        """Return which items are in groups that are stars, and not a whole component.

        As in `_groups`, items that are dropped because of an old one count.
        """
        if self.settings.grouping != "components":
            return np.ones(len(self.first), bool)
        labels, sizes = _components(len(self.first), pairs)
        large: Flags = sizes > self.settings.max_group
        return large[labels]

    def _ask(self, group: Ints, neighbors: dict[int, Ints], *, once: bool) -> list[int]:
        """Return the kept items of a group in the order of the choices; only one if `once`."""
        choices: list[int] = []
        while len(group) > 1:
            choices.append(self._choice(group))
            if once:
                break
            center = int(self.first[choices[-1]])
            like = np.append(neighbors.get(center, np.empty(0, np.int64)), center)
            group = group[~np.isin(self.first[group], like)]
        return choices

    def _choice(self, group: Ints) -> int:
        known = self._answers.get(group.tobytes())
        if known is not None:
            return known
        rows = [self._rows[position] for position in group.tolist()]
        given = list(rows)
        answer = self.chooser(given)
        chosen = answer
        if isinstance(answer, SupportsIndex) and not isinstance(answer, bool | np.bool_):
            at = operator.index(answer)
            # The list is the function's own: it may have sorted it before it said which.
            chosen = given[at] if 0 <= at < len(given) else None
        place = next((at for at, row in enumerate(rows) if row is chosen), None)
        if place is None:
            raise ArgumentError(
                f"keep returned {brief(answer)} for a group of {len(rows):,}; expected one of the "
                "rows that it was given, or its position among them, from 0"
            )
        self._answers[group.tobytes()] = int(group[place])
        return int(group[place])


def _neighbors(pairs: VerifiedPairs) -> dict[int, Ints]:
    """Return for each item those that it is a pair with."""
    one = np.concatenate([pairs.left, pairs.right])
    two = np.concatenate([pairs.right, pairs.left])
    order = np.argsort(one, kind="stable")
    keys, begins = np.unique(one[order], return_index=True)
    parts = np.split(two[order], begins[1:]) if len(keys) else []
    return dict(zip(keys.tolist(), parts, strict=True))
