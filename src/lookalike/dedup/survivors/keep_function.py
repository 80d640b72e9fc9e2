"""Step 7, choose, where a function of the user's does: who of a group stays."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.dedup.context import JobContext
from lookalike.dedup.distinct import distinct
from lookalike.dedup.pairs.verify import VerifiedPairs
from lookalike.dedup.read import DocumentTable, Source
from lookalike.dedup.settings import DedupSettings
from lookalike.errors import ArgumentError
from lookalike.shown import brief

__all__ = ["GroupChoices"]

Chooser = Callable[[list[dict[str, Any]]], Any]
"""Takes the rows of a group, and returns one of them, or its place among them."""


class GroupChoices:
    """Asks the function of each group, and turns what it says into an order of survival.

    A group is what pairs and equal texts connect. The one that was chosen stays, those that are
    like it go, and the function is asked again of the others until none is left; so every choice
    stays, no two of them are a pair, and everyone else is a pair with a choice. Of the same rows
    it is asked once. Clusters of "components" have one choice, the first.
    """

    def __init__(
        self,
        chooser: Chooser,
        settings: DedupSettings,
        first: NDArray[np.int64],
        old: int,
        read: Callable[[NDArray[np.int64]], list[dict[str, Any]]],
    ) -> None:
        self._chooser, self._settings = chooser, settings
        self._first, self._old = first, old
        self._read_rows = read
        self._rows: dict[int, dict[str, Any]] = {}
        self._answers: dict[bytes, int] = {}

    @classmethod
    def of_job(
        cls, job: JobContext, source: Source, documents: DocumentTable, first: NDArray[np.int64]
    ) -> GroupChoices | None:
        """Return what asks the function of a job's settings; None if there is no function."""
        if not callable(job.settings.keep):
            return None

        def read(positions: NDArray[np.int64]) -> list[dict[str, Any]]:
            rows = source.corpus.rows_at(positions - documents.old, job.skip_bad)
            source.corpus.check_identity(source.identity)
            return rows

        return cls(job.settings.keep, job.settings, first, documents.old, read)

    def ranks(self, pairs: VerifiedPairs) -> NDArray[np.int64]:
        """Return the place of each document in the order in which they are to survive: old ones,
        the choices in the order of choosing, and then the others.
        """
        count = len(self._first)
        split = self._split(pairs)
        gone = np.zeros(count, bool)  # because of an old one
        gone[pairs.right[pairs.left < self._old]] = True
        gone[: self._old] = True
        gone = gone[self._first]
        pairs = pairs[~gone[pairs.left] & ~gone[pairs.right]]
        labels = np.empty(count, np.int64)
        _native.components(pairs.left, pairs.right, labels)
        labels = labels[self._first]
        members = np.flatnonzero((np.bincount(labels, minlength=count)[labels] > 1) & ~gone)
        self._read(members)
        members = members[np.argsort(labels[members], kind="stable")]
        groups = np.split(members, np.flatnonzero(np.diff(labels[members])) + 1)
        neighbours = _neighbours(pairs)
        choices = [
            row
            for group in groups
            if len(group)
            for row in self._ask(group, neighbours, once=not split[self._first[group[0]]])
        ]
        order = np.concatenate([np.arange(self._old), np.array(choices, np.int64)])
        others = np.setdiff1d(np.arange(count), order, assume_unique=True)
        rank = np.empty(count, np.int64)
        rank[np.concatenate([order, others])] = np.arange(count)
        return rank

    def _split(self, pairs: VerifiedPairs) -> NDArray[np.bool_]:
        """Return which documents are in clusters that are stars, and not a whole component.

        As `cluster_documents` has it: those that go because of an old one count, too.
        """
        count = len(self._first)
        if self._settings.cluster != "components":
            return np.ones(count, bool)
        labels = np.empty(count, np.int64)
        _native.components(pairs.left, pairs.right, labels)
        members = distinct(np.concatenate([pairs.left, pairs.right]))
        large: NDArray[np.bool_] = (
            np.bincount(labels[members], minlength=count) > self._settings.max_cluster
        )
        return large[labels]

    def _ask(
        self, group: NDArray[np.int64], neighbours: dict[int, NDArray[np.int64]], *, once: bool
    ) -> list[int]:
        """Return who of a group stays, in the order of choosing; only the first if `once`."""
        choices: list[int] = []
        while len(group) > 1:
            choices.append(self._choice(group))
            if once:
                break
            centre = int(self._first[choices[-1]])
            like = np.append(neighbours.get(centre, np.empty(0, np.int64)), centre)
            group = group[~np.isin(self._first[group], like)]
        return choices

    def _choice(self, group: NDArray[np.int64]) -> int:
        known = self._answers.get(group.tobytes())
        if known is not None:
            return known
        rows = [self._rows[position] for position in group.tolist()]
        given = list(rows)
        answer = self._chooser(given)
        chosen = answer
        if isinstance(answer, SupportsIndex) and not isinstance(answer, bool | np.bool_):
            at = operator.index(answer)
            # The list is the function's own: it may have sorted it before it said which.
            chosen = given[at] if 0 <= at < len(given) else None
        place = next((at for at, row in enumerate(rows) if row is chosen), None)
        if place is None:
            raise ArgumentError(
                f"keep returned {brief(answer)} for a group of {len(rows):,}; expected one of the "
                "rows that it was given, or its place among them, from 0"
            )
        self._answers[group.tobytes()] = int(group[place])
        return int(group[place])

    def _read(self, members: NDArray[np.int64]) -> None:
        """Hold the rows of documents that have any like them."""
        missing = members[[position not in self._rows for position in members.tolist()]]
        if not len(missing):
            return
        rows = self._read_rows(missing)
        self._rows.update(zip(missing.tolist(), rows, strict=True))


def _neighbours(pairs: VerifiedPairs) -> dict[int, NDArray[np.int64]]:
    """Return for each document those that it is a pair with."""
    one = np.concatenate([pairs.left, pairs.right])
    two = np.concatenate([pairs.right, pairs.left])
    order = np.argsort(one, kind="stable")
    keys, begins = np.unique(one[order], return_index=True)
    parts = np.split(two[order], begins[1:]) if len(keys) else []
    return dict(zip(keys.tolist(), parts, strict=True))
