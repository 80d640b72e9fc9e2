"""Probabilistic near-duplicate detection using simhash (Sood and Loguinov, 2011): Figure 2.

The trees that VOSH walks, as the text of section 5.2 has them and as Algorithm 2 is printed, beside
the order in which our flips come.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.advice.plots import GRAY, line_style, new_figure, save_figure
from lookalike.indexes.tables.flip_sets import Volatility
from papers.page import Section
from papers.shared import World

__all__ = ["children", "levels", "our_order", "printed_children", "run", "walked"]

SIZES = (1, 2, 3)
LEVELS = 5
CHECKED_BITS = 16
CHECKED_QUERIES = 50
_SEED = 27

Set = tuple[int, ...]
"""Bits in order of volatility, 1 for the most volatile."""
Children = Callable[[Set, int], list[Set]]


def children(parent: Set, bits: int) -> list[Set]:
    """Return the children of a set, left one first, as the text describes them.

    Left: the last bit moved up by one. Right: from the end, the first gap of two or more; if it is
    two, the bit before it moved up.
    """
    found = []
    if parent[-1] < bits:
        found.append((*parent[:-1], parent[-1] + 1))
    for at in range(len(parent) - 2, -1, -1):
        gap = parent[at + 1] - parent[at]
        if gap == 2:
            found.append((*parent[:at], parent[at] + 1, *parent[at + 1 :]))
        if gap >= 2:
            break
    return found


def printed_children(parent: Set, bits: int) -> list[Set]:
    """Return the children as the lines of Algorithm 2 have them, but for its slip of a letter.

    Line 9 moves a bit of the left child where the right one's is meant; to the letter, a right
    child would be its parent again. That mended, the loop still goes on behind a gap of two, and
    what it meets there replaces the right child or drops it.
    """
    left = [(*parent[:-1], parent[-1] + 1)] if parent[-1] < bits else []
    right: list[Set] = []
    for at in range(len(parent) - 2, -1, -1):
        gap = parent[at + 1] - parent[at]
        if gap == 2:
            right = [(*parent[:at], parent[at] + 1, *parent[at + 1 :])]
        elif gap > 2:
            right = []
            break
    return left + right


def levels(size: int, count: int, bits: int, of: Children = children) -> list[list[Set]]:
    """Return the first levels of the tree of sets of `size` bits."""
    made = [[tuple(range(1, size + 1))]]
    while len(made) < count:
        made.append([child for parent in made[-1] for child in of(parent, bits)])
    return made


def _reached(size: int, bits: int, of: Children) -> Counter[Set]:
    """Return how often each set is in the whole tree; no more is looked for than twice of all."""
    most = 2 * math.comb(bits, size)
    waiting = [tuple(range(1, size + 1))]
    seen: Counter[Set] = Counter()
    while waiting and seen.total() < most:
        one = waiting.pop()
        seen[one] += 1
        waiting += of(one, bits)
    return seen


def walked(costs: list[int], most: int) -> list[Set]:
    """Return sets of 1 to `most` bits in the order in which the trees give them.

    `costs` ascend: those of the most volatile bit first. The least sum comes first; of equal ones
    the smaller set, then that of the lesser bits.
    """

    def entry(one: Set) -> tuple[int, int, int, Set]:
        return (
            sum(costs[bit - 1] for bit in one),
            len(one),
            sum(1 << bit for bit in one),
            one,
        )

    heap = [entry(tuple(range(1, size + 1))) for size in range(1, most + 1)]
    heapq.heapify(heap)
    order = []
    while heap:
        one = heapq.heappop(heap)[-1]
        order.append(one)
        for child in children(one, len(costs)):
            heapq.heappush(heap, entry(child))
    return order


def our_order(weights: NDArray[np.float32], volatility: Volatility, most: int) -> list[Set]:
    """Return the sets in the order in which `FlipIndex` tries them for a query."""
    bits = len(weights)
    steps = np.minimum(np.abs(weights) * np.float32(volatility.scale), len(volatility.costs) - 1)
    by_rank = np.argsort(steps.astype(np.int64), kind="stable")
    rank = {int(bit): number for number, bit in enumerate(by_rank, start=1)}
    flips = [one for one in range(1, 1 << bits) if one.bit_count() <= most]
    attempts = np.empty(len(flips), np.int64)
    _native.flip_attempts(
        np.array(flips, np.uint64),
        _native.FlipWeights(np.tile(weights, (len(flips), 1)), 0),
        volatility.native(),
        bits,
        most,
        1,
        attempts,
    )
    return [
        tuple(sorted(rank[bit] for bit in range(bits) if flips[at] >> bit & 1))
        for at in np.argsort(attempts)
    ]


def run(world: World) -> Iterator[Section]:
    """Draw the trees, and walk them beside the flips of the product."""
    generator = np.random.default_rng(_SEED)
    volatility = Volatility.normal()
    equal = 0
    for _ in range(CHECKED_QUERIES):
        weights = generator.normal(size=CHECKED_BITS).astype(np.float32)
        steps = np.abs(weights) * np.float32(volatility.scale)
        costs = volatility.costs[np.minimum(steps, len(volatility.costs) - 1).astype(np.int64)]
        walk = walked(sorted(costs.tolist()), max(SIZES))
        equal += walk == our_order(weights, volatility, max(SIZES))
    lines = []
    for size in SIZES:
        every = math.comb(CHECKED_BITS, size)
        ours, printed = (_reached(size, CHECKED_BITS, of) for of in (children, printed_children))
        lines.append(
            (
                str(size),
                ", ".join(str(len(level)) for level in levels(size, LEVELS, 64)),
                f"{every:,}",
                f"{len(ours):,}",
                f"{sum(times > 1 for times in ours.values()):,}",
                f"{len(printed):,}",
                f"{sum(times > 1 for times in printed.values()):,}",
            )
        )
    sets = sum(math.comb(CHECKED_BITS, size) for size in SIZES)
    yield Section(
        "Figure 2: the trees of sets of bits",
        f"The first {LEVELS} levels of the trees for sets of 1, 2 and 3 bits, where 1 is the most "
        "volatile bit. Solid lines lead to the left child (the last bit moved up), dashed ones "
        "to the right child (the bit before the first gap, if that gap is two). The trees follow "
        f"the rule in the text. Walked with a heap, all {sets} sets of up to 3 of {CHECKED_BITS} "
        f"bits come in the order in which `FlipIndex` tries them, for {equal} of "
        f"{CHECKED_QUERIES} random queries. The available copy of the paper lacks the drawing, "
        "but its text describes it: five levels, each set once, none more likely than its "
        "parent. Algorithm 2 as printed makes another tree. Line 9 moves a bit of the left child "
        "instead of the right one's, which would make a set its own right child. With this "
        "letter corrected, the loop still does not stop at a gap of two, and loses sets.",
        (
            "h",
            "sets on each level",
            f"sets of {CHECKED_BITS} bits",
            "reached by the text's rule",
            "more than once",
            "as printed, the letter mended",
            "more than once",
        ),
        lines,
        [_draw(world)],
    )


def _draw(world: World) -> str:
    name = "psm_figure_2.png"
    figure, axes = new_figure(
        "Sets of bits, likely ones above",
        "the first five levels for h = 1, 2, 3; solid: left child, dashed: right child",
    )
    start = 0.0
    for number, size in enumerate(SIZES):
        made = levels(size, LEVELS, 64)
        width = max(len(level) for level in made) * (0.35 + 0.3 * size)
        places: dict[Set, tuple[float, float]] = {}
        for depth, level in enumerate(made):
            for at, one in enumerate(level):
                x = start + width * (at + 0.5) / len(level)
                places[one] = (x, -float(depth))
        color = line_style(number)["color"]
        for one, (x, y) in places.items():
            for child in children(one, 64):
                if child in places:
                    dash = "-" if child[:-1] == one[:-1] else "--"
                    far = places[child]
                    axes.plot([x, far[0]], [y, far[1]], color=GRAY, linestyle=dash, linewidth=1)
            _node(axes, one, x, y, color)
        axes.text(start + width / 2, 0.55, f"h = {size}", ha="center", fontsize=10, color=color)
        start += width + 0.45
    axes.set_xlim(-0.1, start - 0.35)
    axes.set_ylim(0.5 - LEVELS, 0.85)
    axes.axis("off")
    save_figure(figure, axes, world.pictures / name)
    return name


def _node(axes: Any, one: Set, x: float, y: float, color: str) -> None:
    box = {"boxstyle": "round,pad=0.3", "facecolor": "white", "edgecolor": color}
    axes.text(x, y, " ".join(map(str, one)), ha="center", va="center", fontsize=10, bbox=box)
