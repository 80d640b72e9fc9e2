"""How large the experiments are."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SCALES", "Scale"]


@dataclass(frozen=True, slots=True)
class Scale:
    """Numbers of documents, signatures and queries."""

    name: str
    documents: int
    """Texts that are signed with TopSig, real ones first."""
    text_queries: int
    """Texts that are held out and looked for."""
    pair_documents: int
    """Texts that are all compared with each other, by cosine and by distance."""
    weighed_texts: int
    """Texts whose words are weighed one by one, in Python."""
    cosine_pairs: int
    """Pairs whose cosine is timed."""
    set_pairs: int
    """Pairs of sets for b-bit MinHash."""
    permutations: int
    chunk_pairs: int
    """Pairs at each distance for equal chunks."""
    flip_pairs: int
    """Near-duplicate pairs for the order of flips."""
    fingerprints: int
    """64-bit signatures that are searched."""
    queries: int
    online: int
    """The first so many queries are asked where times of single queries are compared."""
    built: int
    """Signatures of 1024 bits that are built into a file; more where there is room."""
    smallest: int
    """The smallest collection of 64-bit signatures whose growth is measured."""
    rounds: int
    """How often times are taken; the median counts."""


TINY = Scale(
    name="tiny",
    documents=1500,
    text_queries=20,
    pair_documents=600,
    weighed_texts=600,
    cosine_pairs=500,
    set_pairs=40,
    permutations=64,
    chunk_pairs=200,
    flip_pairs=100,
    fingerprints=6000,
    queries=600,
    online=600,
    built=3000,
    smallest=1500,
    rounds=1,
)
QUICK = Scale(
    name="quick",
    documents=120_000,
    text_queries=200,
    pair_documents=120_000,
    weighed_texts=20_000,
    cosine_pairs=200_000,
    set_pairs=400,
    permutations=256,
    chunk_pairs=20_000,
    flip_pairs=20_000,
    fingerprints=4_000_000,
    queries=200_000,
    online=200_000,
    built=1_000_000,
    smallest=250_000,
    rounds=3,
)
PAPER = Scale(
    name="paper",
    documents=1_000_000,
    text_queries=1000,
    pair_documents=240_000,
    weighed_texts=60_000,
    cosine_pairs=1_000_000,
    set_pairs=2000,
    permutations=512,
    chunk_pairs=100_000,
    flip_pairs=100_000,
    fingerprints=60_000_000,
    queries=10_000_000,
    online=2_500_000,
    built=20_000_000,
    smallest=1_000_000,
    rounds=1,
)

SCALES = {scale.name: scale for scale in (TINY, QUICK, PAPER)}
"""`tiny` is for tests, `quick` takes minutes, `paper` has the papers' sizes where they fit."""
