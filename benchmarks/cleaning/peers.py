"""datatrove's filters in two processes; what they load is not timed.

    python -m benchmarks.cleaning.peers ngrams CORPUS.jsonl ITEMS.jsonl COUNT ROWS.npy
    python -m benchmarks.cleaning.peers sentences CORPUS.jsonl FOLDER COUNT

Of the corpus, the first COUNT documents are read. The seconds are printed as JSON.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.cleaning.texts import COLUMN

__all__: list[str] = []

NGRAM = 13
PROCESSES = 2

_held: dict[str, Any] = {}


def documents(path: Path, count: int) -> list[Any]:
    from datatrove.data import Document

    with path.open(encoding="ascii") as lines:
        texts = [json.loads(line)[COLUMN] for line in islice(lines, count)]
    return [Document(text=text, id=str(row)) for row, text in enumerate(texts)]


def share(process: int, all_documents: list[Any]) -> list[Any]:
    size = -(-len(all_documents) // PROCESSES)
    return all_documents[process * size : (process + 1) * size]


def normal_form() -> Any:
    """Return the rules for words: as ours, so case and punctuation do not count."""
    from datatrove.utils.text import TextNormConfig

    return TextNormConfig(norm_numbers=False, norm_unicode_diacritics=False)


# The filter of n-grams. Its indexer needs lighteval for the benchmarks that this knows, so the
# index, which is a list of hashes, is written with the same functions.


def write_index(items: Path, folder: Path) -> None:
    lines = items.read_text(encoding="ascii").splitlines()
    with get_context("fork").Pool(PROCESSES) as pool:
        parts = pool.map(hashes_of, (lines[at::PROCESSES] for at in range(PROCESSES)), chunksize=1)
    np.unique(np.concatenate(parts)).tofile(folder / "items.index.hashes")


def hashes_of(lines: list[str]) -> NDArray[np.uint64]:
    from datatrove.utils.hashing import HashConfig, create_hash_func
    from datatrove.utils.text import ngrams, simplify_text
    from datatrove.utils.word_tokenizers import load_word_tokenizer

    tokenizer, hashed = load_word_tokenizer("eng"), create_hash_func(HashConfig())
    found: set[int] = set()
    for line in lines:
        words = tokenizer.word_tokenize(simplify_text(json.loads(line)[COLUMN], normal_form()))
        found.update(hashed(" ".join(some)) for some in ngrams(words, NGRAM))
    return np.fromiter(found, np.uint64, len(found))


def load_filter(folder: Path) -> None:
    from datatrove.pipeline.decont import NGramsDecontConfig, NGramsDecontFilter

    config = NGramsDecontConfig(n_grams=NGRAM, norm_config=normal_form())
    _held["filter"] = NGramsDecontFilter(str(folder), config)
    _held["filter"].load_index_hashes()
    _held["filter"].tokenizer.word_tokenize("once, to load it")


def filtered(process: int) -> list[int]:
    step = _held["filter"]
    own = share(process, _held["documents"])
    return [int(one.id) for one in own if step.filter(one) is not True]


def run_ngrams(corpus: Path, items: Path, count: int, rows: Path) -> float:
    write_index(items, rows.parent)
    load_filter(rows.parent)
    _held["documents"] = documents(corpus, count)
    # Forked processes have the filter and the documents already.
    with get_context("fork").Pool(PROCESSES) as pool:
        pool.map(abs, range(PROCESSES))
        start = perf_counter()
        found = pool.map(filtered, range(PROCESSES), chunksize=1)
        passed = perf_counter() - start
    np.save(rows, np.array(sorted(row for some in found for row in some), np.int64))
    return passed


# The filter of sentences, with its defaults: any three sentences that occur again are removed.


def sentence_step(number: int, folder: Path, process: int) -> int:
    from datatrove.pipeline.dedup import (
        SentDedupConfig,
        SentenceDedupFilter,
        SentenceDedupSignature,
        SentenceFindDedups,
    )

    config = SentDedupConfig(norm_config=normal_form(), min_doc_words=0, min_num_sentences=0)
    own = share(process, _held["documents"])
    if number == 0:
        SentenceDedupSignature(f"{folder}/0", config=config).run(own, process, PROCESSES)
    elif number == 1:
        SentenceFindDedups(f"{folder}/0", f"{folder}/1", config=config).run(None, 0, 1)
    else:
        step = SentenceDedupFilter(f"{folder}/1", config=config)
        return sum(1 for _ in step.run(own, process, PROCESSES))
    return 0


def run_sentences(corpus: Path, folder: Path, count: int) -> float:
    _held["documents"] = documents(corpus, count)
    with get_context("fork").Pool(PROCESSES) as pool:
        pool.map(partial(sentence_step, 2, folder / "none"), [])
        start = perf_counter()
        for number in range(3):
            processes = range(1 if number == 1 else PROCESSES)
            pool.map(partial(sentence_step, number, folder), processes, chunksize=1)
        return perf_counter() - start


def main(arguments: list[str]) -> None:
    """Run the program."""
    import logging

    from loguru import logger

    logger.remove()
    logging.disable()
    corpus, other, count = Path(arguments[1]), Path(arguments[2]), int(arguments[3])
    if arguments[0] == "ngrams":
        passed = run_ngrams(corpus, other, count, Path(arguments[4]))
    else:
        passed = run_sentences(corpus, other, count)
    print(json.dumps({"seconds": passed}))


if __name__ == "__main__":
    main(sys.argv[1:])
