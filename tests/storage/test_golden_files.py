"""Files of every format that was ever written: still read, and trusted only while undamaged."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lookalike as la
from lookalike import SignatureFile
from support.oracles import scan as oracle

DATA = Path(__file__).parent.parent / "data"
ROWS = oracle.collection(40, 8, "clustered", 2026)
IDS = np.array([(7 * i) % 40 + 100 for i in range(40)])
TEXTS = [
    f"{word} stays here {word}"
    for word in ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
] + ["ünï €"]


def answers(index: la.Index) -> list[Any]:
    near = index.search(ROWS[:7], 5)
    within = index.within(ROWS[:7], 3)
    signatures, ids = index.living()
    order = np.argsort(ids)
    return [
        near.ids.tolist(),
        near.distances.tolist(),
        within.offsets.tolist(),
        within.ids.tolist(),
        signatures[order].tolist(),
        ids[order].tolist(),
        None if index.names is None else list(index.names),
        None if index.signer is None else index.signer.to_dict(),
    ]


def loaded(path: Path) -> Any:
    return answers(la.load_index(path))


def signatures(path: Path) -> Any:
    saved = la.load_signatures(path)
    assert saved.ids is not None
    return [saved.signatures.tolist(), saved.signer.to_dict(), list(saved.ids)]


def signer(path: Path) -> Any:
    return la.load_signer(path).to_dict()


def runs(path: Path) -> Any:
    matches = la.match_batch(path, ROWS, 3, append=False, method="blocks")
    each = [(rows.tolist(), ids.tolist()) for rows, ids in SignatureFile(path).each_run()]
    return [matches.offsets.tolist(), matches.ids.tolist(), each]


def banded(path: Path) -> Any:
    index = la.BandIndex.load(path)
    return [
        index.keys(),
        [index[key].tolist() for key in index],
        [list(map(tuple, found)) for found in index.query_many(TEXTS)],
        None if index.signer is None else index.signer.to_dict(),
        index.stats()["threshold"],
    ]


def in_parts(path: Path) -> Any:
    parts = la.PartIndex.load(path)
    answer = parts.search(ROWS[3:9], radius=3, min_votes=1)
    matches = [(one.item, one.offset, one.votes, one.score, one.parts) for one in answer]
    return [parts.items(), parts.part_count, parts.notes, parts.stats()["signatures"], matches]


FILES: dict[str, Callable[[Path], Any]] = {
    "scan_v1.lookalike": loaded,
    "slices_v1.lookalike": loaded,
    "blocks_v1.lookalike": loaded,
    "flips_v1.lookalike": loaded,
    "prefix_v1.lookalike": loaded,
    "clusters_v1.lookalike": loaded,
    "signatures_v1.lookalike": signatures,
    "bands_v1.lookalike": banded,
    "parts_v1.lookalike": in_parts,
    "runs_v1.runs": runs,
    "runs_v2.runs": runs,
}


@pytest.mark.parametrize("name", ["scan", "slices", "blocks", "flips", "prefix", "clusters"])
def test_indexes_of_version_1_stay_readable(name: str) -> None:
    kept = np.arange(40) != 3 if name == "slices" else np.ones(40, bool)  # one was removed
    expected = la.ScanIndex(ROWS[kept], IDS[kept])
    index = la.load_index(DATA / f"{name}_v1.lookalike")
    assert index.kind == name
    assert answers(index) == answers(expected)
    assert index.notes == ({"made": "golden"} if name == "slices" else {})


def test_the_permutations_of_a_seed_stay_the_same() -> None:
    index = la.load_index(DATA / "prefix_v1.lookalike")
    assert isinstance(index, la.PrefixIndex)
    found = index.search(ROWS, 1, examine=1)
    assert not found.distances.any(), "looked up by other bits than the orders were made of"


def test_the_groups_of_a_seed_stay_the_same() -> None:
    index = la.load_index(DATA / "clusters_v1.lookalike")
    assert isinstance(index, la.ClusterIndex)
    again = la.ClusterIndex(ROWS[:36], 5, IDS[:36], seed=3)
    assert again.tune_probes(3, 0.9) == index.tunings[0]
    again.add(ROWS[36:], IDS[36:])
    assert again.to_bytes() == index.to_bytes()


def test_signatures_of_version_1_stay_readable() -> None:
    saved = la.load_signatures(DATA / "signatures_v1.lookalike")
    expected = la.SimHash(bits=64, weights="tfidf").fit(TEXTS)
    assert saved.signer == expected == la.load_signer(DATA / "signatures_v1.lookalike")
    assert np.array_equal(saved.signatures, expected.sign(TEXTS))
    assert saved.ids == [f"näme {number}" for number in range(10)]


def test_band_indexes_of_version_1_stay_readable() -> None:
    index = la.BandIndex.load(DATA / "bands_v1.lookalike")
    expected = la.BandIndex(0.6, signer=la.MinHash(32, la.Words(ngram=2), seed=9))
    keys = [*range(6), "näme", b"\xff\0", ("a", (1, None)), 2**80]
    expected.insert_many(keys, TEXTS)
    expected.remove(3)
    assert (index.keys(), index.signer) == (expected.keys(), expected.signer)
    assert all(np.array_equal(index[key], expected[key]) for key in index)
    assert [*index.query_many(TEXTS)] == [*expected.query_many(TEXTS)]
    assert la.load_signer(DATA / "bands_v1.lookalike") == expected.signer
    again = la.load_index(DATA / "bands_v1.lookalike")
    assert (type(again), again.keys()) == (la.BandIndex, index.keys())
    with pytest.raises(la.errors.FormatError, match="a BandIndex, and signatures are expected"):
        la.open_index(DATA / "bands_v1.lookalike")
    with pytest.raises(la.errors.FormatError, match="expected a BandIndex"):
        la.BandIndex.load(DATA / "scan_v1.lookalike")


def golden_parts() -> la.PartIndex:
    parts = la.PartIndex(64)
    parts.add_many([1, "näme", 2**70], [ROWS[:10], ROWS[10:30], ROWS[30:]])
    parts.add("nothing", [])
    parts.add("back", ROWS[10:14], [7, -5, 7, 2**40])
    return parts


def test_parts_of_version_1_stay_readable(tmp_path: Path) -> None:
    expected = golden_parts()
    expected.save(tmp_path / "parts", notes={"made": "golden"})
    assert in_parts(DATA / "parts_v1.lookalike") == in_parts(tmp_path / "parts")
    again = la.load_index(DATA / "parts_v1.lookalike")
    assert (type(again), again.items()) == (la.PartIndex, expected.items())


@pytest.mark.parametrize("version", [1, 2])
def test_signature_files_stay_readable(version: int) -> None:
    store = SignatureFile(DATA / f"runs_v{version}.runs")
    assert (store.runs, store.bits, store.largest_id) == ([25, 15], 64, 514)
    (first, first_ids), (second, second_ids) = store.each_run()
    for rows, ids, expected in (
        (first, first_ids, ROWS[:25]),
        (second, second_ids - 500, ROWS[25:]),
    ):
        assert np.array_equal(rows[np.argsort(ids)], expected)


@pytest.mark.parametrize("name", FILES)
def test_no_damaged_byte_gives_a_wrong_answer(name: str, tmp_path: Path) -> None:
    """With LOOKALIKE_DAMAGE=all every byte is changed, else some."""
    read = FILES[name]
    path = tmp_path / name
    good = (DATA / name).read_bytes()
    path.write_bytes(good)
    expected = read(path)
    places: Sequence[int] = range(len(good))
    if os.environ.get("LOOKALIKE_DAMAGE") != "all":
        told = [at for at in places if good[at]]  # most of the others are between sections
        places = [*random.sample(told, 250), *random.sample(places, 50)]
    refused = 0
    with open(path, "r+b") as file:
        for at in places:
            os.pwrite(file.fileno(), bytes([good[at] ^ 1 << random.randrange(8)]), at)
            try:
                assert read(path) == expected, at
            except (la.errors.CorruptIndexError, la.errors.FormatError):
                refused += 1
            os.pwrite(file.fileno(), good[at : at + 1], at)
    assert refused >= 250
    assert read(path) == expected
    for length in {0, 7, *random.sample(range(len(good)), 20), len(good) - 1}:
        path.write_bytes(good[:length])
        with pytest.raises((la.errors.CorruptIndexError, la.errors.FormatError)):
            read(path)


def test_no_damaged_byte_gives_another_signer(tmp_path: Path) -> None:
    path = tmp_path / "signer"
    la.SimHash(bits=64, weights="tfidf").fit(TEXTS).save(path)
    good, expected = path.read_bytes(), signer(path)
    for at in [at for at in range(len(good)) if good[at]]:
        path.write_bytes(good[:at] + bytes([good[at] ^ 1 << at % 8]) + good[at + 1 :])
        with pytest.raises((la.errors.CorruptIndexError, la.errors.FormatError)):
            assert signer(path) == expected
