"""`lookalike collection`, as people and scripts use it."""

from __future__ import annotations

import io
import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

import lookalike as la
from lookalike.cli import main
from support.running.refusals import refused

ACTIONS = (
    "create", "add", "search", "get", "delete", "stats", "verify", "repair", "snapshot", "restore",
    "import", "export",
)  # fmt: skip


class Shell:
    def __init__(self, folder: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.database = str(folder / "docs.db")
        self._capture = capture

    def __call__(self, action: str, *arguments: str, status: int = 0) -> str:
        """Run an action on the database and return what it prints."""
        assert main(["collection", action, self.database, *arguments]) == status
        printed = self._capture.readouterr()
        assert "Traceback" not in printed.err
        return printed.out if status == 0 else printed.out + printed.err


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(tmp_path, capsys)


@pytest.fixture
def filled(shell: Shell) -> Shell:
    shell("create")
    shell("add", "fox", "The quick brown fox jumps over the lazy dog", "--metadata", '{"n": 1}')
    shell("add", "owl", "The quick brown fox jumped over the lazy dog", "--metadata", '{"n": 2}')
    return shell


def test_every_action_has_help_with_examples(capsys: pytest.CaptureFixture[str]) -> None:
    for action in ACTIONS:
        with pytest.raises(SystemExit) as stop:
            main(["collection", action, "--help"])
        assert stop.value.code == 0
        assert f"  lookalike collection {action} " in capsys.readouterr().out


def test_documents_come_and_go(filled: Shell) -> None:
    text = "The quick brown fox jumps over the lazy dog"
    lines = filled("search", text, "--by", "similar").splitlines()
    assert lines[0].split() == ["100%", "fox", '{"n":', "1}"]
    with la.open_collection(filled.database) as docs:
        owl = docs.search(text, by="similar")[1]
        signer = docs.signer
        assert signer is not None
        near = la.estimated_similarity(signer, owl.distance, docs.bits)
    assert lines[1].split()[:2] == [f"{float(near):.0%}", "owl"]
    lines = filled("search", text, "--radius", "40").splitlines()
    assert lines[0].endswith("  0 bits") and lines[1].endswith(f"  {owl.distance} bits")
    assert "added" in filled("add", "cat", "Something else")
    assert "replaced" in filled("add", "cat", "Quite another thing", "--replace")
    assert "deleted 1 of 2" in filled("delete", "cat", "dog")
    assert "fox" in filled("get", "fox")
    both = filled("get", "fox", "dog", status=1)
    assert "id         fox" in both
    assert "there is no document 'dog'" in both


def test_a_threshold_is_judged_of_all_that_signatures_propose(shell: Shell) -> None:
    words = "one two three four five six seven eight nine ten eleven twelve".split()
    shell("create")
    for at in range(len(words)):
        shell("add", f"{at:02}", " ".join([*words[:at], "other", *words[at + 1 :]]))
    query = " ".join(words)
    told = shell("search", query, "--compare", "--threshold", "0.3", "-k", "100", "--json")
    every = [json.loads(line) for line in told.splitlines()]
    likeness = [line["similarity"] for line in every]
    assert len(every) > 3 and likeness == sorted(likeness, reverse=True)
    best = shell("search", query, "--compare", "--threshold", "0.3", "-k", "2", "--json")
    assert [json.loads(line) for line in best.splitlines()] == every[:2]


def test_documents_are_compared_themselves(
    shell: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    fox, owl = (
        "The quick brown fox jumps over the lazy dog",
        "The quick brown fox jumped over the lazy dog",
    )
    filled = shell
    filled("create")
    filled("add", "fox", fox, "--metadata", '{"n": 1}')
    filled("add", "owl", owl, "--metadata", '{"n": 2}')
    docs = la.open_collection(filled.database)
    features = docs.signer.features  # type: ignore[union-attr]
    docs.close()
    lines = filled("search", fox, "--compare", "--columns", "n,none", "--json").splitlines()
    found = {line["id"]: line for line in map(json.loads, lines)}
    assert found["fox"]["similarity"] == 1
    assert found["owl"]["similarity"] == pytest.approx(la.cosine(fox, owl, features))
    assert found["owl"]["metadata"] == {"n": 2, "none": None}
    near = found["owl"]["similarity"]
    lines = filled("search", "fox", "--by-id", "--compare", "--measure", "containment").splitlines()
    share = la.containment(fox, owl, features)
    assert [line.split()[:2] for line in lines] == [[f"{share:.2%}", "owl"]]
    for threshold, ids in ((near, {"fox", "owl"}), (near + 1e-6, {"fox"}), (1, {"fox"})):
        told = filled("search", fox, "--compare", "--threshold", str(threshold), "--json")
        assert {json.loads(line)["id"] for line in told.splitlines()} == ids
    search = ["collection", "search", filled.database, fox]
    assert "--compare" in refused([*search, "--measure", "jaccard"], capsys)
    assert "use one of them" in refused(
        [*search, "--compare", "--measure", "jaccard", "--threshold", "0.5"], capsys
    )
    zero = "00" * (docs.bits // 8)
    told = refused(["collection", "search", filled.database, zero, "--hex", "--compare"], capsys)
    assert told.startswith("--compare needs a text")
    mute = str(Path(filled.database).with_name("mute.db"))
    assert main(["collection", "create", mute, "--no-text"]) == 0
    assert main(["collection", "add", mute, "fox", fox]) == 0
    capsys.readouterr()
    told = refused(["collection", "search", mute, fox, "--compare"], capsys)
    assert told.startswith("--compare needs stored texts")


def test_searching_for_machines(filled: Shell, tmp_path: Path) -> None:
    query = "The quick brown fox jumps over the lazy dog"
    for plan in ("sql", "native"):
        found = filled("search", query, "--json", "-k", "1", "--explain", "--plan", plan)
        assert json.loads(found) == {
            "id": "fox", "distance": 0, "estimate": 1.0, "metadata": {"n": 1}, "differing_bits": [],
            "slices": [0, 1, 2, 3, 4], "slice_distances": [0] * 5,
        }  # fmt: skip
    near = filled("search", "fox", "--by-id", "--json").splitlines()
    assert [json.loads(line)["id"] for line in near] == ["owl"]
    assert not filled("search", "fox", "--by-id", "--radius", "0")
    only = filled("search", query, "--where", '{"n": 2}', "--json")
    assert json.loads(only)["id"] == "owl"
    document = json.loads(filled("get", "owl", "--json"))
    exact = filled("search", document["signature"], "--hex", "--radius", "0", "--json")
    assert json.loads(exact)["id"] == "owl"
    page = tmp_path / "page.txt"
    page.write_text(query)
    assert filled("search", "--file", str(page), "-k", "1").split()[1] == "fox"


def test_a_few_words(filled: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    printed = filled("search", "lazy zebra, jumping")
    fox, owl = printed.splitlines()
    assert fox.split()[1:] == ["fox", '{"n":', "1}", "shares", "the", "words", "lazy,", "jumping"]
    assert owl.split()[1] == "owl" and owl.split()[0] == fox.split()[0]
    found = json.loads(filled("search", "zebra fox", "-k", "1", "--json", "--columns", "n"))
    assert found["id"] == "fox" and found["words"] == ["fox"] and found["metadata"] == {"n": 1}
    assert 0 < found["score"] < 1
    search = ["collection", "search", filled.database]
    assert main([*search, "zxqv blorp"]) == 0
    out, err = capsys.readouterr()
    assert not out and "no match: no document has 'zxqv' or 'blorp'" in err
    for option in ("--compare", "--explain", "--by-id", "--hex", "--threshold=0.5"):
        assert "is not for --by words" in refused([*search, "fox", "--by", "words", option], capsys)
    assert "leave it out" in refused([*search, "fox", "--by", "words", "--radius", "9"], capsys)


def test_collections_for_a_purpose(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    assert "128 bits by simhash" in (made := shell("create"))
    assert "keyword index (porter)" in made
    assert (
        json.loads(shell("create", "--name", "b", "--words", "plain", "--json"))["words"] == "plain"
    )
    assert "keyword" not in shell("create", "--name", "c", "--for", "duplicates")
    assert "keyword" not in shell("create", "--name", "d", "--kind", "passages")
    create = ["collection", "create", shell.database, "--name", "e", "--words", "plain"]
    assert "with --for duplicates" in refused([*create, "--for", "duplicates"], capsys)
    assert "with --kind signatures" in refused([*create, "--kind", "signatures"], capsys)
    search = ["collection", "search", shell.database, "fox", "--name", "c", "--by", "words"]
    assert "repair DATABASE --words porter" in refused(search, capsys)
    shell("add", "fox", "A quick fox", "--name", "c")
    assert "no errors" in shell("repair", "--name", "c", "--words", "porter")
    assert shell("search", "foxes", "--name", "c").split() == [
        "100%",
        "fox",
        "shares",
        "the",
        "words",
        "foxes",
    ]


def test_standard_input(filled: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("from a pipe"))
    filled("add", "pipe", "-")
    monkeypatch.setattr(sys, "stdin", io.StringIO("from a pipe"))
    assert filled("search", "-", "-k", "1").split()[:2] == ["100%", "pipe"]


def test_care(filled: Shell, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no errors" in filled("verify")
    assert json.loads(filled("verify", "--json"))["ok"] is True
    assert json.loads(filled("stats", "--json"))["documents"] == 2
    assert "journal_mode=TRUNCATE" in filled("stats")
    copy = tmp_path / "copy.db"
    filled("snapshot", str(copy))
    filled("delete", "fox")
    assert main(["collection", "restore", str(copy), filled.database]) == 1
    assert "replace" in capsys.readouterr().err
    assert main(["collection", "restore", str(copy), filled.database, "--replace"]) == 0
    capsys.readouterr()
    assert "fox" in filled("get", "fox")
    connection = sqlite3.connect(filled.database)
    with connection:
        name = connection.execute(
            "SELECT name FROM sqlite_master WHERE name LIKE 'lookalike_keys_%'"
        ).fetchone()[0]
        connection.execute(f"DELETE FROM {name} WHERE key > 100")
    connection.close()
    assert "DAMAGED" in filled("verify", status=1)
    assert json.loads(filled("verify", "--json", status=1).splitlines()[0])["ok"] is False
    assert "no errors" in filled("repair")
    assert "owl" in filled("search", "fox", "--by-id", "--radius", "60")
    assert "no errors" in filled("verify")


def test_import_and_export(shell: Shell, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.jsonl"
    rows = [{"id": f"d{n}", "text": f"document number {n}", "n": n} for n in range(500)]
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows))
    shell("create", "--method", "topsig", "--bits", "256")
    assert shell("import", str(corpus), "--quiet") == "added 500, replaced 0, left out 0\n"
    assert "add --replace to replace them" in shell("import", str(corpus), status=1)
    assert shell("import", str(corpus), "--replace") == "added 0, replaced 500, left out 0\n"
    out = tmp_path / "out.parquet"
    assert "wrote 10 documents" in shell("export", str(out), "--where", '{"n": {"<": 10}}')
    shell("create", "--name", "second", "--kind", "signatures", "--bits", "256")
    assert "added 10" in shell("import", str(out), "--name", "second")
    stats = [json.loads(line) for line in shell("stats", "--json").splitlines()]
    assert [(one["name"], one["documents"]) for one in stats] == [
        ("documents", 500),
        ("second", 10),
    ]


def test_bad_rows_are_left_out_and_good_ones_stay_what_they_are(
    shell: Shell, tmp_path: Path
) -> None:
    deep = '{"a":' * 200 + "1" + "}" * 200
    bad = [
        json.dumps({"id": "x", "text": "t", "metadata": deep}),
        '{"id": "x", "text": "t", "metadata": "{\\"a\\": NaN}"}',
        '{"id": "x", "text": "t", "metadata": "{\\"a\\": \\"\\\\ud800\\"}"}',
        '{"id": "x", "text": "t", "n": 1e999}',
        '{"id": "x", "text": "t", "n": NaN}',
        f'{{"id": "x", "text": "t", "n": 1{"0" * 400}}}',
        '{"id": "x", "text": "\\ud800"}',
        '{"id": "\\udc00", "text": "t"}',
        '{"id": "x\\u0000", "text": "t"}',
        '{"id": "x", "text": null}',
        '{"id": "x", "text": "t"',
        "[]",
    ]
    good = [f'{{"id": "g{place}", "text": "t {place}", "n": {place}}}' for place in range(20)]
    rest = f'"deep": {deep}, "list": {"[" * 500}{"]" * 500}'
    good[7] = f'{{"id": "g7", "text": "t 7", "n": 7, {rest}}}'
    lines = [line for pair in zip(good, bad, strict=False) for line in pair] + good[len(bad) :]
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text("\n".join(lines))
    shell("create")
    assert shell("import", str(corpus), "--quiet", "--skip-bad") == (
        f"added {len(good)}, replaced 0, left out {len(bad)}\n"
    )
    with la.open_collection(shell.database) as docs:
        assert docs.count() == len(good)
        for place in range(20):
            document = docs.get(f"g{place}")
            assert document is not None
            assert document.text == f"t {place}"
            assert document.metadata["n"] == place
        assert docs.verify().ok
    for line in bad:
        corpus.write_text(line)
        printed = shell("import", str(corpus), "--name", "documents", status=1)
        assert printed.startswith("lookalike: ")


def test_numbers_are_no_signatures(shell: Shell, tmp_path: Path) -> None:
    """As many zero bytes as a number says would fit into no memory."""
    table = pyarrow.table({"id": ["a", "b"], "signature": [10**15, 16]})
    pyarrow.parquet.write_table(table, tmp_path / "numbers.parquet")
    shell("create", "--kind", "signatures")
    printed = shell("import", str(tmp_path / "numbers.parquet"), "--skip-bad", "--quiet")
    assert printed == "added 0, replaced 0, left out 2\n"


def test_signers(shell: Shell, tmp_path: Path) -> None:
    shell("create", "--name", "a", "--bits", "64", "--ngram", "3")
    shell("create", "--name", "b", "--method", "bbitminhash", "--bits", "128", "--chars", "4")
    printed = shell("create", "--name", "d", "--ngram", "1,2", "--chars", "4")
    assert "by simhash (bits 128, seed 0, kind Words and Chars)" in printed
    saved = tmp_path / "signer.lookalike"
    la.SimHash(bits=64, seed=5).save(saved)
    shell("create", "--name", "c", "--like", str(saved), "--no-text")
    with la.open_collection(shell.database, "a") as docs:
        assert docs.signer == la.SimHash(bits=64, features=la.Words(ngram=3))
    with la.open_collection(shell.database, "b") as docs:
        assert docs.signer == la.BBitMinHash(permutations=128, features=la.Chars(ngram=4))
    with la.open_collection(shell.database, "d") as docs:
        assert docs.signer == la.SimHash(128, la.Combined(la.Words((1, 2)), la.Chars(4)))
    with la.open_collection(shell.database, "c") as docs:
        assert docs.signer == la.SimHash(bits=64, seed=5)
        assert docs.stats()["keeps_text"] is False


@pytest.mark.parametrize(
    ("action", "arguments", "message"),
    [
        ("create", [], "already has a collection 'documents'"),
        ("create", ["--name", "x", "--method", "md5"], "--method is 'md5'"),
        ("create", ["--name", "x", "--bits", "12"], "12"),
        ("create", ["--name", "x", "--ngram", "2", "--chars", "0"], "--chars is 0"),
        ("create", ["--name", "x", "--ngram", "two"], "such as 1,2"),
        ("add", ["fox", "again"], "a document with this id exists"),
        ("add", ["x", "00", "--hex"], "expected 32 hexadecimal digits"),
        ("add", ["x", "--file", "nowhere.txt"], "nowhere.txt cannot be read"),
        ("add", ["x", "text", "--file", "nowhere.txt"], "--file and TEXT exclude each other"),
        ("add", ["x"], "TEXT is missing"),
        ("create", ["--name", "x", "--kind", "signatures", "--ngram", "2"], "--ngram does nothing"),
        ("create", ["--name", "x", "--method", "simhsh"], "did you mean 'simhash'?"),
        ("search", ["text", "--threshold", "2"], "--threshold is 2.0; expected"),
        ("add", ["x" * 2000, "text"], "expected at most 1000"),
        ("search", ["nobody", "--by-id"], "no document 'nobody'"),
        ("search", ["text", "-k", "0"], "k is 0"),
        ("search", ["text", "--where", '{"a": {"~": 1}}'], "operation '~'"),
        ("search", ["text", "--name", "other"], "no collection 'other'"),
        ("import", ["nowhere.jsonl"], "nowhere.jsonl"),
        ("export", ["out.unknown"], "out.unknown"),
    ],
)
def test_errors_are_one_line(
    filled: Shell,
    action: str,
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert message in refused(["collection", action, filled.database, *arguments], capsys)


def test_no_such_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["collection", "stats", str(tmp_path / "none.db")]) == 1
    assert "there is no file" in capsys.readouterr().err
    assert not (tmp_path / "none.db").exists(), "looking does not make files"


def test_bad_json_is_wrong_usage(filled: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("{", "[1]", "[" * 100_000):
        with pytest.raises(SystemExit) as stop:
            filled("search", "text", "--where", text)
        assert stop.value.code == 2
        assert "JSON" in capsys.readouterr().err


def test_terminals_are_left_alone(filled: Shell) -> None:
    filled("add", "\x1b[2J", "text \x1b[31m red")
    assert "\x1b" not in filled("search", "text red")
    assert "\x1b" not in filled("get", "\x1b[2J")


def test_it_runs_as_a_program(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "lookalike.cli", "collection", "create", "docs.db"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "created the collection 'documents' in docs.db: 128 bits" in result.stdout


def test_vectors_beside_texts(shell: Shell, tmp_path: Path) -> None:
    rows = [
        {"id": "fox", "text": "the quick brown fox", "embedding": [1, 0.5, 0], "n": 1},
        {"id": "owl", "text": "an owl sleeps by day", "embedding": None, "n": 2},
        {"id": "sea", "text": "waves of the sea", "embedding": [0, 0.2, 1], "n": 3},
    ]
    corpus, query = tmp_path / "rows.jsonl", tmp_path / "fox.npy"
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows))
    np.save(query, np.array([1.0, 0.5, 0.0]))
    shell("create")
    assert "has no vectors" in shell("search", "--vector", str(query), status=2)
    assert shell("import", str(corpus), "--vectors", "embedding").startswith("added 3")
    found = shell("search", "--vector", str(query), "--where", '{"n": {"<": 3}}')
    assert found == ' 1.0000  fox  {"n": 1}\n'
    lines = shell("search", "owl day", "--vector", str(query), "--json").splitlines()
    assert [(one["id"], one["ranks"]) for one in map(json.loads, lines)] == [
        ("fox", [0, 1]), ("owl", [1, 0]), ("sea", [0, 2]),
    ]  # fmt: skip
    assert json.loads(shell("get", "fox", "--json"))["vector"] == [1, 0.5, 0]
    assert "vector     3 dimensions" in shell("get", "fox")
    assert "is not for --vector" in shell(
        "search", "--vector", str(query), "--radius", "3", status=2
    )
    np.save(query, np.ones((2, 3)))
    assert "has 2 vectors; expected one" in shell("search", "--vector", str(query), status=2)
    np.save(query, np.ones(4))
    assert "4 dimensions; expected 3" in shell("search", "--vector", str(query), status=2)
    assert "expected a .npy file of one vector" in shell(
        "search", "--vector", str(corpus), status=2
    )
