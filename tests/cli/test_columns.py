"""Every command that takes a corpus finds the same columns in it."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

import lookalike as la
from lookalike.cli import main
from lookalike.corpora.columns import ID_GUESSES, TEXT_GUESSES

TEXT = "The quick brown fox jumps over the lazy dog and runs into the dark forest."
OTHER = "Minimum wage legislation was debated in parliament on Tuesday afternoon."
DOCUMENTS = {"a": TEXT, "b": TEXT, "c": OTHER}


def dedup(corpus: str, folder: Path, printed: Callable[[], str]) -> dict[str, str]:
    pairs, out = folder / "pairs.csv", folder / "out.jsonl"
    assert main(["dedup", corpus, "--pairs", str(pairs), "-o", str(out), "--quiet"]) == 0
    (pair,) = csv.DictReader(pairs.read_text().splitlines())
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    texts = {row[id]: row[text] for row in rows for id, text in [list(row)[:2]]}
    return {**texts, pair["right"]: texts[pair["left"]]}


def dedup_against(corpus: str, folder: Path, printed: Callable[[], str]) -> dict[str, str]:
    new = folder / "new.jsonl"
    new.write_text("".join(json.dumps({"text": text}) + "\n" for text in (TEXT, OTHER)))
    result = la.dedup(new, against=corpus)
    assert not result.keep.any()
    documents = len(result.documents) - len(result.keep)
    return {str(result.old_id(row)): result.old_text(row) for row in range(documents)}


def sign(corpus: str, folder: Path, printed: Callable[[], str]) -> dict[str, str]:
    file = folder / "signatures.lookalike"
    assert main(["sign", corpus, "-o", str(file), "--quiet"]) == 0
    saved = la.load_signatures(file)
    assert saved.ids is not None
    signer: Any = saved.signer
    texts = {bytes(signer.sign([text])[0]): text for text in DOCUMENTS.values()}
    return {id: texts[bytes(row)] for id, row in zip(saved.ids, saved.signatures, strict=True)}


def search(corpus: str, folder: Path, printed: Callable[[], str]) -> dict[str, str]:
    file, known = folder / "known.lookalike", folder / "known.jsonl"
    texts = {"t": TEXT, "o": OTHER}
    known.write_text(
        "".join(json.dumps({"id": id, "text": text}) + "\n" for id, text in texts.items())
    )
    assert main(["sign", str(known), "-o", str(file), "--quiet"]) == 0
    printed()
    assert main(["search", str(file), "--file", corpus, "-k", "1", "--json"]) == 0
    answers = [json.loads(line) for line in printed().splitlines()]
    assert all(one["results"][0]["distance"] == 0 for one in answers)
    return {one["query"]: texts[one["results"][0]["id"]] for one in answers}


def compare(corpus: str, folder: Path, printed: Callable[[], str]) -> dict[str, str]:
    equal = {}
    for other in ("b", "c"):
        assert main(["compare", "--in", corpus, "a", other, "--json"]) == 0
        equal[other] = json.loads(printed())["equal"]
    return {"a": TEXT, "b": TEXT if equal["b"] else OTHER, "c": TEXT if equal["c"] else OTHER}


def collection_import(corpus: str, folder: Path, printed: Callable[[], str]) -> dict[str, str]:
    database = str(folder / "docs.db")
    assert main(["collection", "create", database]) == 0
    assert main(["collection", "import", database, corpus, "--quiet"]) == 0
    with la.open_collection(database) as docs:
        found = docs.get_many(list(DOCUMENTS))
    return {one.id: one.text or "" for one in found if one is not None}


COMMANDS = [dedup, dedup_against, sign, search, compare, collection_import]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("id", "text"),
    [("key", "abstract"), *zip(ID_GUESSES, cycle(TEXT_GUESSES), strict=False)],
)
def test_obvious_columns_are_found(
    command: Callable[..., dict[str, str]],
    id: str,
    text: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text(
        "".join(json.dumps({id: key, text: value}) + "\n" for key, value in DOCUMENTS.items())
    )
    assert command(str(corpus), tmp_path, lambda: capsys.readouterr().out) == DOCUMENTS


@pytest.mark.parametrize("command", ["dedup", "sign", "search", "compare", "collection import"])
def test_the_only_column_has_the_texts(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = tmp_path / "corpus.csv"
    corpus.write_text(f"story\n{TEXT}\n{OTHER}\n")
    signatures, database = str(tmp_path / "s.lookalike"), str(tmp_path / "docs.db")
    assert main(["sign", str(corpus), "-o", signatures]) == 0
    assert main(["collection", "create", database]) == 0
    arguments = {
        "dedup": ["dedup", str(corpus)],
        "sign": ["sign", str(corpus), "-o", str(tmp_path / "other.npy")],
        "search": ["search", signatures, "--file", str(corpus)],
        "compare": ["compare", "--in", str(corpus), "0", "1"],
        "collection import": ["collection", "import", database, str(corpus)],
    }
    assert main(arguments[command]) == 0
    if command == "collection import":
        with la.open_collection(database) as docs:
            assert [docs.get(id).text for id in ("row-0", "row-1")] == [TEXT, OTHER]  # type: ignore[union-attr]


def test_an_only_column_of_signatures_is_no_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus, database = tmp_path / "corpus.csv", str(tmp_path / "docs.db")
    corpus.write_text("signature\n" + "00" * 16 + "\n")
    assert main(["collection", "create", database, "--kind", "signatures"]) == 0
    assert main(["collection", "import", database, str(corpus)]) == 0
    with la.open_collection(database) as docs:
        assert docs.get("row-0").text is None  # type: ignore[union-attr]
