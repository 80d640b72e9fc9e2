"""A signer in one file: the signs of sums of random vectors, one for each word."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike.features import FeatureKind, Words
from lookalike.features.base import BATCH, text_batches
from lookalike.signatures.signer import DedupDefaults, DocumentSigner


class ToySigner(DocumentSigner):
    """Bits whose Hamming distance follows the cosine of word counts, made slowly in Python."""

    name = "toy"
    measure = "cosine"
    usual_bits = 256
    dedup_defaults = DedupDefaults(ngram=1)

    def __init__(
        self,
        bits: int = usual_bits,
        features: FeatureKind | None = None,
        seed: SupportsIndex = 0,
    ) -> None:
        super().__init__(Words() if features is None else features, seed)
        self.bits = bits

    def sign(self, documents: Any, *, threads: SupportsIndex | None = None) -> NDArray[np.uint8]:
        """Return the signatures, `uint8[n, bits // 8]`."""
        texts = [text for batch in text_batches(documents, BATCH) for text in batch.to_list()]
        rows = np.zeros((len(texts), self.bits), np.int64)
        for row, text in zip(rows, texts, strict=True):
            for word in text.lower().split():
                row += self._vector(word)
        return np.packbits(rows > 0, axis=1, bitorder="little")

    def _vector(self, word: str) -> NDArray[np.int64]:
        key = f"{self.seed} {word}".encode()
        digest = b"".join(
            blake2b(key, digest_size=8, salt=place.to_bytes(8, "little")).digest()
            for place in range(-(-self.bits // 64))
        )
        bits = np.unpackbits(np.frombuffer(digest, np.uint8))[: self.bits]
        return 2 * bits.astype(np.int64) - 1
