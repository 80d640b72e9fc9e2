"""MinHash and LSH with the interface of datasketch.

Hash values, permutations and serialized forms are the same, bit for bit, so each package reads what
the other one stored. Using a class that is missing here raises an error with an alternative.
"""

from __future__ import annotations

import sys
from typing import Any

from lookalike.compat.datasketch import lsh, lshensemble, minhash
from lookalike.compat.datasketch.lsh import MinHashLSH
from lookalike.compat.datasketch.lshensemble import MinHashLSHEnsemble
from lookalike.compat.datasketch.lshforest import MinHashLSHForest
from lookalike.compat.datasketch.minhash import LeanMinHash, MinHash, bBitMinHash, sha1_hash32
from lookalike.compat.datasketch.weighted_minhash import WeightedMinHash, WeightedMinHashGenerator
from lookalike.errors import MissingDependencyError

__all__ = [
    "LeanMinHash",
    "MinHash",
    "MinHashLSH",
    "MinHashLSHEnsemble",
    "MinHashLSHForest",
    "WeightedMinHash",
    "WeightedMinHashGenerator",
    "WeightedMinHashLSH",
    "WeightedMinHashLSHForest",
    "bBitMinHash",
    "sha1_hash32",
]

# Modules of datasketch whose names are in another module here: imports and pickles name them.
for _module, _parts in (
    (minhash, ("b_bit_minhash", "hashfunc", "lean_minhash")),
    (lsh, ("storage",)),
    (lshensemble, ("lshensemble_partition",)),
):
    for _part in _parts:
        sys.modules[f"{__name__}.{_part}"] = _module

WeightedMinHashLSH = MinHashLSH
WeightedMinHashLSHForest = MinHashLSHForest

_ELSEWHERE = {
    "AsyncMinHashLSH": "MinHashLSH here is in memory and answers within microseconds; a collection "
    "(la.open_collection) is shared by processes",
    "HNSW": "la.plan names an index for signatures",
    "HyperLogLog": "MinHash.count estimates how many values there are",
    "HyperLogLogPlusPlus": "MinHash.count estimates how many values there are",
    "MinHashLSHBloom": "MinHashLSH keeps a row and some 20 bytes a band",
}


def __getattr__(name: str) -> Any:
    if name in _ELSEWHERE:
        raise MissingDependencyError(
            f"lookalike.compat.datasketch has no {name}: {_ELSEWHERE[name]}; for datasketch's own, "
            "install it: pip install datasketch"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
