"""The de-duplication job, one file per step: read, sign, propose, verify, cluster, choose, write.

Signatures propose pairs, the documents' exact similarity decides.
"""

from lookalike.dedup.job import dedup
from lookalike.dedup.progress import STEPS
from lookalike.dedup.result import DedupCounts, DedupResult
from lookalike.dedup.settings import ALIASES, CLUSTERINGS, METHODS, DedupSettings
from lookalike.dedup.verify import VerifiedPairs

__all__ = [
    "ALIASES",
    "CLUSTERINGS",
    "METHODS",
    "STEPS",
    "DedupCounts",
    "DedupResult",
    "DedupSettings",
    "VerifiedPairs",
    "dedup",
]
