"""What a job is to do, checked before it begins."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.checks import flag, whole_number
from lookalike.compare.methods import BITS, METHODS, NGRAMS, PERMUTATIONS, Method
from lookalike.errors import ArgumentError
from lookalike.features import Words
from lookalike.signatures import BBitMinHash, SimHash, TopSig

__all__ = ["ALIASES", "CLUSTERINGS", "METHODS", "DedupSettings"]

CLUSTERINGS = ("star", "components")
RULES = ("first", "last", "longest", "shortest", "none")

ALIASES = {"num_perm": "permutations", "ngram_size": "ngram", "bit_diff": "radius"}
"""What other tools call some of the settings."""

_SPREAD = {"minhash": 0.0, "simhash": 2.2, "topsig": 1.2}
"""Standard deviations that the radius lies above the mean distance of pairs at the threshold; so
many that 99% of them are found. TopSig's lie nearer than the mean.
"""


def _setting(default: Any, help: str, *, signs: bool = False, **option: Any) -> Any:
    """Return a field that says all there is to know of a setting, for the command line too.

    `help` says what it is, and its default where that is None; of one that is on, what it means to
    turn it off. `signs`: the signatures depend on it. `option` is what an option of that name
    takes: `type`, `metavar`, `choices`.
    """
    if not (default is None or isinstance(default, bool)):
        help = f"{help} (default {default})"
    return field(default=default, metadata={"help": help, "signs": signs, "option": option})


def _by_method(numbers: dict[str, int]) -> str:
    return ", ".join(f"{method} {number}" for method, number in numbers.items() if number)


@dataclass(frozen=True, kw_only=True)
class DedupSettings:
    """How documents are compared, put together and chosen from. None stands for the default.

    `method`: "minhash" (Jaccard similarity of sets of word n-grams), "simhash" or "topsig" (cosine
    of word n-gram counts). Two documents are near-duplicates if their exact similarity is at least
    `threshold`; without `verify`, if their signatures say so. `permutations` are MinHash's, `bits`
    and `radius` (the most bits that may differ; by the threshold unless told) the others'. With
    `exact` every pair of near-duplicates is found, whatever the signatures say of it.
    `lookalike dedup --help` says more of each. `keep` may be a function: it is given the rows of a
    group as a list of dicts, and returns the one that stays, or its place; those alike to that one
    go, and of the others it is asked again.
    """

    method: str = _setting("minhash", "signatures", signs=True, choices=METHODS)
    threshold: float = _setting(0.8, "least similarity", type=float, metavar="T")
    ngram: int | None = _setting(
        None,
        f"words that make a feature (default: {_by_method(NGRAMS)})",
        signs=True,
        type=int,
        metavar="N",
    )
    permutations: int = _setting(PERMUTATIONS, "of minhash", signs=True, type=int, metavar="N")
    bits: int | None = _setting(
        None,
        f"of simhash and topsig (default: {_by_method(BITS)})",
        signs=True,
        type=int,
        metavar="N",
    )
    radius: int | None = _setting(
        None,
        "most bits in which a proposed pair of simhash or topsig differs (default: by T)",
        type=int,
        metavar="N",
    )
    seed: int = _setting(0, "of signatures", signs=True, type=int, metavar="N")
    verify: bool = _setting(
        True, "believe the signatures, do not compare the documents: all is estimated"
    )
    min_features: int = _setting(
        1,
        "keep documents with fewer features, whatever they look like",
        type=int,
        metavar="N",
    )
    cluster: str = _setting(
        "star",
        "star: drop only near-duplicates of one that stays; components: of all that pairs connect "
        "keep one, so that ends of chains are dropped that resemble none that stays",
        choices=CLUSTERINGS,
    )
    max_cluster: int = _setting(
        1000,
        "with components: split those of more different documents into stars",
        type=int,
        metavar="N",
    )
    keep: str | Callable[[list[dict[str, Any]]], Any] = _setting(  # noqa: RUF009
        "first",
        f"who stays of those alike: {', '.join(RULES)} (all go), max:COLUMN, min:COLUMN",
        metavar="RULE",
    )
    exact: bool = _setting(
        False,
        "find every pair at or above the threshold, not only those that signatures propose",
    )

    def __post_init__(self) -> None:
        for name, choices in (("method", METHODS), ("cluster", CLUSTERINGS)):
            value = getattr(self, name)
            if not isinstance(value, str) or value not in choices:
                raise ArgumentError(f"{name} is {value!r}; expected one of {', '.join(choices)}")
        for name in ("verify", "exact"):
            object.__setattr__(self, name, flag(name, getattr(self, name)))
        self._check_exact()
        self._check_threshold()
        self._check_keep()
        method = self._method()
        object.__setattr__(self, "ngram", method.ngram)
        object.__setattr__(self, "bits", method.bits)
        bounds = {
            "ngram": (1, 1024),
            "permutations": (2, 4096),
            "bits": (0 if self.method == "minhash" else 8, 1 << 16),
            "radius": (0, 1 << 16),  # what it is by default depends on the bits
            "min_features": (1, None),
            "max_cluster": (2, None),
        }
        if self.exact:
            del bounds["radius"]
        for name, (least, most) in bounds.items():
            if name == "radius" and self.radius is None:
                object.__setattr__(self, "radius", self._radius())
            value = whole_number(name, getattr(self, name), at_least=least, at_most=most)
            object.__setattr__(self, name, value)
        self.signer()

    @property
    def keep_column(self) -> str | None:
        """The column that decides who survives, if one does."""
        rule, _, column = self.keep_rule.partition(":")
        return column if rule in ("max", "min") else None

    @property
    def keep_rule(self) -> str:
        """The rule by which documents are ranked before anybody is asked: "first", where `keep` is
        a function or "none".
        """
        return self.keep if isinstance(self.keep, str) and self.keep != "none" else "first"

    def _method(self) -> Method:
        return Method.of(
            self.method,
            ngram=self.ngram,
            permutations=self.permutations,
            bits=self.bits,
            seed=self.seed,
        )

    @property
    def measure(self) -> str:
        """What similarity means here: "jaccard" or "cosine"."""
        return self._method().measure

    def features(self) -> Words:
        """Return what documents are compared by."""
        return self._method().features()

    def signer(self) -> BBitMinHash | SimHash | TopSig:
        """Return the signer; it raises where its numbers make no sense."""
        return self._method().signer()

    def estimate(self, distances: ArrayLike) -> NDArray[np.float64]:
        """Return the similarity that distances of signatures suggest.

        Of MinHash, a distance is the number of values that differ.
        """
        return self._method().estimate(distances)

    def _radius(self) -> int:
        """Return how far apart pairs at the threshold may be: the mean distance and some more."""
        if self.method == "minhash":
            return 0
        bits = float(self.bits or 0)
        differ = math.acos(min(1.0, float(self.threshold))) / math.pi
        deviation = math.sqrt(bits * differ * (1 - differ))
        return int(bits * differ + _SPREAD[self.method] * deviation)

    def to_dict(self) -> dict[str, Any]:
        """Return all settings in plain values."""
        keep = self.keep
        if not isinstance(keep, str):
            keep = f"function {getattr(keep, '__qualname__', type(keep).__qualname__)}"
        return {**vars(self), "keep": keep}

    def _check_threshold(self) -> None:
        if isinstance(self.threshold, bool) or not isinstance(self.threshold, int | float):
            raise ArgumentError(f"threshold is {self.threshold!r}; expected a number up to 1")
        if not 0 < self.threshold <= 1:
            raise ArgumentError(f"threshold is {self.threshold}; expected more than 0, at most 1")

    def _check_exact(self) -> None:
        """Refuse what means nothing where every pair of documents is compared."""
        if self.exact and not self.verify:
            raise ArgumentError(
                "exact=True compares the documents, verify=False believes the signatures; leave "
                "one of them out"
            )
        if self.exact and self.radius is not None:
            raise ArgumentError(
                f"radius is {self.radius!r}, and says which pairs signatures propose; with "
                "exact=True they propose none, every pair is found: leave one of them out"
            )

    def _check_keep(self) -> None:
        rule, _, column = str(self.keep).partition(":")
        is_rule = callable(self.keep) or (isinstance(self.keep, str) and self.keep in RULES)
        if not is_rule and not (isinstance(self.keep, str) and rule in ("max", "min") and column):
            raise ArgumentError(
                f"keep is {self.keep!r}; expected {', '.join(RULES)}, max:COLUMN or min:COLUMN, or "
                "in Python a function"
            )
