"""A signer of another package: signed, saved, searched, de-duplicated, collected and served."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lookalike as la
from lookalike.cli import main
from lookalike.signatures.methods import METHODS
from lookalike.signatures.signer import SIGNERS
from support.services.running import running

WORDS = [f"word{number}" for number in range(40)]
TEXTS = [
    " ".join(WORDS[:20]),
    " ".join([*WORDS[:19], "another"]),
    " ".join(WORDS[20:]),
    " ".join(reversed(WORDS[20:])),
    "one that is like nothing else in here",
]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.jsonl"
    rows = ({"id": f"d{number}", "text": text} for number, text in enumerate(TEXTS))
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def test_a_toy_is_known_by_name_and_imported_when_asked_for() -> None:
    code = (
        "import sys, lookalike as la; from lookalike.signatures.signer import SIGNERS;"
        "la.dedup(['a b c'], method='simhash'); assert 'lookalike_toys' not in sys.modules;"
        "assert SIGNERS['toy'].__name__ == 'ToySigner' and 'lookalike_toys' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert "toy" in METHODS
    assert "projection" not in METHODS


def test_a_toy_is_saved_with_signatures_and_indexes(tmp_path: Path) -> None:
    toy = SIGNERS["toy"](128)
    assert toy.to_dict()["signer"] == "toy"
    for again in (la.signatures.signer_from_dict(toy.to_dict()), pickle.loads(pickle.dumps(toy))):
        assert again == toy
        assert np.array_equal(again.sign(TEXTS), toy.sign(TEXTS))
    toy.save(tmp_path / "toy.lookalike")
    assert la.load_signer(tmp_path / "toy.lookalike") == toy
    la.save_signatures(tmp_path / "saved.lookalike", toy.sign(TEXTS), toy)
    assert la.load_signatures(tmp_path / "saved.lookalike").signer == toy
    index = la.ScanIndex(toy.sign(TEXTS))
    index.signer = toy
    index.save(tmp_path / "index.lookalike")
    code = (  # a process that has not imported the toy reads what it made
        "import sys, lookalike as la;"
        f"index = la.load_index({str(tmp_path / 'index.lookalike')!r});"
        "assert index.signer.to_dict()['signer'] == 'toy';"
        f"found = index.search(index.signer.sign([{TEXTS[2]!r}]), 2);"
        "assert found.ids.tolist() == [[2, 3]] and found.distances.tolist() == [[0, 0]]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_toy_on_the_command_line(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    signed, index = tmp_path / "signed.lookalike", tmp_path / "index.lookalike"
    assert main(["sign", str(corpus), "--method", "toy", "-o", str(signed), "--quiet"]) == 0
    assert la.load_signatures(signed).signer == SIGNERS["toy"]()  # type: ignore[call-arg]
    assert main(["index", str(signed), "-o", str(index), "--type", "scan", "--quiet"]) == 0
    capsys.readouterr()
    assert main(["search", str(index), TEXTS[1], "--threshold", "0.9", "--json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["id"] for one in found[0]["results"]] == ["d1", "d0"]
    out = tmp_path / "kept.jsonl"
    command = ["dedup", str(corpus), "--method", "toy", "-o", str(out), "--quiet"]
    assert main(command) == 0
    assert [json.loads(line)["id"] for line in out.read_text().splitlines()] == ["d0", "d2", "d4"]
    assert main([*command, "--permutations", "64"]) == 2
    assert "--permutations goes with --method minhash" in capsys.readouterr().err


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("bits", [None, 512])
def test_dedup_with_a_toy(verify: bool, bits: int | None) -> None:
    result = la.dedup(TEXTS, method="toy", verify=verify, bits=bits)
    assert result.keep.tolist() == [True, False, True, False, True]
    assert result.settings.measure == "cosine"
    assert result.settings.bits == (bits or 256)


def test_a_collection_with_a_toy(corpus: Path, tmp_path: Path) -> None:
    database = str(tmp_path / "docs.db")
    assert main(["collection", "create", database, "--method", "toy", "--bits", "128"]) == 0
    assert main(["collection", "import", database, str(corpus), "--quiet"]) == 0
    with la.open_collection(database) as docs:
        assert docs.signer == SIGNERS["toy"](128)
        assert [match.id for match in docs.within(TEXTS[0], radius=20)] == ["d0", "d1"]


def test_the_service_with_a_toy(tmp_path: Path) -> None:
    place, run = tmp_path / "served", tmp_path / "run"
    place.mkdir()
    run.mkdir()
    with running(place, run) as served:
        body = {"name": "toys", "signer": {"method": "toy"}}
        made = served.good("POST", "/v1/collections", body)
        assert made["bits"] == 256
        documents = [{"id": f"d{number}", "text": text} for number, text in enumerate(TEXTS)]
        served.good("PUT", "/v1/collections/toys/documents", {"documents": documents})
        query = {"text": TEXTS[2], "k": 2}
        answer = served.good("POST", "/v1/collections/toys/query", query)
        assert {match["id"] for match in answer["matches"]} == {"d2", "d3"}
        wrong = {"name": "other", "signer": {"method": "toi"}}
        message = served.refused(422, "bad_argument", "POST", "/v1/collections", wrong)
        assert "expected one of simhash, topsig, bbitminhash" in message
