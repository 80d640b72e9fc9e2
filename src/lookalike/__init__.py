"""Near-duplicates and nearest neighbours by binary signatures.

import lookalike as la

index = la.ScanIndex(signatures)         # uint8[n, bits // 8]
nearest = index.search(queries, k=10)    # ids and distances, nearest first
"""

from lookalike._native import __version__
from lookalike.errors import (
    ArgumentError,
    CorruptIndexError,
    FileError,
    FormatError,
    LookalikeError,
    MissingDependencyError,
    ResultTooLargeError,
    SignatureError,
)
from lookalike.indexes import Index, Matches, Neighbors, Pairs, ScanIndex, load_index
from lookalike.signatures import Kernel, hamming, kernels

__all__ = [
    "ArgumentError",
    "CorruptIndexError",
    "FileError",
    "FormatError",
    "Index",
    "Kernel",
    "LookalikeError",
    "Matches",
    "MissingDependencyError",
    "Neighbors",
    "Pairs",
    "ResultTooLargeError",
    "ScanIndex",
    "SignatureError",
    "__version__",
    "hamming",
    "kernels",
    "load_index",
]
