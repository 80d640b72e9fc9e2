"""Documents to sign: real abstracts where there are some, else made-up ones like them."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from numpy.typing import NDArray

__all__ = ["FILE", "Documents", "read_documents"]

FILE = "arxiv_abstracts_120k.jsonl.gz"

SEED = 30
VOCABULARY = 50_000
WORDS = (40, 213)
"""Words of a made-up document, at least and at most: 830 bytes on average, as abstracts have."""
FLATTENING = 2.7
"""Zipf's law as Mandelbrot corrected it: the word of rank r has a share like 1 / (r + 2.7)."""
PUNCTUATED_SHARE = 0.1


@dataclass(frozen=True, eq=False)
class Documents:
    """The same texts in the two forms that are timed: a list for peers, a column for us."""

    texts: list[str]
    origin: str

    @cached_property
    def column(self) -> Any:
        """Return the texts as an Arrow string column."""
        return pyarrow.chunked_array([pyarrow.array(self.texts, pyarrow.string())])

    @cached_property
    def size(self) -> int:
        """Return how many bytes of UTF-8 the texts have."""
        return sum(len(text.encode()) for text in self.texts)

    def sample(self, count: int) -> list[str]:
        """Return about `count` texts, evenly spaced, or all if there are fewer.

        The first ones would not do: abstracts have grown longer over the years.
        """
        return self.texts[:: max(1, len(self.texts) // count)]

    def changed_copies(self, count: int) -> tuple[list[str], list[str]]:
        """Return texts and copies of them that end as another text does, after four fifths."""
        originals = self.sample(count)
        words = [text.split() for text in originals]
        copies = [
            " ".join([*own[: 4 * len(own) // 5], *other[4 * len(other) // 5 :]])
            for own, other in zip(words, [*words[1:], words[0]], strict=True)
        ]
        return originals, copies


def read_documents(folder: Path | None, count: int) -> Documents:
    """Return the first `count` abstracts of the file in `folder`; without a folder, make some up.

    Raises `FileNotFoundError` if a folder was named and the file is not there: figures of made-up
    text must not be taken for those of real text.
    """
    if folder is None:
        return Documents(
            _made_up(count), "made-up text, seeded, words as frequent as Zipf's law has"
        )
    with gzip.open(folder / FILE, "rt", encoding="utf-8") as lines:
        texts = [json.loads(line)["abstract"] for line in islice(lines, count)]
    return Documents(texts, f"{FILE}, abstracts")


def _made_up(count: int) -> list[str]:
    generator = np.random.default_rng(SEED)
    words = _vocabulary(generator)
    shares = np.cumsum(1 / (np.arange(VOCABULARY) + FLATTENING))
    lengths = generator.integers(*WORDS, size=count, endpoint=True)
    ends = np.cumsum(lengths)
    drawn = np.searchsorted(shares, shares[-1] * generator.random(ends[-1]))
    # The second half of the words are those of the first half, with a comma.
    drawn += VOCABULARY * (generator.random(len(drawn)) < PUNCTUATED_SHARE)
    return [
        " ".join(words[drawn[end - length : end]].tolist())
        for end, length in zip(ends, lengths, strict=True)
    ]


def _vocabulary(generator: np.random.Generator) -> NDArray[np.object_]:
    """Return words, the most frequent first and shortest, and then again with a comma."""
    ranks = np.arange(VOCABULARY)
    mean_lengths = 0.7 + 0.45 * np.log2(ranks + 2)
    lengths = 1 + generator.poisson(mean_lengths)
    letters = generator.integers(ord("a"), ord("z"), size=lengths.sum(), endpoint=True)
    text = letters.astype(np.uint8).tobytes().decode("ascii")
    ends = np.cumsum(lengths)
    words = [text[end - length : end] for end, length in zip(ends, lengths, strict=True)]
    return np.array([*words, *(f"{word}," for word in words)], dtype=object)
