"""The slow, obvious truth about a keyword index: BM25 of every document, and pieces of words."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import Stemmer

from support.oracles import text as text_oracle

K1, B = np.float32(0.6), np.float32(0.75)
MOST_COUNT = 255
HASH_BITS = 40
LEAD = 15
PIECES, MOST_PIECES = 1 << 14, 1024
SECOND_LOOK = 100
_PORTER = Stemmer.Stemmer("porter")


def stemmed(word: str) -> str:
    """Return the stem of an English word; what is not one stays as it is."""
    english = word.isascii() and word.isalpha() and 3 <= len(word) <= 64
    return str(_PORTER.stemWord(word)) if english else word


def _unspaced(character: str) -> bool:
    """Return whether a character is of a script without spaces."""
    letter = character.isalnum()
    return letter and unicodedata.name(character, "").startswith(text_oracle.NO_SPACES)


def runs(text: str) -> list[list[str]]:
    """Return runs of characters of scripts without spaces, each with its marks."""
    found: list[list[str]] = [[]]
    for character in text:
        if _unspaced(character):
            found[-1].append(character)
        elif unicodedata.category(character).startswith("M"):
            if found[-1]:
                found[-1][-1] += character
        else:
            found.append([])
    return [run for run in found if run]


def pieces(characters: Sequence[str], count: int) -> list[str]:
    """Return `count` characters from each place on."""
    return ["".join(characters[at : at + count]) for at in range(len(characters) - count + 1)]


def trigrams(word: str) -> list[str]:
    """Return three characters from each place of a word on, or a shorter word."""
    return pieces(word, min(3, len(word)))


def parts(word: str) -> list[str]:
    """Return the parts of a compound; none of another word."""
    if not word.isascii() or len(word) > 64:
        return []
    found = re.findall("[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+", word)
    return found if len(found) > 1 else []


def entries(text: str, kind: str) -> list[str]:
    """Return the words of a document, once for each time that they count."""
    stem = stemmed if kind == "porter" else str
    found: list[str] = []
    for place, written in enumerate(text_oracle.words(text, lowercase=False)):
        word = text_oracle.words(written)[0]
        here = trigrams(word) if kind == "trigram" and not _unspaced(word[0]) else [stem(word)]
        found += here * (2 if place < LEAD else 1)
        if kind != "trigram":
            found += [stem(part.lower()) for part in parts(written)]
    pairs: list[str] = []
    for run in runs(text):
        pairs += pieces(run, 2) + (pieces(run, 3) if kind == "trigram" else [])
    return found + pairs + pairs[:LEAD]


def query_words(text: str, kind: str) -> list[str]:
    """Return the different words that a query looks for, as documents have them."""
    written = [word for word in text_oracle.words(text) if not _unspaced(word[0])]
    if kind == "trigram":
        written = [piece for word in written for piece in trigrams(word)]
    stem = stemmed if kind == "porter" else str
    longest = 3 if kind == "trigram" else 2
    unspaced = [piece for run in runs(text) for piece in pieces(run, min(longest, len(run)))]
    return list(dict.fromkeys([*map(stem, written), *unspaced]))


def bag(text: str, kind: str) -> Counter[str]:
    """Return how often each word counts."""
    return Counter({w: min(n, MOST_COUNT) for w, n in Counter(entries(text, kind)).items()})


def hash_of(word: str) -> int:
    """Return the hash by which the index knows a word."""
    return text_oracle.xxh64(word) & (1 << HASH_BITS) - 1


def word_pieces(word: str) -> list[int]:
    """Return the numbers of four characters from each place of a word on, spaces around it."""
    found = []
    for one in pieces(f" {word} ", 4):
        a, b, c, d = map(ord, one)
        mixed = (a << 42 | b << 21 | c) * 0x9E3779B185EBCA87 + d
        found.append((mixed * 0xC2B2AE3D27D4EB4F & 2**64 - 1) >> 50)
    return found


def all_pieces(text: str, kind: str) -> set[int]:
    """Return the first different pieces of the words of a document."""
    written = [word for word in text_oracle.words(text) if not _unspaced(word[0])]
    found = dict.fromkeys(piece for word in written for piece in word_pieces(word))
    return set() if kind == "trigram" else set(list(found)[:MOST_PIECES])


def query_pieces(text: str, kind: str) -> list[list[int]]:
    """Return the pieces of each word that a query looks for."""
    known = dict[str, list[int]]()
    if kind != "trigram":
        for word in text_oracle.words(text):
            if not _unspaced(word[0]):
                stem = stemmed(word) if kind == "porter" else word
                known.setdefault(stem, sorted(set(word_pieces(word))))
    return [known.get(word, []) for word in query_words(text, kind)]


def packed(counts: Mapping[str, int], pieces: Iterable[int]) -> bytes:
    """Return the bytes of a bag."""
    if not counts:
        return b""
    gaps, following = b"", 0
    for piece in sorted(pieces):
        more, low = divmod(piece - following, 128)
        gaps += bytes([low | 128, more] if more else [low])
        following = piece + 1
    entries = sorted(hash_of(word) << 8 | n for word, n in counts.items())
    joined = b"".join(entry.to_bytes(6, "little") for entry in entries)
    return len(gaps).to_bytes(2, "little") + gaps + joined


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


def ranked(
    documents: Mapping[Any, tuple[Mapping[str, int], set[int]]],
    query: Sequence[str],
    pieces: Sequence[Sequence[int]],
) -> list[tuple[int, Any]]:
    """Return (score, key) of all documents that have a word of a query, best first.

    Documents of equal scores are in the order in which they are given.
    """
    bags = [bag for bag, _ in documents.values()]
    known = weights(bags, query)
    by_words = zip(scores(bags, query), documents, strict=True)
    found = sorted((one for one in by_words if one[0]), key=lambda one: -one[0])
    again = []
    for score, key in found[:SECOND_LOOK]:
        for weight, wanted in zip(known, pieces, strict=True):
            if wanted:
                shared = sum(piece in documents[key][1] for piece in wanted)
                score += weight * 3 * shared // (10 * len(wanted))
        again.append((score, key))
    order = {key: place for place, key in enumerate(documents)}
    again.sort(key=lambda one: (-one[0], order[one[1]]))
    return again + found[SECOND_LOOK:]


def nearest(
    documents: Mapping[str, str], text: str, kind: str, most: int = 64
) -> list[tuple[int, str]]:
    """Return (distance, id) of all documents that have a word of a text, best first.

    Documents of equal scores are in the order in which they are given.
    """
    query, pieces = query_words(text, kind)[:most], query_pieces(text, kind)[:most]
    known = {id: (bag(one, kind), all_pieces(one, kind)) for id, one in documents.items()}
    # Documents without any words count, too.
    best = sum(weights([counts for counts, _ in known.values()], query)) * 13 // 10
    return [(best - score, id) for score, id in ranked(known, query, pieces)]
