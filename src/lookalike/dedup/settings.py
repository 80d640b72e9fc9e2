"""What a job is to do, checked before it begins."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.checks import flag, whole_number
from lookalike.compare.methods import BITS, METHODS, NGRAMS, PERMUTATIONS, Method
from lookalike.errors import ArgumentError, Said
from lookalike.features import Words
from lookalike.signatures import BBitMinHash, SimHash, TopSig

__all__ = ["ALIASES", "CLUSTERINGS", "METHODS", "DedupSettings"]

CLUSTERINGS = ("star", "components")
RULES = ("first", "last", "longest", "shortest")

ALIASES = {"num_perm": "permutations", "ngram_size": "ngram", "bit_diff": "radius"}
"""What other tools call some of the settings."""

_SPREAD = {"minhash": 0.0, "simhash": 2.2, "topsig": 1.2}
"""Standard deviations that the radius lies above the mean distance of pairs at the threshold; so
many that 99% of them are found. TopSig's lie nearer than the mean.
"""


def _setting(
    default: Any,
    help: str,
    *,
    signs: bool = False,
    only: tuple[str, tuple[str, ...]] | None = None,
    **option: Any,
) -> Any:
    """Return a field that says all there is to know of a setting, for the command line too.

    `help` says what it is, and its default where that is None; of one that is on, what it means to
    turn it off. `signs`: the signatures depend on it. `only`: another setting, and those of its
    values without which this one does nothing. `option` is what an option of that name takes:
    `type`, `metavar`, `choices`.
    """
    if default is not None and default is not True:
        help = f"{help} (default {default})"
    about = {"help": help, "signs": signs, "only": only, "option": option}
    return field(default=default, metadata=about)


def refuse_idle(values: Mapping[str, Any], said: Collection[str]) -> None:
    """Refuse settings that were `said` and do nothing beside the values of others."""
    for setting in fields(DedupSettings):
        if setting.name not in said or setting.metadata["only"] is None:
            continue
        other, allowed = setting.metadata["only"]
        if values[other] not in allowed:
            with_which = Said(
                " or ".join(f"{other}={value!r}" for value in allowed),
                f"--{other} {' or '.join(allowed)}",
            )
            raise ArgumentError(
                Said(setting.name),
                " goes with ",
                with_which,
                " and does nothing with ",
                Said(f"{other}={values[other]!r}", f"--{other} {values[other]}"),
                "; leave it out",
            )


def _by_method(numbers: dict[str, int]) -> str:
    return ", ".join(f"{method} {number}" for method, number in numbers.items() if number)


@dataclass(frozen=True, kw_only=True)
class DedupSettings:
    """How documents are compared, put together and chosen from. None stands for the default.

    `method`: "minhash" (Jaccard similarity of sets of word n-grams), "simhash" or "topsig" (cosine
    of word n-gram counts). Two documents are near-duplicates if their exact similarity is at least
    `threshold`; without `verify`, if their signatures say so. `permutations` are MinHash's, `bits`
    and `radius` (the most bits that may differ; by the threshold unless told) the others'.
    `lookalike dedup --help` says more of each.
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
    permutations: int = _setting(
        PERMUTATIONS,
        "of minhash",
        signs=True,
        only=("method", ("minhash",)),
        type=int,
        metavar="N",
    )
    bits: int | None = _setting(
        None,
        f"of simhash and topsig (default: {_by_method(BITS)})",
        signs=True,
        only=("method", ("simhash", "topsig")),
        type=int,
        metavar="N",
    )
    radius: int | None = _setting(
        None,
        "most bits in which a proposed pair of simhash or topsig differs (default: by T)",
        only=("method", ("simhash", "topsig")),
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
        only=("cluster", ("components",)),
        type=int,
        metavar="N",
    )
    keep: str = _setting(
        "first",
        f"who stays: {', '.join(RULES)}, max:COLUMN, min:COLUMN",
        metavar="RULE",
    )

    def __post_init__(self) -> None:
        for name, choices in (("method", METHODS), ("cluster", CLUSTERINGS)):
            value = getattr(self, name)
            if not isinstance(value, str) or value not in choices:
                raise ArgumentError(
                    Said(name), f" is {value!r}; expected one of {', '.join(choices)}"
                )
        object.__setattr__(self, "verify", flag("verify", self.verify))
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
        for name, (least, most) in bounds.items():
            if name == "radius" and self.radius is None:
                object.__setattr__(self, "radius", self._radius())
            value = whole_number(name, getattr(self, name), at_least=least, at_most=most)
            object.__setattr__(self, name, value)
        bound = [one for one in fields(self) if one.metadata["only"] is not None]
        said = [one.name for one in bound if getattr(self, one.name) not in (one.default, 0)]
        refuse_idle(vars(self), said)
        self.signer()

    @property
    def keep_column(self) -> str | None:
        """The column that decides who survives, if one does."""
        rule, _, column = self.keep.partition(":")
        return column if rule in ("max", "min") else None

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
        return dict(vars(self))

    def _check_threshold(self) -> None:
        if isinstance(self.threshold, bool) or not isinstance(self.threshold, int | float):
            raise ArgumentError(
                Said("threshold"), f" is {self.threshold!r}; expected a number up to 1"
            )
        if not 0 < self.threshold <= 1:
            raise ArgumentError(
                Said("threshold"), f" is {self.threshold}; expected more than 0, at most 1"
            )

    def _check_keep(self) -> None:
        rule, _, column = str(self.keep).partition(":")
        is_rule = isinstance(self.keep, str) and self.keep in RULES
        if not is_rule and not (isinstance(self.keep, str) and rule in ("max", "min") and column):
            raise ArgumentError(
                Said("keep"),
                f" is {self.keep!r}; expected {', '.join(RULES)}, max:COLUMN or min:COLUMN",
            )
