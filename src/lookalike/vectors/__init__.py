"""Vectors: what is near this one by the angle between them? Signatures propose, cosines decide."""

from lookalike.vectors.answers import VectorMatches, VectorNeighbors, VectorPairs
from lookalike.vectors.index import VectorIndex

__all__ = ["VectorIndex", "VectorMatches", "VectorNeighbors", "VectorPairs"]
