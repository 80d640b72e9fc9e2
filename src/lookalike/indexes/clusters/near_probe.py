"""How many groups have to be read to find near-duplicates: the more, the less groups are apart.

Where signatures make groups, one that differs a little is nearest to the same centre, or nearly.
Where they do not, such as random bits, all centres are about as far, and a few bits decide.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.signatures.random import random_words

__all__ = ["groups_until_near"]

_SAMPLED = 1 << 14
_AT_ONCE = 256
_TENTH = (1 << 16) // 10  # of what 16 bits can be
_FOUND = 0.9995
"""More than the 99.9% that is promised, for a sample does not say exactly how it is with others."""


def groups_until_near(
    signatures: NDArray[np.uint8], offsets: NDArray[np.int64], centres: NDArray[np.uint8]
) -> int:
    """Return how many groups are read until that of a near-duplicate, for nearly all of them.

    Some signatures, which lie group by group, are changed: each in a share of its bits, up to a
    tenth. They are looked for. The same groups give the same number.
    """
    if len(centres) < 2:
        return len(centres)
    count = min(_SAMPLED, len(signatures))
    places = (random_words(3, count) % np.uint64(len(signatures))).astype(np.int64)
    own = np.searchsorted(offsets, places, side="right") - 1
    read = np.empty(count, np.int64)
    distances = np.empty((_AT_ONCE, len(centres)), np.int32)
    numbers = np.arange(len(centres))
    for begin in range(0, count, _AT_ONCE):
        asked = _changed(signatures[places[begin : begin + _AT_ONCE]], begin)
        far, mine = distances[: len(asked)], own[begin : begin + _AT_ONCE, None]
        _native.scan_all(asked, centres, 1, far)
        to_own = np.take_along_axis(far, mine, axis=1)
        before = (far < to_own) | ((far == to_own) & (numbers < mine))  # ties by number
        read[begin : begin + len(asked)] = before.sum(axis=1) + 1
    read.sort()
    return int(read[math.ceil(_FOUND * count) - 1])


def _changed(rows: NDArray[np.uint8], seed: int) -> NDArray[np.uint8]:
    """Return signatures each of which is changed in a share of its bits, from none to a tenth."""
    bits = 8 * rows.shape[1]
    drawn = random_words(seed, len(rows) * (1 + bits // 4)).reshape(len(rows), -1)
    share = (drawn[:, :1] % np.uint64(_TENTH)).astype(np.uint16)
    flips = np.ascontiguousarray(drawn[:, 1:]).view(np.uint16) < share
    changed: NDArray[np.uint8] = rows ^ np.packbits(flips, axis=1)
    return changed
