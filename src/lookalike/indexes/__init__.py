"""From bits to neighbours: indexes, what they answer, and their files."""

from lookalike.indexes.base import Index
from lookalike.indexes.files import load_index, open_index
from lookalike.indexes.results import Explanation, Matches, Neighbors, Pairs
from lookalike.indexes.scan import ScanIndex
from lookalike.indexes.sharded import ShardedIndex
from lookalike.indexes.slices import SliceIndex

__all__ = [
    "Explanation",
    "Index",
    "Matches",
    "Neighbors",
    "Pairs",
    "ScanIndex",
    "ShardedIndex",
    "SliceIndex",
    "load_index",
    "open_index",
]
