"""Signers, arrays of signatures, and Hamming distances."""

from lookalike.signatures.arrays import Kernel, as_queries, as_signatures, hamming, kernels
from lookalike.signatures.bit_weights import quantize_weights, restore_weights
from lookalike.signatures.estimates import estimated_radius, estimated_similarity
from lookalike.signatures.files import (
    SavedSignatures,
    load_hex,
    load_signatures,
    save_hex,
    save_signatures,
    signatures_from_hex,
    signatures_to_hex,
)
from lookalike.signatures.minhash import BBitMinHash, MinHash, WeightedMinHash
from lookalike.signatures.projection import Projection
from lookalike.signatures.signer import Signer, load_signer, signer_from_dict
from lookalike.signatures.simhash import SimHash
from lookalike.signatures.topsig import TopSig

__all__ = [
    "BBitMinHash",
    "Kernel",
    "MinHash",
    "Projection",
    "SavedSignatures",
    "Signer",
    "SimHash",
    "TopSig",
    "WeightedMinHash",
    "as_queries",
    "as_signatures",
    "estimated_radius",
    "estimated_similarity",
    "hamming",
    "kernels",
    "load_hex",
    "load_signatures",
    "load_signer",
    "quantize_weights",
    "restore_weights",
    "save_hex",
    "save_signatures",
    "signatures_from_hex",
    "signatures_to_hex",
    "signer_from_dict",
]
