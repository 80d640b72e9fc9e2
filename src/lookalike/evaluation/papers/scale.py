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
    smallest: int
    """The smallest collection of 64-bit signatures whose growth is measured."""
    batch: int
    """The largest batch that is matched with a file."""
    rounds: int
    """How often times are taken; the median counts."""


SCALES = {
    scale.name: scale
    for scale in (
        Scale("tiny", 1500, 20, 600, 500, 40, 64, 200, 100, 6000, 600, 1500, 600, 1),
        Scale(
            "quick",
            200_000,
            200,
            60_000,
            200_000,
            400,
            256,
            20_000,
            20_000,
            4_000_000,
            200_000,
            250_000,
            400_000,
            3,
        ),
        Scale(
            "paper",
            1_000_000,
            1000,
            240_000,
            1_000_000,
            2000,
            512,
            100_000,
            100_000,
            60_000_000,
            10_000_000,
            1_000_000,
            10_000_000,
            1,
        ),
    )
}
"""`tiny` is for tests, `quick` takes minutes, `paper` has the papers' sizes where they fit."""
