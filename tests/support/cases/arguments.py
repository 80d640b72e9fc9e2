"""A call that works for every public function, class and method: what a sweep starts from."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from PIL import Image

import lookalike as la
from lookalike import advice
from support.cases import parts as part_cases
from support.cases.recordings import recording_calls
from support.cases.videos import video_calls
from support.oracles import scan as oracle
from support.running.fake_card import FakeCard
from support.running.planned import COSTS

__all__ = ["INTERNAL", "calls", "public_callables"]

Call = tuple[Callable[..., Any], dict[str, Any]]

OTHERS = {
    *("Answer", "Collection", "Document", "Imported", "ItemError", "Match", "Pair", "Report"),
    *("Work", "Written"),
    *("drop_collection", "list_collections", "open_collection", "restore_collection"),
    *("DedupCounts", "DedupResult", "DedupSettings", "MediaResult", "TextResult"),
    *("VectorResult", "VerifiedPairs"),
    "dedup",
    *("CleanCounts", "CleanResult", "RemovedUnit", "clean"),
    *("BenchmarkCounts", "ContaminatedDocument", "Contamination", "Evidence", "decontaminate"),
    *("DocumentCluster", "DocumentClusters", "cluster_documents"),
    "connect",
    *("Answers", "Records"),  # lists
}
"""What tests/cleaning, collection, dedup, topics and service have bad input for."""

ANSWERS = {
    *("Added", "BatchMatches", "Comparison", "Explanation", "KeyMatch", "KeyMatches"),
    *(
        "Clusters",
        "Matches",
        "Measurement",
        "Option",
        "Prediction",
        "ScalePlan",
        "SignerMeasurement",
    ),
    *("Chroma", "CoverMatch", "Fingerprint", "RecordingMatch", "VideoFrames"),
    *("Neighbors", "PairGroups", "Pairs", "SavedSignatures", "Tuning"),
    *part_cases.ANSWERS,
    *("VectorMatches", "VectorNeighbors", "VectorPairs"),
}
"""Made by the package and not by callers; only their methods are called."""

MORE: dict[str, Any] = {
    thing.__name__: thing
    for thing in (
        la.features.Features,
        la.features.similarity_pairs,
        la.images.thumbnail,
        la.indexes.merge_neighbors,
        la.pages.PageLimits,
        la.signatures.kernels,
        la.signatures.quantize_weights,
        la.signatures.restore_weights,
        la.signatures.signatures_from_hex,
        la.signatures.signatures_to_hex,
        la.signatures.signer_from_dict,
    )
}
"""What packages offer beside the names at the top."""

INTERNAL = {
    *("FlipIndex.measured", "FlipIndex.of_sorted", "FlipIndex.within_checked"),
    *("Explanation.of_scan", "KeyMatches.kept", "Tuning.restored", "table", "reason"),
    *("get", "surely", "value", "total_seconds", "SliceIndex.search_settings", "SliceIndex.top"),
    *("SignatureFile.reader", "from_container", "sources", "with_features"),
    *("batch_source", "from_settings", "ImageHash.each"),
    *("AudioHash.read", "sign_each", "settings"),
    *("OverlapPair.of", "Vocabulary.observe", "Weights.fit_whole"),
}
"""For other modules, which have checked the arguments; a bare name is that method of any class."""


def public_callables() -> dict[str, Callable[..., Any]]:
    """Return everything public that takes arguments, by name: functions, classes and methods."""
    found: dict[str, Callable[..., Any]] = {}
    for name, thing in {**_public(la), **_public(advice), **_public(la.results), **MORE}.items():
        if name in OTHERS or (isinstance(thing, type) and issubclass(thing, Exception)):
            continue
        if not isinstance(thing, type):
            found[name] = thing
            continue
        if name not in ANSWERS and not inspect.isabstract(thing):
            found[name] = thing
        if inspect.isabstract(thing) or issubclass(thing, tuple):
            continue
        for method in dir(thing):
            if not method.startswith("_") and callable(getattr(thing, method)):
                found[f"{name}.{method}"] = getattr(thing, method)
    return {
        name: thing
        for name, thing in found.items()
        if not {name, name.rpartition(".")[2]} & INTERNAL and _takes_arguments(thing)
    }


def _public(module: ModuleType) -> dict[str, Any]:
    return {name: getattr(module, name) for name in module.__all__ if not name.startswith("_")}


def _takes_arguments(thing: Callable[..., Any]) -> bool:
    return bool(inspect.signature(thing).parameters.keys() - {"self"})


BAND_KEYS: list[Any] = [0, "one", (2,)]


def _bands(texts: list[str]) -> la.BandIndex:
    index = la.BandIndex(0.8, signer=la.MinHash(16, la.Words()))
    index.insert_many(BAND_KEYS, texts)
    return index


def _combined(kinds: Any, weights: Any) -> la.Combined:
    return la.Combined(*(kinds if isinstance(kinds, list) else [kinds]), weights=weights)


def _vectors(
    folder: Path, rows: NDArray[np.float32], queries: NDArray[np.float32]
) -> dict[str, Call]:
    """Return calls of an index of vectors; those that change it have one of their own."""
    index = la.VectorIndex(rows, bits=16)
    index.save(folder / "vectors")
    new = {"vectors": queries, "ids": [100, 101, 102, 103, 104]}

    def fresh() -> la.VectorIndex:
        return la.VectorIndex(rows, bits=16)

    return {
        "VectorIndex": (la.VectorIndex, {"vectors": rows, "ids": list(range(60)), "bits": 16}),
        "VectorIndex.add": (lambda **given: fresh().add(**given), new),
        "VectorIndex.compact": (index.compact, {}),
        "VectorIndex.make_sketches": (index.make_sketches, {}),
        "VectorIndex.from_bytes": (la.VectorIndex.from_bytes, {"data": index.to_bytes()}),
        "VectorIndex.name": (index.name, {"id": 3}),
        "VectorIndex.load": (la.VectorIndex.load, {"path": folder / "vectors"}),
        "VectorIndex.pairs": (index.pairs, {"similarity": 0.5}),
        "VectorIndex.remove": (lambda **given: fresh().remove(**given), {"ids": [3, 4]}),
        "VectorIndex.save": (index.save, {"path": folder / "saved vectors"}),
        "VectorIndex.search": (index.search, {"vectors": queries, "k": 3}),
        "VectorIndex.tune": (index.tune, {"k": 2, "queries": queries}),
        "VectorIndex.vectors": (index.vectors, {"ids": [3]}),
        "VectorIndex.within": (index.within, {"vectors": queries, "similarity": 0.5}),
    }


def on_fake_card(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return the same function, for which there is a card."""

    @wraps(call)
    def called(*arguments: Any, **named: Any) -> Any:
        with patch("lookalike.gpu.index.card", lambda number: FakeCard()):
            return call(*arguments, **named)

    return called


def calls(folder: Path) -> dict[str, Call]:
    """Return a function and arguments that work, by the names of `public_callables`.

    What a method changes is made anew for each call.
    """
    rows = oracle.collection(60, 8, "clustered", 0)
    weights = np.random.default_rng(0).normal(size=(60, 64)).astype(np.float32)
    queries, asked = rows[:5], weights[:5]
    texts = ["one two three four five six", "one two three four five seven", ""]
    ids = list(range(60))
    slices, found = la.SliceIndex(rows, 4), la.ScanIndex(rows).search(queries, 3)
    signer, minhash, packed = la.SimHash(), la.MinHash(16), la.BBitMinHash(16)
    learned = la.SimHash(weights="tfidf").fit(texts)
    la.ScanIndex(rows).save(folder / "index")
    signer.save(folder / "signer")
    la.save_signatures(folder / "signatures", rows, signer)
    la.match_batch(folder / "runs", rows)
    Image.linear_gradient("L").save(folder / "image.png")
    (folder / "copies").mkdir()
    for name in ("a.png", "b.png"):
        Image.linear_gradient("L").save(folder / "copies" / name)
    la.dedup(folder / "copies", kind="images").apply("hardlink", journal=folder / "linked.journal")
    (folder / "hashes.csv").write_text("path,hash\na,00ff00ff00ff00ff\n")
    measured = advice.evaluate(rows, sample=2, k=2, expand=[0])
    planned = la.plan(count=60, bits=64, radius=3, costs=COSTS)
    signers = advice.evaluate_signers(texts, [la.SimHash(64)], threshold=0.5)
    tuning = la.FlipIndex(rows)

    weighted = la.WeightedMinHash(16)
    values: NDArray[Any] = minhash.sign(texts)
    la.BandIndex(0.8, 16).save(folder / "bands")

    everything: dict[str, Call] = {
        "BBitMinHash": (la.BBitMinHash, {}),
        "BandIndex": (la.BandIndex, {"threshold": 0.8, "permutations": 16}),
        "BandIndex.insert": (
            lambda **given: _bands(texts).insert(**given),
            {"key": "new", "document": texts[0]},
        ),
        "BandIndex.insert_many": (
            lambda **given: _bands(texts).insert_many(**given),
            {"keys": [7, 8, 9], "documents": texts},
        ),
        "BandIndex.name": (_bands(texts).name, {"id": 3}),
        "BandIndex.from_bytes": (la.BandIndex.from_bytes, {"data": _bands(texts).to_bytes()}),
        "BandIndex.load": (la.BandIndex.load, {"path": folder / "bands"}),
        "BandIndex.merge": (
            lambda **given: la.BandIndex(0.8, 16).merge(**given),
            {"other": _bands(texts)},
        ),
        "BandIndex.query": (
            _bands(texts).query,
            {"document": texts[0], "text_of": dict(zip(BAND_KEYS, texts, strict=True))},
        ),
        "BandIndex.query_many": (_bands(texts).query_many, {"documents": texts}),
        "BandIndex.remove": (lambda **given: _bands(texts).remove(**given), {"key": 0}),
        "BandIndex.remove_many": (
            lambda **given: _bands(texts).remove_many(**given),
            {"keys": ["one"]},
        ),
        "BandIndex.save": (_bands(texts).save, {"path": folder / "saved bands"}),
        "MinHash.count": (minhash.count, {"values": values}),
        "MinHash.union": (minhash.union, {"a": values, "b": values}),
        "MinHash.update": (minhash.update, {"values": values, "documents": texts}),
        "WeightedMinHash": (la.WeightedMinHash, {}),
        "weighted_containment": (la.weighted_containment, {"a": texts, "b": texts}),
        "weighted_jaccard": (la.weighted_jaccard, {"a": texts, "b": texts}),
        "BBitMinHash.to_csr": (packed.to_csr, {"signatures": packed.sign(texts)}),
        "BBitMinHash.pack": (packed.pack, {"values": minhash.sign(texts)}),
        "BlockIndex": (la.BlockIndex, {"signatures": rows, "ids": ids}),
        "Chars": (la.Chars, {}),
        "ShortText": (la.ShortText, {}),
        "FeatureFunction": (la.FeatureFunction, {"function": str.split, "name": "split"}),
        "Combined": (_combined, {"kinds": [la.Words(), la.Chars()], "weights": (1, 0.5)}),
        "ClusterIndex": (la.ClusterIndex, {"signatures": rows, "ids": ids}),
        "ClusterIndex.add": (
            lambda **given: la.ClusterIndex(rows, 4).add(**given),
            {"signatures": queries, "ids": [100, 101, 102, 103, 104]},
        ),
        "ClusterIndex.compact": (la.ClusterIndex(rows, 4).compact, {}),
        "ClusterIndex.merge": (la.ClusterIndex.merge, {"indexes": [la.ClusterIndex(rows, 4)]}),
        "ClusterIndex.remove": (
            lambda **given: la.ClusterIndex(rows, 4).remove(**given),
            {"ids": [3, 4]},
        ),
        "ClusterIndex.tune_probes": (la.ClusterIndex(rows, 4).tune_probes, {"queries": queries}),
        "Clusters.members": (la.cluster(rows, 3).members, {"group": 1}),
        "cluster": (la.cluster, {"signatures": rows, "k": 3}),
        "undo": (la.undo, {"journal": folder / "linked.journal"}),
        "group_pairs": (
            la.group_pairs,
            {"pairs": [(0, 1), (1, 2)], "ids": [0, 1, 2], "keep": "max", "values": [1, 2, 3]},
        ),
        "Features": (la.features.Features, {}),
        "FlipIndex": (la.FlipIndex, {"signatures": rows, "ids": ids}),
        "FlipIndex.attempts": (
            tuning.attempts,
            {"queries": queries, "weights": asked, "radius": 2},
        ),
        "FlipIndex.fit_volatility": (tuning.fit_volatility, {"weights": weights}),
        "FlipIndex.tune_flips": (
            tuning.tune_flips,
            {"queries": queries, "weights": asked, "radius": 2},
        ),
        "GpuIndex": (on_fake_card(la.GpuIndex), {"signatures": rows, "ids": ids}),
        "MinHash": (la.MinHash, {}),
        "PrefixIndex": (la.PrefixIndex, {"signatures": rows, "ids": ids}),
        "ImageHash": (la.ImageHash, {}),
        "thumbnail": (la.images.thumbnail, {"image": folder / "image.png"}),
        "ImageHash.sign": (la.ImageHash().sign, {"images": [folder / "image.png"]}),
        "ImageHash.sign_with_quality": (
            la.ImageHash().sign_with_quality,
            {"images": [folder / "image.png"]},
        ),
        "load_hex": (la.load_hex, {"path": folder / "hashes.csv", "column": "hash", "id": "path"}),
        "signatures_from_hex": (
            la.signatures.signatures_from_hex,
            {"hashes": ["00ff00ff00ff00ff"]},
        ),
        "signatures_to_hex": (la.signatures.signatures_to_hex, {"signatures": rows}),
        "Projection": (la.Projection, {"bits": 16, "dimensions": 4}),
        "Projection.sign": (la.Projection(16, 4).sign, {"vectors": weights[:, :4]}),
        "Projection.sign_with_weights": (
            la.Projection(16, 4).sign_with_weights,
            {"documents": weights[:, :4]},
        ),
        "ScanIndex": (la.ScanIndex, {"signatures": rows, "ids": ids}),
        "ShardedIndex": (la.ShardedIndex, {"shards": [slices]}),
        "SimHash": (la.SimHash, {}),
        "SimHash.sign_with_weights": (signer.sign_with_weights, {"documents": texts}),
        "SliceIndex": (la.SliceIndex, {"signatures": rows, "ids": ids}),
        "SliceIndex.add": (
            lambda **given: la.SliceIndex(rows, 4).add(**given),
            {"signatures": queries, "ids": [100, 101, 102, 103, 104]},
        ),
        "SliceIndex.build": (la.SliceIndex.build, {"path": folder / "built", "signatures": rows}),
        "SliceIndex.compact": (slices.compact, {}),
        "SliceIndex.merge": (la.SliceIndex.merge, {"indexes": [slices, slices]}),
        "SliceIndex.remove": (
            lambda **given: la.SliceIndex(rows, 4).remove(**given),
            {"ids": [3, 4]},
        ),
        "SignatureFile": (la.SignatureFile, {"path": folder / "runs"}),
        "SignatureFile.append": (
            la.SignatureFile.create(folder / "appended", 64).append,
            {"signatures": rows[:3], "ids": [1, 2, 3]},
        ),
        "SignatureFile.create": (
            la.SignatureFile.create,
            {"path": folder / "created", "bits": 64, "exist_ok": True},
        ),
        "SignatureFile.compact": (la.SignatureFile(folder / "runs").compact, {}),
        "SignatureFile.read": (la.SignatureFile(folder / "runs").read, {"run": 0}),
        "TopSig": (la.TopSig, {}),
        "TopSig.sign_with_weights": (la.TopSig().sign_with_weights, {"documents": texts}),
        "TopSig.sign_parts": (la.TopSig().sign_parts, {"documents": texts, "terms": 3}),
        "Tuning.build": (
            planned.build,
            {"signatures": rows, "ids": ids},
        ),
        "Vocabulary": (la.Vocabulary, {}),
        "Vocabulary.from_dict": (
            la.Vocabulary.from_dict,
            {"description": learned.weights.to_dict()["vocabulary"]},
        ),
        "Vocabulary.merge": (la.Vocabulary.merge, {"vocabularies": [learned.weights.vocabulary]}),
        "Weights": (la.Weights, {"kind": "tfidf"}),
        "Weights.fit": (la.Weights("tfidf").fit, {"documents": texts, "features": la.Words()}),
        "Weights.from_dict": (la.Weights.from_dict, {"description": learned.weights.to_dict()}),
        "Words": (la.Words, {}),
        "Links": (la.Links, {}),
        "PageLimits": (la.pages.PageLimits, {}),
        "compare_texts": (la.compare_texts, {"a": texts[0], "b": texts[1]}),
        "containment": (la.containment, {"a": texts, "b": texts}),
        "cosine": (la.cosine, {"a": texts, "b": texts}),
        "cumulative_distance_ratio": (
            advice.cumulative_distance_ratio,
            {"found_distances": found.distances, "true_distances": found.distances},
        ),
        "evaluate": (
            advice.evaluate,
            {"signatures": rows, "queries": queries, "k": 2, "expand": [1], "slice_bits": [4]},
        ),
        "estimated_radius": (
            la.estimated_radius,
            {"signer": la.SimHash(64), "threshold": 0.8, "bits": 64},
        ),
        "estimated_similarity": (
            la.estimated_similarity,
            {"signer": la.SimHash(64), "distances": [0, 3], "bits": 64},
        ),
        "open_index": (la.open_index, {"path": folder / "index"}),
        "growth": (advice.growth, {"signatures": rows, "sizes": [20], "k": 2, "sample": 2}),
        "hamming": (la.hamming, {"a": rows, "b": rows}),
        "jaccard": (la.jaccard, {"a": texts, "b": texts}),
        "similarity_pairs": (
            la.features.similarity_pairs,
            {"measure": "jaccard", "documents": texts, "left": [0], "right": [1]},
        ),
        "load_index": (la.load_index, {"path": folder / "index"}),
        "load_signatures": (la.load_signatures, {"path": folder / "signatures"}),
        "save_signatures": (
            la.save_signatures,
            {
                "path": folder / "signatures",
                "signatures": rows,
                "signer": la.SimHash(bits=64),
                "ids": [str(number) for number in range(len(rows))],
            },
        ),
        "load_signer": (la.load_signer, {"path": folder / "signer"}),
        "match_batch": (
            la.match_batch,
            {"file": folder / "runs", "queries": queries, "weights": asked, "append": False},
        ),
        "merge_neighbors": (
            la.indexes.merge_neighbors,
            {"results": [found, found], "k": 2, "starts": [0, 100]},
        ),
        "near_duplicate_recall": (
            advice.near_duplicate_recall,
            {"found": found, "truth": found, "radius": 2},
        ),
        "evaluate_signers": (
            advice.evaluate_signers,
            {"texts": texts, "signers": [la.SimHash(64)], "threshold": 0.5, "sample": 5},
        ),
        "SignerMeasurement.recall_at": (signers.chosen.recall_at, {"precision": 0.9}),
        "plan_scale": (advice.plan_scale, {"documents": 1000, "engine": "spark"}),
        "plot_signers": (
            advice.plot_signers,
            {"evaluation": signers, "path": folder / "d.png"},
        ),
        "plan": (la.plan, {"count": 60, "bits": 64, "radius": 3, "costs": COSTS}),
        "plot_growth": (
            advice.plot_growth,
            {"series": {"a": list(measured.options)}, "path": folder / "a.png"},
        ),
        "plot_touched": (
            advice.plot_touched,
            {"evaluation": measured, "path": folder / "b.png"},
        ),
        "plot_trade_off": (
            advice.plot_trade_off,
            {"evaluation": measured, "path": folder / "c.png"},
        ),
        "quantize_weights": (la.signatures.quantize_weights, {"weights": weights}),
        "restore_weights": (
            la.signatures.restore_weights,
            {"quantized": la.signatures.quantize_weights(weights)},
        ),
        "signer_from_dict": (la.signatures.signer_from_dict, {"description": learned.to_dict()}),
        "top_in_top": (
            advice.top_in_top,
            {"found_ids": found.ids, "true_ids": found.ids, "top": 2, "among": 3},
        ),
        "tune": (la.tune, {"signatures": rows, "k": 2, "sample": 2}),
    }
    everything |= _vectors(folder, weights, asked)
    for name in ("nearest_hit_rate", "recall_by_distance"):
        both = {"found_distances": found.distances, "true_distances": found.distances}
        everything[name] = getattr(advice, name), both
    everything["recall_at_k"] = (
        advice.recall_at_k,
        {"found_ids": found.ids, "true_ids": found.ids},
    )
    for index in (
        *(la.ScanIndex(rows), la.SliceIndex(rows, 4), la.BlockIndex(rows), la.FlipIndex(rows)),
        *(la.PrefixIndex(rows, 2), la.ShardedIndex([slices, la.ScanIndex(rows)])),
        la.ClusterIndex(rows, 4),
        on_fake_card(la.GpuIndex)(rows),
    ):
        kind = type(index).__name__
        everything[f"{kind}.search"] = index.search, {"queries": queries, "k": 3}
        everything[f"{kind}.within"] = index.within, {"queries": queries, "radius": 2}
        everything[f"{kind}.pairs"] = index.pairs, {"radius": 2}
        everything[f"{kind}.name"] = index.name, {"id": 3}
        everything[f"{kind}.save"] = index.save, {"path": folder / kind, "notes": {"a": 1}}
        back = on_fake_card(type(index).from_bytes)
        everything[f"{kind}.from_bytes"] = back, {"data": index.to_bytes()}
        index.save(folder / f"{kind} to load")
        load = on_fake_card(type(index).load)
        everything[f"{kind}.load"] = load, {"path": folder / f"{kind} to load"}
    everything["FlipIndex.within"][1]["weights"] = asked
    for made in (
        signer,
        minhash,
        packed,
        weighted,
        la.TopSig(),
        la.Projection(16, 4),
        la.ImageHash(),
    ):
        kind = type(made).__name__
        everything[f"{kind}.from_dict"] = type(made).from_dict, {"description": made.to_dict()}
        everything[f"{kind}.save"] = made.save, {"path": folder / kind}
        everything[f"{kind}.from_bytes"] = type(made).from_bytes, {"data": made.to_bytes()}
        if isinstance(made, la.Projection | la.ImageHash):
            continue
        everything[f"{kind}.sign"] = made.sign, {"documents": texts}
        everything[f"{kind}.feature_counts"] = made.feature_counts, {"documents": texts}
        if isinstance(made, la.SimHash | la.TopSig | la.WeightedMinHash):
            everything[f"{kind}.fit"] = made.fit, {"documents": texts}
        if not isinstance(made, la.SimHash | la.TopSig):
            values = made.sign(texts)
            everything[f"{kind}.similarity"] = made.similarity, {"a": values, "b": values}
            everything[f"{kind}.standard_error"] = made.standard_error, {"similarity": [0.5]}
    for features, documents in (
        (la.Words(), texts),
        (la.Chars(), texts),
        (la.ShortText(), texts),
        (la.Links(), texts),
        (la.FeatureFunction(str.split, name="split"), texts),
        (la.Combined(la.Words(), la.Chars()), texts),
        (la.features.Features(), [{"a": 1}, ["b", "c"], [(3, 2.5)]]),
    ):
        kind = type(features).__name__
        everything[f"{kind}.counts"] = features.counts, {"documents": documents}
        everything[f"{kind}.source"] = features.source, {"documents": documents}
        everything[f"{kind}.is_document"] = features.is_document, {"value": documents[0]}
    everything |= recording_calls(folder)
    everything |= video_calls(folder)
    return everything | part_cases.part_calls(folder, rows, texts)
