"""Search and pairs by similarity, and what the corpus has of the documents that were found."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lookalike as la
from lookalike.cli import main
from support.cases import cli_corpus
from support.oracles import dedup as oracle
from support.running.refusals import refused

TEXTS = cli_corpus.many(150, seed=2)
SIGNERS = {
    "minhash": la.BBitMinHash(128, 16, la.Words(ngram=2)),
    "simhash": la.SimHash(256, la.Words()),
    "tfidf": la.SimHash(256, la.Words(), weights="tfidf").fit(TEXTS),
}


@pytest.fixture(params=SIGNERS)
def signer(request: pytest.FixtureRequest, folder: Path) -> Any:
    chosen = SIGNERS[request.param]
    rows = np.flatnonzero(np.arange(len(TEXTS)) % 7 != 3)  # as if some had been left out
    texts = [TEXTS[row] for row in rows]
    ids = [f"id {row}" for row in rows]
    la.save_signatures("signatures.lookalike", chosen.sign(texts), chosen, ids)
    return chosen


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [
        {"id": f"id {row}", "n": row, "Title": f"title of {row}", "text": text}
        for row, text in enumerate(TEXTS)
    ]
    Path("corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def exact(signer: Any, one: str, two: str) -> float:
    if isinstance(signer, la.BBitMinHash):
        return float(la.jaccard(one, two, signer.features))
    return float(la.cosine(one, two, signer.features, signer.weights))


def searched(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    assert main(["search", "signatures.lookalike", *arguments, "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("threshold", [0.6, 0.9, 1.0])
def test_estimates_are_at_least_the_threshold(
    signer: Any, threshold: float, capsys: pytest.CaptureFixture[str]
) -> None:
    index = la.open_index("signatures.lookalike")
    given = [TEXTS[1], TEXTS[2], TEXTS[30]]
    found = searched(capsys, *given, "--threshold", str(threshold))
    rows = index.living()[0]
    for answer, query in zip(found, signer.sign(given), strict=True):
        distances = la.hamming(np.repeat(query[None], len(rows), axis=0), rows)
        estimates = la.estimated_similarity(signer, distances, signer.bits)
        expected = {index.name(at) for at in np.flatnonzero(estimates >= threshold).tolist()}
        assert {one["id"] for one in answer["results"]} == expected
        assert answer["exact"]


@pytest.mark.parametrize("threshold", [0.6, 0.9])
def test_with_the_corpus_at_hand_similarities_are_exact(
    signer: Any, threshold: float, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those at the threshold may be missed, but in this corpus none is near it."""
    given = [TEXTS[1], TEXTS[2], TEXTS[30], "nothing like it"]
    found = searched(capsys, *given, "--threshold", str(threshold), "--in", "corpus.jsonl")
    for query, answer in zip(given, found, strict=True):
        truth = {f"id {row}": exact(signer, query, text) for row, text in enumerate(TEXTS)}
        expected = [id for id, value in truth.items() if value >= threshold]
        kept = [id for id in expected if int(id[3:]) % 7 != 3]
        results = {one["id"]: one["similarity"] for one in answer["results"]}
        assert sorted(results) == sorted(kept)
        assert all(results[id] == pytest.approx(truth[id], abs=1e-4) for id in results)
        assert list(results.values()) == sorted(results.values(), reverse=True)
        assert not answer["exact"]


def test_pairs_by_similarity(signer: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pairs", "signatures.lookalike", "--threshold", "0.7", "-o", "estimated.csv"]) == 0
    assert "of 0.7 or more (estimated) among" in capsys.readouterr().out
    with open("estimated.csv") as file:
        estimated = list(csv.DictReader(file))
    assert estimated and all(float(row["estimate"]) >= 0.7 for row in estimated)
    command = ["pairs", "signatures.lookalike", "--threshold", "0.7", "--in", "corpus.jsonl"]
    assert main([*command, "--json", "--quiet"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    there = [row for row in range(len(TEXTS)) if row % 7 != 3]
    expected = {
        (f"id {one}", f"id {two}"): value
        for place, one in enumerate(there)
        for two in there[place + 1 :]
        if (value := exact(signer, TEXTS[one], TEXTS[two])) >= 0.7
    }
    assert {(row["left"], row["right"]) for row in found} == set(expected)
    for row in found:
        assert row["similarity"] == pytest.approx(expected[row["left"], row["right"]], abs=1e-4)


@pytest.mark.parametrize("signer", ["simhash"], indirect=True)
def test_columns_of_what_was_found(signer: Any, capsys: pytest.CaptureFixture[str]) -> None:
    more = ["-k", "2", "--in", "corpus.jsonl", "--columns", "Title,n"]
    (answer,) = searched(capsys, TEXTS[0], *more)
    assert answer["results"][0]["id"] == "id 0"
    assert answer["results"][0]["columns"] == {"Title": "title of 0", "n": "0"}
    assert answer["results"][0]["similarity"] == 1
    assert main(["search", "signatures.lookalike", TEXTS[0], *more]) == 0
    head, first, _ = capsys.readouterr().out.splitlines()
    assert head.split() == "query id distance estimate similarity exact Title n".split()
    assert first.endswith("title of 0   0") and "1.0000" in first
    error = refused(["search", "signatures.lookalike", "x", *more[:-1], "title"], capsys)
    assert "has no column 'title' for the answers" in error and "did you mean 'Title'?" in error


@pytest.mark.parametrize("signer", ["simhash"], indirect=True)
def test_documents_that_the_corpus_does_not_have_are_counted(
    signer: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = Path("corpus.jsonl").read_text().splitlines()
    Path("part.jsonl").write_text("\n".join(lines[1:]) + "\n")
    assert main(["search", "signatures.lookalike", TEXTS[0], "-k", "2", "--in", "part.jsonl"]) == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines()[-1].split()[-2:] == ["-", "yes"]
    assert "1 document of the index not found in" in shown.err
    assert main(["pairs", "signatures.lookalike", "--radius", "120", "--in", "part.jsonl"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {line.split("\t")[-1] for line in lines if line.startswith("id 0\t")} == {"-"}


def test_positions_are_rows(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An index that knows no ids has documents by their position, in the corpus too."""
    chosen = SIGNERS["simhash"]
    index = la.ScanIndex(chosen.sign(TEXTS))
    index.signer = chosen
    index.save("signatures.lookalike")
    (answer,) = searched(capsys, TEXTS[5], "-k", "1", "--in", "corpus.jsonl", "--columns", "n")
    assert answer["results"][0]["columns"] == {"n": "5"}


@pytest.mark.parametrize("signer", ["simhash"], indirect=True)
def test_a_file_is_what_is_in_it(
    signer: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    explicit = searched(capsys, "--file", "corpus.jsonl", "-k", "1")
    assert main(["search", "signatures.lookalike", "corpus.jsonl", "-k", "1", "--json"]) == 0
    shown = capsys.readouterr()
    assert [json.loads(line) for line in shown.out.splitlines()] == explicit
    assert shown.err == "lookalike: corpus.jsonl is a file; searching for its content\n"
    np.savez("queries.npz", signatures=signer.sign(TEXTS[:3]))
    found = searched(capsys, "queries.npz", "-k", "1")
    assert [one["results"][0]["id"] for one in found] == ["id 0", "id 1", "id 2"]
    Path("note.md").write_text(TEXTS[9])
    (answer,) = searched(capsys, "note.md", "-k", "1")
    assert answer["results"][0]["id"] == "id 9"
    monkeypatch.setattr("sys.stdin", __import__("io").StringIO(TEXTS[8]))
    (answer,) = searched(capsys, "-", "-k", "1")
    assert answer["results"][0]["id"] == "id 8"


def test_collections_are_searched_by_similarity(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = SIGNERS["simhash"]
    with la.open_collection("docs.db", signer=chosen) as docs:
        docs.add([str(row) for row in range(60)], TEXTS[:60])
    call = ["collection", "search", "docs.db", TEXTS[1], "-k", "60", "--json", "--threshold", "0.8"]
    assert main(call) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    distances = la.hamming(np.repeat(chosen.sign(TEXTS[1:2]), 60, axis=0), chosen.sign(TEXTS[:60]))
    estimates = la.estimated_similarity(chosen, distances, 256)
    assert {int(one["id"]) for one in found} == set(np.flatnonzero(estimates >= 0.8).tolist())
    with la.open_collection("bare.db", bits=64) as docs:
        docs.add(["a"], signatures=np.zeros((1, 8), np.uint8))
    error = refused(
        ["collection", "search", "bare.db", "00" * 8, "--hex", "--threshold", "0.8"], capsys
    )
    assert "--threshold needs the signer of the documents" in error


@pytest.mark.parametrize("method", ["simhash", "topsig"])
def test_copies_are_found_at_a_similarity_of_one(
    method: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Cosines of equal documents come out beside 1 by rounding."""
    texts = [f"these are {number} words of a document, and {number} more" for number in range(20)]
    Path("twice.txt").write_text("".join(f"{text}\n" for text in texts * 2))
    assert main(["sign", "twice.txt", "--method", method, "-o", "signatures.lookalike"]) == 0
    one = ["--threshold", "1", "--in", "twice.txt"]
    assert main(["pairs", "signatures.lookalike", *one, "-o", "pairs.csv", "--quiet"]) == 0
    with open("pairs.csv", newline="") as file:
        found = [(int(row["left"]), int(row["right"])) for row in csv.DictReader(file)]
    assert found == [(number, number + 20) for number in range(20)]
    capsys.readouterr()
    for number, answer in enumerate(searched(capsys, *texts, *one)):
        assert [int(row["id"]) for row in answer["results"]] == [number, number + 20]


def test_an_id_of_several_documents_is_not_looked_up(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first of them would be compared instead of the one that was found."""
    other = "completely different words that have nothing in common with the others"
    rows = [("a", TEXTS[0]), ("b", TEXTS[1]), ("b", TEXTS[1]), ("a", other), ("c", other)]
    lines = [json.dumps({"id": id, "text": text}) for id, text in rows]
    Path("corpus.jsonl").write_text("\n".join(lines) + "\n")
    assert main(["sign", "corpus.jsonl", "-o", "signatures.lookalike"]) == 0
    capsys.readouterr()
    with_corpus = ["--threshold", "0.9", "--in", "corpus.jsonl"]
    # Two that are equal are as good as one.
    (answer,) = searched(capsys, TEXTS[1], *with_corpus)
    assert [(row["id"], row["similarity"]) for row in answer["results"]] == [("b", 1), ("b", 1)]
    for command in (["search", "signatures.lookalike", other], ["pairs", "signatures.lookalike"]):
        assert main([*command, *with_corpus]) != 0
        assert "several documents have 'a'; sign with --id" in capsys.readouterr().err


@pytest.mark.parametrize("measure", ["jaccard", "cosine", "containment"])
@pytest.mark.parametrize("threshold", ["0.3", "1"])
def test_any_measure_of_every_document(
    signer: Any, measure: str, threshold: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Signatures propose what they estimate; by other measures every document is compared."""
    query = " ".join(TEXTS[30].split()[:8])
    given = ["--threshold", threshold, "--in", "corpus.jsonl", "--measure", measure]
    found = searched(capsys, query, TEXTS[2], *given)
    own = "jaccard" if isinstance(signer, la.BBitMinHash) else "cosine"
    names = la.open_index("signatures.lookalike").names or ()
    for answer, text in zip(found, (query, TEXTS[2]), strict=True):
        texts = {name: TEXTS[int(name.split()[1])] for name in names}
        if measure == own:
            true = {name: exact(signer, text, other) for name, other in texts.items()}
        else:
            true = {
                name: float(getattr(la, measure)(text, other, signer.features))
                for name, other in texts.items()
            }
        expected = {name for name, value in true.items() if value >= float(threshold) - 1e-12}
        results = {row["id"]: row["similarity"] for row in answer["results"]}
        assert results == {name: pytest.approx(true[name], abs=1e-4) for name in results}
        assert results.keys() == expected if measure != own else results.keys() <= expected
        assert answer["exact"] == (measure != own)


def test_a_measure_needs_documents(
    signer: Any, capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    command = ["search", "signatures.lookalike", "a text", "--measure", "containment"]
    assert main(command) != 0
    assert "--measure needs the signed corpus: --in CORPUS" in capsys.readouterr().err
    given = ["--signatures", "signatures.lookalike", "--in", "corpus.jsonl"]
    command.remove("a text")
    assert main([*command, *given]) != 0
    assert "--measure compares documents, but --signatures has none" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("measure", "limited"),
    [
        ("jaccard", True),
        ("containment", True),
        ("weighted-jaccard", True),
        ("weighted-jaccard", False),
        ("weighted-containment", False),
    ],
)
def test_features_weigh_by_their_rarity_in_the_corpus(
    signer: Any, measure: str, limited: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """Features that more than N documents have do not count; every document is compared."""
    given = ["--threshold", "0.2", "--in", "corpus.jsonl", "--measure", measure]
    common = (30 if signer.features.ngram == 1 else 2) if limited else None
    given += [] if common is None else ["--common", str(common)]
    (answer,) = searched(capsys, TEXTS[2], *given)
    sets = {
        text: set(oracle.shingles(text, signer.features.ngram)) for text in dict.fromkeys(TEXTS)
    }
    rare = measure.startswith("weighted-")
    weights = oracle.frequency_weights(list(sets.values()), rare=rare, common=common)
    assert common is None or 0.0 in weights.values()
    expected = {}
    for name in la.open_index("signatures.lookalike").names or ():
        other = sets[TEXTS[int(name.split()[1])]]
        base = measure.removeprefix("weighted-")
        value = oracle.weighted_similarity(base, sets[TEXTS[2]], other, weights)
        if value >= 0.2 - 1e-9:
            expected[name] = pytest.approx(value, abs=1e-4)
    assert {row["id"]: row["similarity"] for row in answer["results"]} == expected
    assert answer["exact"]
    similarities = [row["similarity"] for row in answer["results"]]
    assert len(similarities) and similarities == sorted(similarities, reverse=True)


def test_common_is_refused_where_it_does_nothing(
    signer: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["search", "signatures.lookalike", "a text", "--common", "3"]
    assert "--common needs the signed corpus: --in CORPUS" in refused(command, capsys)
    command += ["--in", "corpus.jsonl", "--measure", "cosine"]
    assert "--common does nothing for cosine" in refused(command, capsys)
    command = ["search", "signatures.lookalike", "a text", "--in", "corpus.jsonl"]
    assert "--common is 1" in refused([*command, "--common", "1"], capsys)
