"""How the cases of signing are put together: what is timed, and beside whom."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lookalike as la
from benchmarks.harness import Contender, Effort, Gate
from benchmarks.signing.documents import Documents
from benchmarks.signing.peers import PythonSets, SigningPeer
from benchmarks.signing.throughput import RateGate, ThroughputCase

__all__ = [
    "OURS",
    "TWO_THREADS",
    "SignerPlan",
    "fit_case",
    "pairs_case",
    "projection_case",
    "stemming_case",
    "weights_case",
]

PAIRS = 200
VECTOR_SEED = 31
DIMENSIONS = 100
PROJECTED_BITS = 256

EFFORT = Effort(rounds=4, seconds=2.0)
GATE_EFFORT = Effort(rounds=9, seconds=8.0)

OURS = "lookalike"
TWO_THREADS = f"{OURS}, two threads"
FROM_LIST = f"{OURS}, list of str"
READING = "only reading features"

Similarities = Mapping[str, Callable[[], float]]


@dataclass(frozen=True)
class SignerPlan:
    """A case before its signer exists, so that those left out need not learn anything."""

    title: str
    signer: Callable[[Documents], Any]
    peers: Sequence[type[SigningPeer]] = ()
    as_documented: Sequence[type[SigningPeer]] = ()
    """Rivals with features of their own, the way their users run them; no similarities compared."""
    lesser: Sequence[type[SigningPeer]] = ()
    """Peers that do something else or less; they are shown, but are no rivals."""
    rate_gates: Sequence[RateGate] = ()
    gates: Sequence[Gate] = ()

    def case(self, name: str, documents: Documents) -> ThroughputCase:
        """Make the signer, learn what it has to learn, and return the case, ready to run."""
        signer = self.signer(documents)
        contenders = [
            Contender(OURS, partial(signer.sign, documents.column, threads=1)),
            _reading(signer.features, documents),
        ]
        if self.gates:
            twice = partial(signer.sign, documents.column, threads=2)
            listed = partial(signer.sign, documents.texts, threads=1)
            contenders += [_yardstick(TWO_THREADS, twice), _yardstick(FROM_LIST, listed)]
        peers = [kind() for kind in self.peers]
        contenders += [_contender(peer, documents) for peer in peers]
        contenders += [_contender(kind(), documents) for kind in self.as_documented]
        contenders += [_contender(kind(), documents, is_rival=False) for kind in self.lesser]
        similarities = {OURS: partial(_mean_similarity, partial(_values, signer), documents)}
        for peer in peers:
            similarities[peer.name] = partial(_mean_similarity, peer.values, documents)
        return _case(
            name,
            self.title,
            documents,
            contenders,
            similarities if peers else {},
            rate_gates=self.rate_gates,
            gates=self.gates,
        )


def weights_case(name: str, documents: Documents) -> ThroughputCase:
    """Return the case of signatures with the numbers behind their bits."""
    signer = la.SimHash()
    contenders = [
        Contender(OURS, partial(signer.sign_with_weights, documents.column, threads=1)),
        _reading(signer.features, documents),
    ]
    return _case(name, "SimHash of 64 bits, words, sign_with_weights()", documents, contenders)


def stemming_case(name: str, documents: Documents) -> ThroughputCase:
    """Return the case of stemming. Ours is a new signer: one that was used knows its stems."""
    known = la.SimHash(features=la.Words(stem="english"))

    def sign_with_new_signer() -> NDArray[np.uint8]:
        signer = la.SimHash(features=la.Words(stem="english"))
        return signer.sign(documents.column, threads=1)

    contenders = [
        Contender(OURS, sign_with_new_signer),
        _reading(la.Words(), documents),
        _yardstick(f"{OURS}, stems known", partial(known.sign, documents.column, threads=1)),
    ]
    return _case(name, "SimHash of 64 bits, words stemmed as English", documents, contenders)


def combined_case(name: str, documents: Documents) -> ThroughputCase:
    """Return the case of two kinds of features at once, beside each of them alone."""
    words, characters = la.Words(), la.Chars(5)
    both = la.Combined(words, characters, weights=(1, 0.5))

    def signing(features: la.Words | la.Chars | la.Combined) -> Callable[[], NDArray[np.uint8]]:
        return partial(la.SimHash(features=features).sign, documents.column, threads=1)

    contenders = [
        Contender(OURS, signing(both)),
        _reading(both, documents),
        _yardstick(f"{OURS}, words alone", signing(words)),
        _yardstick(f"{OURS}, characters alone", signing(characters)),
    ]
    title = "SimHash of 64 bits, words and runs of 5 characters"
    return _case(name, title, documents, contenders)


def fit_case(name: str, documents: Documents) -> ThroughputCase:
    """Return the case of learning, which tfidf and log-likelihood weights need."""
    signer = la.TopSig()
    contenders = [
        Contender(OURS, partial(signer.fit, documents.column, threads=1)),
        _reading(signer.features, documents),
    ]
    return _case(name, "fit(), learning how common words are", documents, contenders)


def pairs_case(name: str, documents: Documents) -> ThroughputCase:
    """Return the case of exact similarities, as many pairs as documents."""
    left, right = _each_and_next(len(documents.texts))
    peer = PythonSets()
    few = documents.sample(PAIRS)
    contenders = [
        Contender(
            OURS,
            partial(
                la.features.similarity_pairs, "jaccard", documents.column, left, right, threads=1
            ),
        ),
        _reading(la.Words(), documents),
        _contender(peer, documents),
    ]
    similarities = {
        OURS: lambda: float(
            la.features.similarity_pairs("jaccard", few, *_each_and_next(len(few))).mean()
        ),
        peer.name: lambda: float(peer.values(few).mean()),
    }
    title = "jaccard_pairs(), words, each document and the next"
    return _case(name, title, documents, contenders, similarities)


def projection_case(name: str, documents: Documents) -> ThroughputCase:
    """Return the case of dense vectors, as many as documents.

    NumPy multiplies in float32; we sum in double in a fixed order, for equal bits everywhere.
    """
    generator = np.random.default_rng(VECTOR_SEED)
    count = len(documents.texts)
    vectors = generator.standard_normal((count, DIMENSIONS), np.float32)
    matrix = generator.standard_normal((DIMENSIONS, PROJECTED_BITS), np.float32)
    signer = la.Projection(PROJECTED_BITS, DIMENSIONS)
    near = vectors[:PAIRS] + np.float32(0.5) * vectors[-PAIRS:]

    def multiply(rows: NDArray[np.float32]) -> NDArray[np.uint8]:
        return np.packbits(rows @ matrix >= 0, axis=1, bitorder="little")

    def similarity(sign: Callable[[NDArray[np.float32]], NDArray[np.uint8]]) -> float:
        differing = np.bitwise_count(sign(vectors[:PAIRS]) ^ sign(near))
        return 1 - float(differing.mean()) / 8  # counted by byte

    return ThroughputCase(
        name,
        f"Projection to {PROJECTED_BITS} bits, {count:,} x {DIMENSIONS} float32, 1 thread",
        [
            Contender(OURS, partial(signer.sign, vectors, threads=1)),
            Contender("NumPy", partial(multiply, vectors)),
        ],
        EFFORT,
        count,
        vectors.nbytes,
        similarities={
            OURS: partial(similarity, signer.sign),
            "NumPy": partial(similarity, multiply),
        },
    )


def _case(
    name: str,
    title: str,
    documents: Documents,
    contenders: Sequence[Contender],
    similarities: Similarities | None = None,
    *,
    rate_gates: Sequence[RateGate] = (),
    gates: Sequence[Gate] = (),
) -> ThroughputCase:
    count = len(documents.texts)
    return ThroughputCase(
        name,
        f"{title}, {count:,} documents of {documents.size / 1e6:.1f} MB, 1 thread",
        contenders,
        GATE_EFFORT if gates else EFFORT,
        count,
        documents.size,
        READING,
        rate_gates,
        gates,
        similarities or {},
    )


def _contender(peer: SigningPeer, documents: Documents, is_rival: bool = True) -> Contender:
    texts = documents.sample(peer.most)
    scale = len(documents.texts) / len(texts)
    return Contender(peer.name, partial(peer.sign, texts), scale, is_rival)


def _reading(features: Any, documents: Documents) -> Contender:
    """Return the plain pass over the text, which nobody who tokenises it so can be faster than."""
    return _yardstick(READING, partial(features.counts, documents.column, threads=1))


def _yardstick(name: str, run: Callable[[], object]) -> Contender:
    return Contender(name, run, is_rival=False)


def _values(signer: Any, texts: Sequence[str]) -> NDArray[Any]:
    """Return our signatures as rows of values: MinHash has them, else single bits."""
    signatures: NDArray[Any] = signer.sign(texts)
    return np.unpackbits(signatures, axis=1) if signatures.dtype == np.uint8 else signatures


def _mean_similarity(
    values: Callable[[Sequence[str]], NDArray[Any]], documents: Documents
) -> float:
    """Return the share of values that texts and changed copies of them have in common."""
    originals, copies = documents.changed_copies(PAIRS)
    return float((values(originals) == values(copies)).mean())


def _each_and_next(count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    left = np.arange(count)
    return left, (left + 1) % count
