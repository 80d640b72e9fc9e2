"""The worked examples of the slides on similarity (Gakhov, 2016), to the digit."""

from __future__ import annotations

import math
from itertools import combinations

import pytest

import lookalike as la
from support import text_oracle

UNIVERSE = ["a", "is", "java", "language", "programming", "python", "snake"]
SETS = [
    {"python", "is", "a", "programming", "language"},
    {"java", "is", "a", "programming", "language"},
    {"a", "programming", "language"},
    {"python", "is", "a", "snake"},
]


def test_minhash_one_step() -> None:
    """The first 1 of each column, by the number that its row has after the permutation."""
    members = [[1, 2, 4], [6], [1, 3, 5, 6], [3, 4, 5]]
    permuted = {1: 2, 2: 5, 3: 6, 4: 1, 5: 4, 6: 3}
    first = [text_oracle.minhash(rows, [lambda row: row])[0] for rows in members]
    assert [permuted[row] for row in first if row] == [2, 3, 2, 6]


def test_minhash_matrix() -> None:
    hashes = [lambda x: (x + 1) % 7, lambda x: (3 * x + 1) % 7]
    rows = [sorted(UNIVERSE.index(word) for word in words) for words in SETS]
    signature = [text_oracle.minhash(members, hashes) for members in rows]
    assert [column[0] for column in signature] == [1, 1, 1, 0]
    assert [column[1] for column in signature] == [1, 0, 1, 1]
    assert signature[0] == signature[2]  # similarity 1
    assert all(a != b for a, b in zip(signature[1], signature[3], strict=True))  # similarity 0


def test_similarities_of_the_four_documents() -> None:
    documents = [" ".join(sorted(words)) for words in SETS]
    assert la.jaccard(documents[0], documents[2]) == pytest.approx(3 / 5)
    assert la.jaccard(documents[1], documents[3]) == pytest.approx(2 / 7)  # the slide's 0.28


def as_number(bits: str) -> int:
    """Read a fingerprint as the slides write it, first bit first."""
    return sum(1 << position for position, bit in enumerate(bits) if bit == "1")


def test_simhash_fingerprint() -> None:
    features = [(as_number("0101010101010111"), 1.0), (as_number("0111011100100111"), 0.9)]
    signer = la.SimHash(bits=16, features=la.Features(hashed=True))
    signatures, weights = signer.sign_with_weights([features])
    vector = weights[0] * math.hypot(1.0, 0.9)
    assert vector.round(4).tolist() == pytest.approx(
        [-1.9, 1.9, -0.1, 1.9, -1.9, 1.9, -0.1, 1.9, -1.9, 0.1, -0.1, 0.1, -1.9, 1.9, 1.9, 1.9]
    )
    assert int.from_bytes(signatures[0].tobytes(), "little") == as_number("0101010101010111")


def test_permutation_table() -> None:
    table = text_oracle.permuted_table(
        ["0110", "0010", "0010", "1001", "1110"], {1: 2, 2: 4, 3: 3, 4: 1}
    )
    assert table == ["0010", "0010", "0011", "0111", "1100"]


def test_mankus_parameters() -> None:
    assert math.comb(64, 3) == 41_664
    widths = text_oracle.block_widths(64, 5)
    assert widths == [13, 13, 13, 13, 12]
    prefixes = [sum(chosen) for chosen in combinations(widths, 2)]
    assert len(prefixes) == 10
    assert set(prefixes) == {25, 26}
    assert 2 ** (34 - min(prefixes)) == 512
