"""`datasketch.weighted_minhash`: consistent samples of vectors of counts (Ioffe)."""

from __future__ import annotations

from collections.abc import Sized
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.errors import ArgumentError


class WeightedMinHash:
    """Samples of one vector: a dimension and a number of steps each."""

    def __init__(self, seed: int, hashvalues: NDArray[Any]) -> None:
        self.seed = seed
        self.hashvalues = hashvalues

    def jaccard(self, other: WeightedMinHash) -> float:
        """Return the estimated weighted Jaccard similarity of both vectors."""
        if other.seed != self.seed:
            raise ArgumentError(f"seeds {self.seed} and {other.seed} differ; expected the same one")
        if len(other) != len(self):
            raise ArgumentError(f"there are {len(self)} and {len(other)} samples; expected as many")
        same = np.asarray(self.hashvalues) == np.asarray(other.hashvalues)
        return float(np.count_nonzero(same.reshape(len(self), -1).all(axis=1))) / len(self)

    def digest(self) -> NDArray[Any]:
        """Return a copy of the samples."""
        return np.copy(self.hashvalues)

    def copy(self) -> WeightedMinHash:
        """Return another one with the same samples."""
        return WeightedMinHash(self.seed, self.digest())

    def __len__(self) -> int:
        return len(self.hashvalues)

    def __eq__(self, other: object) -> bool:
        return (
            type(self) is type(other)
            and isinstance(other, WeightedMinHash)
            and self.seed == other.seed
            and np.array_equal(self.hashvalues, other.hashvalues)
        )

    __hash__ = None  # type: ignore[assignment]  # like theirs


class WeightedMinHashGenerator:
    """Draws samples of vectors of `dim` numbers that are 0 or more."""

    def __init__(self, dim: int, sample_size: int = 128, seed: int = 1) -> None:
        self.dim = dim
        self.sample_size = sample_size
        self.seed = seed
        random = np.random.RandomState(seed)
        shape = (sample_size, dim)
        self.rs = random.gamma(2, 1, shape).astype(np.float32)
        self.ln_cs = np.log(random.gamma(2, 1, shape)).astype(np.float32)
        self.betas = random.uniform(0, 1, shape).astype(np.float32)

    def minhash(self, v: Any) -> WeightedMinHash:
        """Return the samples of one vector."""
        if not isinstance(v, Sized):
            raise TypeError("the vector has no length")
        if len(v) != self.dim:
            raise ArgumentError(f"the vector has {len(v)} dimensions; expected {self.dim}")
        found = self._sampled(np.array(v, np.float32), alone=True)
        if found is None:
            raise ArgumentError("the vector has only zeros, of which nothing can be drawn")
        return found

    def minhash_many(self, X: Any) -> list[WeightedMinHash | None]:  # noqa: N803  # its name
        """Return the samples of each row of a matrix, dense or SciPy's; None for rows of zeros.

        As with datasketch, the last bits of ranks are rounded otherwise than `minhash` does.
        """
        sparse = hasattr(X, "tocsr")
        if not sparse and not isinstance(X, np.ndarray):
            raise TypeError("X is neither an array nor a sparse matrix")
        if X.ndim != 2:
            raise ArgumentError(f"X has {X.ndim} dimensions; expected 2")
        if X.shape[1] != self.dim:
            raise ArgumentError(f"X has {X.shape[1]} columns; expected {self.dim}")
        matrix = X.tocsr() if sparse else X
        return [
            self._sampled(
                np.ravel(row.toarray() if sparse else row).astype(np.float32), alone=False
            )
            for row in matrix
        ]

    def _sampled(self, vector: NDArray[np.float32], alone: bool) -> WeightedMinHash | None:
        """Return the samples of a vector, None if it has only zeros."""
        (places,) = np.nonzero(vector > 0)
        if not len(places):
            return None
        logs, rs, betas = self.ln_cs[:, places], self.rs[:, places], self.betas[:, places]
        steps = np.floor(np.log(vector[places]) / rs + betas)
        ranks = logs - (steps - betas) * rs - rs if alone else logs - (steps - betas + 1) * rs
        least = np.argmin(ranks, axis=1)
        drawn = steps[np.arange(self.sample_size), least].astype(int)
        return WeightedMinHash(self.seed, np.column_stack([places[least], drawn]).astype(int))
