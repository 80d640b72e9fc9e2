"""The slow, obvious truth about a keyword index: BM25 of every document, word by word."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import Stemmer

from support.oracles import text as text_oracle

K1, B = np.float32(0.6), np.float32(0.75)
MOST_COUNT = 255
HASH_BITS = 40
_PORTER = Stemmer.Stemmer("porter")


def stemmed(word: str) -> str:
    """Return the stem of an English word; what is not one stays as it is."""
    english = word.isascii() and word.isalpha() and 3 <= len(word) <= 64
    return str(_PORTER.stemWord(word)) if english else word


def words(text: str, kind: str) -> list[str]:
    """Return the words of a text in their order."""
    return text_oracle.words(text, stem=stemmed if kind == "porter" else None)


def bag(text: str, kind: str) -> Counter[str]:
    """Return how often each word occurs, as the index counts it."""
    return Counter({w: min(n, MOST_COUNT) for w, n in Counter(words(text, kind)).items()})


def hash_of(word: str) -> int:
    """Return the hash by which the index knows a word."""
    return text_oracle.xxh64(word) & (1 << HASH_BITS) - 1


def packed(counts: Mapping[str, int]) -> bytes:
    """Return the bytes of a bag."""
    entries = sorted(hash_of(word) << 8 | n for word, n in counts.items())
    return b"".join(entry.to_bytes(6, "little") for entry in entries)


def weights(documents: Sequence[Mapping[str, int]], query: Sequence[str]) -> list[int]:
    """Return the largest score that each word of a query can give."""
    found = []
    for word in query:
        having = sum(word in document for document in documents)
        ratio = (len(documents) - having + 0.5) / (having + 0.5)
        found.append(max(1, math.floor(math.log(1 + ratio) * 65536 + 0.5)))
    return found


def scores(documents: Sequence[Mapping[str, int]], query: Sequence[str]) -> list[int]:
    """Return the score of each document; 0 for one without a word of the query."""
    known = weights(documents, query)
    total = sum(sum(document.values()) for document in documents)
    mean = np.float32(total / len(documents)) if documents else np.float32(0)
    per_length = K1 * B / mean if total else np.float32(0)
    result = []
    for document in documents:
        norm = K1 * (np.float32(1) - B) + per_length * np.float32(sum(document.values()))
        score = 0
        for word, weight in zip(query, known, strict=True):
            if word in document:
                count = np.float32(document[word])
                score += 1 + int(np.float32(weight - 1) * count / (count + norm))
        result.append(score)
    return result


def nearest(
    documents: Mapping[str, str], text: str, kind: str, most: int = 64
) -> list[tuple[int, str]]:
    """Return (distance, id) of all documents that have a word of a text, best first."""
    query = list(dict.fromkeys(words(text, kind)))[:most]
    bags = {id: bag(one, kind) for id, one in documents.items()}
    # Documents without any words count, too.
    best = sum(weights([*bags.values()], query))
    found = zip(bags, scores([*bags.values()], query), strict=True)
    return sorted((best - score, id) for id, score in found if score)
