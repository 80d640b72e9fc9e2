"""Searching by random permutations of the bits, from its definition: no tables, all looked at."""

from __future__ import annotations

from typing import Any

from support.oracles import scan as oracle


def prefix(signature: oracle.Signatures, places: Any) -> list[int]:
    """Return the bits of a signature in the order of a permutation."""
    return [int(signature[place // 8]) >> int(place % 8) & 1 for place in places]


def shared(a: list[int], b: list[int]) -> int:
    """Return how long the common prefix is; 64 if all that is known of both is the same."""
    for length, (one, other) in enumerate(zip(a, b, strict=True)):
        if one != other:
            return length
    return 64


def examined(
    rows: oracle.Signatures,
    query: oracle.Signatures,
    permutations: Any,
    most: int,
    chosen: set[int],
) -> list[int]:
    """Return the rows that are compared with a query: those of the longest prefix in any order.

    Of equally long ones first those of the first order, and of an order first those below the place
    of the query, going away from it. `chosen` are the rows that count.
    """
    places = []
    for number, permutation in enumerate(permutations):
        own = prefix(query, permutation)
        order = sorted((prefix(row, permutation), name) for name, row in enumerate(rows))
        below = [(bits, name) for bits, name in order if bits < own][::-1]
        above = [(bits, name) for bits, name in order if bits >= own]
        for side, both in enumerate((below, above)):
            for step, (bits, name) in enumerate(both):
                places.append((-shared(bits, own), number, side, step, name))
    found: list[int] = []
    for *_, name in sorted(places):
        if name in chosen and name not in found and len(found) < most:
            found.append(name)
    return found
