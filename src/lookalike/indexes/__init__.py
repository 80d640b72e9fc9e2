"""From bits to neighbours: indexes, what they answer, and their files."""

from lookalike.indexes.base import Index
from lookalike.indexes.batch import match_batch
from lookalike.indexes.blocks import BlockIndex
from lookalike.indexes.files import load_index, open_index
from lookalike.indexes.flip_tuning import FlipTuning
from lookalike.indexes.flips import FlipIndex
from lookalike.indexes.planner import Plan, plan
from lookalike.indexes.results import Explanation, Matches, Neighbors, Pairs
from lookalike.indexes.scan import ScanIndex
from lookalike.indexes.sharded import ShardedIndex
from lookalike.indexes.slices import SliceIndex

__all__ = [
    "BlockIndex",
    "Explanation",
    "FlipIndex",
    "FlipTuning",
    "Index",
    "Matches",
    "Neighbors",
    "Pairs",
    "Plan",
    "ScanIndex",
    "ShardedIndex",
    "SliceIndex",
    "load_index",
    "match_batch",
    "open_index",
    "plan",
]
