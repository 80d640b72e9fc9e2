"""`la.decontaminate`: every rule compared with all n-grams, and what is done with what it finds."""

from __future__ import annotations

import json
import subprocess
import sys
from math import ceil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lookalike as la
from lookalike.cli import main
from support.oracles.cleaning import words_of
from support.oracles.passages import passages_between, runs_between

_WORDS = st.lists(st.sampled_from(["a", "b", "C", "d"]), max_size=14)
_TEXTS = st.lists(_WORDS.map(" ".join), min_size=1, max_size=4)


def expected(
    text: str, item: str, *, rule: str, ngram: int, shortest: int, share: float, gap: int
) -> bool:
    """Return whether a text contains an item."""
    words, own = words_of(item), words_of(text)
    if len(words) < shortest:
        return False
    piece = min(ngram, len(words))
    runs = runs_between(words, own, piece)
    if not runs or rule == "ngram":
        return bool(runs)
    if rule == "near":
        least = max(1, ceil(share * len(words) - 1e-9))
        return bool(passages_between(words, own, piece=piece, gap=gap, min_words=least))
    if rule == "run":
        return max(run[2] for run in runs) / len(words) >= share - 1e-9
    grams = range(len(words) - piece + 1)
    have = {tuple(own[at : at + piece]) for at in range(len(own) - piece + 1)}
    found = sum(tuple(words[at : at + piece]) in have for at in grams)
    return found / len(grams) >= share - 1e-9


@given(
    _TEXTS,
    _TEXTS,
    st.sampled_from(["ngram", "share", "run", "near"]),
    st.integers(1, 6),
    st.integers(1, 3),
    st.sampled_from([0.3, 0.5, 0.8, 1.0]),
)
def test_rules(
    texts: list[str], items: list[str], rule: str, ngram: int, shortest: int, share: float
) -> None:
    shortest = min(shortest, ngram)
    options = {"rule": rule, "ngram": ngram, "shortest": shortest}
    if rule != "ngram":
        options["min_share"] = share
    if rule == "near":
        options["gap"] = 2
    result = la.decontaminate(texts, items, **options, threads=2)  # type: ignore[arg-type]
    found = {(one.row, hit.number) for one in result.contaminated for hit in one.evidence}
    assert found == {
        (row, number)
        for row, text in enumerate(texts)
        for number, item in enumerate(items)
        if expected(text, item, rule=rule, ngram=ngram, shortest=shortest, share=share, gap=2)
    }
    assert result.skipped_items == sum(len(words_of(item)) < shortest for item in items)


QUESTION = "If a train leaves the station at noon and drives for two hours, when does it arrive?"
OTHER = "Which of these four metals is a liquid at the temperature of a usual room?"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    evals = tmp_path / "evals"
    evals.mkdir()
    rows = [{"id": "q1", "question": QUESTION, "answer": "at two"}, {"id": "q2", "question": OTHER}]
    (evals / "trains.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (evals / "plain.txt").write_text(f"short\n{OTHER}\n")
    texts = ["Nothing here. " * 30, f"{'x y ' * 200} {QUESTION.upper()} {'z w ' * 200}", "End"]
    train = [{"id": f"t{at}", "text": text, "n": at} for at, text in enumerate(texts)]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in train))
    return tmp_path


def test_the_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train, evals = str(folder / "train.jsonl"), str(folder / "evals")
    files = {name: folder / name for name in ("out.jsonl", "hits.csv", "report.html")}
    call = ["decontaminate", train, "--benchmarks", evals, "-o", str(files["out.jsonl"])]
    more = ["--hits", str(files["hits.csv"]), "--report", str(files["report.html"])]
    assert main([*call, *more]) == 0
    shown = capsys.readouterr().out
    assert "trains.jsonl" in shown and "plain.txt" in shown
    made = [json.loads(line) for line in files["out.jsonl"].read_text().splitlines()]
    assert [row["id"] for row in made] == ["t0", "t2"]
    assert "t1,trains.jsonl,q1" in files["hits.csv"].read_text()
    assert "trains.jsonl" in files["report.html"].read_text()
    assert main([*call, "--action", "cut", "--margin", "10", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["contaminated"] == 1
    made = [json.loads(line) for line in files["out.jsonl"].read_text().splitlines()]
    assert len(made) == 3 and "TRAIN" not in made[1]["text"] and "x y" in made[1]["text"]
    assert main([*call, "--action", "mark"]) == 0
    made = [json.loads(line) for line in files["out.jsonl"].read_text().splitlines()]
    assert [row["contaminated_by"] for row in made] == ["", "trains.jsonl:q1", ""]
    assert main([*call, "--columns", "nothing"]) == 2
    assert main([*call, "--gap", "3"]) == 2
    assert "--gap is for --rule near" in capsys.readouterr().err


def test_a_clean_benchmark(folder: Path) -> None:
    result = la.decontaminate(folder / "train.jsonl", folder / "evals")
    counts = {one.benchmark: one for one in result.by_benchmark()}
    assert (counts["trains.jsonl"].contaminated, counts["plain.txt"].contaminated) == (1, 0)
    target = folder / "clean.jsonl"
    assert result.write_benchmark(target, name="trains.jsonl") == 1
    assert json.loads(target.read_text())["id"] == "q2"
    with pytest.raises(la.LookalikeError, match="name"):
        result.write_benchmark(target)


def test_columns_are_looked_for_together(folder: Path) -> None:
    train = [f"{QUESTION} at two", QUESTION]
    found = la.decontaminate(
        train, folder / "evals" / "trains.jsonl", columns=["question", "answer"], rule="run",
        min_share=1.0,
    )  # fmt: skip
    assert [one.row for one in found.contaminated] == [0]


def test_a_list_of_files_or_texts(tmp_path: Path) -> None:
    """A string that names a file is not an item: nothing would be found, and nothing said so."""
    item = " ".join(f"wörd{at}" for at in range(20))
    (tmp_path / "one.txt").write_text(item)
    (tmp_path / "two.txt").write_text("another text " * 500)
    texts = ["nothing in common", f"before é {item} after"]
    names = [str(tmp_path / "one.txt"), str(tmp_path / "two.txt")]
    for benchmarks in (names, list(map(Path, names)), [item, "x " * 5000]):
        found = la.decontaminate(texts, benchmarks)
        assert [one.row for one in found.contaminated] == [1]
        evidence = found.contaminated[0].evidence
        assert [texts[1][slice(*one.characters)] for one in evidence] == [item]
    assert [one.name for one in la.decontaminate(texts, names).benchmarks] == ["one.txt", "two.txt"]
    with pytest.raises(la.LookalikeError, match="not a file, but others of the list are"):
        la.decontaminate(texts, [*names, "missing.txt"])


def test_files_of_one_name_are_different_benchmarks(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "test.txt").write_text(" ".join(f"{name}{at}" for at in range(20)))
    files = [tmp_path / name / "test.txt" for name in ("a", "b")]
    found = la.decontaminate([files[0].read_text()], files)
    counts = [(one.benchmark, one.documents) for one in found.by_benchmark()]
    assert counts == [(str(files[0]), 1), (str(files[1]), 0)]


def test_many_hits_in_one_batch() -> None:
    """Each document has its own hits, in the order of its items."""
    items = [" ".join(f"w{item}x{at}" for at in range(13)) for item in range(30)]
    texts = [" é ".join(items[at] for at in range(30) if (at + row) % 3) for row in range(40)]
    found = la.decontaminate(texts, items)
    assert [one.row for one in found.contaminated] == list(range(40))
    for row, one in enumerate(found.contaminated):
        assert [each.number for each in one.evidence] == [at for at in range(30) if (at + row) % 3]
        for each in one.evidence:
            assert texts[row][slice(*each.characters)] == items[each.number]


def test_a_collection(tmp_path: Path) -> None:
    with la.open_collection(tmp_path / "docs.db", signer=la.SimHash(bits=64)) as collection:
        collection.add(["one", "two"], [f"So {QUESTION}", "Something else"])
        found = la.decontaminate(collection, [QUESTION])
    assert [one.id for one in found.contaminated] == ["one"]


BAD = [
    ({"rule": "some"}, "rule"),
    ({"action": "burn"}, "action"),
    ({"ngram": 0}, "ngram"),
    ({"shortest": 14}, "shortest"),
    ({"min_share": 0.5}, "min_share"),
    ({"rule": "share", "min_share": 2}, "min_share"),
    ({"margin": 3}, "margin"),
]


@pytest.mark.parametrize(("options", "named"), BAD)
def test_wrong_options_are_refused(options: dict[str, object], named: str) -> None:
    with pytest.raises(la.LookalikeError, match=named):
        la.decontaminate(["a"], ["b"], **options)  # type: ignore[arg-type]
    with pytest.raises(la.LookalikeError, match="benchmarks"):
        la.decontaminate(["a"], [])


def test_pandas_is_not_imported(tmp_path: Path) -> None:
    train, test = tmp_path / "train.jsonl", tmp_path / "test.jsonl"
    train.write_text('{"text": "x"}\n')
    test.write_text('{"question": "one two three", "n": 1}\n')
    program = (
        "import sys, lookalike as la\n"
        f"found = la.decontaminate({str(train)!r}, {str(test)!r})\n"
        "found.write(sys.argv[1])\n"
        "print('pandas' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "out.jsonl")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["False"]
