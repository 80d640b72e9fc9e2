"""Near-duplicates and nearest neighbours by binary signatures.

import lookalike as la

signatures = la.SimHash(bits=64).sign(documents)    # uint8[n, bits // 8]
index = la.ScanIndex(signatures)
nearest = index.search(signatures[:5], k=10)        # ids and distances, nearest first
"""

from typing import TYPE_CHECKING

from lookalike._native import __version__
from lookalike.dedup import dedup
from lookalike.errors import (
    ArgumentError,
    BatchError,
    CollectionBusyError,
    CollectionError,
    CorruptIndexError,
    DocumentError,
    FileError,
    FormatError,
    LookalikeError,
    LookalikeWarning,
    MissingDependencyError,
    NotFittedError,
    NotFoundError,
    ResultTooLargeError,
    SignatureError,
)
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
from lookalike.lazy import names_from
from lookalike.signatures import (
    BBitMinHash,
    Kernel,
    MinHash,
    Projection,
    SavedSignatures,
    Signer,
    SimHash,
    TopSig,
    estimated_radius,
    estimated_similarity,
    hamming,
    kernels,
    load_signatures,
    load_signer,
    quantize_weights,
    restore_weights,
    save_signatures,
    signer_from_dict,
)

if TYPE_CHECKING:
    from lookalike.collection import (
        Answer,
        Collection,
        Document,
        ItemError,
        Match,
        Pair,
        Report,
        Work,
        Written,
        drop_collection,
        list_collections,
        open_collection,
        restore_collection,
    )
    from lookalike.dedup import DedupResult, DedupSettings
    from lookalike.evaluation.tune import Tuning, tune
    from lookalike.indexes import (
        BlockIndex,
        Explanation,
        FlipIndex,
        FlipTuning,
        Index,
        Matches,
        Neighbors,
        Pairs,
        ScanIndex,
        ShardedIndex,
        SignatureFile,
        SliceIndex,
        load_index,
        match_batch,
        open_index,
    )
    from lookalike.planning import Plan, plan

__all__ = [
    "Answer",
    "ArgumentError",
    "BBitMinHash",
    "BatchError",
    "BlockIndex",
    "Chars",
    "Collection",
    "CollectionBusyError",
    "CollectionError",
    "CorruptIndexError",
    "DedupResult",
    "DedupSettings",
    "Document",
    "DocumentError",
    "Explanation",
    "Features",
    "FileError",
    "FlipIndex",
    "FlipTuning",
    "FormatError",
    "Index",
    "ItemError",
    "Kernel",
    "LookalikeError",
    "LookalikeWarning",
    "Match",
    "Matches",
    "MinHash",
    "MissingDependencyError",
    "Neighbors",
    "NotFittedError",
    "NotFoundError",
    "Pair",
    "Pairs",
    "Plan",
    "Projection",
    "Report",
    "ResultTooLargeError",
    "SavedSignatures",
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
    "Work",
    "Written",
    "__version__",
    "cosine",
    "cosine_pairs",
    "dedup",
    "drop_collection",
    "estimated_radius",
    "estimated_similarity",
    "hamming",
    "jaccard",
    "jaccard_pairs",
    "kernels",
    "list_collections",
    "load_index",
    "load_signatures",
    "load_signer",
    "match_batch",
    "open_collection",
    "open_index",
    "plan",
    "quantize_weights",
    "restore_collection",
    "restore_weights",
    "save_signatures",
    "signer_from_dict",
    "tune",
]

# What not everybody needs is imported when it is first asked for: `import lookalike` stays quick.
__getattr__ = names_from(
    globals(),
    {
        "lookalike.collection": (
            "Answer",
            "Collection",
            "Document",
            "ItemError",
            "Match",
            "Pair",
            "Report",
            "Work",
            "Written",
            "drop_collection",
            "list_collections",
            "open_collection",
            "restore_collection",
        ),
        "lookalike.dedup": ("DedupResult", "DedupSettings"),
        "lookalike.evaluation": ("Tuning", "tune"),
        "lookalike.indexes": (
            "BlockIndex",
            "Explanation",
            "FlipIndex",
            "FlipTuning",
            "Index",
            "Matches",
            "Neighbors",
            "Pairs",
            "ScanIndex",
            "ShardedIndex",
            "SignatureFile",
            "SliceIndex",
            "load_index",
            "match_batch",
            "open_index",
        ),
        "lookalike.planning": ("Plan", "plan"),
    },
)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


del TYPE_CHECKING, names_from
