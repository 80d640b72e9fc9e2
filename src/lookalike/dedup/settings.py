"""Settings of a job, checked before it begins."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from copy import copy
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike.checks import flag, one_of, share, whole_number
from lookalike.display import Displayed
from lookalike.errors import ArgumentError, Said
from lookalike.features import (
    MEASURES,
    RARITY_MEASURES,
    Combined,
    FeatureKind,
    ShortText,
    Weights,
)
from lookalike.features.base import as_features
from lookalike.features.choice import (
    CHARS_NGRAM,
    FEATURES,
    SHORT_NGRAM,
    FeatureChoice,
    chosen_words,
    typed_lengths,
)
from lookalike.features.stop_words import STOP_LISTS
from lookalike.features.text import Lengths
from lookalike.features.weights import most_common, refuse_common_cosine
from lookalike.signatures.estimates import ones_of_pairs
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

GROUPINGS = ("star", "components")
RULES = ("first", "last", "longest", "shortest", "none")
FILE_RULES = ("best", "first", "last", "largest", "smallest", "oldest", "newest", "none")
"""Of images, recordings and other files, beside max:COLUMN, min:COLUMN and path:PATTERN."""
ALIASES = {
    "num_perm": "permutations",
    "ngram_size": "ngram",
    "bit_diff": "radius",
    "for": "purpose",
}
"""Names of settings in other tools, and in other commands."""
PURPOSES = ("duplicates", "versions")
_VERSIONS = {"measure": "weighted-jaccard", "threshold": 0.025, "common": 5}
"""Settings that find versions of long documents: see docs/dedup-internals.md."""
_OF_VERSIONS = " ".join(f"--{name} {value}" for name, value in _VERSIONS.items())
DIRECTIONS = ("contained", "containing", "either")
"""Which new documents are dropped because of an old one, by containment."""
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
    """Return a field that describes a setting, for the command line too.

    `help` includes the default where that is None; for a setting that is on, it describes turning
    it off. `signs`: the signatures depend on it. `only`: another setting, and the values of it with
    which this one has an effect. `kinds`: the kinds of items, and the engine, that support it; see
    `lookalike.dedup.kinds`. `option`: `type`, `metavar` and `choices` of the option.
    """
    if not (default is None or isinstance(default, bool)):
        help = f"{help} (default: {default})"
    about = {"help": help, "signs": signs, "only": only, "kinds": kinds, "option": option}
    return field(default=default, metadata=about)


_number = partial(_setting, type=int, metavar="N")


def refuse_idle(values: Mapping[str, Any], said: Collection[str]) -> None:
    """Refuse settings that were `said` and do nothing with the values of others."""
    for setting in fields(DedupSettings):
        if setting.name not in said or setting.metadata["only"] is None:
            continue
        other, allowed = setting.metadata["only"]
        if values[other] not in allowed:
            named = " or ".join(f"{other}={value!r}" for value in allowed)
            raise ArgumentError(
                Said(setting.name),
                " goes with ",
                Said(named, f"--{other} {' or '.join(allowed)}"),
                " and does nothing with ",
                Said(f"{other}={values[other]!r}", f"--{other} {values[other]}"),
                "; leave it out",
            )


_NGRAMS = ", ".join(f"{name} {usual_ngram(name)}" for name in METHODS)
_BITS = ", ".join(f"{name} {method_class(name).usual_bits}" for name in BIT_METHODS)


@dataclass(frozen=True, kw_only=True, repr=False)
class DedupSettings(Displayed):
    """How documents are compared, grouped and chosen from; see `la.dedup`.

    None means the default. Two documents are near-duplicates if their exact similarity is at
    least `threshold`; without `verify`, if their signatures say so. With `exact`, every pair of
    near-duplicates is found, not only those that signatures propose. `measure` is "jaccard" or
    "containment" of sets of features, or "cosine" of counts (default: by the method). With
    "weighted-jaccard" and "weighted-containment", a feature of n of the N different documents that
    are compared, old ones included, weighs log(N / n). With `common`, features of more documents
    do not count. Containment is how much of the smaller document is in the larger one. Then the
    larger one is kept, and `keep` decides between those with equally many different features, or
    equal weight.

    The purpose "versions" has other defaults of `measure`, `threshold` and `common`: revisions of a
    long document are found by what few other documents have.

    Without `features`, and with nothing else that concerns words, a job chooses them when it knows
    the lengths of the documents; see `lookalike.corpora.lengths`. Until then they are words.
    """

    purpose: str = _setting(
        "duplicates",
        f"what to look for; versions: of long documents ({_OF_VERSIONS})",
        choices=PURPOSES,
    )
    method: str = _setting("minhash", "signature method", signs=True, choices=METHODS)
    threshold: float = _setting(
        None,
        f"minimum similarity, from 0 to 1 (default: {FeatureKind.usual_threshold}; features short "
        f"{ShortText.usual_threshold}; vectors 0.95); of images strict, normal or loose (default: "
        "normal)",
        kinds="text spark vectors recordings videos images",
        type=float | str,
        metavar="T",
    )
    ngram: Lengths | None = _setting(  # noqa: RUF009  # a field
        None,
        "words (or characters) per feature, or several lengths such as 1,2 "
        f"(default: {_NGRAMS}; chars {CHARS_NGRAM}; short {SHORT_NGRAM})",
        signs=True,
        type=typed_lengths,
        metavar="LENGTHS",
    )
    permutations: int = _number(
        PERMUTATIONS, "number of minhash permutations", signs=True, only=("method", BAND_METHODS)
    )
    bits: int | None = _number(
        None,
        f"bits per signature; for images 256 or 64 (default: {_BITS})",
        signs=True,
        only=("method", BIT_METHODS),
        kinds="text spark images",
    )
    radius: int | None = _number(
        None,
        "maximum Hamming distance of a candidate pair, for simhash and topsig; images: 56 of 256 "
        "(default: derived from the threshold)",
        only=("method", BIT_METHODS),
        kinds="text spark images",
    )
    seed: int = _number(0, "random seed for signatures", signs=True)
    verify: bool = _setting(
        True, "skip verification: report similarities estimated from signatures"
    )
    min_features: int = _number(1, "keep documents with fewer features, without comparing them")
    grouping: str = _setting(
        "star",
        "how groups are made: star (drop near-duplicates of a kept document), components (keep one "
        "of all documents that pairs connect)",
        kinds="text spark vectors",
        choices=GROUPINGS,
    )
    max_group: int = _number(
        1000,
        "split larger components into stars; with --grouping components",
        only=("grouping", ("components",)),
        kinds="text spark vectors",
    )
    keep: str | Callable[[list[dict[str, Any]]], Any] = _setting(  # noqa: RUF009
        None,
        "which item of a group to keep, such as first, max:COLUMN or none (default: first; files "
        "best)",
        kinds="text spark vectors media",
        metavar="RULE",
    )
    exact: bool = _setting(
        False,
        "find every pair at or above the threshold, not only those that signatures propose",
        kinds="text spark vectors",
    )
    features: FeatureChoice = _setting(  # noqa: RUF009  # a field
        None,
        f"what to compare: {', '.join(FEATURES)}, or several separated by commas (default: words; "
        "dedup of short documents: short)",
        signs=True,
        metavar="KINDS",
    )
    stop_words: Any = _setting(  # noqa: RUF009  # a field
        None,
        f"words to ignore: {', '.join(STOP_LISTS)}, or a file with one word per line",
        signs=True,
        metavar="FILE",
    )
    stem: str | None = _setting(
        None,
        "compare word stems of this language, such as english",
        signs=True,
        metavar="LANGUAGE",
    )
    measure: str = _setting(
        None,
        "similarity of documents. containment: how much of the smaller is in the larger, which "
        "is kept. weighted-...: features weigh by their rarity, so that boilerplate hardly counts "
        "(default: what the signatures estimate, jaccard or cosine)",
        kinds="text spark videos",
        choices=(*MEASURES, *RARITY_MEASURES),
    )
    direction: str = _setting(
        "contained",
        "documents that --against drops, with containment: those contained in an old one, those "
        "containing an old one, or either",
        only=("measure", ("containment", "weighted-containment")),
        choices=DIRECTIONS,
    )
    common: int | None = _number(
        None,
        "leave out features that more than N documents have (default: no limit)",
    )

    def __post_init__(self) -> None:
        own = vars(self)  # where the fields of a frozen class can be set
        given = self.__getstate__()
        one_of("grouping", self.grouping, GROUPINGS)
        one_of("direction", self.direction, DIRECTIONS)
        if one_of("purpose", self.purpose, PURPOSES) == "versions":
            own |= self._for_versions()
        for name in ("verify", "exact"):
            own[name] = flag(name, own[name])
        own["common"] = most_common(self.common)
        if self.measure is not None:
            one_of("measure", self.measure, (*MEASURES, *RARITY_MEASURES))
        if self.keep is None:
            own["keep"] = "first"
        self._check_keep()
        method = self._method
        by_bands = method.by_bands
        if self.measure is None:
            own["measure"] = method.measure
        self._check_measure(method.measure)
        if self.features is None:
            own["features"] = "words"
        if self.threshold is None:
            own["threshold"] = method.features.usual_threshold
        # What was chosen may be readable only once.
        if not isinstance(self.features, str):
            own["features"] = method.features
        else:
            own["ngram"] = method.ngram
            words = chosen_words(method.features)
            own["stop_words"] = self.stop_words if words is None else words.stopwords
        own["bits"] = method.bits
        own["threshold"] = share("threshold", self.threshold)
        bounds = {
            "permutations": (2, 4096),
            "bits": (0 if by_bands else 8, 1 << 16),
            "radius": (0, 1 << 16),  # its default depends on the bits
            "min_features": (1, None),
            "max_group": (2, None),
        }
        if not self.by_signatures:
            del bounds["radius"]
        for name, (least, most) in bounds.items():
            if name == "radius" and self.radius is None:
                own["radius"] = 0 if by_bands else method.radius(self.threshold)
            own[name] = whole_number(name, own[name], at_least=least, at_most=most)
        bound = [one for one in fields(self) if one.metadata["only"] is not None]
        refuse_idle(own, [one.name for one in bound if own[one.name] not in (one.default, 0)])
        if self._leaves_features_open(given):
            own["_given"] = given
        own["_method"] = replace(method, permutations=self.permutations, bits=self.bits or 0)
        self.signer()

    def _for_versions(self) -> dict[str, Any]:
        """Return the settings that find versions, where others were not given."""
        chosen = {name: value for name, value in _VERSIONS.items() if getattr(self, name) is None}
        if self.measure not in (None, _VERSIONS["measure"]):
            chosen.pop("threshold", None)  # which is one of that measure
        return chosen

    def _leaves_features_open(self, given: dict[str, Any]) -> bool:
        """Return whether the values that were given do not say what to compare."""
        about_words = ("features", "ngram", "stop_words", "stem")
        return (
            all(given[name] is None for name in about_words)
            and self.min_features == 1
            and self.method == "minhash"
            and self.measure == "jaccard"
        )

    @property
    def features_open(self) -> bool:
        """Whether a job chooses the features; see `with_features`."""
        return "_given" in vars(self)

    def with_features(self, features: FeatureChoice) -> DedupSettings:
        """Return settings that left the features open, with "words", "short" or a kind."""
        made = copy(self)
        own, given = vars(made), vars(self)["_given"]
        own |= {name: value for name, value in vars(self).items() if name != "_given"}
        if features != self.features:
            short = ShortText() if isinstance(features, str) else None
            chosen = short or as_features(features)
            own["features"] = features if short else chosen
            own["ngram"] = short.ngram if short else None
            own["_method"] = replace(self._method, features=chosen)
            if given["threshold"] is None:
                own["threshold"] = chosen.usual_threshold
        return made

    @property
    def keep_column(self) -> str | None:
        """The column that decides which document is kept, if one does."""
        rule, _, column = self.keep_rule.partition(":")
        return column if rule in ("max", "min") else None

    @cached_property
    def keep_rule(self) -> str:
        """The rule that ranks documents: "first" where `keep` is a function or "none"."""
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
        """Whether signatures propose pairs: not with `exact`, containment or weights."""
        return not (self.exact or self.contains or self.by_frequency)

    @property
    def set_measure(self) -> str:
        """The measure, whether features have weights or not: one of `MEASURES`."""
        return RARITY_MEASURES.get(self.measure, self.measure)

    @property
    def contains(self) -> bool:
        """Whether documents are compared by what of the smaller one is in the larger one."""
        return self.set_measure == "containment"

    @property
    def by_frequency(self) -> bool:
        """Whether the number of documents that have a feature decides what it weighs."""
        return self.measure in RARITY_MEASURES or self.common is not None

    def new_weights(self) -> Weights:
        """Return the weights of features that are to be learned, if they go `by_frequency`."""
        return Weights("idf" if self.measure in RARITY_MEASURES else "uniform", common=self.common)

    @property
    def said_reason(self) -> Said:
        """The setting because of which signatures propose nothing."""
        if self.exact:
            return Said("exact=True", "--exact")
        if self.measure in MEASURES and not self.contains:
            return Said(f"common={self.common!r}", f"--common {self.common}")
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

    def estimate(self, distances: ArrayLike, ones: ArrayLike) -> NDArray[np.float64]:
        """Return the similarity that distances of signatures suggest; see `Method.estimate`."""
        return self._method.estimate(distances, ones)

    def ones(
        self, signatures: NDArray[np.uint8], left: NDArray[np.int64], right: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return the number of set bits of pairs of rows of signatures, for `estimate`."""
        return ones_of_pairs(self.signer(), signatures, left, right)

    @property
    def idle(self) -> set[str]:
        """The names of settings that have no effect with the values of others."""
        found = {"radius"} if not self.by_signatures else set()
        for one in fields(self):
            only = one.metadata["only"]
            if only is not None and getattr(self, only[0]) not in only[1]:
                found.add(one.name)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return all settings in plain values."""
        plain = self.features if isinstance(self.features, str) else self.feature_kind().to_dict()
        return {**self.__getstate__(), "features": plain, "keep": function_name(self.keep)}

    def _check_measure(self, estimated: str) -> None:
        """Refuse a measure that signatures do not estimate, and settings of signatures that
        propose nothing.
        """
        self._check_frequency_weights()
        if self.by_signatures:
            if self.measure == estimated:
                return
            others = [name for name in METHODS if method_class(name).measure == self.measure]
            raise ArgumentError(
                Said("measure"),
                f" is {self.measure!r}, and the signatures of {self.method} propose pairs "
                f"by {estimated}; choose the method {' or '.join(others)}, or ",
                Said("exact=True", "--exact"),
            )
        if not self.verify:
            raise ArgumentError(
                self.said_reason,
                " compares the documents, and ",
                Said("verify=False", "--no-verify"),
                " only their signatures; leave one of them out",
            )
        if self.radius is not None:
            raise ArgumentError(
                Said("radius"),
                f" is {self.radius!r}, but signatures do not propose pairs with ",
                self.said_reason,
                "; leave one of them out",
            )

    def _check_frequency_weights(self) -> None:
        """Refuse what weights by frequency do not go with."""
        if not self.by_frequency:
            return
        refuse_common_cosine(self.measure)
        features = self.feature_kind()
        if isinstance(features, Combined) and set(features.weights) != {1.0}:
            raise ArgumentError(
                Said("features"),
                f" have the weights {list(features.weights)}, which do nothing with weights by "
                "rarity; leave one of them out",
            )

    def _check_keep(self) -> None:
        named = self.keep if isinstance(self.keep, str) else ""
        rule, _, column = named.partition(":")
        is_rule = callable(self.keep) or named in RULES
        if not is_rule and not (rule in ("max", "min") and column):
            raise ArgumentError(
                Said("keep"),
                f" is {self.keep!r}; expected {', '.join(RULES)}, max:COLUMN or min:COLUMN",
                Said(", or a function", ""),
            )
        if callable(self.keep) and self.contains:
            raise ArgumentError(
                Said("keep"),
                f" is a function, and with measure={self.measure!r} the larger document is kept; "
                "leave one of them out",
            )


def function_name(keep: object) -> object:
    """Return a rule as it is, and a function by its name."""
    if not callable(keep):
        return keep
    return f"function {getattr(keep, '__qualname__', type(keep).__qualname__)}"


def given_settings(options: Mapping[str, Any], function: Callable[..., Any]) -> DedupSettings:
    """Return the settings among the arguments of a function; some also have the names of `ALIASES`.

    An argument with the default of the function is not given.
    """
    parameters, given = signature(function).parameters, dict[str, Any]()
    for name in (*DedupSettings.__dataclass_fields__, *ALIASES):
        if name not in parameters or options[name] is parameters[name].default:
            continue
        own = ALIASES.get(name, name)
        if own in given:
            raise ArgumentError(f"{name} and {own} are the same setting; give it once")
        given[own] = options[name]
    return DedupSettings(**given)
