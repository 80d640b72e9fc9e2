"""Binary indexes with the interface of faiss.

    import lookalike.compat.faiss as faiss

Signatures are the same arrays in both, so nothing is converted. Results have faiss' types and
layout: `search` returns (int32 distances, int64 labels), empty places are 2147483647 and -1;
`range_search` returns (uint64 limits, float32 distances, int64 labels) of what is nearer than the
radius, which itself is left out. What differs:

- Ties are broken by position, and results within a radius come by (distance, position); faiss
  promises neither.
- Files are lookalike's, checksummed; those of faiss are refused with what to do.
- What faiss throws as `RuntimeError` or refuses by `assert` raises `FaissError`, which is both a
  `RuntimeError` and an `la.errors.ArgumentError`; what it would read beyond its memory for, too.
- There are no graphs and no clusters (`BHNSW`, `BIVF`), and nothing for vectors of floats.
"""

import sys

from lookalike.compat.faiss import base, indexes
from lookalike.compat.faiss.base import *  # noqa: F403
from lookalike.compat.faiss.indexes import *  # noqa: F403

__all__ = base.__all__ + indexes.__all__

sys.modules[f"{__name__}.files"] = base  # older pickles name it
del sys
