"""Inverted signature slice lists from their definition: no lists, every signature looked at."""

from __future__ import annotations

from support.oracles import scan as oracle


def widths(bits: int, slice_bits: int) -> list[int]:
    """Cut into as few slices of at most `slice_bits` bits as cover all, the wider ones first."""
    count = -(-bits // slice_bits)
    return [bits // count + (1 if position < bits % count else 0) for position in range(count)]


def slices(signature: oracle.Signatures, slice_bits: int) -> list[int]:
    """Return the values of a signature's slices."""
    number = int.from_bytes(signature.tobytes(), "little")
    values = []
    for width in widths(8 * len(signature), slice_bits):
        values.append(number & (1 << width) - 1)
        number >>= width
    return values


def score(
    signature: oracle.Signatures,
    query: oracle.Signatures,
    slice_bits: int,
    expand: int,
    admit: int,
) -> int:
    """Return the bits that agree in slices near enough; 0 if no slice is near enough to admit."""
    far = [
        (a ^ b).bit_count()
        for a, b in zip(slices(signature, slice_bits), slices(query, slice_bits), strict=True)
    ]
    if min(far) > min(expand, admit):
        return 0
    cut = widths(8 * len(signature), slice_bits)
    return sum(width - d for width, d in zip(cut, far, strict=True) if d <= expand)


def search(
    living: dict[int, oracle.Signatures],
    query: oracle.Signatures,
    k: int,
    slice_bits: int,
    expand: int,
    admit: int,
    rerank: int,
) -> list[tuple[int, int]]:
    """Return the (distance, id) of the k nearest among the `rerank` candidates of best score."""
    scored = [(score(row, query, slice_bits, expand, admit), name) for name, row in living.items()]
    best = sorted((-points, name) for points, name in scored if points)[:rerank]
    return sorted((oracle.distance(living[name], query), name) for _, name in best)[:k]


def bounds(points: int, bits: int, slice_bits: int, expand: int) -> tuple[int, int]:
    """Return the least and largest distance that a score allows, over all ways to get it.

    Slices are alike but for their width, so all that matters is how many of each width were seen.
    """
    cut = widths(bits, slice_bits)
    possible = []
    wide, narrow = cut.count(cut[0]), len(cut) - cut.count(cut[0])
    for a in range(wide + 1):
        for b in range(narrow + 1):
            seen = a * cut[0] + b * (cut[0] - 1)
            if seen < points:
                continue
            unseen = (wide - a) * min(expand + 1, cut[0])
            unseen += (narrow - b) * min(expand + 1, cut[0] - 1)
            possible.append(seen - points + unseen)
    return min(possible), bits - points
