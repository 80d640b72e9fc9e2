"""What a job is to do, checked before it begins."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.checks import flag, whole_number
from lookalike.errors import ArgumentError
from lookalike.features import Words
from lookalike.signatures import BBitMinHash, SimHash, TopSig

__all__ = ["ALIASES", "CLUSTERINGS", "METHODS", "DedupSettings"]

METHODS = ("minhash", "simhash", "topsig")
CLUSTERINGS = ("star", "components")
RULES = ("first", "last", "longest", "shortest")

ALIASES = {"num_perm": "permutations", "ngram_size": "ngram", "bit_diff": "radius"}
"""What other tools call some of the settings."""

VALUE_BYTES = 2
"""Of a MinHash value, as it is kept: 16 bits collide once in 65,536, which bands do not notice."""

_NGRAM = {"minhash": 5, "simhash": 3, "topsig": 2}
_BITS = {"minhash": 0, "simhash": 128, "topsig": 1024}
_SPREAD = {"minhash": 0.0, "simhash": 2.2, "topsig": 1.2}
"""Standard deviations that the radius lies above the mean distance of pairs at the threshold; so
many that 99% of them are found. TopSig's lie nearer than the mean.
"""


@dataclass(frozen=True, kw_only=True)
class DedupSettings:
    """How documents are compared, put together and chosen from. None stands for the default.

    `method`: "minhash" (Jaccard similarity of sets of word n-grams), "simhash" or "topsig" (cosine
    of word n-gram counts). Two documents are near-duplicates if their exact similarity is at least
    `threshold`; without `verify`, if their signatures say so. `ngram` is 5 words for MinHash, 3 for
    SimHash, 2 for TopSig. `permutations` are MinHash's, `bits` (128, 1024) and `radius` (the most
    bits that may differ; by the threshold unless told) the others'.
    """

    method: str = "minhash"
    threshold: float = 0.8
    ngram: int | None = None
    permutations: int = 128
    bits: int | None = None
    radius: int | None = None
    seed: int = 0
    verify: bool = True
    min_features: int = 1
    """Documents with fewer features are kept, whatever they look like."""
    cluster: str = "star"
    """"star": a document goes only if it is a near-duplicate of one that stays. "components": one
    stays of all that pairs connect, so at the end of a chain documents go that resemble none.
    """
    max_cluster: int = 1000
    """Of a component with more different documents, stars are made."""
    keep: str = "first"

    def __post_init__(self) -> None:
        for name, choices in (("method", METHODS), ("cluster", CLUSTERINGS)):
            value = getattr(self, name)
            if not isinstance(value, str) or value not in choices:
                raise ArgumentError(f"{name} is {value!r}; expected one of {', '.join(choices)}")
        object.__setattr__(self, "verify", flag("verify", self.verify))
        self._check_threshold()
        self._check_keep()
        defaults = {
            "ngram": _NGRAM[self.method],
            "bits": _BITS[self.method],
        }
        for name, default in defaults.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, default)
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
        self.signer()

    @property
    def keep_column(self) -> str | None:
        """The column that decides who survives, if one does."""
        rule, _, column = self.keep.partition(":")
        return column if rule in ("max", "min") else None

    @property
    def measure(self) -> str:
        """What similarity means here: "jaccard" or "cosine"."""
        return "jaccard" if self.method == "minhash" else "cosine"

    def features(self) -> Words:
        """Return what documents are compared by."""
        return Words(ngram=self.ngram or 1)

    def signer(self) -> BBitMinHash | SimHash | TopSig:
        """Return the signer; it raises where its numbers make no sense."""
        features = self.features()
        if self.method == "minhash":
            return BBitMinHash(self.permutations, 8 * VALUE_BYTES, features, self.seed)
        if self.method == "simhash":
            return SimHash(self.bits or 64, features, seed=self.seed)
        return TopSig(self.bits or 1024, features=features, seed=self.seed, weights="count")

    def estimate(self, distances: ArrayLike) -> NDArray[np.float64]:
        """Return the similarity that distances of signatures suggest.

        Of MinHash, a distance is the number of values that differ.
        """
        far = np.asarray(distances, np.float64)
        if self.method == "minhash":
            return 1.0 - far / self.permutations
        return np.cos(math.pi * far / (self.bits or 1))

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
            raise ArgumentError(f"threshold is {self.threshold!r}; expected a number up to 1")
        if not 0 < self.threshold <= 1:
            raise ArgumentError(f"threshold is {self.threshold}; expected more than 0, at most 1")

    def _check_keep(self) -> None:
        rule, _, column = str(self.keep).partition(":")
        is_rule = isinstance(self.keep, str) and self.keep in RULES
        if not is_rule and not (isinstance(self.keep, str) and rule in ("max", "min") and column):
            raise ArgumentError(
                f"keep is {self.keep!r}; expected {', '.join(RULES)}, max:COLUMN or min:COLUMN"
            )
