"""Golden vectors: these signatures never change. If they have to, that is a new signer version.

`python tests/signatures/test_golden.py` writes the file anew; do that only together with a higher
SIGNER_VERSION and a line in the changelog.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xxhash

import lookalike as la

FILE = Path(__file__).parent.parent / "data" / "golden_signatures.json"

DOCUMENTS = {
    "empty": "",
    "one word": "word",
    "english": "The quick brown fox jumps over the lazy dog, and then it does so again.",
    "accents": "Ça va? Les élèves naïfs étaient là-bas: crème brûlée, Ångström, Łódź, İstanbul.",
    "combining marks": "cafe\u0301 n\u0303o u\u0308ber vie\u0323\u0302t",
    "greek": "Ο ΘΕΟΣ και η ΣΟΦΙΑ· ταχύς καφέ αλεπού",
    "cyrillic": "Съешь же ещё этих мягких французских булок, да выпей чаю",
    "arabic": "مرحبا بالعالم، هذا نص قصير ١٢٣",
    "hebrew": "שָׁלוֹם עולם, זה טקסט קצר",
    "hindi": "नमस्ते दुनिया, यह एक छोटा पाठ है",
    "chinese": "敏捷的棕色狐狸跳过懒狗。",
    "japanese": "素早い茶色の狐がノロマな犬を飛び越える。",
    "korean": "다람쥐 헌 쳇바퀴에 타고파",
    "thai": "สวัสดีชาวโลก นี่คือข้อความสั้น",
    "khmer": "សួស្តីពិភពលោក",
    "emoji": "hello 😀 world 👩‍👩‍👧 flags 🇺🇳",
    "nul characters": "before\0after\0\0end",
    "punctuation": "... --- !!! ???",
    "a megabyte on one line": "lorem ipsum dolor sit amet " * 38_837,
    "no spaces": "x" * 100_000,
}

VECTORS = np.sin(np.arange(40, dtype=np.float64).reshape(4, 10)).astype(np.float32)


def signers() -> dict[str, Any]:
    texts = list(DOCUMENTS.values())
    return {
        "SimHash 64": la.SimHash(64),
        "SimHash 200, pairs of words, seed 3": la.SimHash(200, la.Words(ngram=2), seed=3),
        "SimHash 64, tfidf": la.SimHash(64, weights="tfidf").fit(texts),
        "SimHash 64, log-count, characters": la.SimHash(64, la.Chars(4), "log-count"),
        "SimHash 64, english": la.SimHash(64, la.Words(stopwords="english", stem="english")),
        "SimHash 136, normal, seed 3": la.SimHash(136, seed=3, vectors="gaussian"),
        "SimHash 64, normal, tfidf": la.SimHash(weights="tfidf", vectors="gaussian").fit(texts),
        "TopSig 1024": la.TopSig(),
        "TopSig 256, fitted": la.TopSig(256).fit(texts),
        "MinHash 128": la.MinHash(),
        "WeightedMinHash 32": la.WeightedMinHash(32),
        "WeightedMinHash 32, tfidf, seed 3": la.WeightedMinHash(32, weights="tfidf", seed=3).fit(
            texts
        ),
        "BBitMinHash 64 x 3": la.BBitMinHash(64, 3),
        "MinHash 16, words and pairs of them": la.MinHash(16, la.Words((1, 2))),
        "SimHash 128, words and lighter characters": la.SimHash(
            128, la.Combined(la.Words(), la.Chars((3, 5)), weights=(1, 0.5))
        ),
        "TopSig 256, words and characters, fitted": la.TopSig(
            256, features=la.Combined(la.Words(), la.Chars(4), weights=(2, 0.3))
        ).fit(texts),
    }


def digests(threads: int, batch: int) -> dict[str, dict[str, str]]:
    """Return, per signer and document, XXH64 of the signature's bytes, and of its weights."""
    texts = list(DOCUMENTS.values())
    result = {}
    for name, signer in signers().items():
        rows: list[Any] = []
        for start in range(0, len(texts), batch):
            rows.extend(signer.sign(texts[start : start + batch], threads=threads))
        little_endian = (
            np.ascontiguousarray(row).astype(row.dtype.newbyteorder("<")) for row in rows
        )
        hashes = (xxhash.xxh64_hexdigest(row.tobytes()) for row in little_endian)
        result[name] = dict(zip(DOCUMENTS, hashes, strict=True))
        if hasattr(signer, "sign_with_weights"):
            weights = signer.sign_with_weights(texts, threads=threads)[1].astype("<f4")
            behind = (xxhash.xxh64_hexdigest(row.tobytes()) for row in weights)
            result[f"weights of {name}"] = dict(zip(DOCUMENTS, behind, strict=True))
    numbers = la.Projection(128, 10, seed=1).sign_with_weights(VECTORS, threads=threads)[1]
    result["weights of Projection 128"] = {
        str(i): xxhash.xxh64_hexdigest(row.astype("<f4").tobytes()) for i, row in enumerate(numbers)
    }
    projected = la.Projection(128, 10, seed=1).sign(VECTORS, threads=threads)
    result["Projection 128"] = {str(i): row.tobytes().hex() for i, row in enumerate(projected)}
    return result


@pytest.mark.parametrize(("threads", "batch"), [(1, 100), (3, 1), (2, 7)])
def test_signatures_are_what_they_always_were(kernel: str, threads: int, batch: int) -> None:
    assert digests(threads, batch) == json.loads(FILE.read_text())


if __name__ == "__main__":
    FILE.write_text(json.dumps(digests(1, 100), indent=1) + "\n")
