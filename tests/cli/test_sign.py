from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import lookalike as la
from lookalike.cli import main
from support.cases import cli_corpus as corpus
from support.running.refusals import refused

METHODS: list[tuple[list[str], Any]] = [
    ([], la.BBitMinHash(128, 16, la.ShortText())),
    (["--features", "words"], la.BBitMinHash(128, 16)),
    (["--ngram", "2", "--num-perm", "64", "--seed", "7"],
     la.BBitMinHash(64, 16, la.Words(ngram=2), seed=7)),
    (["--method", "simhash"], la.SimHash(128, la.Words(ngram=3))),
    (["--method", "simhash", "--bits", "256", "--weights", "log-count"],
     la.SimHash(256, la.Words(ngram=3), weights="log-count")),
    (["--method", "topsig", "--ngram", "2"],
     la.TopSig(1024, features=la.Words(ngram=2), weights="count")),
]  # fmt: skip


@pytest.mark.parametrize(("options", "signer"), METHODS)
def test_the_file_has_what_the_signer_gives(
    options: list[str], signer: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = corpus.write(tmp_path / "corpus.jsonl")
    file = tmp_path / "signatures.lookalike"
    assert main(["sign", source, "-o", str(file), *options]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith(f"5 signatures of {signer.bits} bits: {file}\n")
    assert "\n  2 without words: left out\n" in printed.out
    assert printed.err == ""
    saved = la.load_signatures(file)
    assert saved.signer == signer
    assert saved.ids == [corpus.IDS[row] for row in corpus.WITH_WORDS]
    assert (saved.signatures == signer.sign(corpus.TEXTS)[corpus.WITH_WORDS]).all()

    rows = tmp_path / "signatures.npy"
    assert main(["sign", source, "-o", str(rows), *options]) == 0
    assert "2 without words: their signatures mean nothing" in capsys.readouterr().out
    assert (np.load(rows) == signer.sign(corpus.TEXTS)).all()


@pytest.mark.parametrize(
    "weights",
    [
        [],
        ["--weights", "tfidf"],
        ["--weights", "log-likelihood"],
        ["--weights", "idf"],
        ["--weights", "count", "--common", "40"],
    ],
)
@pytest.mark.parametrize("method", ["simhash", "topsig"])
def test_fit_learns_as_from_a_list(method: str, weights: list[str], tmp_path: Path) -> None:
    texts = corpus.many(20_000 if method == "simhash" else 300)
    source = corpus.write(tmp_path / "corpus.jsonl", texts, None)
    file = tmp_path / "signatures.lookalike"
    assert main(["sign", source, "-o", str(file), "--method", method, "--fit", *weights]) == 0
    name = weights[1] if weights else {"simhash": "tfidf", "topsig": "log-likelihood"}[method]
    kind = la.Weights(name, common=40 if "--common" in weights else None)
    signer = (
        la.SimHash(128, la.Words(ngram=3), weights=kind)
        if method == "simhash"
        else la.TopSig(1024, features=la.Words(ngram=2), weights=kind)
    ).fit(texts)
    saved = la.load_signatures(file)
    assert saved.signer == signer
    assert (saved.signatures == signer.sign(texts)).all()
    assert saved.ids is not None
    assert list(saved.ids) == [str(row) for row in range(len(texts))]

    # Another corpus, signed with what was learned from this one; from an index of it, too.
    index = tmp_path / "index.lookalike"
    assert main(["index", str(file), "-o", str(index), "--type", "scan", "--quiet"]) == 0
    for like in (file, index):
        again = tmp_path / "again.npy"
        other = corpus.write(tmp_path / "other.jsonl")
        assert main(["sign", other, "-o", str(again), "--like", str(like)]) == 0
        assert (np.load(again) == signer.sign(corpus.TEXTS)).all()


def test_batches_and_threads_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = corpus.many(3000)
    ids = [f"id {number}" for number in range(3000)]
    source = corpus.write(tmp_path / "corpus.jsonl", texts, ids)
    contents = []
    for threads, batch_bytes in ((1, 1 << 24), (3, 1 << 24), (2, 5000)):
        for module in ("base", "formats.lines"):
            monkeypatch.setattr(f"lookalike.corpora.{module}.BATCH_BYTES", batch_bytes)
        file = tmp_path / f"{threads}-{batch_bytes}.lookalike"
        command = ["sign", source, "-o", str(file), "--threads", str(threads), "--quiet"]
        assert main(command) == 0
        contents.append(file.read_bytes())
    assert contents[0] == contents[1] == contents[2]
    assert (la.load_signatures(file).signatures == la.BBitMinHash(128, 16).sign(texts)).all()


def test_dedup_against_a_signed_corpus(tmp_path: Path) -> None:
    texts = corpus.many(600)
    old = corpus.write(tmp_path / "old.jsonl", texts[:300], [f"old {row}" for row in range(300)])
    new = corpus.write(tmp_path / "new.jsonl", texts[200:], [f"new {row}" for row in range(400)])
    file = tmp_path / "old.lookalike"
    assert main(["sign", old, "-o", str(file), "--quiet"]) == 0
    against = {"signatures": str(file), "texts": old}
    kept = {}
    for name, source in against.items():
        out = tmp_path / f"{name}.jsonl"
        assert main(["dedup", new, "--against", source, "-o", str(out), "--quiet"]) == 0
        kept[name] = [json.loads(line)["text"] for line in out.read_text().splitlines()]
    # Nothing from 300 on is related to what came before, which is all in the old corpus.
    assert kept["signatures"] == kept["texts"]
    assert set(texts[300::3]) <= set(kept["signatures"]) <= set(texts[300:])


def test_all_formats_and_what_cannot_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.txt").write_text("some words here")
    (folder / "b.bin").write_bytes(b"\0\1\2")
    (tmp_path / "lines.txt").write_text("one line\nanother line\n")
    (tmp_path / "bad.jsonl").write_text('{"text": "good"}\n{"text": \n')
    (tmp_path / "empty.jsonl").write_text("")
    file = str(tmp_path / "out.lookalike")

    def signed(*arguments: str) -> dict[str, Any]:
        assert main(["sign", *arguments, "-o", file, "--json"]) == 0
        summary: dict[str, Any] = json.loads(capsys.readouterr().out)
        return summary

    assert signed(str(folder))["binary_files"] == 1
    assert la.load_signatures(file).ids == ["a.txt"]
    assert signed(str(tmp_path / "lines.txt"))["signatures"] == 2
    assert la.load_signatures(file).ids == ["0", "1"]
    assert signed(str(tmp_path / "bad.jsonl"), "--skip-bad")["bad_rows"] == 1
    summary = signed(str(tmp_path / "empty.jsonl"), "--method", "topsig")
    assert (summary["documents"], summary["bits"]) == (0, 1024)
    assert la.load_signatures(file).signatures.shape == (0, 128)
    assert summary["signer"]["weights"] == "count"

    before = Path(file).read_bytes()
    assert main(["sign", str(tmp_path / "bad.jsonl"), "-o", file]) == 1
    assert "bad.jsonl, line 2" in capsys.readouterr().err
    assert Path(file).read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {
        "folder", "lines.txt", "bad.jsonl", "empty.jsonl", "out.lookalike"
    }  # fmt: skip


def test_a_full_disk_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("there is no /dev/full")
    monkeypatch.setattr("tempfile.TemporaryFile", lambda dir: full.open("wb"))
    source = corpus.write(tmp_path / "corpus.jsonl")
    assert main(["sign", source, "-o", str(tmp_path / "out.lookalike")]) == 1
    error = capsys.readouterr().err
    assert "out.lookalike cannot be written: No space left on device" in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out.lookalike").exists()


def test_progress_is_shown_on_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    source = corpus.write(tmp_path / "corpus.jsonl")
    command = ["sign", source, "-o", str(tmp_path / "s.npy"), "--method", "simhash", "--fit"]
    assert main(command) == 0
    shown = capsys.readouterr().err
    assert "fit" in shown
    assert "sign" in shown


def test_errors_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = corpus.write(tmp_path / "corpus.jsonl")
    (tmp_path / "two.csv").write_text("a,b\n1,2\n")
    np.save(tmp_path / "rows.npy", np.zeros((3, 8), np.uint8))
    index = la.ScanIndex(la.Projection(64, 3).sign(np.eye(3, dtype=np.float32)))
    index.signer = la.Projection(64, 3)
    index.save(tmp_path / "vectors.lookalike")
    la.ScanIndex(np.zeros((3, 8), np.uint8)).save(tmp_path / "unsigned.lookalike")
    out = str(tmp_path / "out.lookalike")
    like = ["--like", str(tmp_path / "vectors.lookalike")]
    cases: list[tuple[list[str], str]] = [
        ([source, "-o", "out.txt"], "expected a name that ends in .lookalike or .npy"),
        ([source, "-o", str(tmp_path / "no" / "out.npy")], "does not exist"),
        ([str(tmp_path / "none.jsonl"), "-o", out], "no such file"),
        ([str(tmp_path / "two.csv"), "-o", out], "has the columns a, b; name the text column"),
        ([source, "-o", out, "--text", "body"], "has no column 'body' for the text"),
        ([source, "-o", out, "--bits", "64"], "--bits goes with --method simhash or topsig"),
        ([source, "-o", out, "--fit"], "--fit needs --method"),
        ([source, "-o", out, "--common", "5"], "--common needs --method"),
        ([source, "-o", out, "--method", "simhash", "--common", "5"], "add --fit"),
        ([source, "-o", out, "--method", "simhash", "--bits", "63"], "63"),
        ([source, "-o", out, "--method", "simhash", "--weights", "tfidf"], "add --fit"),
        ([source, "-o", out, "--method", "topsig", "--weights", "count", "--fit"], "leave --fit"),
        ([source, "-o", out, "--ngram", "0"], "--ngram is 0; expected"),
        ([source, "-o", out, "--threads", "0"], "--threads is 0; expected"),
        ([source, "-o", out, *like], "takes no texts"),
        ([source, "-o", out, *like, "--seed", "1"], "--seed does nothing with --like"),
        ([source, "-o", out, "--like", str(tmp_path / "rows.npy")], "is not a lookalike file"),
        ([source, "-o", out, "--like", str(tmp_path / "unsigned.lookalike")], "holds no signer"),
    ]
    for arguments, message in cases:
        assert message in refused(["sign", *arguments], capsys), arguments
    assert not Path(out).exists()


def test_one_of_each_is_said_in_the_singular(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts, photos = tmp_path / "texts", tmp_path / "photos"
    for folder in (texts, photos):
        folder.mkdir()
    (texts / "a.txt").write_text("the quick brown fox jumps over the lazy dog")
    (texts / "b.bin").write_bytes(b"\0\1\2")
    pixels = np.random.default_rng(0).integers(0, 256, (8, 8), np.uint8).repeat(8, 0).repeat(8, 1)
    Image.fromarray(pixels).save(photos / "a.png")
    (photos / "notes.txt").write_text("not an image")
    file = str(tmp_path / "one.lookalike")
    assert main(["sign", str(texts), "-o", file]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("1 signature of ") and "\n  1 document in " in printed
    assert "\n  1 binary file: left out\n" in printed
    assert main(["sign", str(photos), "-o", file, "--kind", "images"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("1 signature of ") and "\n  1 image in " in printed
    assert "\n  1 other file: not looked at\n" in printed
    assert main(["index", file, "-o", str(tmp_path / "two.lookalike")]) == 0
    assert capsys.readouterr().out.startswith("1 signature of ")


def test_signatures_to_search_by_a_few_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "corpus.jsonl"
    rows = [{"id": str(at), "text": f"the fox number {at} jumps"} for at in range(30)]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    paths = [str(tmp_path / name) for name in ("one.lookalike", "two.lookalike", "three.lookalike")]
    same = ["--method", "topsig", "--ngram", "1", "--bits", "1024", "--fit"]
    given = (["--for", "search"], same, ["--for", "search", "--bits", "256"])
    for path, options in zip(paths, given, strict=True):
        assert main(["sign", str(source), "-o", path, *options]) == 0
    one, two, three = map(la.load_signer, paths)
    assert one == two and one.bits == 1024 and three.bits == 256
    capsys.readouterr()
    for options, said in (
        (["--method", "minhash"], "--method and --for search exclude each other"),
        (["--like", paths[0]], "--like and --for search exclude each other"),
    ):
        typed = ["sign", str(source), "-o", paths[1], "--for", "search", *options]
        assert said in refused(typed, capsys)
