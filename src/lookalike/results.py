"""What lookalike's functions and methods return.

Each result has a short `repr`, is shown as a table in a notebook, and has `to_arrow`, `to_pandas`,
`to_polars` and `to_numpy`. A type is imported when it is first used.
"""

from typing import TYPE_CHECKING

from lookalike.lazy import lazy_names

if TYPE_CHECKING:
    # What type checkers read; the table below says the same.
    from lookalike.advice import Measurement as Measurement
    from lookalike.advice import Prediction as Prediction
    from lookalike.cleaning.contamination_result import BenchmarkCounts as BenchmarkCounts
    from lookalike.cleaning.contamination_result import ContaminatedDocument as ContaminatedDocument
    from lookalike.cleaning.contamination_result import Contamination as Contamination
    from lookalike.cleaning.contamination_result import Evidence as Evidence
    from lookalike.cleaning.result import CleanCounts as CleanCounts
    from lookalike.cleaning.result import CleanResult as CleanResult
    from lookalike.cleaning.result import RemovedUnit as RemovedUnit
    from lookalike.collection import Answer as Answer
    from lookalike.collection import Answers as Answers
    from lookalike.collection import Document as Document
    from lookalike.collection import Match as Match
    from lookalike.collection import Pair as Pair
    from lookalike.collection import Report as Report
    from lookalike.collection import Work as Work
    from lookalike.collection import Written as Written
    from lookalike.collection.care.transfer import Imported as Imported
    from lookalike.common_passages.results import Overlap as Overlap
    from lookalike.common_passages.results import OverlapPair as OverlapPair
    from lookalike.common_passages.results import Overlaps as Overlaps
    from lookalike.common_passages.results import Passage as Passage
    from lookalike.common_passages.results import Passages as Passages
    from lookalike.compare.texts import Comparison as Comparison
    from lookalike.dedup.pair_groups import PairGroups as PairGroups
    from lookalike.dedup.pairs import VerifiedPairs as VerifiedPairs
    from lookalike.dedup.result import DedupCounts as DedupCounts
    from lookalike.dedup.result import DedupResult as DedupResult
    from lookalike.dedup.result import MediaResult as MediaResult
    from lookalike.dedup.result import TextResult as TextResult
    from lookalike.dedup.result import VectorResult as VectorResult
    from lookalike.dedup.settings import DedupSettings as DedupSettings
    from lookalike.display import Records as Records
    from lookalike.errors import ItemError as ItemError
    from lookalike.incoming import IncomingLinks as IncomingLinks
    from lookalike.indexes import Clusters as Clusters
    from lookalike.indexes import Explanation as Explanation
    from lookalike.indexes import KeyMatch as KeyMatch
    from lookalike.indexes import KeyMatches as KeyMatches
    from lookalike.indexes import Matches as Matches
    from lookalike.indexes import Neighbors as Neighbors
    from lookalike.indexes import Pairs as Pairs
    from lookalike.indexes import Tuning as Tuning
    from lookalike.indexes.batch.match import BatchMatches as BatchMatches
    from lookalike.indexes.tuning import Option as Option
    from lookalike.parts.votes import PartAnswer as PartAnswer
    from lookalike.parts.votes import PartMatch as PartMatch
    from lookalike.recordings.audio_hash import Fingerprint as Fingerprint
    from lookalike.recordings.cover_hash import Chroma as Chroma
    from lookalike.recordings.cover_index import CoverMatch as CoverMatch
    from lookalike.recordings.index import Added as Added
    from lookalike.recordings.index import RecordingMatch as RecordingMatch
    from lookalike.signatures import SavedSignatures as SavedSignatures
    from lookalike.topics.result import DocumentCluster as DocumentCluster
    from lookalike.topics.result import DocumentClusters as DocumentClusters
    from lookalike.vectors import VectorMatches as VectorMatches
    from lookalike.vectors import VectorNeighbors as VectorNeighbors
    from lookalike.vectors import VectorPairs as VectorPairs
    from lookalike.videos.frames import VideoFrames as VideoFrames
else:
    __all__, __getattr__, __dir__ = lazy_names(
        globals(),
        {
            "lookalike.advice": "Measurement Prediction",
            "lookalike.cleaning.contamination_result": (
                "BenchmarkCounts ContaminatedDocument Contamination Evidence"
            ),
            "lookalike.cleaning.result": "CleanCounts CleanResult RemovedUnit",
            "lookalike.collection": "Answer Answers Document Match Pair Report Work Written",
            "lookalike.collection.care.transfer": "Imported",
            "lookalike.common_passages.results": "Overlap OverlapPair Overlaps Passage Passages",
            "lookalike.compare.texts": "Comparison",
            "lookalike.dedup.pair_groups": "PairGroups",
            "lookalike.dedup.pairs": "VerifiedPairs",
            "lookalike.dedup.result": "DedupCounts DedupResult MediaResult TextResult VectorResult",
            "lookalike.dedup.settings": "DedupSettings",
            "lookalike.display": "Records",
            "lookalike.errors": "ItemError",
            "lookalike.incoming": "IncomingLinks",
            "lookalike.indexes": (
                "Clusters Explanation KeyMatch KeyMatches Matches Neighbors Pairs Tuning"
            ),
            "lookalike.indexes.batch.match": "BatchMatches",
            "lookalike.indexes.tuning": "Option",
            "lookalike.parts.votes": "PartAnswer PartMatch",
            "lookalike.recordings.audio_hash": "Fingerprint",
            "lookalike.recordings.cover_hash": "Chroma",
            "lookalike.recordings.cover_index": "CoverMatch",
            "lookalike.recordings.index": "Added RecordingMatch",
            "lookalike.videos.frames": "VideoFrames",
            "lookalike.signatures": "SavedSignatures",
            "lookalike.topics.result": "DocumentCluster DocumentClusters",
            "lookalike.vectors": "VectorMatches VectorNeighbors VectorPairs",
        },
    )
