"""Arrays of signatures, and their Hamming distances.

Signatures are `uint8[n, bits // 8]` in C order; bit j of a signature is bit `j % 8` of its byte
`j // 8`, as `np.packbits(..., bitorder="little")` packs bits. `uint64[n]` (64 bits each) and
`uint64[n, bits // 64]` are the same bytes as little-endian words, and are accepted.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike import _native
from lookalike.checks import flag, thread_count
from lookalike.errors import ArgumentError, SignatureError

if TYPE_CHECKING:
    from lookalike.signatures.signer import Signer

_Number = TypeVar("_Number", bound=np.integer[Any])

# Distances are int32, so a signature may have no more bits than that can count.
MAX_BITS = 2**31 - 8


def as_signatures(
    array: ArrayLike, name: str = "signatures", *, single: bool = False
) -> NDArray[np.uint8]:
    """Return `array` as `uint8[n, bytes]` in C order, without a copy where it is so already.

    With `single`, `uint8[bytes]` is one signature.
    """
    words = _as_words(array, name)
    if single and words.dtype == np.uint8 and words.ndim == 1:
        words = words[None]
    if words.dtype.itemsize == 8 and words.ndim == 1:
        words = words[:, None]
    if words.ndim != 2:
        one = f"; for one signature of {8 * words.size} bits pass {name}[None]"
        raise SignatureError(
            f"{name} have shape {words.shape}; expected two dimensions, (count, bits // 8)"
            f"{one if words.ndim == 1 else ''}"
        )
    if words.dtype.itemsize == 8:
        words = words.astype("<u8", copy=False)
    rows = np.ascontiguousarray(words).view(np.uint8)
    if not 1 <= rows.shape[1] <= MAX_BITS // 8:
        raise SignatureError(
            f"{name} have shape {rows.shape}, which is {8 * rows.shape[1]} bits each; "
            f"expected 8 to {MAX_BITS} bits"
        )
    return rows


def as_queries(
    queries: ArrayLike, bits: int, name: str = "queries", *, signer: Signer | None = None
) -> NDArray[np.uint8]:
    """Return queries as signatures of `bits` bits; one query is a batch of one.

    This is the rule for all indexes and collections. Queries are signatures, or texts that the
    signer signs (for `la.ImageHash`, paths of files). One query is an array without the first axis,
    or a `str`.
    """
    texts = listed_texts(queries)
    if texts:
        if signer is None:
            raise SignatureError(
                f"{name} are text, and the index has no signer; pass signatures, or set "
                "index.signer to the signer of its signatures"
            )
        queries = signer.sign(texts)
    words = _as_words(queries, name)
    if words.dtype.itemsize == 8 and words.ndim == 1 and 64 * len(words) == bits != 64:
        words = words[None]
    rows = as_signatures(words, name, single=True)
    if 8 * rows.shape[1] != bits:
        raise SignatureError(
            f"{name} have {8 * rows.shape[1]} bits, the index has {bits}; "
            "sign both with the same signer"
        )
    return rows


def listed_texts(queries: Any) -> list[str] | None:
    """Return texts as a list, one text as a list of one; None if these are not texts."""
    if isinstance(queries, str):
        return [str(queries)]
    if isinstance(queries, Sequence) and all(isinstance(one, str) for one in queries):
        return list(map(str, queries))
    return None


def _as_words(array: ArrayLike, name: str) -> NDArray[Any]:
    """Return an array of uint8 or uint64, or raise."""
    try:
        words = np.asarray(array)
    except (TypeError, ValueError, OverflowError) as error:
        raise SignatureError(f"{name} cannot be read as an array: {error}") from error
    if words.dtype.kind == "u" and words.dtype.itemsize in (1, 8):
        return words
    hint = ""
    if words.dtype == np.bool_:
        hint = "; pack bits with np.packbits(bits, axis=1, bitorder='little')"
    elif words.dtype.kind in "iu":
        hint = "; if these are the right bits, reinterpret them with .view(np.uint8)"
    elif words.dtype.kind == "f":
        hint = "; vectors must be turned into bits first"
    raise SignatureError(f"{name} are {words.dtype}; expected uint8 or uint64{hint}")


def distinct(numbers: NDArray[_Number]) -> NDArray[_Number]:
    """Return distinct numbers, ascending; `np.unique` hashes them, which takes much longer."""
    ascending = np.sort(numbers)
    is_first = np.append(True, ascending[1:] != ascending[:-1])[: len(ascending)]
    found: NDArray[_Number] = ascending[is_first]
    return found


def hamming(
    a: ArrayLike, b: ArrayLike, *, all_pairs: bool = False, threads: SupportsIndex | None = None
) -> NDArray[np.int32]:
    """Return the number of bits in which signatures differ.

    Args:
        a: Signatures, or a single signature that is compared with all of `b`.
        b: Signatures, or a single signature that is compared with all of `a`.
        all_pairs: Return the matrix `int32[len(a), len(b)]` instead of comparing row by row.
        threads: Number of threads of a matrix (default: all cores).

    Examples:
        >>> la.hamming(np.array([[0], [7]], np.uint8), np.array([[1], [0]], np.uint8)).tolist()
        [1, 3]
    """
    left = as_signatures(a, "the first signatures", single=True)
    right = as_signatures(b, "the second signatures", single=True)
    if left.shape[1] != right.shape[1]:
        raise SignatureError(
            f"the first signatures have {8 * left.shape[1]} bits, the second {8 * right.shape[1]}; "
            "only signatures of one width can be compared"
        )
    matrix_wanted = flag("all_pairs", all_pairs)
    if matrix_wanted or 1 in (len(left), len(right)):
        matrix = np.empty((len(left), len(right)), np.int32)
        _native.scan_all(left, right, thread_count(threads), matrix)
        return matrix if matrix_wanted else matrix.reshape(-1)
    if len(left) != len(right):
        raise SignatureError(
            f"there are {len(left)} first signatures and {len(right)} second ones; "
            "pairing them needs equal numbers, all_pairs=True compares each with each"
        )
    distances = np.empty(len(left), np.int32)
    _native.paired_distances(left, right, distances)
    return distances


VARIABLE = "LOOKALIKE_KERNEL"


class Kernel(NamedTuple):
    """One implementation of the distance loops."""

    name: str
    supported: bool
    """Whether this processor can run it."""
    active: bool
    """Whether it is the one in use."""


def kernels() -> tuple[Kernel, ...]:
    """Return the kernels in this build, widest first."""
    return tuple(Kernel(*row) for row in _native.kernels())


def select_kernel(name: str) -> None:
    """Use the kernel of that name from now on, in the whole process."""
    if not _native.select_kernel(name):
        usable = ", ".join(kernel.name for kernel in kernels() if kernel.supported)
        raise ArgumentError(
            f"{VARIABLE} is {name!r}, which this build or processor does not have; "
            f"expected one of: {usable}"
        )


if os.environ.get(VARIABLE):
    select_kernel(os.environ[VARIABLE])
