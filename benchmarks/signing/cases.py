"""The cost of turning text into signatures, with one thread: which cases there are, and gates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import lookalike as la
from benchmarks.harness import Gate
from benchmarks.signing.documents import Documents
from benchmarks.signing.kinds import (
    OURS,
    TWO_THREADS,
    SignerPlan,
    combined_case,
    fit_case,
    pairs_case,
    projection_case,
    stemming_case,
    weights_case,
)
from benchmarks.signing.peers import (
    DataSketch,
    DataSketchCrc,
    Gaoya,
    Rensa,
    RensaRho,
    RensaSplit,
    SigningPeer,
    SimHashText,
    SimHashWords,
)
from benchmarks.signing.throughput import RateGate, ThroughputCase, ThroughputResult

__all__ = ["CASES", "COUNT", "run_signing"]

COUNT = 100_000

SIMHASH = "SimHash 64 of words"
MINHASH = "MinHash 128 of word 5-grams"
TOPSIG = "TopSig 1024 of words, fitted"


def documents_gate(number: str, what: str, target: float) -> RateGate:
    return RateGate(f"{number}. {what}, 1 thread: documents", OURS, target)


def rival_gate(number: str, what: str, rival: type[SigningPeer], target: float) -> Gate:
    return Gate(f"{number}. {what}, 1 thread: {rival.name} / ours", rival.name, OURS, target)


def threads_gate(number: str, what: str) -> Gate:
    return Gate(f"{number}. {what}: one thread / two threads", OURS, TWO_THREADS, 1.7)


PLANS = {
    "sign-simhash-64": SignerPlan(
        "SimHash of 64 bits, words",
        lambda documents: la.SimHash(),
        peers=[SimHashWords],
        as_documented=[SimHashText],
        rate_gates=[documents_gate("6a", SIMHASH, 100_000)],
        gates=[
            rival_gate("6b", SIMHASH, SimHashText, 100),
            threads_gate("6c", SIMHASH),
        ],
    ),
    "sign-minhash-128": SignerPlan(
        "MinHash of 128 values, word 5-grams",
        lambda documents: la.MinHash(128),
        peers=[Rensa, Gaoya, DataSketch, DataSketchCrc],
        lesser=[RensaSplit, RensaRho],
        rate_gates=[documents_gate("7a", MINHASH, 60_000)],
        gates=[
            rival_gate("7b", MINHASH, Rensa, 5),
            rival_gate("7c", MINHASH, Gaoya, 3),
            rival_gate("7d", MINHASH, DataSketchCrc, 25),
            threads_gate("7e", MINHASH),
        ],
    ),
    "sign-topsig-1024": SignerPlan(
        "TopSig of 1024 bits, words, fitted",
        lambda documents: la.TopSig(1024).fit(documents.column),
        rate_gates=[documents_gate("8a", TOPSIG, 40_000)],
        gates=[threads_gate("8b", TOPSIG)],
    ),
    "sign-simhash-64-tfidf": SignerPlan(
        "SimHash of 64 bits, words, tfidf",
        lambda documents: la.SimHash(weights="tfidf").fit(documents.column),
    ),
    "sign-simhash-64-chars": SignerPlan(
        "SimHash of 64 bits, runs of 5 characters",
        lambda documents: la.SimHash(features=la.Chars(5)),
        lesser=[SimHashText],
    ),
    "sign-simhash-1024": SignerPlan(
        "SimHash of 1024 bits, words", lambda documents: la.SimHash(1024)
    ),
    "sign-bbit-512x1": SignerPlan(
        "b-bit MinHash of 512 x 1 bits, word 5-grams", lambda documents: la.BBitMinHash(512, 1)
    ),
}

CASES: dict[str, Callable[[str, Documents], ThroughputCase]] = {
    **{name: plan.case for name, plan in PLANS.items()},
    "sign-simhash-64-weights": weights_case,
    "sign-simhash-64-stemmed": stemming_case,
    "sign-fit": fit_case,
    "sign-jaccard-pairs": pairs_case,
    "sign-projection-256": projection_case,
    "sign-simhash-64-combined": combined_case,
}


def run_signing(names: Sequence[str], documents: Documents) -> Iterator[ThroughputResult]:
    """Run cases one after the other."""
    for name in names:
        yield CASES[name](name, documents).run()
