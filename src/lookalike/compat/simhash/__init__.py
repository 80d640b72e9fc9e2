"""The `simhash` modules of 1e0ng (PyPI: simhash) and of seomoz (simhash-py), over this core.

Both packages are imported as `simhash`; their names do not meet, so this module has them all. The
fingerprints are the same, bit for bit: what was stored can be read, and compared with new ones.

Indexes are live slice lists: answers are exact for any number of differing bits, as theirs are, and
in the order of (distance, age), where theirs have none. What theirs refuse by `assert` or a plain
`Exception` raises `la.ArgumentError` here.

A fingerprint is a number; bit j of it is bit j of a signature. `to_signatures` and `to_values`
carry many over at once: to any index of lookalike, and back.
"""

from lookalike.compat.simhash.corpus import (
    Corpus,
    compute,
    find_all,
    num_differing_bits,
    shingle,
    unsigned_hash,
)
from lookalike.compat.simhash.fingerprint import Simhash
from lookalike.compat.simhash.index import SimhashIndex
from lookalike.compat.simhash.values import to_signatures, to_values

__all__ = [
    "Corpus",
    "Simhash",
    "SimhashIndex",
    "compute",
    "find_all",
    "num_differing_bits",
    "shingle",
    "to_signatures",
    "to_values",
    "unsigned_hash",
]
