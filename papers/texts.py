"""Texts to sign: real ones where there are some, else made-up ones with topics and copies."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from lookalike.errors import FileError
from papers.pseudo_documents import Corpus, enlarge

__all__ = ["ABSTRACTS", "DESCRIPTIONS", "Texts", "read_texts"]

ABSTRACTS = "arxiv_abstracts_120k.jsonl.gz"
DESCRIPTIONS = "debian_descriptions.jsonl.gz"

_SEED = 21
_VOCABULARY = 30_000
_TOPICS = 300
_TOPIC_WORDS = 400
_TOPIC_SHARE = 0.4
_LENGTHS = (40, 210)
_COPY_SHARE = 0.1
_MOST_CHANGED = 0.3


@dataclass(frozen=True, slots=True)
class Texts:
    """Documents, what each is about, and where they are from."""

    texts: list[str]
    categories: list[str]
    origin: str

    def first(self, count: int) -> Texts:
        """Return evenly spaced ones: abstracts have grown longer over the years."""
        chosen = np.linspace(0, len(self.texts) - 1, min(count, len(self.texts))).astype(int)
        return Texts(
            [self.texts[at] for at in chosen], [self.categories[at] for at in chosen], self.origin
        )

    def enlarged(self, count: int) -> Texts:
        """Return `count` texts: these, and where they are too few pseudo-documents made of them."""
        if count <= len(self.texts):
            return self.first(count)
        corpus = Corpus.of(self.texts, self.categories)
        more = [text for block, _ in enlarge(corpus, count - len(self.texts)) for text in block]
        origin = f"{self.origin}, and {len(more):,} pseudo-documents made from them"
        return Texts([*self.texts, *more], self.categories, origin)


def read_texts(folder: Path | None, file: str, most: int) -> Texts:
    """Return the texts of a file in `folder`, or as many made-up ones without a folder.

    A folder without the file is an error: made-up text must not be taken for real one.
    """
    if folder is None:
        return made_up(most)
    rows = [row for row in _rows(folder / file) if row[0].split()]
    return Texts([row[0] for row in rows], [row[1] for row in rows], file).first(most)


def _rows(path: Path) -> Iterator[tuple[str, str]]:
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                row: dict[str, Any] = json.loads(line)
                if "abstract" in row:
                    yield row["abstract"], row["categories"].partition(",")[0]
                else:
                    yield row["text"], row["source"]
    except (OSError, ValueError, KeyError) as error:
        raise FileError(f"{path} cannot be read: {error!r}") from error


def made_up(count: int) -> Texts:
    """Return seeded texts: words after Zipf's law, a topic each, and a tenth changed copies.

    Most of the copies are changed in a word or two, some in up to a third of them.
    """
    generator = np.random.default_rng(_SEED)
    words = np.array([f"w{number:x}" for number in range(_VOCABULARY)], dtype=object)
    shares = np.cumsum(1 / (np.arange(_VOCABULARY) + 2.7))
    topics = generator.integers(_VOCABULARY, size=(_TOPICS, _TOPIC_WORDS))
    topic_shares = np.cumsum(1 / (np.arange(_TOPIC_WORDS) + 2.7))
    drawn: list[np.ndarray[Any, np.dtype[np.int64]]] = []
    about: list[int] = []
    for number in range(count):
        if number and generator.random() < _COPY_SHARE:
            base = int(generator.integers(number))
            tokens, topic = drawn[base].copy(), about[base]
            changed = generator.random(len(tokens)) < _MOST_CHANGED * generator.random() ** 3
        else:
            topic = int(generator.integers(_TOPICS))
            tokens = np.zeros(generator.integers(*_LENGTHS, endpoint=True), np.int64)
            changed = np.ones(len(tokens), bool)
        size = int(changed.sum())
        general = np.searchsorted(shares, shares[-1] * generator.random(size))
        special = topics[
            topic, np.searchsorted(topic_shares, topic_shares[-1] * generator.random(size))
        ]
        tokens[changed] = np.where(generator.random(size) < _TOPIC_SHARE, special, general)
        drawn.append(tokens)
        about.append(topic)
    texts = [" ".join(words[tokens].tolist()) for tokens in islice(drawn, count)]
    return Texts(texts, [str(topic) for topic in about], "made-up text (no data folder was given)")
