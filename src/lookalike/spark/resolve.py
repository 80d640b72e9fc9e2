"""Steps 5 to 7, verify, group and choose, of documents that pairs connect.

All that is needed of them comes to one task, as rows of several kinds, so that nothing has to be
joined before. There `lookalike.dedup.decide` decides, as in the local job.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.corpora.base import pa
from lookalike.dedup.decide import Decision, GroupChoices, decide, rank_by
from lookalike.dedup.pairs import Floats, Ints, VerifiedPairs
from lookalike.dedup.propose import promising
from lookalike.dedup.rarity import FeatureWeights
from lookalike.dedup.settings import DedupSettings
from lookalike.dedup.verify import Comparer
from lookalike.signatures.arrays import distinct
from lookalike.spark.collapse import EQUALS
from lookalike.spark.packed import Batches, by_kind, bytes_of, rows_of, signatures_of, table_of
from lookalike.spark.signing import documents_of

GATHERED = (
    "place int, kind int, position long, value long, data binary, text string, name string, "
    "similarity double"
)
"""And `row`, a structure of all columns, where `keep` is a function."""

PAIRS, SIGNATURE, EQUAL, TEXT, COPIED = range(5)
"""Pairs, as `position` and `value`, with their similarity if it is known; the signature of a
document and what decides whether it is kept; entries of equal texts; texts, and names of documents
where these are wanted; copies with their firsts, where all are in one place.
"""

RESOLVED = (
    "kind int, first long, group_id long, kept long, center long, similarity double, "
    "distance int, told binary, left_name string, right_name string"
)
"""For each first of equal texts that has pairs: its group, the kept document (or
itself), the first with the text of that one, and how similar the two are.
"""

GROUP, FOUND, SAME, TOLD = range(4)
"""The rows above; verified pairs, as `first` and `group_id`; equal texts as pairs; the facts."""


@dataclass(frozen=True)
class ResolvedFacts:
    """Counts of documents that have pairs."""

    texts: int = 0
    """That have copies."""
    copies: int = 0
    groups: int = 0
    largest: int = 0
    dropped: int = 0
    estimated: int = 0
    """Copies that are dropped for another text by estimated similarities."""
    compared: int = 0
    verified: int = 0
    split: int = 0
    split_largest: int = 0
    exhausted: int = 0
    """Whether the rounds of comparing kept documents did not end."""

    @classmethod
    def of(cls, told: list[bytes]) -> ResolvedFacts:
        """Return the sum of packed counts."""
        names = [field.name for field in fields(cls)]
        columns = np.frombuffer(b"".join(told), np.int64).reshape(-1, len(names)).T
        most = ("largest", "split_largest", "exhausted")
        return cls(
            **{
                name: int(column.max(initial=0) if name in most else column.sum())
                for name, column in zip(names, columns, strict=True)
            }
        )

    def __add__(self, other: ResolvedFacts) -> ResolvedFacts:
        return ResolvedFacts.of([self.packed(), other.packed()])

    def packed(self) -> bytes:
        """Return all counts as bytes."""
        return np.array(list(vars(self).values()), np.int64).tobytes()


@dataclass(frozen=True, eq=False)
class Arranged:
    """Documents by position: those that have pairs, and the second and best of equal texts."""

    positions: Ints
    first: Ints
    rank: Ints
    own: Ints
    """Where the documents with pairs are."""


def arrange(position: Ints, value: Ints, second: Ints, best: Ints, best_value: Ints) -> Arranged:
    """Return documents in order; a second of -1 says that there are no copies."""
    has_copies = second >= 0
    positions = distinct(np.concatenate([position, best, second[has_copies]]))
    own = np.searchsorted(positions, position)
    first = np.arange(len(positions))
    values = np.full(len(positions), np.iinfo(np.int64).max)
    for copy, what in ((second, None), (best, best_value)):
        at = np.searchsorted(positions, copy[has_copies])
        first[at] = own[has_copies]
        if what is not None:
            values[at] = what[has_copies]
    values[own] = value
    return Arranged(positions, first, rank_by(values), own)


def _with_copies(position: Ints, firsts: Ints, copies: Ints) -> Arranged:
    """Return documents in order, with all copies of texts, in the order of their positions."""
    positions = distinct(np.concatenate([position, firsts, copies]))
    own, of_firsts, of_copies = (
        np.searchsorted(positions, some) for some in (position, firsts, copies)
    )
    first = np.arange(len(positions))
    first[of_copies] = of_firsts
    return Arranged(positions, first, np.arange(len(positions)), own)


def resolve(
    settings: DedupSettings, old: int, rarity: Any | None, batches: Batches
) -> Iterator[Any]:
    """Compare the documents of a place, the first `old` of which are old; see `RESOLVED`."""
    table = table_of(batches)
    if table is not None:
        weights = None if rarity is None else rarity.value
        yield from _Place(table, settings, old, weights).resolved()


class _Place:
    """What has come to one place."""

    def __init__(
        self, table: Any, settings: DedupSettings, old: int, rarity: FeatureWeights | None
    ) -> None:
        self.settings = settings
        pairs, signed, equal_rows, texts, copied = by_kind(table, *range(5))
        texts, signed = texts.sort_by("position"), signed.sort_by("position")
        self.named = texts
        self.copied = [copied[side].to_numpy() for side in ("position", "value")]
        position, value = (signed[name].to_numpy() for name in ("position", "value"))
        equal = np.frombuffer(bytes_of(equal_rows["data"]), EQUALS)
        equal = equal[np.argsort(equal["first"])]
        second, best, best_value = np.full(len(position), -1), position.copy(), value.copy()
        at = np.searchsorted(position, equal["first"])
        second[at], best[at], best_value[at] = equal["second"], equal["best"], equal["best_value"]
        if callable(settings.keep):  # it is given every copy
            arranged = _with_copies(position, *self.copied)
        else:
            arranged = arrange(position, value, second, best, best_value)
        self.positions, self.first, self.rank = arranged.positions, arranged.first, arranged.rank
        count = len(self.positions)
        self.old = int(np.searchsorted(self.positions, old))
        self.sizes = np.bincount(self.first, minlength=count)
        self.sizes[arranged.own[at]] = equal["count"]
        compared = texts.filter(pa.compute.is_in(texts["position"], pa.array(position)))
        strings = compared["text"].cast(pa.large_string()).combine_chunks()
        at_text = np.full(count, -1)  # documents that are not compared have no text
        own = np.searchsorted(self.positions, compared["position"].to_numpy())
        at_text[own] = np.arange(len(own))
        documents, lengths = documents_of(strings.take(pa.array(at_text, mask=at_text < 0)))
        rows = signatures_of(signed["data"], settings.signer().bits // 8)
        own = arranged.own
        self.compare = Comparer(settings, rows, own, documents, lengths, rarity=rarity)
        self.pairs = [pairs[side].to_numpy() for side in ("position", "value")]
        self.similarity: Floats = pairs["similarity"].fill_null(np.nan).to_numpy()
        self.choices: GroupChoices | None = None
        if callable(settings.keep):
            self.choices = GroupChoices(
                settings.keep, settings, self.first, self.old, self._read_rows
            )

    def _read_rows(self, documents: Ints) -> list[dict[str, Any]]:
        at = np.searchsorted(self.named["position"].to_numpy(), self.positions[documents])
        rows: list[dict[str, Any]] = self.named["row"].take(pa.array(at)).to_pylist()
        return rows

    def resolved(self) -> Iterator[Any]:
        """Yield the groups of documents, verified and equal pairs, and the facts."""
        accepted, compared = self._verified()
        settings = self.settings
        decision = decide(
            accepted,
            self.rank,
            settings,
            first=self.first,
            old=self.old,
            sizes=self.compare.sizes(accepted) if settings.contains else None,
            choices=self.choices,
            compare=self.compare,
            complete=not settings.by_signatures,
        )
        pairs = decision.pairs
        members = distinct(np.concatenate([pairs.left, pairs.right]))
        if self.choices is not None:  # it was asked about equal texts, too
            several = np.flatnonzero(self.sizes > 1)
            members = distinct(np.concatenate([members, several]))
        groups, center = group_rows(decision, members, self.first, self.positions)
        yield rows_of(RESOLVED, kind=GROUP, **groups)
        at = self.positions
        yield self._pairs(FOUND, at[pairs.left], at[pairs.right], pairs.similarity, pairs.distance)
        left, right = self.copied
        yield self._pairs(SAME, left, right, np.ones(len(left)), 0)
        facts = self._facts(decision, members, center, compared)
        yield rows_of(RESOLVED, kind=TOLD, told=[facts.packed()])

    def _pairs(
        self,
        kind: int,
        left: Ints,
        right: Ints,
        similarity: Floats,
        distance: NDArray[np.int32] | int,
    ) -> Any:
        return rows_of(
            RESOLVED,
            kind=kind,
            first=left,
            group_id=right,
            similarity=similarity,
            distance=distance,
            left_name=self._names(left),
            right_name=self._names(right),
        )

    def _names(self, positions: Ints) -> Any:
        """Return the names of documents; null where they are not wanted."""
        known = self.named["position"].to_numpy()
        at = np.searchsorted(known, positions)
        there = np.append(known, -1)[at] == positions
        return self.named["name"].take(pa.array(at, mask=~there)).combine_chunks()

    def _verified(self) -> tuple[VerifiedPairs, int]:
        """Return the pairs at or above the threshold, and the number of compared pairs."""
        left, right = (np.searchsorted(self.positions, side) for side in self.pairs)
        order = np.lexsort((right, left))
        left, right, similarity = left[order], right[order], self.similarity[order]
        distances = self.compare.distances(left, right)
        near = np.isnan(similarity) & promising(distances, self.settings)
        compared = self.compare.similarities(left[near], right[near], distances[near])
        similarity[near] = compared.similarity
        found = VerifiedPairs(left, right, similarity, distances)
        return found[similarity >= self.settings.threshold], len(compared)

    def _facts(
        self, decision: Decision, members: Ints, center: Ints, compared: int
    ) -> ResolvedFacts:
        sizes = self.sizes[members]
        in_groups = np.bincount(decision.group_of[members], sizes).astype(np.int64)
        groups, none = int((in_groups > 0).sum()), self.settings.keep == "none"
        others = (sizes - 1)[center != members].sum()
        return ResolvedFacts(
            texts=int((sizes > 1).sum()),
            copies=int((sizes - 1).sum()),
            groups=int((in_groups > 1).sum()),
            largest=int(in_groups[in_groups > 1].max(initial=0)),
            dropped=int(sizes.sum()) - (0 if none else groups),
            estimated=0 if none or self.settings.verify else int(others),
            compared=compared + decision.compared,
            verified=len(decision.pairs),
            split=decision.split,
            split_largest=decision.largest,
            exhausted=int(decision.exhausted),
        )


def group_rows(
    decision: Decision, members: Ints, first: Ints, positions: Ints
) -> tuple[dict[str, Any], Ints]:
    """Return the columns of `RESOLVED` for members of groups, and the center of each."""
    named = decision.duplicate_of[members]
    kept = np.where(named < 0, members, named)
    center = first[kept]
    similarity = np.where(members == center, 1.0, decision.similarity[members])
    group_id = decision.group_of[members]
    places = {"first": members, "group_id": group_id, "kept": kept, "center": center}
    columns = {name: positions[values] for name, values in places.items()}
    return {**columns, "similarity": similarity}, center
