"""`--mask`: queries of a few words, in indexes and in collections."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lookalike as la
from lookalike.cli import main
from lookalike.signatures.estimates import estimated_pairs
from support.running.refusals import refused

RNG = np.random.default_rng(2)
WORDS = np.array([f"w{number}" for number in range(400)])
TEXTS = [" ".join(RNG.choice(WORDS, 60)) for _ in range(150)]
SIGNER = la.TopSig(256, 8).fit(TEXTS)
SHORT = " ".join(TEXTS[7].split()[:4])
SAID = "only the bits that its words decide were compared (--mask no: all bits)"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    la.save_signatures("topsig.lookalike", SIGNER.sign(TEXTS), SIGNER)
    index = la.SliceIndex(SIGNER.sign(TEXTS), 8)
    index.signer = SIGNER
    index.save("slices.lookalike")
    return tmp_path


def searched(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[list[Any], str]:
    assert main(["search", *arguments, "--json"]) == 0
    out, errors = capsys.readouterr()
    return [json.loads(line) for line in out.splitlines()], errors


@pytest.mark.parametrize("name", ["topsig", "slices"])
def test_short_queries_are_masked_and_it_is_said(
    folder: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (query,), (mask,) = SIGNER.sign([SHORT], mask=True)
    truth = la.ScanIndex(SIGNER.sign(TEXTS)).search(query, 5, masks=mask)
    (short, long), errors = searched(capsys, f"{name}.lookalike", SHORT, TEXTS[3], "-k", "5")
    assert SAID in errors
    assert "lookalike: short query: " in errors
    assert [one["id"] for one in short["results"]] == truth.ids[0].tolist()
    assert [one["distance"] for one in short["results"]] == truth.distances[0].tolist()
    assert short["masked"] is short["exact"] is True
    rows = SIGNER.sign(TEXTS)[truth.ids[0]]
    ones = np.bitwise_count(rows).sum(axis=1) + np.bitwise_count(query).sum()
    whole = estimated_pairs(SIGNER, np.bitwise_count(rows ^ query).sum(axis=1), SIGNER.bits, ones)
    assert [one["estimate"] for one in short["results"]] == pytest.approx(whole, abs=1e-4)
    assert "masked" not in long
    assert long["results"][0]["id"] == 3
    assert long["results"][0]["estimate"] == 1


def test_mask_no_and_radius_compare_all_bits(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for options in (["--mask", "no"], ["--radius", "90"], ["--expand", "2"]):
        (answer,), errors = searched(capsys, "slices.lookalike", SHORT, *options)
        assert "masked" not in answer
        assert SAID not in errors
    (answer,), _ = searched(capsys, "slices.lookalike", SHORT, "--radius", "40", "--mask", "yes")
    assert answer["masked"] and all("estimate" in one for one in answer["results"])
    assert 0 < max(one["distance"] for one in answer["results"]) <= 40


def test_the_table_says_so_on_standard_error(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["search", "topsig.lookalike", SHORT, "w3 w4", "-k", "1"]) == 0
    out, errors = capsys.readouterr()
    assert "2 short queries: only the bits that their words decide were compared" in errors
    number, exact = out.splitlines()[1].split()[-2:]
    assert 0 < float(number) < 1 and exact == "yes"


def test_signers_and_indexes_without_masks_refuse(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    signer = la.BBitMinHash(64, 1, la.Words())
    la.save_signatures("minhash.lookalike", signer.sign(TEXTS), signer)
    told = refused(["search", "minhash.lookalike", SHORT, "--mask", "yes"], capsys)
    assert told.startswith("--mask yes is for texts signed by TopSig or SimHash, not by minhash")
    assert main(["search", "minhash.lookalike", SHORT, "--mask", "yes"]) == 2
    capsys.readouterr()
    blocks = la.BlockIndex(SIGNER.sign(TEXTS), radius=3)
    blocks.signer = SIGNER
    blocks.save("blocks.lookalike")
    (answer,), _ = searched(capsys, "blocks.lookalike", SHORT)
    assert "masked" not in answer
    told = refused(["search", "blocks.lookalike", SHORT, "--mask", "yes"], capsys)
    assert told.startswith("--mask yes is not supported by this index of blocks")
    for options in (["topsig.lookalike"], ["blocks.lookalike"]):
        arguments = ["search", *options, "--signatures", "topsig.lookalike", "--mask", "yes"]
        assert "--signatures has none; leave it out" in refused(arguments, capsys)


def test_shards_without_masks_compare_all_bits(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = SIGNER.sign(TEXTS)
    inner = la.ShardedIndex([la.PrefixIndex(rows[50:100]), la.ScanIndex(rows[100:])])
    index = la.ShardedIndex([la.SliceIndex(rows[:50], 8), inner])
    index.signer = SIGNER
    index.save("shards.lookalike")
    truth = la.ScanIndex(rows).search(SIGNER.sign([SHORT]), 5)
    (answer,), errors = searched(capsys, "shards.lookalike", SHORT, "-k", "5")
    assert [one["id"] for one in answer["results"]] == truth.ids[0].tolist()
    assert SAID not in errors
    told = refused(["search", "shards.lookalike", SHORT, "--mask", "yes"], capsys)
    assert told.startswith("--mask yes is not supported by this index")


def test_collections_mask_short_texts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with la.open_collection("docs.db", signer=SIGNER, create=True) as docs:
        docs.add([f"doc {number}" for number in range(150)], TEXTS)
        expected = docs.search(SHORT, 4)
    assert main(["collection", "search", "docs.db", SHORT, "-k", "4", "--json"]) == 0
    out, errors = capsys.readouterr()
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["id"] for line in lines] == expected.ids
    assert all(line["masked"] for line in lines)
    assert SAID in errors
    assert main(["collection", "search", "docs.db", SHORT, "--mask", "no", "--json"]) == 0
    out, errors = capsys.readouterr()
    assert "masked" not in out
    assert SAID not in errors
    command = ["collection", "search", "docs.db", "--mask", "yes"]
    told = refused([*command, "doc 7", "--by-id"], capsys)
    assert told.startswith("--mask yes is only for texts, whose words determine the bits")
    search = ["search", "slices.lookalike", "--mask", "yes"]
    for asked in ([*command, "--compare"], command, search):
        told = refused([*asked, SHORT, "--threshold", "0.5"], capsys)
        assert told.startswith("--mask yes compares some bits, but --threshold needs all")
