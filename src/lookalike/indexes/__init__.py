"""From bits to neighbours: indexes, what they answer, and their files.

Each is imported when it is first asked for.
"""

from typing import TYPE_CHECKING

from lookalike.later import names_from

if TYPE_CHECKING:
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

__getattr__ = names_from(
    globals(),
    {
        "lookalike.indexes.base": ("Index",),
        "lookalike.indexes.batch": ("match_batch",),
        "lookalike.indexes.blocks": ("BlockIndex",),
        "lookalike.indexes.files": ("load_index", "open_index"),
        "lookalike.indexes.flip_tuning": ("FlipTuning",),
        "lookalike.indexes.flips": ("FlipIndex",),
        "lookalike.indexes.planner": ("Plan", "plan"),
        "lookalike.indexes.results": ("Explanation", "Matches", "Neighbors", "Pairs"),
        "lookalike.indexes.scan": ("ScanIndex",),
        "lookalike.indexes.sharded": ("ShardedIndex",),
        "lookalike.indexes.slices": ("SliceIndex",),
    },
)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
