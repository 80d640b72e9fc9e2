"""Steps 5 to 7, verify, settle, cluster and choose, of documents that pairs connect: all that is
needed of them comes to one task, and there the local job decides.

What comes is rows of several kinds, by document: so nothing has to be joined before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.corpora.base import pa
from lookalike.dedup.decide import Decision, GroupChoices, decide
from lookalike.dedup.pairs import VerifiedPairs, distinct
from lookalike.dedup.propose import promising
from lookalike.dedup.settings import DedupSettings
from lookalike.dedup.verify import Comparer
from lookalike.spark.collapse import EQUALS
from lookalike.spark.packed import Batches, rows_of, table_of
from lookalike.spark.signing import documents_of

GATHERED = (
    "place int, kind int, position long, value long, data binary, text string, name string, "
    "similarity double"
)
"""And `row`, a structure of all columns, where a function of the user's chooses who stays.

Pairs, as `position` and `value`, with their similarity if it is known; of a document the signature
and what decides who stays; of equal texts what there is to know of them; texts, and names of
documents where these are wanted; and copies with their firsts, where all are in one place.
"""

PAIRS, SIGNATURE, EQUAL, TEXT, COPIED = range(5)

RESOLVED = (
    "kind int, first long, cluster long, survivor long, centre long, similarity double, "
    "distance int, told binary, left_name string, right_name string"
)
"""For each first of equal texts that has pairs: its cluster, the document that stands for it (or
itself), the first with the text of that one, and how similar the two are. Rows of other kinds:
verified pairs, as `first` and `cluster`; equal texts as pairs; and what there is to tell.
"""

GROUP, FOUND, SAME, TOLD = range(4)

_FACTS = np.dtype(
    [
        (name, "<i8")
        for name in (
            "texts", "copies", "clusters", "largest", "dropped", "estimated", "compared", "alike",
            "split", "split_largest", "tired",
        )
    ]
)  # fmt: skip


@dataclass(frozen=True)
class ResolvedFacts:
    """How many there are of what, among documents that have pairs."""

    texts: int = 0
    """That have copies."""
    copies: int = 0
    clusters: int = 0
    largest: int = 0
    dropped: int = 0
    estimated: int = 0
    """Copies that are dropped for another text on the word of signatures."""
    compared: int = 0
    alike: int = 0
    split: int = 0
    split_largest: int = 0
    tired: int = 0
    """Whether the rounds of settling did not end."""

    @classmethod
    def of(cls, told: list[bytes]) -> ResolvedFacts:
        """Return what tasks have told, put together."""
        records = np.frombuffer(b"".join(told), _FACTS)
        most = ("largest", "split_largest", "tired")
        return cls(
            **{
                name: int(records[name].max(initial=0) if name in most else records[name].sum())
                for name in _FACTS.names or ()
            }
        )

    def __add__(self, other: ResolvedFacts) -> ResolvedFacts:
        return ResolvedFacts.of([self.packed(), other.packed()])

    def packed(self) -> bytes:
        """Return all of it for another place."""
        return np.array([tuple(vars(self).values())], _FACTS).tobytes()


@dataclass(frozen=True, eq=False)
class Arranged:
    """Documents by position: those that have pairs, and of equal texts also the second and the one
    that stays before the others.
    """

    positions: NDArray[np.int64]
    first: NDArray[np.int64]
    rank: NDArray[np.int64]
    own: NDArray[np.int64]
    """Where those that have pairs are."""


def arrange(
    position: NDArray[np.int64],
    value: NDArray[np.int64],
    second: NDArray[np.int64],
    best: NDArray[np.int64],
    best_value: NDArray[np.int64],
) -> Arranged:
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
    rank = np.empty(len(positions), np.int64)
    rank[np.lexsort((positions, values))] = np.arange(len(positions))
    return Arranged(positions, first, rank, own)


def _with_copies(
    position: NDArray[np.int64], firsts: NDArray[np.int64], copies: NDArray[np.int64]
) -> Arranged:
    """Return documents in order, with all copies of texts, in the order of their positions."""
    positions = distinct(np.concatenate([position, firsts, copies]))
    own, of_firsts, of_copies = (
        np.searchsorted(positions, some) for some in (position, firsts, copies)
    )
    first = np.arange(len(positions))
    first[of_copies] = of_firsts
    return Arranged(positions, first, np.arange(len(positions)), own)


def resolve(settings: DedupSettings, old: int = 0) -> Callable[[Batches], Iterator[Any]]:
    """Return what compares the documents of a place and decides who stays; see `RESOLVED`. The
    first `old` are those of an old corpus.
    """

    def resolved(batches: Batches) -> Iterator[Any]:
        table = table_of(batches)
        if table is not None:
            yield from _Place(table, settings, old).resolved()

    return resolved


class _Place:
    """What has come to one place."""

    def __init__(self, table: Any, settings: DedupSettings, old: int) -> None:
        self.settings = settings
        kinds = table["kind"].to_numpy()
        parts = [table.filter(pa.array(kinds == kind)) for kind in range(5)]
        self.named = parts[TEXT].select(["position", "name"]).sort_by("position")
        self.copied = [parts[COPIED][side].to_numpy() for side in ("position", "value")]
        parts[SIGNATURE] = parts[SIGNATURE].sort_by("position")
        position, value = (parts[SIGNATURE][name].to_numpy() for name in ("position", "value"))
        equal = np.frombuffer(_joined(parts[EQUAL]["data"]), EQUALS)
        equal = equal[np.argsort(equal["first"])]
        second, best, best_value = np.full(len(position), -1), position.copy(), value.copy()
        at = np.searchsorted(position, equal["first"])
        second[at], best[at], best_value[at] = equal["second"], equal["best"], equal["best_value"]
        if callable(settings.keep):  # it is given every copy
            arranged = _with_copies(position, *self.copied)
        else:
            arranged = arrange(position, value, second, best, best_value)
        self.positions, self.first, self.rank = arranged.positions, arranged.first, arranged.rank
        count, old = len(self.positions), int(np.searchsorted(self.positions, old))
        self.sizes = np.bincount(self.first, minlength=count)
        self.sizes[arranged.own[at]] = equal["count"]
        rows = np.frombuffer(_joined(parts[SIGNATURE]["data"]), np.uint8)
        rows = rows.reshape(len(position), settings.signer().bits // 8)
        compared = parts[TEXT].filter(pa.compute.is_in(parts[TEXT]["position"], pa.array(position)))
        texts = compared["text"].cast(pa.large_string()).combine_chunks()
        at_text = np.full(count, -1)  # documents that are not compared have no text
        own = np.searchsorted(self.positions, compared["position"].to_numpy())
        at_text[own] = np.arange(len(own))
        documents, lengths = documents_of(texts.take(pa.array(at_text, mask=at_text < 0)))
        self.compare = Comparer(settings, rows, arranged.own, documents, lengths)
        self.old = old
        self.pairs = [parts[PAIRS][side].to_numpy() for side in ("position", "value")]
        known = parts[PAIRS]["similarity"].fill_null(np.nan)
        self.similarity: NDArray[np.float64] = known.to_numpy()
        self.choices: GroupChoices | None = None
        if callable(settings.keep):
            held = parts[TEXT].sort_by("position")
            known = held["position"].to_numpy()

            def read(documents: NDArray[np.int64]) -> list[dict[str, Any]]:
                at = np.searchsorted(known, self.positions[documents])
                rows: list[dict[str, Any]] = held["row"].take(pa.array(at)).to_pylist()
                return rows

            self.choices = GroupChoices(settings.keep, settings, self.first, old, read)

    def resolved(self) -> Iterator[Any]:
        """Yield what becomes of the documents, the verified pairs, and what there is to tell."""
        accepted, compared = self._verified()
        settings = self.settings
        decision = decide(
            accepted,
            self.rank,
            settings,
            first=self.first,
            old=self.old,
            sizes=self.compare.sizes(accepted) if settings.measure == "containment" else None,
            choices=self.choices,
            compare=self.compare,
            complete=not settings.by_signatures,
        )
        pairs = decision.pairs
        members = distinct(np.concatenate([pairs.left, pairs.right]))
        if self.choices is not None:  # it was asked about equal texts, too
            several = np.flatnonzero(self.sizes > 1)
            members = distinct(np.concatenate([members, several]))
        named = decision.duplicate_of[members]
        survivor = np.where(named < 0, members, named)
        centre = self.first[survivor]
        similarity = np.where(members == centre, 1.0, decision.similarity[members])
        labels = decision.clusters[members]
        at = self.positions
        yield rows_of(
            RESOLVED,
            kind=GROUP,
            first=at[members],
            cluster=at[labels],
            survivor=at[survivor],
            centre=at[centre],
            similarity=similarity,
        )
        yield self._pairs(FOUND, at[pairs.left], at[pairs.right], pairs.similarity, pairs.distance)
        left, right = self.copied
        yield self._pairs(SAME, left, right, np.ones(len(left)), 0)
        facts = self._facts(decision, members, centre, compared)
        yield rows_of(RESOLVED, kind=TOLD, told=[facts.packed()])

    def _pairs(
        self,
        kind: int,
        left: NDArray[np.int64],
        right: NDArray[np.int64],
        similarity: NDArray[np.float64],
        distance: NDArray[np.int32] | int,
    ) -> Any:
        return rows_of(
            RESOLVED,
            kind=kind,
            first=left,
            cluster=right,
            similarity=similarity,
            distance=distance,
            left_name=self._names(left),
            right_name=self._names(right),
        )

    def _names(self, positions: NDArray[np.int64]) -> Any:
        """Return what documents are called; null where nobody has asked for it."""
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
        self,
        decision: Decision,
        members: NDArray[np.int64],
        centre: NDArray[np.int64],
        compared: int,
    ) -> ResolvedFacts:
        sizes = self.sizes[members]
        in_clusters = np.bincount(decision.clusters[members], sizes).astype(np.int64)
        clusters = int((in_clusters > 0).sum())
        estimated = 0
        if self.settings.keep != "none" and not self.settings.verify:
            estimated = int((sizes - 1)[centre != members].sum())
        return ResolvedFacts(
            texts=int((sizes > 1).sum()),
            copies=int((sizes - 1).sum()),
            clusters=int((in_clusters > 1).sum()),
            largest=int(in_clusters.max(initial=0)),
            dropped=int(sizes.sum()) - (0 if self.settings.keep == "none" else clusters),
            estimated=estimated,
            compared=compared + decision.compared,
            alike=len(decision.pairs),
            split=decision.split,
            split_largest=decision.largest,
            tired=int(decision.exhausted),
        )


def _joined(column: Any) -> bytes:
    return b"".join(value.as_py() for value in column)
