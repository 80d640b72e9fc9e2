"""Tuning: which index and settings reach a recall, measured on which sample, at what cost.

In this package because indexes save their tunings.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, SupportsIndex, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.display import Displayed, TableColumns, Tabular, record, record_columns
from lookalike.errors import ArgumentError
from lookalike.indexes.kinds import KINDS
from lookalike.signatures import as_signatures

if TYPE_CHECKING:
    from lookalike.indexes.base import Index

Measure = Literal["recall", "cdr"]  # recall, or cumulative distance ratio (CDR)
_LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Option(Displayed):
    """An index with its settings, and the recall it reaches."""

    index: str
    """Kind of index, such as "slices"; "batch" means `la.match_batch`."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Arguments to build the index."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Arguments to search it."""
    recall: float | None = 1.0
    """Measured recall; 1 if the index is exact, None if unknown."""
    error: float = 0.0
    """Sampling error of the recall: two standard errors."""

    def get(self, name: str) -> Any:
        """Return a parameter or setting by name, or None."""
        return {**self.parameters, **self.settings}.get(name)

    def table(self, tuning: Tuning[Any]) -> str:
        """Return the options of the tuning as text, one per line."""
        return "\n".join(f"{each.index}: {keywords(each.settings)}" for each in tuning.options)

    def reason(self, tuning: Tuning[Any]) -> str:
        """Return why the tuning chose this option."""
        found = "unknown" if self.recall is None else f"{self.recall:.1%}"
        return f"Recall {found} with {tuning.queries:,} queries, asked for {tuning.target:g}."


Choice = TypeVar("Choice", bound=Option, covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Tuning(Tabular, Generic[Choice]):
    """What was measured, on which sample, and which index and settings were chosen.

    `str` returns a table of the options with the choice marked, and the reason. As a table, it has
    a row per option: `chosen` and the fields of the option.
    """

    target: float | None
    """Requested recall or CDR; None: none was, and `chosen` is the exact scan."""
    measure: Measure = "recall"
    """Measure of the target."""
    k: int | None = None
    """Number of neighbors."""
    radius: int | None = None
    """Largest Hamming distance; None for the k nearest."""
    first: bool = False
    """Whether a query needs only one match."""
    count: int = 0
    """Number of signatures; 0 for an index that tuned itself."""
    bits: int = 0
    memory: int | None = None
    """Maximum size in bytes."""
    expected_queries: int | None = None
    """Number of queries that share the build time; None: build time does not count."""
    batch: int | None = None
    """Batch size for a collection on disk."""
    threads: int = 1
    sampled: int | None = None
    """Number of signatures in the sample; None: fair bits were assumed."""
    tried_rows: int = 0
    """Number of signatures in trial indexes."""
    queries: int = 0
    """Number of queries that recall was measured with; 0 if it was not."""
    matches: int | None = None
    """Number of matches of these queries within the radius; with `first`, queries with a match."""
    chosen: Choice
    options: tuple[Choice, ...] = ()
    """All options, including the choice."""

    @property
    def search_settings(self) -> dict[str, Any]:
        """Arguments for a search: `index.search(queries, k, **tuning.search_settings)`."""
        return dict(self.chosen.settings)

    @property
    def recall(self) -> float | None:
        """Recall of the choice in the sample."""
        return self.chosen.recall

    @property
    def error(self) -> float:
        """Sampling error of the measure: two standard errors."""
        return float(getattr(self.chosen, "cdr_error" if self.measure == "cdr" else "error"))

    @property
    def key(self) -> tuple[Any, ...]:
        """What was requested, for an index that tuned itself."""
        return self.k, self.radius, self.first, self.target

    @property
    def reason(self) -> str:
        """Why this option was chosen."""
        return self.chosen.reason(self)

    def __str__(self) -> str:
        return "\n\n".join(filter(None, (self.chosen.table(self), self.reason)))

    def _values(self) -> dict[str, object]:
        return {**record(self), "options": len(self.options)}

    def _columns(self, begin: int, end: int) -> TableColumns:
        options = self.options[begin:end]
        chosen = np.array([each == self.chosen for each in options], bool)
        return {"chosen": chosen, **record_columns(type(self.chosen), options)}

    def _row_count(self) -> int:
        return len(self.options)

    def build(
        self,
        signatures: ArrayLike,
        ids: ArrayLike | None = None,
        *,
        threads: SupportsIndex | None = None,
    ) -> Index:
        """Build the chosen index for signatures with the same number of bits."""
        rows = as_signatures(signatures)
        if self.bits != 8 * rows.shape[1]:
            raise ArgumentError(
                f"signatures have {8 * rows.shape[1]} bits; the tuning is for {self.bits}: "
                "make one for these"
            )
        return build_option(self.chosen, rows, ids, threads)

    def to_dict(self) -> dict[str, Any]:
        """Return all values, fit for JSON."""
        return {**asdict(self), "search_settings": self.search_settings, "reason": self.reason}

    def saved(self) -> dict[str, Any]:
        """Return what an index saves of its tuning."""
        by_radius = self.radius is not None
        asked = {"radius": self.radius, "first": self.first} if by_radius else {"k": self.k}
        matches = {"matches": self.matches} if by_radius else {}
        found = {"recall": self.recall, **matches, "queries": self.queries}
        return {**asked, "target": self.target, **self.search_settings, **found}

    @classmethod
    def restored(
        cls, index: str, names: Sequence[str], saved: Mapping[str, Any], *, least: int = 1
    ) -> Tuning[Option]:
        """Return the tuning that `saved` returned, or raise KeyError, TypeError or ValueError."""
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
    """Return a tuning of an index by itself: these settings reach this recall."""
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
    """Return the tunings for at least this recall of at least k neighbors."""
    return [each for each in tunings if (each.k or 0) >= k and (each.target or 0) >= target]


def build_option(
    option: Option, rows: NDArray[np.uint8], ids: ArrayLike | None = None, threads: Any = None
) -> Index:
    """Build the index of an option."""
    if option.index == "batch":
        raise ArgumentError(
            "the choice is la.match_batch, which reads a file and builds no index. Call it with "
            "search_settings, or plan without batch"
        )
    parameters = dict(option.parameters)
    if "clusters" in parameters:
        parameters["clusters"] = min(parameters["clusters"], max(1, len(rows)))
    built: Index = KINDS[option.index].build(rows, ids, threads=threads, **parameters)
    return built


def keywords(settings: Mapping[str, Any]) -> str:
    """Return settings as keyword arguments of a call."""
    return ", ".join(
        f"{name}={value!r}" if isinstance(value, str | bool) else f"{name}={value:g}"
        for name, value in settings.items()
    )


# What a sample proves


def share_to_reach(target: float, queries: int) -> float:
    """Return the recall that a sample must reach: the target plus two standard errors."""
    return min(1.0, target + 2 * math.sqrt(target * (1 - target) / max(1, queries)))


def least_enough(
    needed: NDArray[np.int64], target: float, queries: int, *, none: int = 0
) -> tuple[int, float]:
    """Return the smallest effort that reaches the target, and its recall.

    `needed` is the effort that each neighbor takes; `none` is returned if there are none.
    """
    ordered = np.sort(needed, axis=None)
    if not len(ordered):
        return none, float(none)
    effort = int(ordered[math.ceil(share_to_reach(target, queries) * len(ordered)) - 1])
    return effort, float(np.mean(ordered <= effort))


def sampling_error(values: NDArray[np.float64]) -> float:
    """Return two standard errors of a mean, plus the influence of one query."""
    return 2 * float(values.std()) / math.sqrt(len(values)) + 1 / (1 + len(values))


def other_columns(ids: NDArray[np.int64], own: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return a mask of all columns except that of the query itself, or the last."""
    others: NDArray[np.bool_] = ids != own[:, None]
    others[others.all(axis=1), -1] = False
    return others
