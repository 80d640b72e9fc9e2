"""A collection of signatures larger than the documents there are, and of the same kind.

Made of pseudo-documents, which are text and are signed as text.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from papers.pseudo_documents import SETTINGS, Corpus, enlarge

import lookalike as la
from benchmarks.signing.documents import FILE, read_documents

__all__ = ["Collection", "Signatures", "enlarged_signatures", "signed_collection"]

Signatures = NDArray[np.uint8]

SEED = 40
BITS = 1024
MADE_UP = 120_000
"""Documents to begin with where there are no real ones."""


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
    made_from = zlib.crc32(repr(SETTINGS).encode(), zlib.crc32(real.tobytes()))
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


def enlarged_signatures(
    signer: la.Signer,
    folder: Path | None,
    cache: Path,
    count: int,
    *,
    part: int = 1,
) -> Signatures:
    """Return `count` signatures by another signer, in random order, made and kept likewise."""
    texts, categories, _ = _read(folder, part)
    real = signer.sign(texts)[:count]
    made_from = zlib.crc32(repr(SETTINGS).encode(), zlib.crc32(real.tobytes()))
    file = cache / f"enlarged-{count}x{8 * real.shape[1]}-{made_from:08x}.npz"
    if not file.is_file():
        pseudo, _ = _signed(signer, texts, categories, count - len(real))
        rows = np.concatenate([real, pseudo])
        _write(file, {"signatures": rows[np.random.default_rng(SEED).permutation(len(rows))]})
    with np.load(file) as arrays:
        return np.asarray(arrays["signatures"])


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
    signer: la.Signer,
    texts: Sequence[str],
    categories: Sequence[str],
    count: int,
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
