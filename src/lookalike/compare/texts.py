"""Two texts side by side: what every method says of them, exactly and by signatures."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, SupportsIndex

from lookalike.compare.diff import difference
from lookalike.compare.methods import METHODS, VALUE_BYTES, Method
from lookalike.compare.shingles import SharedShingles, shared_shingles
from lookalike.features import Words, cosine, jaccard
from lookalike.signatures import BBitMinHash, hamming

__all__ = ["Comparison", "DiffPart", "MethodVerdict", "WordDiff", "compare_texts", "word_diff"]


@dataclass(frozen=True)
class MethodVerdict:
    """What one method of `dedup` says of two texts."""

    method: str
    measure: str
    """"jaccard" of sets, or "cosine" of counts."""
    ngram: int
    """Of words that make a feature."""
    exact: float
    estimate: float | None
    """By the signatures; None where a text has no words."""
    distance: int
    """Values (minhash) or bits that differ."""
    size: int
    """Values or bits of a signature."""


@dataclass(frozen=True)
class DiffPart:
    """Words that both texts have, or that are deleted from the first, or inserted in the second."""

    kind: Literal["equal", "delete", "insert"]
    text: str


@dataclass(frozen=True)
class WordDiff:
    """How the second text is made of the first, in words; white space does not count."""

    parts: list[DiffPart]
    complete: bool
    """Whether it goes to the end of both texts; very different ones are left at some point."""


@dataclass(frozen=True)
class Comparison:
    """Everything there is to say about two texts."""

    equal: bool
    bytes: tuple[int, int]
    words: tuple[int, int]
    methods: list[MethodVerdict]
    shingles: SharedShingles
    diff: WordDiff | None

    def to_dict(self) -> dict[str, Any]:
        """Return it in plain values."""
        return asdict(self)


def compare_texts(
    a: str,
    b: str,
    *,
    ngram: SupportsIndex | None = None,
    seed: SupportsIndex = 0,
    examples: int = 3,
    diff: bool = True,
    threads: SupportsIndex | None = None,
) -> Comparison:
    """Compare two texts as `dedup` does with its defaults, by each of its methods.

    `ngram` is that of the Jaccard similarity and of shingles, 5 words unless told. Similarities and
    counts are of the whole texts; examples and the diff look at a bounded part of them.
    """
    words = None if ngram is None else Words(ngram).ngram
    methods = [
        Method.of(name, ngram=words if name == "minhash" else None, seed=seed) for name in METHODS
    ]
    counts = Words().counts([a, b], threads=threads).tolist()
    return Comparison(
        equal=a == b,
        bytes=(len(a.encode()), len(b.encode())),
        words=(counts[0], counts[1]),
        methods=[_verdict(a, b, one, min(counts) > 0, threads) for one in methods],
        shingles=shared_shingles(a, b, methods[0].ngram, examples=examples),
        diff=word_diff(a, b) if diff else None,
    )


def _verdict(
    a: str, b: str, method: Method, has_words: bool, threads: SupportsIndex | None
) -> MethodVerdict:
    compare = jaccard if method.measure == "jaccard" else cosine
    exact = compare(a, b, method.features(), threads=threads)
    signer = method.signer()
    signatures = signer.sign([a, b], threads=threads)
    if isinstance(signer, BBitMinHash):
        values = signatures.view(f"<u{VALUE_BYTES}")
        distance, size = int((values[0] != values[1]).sum()), signer.permutations
    else:
        distance, size = int(hamming(signatures[0], signatures[1])[0]), signer.bits
    estimate = max(0.0, float(method.estimate(distance))) if has_words else None
    return MethodVerdict(method.name, method.measure, method.ngram, exact, estimate, distance, size)


def word_diff(a: str, b: str) -> WordDiff:
    """Return what both texts have and what differs, one after the other; all of it has words.

    The first text is what is equal and deleted, the second what is equal and inserted. White space
    of what is equal is that of the second. In bounded time: see `difference`.
    """
    found = difference(a, b)
    parts: list[DiffPart] = []
    at = 0
    for change in found.changes:
        equal, deleted = b[at : change.right.start], a[change.left]
        before = a[max(0, change.left.start - 1) : change.left.start]
        if deleted and not equal[-1:].isspace() and before.isspace():
            equal += " "
        spaced = deleted and a[change.left.stop : change.left.stop + 1].isspace()
        parts += [
            DiffPart("equal", equal),
            DiffPart("delete", f"{deleted} " if spaced else deleted),
            DiffPart("insert", b[change.right]),
        ]
        at = change.right.stop
    parts.append(DiffPart("equal", b[at : found.right_end]))
    return WordDiff([part for part in parts if part.text.strip()], found.complete)
