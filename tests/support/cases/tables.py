"""What the tests of blocks, flips and batches share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

import lookalike as la
from lookalike.storage.container import open_container, write_container
from support.cases.strategies import collections
from support.oracles import scan as oracle

threads_used = st.sampled_from([None, 1, 2, 5])
narrow = st.one_of(st.sampled_from([1, 7, 8, 9, 16, 33, 64]), st.integers(1, 64))


def found(matches: la.results.Matches) -> list[list[tuple[int, int]]]:
    return [list(zip(far.tolist(), near.tolist(), strict=True)) for near, far in matches]


@st.composite
def near_collections(draw: st.DrawFn) -> tuple[oracle.Signatures, oracle.Signatures]:
    """Signatures and queries a few bits off some of them."""
    rows = draw(collections(width=draw(narrow)))
    queries = draw(collections(width=rows.shape[1], most=6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    if len(rows):
        for query in queries[: draw(st.integers(0, len(queries)))]:
            query[:] = rows[rng.integers(len(rows))]
            for bit in rng.integers(8 * rows.shape[1], size=rng.integers(5)):
                query[bit // 8] ^= np.uint8(1 << bit % 8)
    return rows, queries


def damaged(path: Path, **changes: Any) -> None:
    """Write the container again with other contents."""
    container = open_container(path)
    meta, arrays = dict(container.meta), {}
    for name, section in container._sections.items():
        if name != "meta":
            arrays[name] = container.array(name, section.dtype.type, len(section.shape)).copy()
    for name, value in changes.items():
        key = name.replace("__", ".")
        if key in arrays:
            arrays[key] = value(arrays[key])
        else:
            meta[key] = value
    write_container(path, meta, arrays)
