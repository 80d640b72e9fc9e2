"""Tuning: which index and settings reach a recall, measured on which sample, at what cost.

All advice returns one, and an index keeps and saves its own: so the type is below `advice`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, SupportsIndex, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.errors import ArgumentError
from lookalike.indexes.kinds import KINDS
from lookalike.signatures import as_signatures

if TYPE_CHECKING:
    from lookalike.indexes.base import Index

Measure = Literal["recall", "cdr"]
"""Share of the true neighbors that is found, or cumulative distance ratio."""

_LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One index with its settings, and the recall it reaches."""

    index: str
    """Kind of index, such as "slices"; "batch" stands for `la.match_batch`."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Arguments that build the index."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Arguments that search it."""
    recall: float | None = 1.0
    """Share that was found in a sample; 1 if all is guaranteed to be found, None if not known."""
    error: float = 0.0
    """How far the recall of other queries may be off, 19 times out of 20."""

    def get(self, name: str) -> Any:
        """Return a parameter or setting by its name; None if the option has none."""
        return {**self.parameters, **self.settings}.get(name)

    def table(self, tuning: Tuning[Any]) -> str:
        """Return the options of the tuning as text, one line each."""
        return "\n".join(f"{each.index}: {keywords(each.settings)}" for each in tuning.options)

    def reason(self, tuning: Tuning[Any]) -> str:
        """Return why the tuning chose this option."""
        found = "unknown" if self.recall is None else f"{self.recall:.1%}"
        return f"Recall {found} with {tuning.queries:,} queries, asked for {tuning.target:g}."


Choice = TypeVar("Choice", bound=Option, covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning(Generic[Choice]):
    """What was measured, on which sample, and which index and settings were chosen.

    `str` returns a table of the options with the choice marked, and the reason.
    """

    target: float | None
    """Recall or CDR asked for; None: none was, so `chosen` is the exact scan."""
    measure: Measure = "recall"
    """What the target is for."""
    k: int | None = None
    """Number of neighbors asked for."""
    radius: int | None = None
    """Largest distance asked for; None: the k nearest."""
    first: bool = False
    """Whether a query needs one match only."""
    count: int = 0
    """Signatures in the collection; 0 for an index that tuned itself."""
    bits: int = 0
    memory: int | None = None
    """Most bytes that were allowed."""
    expected_queries: int | None = None
    """Number of queries that the time to build is shared by; None: building does not count."""
    batch: int | None = None
    """Queries that are matched at a time with a collection on disk."""
    threads: int = 1
    sampled: int | None = None
    """Signatures that were given to measure on; None: fair bits were assumed."""
    tried_rows: int = 0
    """Signatures that indexes were built over to measure their recall."""
    queries: int = 0
    """Queries that recall was measured with; 0 if it was not."""
    matches: int | None = None
    """Matches that these queries have, where a radius was asked for; with `first`, how many of the
    queries have one."""
    chosen: Choice
    options: tuple[Choice, ...] = ()
    """Everything weighed, the choice included."""

    @property
    def search_settings(self) -> dict[str, Any]:
        """Arguments for a search: `index.search(queries, k, **tuning.search_settings)`."""
        return dict(self.chosen.settings)

    @property
    def recall(self) -> float | None:
        """Share that the choice found in the sample."""
        return self.chosen.recall

    @property
    def error(self) -> float:
        """How far the measure may be off for other queries, 19 times out of 20."""
        return float(getattr(self.chosen, "cdr_error" if self.measure == "cdr" else "error"))

    @property
    def key(self) -> tuple[Any, ...]:
        """What was asked of an index that tuned itself."""
        return self.k, self.radius, self.first, self.target

    @property
    def reason(self) -> str:
        """Why this was chosen, in a few lines."""
        return self.chosen.reason(self)

    def __str__(self) -> str:
        return "\n\n".join(filter(None, (self.chosen.table(self), self.reason)))

    def build(
        self,
        signatures: ArrayLike,
        ids: ArrayLike | None = None,
        *,
        threads: SupportsIndex | None = None,
    ) -> Index:
        """Build the chosen index; signatures must have the bits of the tuning."""
        rows = as_signatures(signatures)
        if self.bits != 8 * rows.shape[1]:
            raise ArgumentError(
                f"signatures have {8 * rows.shape[1]} bits; the tuning is for {self.bits}: "
                "make one for these"
            )
        return build_option(self.chosen, rows, ids, threads)

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain values, fit for JSON."""
        return {**asdict(self), "search_settings": self.search_settings, "reason": self.reason}

    def saved(self) -> dict[str, Any]:
        """Return what an index saves of its own tuning."""
        by_radius = self.radius is not None
        asked = {"radius": self.radius, "first": self.first} if by_radius else {"k": self.k}
        matches = {"matches": self.matches} if by_radius else {}
        found = {"recall": self.recall, **matches, "queries": self.queries}
        return {**asked, "target": self.target, **self.search_settings, **found}

    @classmethod
    def restored(
        cls, index: str, names: Sequence[str], saved: Mapping[str, Any], *, least: int = 1
    ) -> Tuning[Option]:
        """Return what `saved` gave, or raise KeyError, TypeError or ValueError."""
        settings = {name: int(saved[name]) for name in names}
        by_radius = "radius" in saved
        k = None if by_radius else int(saved["k"])
        queries = int(saved["queries"])
        if not all(least <= value <= _LARGEST for value in settings.values()):
            raise ValueError(f"a tuning of {settings}")
        if queries < 1 or (k is not None and k < 1):
            raise ValueError(f"a tuning for {k} neighbors of {queries} queries")
        return own_tuning(
            index,
            settings,
            float(saved["recall"]),
            target=float(saved["target"]),
            k=k,
            radius=int(saved["radius"]) if by_radius else None,
            first=bool(saved["first"]) if by_radius else False,
            matches=int(saved["matches"]) if by_radius else None,
            queries=queries,
        )


def own_tuning(
    index: str, settings: Mapping[str, int], recall: float, **asked: Any
) -> Tuning[Option]:
    """Return what an index found out about itself: these settings reach this recall."""
    option = Option(index=index, settings=settings, recall=recall)
    return Tuning(chosen=option, options=(option,), **asked)


class SelfTuned:
    """What an index found out about its recall, and saves."""

    kind: ClassVar[str]
    _tunings: tuple[Tuning[Option], ...] = ()

    @property
    def tunings(self) -> tuple[Tuning[Option], ...]:
        """Tunings of the index, the latest last."""
        return self._tunings

    def _keep(self, tuning: Tuning[Option]) -> None:
        """Keep a tuning, in place of that of the same question."""
        self._tunings = (*(each for each in self._tunings if each.key != tuning.key), tuning)

    def _saved_tunings(self) -> list[dict[str, Any]]:
        return [tuning.saved() for tuning in self._tunings]

    def _restore_tunings(self, saved: Iterable[Any], *settings: str, least: int = 1) -> None:
        self._tunings = tuple(
            Tuning.restored(self.kind, settings, dict(each), least=least) for each in saved
        )


def sufficient(tunings: Iterable[Tuning[Option]], k: int, target: float) -> list[Tuning[Option]]:
    """Return the tunings that were made for at least this recall of at least k neighbors."""
    return [each for each in tunings if (each.k or 0) >= k and (each.target or 0) >= target]


def build_option(
    option: Option, rows: NDArray[np.uint8], ids: ArrayLike | None = None, threads: Any = None
) -> Index:
    """Build the index of an option over these signatures."""
    if option.index == "batch":
        raise ArgumentError(
            "the choice is la.match_batch, which reads signatures from a file; there is no index "
            "to build: plan without batch, or call match_batch with search_settings"
        )
    parameters = dict(option.parameters)
    if "clusters" in parameters:
        parameters["clusters"] = min(parameters["clusters"], max(1, len(rows)))
    built: Index = KINDS[option.index].build(rows, ids, threads=threads, **parameters)
    return built


def keywords(settings: Mapping[str, Any]) -> str:
    """Return settings as they are written in a call."""
    return ", ".join(
        f"{name}={value!r}" if isinstance(value, str | bool) else f"{name}={value:g}"
        for name, value in settings.items()
    )


# What a sample proves


def share_to_reach(target: float, queries: int) -> float:
    """Return what a sample must reach so that others reach the target: two standard errors more."""
    return min(1.0, target + 2 * math.sqrt(target * (1 - target) / max(1, queries)))


def least_enough(
    needed: NDArray[np.int64], target: float, queries: int, *, none: int = 0
) -> tuple[int, float]:
    """Return the least effort that surely reaches the target, and the share that it finds.

    `needed` is the effort that each neighbor takes; without any, the effort is `none`.
    """
    ordered = np.sort(needed, axis=None)
    if not len(ordered):
        return none, float(none)
    effort = int(ordered[math.ceil(share_to_reach(target, queries) * len(ordered)) - 1])
    return effort, float(np.mean(ordered <= effort))


def sampling_error(values: NDArray[np.float64]) -> float:
    """Return two standard errors of a mean, and what one query more or less would change."""
    return 2 * float(values.std()) / math.sqrt(len(values)) + 1 / (1 + len(values))


def other_columns(ids: NDArray[np.int64], own: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return a mask of all columns but one: without the query itself, or the last if not there."""
    others: NDArray[np.bool_] = ids != own[:, None]
    others[others.all(axis=1), -1] = False
    return others
