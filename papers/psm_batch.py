"""Probabilistic near-duplicate detection using simhash (Sood and Loguinov, 2011): batches.

Figure 9 on generated fingerprints: a batch in memory against a file, which has as many in each of
its runs as a batch, as if it had been appended to batch by batch. One thread.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import process_time

import numpy as np
from numpy.typing import NDArray

from lookalike import SignatureFile
from lookalike.advice.plots import line_style, log_axis, new_figure, save_figure, short_count
from lookalike.indexes import BlockIndex, FlipIndex, match_batch
from lookalike.indexes.batch.match import batch_header_bits, chunks_for
from papers.generated import GeneratedFingerprints
from papers.page import Section, Verdict
from papers.psm_search import (
    RADIUS,
    RECALL,
    about,
    flips_needed,
    with_matches,
)
from papers.shared import World

__all__ = ["run"]

BLOCKS, FLIPS_ALL, FLIPS_FIRST = "BPHS", "PSM A", "PSM F"
METHODS = (BLOCKS, FLIPS_ALL, FLIPS_FIRST)
# Figure 9(a), as far as the text has it: queries a second for the smallest batch and for 10M.
PAPER = {BLOCKS: ("", "55K"), FLIPS_ALL: ("70K", "373K"), FLIPS_FIRST: ("99K", "727K")}


def run(world: World) -> Iterator[Section]:
    """Match batches of several sizes with the whole file, and one size with parts of it."""
    data = world.generated
    exact = BlockIndex(data.signatures, RADIUS, tables=4).within(world.online.queries)
    matched = with_matches(exact)
    largest = len(data.queries)
    batches = [max(1, largest // 16), max(1, largest // 4), largest]
    by_batch, flips = zip(
        *(_rates(data, matched, len(data.signatures), batch) for batch in batches), strict=True
    )
    yield Section(
        "Figure 9(a): throughput in batch mode, by the size of the batch",
        f"{about(data)} A batch against a file of {short_count(len(data.signatures))} in runs of "
        "that size, queries a second; in brackets, times the blocks (4 tables over the batch). "
        "The paper: from the smallest batch to one of 10 million, against 60 million, in chunks as "
        "long as the batch. Ours puts such runs together to chunks of 128 MB, so that small "
        "batches lose less. By equations (17) and (18), blocks gain nothing from a larger batch. "
        f"By (23), the first and the last line differ {largest / batches[0]:.0f} times, divided by "
        f"the growth of k ({flips[0]} and {flips[-1]} flips here). That is "
        f"{largest / batches[0] * flips[0] / flips[-1]:.0f} times, if chunks are as long as the "
        f"batch. Blocks got {by_batch[-1][BLOCKS] / by_batch[0][BLOCKS]:.1f} times as fast here, "
        f"flips {by_batch[-1][FLIPS_ALL] / by_batch[0][FLIPS_ALL]:.1f} times.",
        ("batch", *METHODS),
        [
            *_rows(batches, by_batch),
            ("paper, smallest", *(PAPER[method][0] for method in METHODS)),
            ("paper, 10M", *(PAPER[method][1] for method in METHODS)),
        ],
        [_draw(world, "a", "fingerprints in a batch", batches, by_batch)],
        _gained(by_batch),
    )
    sizes = [len(data.signatures) >> less for less in (3, 2, 1, 0)]
    by_size = [_rates(data, matched, size, batches[1])[0] for size in sizes]
    yield Section(
        "Figure 9(b): throughput in batch mode, by the size of the file",
        f"{about(data)} Batches of {short_count(batches[1])}. By (16) to (18) and (23), all fall "
        "like 1/n. The paper confirms it, with PSM at 7 times the blocks for all matches and 14 "
        "times for the first.",
        ("file", *METHODS),
        _rows(sizes, by_size),
        [_draw(world, "b", "fingerprints in the file", sizes, by_size)],
        _fallen(sizes, by_size),
    )


def _gained(by_batch: Sequence[dict[str, float]]) -> Verdict:
    """Say what batches gain, and whether more of it the larger they are."""
    small, large = by_batch[0], by_batch[-1]
    every, first = (large[method] / large[BLOCKS] for method in (FLIPS_ALL, FLIPS_FIRST))
    grown = large[FLIPS_ALL] / small[FLIPS_ALL], large[BLOCKS] / small[BLOCKS]
    return Verdict.of(
        [every > 3, grown[0] > 3 * grown[1]],
        f"In batches, flips are {every:.1f} times as fast as blocks (paper 6.8; the first match "
        f"{first:.1f}, paper 13; its text says 7.7 to 14). From the smallest to the largest "
        f"batch, flips get {grown[0]:.1f} times as fast (paper 5.3), blocks "
        f"{grown[1]:.1f} times (paper: hardly any gain).",
    )


def _fallen(sizes: Sequence[int], by_size: Sequence[dict[str, float]]) -> Verdict:
    """Say whether rates fall like 1/n, and what flips gain at the largest file."""
    more = sizes[-1] / sizes[0]
    fallen = {method: by_size[0][method] / by_size[-1][method] for method in METHODS}
    gains = [by_size[-1][method] / by_size[-1][BLOCKS] for method in (FLIPS_ALL, FLIPS_FIRST)]
    return Verdict.of(
        [
            all(more / 2 < one < 2 * more for one in fallen.values()),
            gains[0] > 3.5 and gains[1] > 7,
        ],
        f"In a file {more:.0f} times as large, rates are "
        f"{', '.join(f'{one:.1f}' for one in fallen.values())} times lower ({', '.join(METHODS)}; "
        f"the paper: like 1/n). Flips are {gains[0]:.1f} times as fast as blocks (paper 7), for "
        f"the first match {gains[1]:.1f} times (paper 14).",
    )


def _rates(
    data: GeneratedFingerprints, matched: NDArray[np.int64], count: int, batch: int
) -> tuple[dict[str, float], int]:
    """Return queries a second of each method, and the flips for all matches."""
    queries, weights = data.queries[:batch], data.weights[:batch]
    rates = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "signatures"
        _write(path, data.signatures[:count], batch)
        chunks = chunks_for(SignatureFile(path), batch).sizes()
        # The header that these chunks get, over everything.
        index = FlipIndex(data.signatures, batch_header_bits(chunks, batch, 64, RADIUS, RECALL))
        flips = {first: flips_needed(index, data, matched, first) for first in (False, True)}
        del index
        for method in METHODS:
            first = method == FLIPS_FIRST
            start = process_time()
            if method == BLOCKS:
                match_batch(
                    path, queries, RADIUS, method="blocks", tables=4, append=False, threads=1
                )
            else:
                match_batch(
                    path,
                    queries,
                    RADIUS,
                    weights=weights,
                    flips=flips[first],
                    first=first,
                    append=False,
                    threads=1,
                )
            rates[method] = batch / (process_time() - start)
    return rates, flips[False]


def _write(path: Path, signatures: NDArray[np.uint64], run: int) -> None:
    """Write a file of sorted runs."""
    file = SignatureFile.create(path, 64)
    for begin in range(0, len(signatures), run):
        part = signatures[begin : begin + run]
        order = np.argsort(part)
        rows = part[order].view(np.uint8).reshape(-1, 8)
        file.append(rows, (begin + order).astype(np.int64))


def _rows(sizes: Sequence[int], rates: Sequence[dict[str, float]]) -> list[tuple[str, ...]]:
    return [
        (
            short_count(size),
            *(
                f"{short_count(each[method])} ({each[method] / each[BLOCKS]:.1f})"
                for method in METHODS
            ),
        )
        for size, each in zip(sizes, rates, strict=True)
    ]


def _draw(
    world: World, part: str, what: str, sizes: Sequence[int], rates: Sequence[dict[str, float]]
) -> str:
    name = f"psm_figure_9{part}.png"
    figure, axes = new_figure(
        "Throughput in batch mode", f"generated fingerprints, within {RADIUS} bits, one thread"
    )
    for number, method in enumerate(METHODS):
        values = [each[method] / 1e3 for each in rates]
        axes.plot(sizes, values, label=method, **line_style(number))
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [short_count(size) for size in sizes])
    axes.minorticks_off()
    log_axis(axes)
    axes.set_xlabel(what)
    axes.set_ylabel("thousand queries a second")
    save_figure(figure, axes, world.pictures / name)
    return name
