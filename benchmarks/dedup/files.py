"""Corpora to de-duplicate, as files in a cache: abstracts, package descriptions, many short texts.

Each is made once. What is made up is seeded, and the output says that it was.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute
import pyarrow.json
import pyarrow.parquet
from numpy.typing import NDArray

from benchmarks.signing.documents import FILE as ARXIV
from benchmarks.signing.documents import FLATTENING, read_documents
from lookalike.storage.files import whole_file

__all__ = ["abstracts", "distinct_texts", "once", "short_documents"]

DEBIAN = "debian_descriptions.jsonl.gz"
SEED = 60
SHORT_PART = 100_000
VOCABULARY = 200_000
SHORT_WORDS = (20, 40)
EXACT_SHARE, NEAR_SHARE = 0.05, 0.10
COLUMN = "abstract"


def abstracts(folder: Path | None, cache: Path, count: int) -> dict[str, Path]:
    """Return the first abstracts, with all their columns, as JSON Lines and as Parquet."""
    kind = "arxiv" if folder is not None else "made-up"
    lines = once(cache / f"{kind}-{count}.jsonl", lambda path: _copy_lines(folder, path, count))
    table = once(
        cache / f"{kind}-{count}.parquet",
        lambda path: pyarrow.parquet.write_table(pyarrow.json.read_json(lines), path),
    )
    return {"jsonl": lines, "parquet": table}


def distinct_texts(folder: Path, name: str) -> list[str]:
    """Return the different texts of "arxiv" or "debian", in order."""
    file, column = {"arxiv": (ARXIV, COLUMN), "debian": (DEBIAN, "text")}[name]
    with gzip.open(folder / file, "rt", encoding="utf-8") as lines:
        return list(dict.fromkeys(json.loads(line)[column] for line in lines))


def short_documents(cache: Path, count: int) -> Path:
    """Return a Parquet file of short made-up texts: 20 to 40 words, as frequent as Zipf's law has.

    Of a hundred, 5 are exact copies and 10 are copies with another first or last word (a Jaccard
    similarity of 0.88 or more): half of them of one of the same 100,000 documents, half of one of
    the first 100,000, so that groups grow with the corpus. A shorter file is the beginning of a
    longer one.
    """
    return once(cache / f"short-{count}.parquet", lambda path: _write_short(path, count))


def once(path: Path, make: Callable[[Path], Any]) -> Path:
    """Make a file unless it is there; a half-made one never is."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as temporary:
            make(temporary)
    return path


def _copy_lines(folder: Path | None, path: Path, count: int) -> None:
    with path.open("wb") as file:
        if folder is None:
            for number, text in enumerate(read_documents(None, count).texts):
                file.write(json.dumps({"id": str(number), COLUMN: text}).encode() + b"\n")
            return
        with gzip.open(folder / ARXIV, "rb") as lines:
            file.writelines(islice(lines, count))


def _write_short(path: Path, count: int) -> None:
    words, shares = _vocabulary()
    first: _Drawn | None = None
    with pyarrow.parquet.ParquetWriter(path, _SCHEMA, compression="zstd") as writer:
        for number, begin in enumerate(range(0, count, SHORT_PART)):
            generator = np.random.default_rng([SEED, number])
            drawn = _draw(generator, shares, first)
            first = first or drawn
            texts = drawn.texts(words).slice(0, count - begin)
            ids = pyarrow.array(np.arange(begin, begin + len(texts)))
            writer.write_table(pyarrow.table({"id": ids, "text": texts}, schema=_SCHEMA))


_SCHEMA = pyarrow.schema([("id", pyarrow.int64()), ("text", pyarrow.string())])


class _Drawn:
    """Documents as numbers of words, in one row each, of which the first `lengths` count."""

    def __init__(
        self, words: NDArray[np.int32], lengths: NDArray[np.int64], originals: NDArray[np.int64]
    ) -> None:
        self.words = words
        self.lengths = lengths
        self.originals = originals
        """Which are no copies."""

    def texts(self, vocabulary: Any) -> Any:
        """Return them as an Arrow column."""
        inside = np.arange(self.words.shape[1]) < self.lengths[:, None]
        offsets = np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.int32)
        words = vocabulary.take(pyarrow.array(self.words[inside]))
        lists = pyarrow.ListArray.from_arrays(pyarrow.array(offsets), words)
        return pyarrow.compute.binary_join(lists, " ")


def _draw(
    generator: np.random.Generator, shares: NDArray[np.float64], first: _Drawn | None
) -> _Drawn:
    lengths = generator.integers(*SHORT_WORDS, size=SHORT_PART, endpoint=True)
    shape = (SHORT_PART, SHORT_WORDS[1])
    words = np.searchsorted(shares, generator.random(shape)).astype(np.int32)
    kinds = generator.random(SHORT_PART)
    is_copy = kinds < EXACT_SHARE + NEAR_SHARE
    drawn = _Drawn(words, lengths, np.flatnonzero(~is_copy))
    for at in np.flatnonzero(is_copy).tolist():
        source = first if first is not None and generator.random() < 0.5 else drawn
        other = generator.choice(source.originals)
        words[at], lengths[at] = source.words[other], source.lengths[other]
        if kinds[at] >= EXACT_SHARE:
            place = 0 if generator.random() < 0.5 else lengths[at] - 1
            words[at, place] = generator.integers(VOCABULARY)
    return drawn


def _vocabulary() -> tuple[Any, NDArray[np.float64]]:
    """Return words, the most frequent first and shortest, and the sums of their shares."""
    generator = np.random.default_rng(SEED)
    lengths = 1 + generator.poisson(0.7 + 0.45 * np.log2(np.arange(VOCABULARY) + 2))
    letters = iter(
        generator.integers(ord("a"), ord("z"), size=lengths.sum(), endpoint=True).tolist()
    )
    words = ["".join(map(chr, islice(letters, length))) for length in lengths.tolist()]
    shares = np.cumsum(1 / (np.arange(VOCABULARY) + FLATTENING))
    return pyarrow.array(words), shares / shares[-1]
