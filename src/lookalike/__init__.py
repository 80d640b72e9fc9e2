"""Near-duplicates and nearest neighbours by binary signatures.

import lookalike as la

signatures = la.SimHash(bits=64).sign(documents)    # uint8[n, bits // 8]
index = la.ScanIndex(signatures)
nearest = index.search(signatures[:5], k=10)        # ids and distances, nearest first
"""

from lookalike._native import __version__
from lookalike.dedup import DedupResult, DedupSettings, dedup
from lookalike.errors import (
    ArgumentError,
    CorruptIndexError,
    DocumentError,
    FileError,
    FormatError,
    LookalikeError,
    MissingDependencyError,
    NotFittedError,
    ResultTooLargeError,
    SignatureError,
)
from lookalike.evaluation import Tuning, tune
from lookalike.features import (
    Chars,
    Features,
    Vocabulary,
    Weights,
    Words,
    cosine,
    cosine_pairs,
    jaccard,
    jaccard_pairs,
)
from lookalike.indexes import (
    Explanation,
    Index,
    Matches,
    Neighbors,
    Pairs,
    ScanIndex,
    ShardedIndex,
    SliceIndex,
    load_index,
)
from lookalike.signatures import (
    BBitMinHash,
    Kernel,
    MinHash,
    Projection,
    SignatureFile,
    Signer,
    SimHash,
    TopSig,
    hamming,
    kernels,
    load_signatures,
    load_signer,
    quantize_weights,
    restore_weights,
    save_signatures,
    signer_from_dict,
)

__all__ = [
    "ArgumentError",
    "BBitMinHash",
    "Chars",
    "CorruptIndexError",
    "DedupResult",
    "DedupSettings",
    "DocumentError",
    "Explanation",
    "Features",
    "FileError",
    "FormatError",
    "Index",
    "Kernel",
    "LookalikeError",
    "Matches",
    "MinHash",
    "MissingDependencyError",
    "Neighbors",
    "NotFittedError",
    "Pairs",
    "Projection",
    "ResultTooLargeError",
    "ScanIndex",
    "ShardedIndex",
    "SignatureError",
    "SignatureFile",
    "Signer",
    "SimHash",
    "SliceIndex",
    "TopSig",
    "Tuning",
    "Vocabulary",
    "Weights",
    "Words",
    "__version__",
    "cosine",
    "cosine_pairs",
    "dedup",
    "hamming",
    "jaccard",
    "jaccard_pairs",
    "kernels",
    "load_index",
    "load_signatures",
    "load_signer",
    "quantize_weights",
    "restore_weights",
    "save_signatures",
    "signer_from_dict",
    "tune",
]
