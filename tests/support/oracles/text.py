"""Features, weights and signatures from first principles: plain Python, one step at a time.

Hashes come from the xxhash package, characters from Python's own tables.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import NormalDist

import xxhash

M64 = 2**64 - 1
SHINGLE_BASE = 0x9FB21C651E98DF25
GOLDEN = 0x9E3779B97F4A7C15
KINDS = 0x6C62272E07BB0142
Lengths = int | tuple[int, ...]
NO_SPACES = (
    "CJK UNIFIED",
    "CJK COMPATIBILITY IDEOGRAPH",
    "IDEOGRAPHIC",
    "HIRAGANA",
    "KATAKANA",
    "HALFWIDTH KATAKANA",
    "THAI",
    "LAO",
    "KHMER",
    "MYANMAR",
)


def fmix64(value: int) -> int:
    value = (value ^ value >> 33) * 0xFF51AFD7ED558CCD & M64
    value = (value ^ value >> 33) * 0xC4CEB9FE1A85EC53 & M64
    return value ^ value >> 33


def xxh64(text: str) -> int:
    return xxhash.xxh64_intdigest(text.encode())


def lower(text: str) -> str:
    return "".join(character.lower()[0] for character in text)


def words(
    text: str,
    lowercase: bool = True,
    stopwords: Iterable[str] = (),
    min_length: int = 1,
    stem: Callable[[str], str] | None = None,
) -> list[str]:
    """Cut a text into letters and digits with their marks; some scripts by character."""
    found: list[tuple[str, bool]] = []  # the word, and whether it stands alone
    open_word = False
    for character in text:
        if character.isalnum():
            alone = unicodedata.name(character, "").startswith(NO_SPACES)
            if open_word and not alone and not found[-1][1]:
                found[-1] = (found[-1][0] + character, False)
            else:
                found.append((character, alone))
            open_word = True
        elif unicodedata.category(character).startswith("M"):
            if open_word:
                found[-1] = (found[-1][0] + character, found[-1][1])
        else:
            open_word = False
    result = []
    for word, alone in found:
        letters = sum(character.isalnum() for character in word)
        if not alone and letters < min_length:
            continue
        if lowercase:
            word = "".join(c if unicodedata.category(c).startswith("M") else lower(c) for c in word)
        if word in set(stopwords):
            continue
        result.append(stem(word) if stem else word)
    return result


def shingles(hashes: Sequence[int], ngram: int) -> list[int]:
    """Hash all runs of `ngram` word hashes, or the only run there is if there are fewer."""
    if ngram == 1 or not hashes:
        return list(hashes)
    runs = [hashes[i : i + ngram] for i in range(max(1, len(hashes) - ngram + 1))]
    result = []
    for run in runs:
        total = 0
        for word in run:
            total = (total * SHINGLE_BASE + word) & M64
        result.append(fmix64(total))
    return result


def several(size: int, ngram: Lengths, features: Callable[[int], list[int]]) -> list[int]:
    """Return the features of each length that fits into so many words or characters; those of the
    shortest one where none does. In the order in which they end.
    """
    lengths = [ngram] if isinstance(ngram, int) else list(ngram)
    fitting = [length for length in lengths if length <= size] or lengths[:1]
    ending = [
        (length + at, length, feature)
        for length in fitting
        for at, feature in enumerate(features(length))
    ]
    return [feature for _, _, feature in sorted(ending)]


def word_features(text: str, ngram: Lengths = 1, **options: object) -> list[int]:
    hashes = [xxh64(word) for word in words(text, **options)]  # type: ignore[arg-type]
    return several(len(hashes), ngram, lambda length: shingles(hashes, length))


def char_features(text: str, ngram: Lengths, lowercase: bool = False) -> list[int]:
    if lowercase:
        text = lower(text)
    if not text:
        return []
    return several(
        len(text),
        ngram,
        lambda n: [xxh64(text[i : i + n]) for i in range(max(1, len(text) - n + 1))],
    )


_BLOCKS = (
    *(
        (0, 0xFF),
        (0x60C, 0x60C),
        (0x61B, 0x61B),
        (0x61F, 0x61F),
        (0x66A, 0x66D),
        (0x6D4, 0x6D4),
        (0x964, 0x965),
        (0x2000, 0x200B),
    ),
    *((0x2010, 0x205F), (0x2E00, 0x2E5D), (0x3000, 0x3030), (0x30FB, 0x30FB), (0xFF01, 0xFF65)),
)
PUNCTUATION = {
    chr(code)
    for first, last in _BLOCKS
    for code in range(first, last + 1)
    if unicodedata.category(chr(code))[0] in "PSZC"
} - set("+#")

ROMAN = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii")


def is_code(word: str) -> bool:
    """Return whether a word is a Roman numeral, or one or two consonants."""
    consonants = all(letter in "bcdfghjklmnpqrstvwxz" for letter in word)
    return word in ROMAN or (consonants and len(word) <= 2 and word not in ("s", "t"))


def numbers(text: str) -> list[str]:
    """Return the numbers and codes of a text, sorted."""
    digits = "".join(one if unicodedata.category(one) == "Nd" else " " for one in text)
    return sorted([*digits.split(), *filter(is_code, words(text))])


def hash_of_number(number: str) -> int:
    if is_code(number):
        return fmix64(xxh64(number))
    return fmix64(
        sum(
            fmix64(ord(digit)) * pow(SHINGLE_BASE, place % 64, 2**64)
            for place, digit in enumerate(number)
        )
        & M64
    )


def without_punctuation(text: str) -> str:
    """Return words with a space between them; + and # are no punctuation."""
    return " ".join("".join(" " if one in PUNCTUATION else one for one in text).split())


def short_features(text: str, ngram: Lengths = 3) -> list[int]:
    """Return lower-case character n-grams that remember the numbers and codes of their text."""
    remembered = sum(map(hash_of_number, numbers(text))) & M64
    plain = without_punctuation(text)
    padded = f" {plain} " if plain else ""
    return [feature ^ remembered for feature in char_features(padded, ngram, lowercase=True)]


def of_kind(features: Iterable[int], kind: int) -> list[int]:
    """Return the features of kind number `kind` as they are where kinds are combined."""
    if kind == 0:
        return list(features)
    return [fmix64(feature ^ fmix64(KINDS + kind & M64)) for feature in features]


def weigh(
    features: Sequence[int], kind: str, collection: Sequence[Sequence[int]] = ()
) -> dict[int, float]:
    """Return the weight of each distinct feature, given all documents of the collection."""
    counts = Counter(features)
    documents = Counter(feature for document in collection for feature in set(document))
    occurrences = Counter(feature for document in collection for feature in document)
    weights: dict[int, float] = {}
    for feature, count in counts.items():
        if kind == "uniform":
            weight = 1.0
        elif kind == "count":
            weight = count
        elif kind == "log-count":
            weight = math.log(1 + count)
        elif kind == "tfidf":
            known = max(1, documents[feature])
            weight = count * (1 + math.log((1 + len(collection)) / (1 + known)))
        elif kind == "idf":
            weight = rarity(max(1, documents[feature]), len(collection))
        else:
            share = count / len(features)
            common = max(1, occurrences[feature]) / occurrences.total()
            weight = max(0.0, (count - 0.5) * math.log(share / common))
        if weight > 0:
            weights[feature] = weight
    return weights


def rarity(documents: int, all_documents: int) -> float:
    """Return the weight of a feature of some of all documents: log(N / n) in multiples of 2^-16."""
    return round(math.log(all_documents / documents) * 2**16) / 2**16 if all_documents else 0.0


def weigh_given(
    given: Mapping[int, float], kind: str, collection: Sequence[Mapping[int, float]] = ()
) -> dict[int, float]:
    """Return the weights of ready-made features; those below 0 are taken off."""
    documents = Counter(feature for document in collection for feature in document)
    occurrences = Counter[int]()
    for document in collection:
        for feature, weight in document.items():
            occurrences[feature] += max(1, round(abs(weight)))
    total = sum(map(abs, given.values()))
    weights: dict[int, float] = {}
    for feature, weight in given.items():
        count = abs(weight)
        if kind == "uniform":
            value = 1.0
        elif kind == "count":
            value = count
        elif kind == "log-count":
            value = math.log(1 + count)
        elif kind == "tfidf":
            known = max(1, documents[feature])
            value = count * (1 + math.log((1 + len(collection)) / (1 + known)))
        elif kind == "idf":
            value = rarity(max(1, documents[feature]), len(collection))
        else:
            common = max(1, occurrences[feature]) / max(1, occurrences.total())
            ratio = count / total / common if total else 0
            value = (count - 0.5) * math.log(ratio) if count > 0.5 and ratio > 1 else 0
        if value:
            weights[feature] = -value if weight < 0 else value
    return weights


def normal_vector(feature: int, bits: int, seed: int = 0) -> list[int]:
    """Return the random normal vector of a feature, in units of 1/4096."""
    vector = []
    for position in range(bits):
        word = fmix64(fmix64(seed + 0x6E6F726D616C7321 & M64) + (position // 4 + 1) * GOLDEN & M64)
        random = fmix64(feature ^ word) >> 16 * (position % 4) & 0xFFFF
        share = 0.5 + ((random & 0x7FFF) + 0.5) / 2**16
        value = round(4096 * NormalDist().inv_cdf(share))
        vector.append(-value if random >> 15 else value)
    return vector


def normal_simhash(weights: Mapping[int, float], bits: int, seed: int = 0) -> list[float]:
    """Return the sums of eq. 4 of Sood and Loguinov, over the Euclidean length of the weights."""
    sums = [0.0] * bits
    for feature, weight in weights.items():
        for position, value in enumerate(normal_vector(feature, bits, seed)):
            sums[position] += weight * value / 4096
    length = math.hypot(*weights.values())
    return [value / length for value in sums] if length else sums


def simhash(weights: Mapping[int, float], bits: int, seed: int = 0) -> list[float]:
    """Return the counters of Algorithm 1, over the Euclidean length of the weights."""
    counters = [0.0] * bits
    for feature, weight in weights.items():
        for position in range(bits):
            word, bit = divmod(position, 64)
            hashed = feature
            if seed or word:
                hashed = fmix64(feature ^ fmix64(seed * GOLDEN + word + 1 & M64))
            counters[position] += weight if hashed >> bit & 1 else -weight
    length = math.sqrt(sum(weight * weight for weight in weights.values()))
    return [counter / length for counter in counters] if length else counters


def ternary(feature: int, bits: int, density: int, seed: int = 0) -> list[int]:
    """Return the random ternary vector of a feature."""
    vector = [0] * bits
    state = feature ^ fmix64(seed + GOLDEN & M64)
    for group in range(0, bits, 2 * density):
        state = state + GOLDEN & M64
        random = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & M64
        random = (random ^ random >> 27) * 0x94D049BB133111EB & M64
        random ^= random >> 31
        sign = 1 if random & 1 else -1
        for place, value in (
            (group + ((random >> 1 & 0x7FFFFFFF) * density >> 31), sign),
            (group + density + ((random >> 32) * density >> 32), -sign),
        ):
            if place < bits:
                vector[place] = value
    return vector


def topsig(weights: Mapping[int, float], bits: int, density: int, seed: int = 0) -> list[float]:
    """Return the sums whose signs are the signature."""
    sums = [0.0] * bits
    for feature, weight in weights.items():
        for position, value in enumerate(ternary(feature, bits, density, seed)):
            sums[position] += value * weight
    return sums


def minhash(elements: Iterable[int], hashes: Sequence[Callable[[int], int]]) -> list[int | None]:
    """Return the least hash of the elements by each function: the slides' algorithm, row by row."""
    signature: list[int | None] = [None] * len(hashes)
    for element in elements:
        for index, function in enumerate(hashes):
            value = function(element)
            least = signature[index]
            if least is None or value < least:
                signature[index] = value
    return signature


def permutations(seed: int, count: int) -> list[Callable[[int], int]]:
    """Return the permutations x -> a * x + c modulo 2**32 of a seed."""

    def permutation(factor: int, term: int) -> Callable[[int], int]:
        return lambda x: (factor * x + term) % 2**32

    functions = []
    for step in range(1, count + 1):
        state = seed + step * GOLDEN & M64
        state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & M64
        state = (state ^ state >> 27) * 0x94D049BB133111EB & M64
        state ^= state >> 31
        functions.append(permutation(state % 2**32 | 1, state >> 32))
    return functions


def low_bits(value: int, position: int, b: int) -> int:
    """Return the b bits that b-bit MinHash keeps of a value at a position."""
    mixed = (value + 0x9E3779B9 * (position + 1)) % 2**32
    mixed = (mixed ^ mixed >> 16) * 0x85EBCA6B % 2**32
    mixed = (mixed ^ mixed >> 13) * 0xC2B2AE35 % 2**32
    return (mixed ^ mixed >> 16) & (1 << b) - 1


def jaccard(a: Iterable[int], b: Iterable[int]) -> float:
    left, right = set(a), set(b)
    return len(left & right) / len(left | right) if left | right else 0.0


def cosine(a: Mapping[int, float], b: Mapping[int, float]) -> float:
    if not a or not b:
        return 0.0
    product = sum(weight * b.get(feature, 0.0) for feature, weight in a.items())
    return product / (math.hypot(*a.values()) * math.hypot(*b.values()))


def unpacked(signature: Sequence[int], bits: int) -> list[int]:
    """Return the bits of a signature, bit j of byte i as bit 8 * i + j."""
    return [signature[bit // 8] >> bit % 8 & 1 for bit in range(bits)]


def permuted_table(fingerprints: Sequence[str], places: Mapping[int, int]) -> list[str]:
    """Move bit i of each fingerprint to `places[i]` (from 1), and sort: one of Manku's tables."""
    table = []
    for fingerprint in fingerprints:
        moved = [""] * len(fingerprint)
        for source, target in places.items():
            moved[target - 1] = fingerprint[source - 1]
        table.append("".join(moved))
    return sorted(table)


def block_widths(bits: int, blocks: int) -> list[int]:
    """Cut bits into blocks as equal as can be, the larger ones first."""
    small, larger = divmod(bits, blocks)
    return [small + 1] * larger + [small] * (blocks - larger)
