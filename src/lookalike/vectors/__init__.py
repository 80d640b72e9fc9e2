"""Vectors: what is near this one by the angle between them? Sketches propose, cosines decide."""

from lookalike.vectors.index import VectorIndex
from lookalike.vectors.search import VectorMatches, VectorNeighbors, VectorPairs

__all__ = ["VectorIndex", "VectorMatches", "VectorNeighbors", "VectorPairs"]
