"""Rows of values that remember what signed them, so that nothing else is compared with them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike import _native
from lookalike.checks import as_array, real_array
from lookalike.errors import SignatureError
from lookalike.features.weights import LEARNT
from lookalike.shown import brief
from lookalike.signatures.signer import DocumentSigner, Signer

__all__ = ["SignedRows", "ValueSigner", "mark_of", "marked", "same_mark", "signer_mark"]

EMPTY = np.uint32(2**32 - 1)
"""What every value of a document without features is."""


class SignedRows(np.ndarray[tuple[int, ...], np.dtype[np.uint32]]):
    """An array as any other, whose rows, and parts of them, know their signer's settings.

    What is computed or put together from it is a plain array, as is what `np.asarray` makes of it.
    Where a plain array is given, nobody can know what signed it: only its width is checked.
    """

    mark: str | None = None

    def __array_finalize__(self, other: object) -> None:
        self.mark = getattr(other, "mark", None)

    def __array_wrap__(
        self, array: NDArray[Any], context: Any = None, return_scalar: bool = False
    ) -> Any:
        plain = np.asarray(array)
        return plain[()] if return_scalar else plain

    def __reduce__(self) -> Any:
        return marked, (np.asarray(self), self.mark)


def marked(values: NDArray[np.uint32], mark: str | None) -> NDArray[np.uint32]:
    """Return the same values with a mark."""
    rows = values.view(SignedRows)
    rows.mark = mark
    return rows


def mark_of(values: object) -> str | None:
    """Return the mark of rows; None if they have none."""
    return values.mark if isinstance(values, SignedRows) else None


def signer_mark(signer: Signer) -> str:
    """Return all that decides over a signer's values, as text; what it has learnt as a checksum."""
    description = signer.to_dict()
    weights = description.get("weights")
    if isinstance(weights, dict) and weights["kind"] not in LEARNT:
        description["weights"] = {**weights, "vocabulary": None}  # what was learnt is not used
    elif isinstance(weights, dict) and weights.get("vocabulary") is not None:
        learnt = json.dumps(weights["vocabulary"], sort_keys=True).encode()
        checksum = _native.Xxh64()
        checksum.add(np.frombuffer(learnt, np.uint8))
        description["weights"] = {**weights, "vocabulary": f"{checksum.value():016x}"}
    return json.dumps(description, sort_keys=True)


def same_mark(first: str | None, second: str | None) -> None:
    """Raise if both are known and differ."""
    if first is None or second is None or first == second:
        return
    one, other = json.loads(first), json.loads(second)
    names = [name for name in {**one, **other} if one.get(name) != other.get(name)]
    differing = [
        ", ".join(f"{name}={brief(side.get(name))}" for name in names) for side in (one, other)
    ]
    raise SignatureError(
        f"rows signed with {differing[1]} cannot be compared with rows signed with {differing[0]}: "
        "their values mean nothing to each other; sign both with the same signer"
    )


class ValueSigner(DocumentSigner):
    """A signer whose rows are values that agree as often as the documents are similar."""

    permutations: int

    @property
    def bits(self) -> int:
        """How many bits a row of values has."""
        return 32 * self.permutations

    @property
    def mark(self) -> str:
        """What the rows of this signer are marked with."""
        return signer_mark(self)

    def similarity(self, a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
        """Return the estimated similarity of rows of `a` with rows of `b`, in turn.

        A single row on either side is compared with all of the other. Where a document has no
        features, 0. Rows that another signer made are refused.
        """
        left, right = self._values(a, "the first values"), self._values(b, "the second values")
        check_paired(left, right)
        equal = (left == right) & (left != EMPTY)
        shares: NDArray[np.float64] = equal.mean(axis=1)
        return shares

    def standard_error(self, similarity: ArrayLike) -> NDArray[np.float64]:
        """Return the standard error of an estimate where the truth is `similarity`."""
        truth = real_array("similarity", similarity, at_least=0, at_most=1)
        return np.sqrt(truth * (1 - truth) / self.permutations)

    def _values(self, array: ArrayLike, name: str) -> NDArray[np.uint32]:
        values = as_array(name, array)
        if values.ndim == 1:
            values = values[None]
        if values.dtype != np.uint32 or values.ndim != 2 or values.shape[1] != self.permutations:
            raise SignatureError(
                f"{name} are {values.dtype} of shape {values.shape}; "
                f"expected uint32 with {self.permutations} columns, as sign() gives"
            )
        same_mark(self.mark, mark_of(array))
        return values


def check_paired(left: NDArray[Any], right: NDArray[Any], what: str = "rows") -> None:
    """Raise unless there are as many of one as of the other, or one of either."""
    if len(left) != len(right) and 1 not in (len(left), len(right)):
        raise SignatureError(
            f"there are {len(left)} first {what} and {len(right)} second ones; "
            "pairing them needs equal numbers"
        )
