"""Find near-duplicates and nearest neighbors by binary signatures.

import lookalike as la

signatures = la.SimHash(bits=64).sign(documents)    # uint8[n, bits // 8]
index = la.ScanIndex(signatures)
nearest = index.search(signatures[:5], k=10)        # ids and distances, nearest first

`la.results` has the types of all answers, `la.errors` everything that is raised. A name or module
is imported when it is first used, so `import lookalike` is quick.
"""

from typing import TYPE_CHECKING

from lookalike._native import __version__ as __version__

# The function has the name of its package, so it is imported first: later imports keep it.
from lookalike.dedup import dedup as dedup
from lookalike.lazy import lazy_names

if TYPE_CHECKING:
    # What type checkers read; the table below says the same.
    from lookalike import advice as advice
    from lookalike import client as client
    from lookalike import errors as errors
    from lookalike import features as features
    from lookalike import images as images
    from lookalike import indexes as indexes
    from lookalike import pages as pages
    from lookalike import results as results
    from lookalike import signatures as signatures
    from lookalike.advice import evaluate as evaluate
    from lookalike.advice import plan as plan
    from lookalike.advice import tune as tune
    from lookalike.cleaning import clean as clean
    from lookalike.cleaning import decontaminate as decontaminate
    from lookalike.client import connect as connect
    from lookalike.collection import Collection as Collection
    from lookalike.collection import drop_collection as drop_collection
    from lookalike.collection import list_collections as list_collections
    from lookalike.collection import open_collection as open_collection
    from lookalike.collection import restore_collection as restore_collection
    from lookalike.common_passages.finding import overlaps as overlaps
    from lookalike.common_passages.finding import passages as passages
    from lookalike.common_passages.signing import PassageHash as PassageHash
    from lookalike.common_passages.signing import sign_passages as sign_passages
    from lookalike.compare.texts import compare_texts as compare_texts
    from lookalike.dedup.pair_groups import group_pairs as group_pairs
    from lookalike.errors import LookalikeError as LookalikeError
    from lookalike.errors import LookalikeWarning as LookalikeWarning
    from lookalike.features import Chars as Chars
    from lookalike.features import Combined as Combined
    from lookalike.features import FeatureFunction as FeatureFunction
    from lookalike.features import ShortText as ShortText
    from lookalike.features import Vocabulary as Vocabulary
    from lookalike.features import Weights as Weights
    from lookalike.features import Words as Words
    from lookalike.features import containment as containment
    from lookalike.features import cosine as cosine
    from lookalike.features import jaccard as jaccard
    from lookalike.features import weighted_containment as weighted_containment
    from lookalike.features import weighted_jaccard as weighted_jaccard
    from lookalike.features.links import Links as Links
    from lookalike.gpu import GpuIndex as GpuIndex
    from lookalike.images import ImageHash as ImageHash
    from lookalike.incoming import incoming_links as incoming_links
    from lookalike.indexes import BandIndex as BandIndex
    from lookalike.indexes import BlockIndex as BlockIndex
    from lookalike.indexes import ClusterIndex as ClusterIndex
    from lookalike.indexes import FlipIndex as FlipIndex
    from lookalike.indexes import Index as Index
    from lookalike.indexes import PrefixIndex as PrefixIndex
    from lookalike.indexes import ScanIndex as ScanIndex
    from lookalike.indexes import ShardedIndex as ShardedIndex
    from lookalike.indexes import SignatureFile as SignatureFile
    from lookalike.indexes import SliceIndex as SliceIndex
    from lookalike.indexes import cluster as cluster
    from lookalike.indexes import load_index as load_index
    from lookalike.indexes import match_batch as match_batch
    from lookalike.indexes import open_index as open_index
    from lookalike.parts.index import PartIndex as PartIndex
    from lookalike.recordings.audio_hash import AudioHash as AudioHash
    from lookalike.recordings.cover_hash import CoverHash as CoverHash
    from lookalike.recordings.cover_index import CoverIndex as CoverIndex
    from lookalike.recordings.index import RecordingIndex as RecordingIndex
    from lookalike.signatures import BBitMinHash as BBitMinHash
    from lookalike.signatures import MinHash as MinHash
    from lookalike.signatures import Projection as Projection
    from lookalike.signatures import Signer as Signer
    from lookalike.signatures import SimHash as SimHash
    from lookalike.signatures import TopSig as TopSig
    from lookalike.signatures import WeightedMinHash as WeightedMinHash
    from lookalike.signatures import estimated_radius as estimated_radius
    from lookalike.signatures import estimated_similarity as estimated_similarity
    from lookalike.signatures import hamming as hamming
    from lookalike.signatures import load_hex as load_hex
    from lookalike.signatures import load_signatures as load_signatures
    from lookalike.signatures import load_signer as load_signer
    from lookalike.signatures import save_signatures as save_signatures
    from lookalike.storage.changes import undo as undo
    from lookalike.topics import cluster_documents as cluster_documents
    from lookalike.vectors import VectorIndex as VectorIndex
    from lookalike.videos.video_hash import VideoHash as VideoHash
else:
    __all__, __getattr__, __dir__ = lazy_names(
        globals(),
        {
            "lookalike._native": "__version__",
            "lookalike.advice": "evaluate plan tune",
            "lookalike.cleaning": "clean decontaminate",
            "lookalike.client": "connect",
            "lookalike.collection": (
                "Collection drop_collection list_collections open_collection restore_collection"
            ),
            "lookalike.common_passages.finding": "overlaps passages",
            "lookalike.common_passages.signing": "PassageHash sign_passages",
            "lookalike.compare.texts": "compare_texts",
            "lookalike.dedup": "dedup",
            "lookalike.dedup.pair_groups": "group_pairs",
            "lookalike.errors": "LookalikeError LookalikeWarning",
            "lookalike.features": (
                "Chars Combined FeatureFunction ShortText Vocabulary Weights Words containment "
                "cosine jaccard weighted_containment weighted_jaccard"
            ),
            "lookalike.features.links": "Links",
            "lookalike.gpu": "GpuIndex",
            "lookalike.incoming": "incoming_links",
            "lookalike.images": "ImageHash",
            "lookalike.indexes": (
                "BandIndex BlockIndex ClusterIndex FlipIndex Index PrefixIndex ScanIndex "
                "ShardedIndex SignatureFile SliceIndex cluster load_index match_batch "
                "open_index"
            ),
            "lookalike.parts.index": "PartIndex",
            "lookalike.recordings.audio_hash": "AudioHash",
            "lookalike.recordings.cover_hash": "CoverHash",
            "lookalike.recordings.cover_index": "CoverIndex",
            "lookalike.recordings.index": "RecordingIndex",
            "lookalike.videos.video_hash": "VideoHash",
            "lookalike.signatures": (
                "BBitMinHash MinHash Projection Signer SimHash TopSig WeightedMinHash "
                "estimated_radius estimated_similarity hamming load_hex load_signatures "
                "load_signer save_signatures"
            ),
            "lookalike.storage.changes": "undo",
            "lookalike.topics": "cluster_documents",
            "lookalike.vectors": "VectorIndex",
        },
        modules="advice client errors features images indexes pages results signatures",
    )
