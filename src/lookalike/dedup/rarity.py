"""How many documents have a feature, and what it weighs for that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from lookalike import _native
from lookalike.dedup.sign import DedupJob, Signed, feature_sources
from lookalike.errors import ResultTooLargeError, Said
from lookalike.features import Weights
from lookalike.features.weights import UNLIMITED
from lookalike.jobs.documents import DocumentTable

BYTES_A_FEATURE = 4
"""Of text, at least; decides how large the counters are."""
_BYTES_A_COUNTED_FEATURE = 256
"""Of memory, at most: itself, its counts, and room for more."""


class FeatureWeights(Protocol):
    """What knows the weights of features: `Rarity`, or the counts of another engine."""

    @property
    def weights(self) -> Weights | None:
        """The weights, or None if features have none."""


@dataclass(frozen=True, eq=False)
class Rarity:
    """Weights of features by the number of different documents that have them, old ones included.

    They are counted when they are needed first; see `Weights.fit_whole`.
    """

    job: DedupJob
    documents: DocumentTable
    signed: Signed

    @cached_property
    def weights(self) -> Weights | None:
        """The weights, or None if features have none."""
        job, texts = self.job, self.documents.texts
        if not job.settings.by_frequency:
            return None
        most = UNLIMITED
        if job.memory_limit is not None:
            most = job.memory_limit // 2 // _BYTES_A_COUNTED_FEATURE
        size = int(texts.lengths[self.signed.positions].sum())
        try:
            return job.settings.new_weights().fit_whole(
                self._sources, expected=size // BYTES_A_FEATURE, most=most, threads=job.threads
            )
        except _native.TooManyResults:
            raise ResultTooLargeError(
                "the documents share more features than fit into ",
                Said("memory_limit"),
                ". Raise it, or de-duplicate parts one after the other, each against those before",
            ) from None

    def left_out(self) -> tuple[int, int]:
        """Return the number of features that more than `common` documents have, and of documents.

        These are the different new ones whose features all weigh nothing.
        """
        weights = None if self.job.settings.common is None else self.weights
        if weights is None:
            return 0, 0
        totals = [np.empty(0)]
        for source in self._sources():
            totals.append(np.empty(len(source)))
            _native.total_weights(source, *weights.native(), self.job.threads, totals[-1])
        new = np.concatenate(totals)[self.signed.first_new :]
        return len(weights.common_features()), int((new == 0).sum())

    def _sources(self) -> Iterator[_native.Source]:
        for source, _ in feature_sources(self.job, self.documents, self.signed):
            yield source
            self.documents.texts.release()
