"""The corpus that an index was made from: the documents behind what was found.

An index knows signatures and ids. Texts, by which similarities are exact, and other columns are in
the corpus, which is read once, as far as needed.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import thread_count
from lookalike.cli.common import corpus_of, filters_of
from lookalike.cli.parser import refuse_given
from lookalike.cli.terminal import warn
from lookalike.corpora import Corpus, Problems
from lookalike.corpora.base import compute, pa
from lookalike.corpora.columns import Columns, columns_for, filtered, find_columns, text_strings
from lookalike.corpora.signing import corpus_weights
from lookalike.errors import ArgumentError, Said
from lookalike.features import RARITY_MEASURES, Weights, similarity_pairs, unrounded
from lookalike.features.weights import most_common, refuse_common_cosine
from lookalike.indexes import Index
from lookalike.shown import counted, escape_terminal
from lookalike.signatures.estimates import exact_similarity
from lookalike.signatures.signer import DocumentSigner


@dataclass
class Origin:
    """The requested documents of a corpus."""

    corpus: Corpus
    columns: Columns
    index: Index
    signer: DocumentSigner
    measure: str | None
    """None: what the signatures estimate."""
    weights: Weights | None
    """What features weigh in the corpus; None: nothing was counted."""
    threshold: float | None
    threads: int | None
    _texts: list[str] = field(default_factory=list)
    _values: list[dict[str, Any]] = field(default_factory=list)
    _places: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, options: argparse.Namespace, index: Index) -> Origin | None:
        """Return the corpus that --in names; None if there is no such option."""
        measure = getattr(options, "measure", None)
        most = most_common(getattr(options, "common", None))
        if options.origin is None:
            names = [name for name in ("columns", "measure", "common") if hasattr(options, name)]
            refuse_given(options, names, "needs the signed corpus: --in CORPUS")
            return None
        signer = index.signer
        if not isinstance(signer, DocumentSigner):
            raise ArgumentError(
                Said("--in"), " needs the signer of the documents; sign with `lookalike sign`"
            )
        corpus = corpus_of([options.origin], options)
        # The columns that were named may be those of the queries; then these are guessed.
        named = (getattr(options, "text", None), getattr(options, "id", None))
        text, id = (name if name in corpus.columns() else None for name in named)
        columns = columns_for(corpus, find_columns(corpus, text, id), signer.features)
        corpus = filtered(corpus, columns, filters_of(options).for_old())
        if index.names is None:
            columns = Columns(columns.text, None)  # documents are known by their rows
        weights = None
        if most is not None or measure in RARITY_MEASURES:
            measure = measure or signer.measure
            refuse_common_cosine(measure)
            weights = corpus_weights(
                corpus,
                columns,
                signer.features,
                Weights("idf" if measure in RARITY_MEASURES else "uniform", common=most),
                skip_bad=True,
                threads=thread_count(options.threads),
            )
        elif measure == signer.measure:
            measure = None
        how = options.threshold, options.threads
        return cls(corpus, columns, index, signer, measure, weights, *how)

    @property
    def files(self) -> Sequence[Path]:
        """What is read."""
        return self.corpus.files

    def read(self, wanted: set[str], more: Sequence[str] = ()) -> None:
        """Read the documents of these ids, with more columns; say how many are not there.

        An id that several different documents have is refused.
        """
        for name in more:
            self.corpus.column_for(name, (), "answers")
        first, row, sought = len(self.columns.names), 0, pa.array(sorted(wanted), pa.large_string())
        counts = Counter(filter(wanted.__contains__, self.index.names or ()))
        repeated = {name for name, times in counts.items() if times > 1}
        for batch in self.corpus.read([*self.columns.names, *more], Problems(True)):
            if len(self._places) == len(wanted) and not repeated:
                break
            ids = self.columns.ids(batch, row)
            at = compute.indices_nonzero(compute.is_in(ids, value_set=sought)).to_numpy()
            texts = text_strings(batch.column(0), self.columns.text, self.corpus)
            for place in at.tolist():
                id, text = ids[place].as_py(), texts[place].as_py() or ""
                known = self._places.setdefault(id, len(self._texts))
                if known < len(self._texts):  # of several with one id, the first
                    if id in repeated and self._texts[known] != text:
                        raise ArgumentError(
                            Said("--in"),
                            f" needs unique ids, but several documents have "
                            f"{escape_terminal(id)!r}; sign with --id and a column of unique ids",
                        )
                    continue
                self._texts.append(text)
                self._values.append(
                    {name: batch.column(first + n)[place].as_py() for n, name in enumerate(more)}
                )
            row += len(ids)
        missing = len(wanted) - len(self._places)
        if missing:
            warn(
                f"{counted(missing, 'document')} of the index not found in "
                f"{escape_terminal(self.corpus.name)}; is that the signed corpus?"
            )

    def columns_of(self, id: str | int) -> dict[str, Any] | None:
        """Return the other columns of a document; None if it is not there."""
        place = self._places.get(str(id))
        return None if place is None else self._values[place]

    def compared(self, text: str, ids: Sequence[str | int]) -> list[float | None]:
        """Return how similar documents are to a text; None for one that is not there."""
        places = [self._places.get(str(id)) for id in ids]
        there = [place for place in places if place is not None]
        documents = [text, *(self._texts[place] for place in there)]
        right = np.arange(1, len(documents))
        values = iter(self._similarity(documents, np.zeros_like(right), right).tolist())
        return [None if place is None else next(values) for place in places]

    def pairs(self, left: Sequence[str | int], right: Sequence[str | int]) -> NDArray[np.float64]:
        """Return how similar documents are to each other; NaN where one is not there."""
        places = [[self._places.get(str(id), -1) for id in ids] for ids in (left, right)]
        one, two = (np.array(place, np.int64) for place in places)
        there = np.flatnonzero((one >= 0) & (two >= 0))
        values = np.full(len(one), np.nan)
        if len(there):
            values[there] = self._similarity(self._texts, one[there], two[there])
        return values

    def _similarity(
        self, documents: list[str], left: NDArray[np.int64], right: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        how: dict[str, Any] = {"threads": self.threads, "weights": self.weights}
        found = similarity_by(self.measure, self.signer, documents, left, right, **how)
        return unrounded(found, self.threshold)


def similarity_by(
    measure: str | None,
    signer: DocumentSigner,
    documents: list[str],
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    *,
    threads: int | None = None,
    weights: Weights | None = None,
) -> NDArray[np.float64]:
    """Return how similar documents are, by default by the measure that signatures estimate.

    With `weights` of features, the measure is that of sets, or one of `RARITY_MEASURES`.
    """
    if measure is not None and weights is not None:
        of_sets, features = RARITY_MEASURES.get(measure, measure), signer.features
        name = f"weighted_{of_sets}"
        return similarity_pairs(name, documents, left, right, features, weights, threads=threads)
    if measure in (None, signer.measure):
        return exact_similarity(signer, documents, left, right, threads=threads)
    return similarity_pairs(measure, documents, left, right, signer.features, threads=threads)
