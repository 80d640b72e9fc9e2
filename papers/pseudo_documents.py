"""More documents than there are, and of the same kind.

Pseudo-documents are made from real ones: a document is taken, and a share of its words is replaced
by words of a few others of its category. For most of them that share is large, and what comes out
is one more abstract about similar things. For a few it is next to nothing: these are revisions,
boilerplate, copies. All are text, and are signed as text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

__all__ = ["SETTINGS", "Corpus", "enlarge"]

SEED = 40
NEAR_SHARE = 0.06
"""How many pseudo-documents are near-duplicates of the document that they were made from."""
NEAR_REPLACED = 0.4
"""The largest share of words that is replaced in these; uniform from 0."""
REPLACED = (3.0, 1.5)
"""The share of words replaced in the others is drawn from the beta distribution with these."""
LEAST_REPLACED = 0.3
DONORS = 3
BLOCK = 20_000
SETTINGS = (SEED, NEAR_SHARE, NEAR_REPLACED, REPLACED, LEAST_REPLACED, DONORS, BLOCK)
"""All that the pseudo-documents of a corpus depend on."""


@dataclass(frozen=True, eq=False)
class Corpus:
    """Documents as numbers of words, one after the other."""

    words: NDArray[np.object_]
    tokens: NDArray[np.int32]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    by_category: NDArray[np.int64]
    """Documents ordered by category."""
    first: NDArray[np.int64]
    """For each document, where its category begins in `by_category`."""
    members: NDArray[np.int64]
    """For each document, how many its category has."""

    @classmethod
    def of(cls, texts: Sequence[str], categories: Sequence[str]) -> Corpus:
        """Take texts, which must have words, apart at spaces."""
        known: dict[str, int] = {}
        split = [text.split() for text in texts]
        lengths = np.array([len(words) for words in split])
        tokens = np.fromiter(
            (known.setdefault(word, len(known)) for words in split for word in words),
            np.int32,
            count=int(lengths.sum()),
        )
        _, category, sizes = np.unique(
            np.array(categories), return_inverse=True, return_counts=True
        )
        return cls(
            np.array(list(known), dtype=object),
            tokens,
            np.cumsum(lengths) - lengths,
            lengths,
            np.argsort(category, kind="stable"),
            (np.cumsum(sizes) - sizes)[category],
            sizes[category],
        )


def enlarge(corpus: Corpus, count: int) -> Iterator[tuple[list[str], NDArray[np.bool_]]]:
    """Yield `count` pseudo-documents, in blocks, and which are near-duplicates of their originals.

    The same ones each time.
    """
    generator = np.random.default_rng(SEED)
    for start in range(0, count, BLOCK):
        yield _pseudo_documents(corpus, min(BLOCK, count - start), generator)


def _pseudo_documents(
    corpus: Corpus, count: int, generator: Generator
) -> tuple[list[str], NDArray[np.bool_]]:
    base = generator.integers(len(corpus.lengths), size=count)
    share = LEAST_REPLACED + (1 - LEAST_REPLACED) * generator.beta(*REPLACED, size=count)
    near = generator.random(count) < NEAR_SHARE
    share[near] = NEAR_REPLACED * generator.random(np.count_nonzero(near))
    chosen = corpus.first[base] + (corpus.members[base] * generator.random((DONORS, count))).astype(
        np.int64
    )
    donors = corpus.by_category[chosen]

    lengths = corpus.lengths[base]
    ends = np.cumsum(lengths)
    total = int(ends[-1])
    document = np.repeat(np.arange(count), lengths)
    place = np.arange(total) - np.repeat(ends - lengths, lengths)
    source = corpus.starts[base][document] + place

    replaced = np.flatnonzero(generator.random(total) < share[document])
    donor = donors[generator.integers(DONORS, size=len(replaced)), document[replaced]]
    place = (corpus.lengths[donor] * generator.random(len(replaced))).astype(np.int64)
    source[replaced] = corpus.starts[donor] + place
    words = corpus.words[corpus.tokens[source]].tolist()
    texts = [
        " ".join(words[end - length : end])
        for end, length in zip(ends.tolist(), lengths.tolist(), strict=True)
    ]
    return texts, near
