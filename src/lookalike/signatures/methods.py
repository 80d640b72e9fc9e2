"""Signers by name, as `--method NAME` chooses them.

`dedup`, `compare` and `sign` accept signers that have `dedup_defaults`; collections accept those
that sign texts in bits. Signers of other packages are accepted by the names of their entry points.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import SupportsIndex, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.errors import ArgumentError, Said
from lookalike.features import FeatureKind
from lookalike.features.choice import FeatureChoice, chosen_features, chosen_words
from lookalike.features.text import Lengths
from lookalike.shown import brief
from lookalike.signatures.estimates import decided_distances
from lookalike.signatures.signer import SIGNERS, DedupDefaults, DocumentSigner
from lookalike.suggestions import did_you_mean

PERMUTATIONS = 128
_BUILTIN = ("minhash", "simhash", "topsig")
TEXT_SIGNERS = ("simhash", "topsig", "bbitminhash")
"""Signers of texts that collections accept, beside those of other packages."""


def method_class(name: object) -> type[DocumentSigner]:
    """Return the signer that `dedup` knows by this name, or raise."""
    signer = _signer(name)
    if signer is None or signer.dedup_defaults is None:
        raise ArgumentError(
            Said("method"),
            f" is {name!r}; expected one of {', '.join(METHODS)}{did_you_mean(name, METHODS)}",
        )
    return signer


def _signer(name: object) -> type[DocumentSigner] | None:
    try:
        return cast("type[DocumentSigner]", SIGNERS[name]) if isinstance(name, str) else None
    except ArgumentError:  # no signer has this name
        return None


def usual_ngram(name: str) -> int:
    """Return the number of words in a feature of this method by default."""
    return cast(DedupDefaults, method_class(name).dedup_defaults).ngram


class _MethodNames(Collection[str]):
    """The names of signers that `dedup` can use; iterating yields those of lookalike."""

    def __init__(self, by_bands: bool | None = None) -> None:
        self._by_bands = by_bands

    def __contains__(self, name: object) -> bool:
        signer = _signer(name)
        defaults = signer.dedup_defaults if signer is not None else None
        return defaults is not None and self._by_bands in (None, defaults.by_bands)

    def __iter__(self) -> Iterator[str]:
        return iter(self._builtin)

    def __len__(self) -> int:
        return len(self._builtin)

    @cached_property
    def _builtin(self) -> tuple[str, ...]:
        return tuple(name for name in _BUILTIN if name in self)


METHODS = _MethodNames()
BAND_METHODS = _MethodNames(by_bands=True)  # methods whose signatures are `permutations` values
BIT_METHODS = _MethodNames(by_bands=False)
"""Methods whose signatures are `bits` bits, compared by their Hamming distance."""


@dataclass(frozen=True)
class Method:
    """A signer of `dedup` and its arguments."""

    name: str
    kind: type[DocumentSigner]
    features: FeatureKind
    permutations: int  # used by MinHash
    bits: int  # used by all others
    seed: SupportsIndex

    @classmethod
    def of(
        cls,
        name: str,
        *,
        features: FeatureChoice | None = None,
        ngram: Lengths | None = None,
        stop_words: str | Iterable[str] | None = None,
        stem: str | None = None,
        permutations: int = PERMUTATIONS,
        bits: int | None = None,
        seed: SupportsIndex = 0,
    ) -> Method:
        """Return a method, with its defaults where a value is None."""
        kind = method_class(name)
        usual = cast(DedupDefaults, kind.dedup_defaults).ngram
        chosen = chosen_features(
            features, ngram=ngram, words_ngram=usual, stop_words=stop_words, stem=stem
        )
        width = kind.usual_bits if bits is None else bits
        return cls(name, kind, chosen, permutations, width, seed)

    @cached_property
    def defaults(self) -> DedupDefaults:
        """How the signer is used."""
        return cast(DedupDefaults, self.kind.dedup_defaults)

    @property
    def by_bands(self) -> bool:
        """Whether signatures are values, and a distance is the number that differ."""
        return self.defaults.by_bands

    @property
    def measure(self) -> str:
        """The similarity that signatures estimate: "jaccard" or "cosine"."""
        return self.kind.measure

    @property
    def ngram(self) -> Lengths | None:
        """Words in a feature, or characters if there are no words; None for other features."""
        return getattr(chosen_words(self.features) or self.features, "ngram", None)

    @cached_property
    def signer(self) -> DocumentSigner:
        """The signer; raises if its arguments are not valid."""
        return self.new_signer()

    def new_signer(self) -> DocumentSigner:
        """Return a new signer, whose weights can be replaced."""
        return self.kind._for_dedup(
            self.features, bits=self.bits, permutations=self.permutations, seed=self.seed
        )

    def estimate(self, distances: ArrayLike, ones: ArrayLike) -> NDArray[np.float64]:
        """Return the similarity that distances of signatures suggest.

        `ones` is the number of set bits of both; see `decided_distances`.
        """
        if self.by_bands:
            return 1.0 - np.asarray(distances, np.float64) / self.permutations
        far = decided_distances(self.signer, distances, self.bits, ones)
        return self.signer._estimate(far, self.bits)

    def radius(self, threshold: float) -> int:
        """Return the largest distance of candidate pairs; 0 where bands propose them."""
        if self.by_bands:
            return 0
        mean, variance = self.signer._expected_distance(threshold, self.bits)
        return int(mean + self.defaults.deviations * math.sqrt(variance))

    def __reduce__(self) -> tuple[object, ...]:
        made_of = (self.features, self.permutations, self.bits, self.seed)
        return Method, (self.name, self.kind, *made_of)


def text_signer(
    name: str,
    *,
    bits: int | None = None,
    features: FeatureKind | None = None,
    seed: SupportsIndex = 0,
) -> DocumentSigner:
    """Return the signer of texts that a collection knows by this name."""
    signer = SIGNERS[name] if name in SIGNERS else None  # noqa: SIM401  # no mapping
    if signer is None or not issubclass(signer, DocumentSigner) or not signer.usual_bits:
        raise ArgumentError(
            Said("method"),
            f" is {brief(name)}; expected one of {', '.join(TEXT_SIGNERS)}, which sign texts in "
            f"bits{did_you_mean(name, TEXT_SIGNERS)}",
        )
    make = cast("Callable[..., DocumentSigner]", signer)
    return make(signer.usual_bits if bits is None else bits, features=features, seed=seed)
