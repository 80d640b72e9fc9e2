"""From bits to neighbors: indexes, what they answer, and their files.

Each is imported when it is first asked for.
"""

from typing import TYPE_CHECKING

from lookalike.lazy import names_from

if TYPE_CHECKING:
    from lookalike.indexes.band_index import BandIndex, KeyMatch, KeyMatches
    from lookalike.indexes.base import Index
    from lookalike.indexes.batch.match import match_batch
    from lookalike.indexes.batch.signature_file import SignatureFile
    from lookalike.indexes.clusters.index import ClusterIndex
    from lookalike.indexes.clusters.majority import Clusters, cluster
    from lookalike.indexes.kinds import load_index, open_index
    from lookalike.indexes.results import Explanation, Matches, Neighbors, Pairs
    from lookalike.indexes.scan import ScanIndex
    from lookalike.indexes.sharded import ShardedIndex, merge_neighbors
    from lookalike.indexes.slices.index import SliceIndex
    from lookalike.indexes.tables.blocks import BlockIndex
    from lookalike.indexes.tables.flips import FlipIndex
    from lookalike.indexes.tables.prefixes import PrefixIndex
    from lookalike.indexes.tuning import Tuning

__all__ = [
    "BandIndex",
    "BlockIndex",
    "ClusterIndex",
    "Clusters",
    "Explanation",
    "FlipIndex",
    "Index",
    "KeyMatch",
    "KeyMatches",
    "Matches",
    "Neighbors",
    "Pairs",
    "PrefixIndex",
    "ScanIndex",
    "ShardedIndex",
    "SignatureFile",
    "SliceIndex",
    "Tuning",
    "cluster",
    "load_index",
    "match_batch",
    "merge_neighbors",
    "open_index",
]

__getattr__ = names_from(
    globals(),
    {
        "lookalike.indexes.band_index": ("BandIndex", "KeyMatch", "KeyMatches"),
        "lookalike.indexes.base": ("Index",),
        "lookalike.indexes.batch.match": ("match_batch",),
        "lookalike.indexes.batch.signature_file": ("SignatureFile",),
        "lookalike.indexes.tables.blocks": ("BlockIndex",),
        "lookalike.indexes.clusters.index": ("ClusterIndex",),
        "lookalike.indexes.clusters.majority": ("Clusters", "cluster"),
        "lookalike.indexes.kinds": ("load_index", "open_index"),
        "lookalike.indexes.tuning": ("Tuning",),
        "lookalike.indexes.tables.flips": ("FlipIndex",),
        "lookalike.indexes.tables.prefixes": ("PrefixIndex",),
        "lookalike.indexes.results": ("Explanation", "Matches", "Neighbors", "Pairs"),
        "lookalike.indexes.scan": ("ScanIndex",),
        "lookalike.indexes.sharded": ("ShardedIndex", "merge_neighbors"),
        "lookalike.indexes.slices.index": ("SliceIndex",),
    },
)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
