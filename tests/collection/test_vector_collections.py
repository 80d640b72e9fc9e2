"""Collections whose signer is Projection: vectors are asked for as they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import lookalike as la

VECTORS = np.random.default_rng(5).normal(size=(40, 12)).astype(np.float32)


@pytest.mark.parametrize("plan", ["native", "sql"])
def test_vectors_are_signed_as_their_signatures(tmp_path: Path, plan: str) -> None:
    signer = la.Projection(128, 12, seed=3)
    signatures = signer.sign(VECTORS)
    with la.open_collection(tmp_path / "v.db", "v", signer=signer) as docs:
        docs.add([f"v{n:02}" for n in range(40)], signatures=signatures)
    with la.open_collection(tmp_path / "v.db", "v", plan=plan) as docs:  # type: ignore[arg-type]
        found = [
            docs.search(one, 3)
            for one in (VECTORS[7], VECTORS[7:8], VECTORS[7].tolist(), -VECTORS[7])
        ]
        assert [one.ids[0] == "v07" and one.distances[0] == 0 for one in found] == [
            True, True, True, False
        ]  # fmt: skip
        by_signature = docs.search_many(signatures, 5)
        for vectors in (VECTORS, VECTORS.astype(np.float64), VECTORS.tolist()):
            asked = docs.search_many(vectors, 5)
            assert [one.ids for one in asked] == [one.ids for one in by_signature]
        assert docs.within(VECTORS[7], 50).ids == docs.within(signatures[7], 50).ids
        assert [one.ids for one in docs.within_many(VECTORS, 40)] == [
            one.ids for one in docs.within_many(signatures, 40)
        ]


def test_what_is_no_vector_of_these(tmp_path: Path) -> None:
    signer = la.Projection(128, 12)
    with la.open_collection(tmp_path / "v.db", "v", signer=signer) as docs:
        for query, message in (
            (np.ones(11), r"shape \(1, 11\); expected \(count, 12\)"),
            (np.full(12, np.nan), "infinite or not a number"),
        ):
            with pytest.raises(la.errors.DocumentError, match=message):
                docs.search(query)
        with pytest.raises(la.errors.ArgumentError, match="2 queries; expected one"):
            docs.search(VECTORS[:2])
    with (
        la.open_collection(tmp_path / "w.db", "w", signer=la.SimHash(128)) as docs,
        pytest.raises(la.errors.SignatureError, match="queries are float32"),
    ):
        docs.search(VECTORS[0])
