"""The worked examples of the slides on similarity (Gakhov, 2016), to the digit, by the product; the
oracle says the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest

import lookalike as la
from lookalike.indexes.tables.blocks import BlockChoice
from lookalike.indexes.tables.sorted_table import SortedTable
from support.oracles import text as text_oracle

UNIVERSE = ["a", "is", "java", "language", "programming", "python", "snake"]
SETS = [
    {"python", "is", "a", "programming", "language"},
    {"java", "is", "a", "programming", "language"},
    {"a", "programming", "language"},
    {"python", "is", "a", "snake"},
]


def test_minhash_one_step() -> None:
    """Of each set the row that comes first in the permuted order 2, 5, 6, 1, 4, 3."""
    order = [2, 5, 6, 1, 4, 3]
    columns = [[1, 1, 0, 1, 0, 0], [0, 0, 0, 0, 0, 1], [1, 0, 1, 0, 1, 1], [0, 0, 1, 1, 1, 0]]
    sets = [[row for row, one in zip(order, column, strict=True) if one] for column in columns]
    places = {row: place for place, row in enumerate(order)}
    signer = la.MinHash(hashes=[places], features=la.features.Features())
    values = signer.sign(sets)
    assert [order[value] for value in values[:, 0]] == [2, 3, 2, 6]
    assert (
        signer.similarity(values[0], values[2]) == 1
        and signer.similarity(values[0], values[3]) == 0
    )
    oracle = [text_oracle.minhash(each, [places.__getitem__])[0] for each in sets]
    assert values[:, 0].tolist() == oracle


@pytest.mark.parametrize("by", ["rows", "words"])
def test_minhash_matrix(by: str) -> None:
    """The functions of the slides on numbers of rows; or as tables, on the documents themselves."""
    functions: list[Callable[[int], int]] = [lambda x: (x + 1) % 7, lambda x: (3 * x + 1) % 7]
    rows = [sorted(UNIVERSE.index(word) for word in words) for words in SETS]
    if by == "rows":
        signer = la.MinHash(
            hashes=[(1, 1, 7), (3, 1, 7)], features=la.features.Features(hashed=True)
        )
        values = signer.sign(rows)
    else:
        tables = [{word: h(row) for row, word in enumerate(UNIVERSE)} for h in functions]
        signer = la.MinHash(hashes=tables, features=la.Words())
        values = signer.sign([" ".join(sorted(words)) for words in SETS])
    assert values[:, 0].tolist() == [1, 1, 1, 0]
    assert values[:, 1].tolist() == [1, 0, 1, 1]
    assert signer.similarity(values[0], values[2]) == 1
    assert signer.similarity(values[1], values[3]) == 0
    assert values.tolist() == [text_oracle.minhash(members, functions) for members in rows]


def test_minhash_row_by_row() -> None:
    """The signature matrix after row 0, after row 5 and at the end."""
    signer = la.MinHash(hashes=[(1, 1, 7), (3, 1, 7)], features=la.features.Features(hashed=True))
    rows = [[UNIVERSE.index(word) for word in words] for words in SETS]
    values = signer.sign([[] for _ in SETS])
    assert (values == 2**32 - 1).all()  # what stands for infinity
    after = {}
    for row in range(len(UNIVERSE)):
        values = signer.update(values, [[row] if row in members else [] for members in rows])
        after[row] = values.T.tolist()
    assert after[0] == after[1] == [[1, 1, 1, 1], [1, 1, 1, 1]]
    assert after[5] == [[1, 1, 1, 1], [1, 0, 1, 1]]
    assert after[6] == [[1, 1, 1, 0], [1, 0, 1, 1]]


def test_lowest_bits_of_minhash() -> None:
    """One bit of each value: of h1 to h8, (k·x + 1) modulo 7 with k from 1 on."""
    hashes = [(k, 1, 7) for k in range(1, 9)]
    packed = la.BBitMinHash(hashes=hashes, b=1, features=la.features.Features(hashed=True))
    rows = [[UNIVERSE.index(word) for word in words] for words in SETS]
    functions = [lambda x, k=k: (k * x + 1) % 7 for k in range(1, 9)]
    for signature, members in zip(packed.sign(rows).tolist(), rows, strict=True):
        least = text_oracle.minhash(members, functions)
        assert text_oracle.unpacked(signature, 8) == [(value or 0) & 1 for value in least]


def test_similarities_of_the_four_documents() -> None:
    documents = [" ".join(sorted(words)) for words in SETS]
    assert la.jaccard(documents[0], documents[2]) == pytest.approx(3 / 5)
    assert la.jaccard(documents[1], documents[3]) == pytest.approx(2 / 7)  # the slide's 0.28


def as_number(bits: str) -> int:
    """Read a fingerprint as the slides write it, first bit first."""
    return sum(1 << position for position, bit in enumerate(bits) if bit == "1")


def test_simhash_fingerprint() -> None:
    features = [(as_number("0101010101010111"), 1.0), (as_number("0111011100100111"), 0.9)]
    signer = la.SimHash(bits=16, features=la.features.Features(hashed=True))
    signatures, weights = signer.sign_with_weights([features])
    vector = weights[0] * math.hypot(1.0, 0.9)
    assert vector.round(4).tolist() == pytest.approx(
        [-1.9, 1.9, -0.1, 1.9, -1.9, 1.9, -0.1, 1.9, -1.9, 0.1, -0.1, 0.1, -1.9, 1.9, 1.9, 1.9]
    )
    assert int.from_bytes(signatures[0].tobytes(), "little") == as_number("0101010101010111")


def test_permutation_table() -> None:
    """A table in the order of bits 4, 1, 3 and 2, as the permutation puts them.

    What the slide prints as the table has 0011 twice and 0010 once; of its five fingerprints two
    are 0010, and one is 0110, which becomes 0011.
    """
    fingerprints, places = ["0110", "0010", "0010", "1001", "1110"], {1: 2, 2: 4, 3: 3, 4: 1}
    order = sorted(places, key=places.__getitem__)
    assert order == [4, 1, 3, 2]
    rows = np.array([[as_number(one)] for one in fingerprints], np.uint8)
    table = SortedTable.build(rows, [(bit - 1, 1) for bit in order], threads=1)
    assert table.rows is not None
    permuted = ["".join(fingerprints[row][bit - 1] for bit in order) for row in table.rows]
    assert permuted == ["0010", "0010", "0011", "0111", "1100"]
    assert permuted == text_oracle.permuted_table(fingerprints, places)
    assert [fingerprints[row] for row in table.rows] == ["0010", "0010", "0110", "1110", "1001"]


def test_mankus_parameters() -> None:
    assert math.comb(64, 3) == 41_664
    index = la.BlockIndex(np.zeros((1, 8), np.uint8), 3, blocks=5, lead=2)
    widths = index.stats()["blocks"]
    assert widths == text_oracle.block_widths(64, 5) == [13, 13, 13, 13, 12]
    assert index.tables == 10 and index.widest == 3
    choice = BlockChoice(64, 5, 2)
    prefixes = [sum(width for _, width in runs) for runs in choice.headers(2**34)]
    assert [min(sum(chosen), 30) for chosen in combinations(widths, 2)] == prefixes
    assert set(prefixes) == {25, 26}
    assert 2 ** (34 - min(prefixes)) == 512
