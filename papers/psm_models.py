"""Probabilistic near-duplicate detection using simhash (2011): equations (8) to (23), measured."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

from lookalike.advice.plots import short_count
from lookalike.indexes import BlockIndex, FlipIndex
from lookalike.indexes.tables.sorted_table import header_width
from papers.generated import GeneratedFingerprints
from papers.page import Section, Verdict
from papers.psm_search import RADIUS, flips_needed, with_matches
from papers.shared import World, median_seconds

__all__ = ["bphs_model", "run"]

BITS = 64
PARTS = 8
"""The first of two sizes that are measured is the collection divided by this."""


def bphs_model(d: float, lead: int, radius: int = RADIUS) -> tuple[int, float, float]:
    """Return tables, header bits and rows that a probe looks at: (8) to (10), (13)."""
    blocks = lead + radius
    header = min(lead * BITS / blocks, d)
    return math.comb(blocks, lead), header, 2 ** (d - header)


def run(world: World) -> Iterator[Section]:
    """Compare what the models say of tables, memory and growth with what is measured."""
    data = world.online
    sizes = len(data.signatures) // PARTS, len(data.signatures)
    lines, right = [], []
    rounds = world.scale.rounds

    def line(equation: str, what: str, model: float, measured: float, within: float) -> None:
        right.append(model / within <= measured <= model * within)
        lines.append((equation, what, f"{model:,.3g}", f"{measured:,.3g}"))

    for lead in (1, 2):
        times, bytes_each, rows_read = [], [], []
        for size in sizes:
            part = GeneratedFingerprints(
                data.signatures[:size], data.queries, data.weights, data.partners
            )
            index = BlockIndex(part.signatures, RADIUS, blocks=lead + RADIUS, lead=lead)
            seconds = median_seconds(partial(index.within, data.queries, RADIUS, threads=1), rounds)
            times.append(seconds / len(data.queries))
            bytes_each.append(index.memory_bytes / size)
            tables, _, read = bphs_model(math.log2(size), lead)
            rows_read.append(tables * read)
            matched = with_matches(index.within(data.queries[:200_000], RADIUS))
            del index
        tables = math.comb(lead + RADIUS, lead)
        line("(10)", f"bytes a fingerprint, {tables} tables", tables * 8.0, bytes_each[-1], 2.0)
        # (9) and (13): a part that is the same for all sizes, and one that grows with the rows.
        line(
            "(13)",
            f"times slower, {PARTS} times as many, {tables} tables",
            max(1.0, rows_read[1] / rows_read[0]),
            times[1] / times[0],
            4.0,
        )
    d = header_width(sizes[1])
    whole = FlipIndex(data.signatures)
    flips = flips_needed(whole, data, matched, False)
    right.append(flips <= _most_flips(d))
    lines.append(
        ("(20)", f"flips for 95%, at most, t = {d}", f"{_most_flips(d):,.0f}", f"{flips:,}")
    )
    line("(22)", "bytes a fingerprint, flips", 16.0, whole.memory_bytes / sizes[1], 2.0)
    grown = []
    for size in sizes:
        some = FlipIndex(data.signatures[:size])
        own = flips_needed(some, data, matched, False)
        asked: dict[str, Any] = {"weights": data.weights, "flips": own, "threads": 1}
        seconds = median_seconds(partial(some.within, data.queries, RADIUS, **asked), rounds)
        grown.append((own, seconds / len(data.queries)))
    line(
        "(19), (21)",
        f"times slower, {PARTS} times as many, flips",
        grown[1][0] / grown[0][0],
        grown[1][1] / grown[0][1],
        3.0,
    )
    best = RADIUS * math.log2(sizes[1]) / (BITS - math.log2(sizes[1]))
    yield Section(
        "Equations (8) to (23): what the models say, and what was measured",
        f"{short_count(sizes[1])} generated fingerprints, {short_count(len(data.queries))} "
        f"queries, within {RADIUS} bits, processor time of one thread. (8) and (9) are in (13): T "
        "tables, each with a probe and 2^(d - t) rows to compare; ours replace the binary search, "
        f"t δ_R, by one look-up. (11), (12) and (14) are (13) for the two ranges of t; (15) says "
        f"that {best:.2g} or fewer leading blocks suit n, so 1. (10) and (22) are bytes: ours also "
        "store 4 bytes of position in each table. (16) to (18) and (23) are for batches: `la.plan` "
        "with `batch` weighs them, and Figure 9 measures. (20) is a bound.",
        ("equation", "what", "model", "measured"),
        lines,
        verdict=Verdict.of(
            [all(right), sum(right) >= len(right) - 1],
            f"{sum(right)} of {len(right)} figures are where the models have them: memory within a "
            "factor of 2, growth within a factor of 4, flips below their bound.",
        ),
    )


def _most_flips(header: int) -> float:
    """Return (20): all sets of up to `RADIUS` of the header bits."""
    return float(sum(math.comb(header, bits) for bits in range(1, RADIUS + 1)))
