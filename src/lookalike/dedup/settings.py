"""What a job is to do, checked before it begins."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.checks import flag, one_of, whole_number
from lookalike.errors import ArgumentError, Said
from lookalike.features import MEASURES, FeatureKind
from lookalike.features.choice import (
    CHARS_NGRAM,
    FEATURES,
    FeatureChoice,
    chosen_words,
    typed_lengths,
)
from lookalike.features.text import Lengths
from lookalike.signatures.methods import (
    BAND_METHODS,
    BIT_METHODS,
    METHODS,
    PERMUTATIONS,
    Method,
    method_class,
    usual_ngram,
)
from lookalike.signatures.signer import DocumentSigner

__all__ = ["ALIASES", "CLUSTERINGS", "METHODS", "DedupSettings"]

CLUSTERINGS = ("star", "components")
RULES = ("first", "last", "longest", "shortest", "none")

ALIASES = {"num_perm": "permutations", "ngram_size": "ngram", "bit_diff": "radius"}
"""What other tools call some of the settings."""

DEVICES = ("cpu", "gpu")
"""Where pairs of signatures are looked for."""


def _setting(
    default: Any,
    help: str,
    *,
    signs: bool = False,
    only: tuple[str, Collection[str]] | None = None,
    kinds: str = "text spark",
    **option: Any,
) -> Any:
    """Return a field that says all there is to know of a setting, for the command line too.

    `help` says what it is, and its default where that is None; of one that is on, what it means to
    turn it off. `signs`: the signatures depend on it. `only`: another setting, and those of its
    values without which this one does nothing. `kinds`: which kinds of items support it, and
    whether the engine Spark does; see `lookalike.dedup.kinds`. `option` is what an option of that
    name takes: `type`, `metavar`, `choices`.
    """
    if not (default is None or isinstance(default, bool)):
        help = f"{help} (default {default})"
    about = {"help": help, "signs": signs, "only": only, "kinds": kinds, "option": option}
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


_NGRAMS = ", ".join(f"{name} {usual_ngram(name)}" for name in METHODS)
_BITS = ", ".join(f"{name} {method_class(name).usual_bits}" for name in BIT_METHODS)


@dataclass(frozen=True, kw_only=True)
class DedupSettings:
    """How documents are compared, put together and chosen from. None stands for the default.

    `method`: "minhash" (Jaccard similarity of sets of word n-grams), "simhash" or "topsig" (cosine
    of word n-gram counts). Two documents are near-duplicates if their exact similarity is at least
    `threshold`; without `verify`, if their signatures say so. `permutations` are MinHash's, `bits`
    and `radius` (the most bits that may differ; by the threshold unless told) the others'. With
    `exact` every pair of near-duplicates is found, whatever the signatures say of it.

    `features` are "words", "chars" or both ("words,chars"), an object such as `la.Words(...)`, or a
    function from a text to its features; `ngram` may be several lengths, and is that of words where
    there are both. `stop_words` are "english" or a list. `measure` is "jaccard" or "containment"
    of sets of features, or "cosine" of counts; by the method unless told. Containment, how much of
    the smaller document is in the larger one, drops those that a larger one has in it; `keep` then
    decides between those of equally many different features.

    `keep` may be a function: it is given the rows of a group as a list of dicts, and returns the
    one that stays, or its place; those alike to that one go, and of the others it is asked again.
    `lookalike dedup --help` says more of each.
    """

    method: str = _setting("minhash", "signatures", signs=True, choices=METHODS)
    threshold: float = _setting(
        0.8,
        "least similarity; of vectors 0.95",
        kinds="text spark vectors recordings",
        type=float,
        metavar="T",
    )
    ngram: Lengths | None = _setting(  # noqa: RUF009  # a field
        None,
        "words or characters that make a feature, or several such lengths: 1,2; that of words "
        f"where there are some (default: {_NGRAMS}; chars {CHARS_NGRAM})",
        signs=True,
        type=typed_lengths,
        metavar="N",
    )
    permutations: int = _setting(
        PERMUTATIONS,
        "of minhash",
        signs=True,
        only=("method", BAND_METHODS),
        type=int,
        metavar="N",
    )
    bits: int | None = _setting(
        None,
        f"bits of a signature; of images 256 or 64 (default: {_BITS})",
        signs=True,
        only=("method", BIT_METHODS),
        kinds="text spark images",
        type=int,
        metavar="N",
    )
    radius: int | None = _setting(
        None,
        "maximum Hamming distance of a candidate pair of simhash or topsig; of images 56 of 256 "
        "(default: derived from the threshold)",
        only=("method", BIT_METHODS),
        kinds="text spark images",
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
        kinds="text spark vectors",
        choices=CLUSTERINGS,
    )
    max_cluster: int = _setting(
        1000,
        "with components: split those of more different documents into stars",
        only=("cluster", ("components",)),
        kinds="text spark vectors",
        type=int,
        metavar="N",
    )
    keep: str | Callable[[list[dict[str, Any]]], Any] = _setting(  # noqa: RUF009
        "first",
        f"who stays of those alike: {', '.join(RULES)} (all go), max:COLUMN, min:COLUMN",
        kinds="text spark vectors",
        metavar="RULE",
    )
    exact: bool = _setting(
        False,
        "find every pair at or above the threshold, not only those that signatures propose",
        kinds="text spark vectors",
    )
    features: FeatureChoice = _setting(  # noqa: RUF009  # a field
        "words",
        f"what documents are compared by: {', '.join(FEATURES)}, or several with commas",
        signs=True,
        metavar="KINDS",
    )
    stop_words: Any = _setting(  # noqa: RUF009  # a field
        None,
        "words to leave out: english, or those in FILE, one a line",
        signs=True,
        metavar="FILE",
    )
    stem: str | None = _setting(
        None,
        "compare the stems of words, of a language such as english",
        signs=True,
        metavar="LANGUAGE",
    )
    measure: str = _setting(
        None,
        "similarity of documents; containment: how much of the smaller is in the larger, which "
        "stays (default: what the signatures estimate, jaccard or cosine)",
        choices=MEASURES,
    )

    def __post_init__(self) -> None:
        for name, choices in (("method", METHODS), ("cluster", CLUSTERINGS)):
            value = getattr(self, name)
            if not isinstance(value, str) or value not in choices:
                raise ArgumentError(
                    Said(name), f" is {value!r}; expected one of {', '.join(choices)}"
                )
        for name in ("verify", "exact"):
            object.__setattr__(self, name, flag(name, getattr(self, name)))
        self._check_threshold()
        self._check_keep()
        method = self._method
        estimated = method.measure
        if self.measure is None:
            object.__setattr__(self, "measure", estimated)
        self._check_measure(estimated)
        self._keep_features(method)
        object.__setattr__(self, "bits", method.bits)
        bounds = {
            "permutations": (2, 4096),
            "bits": (0 if method.by_bands else 8, 1 << 16),
            "radius": (0, 1 << 16),  # what it is by default depends on the bits
            "min_features": (1, None),
            "max_cluster": (2, None),
        }
        if not self.by_signatures:
            del bounds["radius"]
        for name, (least, most) in bounds.items():
            if name == "radius" and self.radius is None:
                # Only now the bits are known to be valid.
                radius = method.radius(min(1.0, float(self.threshold)))
                object.__setattr__(self, "radius", radius)
            value = whole_number(name, getattr(self, name), at_least=least, at_most=most)
            object.__setattr__(self, name, value)
        bound = [one for one in fields(self) if one.metadata["only"] is not None]
        said = [one.name for one in bound if getattr(self, one.name) not in (one.default, 0)]
        refuse_idle(vars(self), said)
        self.__dict__["_method"] = replace(
            method, permutations=self.permutations, bits=self.bits or 0
        )
        self.signer()

    def _keep_features(self, method: Method) -> None:
        """Keep what was chosen, so that it can be read more than once."""
        if not isinstance(self.features, str):
            object.__setattr__(self, "features", method.features)
            return
        object.__setattr__(self, "ngram", method.ngram)
        if (words := chosen_words(method.features)) is not None:
            object.__setattr__(self, "stop_words", words.stopwords)

    @property
    def keep_column(self) -> str | None:
        """The column that decides who survives, if one does."""
        rule, _, column = self.keep_rule.partition(":")
        return column if rule in ("max", "min") else None

    @cached_property
    def keep_rule(self) -> str:
        """The rule by which documents are ranked before anybody is asked: "first", where `keep` is
        a function or "none".
        """
        return self.keep if isinstance(self.keep, str) and self.keep != "none" else "first"

    @cached_property
    def _method(self) -> Method:
        return Method.of(
            self.method,
            features=self.features,
            ngram=self.ngram,
            stop_words=self.stop_words,
            stem=self.stem,
            permutations=self.permutations,
            bits=self.bits,
            seed=self.seed,
        )

    @cached_property
    def by_signatures(self) -> bool:
        """Whether signatures propose pairs: not with `exact`, and not for containment."""
        return not self.exact and self.measure != "containment"

    @property
    def said_reason(self) -> Said:
        """What was chosen that makes signatures propose nothing."""
        if self.exact:
            return Said("exact=True", "--exact")
        return Said(f"measure={self.measure!r}", f"--measure {self.measure}")

    @cached_property
    def by_bands(self) -> bool:
        """Whether signatures are values, and bands of them propose pairs; else they are bits."""
        return self._method.by_bands

    def feature_kind(self) -> FeatureKind:
        """Return what documents are compared by."""
        return self._method.features

    def signer(self) -> DocumentSigner:
        """Return the signer; it raises where its numbers make no sense."""
        return self._method.signer

    def new_signer(self) -> DocumentSigner:
        """Return an equal signer whose weights can be replaced."""
        return self._method.new_signer()

    def __getstate__(self) -> dict[str, Any]:
        """Return the settings without what is made of them."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def estimate(self, distances: ArrayLike) -> NDArray[np.float64]:
        """Return the similarity that distances of signatures suggest.

        Of MinHash, a distance is the number of values that differ.
        """
        return self._method.estimate(distances)

    def to_dict(self) -> dict[str, Any]:
        """Return all settings in plain values."""
        plain = self.features if isinstance(self.features, str) else self.feature_kind().to_dict()
        keep = self.keep
        if not isinstance(keep, str):
            keep = f"function {getattr(keep, '__qualname__', type(keep).__qualname__)}"
        return {**self.__getstate__(), "features": plain, "keep": keep}

    def _check_threshold(self) -> None:
        if isinstance(self.threshold, bool) or not isinstance(self.threshold, int | float):
            raise ArgumentError(
                Said("threshold"), f" is {self.threshold!r}; expected a number up to 1"
            )
        if not 0 < self.threshold <= 1:
            raise ArgumentError(
                Said("threshold"), f" is {self.threshold}; expected more than 0, at most 1"
            )

    def _check_measure(self, estimated: str) -> None:
        """Refuse a measure that signatures do not estimate, where they are to, and what means
        nothing where they propose no pairs.
        """
        one_of("measure", self.measure, MEASURES)
        if self.by_signatures and self.measure != estimated:
            others = [name for name in METHODS if method_class(name).measure == self.measure]
            raise ArgumentError(
                Said("measure"),
                f" is {self.measure!r}, and the signatures of {self.method} propose pairs "
                f"by {estimated}; choose the method {' or '.join(others)}, or ",
                Said("exact=True", "--exact"),
            )
        why = self.said_reason
        if not self.by_signatures and not self.verify:
            raise ArgumentError(
                why,
                " compares the documents, ",
                Said("verify=False", "--no-verify"),
                " believes the signatures; leave one of them out",
            )
        if not self.by_signatures and self.radius is not None:
            raise ArgumentError(
                Said("radius"),
                f" is {self.radius!r}, and says which pairs signatures propose; with ",
                why,
                " they propose none: leave one of them out",
            )

    def _check_keep(self) -> None:
        rule, _, column = str(self.keep).partition(":")
        is_rule = callable(self.keep) or (isinstance(self.keep, str) and self.keep in RULES)
        if not is_rule and not (isinstance(self.keep, str) and rule in ("max", "min") and column):
            raise ArgumentError(
                Said("keep"),
                f" is {self.keep!r}; expected {', '.join(RULES)}, max:COLUMN or min:COLUMN",
                Said(", or a function", ""),
            )
        if callable(self.keep) and self.measure == "containment":
            raise ArgumentError(
                Said("keep"),
                " is a function, and with measure='containment' the larger document stays; leave "
                "one of them out",
            )
