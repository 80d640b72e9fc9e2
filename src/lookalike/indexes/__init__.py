"""From bits to neighbors: indexes, what they answer, and their files.

Each is imported when it is first asked for.
"""

from typing import TYPE_CHECKING

from lookalike.lazy import lazy_names

if TYPE_CHECKING:
    from lookalike.indexes.band_index import BandIndex as BandIndex
    from lookalike.indexes.band_index import KeyMatch as KeyMatch
    from lookalike.indexes.band_index import KeyMatches as KeyMatches
    from lookalike.indexes.base import Index as Index
    from lookalike.indexes.batch.match import match_batch as match_batch
    from lookalike.indexes.batch.signature_file import SignatureFile as SignatureFile
    from lookalike.indexes.clusters.index import ClusterIndex as ClusterIndex
    from lookalike.indexes.clusters.majority import Clusters as Clusters
    from lookalike.indexes.clusters.majority import cluster as cluster
    from lookalike.indexes.kinds import load_index as load_index
    from lookalike.indexes.kinds import open_index as open_index
    from lookalike.indexes.results import Explanation as Explanation
    from lookalike.indexes.results import Matches as Matches
    from lookalike.indexes.results import Neighbors as Neighbors
    from lookalike.indexes.results import Pairs as Pairs
    from lookalike.indexes.scan import ScanIndex as ScanIndex
    from lookalike.indexes.sharded import ShardedIndex as ShardedIndex
    from lookalike.indexes.sharded import merge_neighbors as merge_neighbors
    from lookalike.indexes.slices.index import SliceIndex as SliceIndex
    from lookalike.indexes.tables.blocks import BlockIndex as BlockIndex
    from lookalike.indexes.tables.flips import FlipIndex as FlipIndex
    from lookalike.indexes.tables.prefixes import PrefixIndex as PrefixIndex
    from lookalike.indexes.tuning import Tuning as Tuning
else:
    __all__, __getattr__, __dir__ = lazy_names(
        globals(),
        {
            "lookalike.indexes.band_index": "BandIndex KeyMatch KeyMatches",
            "lookalike.indexes.base": "Index",
            "lookalike.indexes.batch.match": "match_batch",
            "lookalike.indexes.batch.signature_file": "SignatureFile",
            "lookalike.indexes.clusters.index": "ClusterIndex",
            "lookalike.indexes.clusters.majority": "Clusters cluster",
            "lookalike.indexes.kinds": "load_index open_index",
            "lookalike.indexes.results": "Explanation Matches Neighbors Pairs",
            "lookalike.indexes.scan": "ScanIndex",
            "lookalike.indexes.sharded": "ShardedIndex merge_neighbors",
            "lookalike.indexes.slices.index": "SliceIndex",
            "lookalike.indexes.tables.blocks": "BlockIndex",
            "lookalike.indexes.tables.flips": "FlipIndex",
            "lookalike.indexes.tables.prefixes": "PrefixIndex",
            "lookalike.indexes.tuning": "Tuning",
        },
    )
