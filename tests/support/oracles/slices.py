"""Inverted signature slice lists from their definition: no lists, every signature looked at."""

from __future__ import annotations

from itertools import product

from support.oracles import scan as oracle

Cut = int | tuple[int, ...]


def widths(bits: int, slice_bits: Cut) -> list[int]:
    """Cut into as few slices of at most `slice_bits` bits as cover all, the wider ones first.

    Widths that are given are taken as they are.
    """
    if isinstance(slice_bits, tuple):
        return list(slice_bits)
    count = -(-bits // slice_bits)
    return [bits // count + (1 if position < bits % count else 0) for position in range(count)]


def slices(signature: oracle.Signatures, slice_bits: Cut) -> list[int]:
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
    slice_bits: Cut,
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
    slice_bits: Cut,
    expand: int,
    admit: int,
    rerank: int,
    cull: str = "pessimistic",
) -> list[tuple[int, int]]:
    """Return the (distance, id) of the k nearest among the candidates that are compared.

    These are the `rerank` best by score, by the least distance that a score allows and then by
    score, or those whose least distance is not above the k-th largest.
    """
    scored = [(score(row, query, slice_bits, expand, admit), name) for name, row in living.items()]
    best = sorted((-points, name) for points, name in scored if points)
    if cull != "pessimistic":
        bits = 8 * len(query)
        allowed = {points: bounds(-points, bits, slice_bits, expand) for points, _ in best}
        if cull == "optimistic":
            best.sort(key=lambda one: (allowed[one[0]][0], one))
        elif len(best) >= k:
            kth = allowed[best[k - 1][0]][1]
            best = [one for one in best if allowed[one[0]][0] <= kth]
    return sorted((oracle.distance(living[name], query), name) for _, name in best[:rerank])[:k]


def bounds(points: int, bits: int, slice_bits: Cut, expand: int) -> tuple[int, int]:
    """Return the least and largest distance that a score allows, over all ways to get it.

    Slices are alike but for their width, so all that matters is how many of each width were seen.
    """
    cut = widths(bits, slice_bits)
    numbers = {width: cut.count(width) for width in set(cut)}
    possible = []
    for several in product(*(range(number + 1) for number in numbers.values())):
        seen = sum(width * some for width, some in zip(numbers, several, strict=True))
        if seen < points:
            continue
        unseen = sum(
            (numbers[width] - some) * min(expand + 1, width)
            for width, some in zip(numbers, several, strict=True)
        )
        possible.append(seen - points + unseen)
    return max(0, min(possible)), bits - points
