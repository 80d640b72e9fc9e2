"""A few words searched for in an index of signatures: what is found, and what is said."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from lookalike.cli import main
from lookalike.features import Words, similarity_pairs

SUBJECTS = "fox owl music player terminal window parser library network printer".split()


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    rng = np.random.default_rng(6)
    rows = [
        {"id": f"d{at:03}", "text": " ".join(rng.choice([*SUBJECTS, *map(str, range(90))], 40))}
        for at in range(200)
    ]
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def searched(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[list[str], str]:
    assert main(["search", *arguments]) == 0
    told = capsys.readouterr()
    return told.out.splitlines(), told.err


@pytest.mark.parametrize(
    ("method", "unknown"),
    [(["--method", "minhash"], "music player"), (["--method", "simhash"], "zxqv blorp"),
     (["--for", "search"], "zxqv blorp")],
)  # fmt: skip
def test_what_is_near_by_chance_is_no_match(
    corpus: Path, method: list[str], unknown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    index = str(corpus.with_suffix(".lookalike"))
    assert main(["sign", str(corpus), "-o", index, *method]) == 0
    capsys.readouterr()
    found, said = searched(capsys, index, unknown)
    assert f"no match for '{unknown}'" in said
    assert len(found) == 2 and not any("d0" in line or "d1" in line for line in found)
    assert "`lookalike sign --for search`" in said or "--for" in method
    (line,), said = searched(capsys, index, unknown, "--json")
    assert len(json.loads(line)["results"]) == 10 and "no match" in said
    text = json.loads(corpus.read_text().splitlines()[7])["text"]
    found, said = searched(capsys, index, text, "-k", "1")
    assert "no match" not in said and "d007" in found[-1]
    _, said = searched(capsys, index, unknown, "--radius", "9")
    assert "no match" not in said  # an empty answer says it already


@pytest.mark.parametrize("extra", [[], ["--measure", "jaccard"]])
def test_documents_are_sorted_by_the_similarity_that_is_printed(
    corpus: Path, extra: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    index = str(corpus.with_suffix(".lookalike"))
    assert main(["sign", str(corpus), "-o", index, "--method", "topsig", "--ngram", "1"]) == 0
    capsys.readouterr()
    query = "music player fox owl terminal 7 8"
    lines, _ = searched(capsys, index, query, "--in", str(corpus), "-k", "30", "--json", *extra)
    (answer,) = map(json.loads, lines)
    rows = answer["results"]
    values = [row["similarity"] for row in rows]
    assert len(values) == 30 and values == sorted(values, reverse=True)
    assert [row["distance"] for row in rows] != sorted(row["distance"] for row in rows)
    texts = {row["id"]: row["text"] for row in map(json.loads, corpus.read_text().splitlines())}
    measure = "jaccard" if extra else "cosine"
    for row in rows[:3]:
        (value,) = similarity_pairs(
            measure, [query, texts[row["id"]]], np.array([0]), np.array([1]), Words(ngram=1)
        )
        assert row["similarity"] == pytest.approx(value, abs=1e-4)
