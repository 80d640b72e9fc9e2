"""A collection of signatures larger than the documents there are, and of the same kind.

Pseudo-documents are made from real ones: a document is taken, and a share of its words is replaced
by words of a few others of its category. For most of them that share is large, and what comes out
is one more abstract about similar things. For a few it is next to nothing: these are revisions,
boilerplate, copies. All are text, and are signed as text.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

import lookalike as la
from benchmarks.documents import FILE, read_documents

__all__ = ["Collection", "enlarge", "signed_collection"]

Signatures = NDArray[np.uint8]

SEED = 40
BITS = 1024
MADE_UP = 120_000
"""Documents to begin with where there are no real ones."""
NEAR_SHARE = 0.06
"""How many pseudo-documents are near-duplicates of the document that they were made from."""
NEAR_REPLACED = 0.4
"""The largest share of words that is replaced in these; uniform from 0."""
REPLACED = (3.0, 1.5)
"""The share of words replaced in the others is drawn from the beta distribution with these."""
LEAST_REPLACED = 0.3
DONORS = 3
BLOCK = 20_000


@dataclass(frozen=True, eq=False)
class Collection:
    """Signatures of real and pseudo-documents, in random order, and queries held out of them."""

    signatures: Signatures
    queries: Signatures
    """Of all kinds, as the collection has them."""
    near_queries: Signatures
    """Of near-duplicates that were made on purpose; their originals are in the collection."""
    real: Signatures
    """Of the real documents alone, in random order."""
    origin: str


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


def signed_collection(
    folder: Path | None, cache: Path, count: int, queries: int, near_queries: int, *, part: int = 1
) -> Collection:
    """Return `count` signatures of 1024 bits and queries that are not among them.

    Made from every `part`-th abstract in `folder`, or of made-up text without one. What was made
    is kept in `cache` and read from there the next time, if all that it depends on is the same.
    """
    texts, categories, origin = _read(folder, part)
    signer = la.TopSig(BITS, features=la.Words(stopwords="english")).fit(texts)
    real = signer.sign(texts)
    settings = (SEED, NEAR_SHARE, NEAR_REPLACED, REPLACED, LEAST_REPLACED, DONORS, BLOCK)
    made_from = zlib.crc32(repr(settings).encode(), zlib.crc32(real.tobytes()))
    file = cache / f"enlarged-{count}-{queries}-{near_queries}-{made_from:08x}.npz"
    if not file.is_file():
        wanted = count + queries + near_queries - len(real)
        _write(
            file, _split(real, *_signed(signer, texts, categories, wanted), queries, near_queries)
        )
    with np.load(file) as arrays:
        return Collection(
            arrays["signatures"],
            arrays["queries"],
            arrays["near_queries"],
            arrays["real"],
            f"{origin}: {len(real):,} documents, and pseudo-documents made from them",
        )


def _read(folder: Path | None, part: int) -> tuple[list[str], list[str], str]:
    """Return documents with words, their first categories, and what they are."""
    if folder is None:
        documents = read_documents(None, MADE_UP // part)
        return documents.texts, [""] * len(documents.texts), documents.origin
    with gzip.open(folder / FILE, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in islice(lines, 0, None, part)]
    rows = [row for row in rows if row["abstract"].split()]
    categories = [row["categories"].partition(",")[0] for row in rows]
    return [row["abstract"] for row in rows], categories, f"{FILE}, abstracts"


def _signed(
    signer: la.TopSig, texts: Sequence[str], categories: Sequence[str], count: int
) -> tuple[Signatures, NDArray[np.bool_]]:
    blocks = [
        (signer.sign(block), near) for block, near in enlarge(Corpus.of(texts, categories), count)
    ]
    signatures, near = zip(*blocks, strict=True)
    return np.concatenate(signatures), np.concatenate(near)


def _split(
    real: Signatures,
    pseudo: Signatures,
    near: NDArray[np.bool_],
    queries: int,
    near_queries: int,
) -> dict[str, Signatures]:
    """Shuffle, and hold queries out."""
    generator = np.random.default_rng(SEED + 1)
    rows = np.concatenate([real, pseudo])
    is_near = np.concatenate([np.zeros(len(real), bool), near])
    order = generator.permutation(len(rows))
    asked, order = order[:queries], order[queries:]
    near_asked = order[is_near[order]][:near_queries]
    order = order[~np.isin(order, near_asked)]
    return {
        "signatures": rows[order],
        "queries": rows[asked],
        "near_queries": rows[near_asked],
        "real": real[generator.permutation(len(real))],
    }


def _write(file: Path, arrays: dict[str, Signatures]) -> None:
    """Write whole or not at all: a run that is stopped leaves nothing that looks complete."""
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_suffix(f".{os.getpid()}")
    with open(unfinished, "wb") as stream:
        np.savez(stream, allow_pickle=False, **arrays)
    unfinished.replace(file)


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
