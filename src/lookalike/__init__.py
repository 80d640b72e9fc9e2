"""Near-duplicates and nearest neighbors by binary signatures.

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
    Combined,
    FeatureFunction,
    Features,
    Vocabulary,
    Weights,
    Words,
    containment,
    containment_pairs,
    cosine,
    cosine_pairs,
    jaccard,
    jaccard_pairs,
    weighted_jaccard,
    weighted_jaccard_pairs,
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
    WeightedMinHash,
    estimated_radius,
    estimated_similarity,
    hamming,
    kernels,
    load_hex,
    load_signatures,
    load_signer,
    quantize_weights,
    restore_weights,
    save_signatures,
    signatures_from_hex,
    signatures_to_hex,
    signer_from_dict,
)

if TYPE_CHECKING:
    from lookalike.advice import evaluate, plan, tune
    from lookalike.client import RemoteCollection, connect
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
    from lookalike.common_passages import (
        Overlap,
        Overlaps,
        Passage,
        PassageHash,
        Passages,
        overlaps,
        passages,
        sign_passages,
    )
    from lookalike.compare.texts import Comparison, compare_texts
    from lookalike.dedup import (
        DedupResult,
        DedupSettings,
        MediaResult,
        PairClusters,
        TextResult,
        VectorResult,
        cluster_pairs,
    )
    from lookalike.features.links import Links
    from lookalike.gpu import GpuIndex
    from lookalike.images.image_hash import ImageHash
    from lookalike.images.thumbnails import thumbnail
    from lookalike.indexes import (
        BandIndex,
        BlockIndex,
        ClusterIndex,
        Clusters,
        Explanation,
        FlipIndex,
        Index,
        KeyMatch,
        KeyMatches,
        Matches,
        Neighbors,
        Pairs,
        PrefixIndex,
        ScanIndex,
        ShardedIndex,
        SignatureFile,
        SliceIndex,
        Tuning,
        cluster,
        load_index,
        match_batch,
        merge_neighbors,
        open_index,
    )
    from lookalike.pages import PageLimits
    from lookalike.parts import PartAnswer, PartIndex, PartMatch
    from lookalike.recordings.audio_hash import AudioHash, Fingerprint
    from lookalike.recordings.index import RecordingIndex, RecordingMatch
    from lookalike.topics import DocumentCluster, DocumentClusters, cluster_documents
    from lookalike.vectors import (
        VectorIndex,
        VectorMatches,
        VectorNeighbors,
        VectorPairs,
    )

__all__ = [
    "Answer",
    "ArgumentError",
    "AudioHash",
    "BBitMinHash",
    "BandIndex",
    "BatchError",
    "BlockIndex",
    "Chars",
    "ClusterIndex",
    "Clusters",
    "Collection",
    "CollectionBusyError",
    "CollectionError",
    "Combined",
    "Comparison",
    "CorruptIndexError",
    "DedupResult",
    "DedupSettings",
    "Document",
    "DocumentCluster",
    "DocumentClusters",
    "DocumentError",
    "Explanation",
    "FeatureFunction",
    "Features",
    "FileError",
    "Fingerprint",
    "FlipIndex",
    "FormatError",
    "GpuIndex",
    "ImageHash",
    "Index",
    "ItemError",
    "Kernel",
    "KeyMatch",
    "KeyMatches",
    "Links",
    "LookalikeError",
    "LookalikeWarning",
    "Match",
    "Matches",
    "MediaResult",
    "MinHash",
    "MissingDependencyError",
    "Neighbors",
    "NotFittedError",
    "NotFoundError",
    "Overlap",
    "Overlaps",
    "PageLimits",
    "Pair",
    "PairClusters",
    "Pairs",
    "PartAnswer",
    "PartIndex",
    "PartMatch",
    "Passage",
    "PassageHash",
    "Passages",
    "PrefixIndex",
    "Projection",
    "RecordingIndex",
    "RecordingMatch",
    "RemoteCollection",
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
    "TextResult",
    "TopSig",
    "Tuning",
    "VectorIndex",
    "VectorMatches",
    "VectorNeighbors",
    "VectorPairs",
    "VectorResult",
    "Vocabulary",
    "WeightedMinHash",
    "Weights",
    "Words",
    "Work",
    "Written",
    "__version__",
    "cluster",
    "cluster_documents",
    "cluster_pairs",
    "compare_texts",
    "connect",
    "containment",
    "containment_pairs",
    "cosine",
    "cosine_pairs",
    "dedup",
    "drop_collection",
    "estimated_radius",
    "estimated_similarity",
    "evaluate",
    "hamming",
    "jaccard",
    "jaccard_pairs",
    "kernels",
    "list_collections",
    "load_hex",
    "load_index",
    "load_signatures",
    "load_signer",
    "match_batch",
    "merge_neighbors",
    "open_collection",
    "open_index",
    "overlaps",
    "passages",
    "plan",
    "quantize_weights",
    "restore_collection",
    "restore_weights",
    "save_signatures",
    "sign_passages",
    "signatures_from_hex",
    "signatures_to_hex",
    "signer_from_dict",
    "thumbnail",
    "tune",
    "weighted_jaccard",
    "weighted_jaccard_pairs",
]

# What not everybody needs is imported when it is first asked for: `import lookalike` stays quick.
__getattr__ = names_from(
    globals(),
    {
        "lookalike.advice": "evaluate plan tune",
        "lookalike.client": "RemoteCollection connect",
        "lookalike.collection": "Answer Collection Document ItemError Match Pair Report Work "
        "Written drop_collection list_collections open_collection restore_collection",
        "lookalike.compare.texts": "Comparison compare_texts",
        "lookalike.dedup": "DedupResult DedupSettings MediaResult PairClusters TextResult "
        "VectorResult cluster_pairs",
        "lookalike.features.links": "Links",
        "lookalike.gpu": "GpuIndex",
        "lookalike.images.image_hash": "ImageHash",
        "lookalike.images.thumbnails": "thumbnail",
        "lookalike.indexes": "BandIndex BlockIndex ClusterIndex Clusters Explanation FlipIndex "
        "Index KeyMatch KeyMatches Matches Neighbors Pairs PrefixIndex ScanIndex ShardedIndex "
        "SignatureFile SliceIndex Tuning cluster load_index match_batch merge_neighbors "
        "open_index",
        "lookalike.pages": "PageLimits",
        "lookalike.parts": "PartAnswer PartIndex PartMatch",
        "lookalike.common_passages": "Overlap Overlaps Passage PassageHash Passages overlaps "
        "passages sign_passages",
        "lookalike.topics": "DocumentCluster DocumentClusters cluster_documents",
        "lookalike.recordings.audio_hash": "AudioHash Fingerprint",
        "lookalike.recordings.index": "RecordingIndex RecordingMatch",
        "lookalike.vectors": "VectorIndex VectorMatches VectorNeighbors VectorPairs",
    },
)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


del TYPE_CHECKING, names_from
