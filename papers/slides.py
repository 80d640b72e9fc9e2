"""Probabilistic data structures, part 4 (Gakhov): examples, b-bit MinHash, Manku's parameters."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import numpy as np

from lookalike.advice.plots import line_style, new_figure, save_figure, short_count
from lookalike.features import Features
from lookalike.indexes import BlockIndex
from lookalike.indexes.tables.blocks import BlockChoice
from lookalike.signatures import BBitMinHash
from papers.page import Section
from papers.shared import World, median_seconds
from papers.worked_examples import worked_examples

__all__ = ["b_bits", "by_hand", "parameters", "variance_factor"]

RESEMBLANCES = (0.2, 0.5, 0.8, 0.9)
B_BITS = (1, 2, 4, 8)
RADIUS = 3
MANKU_D = 34
SET_SIZE = 200
MOST_BYTES = 10_000_000_000
"""Tables that take more are not made."""
_SEED = 23


def by_hand(_: World) -> Iterator[Section]:
    """Run the examples that the slides work by hand."""
    yield worked_examples()


def b_bits(world: World) -> Iterator[Section]:
    """Run what is said of b-bit MinHash."""
    yield _b_bit(world)


def parameters(world: World) -> Iterator[Section]:
    """Run Manku's tables with his parameters."""
    yield _parameters(world)


def variance_factor(b: int, resemblance: float) -> float:
    """Return how many times the variance of MinHash that of b bits is (Li and König).

    For sets that are small beside the universe: two values that are not the same agree in b bits
    with probability 2^-b.
    """
    chance = 2.0**-b
    agree = chance + (1 - chance) * resemblance
    return agree * (1 - agree) / ((1 - chance) ** 2 * resemblance * (1 - resemblance))


def _b_bit(world: World) -> Section:
    """Estimate the similarity of sets whose similarity is known, and take the variance."""
    permutations, pairs = world.scale.permutations, world.scale.set_pairs
    generator = np.random.default_rng(_SEED)
    measured: dict[tuple[float, int], float] = {}
    for resemblance in RESEMBLANCES:
        left, right, true = _sets(generator, pairs, resemblance)
        for b in B_BITS:
            signer = BBitMinHash(permutations, b, features=Features(), seed=_SEED)
            found = signer.similarity(signer.sign(left), signer.sign(right))
            plain = true * (1 - true) / permutations
            measured[resemblance, b] = float(np.mean((found - true) ** 2) / plain)
    name = "slides_b_bit.png"
    figure, axes = new_figure(
        "What leaving bits away costs", f"{pairs} pairs of sets, {permutations} permutations"
    )
    for number, resemblance in enumerate(RESEMBLANCES):
        style = line_style(number)
        axes.plot(
            B_BITS,
            [measured[resemblance, b] for b in B_BITS],
            label=f"R = {resemblance}",
            **{**style, "linestyle": "none"},
        )
        b_range = np.linspace(1, 8, 50)
        chance = 2.0**-b_range
        agree = chance + (1 - chance) * resemblance
        theory = agree * (1 - agree) / ((1 - chance) ** 2 * resemblance * (1 - resemblance))
        axes.plot(b_range, theory, color=style["color"], linewidth=1.2)
    axes.set_yscale("log")
    axes.set_yticks([1, 2, 3, 5, 9], ["1", "2", "3", "5", "9"])
    axes.minorticks_off()
    axes.set_xticks(B_BITS)
    axes.set_xlabel("b: bits kept of each value (lines: theory)")
    axes.set_ylabel("variance, in that of MinHash")
    save_figure(figure, axes, world.pictures / name)
    return Section(
        "b-bit MinHash: the variance against b",
        f"{pairs} pairs of sets for each resemblance R, {permutations} permutations. The table "
        "has the variance of the estimate divided by that of MinHash with whole values. The "
        "slides: for b = 1 and R = 0.5 it is at most 3. So three times as many values of one bit "
        "are enough, which are 64 / 3 = 21.3 times smaller than 64-bit ones. In brackets: theory.",
        ("b", *(f"R = {resemblance}" for resemblance in RESEMBLANCES), "smaller, at R = 0.5"),
        [
            (
                str(b),
                *(
                    f"{measured[resemblance, b]:.2f} ({variance_factor(b, resemblance):.2f})"
                    for resemblance in RESEMBLANCES
                ),
                f"{64 / b / measured[0.5, b]:.1f} ({64 / b / variance_factor(b, 0.5):.1f})",
            )
            for b in B_BITS
        ],
        [name],
    )


def _parameters(world: World) -> Section:
    """Compare tables that are enough for 3 bits: what a probe retrieves, and what that costs."""
    rows, queries = world.online.signatures, world.online.queries
    d = math.log2(len(rows))
    lines = []
    for lead in range(1, 5):
        choice = BlockChoice(64, lead + RADIUS, lead)
        leading = sum(sorted(choice.widths())[:lead])
        header = choice.header_bits(len(rows))
        fitting = len(rows)
        while choice.bytes(fitting) > MOST_BYTES:
            fitting = fitting * 9 // 10
        index = BlockIndex(rows[:fitting], RADIUS, blocks=choice.blocks, lead=lead)
        search = partial(index.within, queries, RADIUS, threads=1)
        seconds = median_seconds(search, world.scale.rounds)
        time = f"{1e6 * seconds / len(queries):.2f}"
        if fitting < len(rows):
            time += f" (of {short_count(fitting)})"
        del index, search
        lines.append(
            (
                str(choice.tables),
                ", ".join(map(str, choice.widths())),
                str(leading),
                f"{math.exp2(MANKU_D - leading):,.{0 if leading <= MANKU_D else 2}f}",
                str(header),
                f"{math.exp2(d - header):,.3g}",
                time,
                f"{choice.bytes(len(rows)) / len(rows):.1f}",
            )
        )
    return Section(
        "Manku's parameters: tables, leading bits, and what a probe retrieves",
        f"64 bits, within {RADIUS}. The slides: 8 billion fingerprints (2^34) in 10 tables, with "
        "5 blocks of 13, 13, 13, 13 and 12 bits. Of these 2 lead, 25 or 26 bits, so a probe "
        f"retrieves at most 512. Without tables, all C(64, 3) = {math.comb(64, RADIUS):,} sets of "
        f"bits would be probed. Ours: {short_count(len(rows))} generated fingerprints, so fewer "
        "leading bits are compared, and fewer tables are better. More tables make runs shorter "
        f"and memory larger; of tables above {MOST_BYTES / 1e9:.0f} GB, only the part that fits is "
        "timed.",
        (
            "tables",
            "blocks",
            "leading bits",
            "retrieved of 2^34",
            "ours: bits looked at",
            "retrieved",
            "µs a query",
            "bytes a fingerprint",
        ),
        lines,
    )


Sets = list[list[tuple[int, float]]]


def _sets(
    generator: np.random.Generator, pairs: int, resemblance: float
) -> tuple[Sets, Sets, float]:
    """Return pairs of sets with about this resemblance, and what it is exactly."""
    shared = round(2 * SET_SIZE * resemblance / (1 + resemblance))
    own = SET_SIZE - shared
    left, right = [], []
    for _ in range(pairs):
        features = [int(one) for one in generator.integers(0, 2**63, shared + 2 * own)]
        both = features[:shared]
        left.append([(one, 1.0) for one in both + features[shared : shared + own]])
        right.append([(one, 1.0) for one in both + features[shared + own :]])
    return left, right, shared / (shared + 2 * own)
