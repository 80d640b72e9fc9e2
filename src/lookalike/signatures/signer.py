"""Base classes of signers, and their registry. CONTRIBUTING.md shows how to add a signer."""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import file_path, instance, seed_number
from lookalike.errors import ArgumentError, CorruptIndexError, FormatError, Said
from lookalike.features import (
    Combined,
    FeatureFunction,
    FeatureKind,
    Weights,
    as_features,
    feature_kind_from_dict,
)
from lookalike.features.base import made_with
from lookalike.features.weights import MOST_FEATURES, VOCABULARY_ARRAYS, decode_array, encode_array
from lookalike.registry import Registry
from lookalike.shown import brief

if TYPE_CHECKING:
    from lookalike.storage.container import Container

SIGNER_VERSION = 1  # grows when the same text would get other bits
_PREFIX = "signer."  # prefix of the names of arrays that a signer has learned


@dataclass(frozen=True)
class DedupDefaults:
    """How `dedup`, `compare` and `sign` use a signer."""

    ngram: int
    """Words in a feature."""
    deviations: float = 2.4
    """Standard deviations from the mean distance of pairs at the threshold to the radius. 2.4 finds
    99% of them if distances are normally distributed.
    """
    by_bands: bool = False
    """Whether signatures are MinHash values: bands of equal values propose pairs, and a distance is
    the number of values that differ.
    """
    fitted_weights: str = "tfidf"
    """Weights that `sign --fit` learns."""


class Signer(ABC):
    """Base class of signers: turn items into signatures.

    The same item has the same bits on every machine, with any number of threads and in every
    release, unless `SIGNER_VERSION` changes.
    """

    bits: int
    """Bits of a signature."""
    name: ClassVar[str]
    """Name in saved files (default: the name of the class); in lower case, the name in `SIGNERS`
    and on the command line.
    """
    measure: ClassVar[str] = "cosine"
    """Similarity that its signatures estimate: "cosine" or "jaccard"."""
    usual_bits: ClassVar[int] = 0
    """Bits of a signature by default, where it is chosen by name; 0: signatures are not bits."""
    medium: ClassVar[str] = "text"
    """What it signs: "text", "vector", or files of a medium, by its name in `MEDIA`."""
    reads_files: ClassVar[bool] = False
    """Whether a string is the path of an item, and not the item."""
    sparse: ClassVar[bool] = False
    """Whether a feature decides few bits, and those that none decides are 0."""
    masks: ClassVar[Literal["no", "on request", "short texts"]] = "no"
    """Whether `sign(texts, mask=True)` returns masks, too; "short texts": queries of a few words
    are masked by default.
    """
    dedup_defaults: ClassVar[DedupDefaults | None] = None
    """How `dedup` uses it; None: not at all."""
    _seeded: ClassVar[bool] = True
    """Whether its bits depend on random numbers."""
    _added_later: ClassVar[dict[str, Any]] = {}
    """Parameters and their defaults that `settings` leaves out, as it did before they existed."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()  # of typing.Generic
        if "name" not in vars(cls):
            cls.name = cls.__name__

    def __init__(self, seed: SupportsIndex) -> None:
        self.seed = seed_number(seed)

    @abstractmethod
    def sign(self, documents: Any, *, threads: SupportsIndex | None = None) -> NDArray[Any]:
        """Return the signatures of documents, a row each."""

    def _estimate(self, distances: NDArray[np.float64], bits: int) -> NDArray[np.float64]:
        """Return the similarity that Hamming distances suggest; by default the cosine."""
        # Of signs of random projections, a share of θ/π differs at an angle of θ.
        similarity: NDArray[np.float64] = np.cos(math.pi * distances / bits)
        return similarity

    def _expected_distance(self, similarity: float, bits: int) -> tuple[float, float]:
        """Return mean and variance of the Hamming distance at a similarity."""
        chance = math.acos(similarity) / math.pi
        return bits * chance, bits * chance * (1 - chance)

    def settings(self) -> dict[str, Any]:
        """Return the arguments of the constructor without the seed, fit for JSON."""
        made, added = made_with(self).items(), self._added_later.items()
        return {name: one for name, one in made if name != "seed" and (name, one) not in added}

    def to_dict(self) -> dict[str, Any]:
        """Return a description in plain values; `from_dict` is its inverse."""
        described = {"signer": self.name, "version": SIGNER_VERSION, **self.settings()}
        return {**described, "seed": self.seed} if self._seeded else described

    @classmethod
    def from_dict(cls, description: dict[str, Any]) -> Self:
        """Return the signer that `to_dict` described; raise if its version or class is another."""
        signer = signer_from_dict(description)
        if not isinstance(signer, cls):
            raise ArgumentError(
                f"this describes a {type(signer).__name__}; expected a {cls.__name__}"
            )
        return signer

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the signer, with what it has learned, to a file. `la.load_signer` reads it."""
        from lookalike.storage.container import (
            write_container,  # not needed to sign, so not at import
        )

        write_container(file_path("path", path), *signer_contents(self))

    def to_bytes(self) -> bytes:
        """Return what `save` writes; `from_bytes` is its inverse."""
        from lookalike.storage.container import container_bytes

        return container_bytes(*signer_contents(self))

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview) -> Self:
        """Return the signer that `to_bytes` wrote; raise if the bytes are damaged."""
        from lookalike.storage.container import container_in

        signer = signer_in(container_in(data))
        if not isinstance(signer, cls):
            found = "no signer" if signer is None else f"a {type(signer).__name__}"
            raise FormatError(f"the bytes hold {found}; expected a {cls.__name__}")
        return signer

    def __reduce__(self) -> tuple[Any, ...]:
        features = getattr(self, "features", None)
        if isinstance(features, FeatureFunction | Combined):
            # Unpickling the function makes its name known.
            return _unpickled, (type(self), features, self.to_bytes())
        return type(self).from_bytes, (self.to_bytes(),)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Signer) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]  # what it has learned may change

    def check_persistent(self) -> None:
        """Raise unless equal descriptions mean equal bits, also in another program."""
        return  # they do, unless a function of the caller's finds features

    def said(self) -> Said:
        """Return the signer as messages of the library and of commands (`--method`) name it."""
        described = self.to_dict()
        features = described.pop("features", {})
        plain = {name: value for name, value in described.items() if isinstance(value, int | str)}
        plain |= {name: features[name] for name in ("kind", "ngram") if name in features}
        if "kinds" in features:
            plain["kind"] = " and ".join(one["kind"] for one in features["kinds"])
        method = str(plain.pop("signer")).removeprefix("BBit").lower()
        del plain["version"]
        settings = ", ".join(f"{name} {value}" for name, value in plain.items())
        return Said(repr(self), f"{method} ({settings})")

    def __repr__(self) -> str:
        shown = {**self.settings(), **vars(self)}
        names = [*self.settings(), *(["seed"] if self._seeded else [])]
        arguments = ", ".join(f"{name}={shown[name]!r}" for name in names)
        return f"{type(self).__name__}({arguments})"


def _unpickled(kind: type[Signer], features: FeatureKind, data: bytes) -> Signer:
    return kind.from_bytes(data)


class DocumentSigner(Signer):
    """A signer of documents by their features.

    `documents` are a list of `str`, an Arrow string column (pyarrow, pandas, polars; not copied) or
    any iterable of `str`, of which one batch is held at a time.
    """

    def __init__(self, features: FeatureKind, seed: SupportsIndex) -> None:
        self.features = features if isinstance(features, FeatureKind) else as_features(features)
        super().__init__(seed)

    @classmethod
    def _for_dedup(
        cls, features: FeatureKind, *, bits: int, permutations: int, seed: SupportsIndex
    ) -> DocumentSigner:
        """Return the signer that `dedup` uses: of `bits` bits, or `permutations` values."""
        return cls(bits=bits, features=features, seed=seed)  # type: ignore[call-arg]

    def check_persistent(self) -> None:
        """Raise unless equal descriptions mean equal bits, now and in another program."""
        self.features.check_persistent()

    def feature_counts(
        self, documents: Any, *, threads: SupportsIndex | None = None
    ) -> NDArray[np.int64]:
        """Return how many features each document has. A signature of 0 features means nothing."""
        return self.features.counts(documents, threads=threads)

    def with_features(
        self,
        documents: Any,
        signatures: NDArray[Any],
        *,
        least: int = 1,
        threads: SupportsIndex | None = None,
    ) -> NDArray[np.bool_]:
        """Return which documents, whose signatures these are, have at least `least` features.

        For `least=1` only documents with the signature of the empty text are read. `documents`
        need the method `take`, as Arrow columns have it.
        """
        enough = np.ones(len(signatures), bool)
        doubtful = np.arange(len(signatures))
        if least == 1:
            empty = self.sign([""])
            doubtful = np.flatnonzero(signatures[:, 0] == empty[:, 0])  # quicker than all columns
            doubtful = doubtful[(signatures[doubtful] == empty).all(axis=1)]
        if len(doubtful):
            counts = self.feature_counts(documents.take(doubtful), threads=threads)
            enough[doubtful] = counts >= least
        return enough


class WeightedSigner(DocumentSigner):
    """A signer whose features have weights."""

    weights: Weights

    def __init__(self, features: FeatureKind, weights: str | Weights, seed: SupportsIndex) -> None:
        super().__init__(features, seed)
        self.weights = weights if isinstance(weights, Weights) else Weights(weights)

    @property
    def weights_in_use(self) -> Weights:
        """The weights that `sign` uses now."""
        return self.weights

    def fit(
        self,
        documents: Any,
        *,
        most_features: SupportsIndex = MOST_FEATURES,
        threads: SupportsIndex | None = None,
    ) -> Self:
        """Learn how common features are, from any iterable of documents, a batch at a time.

        Replaces what was learned before, once all documents have been read. Keeps at most
        `most_features` (see `la.Vocabulary`). To learn on several machines, merge with
        `la.Vocabulary.merge` and pass `la.Weights(kind, vocabulary)`.
        """
        self.weights.fit(documents, self.features, most_features=most_features, threads=threads)
        return self


def signer_from_dict(description: dict[str, Any]) -> Signer:
    """Return the signer that `Signer.to_dict` described."""
    settings = dict(instance("description", description, dict, "what Signer.to_dict returned"))
    name = settings.pop("signer", None)
    known = name.lower() if isinstance(name, str) else ""
    if known not in SIGNERS or SIGNERS[known].name != name:
        names = ", ".join(sorted(one.name for one in SIGNERS))
        raise ArgumentError(Said("signer"), f" is {brief(name)}; expected one of: {names}")
    version = settings.pop("version", None)
    if version != SIGNER_VERSION:
        raise FormatError(
            f"this signer is of version {brief(version)}; this lookalike has version "
            f"{SIGNER_VERSION}, whose bits differ: sign everything again, or use the version that "
            "made it"
        )
    try:
        if "features" in settings:
            settings["features"] = feature_kind_from_dict(settings["features"])
        if isinstance(settings.get("weights"), dict):
            settings["weights"] = Weights.from_dict(settings["weights"])
        if isinstance(by := settings.get("by"), dict):
            if "by" in by:
                raise ArgumentError(f"the description of {name} has another one of parts within")
            settings["by"] = signer_from_dict(by)
        return SIGNERS[known](**settings)
    except (KeyError, TypeError, AttributeError) as error:
        raise ArgumentError(f"the description of {name} cannot be used: {error!r}") from error


def load_signer(path: str | os.PathLike[str]) -> Signer:
    """Read a signer that `Signer.save` wrote, or that of a file of signatures or an index."""
    from lookalike.storage.container import open_container  # not needed to sign, so not at import

    signer = signer_in(open_container(file_path("path", path)))
    if signer is None:
        raise FormatError(f"{path} holds no signer")
    return signer


def signer_contents(signer: Signer) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the metadata and the arrays by which a container holds a signer."""
    description = instance("signer", signer, Signer, "one such as la.SimHash()").to_dict()
    signer.check_persistent()
    learned = _learned(description)
    names = VOCABULARY_ARRAYS if learned else ()
    return {"signer": description}, {
        f"{_PREFIX}{name}": decode_array(learned.pop(name)) for name in names
    }


def signer_in(container: Container) -> Signer | None:
    """Return the signer in a container, verified, or None if it has none."""
    description = container.meta.get("signer")
    if description is None:
        return None
    if not isinstance(description, dict):
        raise CorruptIndexError(f"{container.path}: the signer is {description!r}; it is damaged")
    learned = _learned(description)
    for name in VOCABULARY_ARRAYS if learned else ():
        container.verify_rest(f"{_PREFIX}{name}")
        learned[name] = encode_array(container.array(f"{_PREFIX}{name}", np.uint64, 1))
    return signer_from_dict(description)


def _learned(description: dict[str, Any]) -> dict[str, Any]:
    """Return the description of the vocabulary in that of a signer; {} if it has none."""
    weights = description.get("weights")
    learned = weights.get("vocabulary") if isinstance(weights, dict) else None
    return learned if isinstance(learned, dict) else {}


SIGNERS: Registry[type[Signer]] = Registry(
    "signer",
    "lookalike.signers",
    {
        "simhash": "lookalike.signatures.simhash:SimHash",
        "topsig": "lookalike.signatures.topsig:TopSig",
        "minhash": "lookalike.signatures.minhash:MinHash",
        "bbitminhash": "lookalike.signatures.minhash:BBitMinHash",
        "weightedminhash": "lookalike.signatures.minhash:WeightedMinHash",
        "projection": "lookalike.signatures.projection:Projection",
        "imagehash": "lookalike.images.image_hash:ImageHash",
        "audiohash": "lookalike.recordings.audio_hash:AudioHash",
        "coverhash": "lookalike.recordings.cover_hash:CoverHash",
        "videohash": "lookalike.videos.video_hash:VideoHash",
        "passagehash": "lookalike.common_passages.signing:PassageHash",
    },
)
"""Signers by name, including those of other packages."""
