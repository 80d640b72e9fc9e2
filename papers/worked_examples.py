"""The examples that the slides on similarity work by hand, run on the product."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from lookalike.features import Features, Words, jaccard
from lookalike.indexes.tables.sorted_table import SortedTable
from lookalike.signatures import MinHash, SimHash
from papers.page import Section

__all__ = ["worked_examples"]

WORDS = ("a", "is", "java", "language", "programming", "python", "snake")
DOCUMENTS = (
    "python is a programming language",
    "java is a programming language",
    "a programming language",
    "python is a snake",
)
PERMUTED = (2, 5, 6, 1, 4, 3)
COLUMNS = ("110100", "000001", "101011", "001110")
"""Of the matrix of one step: which of the rows in their permuted order each set has."""

HELLO, GO = "0101010101010111", "0111011100100111"
FINGERPRINTS = ("0110", "0010", "0010", "1001", "1110")
PLACES = {1: 2, 2: 4, 3: 3, 4: 1}


def worked_examples() -> Section:
    """Run all examples, each beside what the slides print."""
    return Section(
        "The worked examples",
        "The examples that the slides work out by hand, with their tables, hash functions and "
        "permutations: `MinHash(hashes=...)`, `Features(hashed=True)`, a sorted table in the "
        "order of some bits. The slides have two errors. The true similarity of S1 and S3 is 3 "
        "of 5. The permuted table of the fingerprints 0110, 0010, 0010 has 0010 twice, not 0011.",
        ("example", "the slides", "here"),
        [*_one_step(), *_matrix(), *_fingerprint(), *_table()],
    )


def _one_step() -> list[Sequence[str]]:
    sets = [
        [row for row, one in zip(PERMUTED, column, strict=True) if one == "1"] for column in COLUMNS
    ]
    signer = MinHash(
        hashes=[{row: place for place, row in enumerate(PERMUTED)}], features=Features()
    )
    values = signer.sign(sets)
    alike = [signer.similarity(values[0], values[other])[0] for other in (2, 3)]
    return [
        (
            "one permutation: m(S1) ... m(S4)",
            "2, 3, 2, 6",
            ", ".join(str(PERMUTED[place]) for place in values[:, 0]),
        ),
        ("J(S1, S3), J(S1, S4) by it", "1, 0", ", ".join(f"{one:.0f}" for one in alike)),
    ]


def _matrix() -> list[Sequence[str]]:
    """Return the rows of the signature matrix, by row numbers and by the words themselves."""
    by_row = MinHash(
        hashes=[(1, 1, len(WORDS)), (3, 1, len(WORDS))], features=Features(hashed=True)
    )
    tables = [
        {word: (factor * row + 1) % len(WORDS) for row, word in enumerate(WORDS)}
        for factor in (1, 3)
    ]
    by_word = MinHash(hashes=tables, features=Words())
    rows = [[WORDS.index(word) for word in text.split()] for text in DOCUMENTS]
    values = by_row.sign(rows)
    if not np.array_equal(values, by_word.sign(DOCUMENTS)):
        raise RuntimeError("rows and words give different matrices")
    printed = ("1, 1, 1, 0", "1, 0, 1, 1")
    found = [
        (f"{name} of S1 ... S4", expected, ", ".join(map(str, line)))
        for name, expected, line in zip(
            ("h1(x) = x + 1 mod 7", "h2(x) = 3x + 1 mod 7"), printed, values.T.tolist(), strict=True
        )
    ]
    pairs = (("S1, S3", 0, 2, "1 (0.75)"), ("S2, S4", 1, 3, "0 (0.28)"))
    found += [
        (
            f"similarity of {name} (true)",
            expected,
            f"{by_row.similarity(values[a], values[b])[0]:.0f} "
            f"({math.floor(100 * jaccard(DOCUMENTS[a], DOCUMENTS[b])) / 100:g})",
        )
        for name, a, b, expected in pairs
    ]
    return [*found]


def _fingerprint() -> list[Sequence[str]]:
    signer = SimHash(16, Features(hashed=True))
    document = [(_number(HELLO), 1.0), (_number(GO), 0.9)]
    signatures, weights = signer.sign_with_weights([document])
    vector = (weights[0] * math.hypot(1.0, 0.9)).round(4)
    bits = "".join(str(int(bit)) for bit in np.unpackbits(signatures[0], bitorder="little"))
    return [
        (
            "SimHash: V",
            "-1.9, 1.9, -0.1, 1.9, -1.9, 1.9, -0.1, 1.9, -1.9, 0.1, -0.1, 0.1, -1.9, 1.9, 1.9, 1.9",
            ", ".join(f"{value:.1f}" for value in vector),
        ),
        ("SimHash: F", HELLO, bits),
    ]


def _table() -> list[Sequence[str]]:
    order = sorted(PLACES, key=PLACES.__getitem__)
    rows = np.array([[_number(one)] for one in FINGERPRINTS], np.uint8)
    table = SortedTable.build(rows, [(bit - 1, 1) for bit in order], threads=1)
    sorted_rows = range(len(rows)) if table.rows is None else table.rows.tolist()
    permuted = ["".join(FINGERPRINTS[row][bit - 1] for bit in order) for row in sorted_rows]
    return [("permuted table", "0010, 0011, 0011, 0111, 1100", ", ".join(permuted))]


def _number(bits: str) -> int:
    """Read a fingerprint as the slides write it, first bit first."""
    return int(bits[::-1], 2)
