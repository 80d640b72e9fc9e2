"""What the experiments share: texts, signatures, and where pictures go. Made when first needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import median
from time import process_time

import numpy as np
from numpy.typing import NDArray

from lookalike.features import Words
from lookalike.signatures import SimHash, TopSig
from papers.generated import GeneratedFingerprints, generate_fingerprints
from papers.scale import Scale
from papers.texts import ABSTRACTS, DESCRIPTIONS, Texts, read_texts

__all__ = ["World", "median_seconds"]

_SEED = 22


@dataclass(frozen=True, eq=False)
class World:
    """Data at one scale, real where a folder has it."""

    scale: Scale
    folder: Path | None
    """Where the texts are; without one they are made up."""
    pictures: Path

    @cached_property
    def abstracts(self) -> Texts:
        """Abstracts, or made-up texts."""
        return read_texts(self.folder, ABSTRACTS, self.scale.documents)

    @cached_property
    def topsig(self) -> TopSig:
        """1024-bit TopSig of words."""
        return TopSig(1024, features=Words(stopwords="english")).fit(self.abstracts.texts)

    @cached_property
    def wide(self) -> tuple[NDArray[np.uint8], NDArray[np.uint8], str]:
        """1024-bit TopSig signatures, held-out queries, and what they are made of."""
        wanted = self.scale.documents
        texts = self.abstracts if wanted <= 200_000 else self.abstracts.enlarged(wanted)
        rows = self.topsig.sign(texts.texts)
        order = np.random.default_rng(_SEED).permutation(len(rows))
        held_out = self.scale.text_queries
        return rows[np.sort(order[held_out:])], rows[order[:held_out]], texts.origin

    @cached_property
    def distinct(self) -> Texts:
        """Texts with near-duplicates among them, exact ones removed, as the paper did."""
        half = self.scale.pair_documents // 2
        texts = self.abstracts.first(half)
        if self.folder is None:
            both, origin = self.abstracts.first(2 * half).texts, texts.origin
        else:
            other = read_texts(self.folder, DESCRIPTIONS, half)
            both, origin = texts.texts + other.texts, f"{texts.origin} and {other.origin}"
        once = list(dict.fromkeys(both))
        return Texts(once, [""] * len(once), origin)

    @cached_property
    def simhash(self) -> SimHash:
        """64-bit SimHash as the paper has it: stemmed words without stop words, TF-IDF weights."""
        features = Words(stopwords="english", stem="english")
        return SimHash(64, features=features, weights="tfidf").fit(self.distinct.texts)

    @cached_property
    def fingerprints(self) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        """Signatures and weights of the distinct texts."""
        return self.simhash.sign_with_weights(self.distinct.texts)

    @cached_property
    def generated(self) -> GeneratedFingerprints:
        """Generated fingerprints, and queries with weights."""
        return generate_fingerprints(self.scale.fingerprints, self.scale.queries)

    @cached_property
    def online(self) -> GeneratedFingerprints:
        """The same with fewer queries: a time for each does not depend on their number."""
        data, count = self.generated, self.scale.online
        return replace(
            data,
            queries=data.queries[:count],
            weights=data.weights[:count],
            partners=data.partners[data.partners[:, 0] < count],
        )


def median_seconds(run: Callable[[], object], rounds: int) -> float:
    """Return the median of so many processor times, which other processes disturb less.

    For one thread: those of several would add up.
    """
    times = []
    for _ in range(rounds):
        start = process_time()
        run()
        times.append(process_time() - start)
    return median(times)
