"""The table of instruction sets, and every family of loops with every set of this machine."""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import lookalike as la
from lookalike.images.decode import decoded
from lookalike.images.details import details_of
from lookalike.signatures.arrays import select_kernel
from support.oracles import scan as oracle

NATIVE = Path(__file__).parent.parent.parent / "native"
ROWS = re.findall(
    r'^(X86|ARM|ANY)\((\w+), "([^"]*)",(.*?)\)$',
    (NATIVE / "bits/instruction_sets.inc").read_text(),
    re.MULTILINE | re.DOTALL,
)

Arrays = Iterator[NDArray[Any]]


def near_rows(count: int, width: int, seed: int) -> oracle.Signatures:
    """Return signatures of which half are copies of others with a few bits changed."""
    rng = np.random.default_rng(seed)
    rows = oracle.collection(count, width, "uniform", seed)
    flips = rng.random((count // 2, 8 * width)) < rng.uniform(0, 0.2, (count // 2, 1))
    rows[count - count // 2 :] = rows[: count // 2] ^ np.packbits(flips, axis=1)
    return np.asarray(rows[rng.permutation(count)])


def matches(found: la.results.Matches) -> Arrays:
    yield from (found.offsets, found.ids, found.distances)


def pairs(found: la.results.Pairs) -> Arrays:
    yield from (found.left, found.right, found.distances)


def distance_kernels() -> Arrays:
    for width in (1, 4, 8, 9, 16, 32, 40, 64, 128, 300):
        rows = near_rows(500, width, width)
        index, queries = la.ScanIndex(rows), rows[:37]
        masks = oracle.collection(len(queries), width, "uniform", 1)
        yield la.hamming(rows[1:], rows[:-1])
        yield index.search(queries, 9).ids
        yield index.search(queries, 9, masks=masks).ids
        yield from matches(index.within(queries, 2 * width))
        yield from pairs(index.pairs(width))
        yield from pairs(la.SliceIndex(rows, min(8 * width, 8)).pairs(width // 2))


def signing() -> Arrays:
    rng = np.random.default_rng(0)
    texts = [" ".join(map(str, rng.integers(0, 500, size))) for size in range(0, 400, 7)]
    signer = la.SimHash(1000, weights="tfidf").fit(texts)
    yield from signer.sign_with_weights(texts)
    yield la.SimHash(1000, weights="count").sign(texts)
    yield la.MinHash(70).sign(texts)
    yield la.Projection(264, 50).sign(rng.standard_normal((150, 50)))


def slices() -> Arrays:
    for width, slice_bits, expand in ((8, 16, 0), (16, 8, 1), (32, 14, 1)):
        rows = near_rows(5_000, width, width)
        index = la.SliceIndex(rows, slice_bits)
        for rerank in (12, 300):
            found = index.search(rows[:200], 5, expand=expand, rerank=rerank)
            yield from (found.ids, found.distances)
            explained = index.search(rows[:20], 5, expand=expand, rerank=rerank, explain=True)
            assert explained.explanation is not None
            yield from (explained.ids, explained.explanation.candidates)
    words = near_rows(20_000, 8, 3)
    index = la.SliceIndex(words)
    yield from matches(index.within(words[:300], 9))
    for radius in (1, 4):
        yield from pairs(index.pairs(radius))


def tables() -> Arrays:
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(9_000, 64)).astype(np.float32)
    edited = weights[rng.integers(0, len(weights), 300)] + 0.1 * rng.normal(size=(300, 64))
    rows, queries = (
        np.packbits(some >= 0, axis=1, bitorder="little") for some in (weights, edited)
    )
    for header_bits in (8, None):  # long buckets, and short ones
        index = la.FlipIndex(rows, header_bits)
        for some in (edited.astype(np.float32), np.round(300 * edited).astype(np.int16)):
            for flips in (20, 2_000):
                yield from matches(index.within(queries, 5, weights=some, flips=flips))
    with pytest.raises(la.errors.ArgumentError, match="not finite"):
        index.within(queries, 5, weights=np.full_like(edited, np.nan, dtype=np.float32))
    yield from matches(la.BlockIndex(rows, 3).within(queries, 3))


def vectors() -> Arrays:
    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.float16):
        for width in (3, 16, 45):
            centers = rng.normal(size=(20, width))
            rows = centers[rng.integers(0, 20, 1_500)] + rng.normal(size=(1_500, width))
            index = la.VectorIndex(rows.astype(dtype), bits=64)
            for queries in (rows[:2], rows[:70]):  # compared as they are, and in tiles
                for exact in (True, False):
                    found = index.search(queries, 10, exact=exact)
                    yield from (found.ids, found.similarities)


def points() -> Arrays:
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    for width, height in ((64, 64), (131, 87), (300, 45)):
        rough = rng.integers(0, 256, (height // 8 + 1, width // 8 + 1), np.uint8)
        picture = image.fromarray(rough).resize((width, height))
        for found in details_of(decoded(picture, 128), 2).points:
            yield from (found.words, found.places)


def clusters() -> Arrays:
    for width, groups in ((8, 5), (32, 47), (128, 64)):
        rows = near_rows(2_000, width, width)
        index = la.ClusterIndex(rows, groups)
        for k, probe in ((3, 1), (9, 5), (40, 16)):
            found = index.search(rows[:150], k, probe=probe, explain=True)
            assert found.explanation is not None
            yield from (found.ids, found.distances, found.explanation.exact)


FAMILIES: dict[str, Callable[[], Arrays]] = {
    "bits/kernels": distance_kernels,
    "clusters/loops": clusters,
    "images/point_loops": points,
    "sign/loops": signing,
    "slices/scoring/loops": slices,
    "tables/flip_loops": tables,
    "vectors/loops": vectors,
}


@cache
def of_scalar(family: str) -> list[NDArray[Any]]:
    """Return what a family computes without any instruction set."""
    active = next(kernel.name for kernel in la.signatures.kernels() if kernel.active)
    select_kernel("scalar")
    try:
        return list(FAMILIES[family]())
    finally:
        select_kernel(active)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_set_computes_what_scalar_does(family: str, kernel: str) -> None:
    for found, expected in zip(FAMILIES[family](), of_scalar(family), strict=True):
        assert found.size > 0
        assert np.array_equal(found, expected)


def test_every_family_is_tested() -> None:
    files = (path.relative_to(NATIVE) for path in NATIVE.rglob("*loops.cpp"))
    assert {"bits/kernels", *(str(path.with_suffix("")) for path in files)} == set(FAMILIES)


def test_the_build_has_the_rows_of_its_processor_in_their_order() -> None:
    own = {"x86_64": "X86", "aarch64": "ARM"}.get(platform.machine())
    expected = [name for processor, name, _, _ in ROWS if processor in (own, "ANY")]
    assert [kernel.name for kernel in la.signatures.kernels()] == expected


def test_every_row_has_its_kernels() -> None:
    files = (path.stem for path in NATIVE.glob("bits/kernels_*.cpp"))
    assert {f"kernels_{name}" for _, name, _, _ in ROWS} == set(files)


@pytest.mark.parametrize("row", [row for row in ROWS if row[0] == "X86"], ids=lambda row: row[1])
def test_the_processor_is_asked_for_all_that_the_flags_allow(row: tuple[str, ...]) -> None:
    _, _, flags, supported = row
    allowed = {flag.removeprefix("-m") for flag in flags.split() if "=" not in flag}
    assert allowed == set(re.findall(r'__builtin_cpu_supports\("([\w.-]+)"\)', supported))
