"""Steps 5 to 7, verify, settle, cluster and choose, of documents that pairs connect: all that is
needed of them comes to one task, and there the local job decides.

What comes is rows of several kinds, by document: so nothing has to be joined before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.corpora.base import pa
from lookalike.dedup.context import JobContext
from lookalike.dedup.decide import Decision, decide
from lookalike.dedup.distinct import distinct
from lookalike.dedup.pairs.propose import distances_of_rows, promising
from lookalike.dedup.pairs.verify import Verdict, VerifiedPairs, compare_documents
from lookalike.dedup.progress import JobProgress
from lookalike.dedup.read import DocumentTable
from lookalike.dedup.settings import DedupSettings
from lookalike.dedup.sign import Signed
from lookalike.dedup.survivors.keep_function import GroupChoices
from lookalike.dedup.work_folder import WorkFolder
from lookalike.spark.packed import Batches, table_of
from lookalike.spark.steps.equals import EQUALS
from lookalike.spark.steps.signing import documents_of

__all__ = ["GATHERED", "RESOLVED", "ResolvedFacts", "arrange", "resolve"]

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


class _HeldTexts:
    """Texts in memory, as a job has them; of those that are not compared there is none."""

    def __init__(self, texts: Any, places: NDArray[np.int64], count: int) -> None:
        at = np.full(count, -1)
        at[places] = np.arange(len(places))
        self.documents: _native.Documents
        self.documents, self.lengths = documents_of(texts.take(pa.array(at, mask=at < 0)))

    def __len__(self) -> int:
        return len(self.lengths)

    def release(self) -> None:
        """They are nowhere but in memory."""


@dataclass(frozen=True, eq=False)
class _Held:
    """Documents, as far as comparing them needs it; see `DocumentTable`."""

    texts: _HeldTexts
    old: int = 0
    signatures_only: int = 0

    def __len__(self) -> int:
        return len(self.texts)


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
        nobody = np.zeros(count, bool)
        rows = rows.reshape(len(position), settings.signer().bits // 8)
        self.signed = Signed(rows, arranged.own, 0, nobody, "")
        compared = parts[TEXT].filter(pa.compute.is_in(parts[TEXT]["position"], pa.array(position)))
        texts = compared["text"].cast(pa.large_string()).combine_chunks()
        own = np.searchsorted(self.positions, compared["position"].to_numpy())
        self.documents = cast(DocumentTable, _Held(_HeldTexts(texts, own, count), old))
        progress, nowhere = JobProgress(), cast(WorkFolder, None)
        self.job = JobContext(settings, False, None, 1, "cpu", progress, nowhere)
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
        verdict = self._verdict()
        decision = decide(
            self.job, self.documents, self.signed, self.first, self.rank, self.choices, verdict
        )
        pairs = decision.verdict.accepted
        members = distinct(np.concatenate([pairs.left, pairs.right]))
        if self.choices is not None:  # it was asked about equal texts, too
            several = np.flatnonzero(self.sizes > 1)
            members = distinct(np.concatenate([members, several]))
        named = decision.duplicate_of[members]
        survivor = np.where(named < 0, members, named)
        centre = self.first[survivor]
        similarity = np.where(members == centre, 1.0, decision.similarity[members])
        labels = decision.clusters.labels[members]
        at = self.positions
        yield _rows(GROUP, at[members], at[labels], at[survivor], at[centre], similarity)
        left, right = at[pairs.left], at[pairs.right]
        names = self._names(left), self._names(right)
        yield _rows(FOUND, left, right, left, right, pairs.similarity, pairs.distance, names=names)
        left, right = self.copied
        names, ones = (self._names(left), self._names(right)), np.ones(len(left))
        yield _rows(SAME, left, right, left, right, ones, names=names)
        none = np.zeros(1, np.int64)
        told = pa.array([self._facts(decision, members, centre).packed()], pa.binary())
        yield _rows(TOLD, none, none, none, none, np.zeros(1), told=told)

    def _names(self, positions: NDArray[np.int64]) -> Any:
        """Return what documents are called; null where nobody has asked for it."""
        known = self.named["position"].to_numpy()
        at = np.searchsorted(known, positions)
        there = np.append(known, -1)[at] == positions
        return self.named["name"].take(pa.array(at, mask=~there)).combine_chunks()

    def _verdict(self) -> Verdict:
        """Return the pairs that are as similar as they have to be."""
        own = self.signed.positions
        left, right = (np.searchsorted(self.positions, side) for side in self.pairs)
        order = np.lexsort((right, left))
        left, right, similarity = left[order], right[order], self.similarity[order]
        rows = np.searchsorted(own, left), np.searchsorted(own, right)
        distances = distances_of_rows(self.job, self.signed, *rows)
        near = np.isnan(similarity) & promising(distances, self.settings)
        compared = compare_documents(
            self.job, self.documents, left[near], right[near], distances[near]
        )
        similarity[near] = compared.similarity
        found = VerifiedPairs(left, right, similarity, distances)
        alike = similarity >= self.settings.threshold
        nothing = compared[np.empty(0, np.int64)]
        return Verdict(found[alike], nothing, len(left), len(compared), [])

    def _facts(
        self, decision: Decision, members: NDArray[np.int64], centre: NDArray[np.int64]
    ) -> ResolvedFacts:
        sizes = self.sizes[members]
        in_clusters = np.bincount(decision.clusters.labels[members], sizes).astype(np.int64)
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
            compared=decision.verdict.compared,
            alike=len(decision.verdict.accepted),
            split=decision.clusters.split,
            split_largest=decision.clusters.largest,
            tired=len(decision.verdict.warnings),
        )


def _joined(column: Any) -> bytes:
    return b"".join(value.as_py() for value in column)


def _rows(
    kind: int,
    first: NDArray[np.int64],
    cluster: NDArray[np.int64],
    survivor: NDArray[np.int64],
    centre: NDArray[np.int64],
    similarity: NDArray[np.float64],
    distance: NDArray[np.int32] | None = None,
    told: Any = None,
    names: tuple[Any, Any] | None = None,
) -> Any:
    count = len(first)
    left_name, right_name = names or (pa.nulls(count, pa.string()),) * 2
    return pa.record_batch(
        {
            "kind": pa.array(np.full(count, kind, np.int32)),
            "first": pa.array(first),
            "cluster": pa.array(cluster),
            "survivor": pa.array(survivor),
            "centre": pa.array(centre),
            "similarity": pa.array(similarity),
            "distance": pa.array(np.zeros(count, np.int32) if distance is None else distance),
            "told": pa.nulls(count, pa.binary()) if told is None else told,
            "left_name": left_name,
            "right_name": right_name,
        }
    )
