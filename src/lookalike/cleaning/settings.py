"""What is removed from texts, checked before anything is read."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, SupportsIndex

from lookalike.checks import one_of, whole_number
from lookalike.dedup.settings import RULES, DedupSettings
from lookalike.errors import ArgumentError, Said

WORDS, UNIT_WORDS, MAX_DOCUMENTS, GAP = 50, 1, 1, 0
_PIECES, _LEAST_PIECE = 5, 2
"""A run of a passage has at least a fifth of the words of the passage."""
UNITS = ("line", "sentence", "paragraph")
REMOVALS = ("copies", "all")
BOUNDARIES = ("word", "auto", "line", "sentence", "paragraph")
"""In the order of the core."""
KEEP_RULES = tuple(rule for rule in RULES if rule != "none")
_MOST = 2**31


@dataclass(frozen=True, kw_only=True)
class CleanSettings:
    """The settings of `la.clean`."""

    words: SupportsIndex | None
    gap: SupportsIndex | None = None
    unit: str | None
    max_documents: SupportsIndex | None
    remove: str
    boundary: str | None
    keep: str
    min_left: SupportsIndex

    def __post_init__(self) -> None:
        own = vars(self)
        if self.unit is None:
            self._refuse("max_documents", "is for units, with", "unit", "--unit")
            own["max_documents"] = None
            own["words"] = whole_number(
                "words", WORDS if self.words is None else self.words, at_least=2, at_most=_MOST
            )
            own["gap"] = whole_number(
                "gap", GAP if self.gap is None else self.gap, at_least=0, at_most=_MOST
            )
            chosen = "auto" if self.boundary is None else self.boundary
            own["boundary"] = one_of("boundary", chosen, BOUNDARIES)
        else:
            one_of("unit", self.unit, UNITS)
            for name in ("boundary", "gap"):
                self._refuse(name, "is for runs of words, without", "unit", "--unit")
            own["words"] = whole_number(
                "words", UNIT_WORDS if self.words is None else self.words, at_least=1, at_most=_MOST
            )
            most = MAX_DOCUMENTS if self.max_documents is None else self.max_documents
            own["max_documents"] = whole_number("max_documents", most, at_least=1, at_most=_MOST)
        one_of("remove", self.remove, REMOVALS)
        own["min_left"] = whole_number("min_left", self.min_left, at_least=0)
        if not isinstance(self.keep, str) or self.keep == "none":
            raise ArgumentError(
                Said("keep"),
                f" is {self.keep!r}; expected {', '.join(KEEP_RULES)}, max:COLUMN or min:COLUMN. "
                "To remove every copy, use ",
                Said("remove='all'", "--remove all"),
            )
        self.order  # noqa: B018  # raises if it makes no sense

    def _refuse(self, name: str, why: str, in_python: str, typed: str) -> None:
        if getattr(self, name) is not None:
            raise ArgumentError(Said(name), f" {why} ", Said(in_python, typed))

    @cached_property
    def order(self) -> DedupSettings:
        """The rule of `keep`, as `la.dedup` has it."""
        return DedupSettings(keep=self.keep)

    @property
    def piece(self) -> int:
        """The least number of words of a run of a passage, with `gap`."""
        return max(_LEAST_PIECE, int(self.words or 0) // _PIECES)

    @property
    def every(self) -> bool:
        """Whether first copies are removed, too."""
        return self.remove == "all"

    def to_dict(self) -> dict[str, Any]:
        """Return all settings in plain values."""
        return {one.name: getattr(self, one.name) for one in fields(self)}
