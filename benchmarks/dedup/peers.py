"""The other ways to de-duplicate a file of texts, each as a program whose whole run is timed.

`python -m benchmarks.dedup.peers NAME INPUT COLUMN OUTPUT [PAIRS]` reads a file, finds
near-duplicates by MinHash of 128 values of word 5-grams at a threshold of 0.8, keeps the first of
each group that pairs connect, and writes the lines or rows that stay. None of these compares the
documents themselves; so they do less than `lookalike dedup`. With PAIRS, the pairs are saved too.

All may use two cores. gaoya has threads. For the others, Python's processes make shingles and
signatures, which is nearly all of their time; what comes back is arrays, which is cheap.
"""

from __future__ import annotations

import os
import sys
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from benchmarks.signing.peers import PERMUTATIONS, SHINGLE, word_shingles

__all__ = ["PEERS"]

THRESHOLD = 0.8
CORES = 2
PART = 2000
"""Documents that a process is given at a time."""

Pair = tuple[int, int]


class Peer(ABC):
    """One way to find pairs among texts."""

    name: ClassVar[str]

    @abstractmethod
    def pairs(self, texts: list[str]) -> Iterable[Pair]:
        """Return positions of near-duplicates, as often as convenient."""


class Gaoya(Peer):
    """Its index, filled and asked by two threads, in bands as it chooses them: 21 of 6 values.

    Asking makes the signatures anew, because it takes no others; it returns those whose estimated
    similarity reaches the threshold.
    """

    name = "gaoya"

    def pairs(self, texts: list[str]) -> Iterable[Pair]:
        """Put all in, then ask with all."""
        index = import_module("gaoya").minhash.MinHashStringIndex(
            hash_size=32,
            jaccard_threshold=THRESHOLD,
            num_bands=None,
            band_size=None,
            num_hashes=PERMUTATIONS,
            analyzer="word",
            lowercase=True,
            ngram_range=(SHINGLE, SHINGLE),
            id_container="smallvec",
        )
        index.par_bulk_insert_docs(list(range(len(texts))), texts)
        for position, found in enumerate(index.par_bulk_query(texts)):
            if len(found) > 1:
                yield from ((position, other) for other in found if other != position)


class RensaDeduplicator(Peer):
    """Its `RMinHashDeduplicator`, which is what its documentation begins with; one process.

    It compares with what it has kept, estimated by signatures, and drops or keeps at once.
    """

    name = "rensa, its deduplicator"

    def pairs(self, texts: list[str]) -> Iterable[Pair]:
        """Add one after the other; ask for the match of those that were not added."""
        make = import_module("rensa").RMinHashDeduplicator
        keeper = make(threshold=THRESHOLD, num_perm=PERMUTATIONS, use_lsh=True)
        numbered = ((str(at), word_shingles(text)) for at, text in enumerate(texts))
        added = keeper.add_pairs(numbered)
        dropped = [at for at, kept in enumerate(added) if not kept]
        matches = keeper.get_duplicate_sets([word_shingles(texts[at]) for at in dropped])
        for at, found in zip(dropped, matches, strict=True):
            yield from ((at, int(other)) for other in found)


class RensaTwoProcesses(Peer):
    """Shingles hashed in two processes, then one matrix of signatures and its LSH, two threads.

    Its LSH tells of whole matrices only which rows share a band; those rows are asked for one by
    one, and a pair must have the estimated similarity. 16 bands find the most of those it can be
    made of, as quickly.
    """

    name = "rensa, two processes"
    bands = 16

    def pairs(self, texts: list[str]) -> Iterable[Pair]:
        """Insert all, then ask with those that share a band with another."""
        rensa = import_module("rensa")
        sizes, hashes = _in_processes(_rensa_hashes, texts)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.uint64)
        matrix = rensa.RMinHash.digest_matrix_from_flat_token_hashes(
            hashes, offsets, PERMUTATIONS, 42
        )
        index = rensa.RMinHashLSH(THRESHOLD, PERMUTATIONS, self.bands)
        index.insert_matrix(matrix)
        asked = np.flatnonzero(index.query_duplicate_flags_matrix(matrix)).tolist()
        shingles = (word_shingles(texts[at]) for at in asked)
        signed = rensa.RMinHash.from_token_sets(shingles, PERMUTATIONS, 42)
        signatures = dict(zip(asked, signed, strict=True))
        for at, signature in signatures.items():
            for other in index.query(signature):
                if at < other and signature.jaccard(signatures[other]) >= THRESHOLD:
                    yield at, other


class DataSketch(Peer):
    """MinHash by SHA-1, its default, and MinHashLSH: insert each, then query with each."""

    name = "datasketch"
    sign: ClassVar[str] = "_sha1_signatures"

    def signatures(self, texts: list[str]) -> NDArray[np.uint64]:
        """Return the values of all, a row each."""
        rows: NDArray[np.uint64] = globals()[self.sign](texts)[1].reshape(-1, PERMUTATIONS)
        return rows

    def pairs(self, texts: list[str]) -> Iterable[Pair]:
        """Put all in, then ask with all."""
        datasketch = import_module("datasketch")
        index = datasketch.MinHashLSH(threshold=THRESHOLD, num_perm=PERMUTATIONS)
        scheme = datasketch.MinHash().scheme
        made = [
            datasketch.LeanMinHash(seed=1, hashvalues=row, scheme=scheme)
            for row in self.signatures(texts)
        ]
        for position, minhash in enumerate(made):
            index.insert(position, minhash, check_duplication=False)
        for position, minhash in enumerate(made):
            yield from ((position, other) for other in index.query(minhash) if other != position)


class DataSketchTwoProcesses(DataSketch):
    """The same, signatures made in two processes."""

    name = "datasketch, two processes"

    def signatures(self, texts: list[str]) -> NDArray[np.uint64]:
        """Return the values of all, a row each."""
        return _in_processes(globals()[self.sign], texts)[1].reshape(-1, PERMUTATIONS)


class DataSketchCrc(DataSketchTwoProcesses):
    """The same with a cheap hash, in two processes."""

    name = "datasketch, crc32, two processes"
    sign = "_crc_signatures"


PEERS: dict[str, type[Peer]] = {
    peer.name: peer
    for peer in (
        Gaoya,
        RensaDeduplicator,
        RensaTwoProcesses,
        DataSketch,
        DataSketchTwoProcesses,
        DataSketchCrc,
    )
}


def _in_processes(work: Any, texts: list[str]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Call a function with parts of the texts, in two processes; return its arrays joined."""
    parts = [texts[begin : begin + PART] for begin in range(0, len(texts), PART)]
    with ProcessPoolExecutor(CORES) as pool:
        done = list(pool.map(work, parts))
    first, second = (np.concatenate(arrays) for arrays in zip(*done, strict=True))
    return first, second


def _rensa_hashes(texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    hashed = import_module("rensa").RMinHash.hash_token_sets(map(word_shingles, texts))
    sizes = np.array([len(each) for each in hashed], np.int64)
    return sizes, np.concatenate([np.array(each, np.uint64) for each in hashed])


def _sha1_signatures(texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    return _signatures(texts, {})


def _crc_signatures(texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    return _signatures(texts, {"hashfunc": zlib.crc32})


def _signatures(
    texts: Sequence[str], more: dict[str, Any]
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    bulk = import_module("datasketch").MinHash.bulk
    shingles = ([each.encode() for each in word_shingles(text)] for text in texts)
    made = bulk(shingles, num_perm=PERMUTATIONS, **more)
    return np.empty(0, np.int64), np.concatenate([each.hashvalues for each in made])


def kept(count: int, pairs: Iterable[Pair]) -> tuple[NDArray[np.bool_], list[Pair]]:
    """Return who is the first of its group, and the pairs. Union-find; the first is the root."""
    parent = list(range(count))

    def root(at: int) -> int:
        while parent[at] != at:
            parent[at] = parent[parent[at]]
            at = parent[at]
        return at

    seen = []
    for pair in pairs:
        seen.append(pair)
        one, two = root(pair[0]), root(pair[1])
        if one != two:
            parent[max(one, two)] = min(one, two)
    keep = np.fromiter((parent[at] == at for at in range(count)), bool, count)
    return keep, seen


class LinesFile:
    """JSON Lines: the text by pyarrow's parser, which leaves out other keys; lines as they are."""

    def __init__(self, path: Path, column: str) -> None:
        arrow, json = import_module("pyarrow"), import_module("pyarrow.json")
        options = json.ParseOptions(
            explicit_schema=arrow.schema([(column, arrow.string())]),
            unexpected_field_behavior="ignore",
        )
        table = json.read_json(path, parse_options=options)
        self._path = path
        self.texts: list[str] = table[column].to_pylist()

    def write(self, path: Path, keep: NDArray[np.bool_]) -> None:
        """Copy the lines that stay, as runs of bytes."""
        content = np.frombuffer(self._path.read_bytes(), np.uint8)
        ends = np.flatnonzero(content == ord("\n")) + 1
        bounds = np.concatenate([[0], ends])
        changes = np.flatnonzero(np.diff(keep, prepend=False, append=False))
        with path.open("wb") as file:
            for begin, end in _runs(changes):
                file.write(content[bounds[begin] : bounds[end]].data)


class ParquetFile:
    """Parquet by pyarrow."""

    def __init__(self, path: Path, column: str) -> None:
        self._table = import_module("pyarrow.parquet").read_table(path)
        self.texts: list[str] = self._table[column].to_pylist()

    def write(self, path: Path, keep: NDArray[np.bool_]) -> None:
        """Write the rows that stay."""
        import_module("pyarrow.parquet").write_table(self._table.filter(keep), path)


def _runs(changes: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield where runs begin and end."""
    for number, (begin, end) in enumerate(pairwise(changes.tolist())):
        if number % 2 == 0:
            yield begin, end


def main(arguments: Sequence[str]) -> None:
    """Do the whole job."""
    name, source, column, target, *more = arguments
    os.environ["RAYON_NUM_THREADS"] = str(CORES)
    file = (ParquetFile if source.endswith(".parquet") else LinesFile)(Path(source), column)
    keep, pairs = kept(len(file.texts), PEERS[name]().pairs(file.texts))
    file.write(Path(target), keep)
    if more:
        np.save(more[0], np.array(pairs, np.int64).reshape(-1, 2))


if __name__ == "__main__":
    main(sys.argv[1:])
