"""From bits to neighbours: indexes, what they answer, and their files."""

from lookalike.indexes.base import Index
from lookalike.indexes.files import load_index
from lookalike.indexes.results import Matches, Neighbors, Pairs
from lookalike.indexes.scan import ScanIndex

__all__ = ["Index", "Matches", "Neighbors", "Pairs", "ScanIndex", "load_index"]
