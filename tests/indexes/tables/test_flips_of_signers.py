"""Flips by the weights of every signer that has some: what the oracle finds, and sooner."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import lookalike as la
from lookalike.indexes.batch.match import batch_header_bits, chunks_for
from support.cases.tables import found
from support.oracles import flips as flip_oracle
from support.oracles import scan as oracle

KINDS = ("normal", "below zero", "ternary", "projection")


def pages(count: int, seed: int) -> list[dict[str, float]]:
    """Return features with weights, some below 0."""
    rng = np.random.default_rng(seed)
    return [
        {f"w{word}": float(rng.normal(1, 2)) for word in rng.integers(0, 500, 40)}
        for _ in range(count)
    ]


@cache
def signed(kind: str, count: int) -> tuple[Any, ...]:
    """Return signatures and weights of documents, and of documents that are near them."""
    rng = np.random.default_rng(7)
    if kind == "projection":
        signer: Any = la.Projection(64, 30)
        documents: Any = rng.normal(size=(count, 30))
        near: Any = documents + rng.normal(0, 0.1, documents.shape)
    elif kind == "below zero":
        signer = la.SimHash(64, la.features.Features())
        documents = pages(count, 0)
        near = [{**page, "new": 3.0} for page in documents]
    else:
        signer = la.SimHash(64, vectors="gaussian") if kind == "normal" else la.TopSig(64, 3)
        texts = [" ".join(f"w{word}" for word in rng.integers(0, 3000, 60)) for _ in range(count)]
        documents, near = texts, [text.replace(text.split()[0], "new", 1) for text in texts]
    return (*signer.sign_with_weights(documents), *signer.sign_with_weights(near))


def sets_of(index: la.FlipIndex, weights: NDArray[np.float32], radius: int) -> list[int]:
    """Return the sets of flips of a query, the likeliest first."""
    steps = flip_oracle.steps_of(index.volatility, weights[64 - index.header_bits :])
    costs = [int(index.volatility.costs[step]) for step in steps]
    return flip_oracle.ordered_sets(costs, min(radius, index.header_bits), steps)


@settings(max_examples=50)
@given(
    st.sampled_from(KINDS), st.integers(0, 9), st.integers(0, 3), st.integers(0, 40), st.booleans()
)
def test_what_is_found_has_one_of_the_likeliest_headers(
    kind: str, header_bits: int, radius: int, flips: int, first: bool
) -> None:
    rows, _, queries, weights = signed(kind, 60)
    index = la.FlipIndex(rows, header_bits)
    some = slice(0, 4)
    matches = index.within(queries[some], radius, weights=weights[some], flips=flips, first=first)
    for number, one in enumerate(found(matches)):
        sets = sets_of(index, weights[number], radius)[:flips]
        expected = flip_oracle.flipped_within(rows, queries[number], radius, header_bits, sets)
        if first:
            assert len(one) == min(1, len(expected)) and set(one) <= set(expected)
        else:
            assert one == expected


@settings(max_examples=25)  # each syncs files
@given(st.data())
def test_batches_by_weights_equal_the_oracle(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Weights, header bits, first, recall, runs, duplicates and ids, as they come together."""
    path = tmp_path_factory.mktemp("batch") / "file"
    kind = data.draw(st.sampled_from(KINDS))
    rows, _, queries, weights = signed(kind, 60)
    cut = data.draw(st.integers(0, 60))
    numbers = np.array(data.draw(st.permutations(range(60))))
    for part in (slice(0, cut), slice(cut, 60)):
        la.match_batch(path, rows[part], 0, method="blocks", ids=numbers[part])
    if data.draw(st.booleans()):
        la.SignatureFile(path).compact()
    radius, chunk = data.draw(st.integers(0, 3)), data.draw(st.none() | st.integers(5, 60))
    first, duplicates = data.draw(st.booleans()), data.draw(st.booleans())
    recall = data.draw(st.sampled_from([0.5, 0.95, 1.0]))
    flips = data.draw(st.none() | st.integers(0, 30)) if recall < 1 else None
    asked = np.concatenate([queries[:12], queries[:4]])
    behind = np.concatenate([weights[:12], weights[:4]])
    used = la.signatures.quantize_weights(behind) if data.draw(st.booleans()) else behind
    sizes = chunks_for(la.SignatureFile(path), len(asked), chunk).sizes()
    matches = la.match_batch(
        path, asked, radius, weights=used, flips=flips, recall=recall, first=first,
        duplicates=duplicates, chunk=chunk, append=False, ids=np.arange(16) + 100,
    )  # fmt: skip
    header_bits = batch_header_bits(sizes, 16, 64, radius, None if recall == 1 else recall)
    index = la.FlipIndex(rows, header_bits, numbers)
    expected = index.within(asked, radius, weights=used, flips=flips, recall=recall)
    assert matches.exact == expected.exact
    if expected.exact:
        assert found(expected) == oracle.within(rows, asked, radius, numbers.tolist())
    for number, (one, there) in enumerate(zip(found(matches), found(expected), strict=True)):
        before = oracle.within(
            asked[:number], asked[number : number + 1], radius, list(range(100, 100 + number))
        )[0]
        both = sorted([*there, *(before if duplicates else [])])
        if first:
            assert len(one) == min(1, len(both)) and set(one) <= set(both)
        else:
            assert one == both


@pytest.mark.parametrize("kind", KINDS)
def test_small_weights_are_the_bits_that_flip(kind: str) -> None:
    """Near-duplicates are found by a few of the likeliest flips, and not by as many others."""
    rows, own, queries, weights = signed(kind, 1500)
    index = la.FlipIndex(rows, 16)
    far = np.unpackbits(rows ^ queries, axis=1).sum(axis=1)
    near = np.flatnonzero((far > 0) & (far <= 12))
    assert len(near) > 300

    def share(behind: Any) -> float:
        matches = index.within(queries[near], 12, weights=behind[near], flips=6)
        columns = matches.to_numpy()
        return float(
            np.isin(near, near[columns["query"][columns["id"] == near[columns["query"]]]]).mean()
        )

    likely = share(weights)
    assert likely > 0.8 * share(own)  # which are nearly the same
    assert likely > 1.3 * share(np.random.default_rng(0).permuted(weights, axis=1))


def test_saved_weights_answer_as_those_of_signing(tmp_path: Path) -> None:
    rows, _, queries, weights = signed("ternary", 60)
    la.save_signatures(tmp_path / "file", queries, la.TopSig(64, 3), weights=weights)
    saved = la.load_signatures(tmp_path / "file")
    index = la.FlipIndex(rows, 8)
    units = la.signatures.quantize_weights(weights)
    expected = index.within(queries, 3, weights=units, flips=5)
    assert found(index.within(saved.signatures, 3, weights=saved.weights, flips=5)) == found(
        expected
    )
