"""Weights, flips and batches on the command line: what Python finds, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lookalike as la
from lookalike import SignatureFile
from lookalike.cli import main
from support.cases.tables import found
from support.running.refusals import refused

WORDS = np.array([f"word{number}" for number in range(400)])


def texts(count: int, seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, 60)) for _ in range(count)]


def edited(documents: list[str], seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    changed = []
    for text in documents:
        words = text.split()
        words[rng.integers(len(words))] = "changed"
        changed.append(" ".join(words))
    return changed


def write(path: Path, documents: list[str]) -> None:
    lines = (json.dumps({"id": f"d{at}", "text": text}) for at, text in enumerate(documents))
    path.write_text("\n".join(lines) + "\n")


def documents_of(path: str) -> list[str]:
    return [json.loads(line)["text"] for line in Path(path).read_text().splitlines()]


SIGN = ["--method", "simhash", "--bits", "64", "--ngram", "1", "--quiet"]
SIGNER = la.SimHash(64, la.Words())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a corpus, queries near some of it, and both signed with weights."""
    folder = tmp_path_factory.mktemp("match")
    corpus = texts(300, 0)
    queries = [*edited(corpus[:40], 1), *texts(10, 2), *edited(corpus[:5], 3)]
    for name, documents in (("corpus", corpus), ("queries", queries)):
        write(folder / f"{name}.jsonl", documents)
        output = ["-o", str(folder / f"{name}.lookalike")]
        assert main(["sign", str(folder / f"{name}.jsonl"), *SIGN, "--bit-weights", *output]) == 0
    plain = ["-o", str(folder / "plain.lookalike")]
    assert main(["sign", str(folder / "queries.jsonl"), *SIGN, *plain]) == 0
    for kind in ("flips", "blocks", "slices"):
        output = ["-o", str(folder / f"{kind}.index"), "--type", kind, "--quiet"]
        assert main(["index", str(folder / "corpus.lookalike"), *output]) == 0
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder that the others lie in by their names."""
    for path in made.iterdir():
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def lines(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    assert main([*arguments, "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def answers(printed: list[dict[str, Any]]) -> list[list[tuple[int, Any]]]:
    return [[(one["distance"], one["id"]) for one in line["results"]] for line in printed]


def test_weights_are_saved_with_signatures(folder: Path) -> None:
    saved = la.load_signatures("queries.lookalike")
    documents = documents_of("queries.jsonl")
    signatures, weights = SIGNER.sign_with_weights(documents, quantized=True)
    assert saved.weights is not None and saved.weights.dtype == np.int16
    assert np.array_equal(saved.weights, weights)
    assert np.array_equal(saved.signatures, signatures)
    assert la.load_signatures("plain.lookalike").weights is None


def test_weights_of_documents_that_are_left_out_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path("some.jsonl"), ["one two", "?!", "three four"])
    for method in ("simhash", "topsig"):
        options = ["--method", method, "--bit-weights", "--quiet", "-o", "some.lookalike"]
        assert main(["sign", "some.jsonl", *options]) == 0
        saved = la.load_signatures("some.lookalike")
        signer: Any = saved.signer
        again = signer.sign_with_weights(["one two", "three four"], quantized=True)
        assert np.array_equal(saved.signatures, again[0])
        assert saved.weights is not None and np.array_equal(saved.weights, again[1])


def test_weights_that_are_not_those_of_the_signatures_are_refused(tmp_path: Path) -> None:
    signatures, weights = SIGNER.sign_with_weights(["one two three", "four five six"])
    path = tmp_path / "file"
    with pytest.raises(la.errors.ArgumentError, match="weights of signature 0 have other signs"):
        la.save_signatures(path, signatures, SIGNER, weights=weights[::-1])
    with pytest.raises(la.errors.ArgumentError, match=r"weights have shape \(1, 64\)"):
        la.save_signatures(path, signatures, SIGNER, weights=weights[:1])
    with pytest.raises(la.errors.ArgumentError, match="weights are .*expected numbers"):
        la.save_signatures(path, signatures, SIGNER, weights=weights.astype(str))
    assert not path.exists()
    la.save_signatures(path, signatures, SIGNER, ["a", "b"], weights=weights)
    saved = la.load_signatures(path)
    assert saved.weights is not None
    assert np.array_equal(saved.weights, la.signatures.quantize_weights(weights))
    good = path.read_bytes()
    at = good.index(saved.weights.tobytes()) + 9
    path.write_bytes(good[:at] + bytes([good[at] ^ 4]) + good[at + 1 :])
    with pytest.raises(la.errors.CorruptIndexError, match="'weights' has the checksum"):
        la.load_signatures(path)


def test_flips_of_texts_and_of_files_are_those_of_python(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    index = la.load_index("flips.index")
    assert isinstance(index, la.FlipIndex) and index.names is not None
    saved = la.load_signatures("queries.lookalike")
    documents = documents_of("queries.jsonl")
    signatures, weights = SIGNER.sign_with_weights(documents)
    names = index.names
    for options, how in (
        ([], {}),
        (["--recall", "0.8"], {"recall": 0.8}),
        (["--recall", "1"], {"recall": 1}),
        (["--flips", "2"], {"flips": 2}),
        (["--recall", "0.9", "--first"], {"recall": 0.9, "first": True}),
    ):
        some = how and how != {"recall": 1}
        for queries, behind in (
            (["--file", "queries.jsonl"], weights),
            (["--signatures", "queries.lookalike"], saved.weights),
        ):
            settings: Any = {**how, "weights": behind} if some else how
            expected = index.within(signatures, 8, **settings)
            printed = lines(capsys, "search", "flips.index", *queries, "--radius", "8", *options)
            named = [[(far, names[id]) for far, id in each] for each in found(expected)]
            assert answers(printed) == named
            assert {line["exact"] for line in printed} == {expected.exact}
    exact = lines(capsys, "search", "blocks.index", "--file", "queries.jsonl", "--radius", "8")
    first = lines(
        capsys, "search", "blocks.index", "--file", "queries.jsonl", "--radius", "8", "--first"
    )
    for one, all_of_it in zip(answers(first), answers(exact), strict=True):
        assert len(one) == min(1, len(all_of_it)) and set(one) <= set(all_of_it)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["flips.index", "text", "--recall", "0.9"], "--recall needs --radius or --threshold"),
        (["blocks.index", "text", "--radius", "3", "--recall", "0.9"], "--recall needs"),
        (["slices.index", "text", "--radius", "3", "--first"], "--first needs"),
        (["flips.index", "text", "--radius", "3", "--flips", "1", "--recall", "1"], "use one of"),
        (["flips.index", "text", "--radius", "3", "--recall", "1.5"], "--recall is 1.5; expected"),
        (
            ["flips.index", "text", "--radius", "3", "--flips", "9", "--exact"],
            "--exact exclude each other",
        ),
        (
            ["flips.index", "text", "--radius", "3", "--recall", ".9", "--exact"],
            "exclude each other; use",
        ),
        (["flips.index", "text", "--radius", "3", "--flips", "-1"], "--flips is -1; expected"),
        (
            ["flips.index", "--signatures", "plain.lookalike", "--radius", "3", "--recall", "0.9"],
            "plain.lookalike has no bit weights",
        ),
        (
            ["flips.index", "t", "--threshold", "0.9", "--first", "--in", "corpus.jsonl"],
            "--first does nothing with --threshold",
        ),
    ],
)
def test_options_of_search_that_do_nothing_are_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert message in refused(["search", *arguments], capsys)


def test_a_signer_without_weights_has_no_likeliest_flips(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    signer = la.BBitMinHash(64)
    index = la.FlipIndex(signer.sign(texts(20, 0)))
    index.signer = signer
    index.save("minhash.index")
    arguments = ["minhash.index", "some text", "--radius", "3", "--recall", "0.9"]
    assert "whose bits have no weights" in refused(["search", *arguments], capsys)
    sign = ["sign", "corpus.jsonl", "--bit-weights", "-o"]
    assert "requires --method simhash or topsig" in refused([*sign, "x.lookalike"], capsys)
    assert "requires an output called NAME.lookalike" in refused(
        [*sign, "x.npy", "--method", "simhash"], capsys
    )


def test_indexes_are_built_with_their_own_options(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    build = ["index", "corpus.lookalike", "-o", "out.index", "--type"]
    assert main([*build, "flips", "--header-bits", "5"]) == 0
    assert "a header of 5 bits" in capsys.readouterr().out
    assert la.load_index("out.index").stats()["header_bits"] == 5
    assert main([*build, "blocks", "--radius", "2", "--blocks", "5", "--lead", "2"]) == 0
    assert "10 tables for a radius of 2" in capsys.readouterr().out
    stats = la.load_index("out.index").stats()
    assert (stats["lead"], len(stats["blocks"]), stats["widest"]) == (2, 5, 3)
    for kind, option in (
        ("slices", "--header-bits"), ("flips", "--radius"), ("flips", "--blocks"),
        ("blocks", "--header-bits"), ("scan", "--lead"), ("flips", "--slice-bits"),
    ):  # fmt: skip
        message = refused([*build, kind, option, "3"], capsys)
        assert message == f"{option} does nothing with --type {kind}"
    for options, message in (
        (["blocks", "--blocks", "3"], "--radius is 3 and --blocks is 3: every block may"),
        (["blocks", "--blocks", "65"], "--blocks is 65 and signatures have 64 bits"),
        (["blocks", "--blocks", "5", "--lead", "3"], "--lead is 3 of 5 blocks"),
        (["flips", "--header-bits", "65"], "--header-bits is 65; expected"),
    ):
        assert message in refused([*build, *options], capsys)


def matched(
    capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[list[dict[str, Any]], list[str]]:
    assert main(["match", *arguments, "--json"]) == 0
    printed = capsys.readouterr()
    return [json.loads(line) for line in printed.out.splitlines()], printed.err.splitlines()


@pytest.mark.parametrize("options", [
    [], ["--first"], ["--algorithm", "blocks"],
    ["--algorithm", "blocks", "--first", "--tables", "7"],
    ["--recall", "0.8"], ["--flips", "3"], ["--duplicates"], ["--recall", "1", "--duplicates"],
    ["--duplicates", "--first", "--algorithm", "blocks"], ["--chunk", "70", "--no-append"],
])  # fmt: skip
def test_a_batch_finds_what_it_finds_in_python(
    folder: Path, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    corpus, queries = (la.load_signatures(f"{name}.lookalike") for name in ("corpus", "queries"))
    none, said = matched(capsys, "typed.runs", "corpus.lookalike", "--radius", "0")
    assert [line["results"] for line in none] == [[]] * 300
    assert said[1] == "  appended to typed.runs with ids from 0 to 299"
    la.match_batch("python.runs", corpus.signatures)
    settings: dict[str, Any] = {"method": "flips"}
    words = iter(options)
    for word in words:
        name = word.removeprefix("--").replace("-", "_")
        if name in ("first", "duplicates"):
            settings[name] = True
        elif name == "no_append":
            settings["append"] = False
        else:
            value = next(words)
            name = "method" if name == "algorithm" else name
            settings[name] = value if name == "method" else float(value)
            if name in ("tables", "flips", "chunk"):
                settings[name] = int(value)
    if settings["method"] == "flips":
        settings["weights"] = queries.weights
    expected = la.match_batch("python.runs", queries.signatures, 6, **settings)
    printed, said = matched(capsys, "typed.runs", "queries.lookalike", "--radius", "6", *options)
    assert answers(printed) == found(expected)
    assert [line["query"] for line in printed] == queries.ids
    assert {line["exact"] for line in printed} == {expected.exact}
    assert Path("typed.runs").read_bytes() == Path("python.runs").read_bytes()
    many = int(np.count_nonzero(np.diff(expected.offsets)))
    assert said[0].startswith(f"55 queries, {many} with {len(expected.ids)} matches within 6 of 64")
    assert said[0].endswith("; some may be missing") == (not expected.exact)
    assert any("appended" in line for line in said) == ("--no-append" not in options)
    estimates = la.estimated_similarity(queries.signer, expected.distances, 64)
    told = [one["estimate"] for line in printed for one in line["results"]]
    assert told == np.round(estimates, 4).tolist()


def test_batches_one_after_the_other_find_the_earlier_ones(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As many as a single batch with its duplicates, whatever the batches; a table as JSON."""
    queries = la.load_signatures("queries.lookalike").signatures
    expected = la.match_batch("all.runs", queries, 6, method="blocks", duplicates=True)
    for batch in ("1", "7", "54", "100"):
        Path("typed.runs").unlink(missing_ok=True)
        arguments = ["typed.runs", "plain.lookalike", "--radius", "6", "--batch", batch]
        printed, _ = matched(capsys, *arguments, "--duplicates", "--quiet")
        assert answers(printed) == found(expected)
        assert SignatureFile("typed.runs").runs == [
            min(int(batch), 55 - begin) for begin in range(0, 55, int(batch))
        ]
    Path("typed.runs").unlink()
    assert main(["match", *arguments, "--duplicates"]) == 0
    shown = capsys.readouterr()
    rows = [line.split("\t") for line in shown.out.splitlines()]
    assert rows[0] == ["query", "id", "distance", "estimate"]
    assert [(int(far), int(id)) for _, id, far, _ in rows[1:]] == [
        one for each in found(expected) for one in each
    ]


def test_ids_of_the_queries_are_kept_and_runs_are_merged(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = la.load_signatures("queries.lookalike")
    ids = np.arange(55)[::-1] * 3 + 1000
    arrays: dict[str, Any] = {"signatures": saved.signatures, "weights": saved.weights, "ids": ids}
    np.savez("numbered.npz", **arrays)
    printed, said = matched(capsys, "typed.runs", "numbered.npz", "--recall", "1", "--duplicates")
    assert [line["query"] for line in printed] == ids.tolist()
    assert said[1] == "  appended to typed.runs with ids from 1000 to 1162"
    again, _ = matched(capsys, "typed.runs", "numbered.npz", "--compact", "--radius", "0")
    assert all(line["query"] in [one["id"] for one in line["results"]] for line in again)
    assert SignatureFile("typed.runs").runs == [110]
    assert main(["match", "typed.runs", "--compact"]) == 0
    assert capsys.readouterr().err == "110 signatures in one run: typed.runs\n"
    arrays["weights"] = -la.signatures.restore_weights(arrays["weights"])
    np.savez("wrong.npz", **arrays)
    message = refused(["match", "typed.runs", "wrong.npz"], capsys)
    assert message.startswith("wrong.npz cannot be used: weights of signature 0 have other signs")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["typed.runs"], "QUERIES is missing; pass a file of signatures to match, or --compact"),
        (["typed.runs", "--compact", "--first"], "--first does nothing without QUERIES"),
        (["typed.runs", "--compact", "--radius", "4"], "--radius does nothing without QUERIES"),
        (["typed.runs", "--compact", "--json"], "--json does nothing without QUERIES"),
        (
            ["typed.runs", "--compact", "--max-matches", "4"],
            "--max-matches does nothing without QUERIES",
        ),
        (
            ["typed.runs", "queries.lookalike", "--compact", "--no-append"],
            "--no-append does not change",
        ),
        (["typed.runs", "--compact"], "typed.runs cannot be read"),
        (["typed.runs", "queries.lookalike", "--no-append"], "without --no-append it is made"),
        (
            ["typed.runs", "plain.lookalike", "--recall", "0.9"],
            "does nothing with --algorithm blocks",
        ),
        (
            ["typed.runs", "plain.lookalike", "--algorithm", "flips", "--recall", "0.9"],
            "plain.lookalike has no bit weights",
        ),
        (
            ["typed.runs", "queries.lookalike", "--tables", "4"],
            "does nothing with --algorithm flips",
        ),
        (
            ["typed.runs", "queries.lookalike", "--flips", "4", "--recall", "0.5"],
            "--flips and --recall exclude",
        ),
        (["typed.runs", "queries.lookalike", "--batch", "0"], "--batch is 0; expected"),
        (["typed.runs", "queries.lookalike", "--radius", "-1"], "--radius is -1; expected"),
        (["queries.lookalike", "queries.lookalike"], "FILE is queries.lookalike, which is"),
        (["corpus.jsonl", "queries.lookalike"], "corpus.jsonl is not a signature file"),
        (["nowhere/typed.runs", "queries.lookalike"], "does not exist"),
        (["typed.runs", "queries.jsonl"], "queries.jsonl is not a lookalike file"),
    ],
)
def test_what_match_cannot_do_is_told(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert message in refused(["match", *arguments], capsys)
    assert not Path("typed.runs").exists()


def test_a_batch_that_fails_says_what_was_appended_before(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The last batch has more matches than allowed: all that came before are there."""
    signatures = np.zeros((30, 8), np.uint8)
    signatures[:20] = np.random.default_rng(0).integers(0, 256, (20, 8))
    np.save("queries.npy", signatures)
    arguments = ["match", "typed.runs", "queries.npy", "--batch", "10", "--duplicates"]
    assert main([*arguments, "--radius", "0", "--max-matches", "9", "--json"]) == 1
    printed = capsys.readouterr()
    assert len(printed.out.splitlines()) == 20
    assert printed.err.splitlines()[0] == "lookalike: warning: 20 queries before this were appended"
    assert SignatureFile("typed.runs").runs == [10, 10]
