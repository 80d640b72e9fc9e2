"""Corpora to clean: abstracts with planted copies, and benchmark items that some of them contain.

A corpus of several times the abstracts has them with every thirtieth word changed, so that these
copies have no run of 50 words in common.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.dedup.files import once
from benchmarks.signing.documents import read_documents

__all__ = ["COLUMN", "WORD", "Corpus", "items", "planted", "words_of"]

COLUMN = "text"
ABSTRACTS = 120_000
CHANGED_EVERY, ITEM_CHANGED_EVERY = 30, 9
COPIES_PER_DOCUMENT, ITEMS_PER_DOCUMENT = 0.05, 0.005
SPAN_WORDS, ITEM_WORDS = (50, 200), (20, 60)
SEED = 70

WORD = re.compile(r"[^\W_]+")


def words_of(text: str) -> list[str]:
    """Return the words of an ASCII text."""
    return WORD.findall(text.lower())


class Corpus:
    """A file of JSON Lines, with its texts."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open(encoding="ascii") as lines:
            self.texts = [json.loads(line)[COLUMN] for line in lines]

    @property
    def text_bytes(self) -> int:
        """The number of bytes of all texts."""
        return sum(map(len, self.texts))


def planted(folder: Path | None, cache: Path, times: int, part: int) -> Corpus:
    """Return abstracts, some `times`; into one of twenty, a run of another one is copied."""
    kind = "abstracts" if folder is not None else "made-up"
    path = cache / f"clean-{kind}-{ABSTRACTS // part}-{times}.jsonl"
    return Corpus(once(path, lambda to: _write(to, _planted(folder, times, part))))


def items(corpus: Corpus, folder: Path | None, cache: Path, count: int) -> tuple[Corpus, Corpus]:
    """Return benchmark items, and a corpus into which some were copied.

    Items are runs of abstracts with every ninth word changed, so that only copied ones have a run
    of 13 words in common with the corpus.
    """
    path = cache / f"items-{count}-{corpus.path.name}"
    source = [text.split() for text in _abstracts(folder, 1)]
    random = np.random.default_rng(SEED + 1)

    def drawn() -> Iterator[str]:
        for _ in range(count):
            own = source[int(random.integers(len(source)))]
            length = int(random.integers(*ITEM_WORDS))
            begin = int(random.integers(max(1, len(own) - length)))
            yield " ".join(_changed(own[begin : begin + length], ITEM_CHANGED_EVERY, random))

    found = Corpus(once(path, lambda to: _write(to, drawn())))

    def contaminated() -> Iterator[str]:
        random = np.random.default_rng(SEED + 2)
        for text in corpus.texts:
            if random.random() >= ITEMS_PER_DOCUMENT:
                yield text
                continue
            own, at = text.split(), int(random.integers(len(text.split()) + 1))
            item = found.texts[int(random.integers(len(found.texts)))]
            yield " ".join([*own[:at], item, *own[at:]])

    name = f"with-{path.name}"
    return found, Corpus(once(cache / name, lambda to: _write(to, contaminated())))


def _abstracts(folder: Path | None, part: int) -> list[str]:
    texts = read_documents(folder, ABSTRACTS // part).texts
    return [text.encode("ascii", "ignore").decode() for text in texts]


def _planted(folder: Path | None, times: int, part: int) -> Iterator[str]:
    source = [text.split() for text in _abstracts(folder, part)]
    random = np.random.default_rng(SEED)
    for number in range(times):
        for own in source:
            words = own if number == 0 else _changed(own, CHANGED_EVERY, random)
            if random.random() < COPIES_PER_DOCUMENT:
                other = source[int(random.integers(len(source)))]
                length = int(random.integers(*SPAN_WORDS))
                begin = int(random.integers(max(1, len(other) - length)))
                at = int(random.integers(len(words) + 1))
                words = [*words[:at], *other[begin : begin + length], *words[at:]]
            yield " ".join(words)


def _changed(words: Sequence[str], every: int, random: np.random.Generator) -> list[str]:
    """Return words, one of `every` of them replaced."""
    changed = list(words)
    for at in range(int(random.integers(every)), len(words), every):
        changed[at] = f"w{int(random.integers(10**6))}"
    return changed


def _write(path: Path, texts: Iterator[str]) -> None:
    with path.open("w", encoding="ascii") as file:
        for number, text in enumerate(texts):
            file.write(json.dumps({"id": str(number), COLUMN: text}) + "\n")
