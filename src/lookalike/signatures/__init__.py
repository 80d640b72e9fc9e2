"""Bits that stand for documents: what counts as a signature, and how far apart two are."""

from lookalike.signatures.arrays import as_queries, as_signatures
from lookalike.signatures.distance import hamming
from lookalike.signatures.kernels import Kernel, kernels

__all__ = ["Kernel", "as_queries", "as_signatures", "hamming", "kernels"]
