from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import lookalike as la
from lookalike.cli import main
from lookalike.indexes import open_index
from support.cases import cli_corpus as corpus
from support.running.refusals import refused

GOLDEN = Path(__file__).parent.parent / "data" / "scan_v1.lookalike"


@pytest.mark.parametrize("kind", ["scan", "slices", "blocks", "flips", "prefix", "clusters"])
def test_an_index_knows_its_documents(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = corpus.many(200)
    ids = [f"é{number}" for number in range(200)]
    signer = la.SimHash(128, weights="tfidf").fit(texts)
    la.save_signatures(tmp_path / "s.lookalike", signer.sign(texts), signer, ids)
    file = tmp_path / "i.lookalike"
    command = ["index", str(tmp_path / "s.lookalike"), "-o", str(file), "--type", kind]
    assert main([*command, "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["index"] == kind
    assert summary["signatures"] == 200
    assert summary["file_bytes"] == file.stat().st_size
    assert (summary["ids"], summary["signer"]) == (True, "SimHash")
    index = la.load_index(file, verify=True)
    assert index.signer == signer
    assert index.names == ids
    assert (index.name(7), index.name(200)) == ("é7", 200)
    queries = signer.sign(texts[:20])
    same = la.ScanIndex(signer.sign(texts)).within(queries, 20)
    found = index.within(queries, 20)
    assert (found.ids == same.ids).all()
    # Indexing an index, and saving it again, keeps what it knows.
    assert main(["index", str(file), "-o", str(tmp_path / "j.lookalike")]) == 0
    assert capsys.readouterr().out.startswith("200 signatures of 128 bits, slices of ")
    assert open_index(tmp_path / "j.lookalike").names == ids
    assert open_index(tmp_path / "j.lookalike").signer == signer


def test_options_of_slices_and_ids_of_the_caller(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).integers(0, 256, (100, 16), np.uint8)
    la.ScanIndex(rows, ids=np.arange(100) * 3).save(tmp_path / "scan.lookalike")
    file = str(tmp_path / "slices.lookalike")
    scan = str(tmp_path / "scan.lookalike")
    command = ["index", scan, "-o", file, "--slice-bits", "9", "--threads", "1", "--quiet"]
    assert main(command) == 0
    index = la.load_index(file)
    assert isinstance(index, la.SliceIndex)
    assert index.slice_bits == 9
    assert index.search(rows[5], 1).ids.tolist() == [[15]]
    assert index.names is None
    assert index.signer is None
    assert main(["index", scan, "-o", file, "--memory-limit", "14KB", "--quiet"]) == 0
    narrow = la.load_index(file)
    assert isinstance(narrow, la.SliceIndex)
    assert narrow.slice_bits == la.SliceIndex(rows, memory=14_000).slice_bits


def test_files_without_names_are_as_before(tmp_path: Path) -> None:
    golden = la.load_index(GOLDEN, verify=True)
    assert golden.signer is None
    assert golden.names is None
    assert golden.name(3) == 3
    golden.save(tmp_path / "again.lookalike")
    assert (tmp_path / "again.lookalike").read_bytes() == GOLDEN.read_bytes()
    assert len(open_index(GOLDEN)) == len(golden)


def test_damage_to_what_was_learned_is_noticed(tmp_path: Path) -> None:
    signer = la.SimHash(weights="tfidf").fit(corpus.TEXTS)
    index = la.ScanIndex(signer.sign(corpus.TEXTS))
    index.signer = signer
    index.save(tmp_path / "i.lookalike")
    data = bytearray((tmp_path / "i.lookalike").read_bytes())
    assert la.load_index(tmp_path / "i.lookalike").signer == signer
    data[-1] ^= 1  # in the last section, which is one of the vocabulary
    (tmp_path / "i.lookalike").write_bytes(data)
    with pytest.raises(la.errors.CorruptIndexError, match="'signer"):
        la.load_index(tmp_path / "i.lookalike")


def test_errors_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "good.npy", np.zeros((3, 8), np.uint8))
    np.save(tmp_path / "numbers.npy", np.zeros((3, 8), np.int32))
    (tmp_path / "text.txt").write_text("no signatures")
    la.SimHash().save(tmp_path / "signer.lookalike")
    good, out = str(tmp_path / "good.npy"), str(tmp_path / "out.lookalike")
    cases: list[tuple[list[str], str]] = [
        ([str(tmp_path / "none"), "-o", out], "none cannot be read: No such file"),
        ([str(tmp_path), "-o", out], "is a folder; expected a file with signatures"),
        ([str(tmp_path / "text.txt"), "-o", out], "To sign a corpus: lookalike sign"),
        ([str(tmp_path / "numbers.npy"), "-o", out], "are int32; expected uint8"),
        ([str(tmp_path / "signer.lookalike"), "-o", out], "holds an index of kind None"),
        ([good, "-o", good], "which is also an input; choose another name"),
        ([good, "-o", str(tmp_path / "no" / "i.lookalike")], "does not exist"),
        (
            [good, "-o", out, "--type", "scan", "--slice-bits", "9"],
            "--slice-bits does nothing",
        ),
        ([good, "-o", out, "--slice-bits", "99"], "--slice-bits is 99; expected"),
    ]
    for arguments, message in cases:
        assert message in refused(["index", *arguments], capsys), arguments
    with pytest.raises(SystemExit) as stop:
        main(["index", good, "-o", out, "--type", "magic"])
    assert stop.value.code == 2
