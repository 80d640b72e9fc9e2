"""The papers' experiments, on a tiny scale: they run, and what they count is right."""

from __future__ import annotations

import gzip
import json
import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from papers.__main__ import DOCUMENTS, main
from papers.page import Section, markdown_table
from papers.psm_texts import attempts, flip_odds
from papers.slides import variance_factor
from papers.texts import ABSTRACTS, made_up, read_texts
from papers.worked_examples import worked_examples

import lookalike as la
from lookalike.errors import FileError

EXPECTED = {
    "issl": ["Table 1", "Table 2", "Figure 2", "Figure 3", "Culling", "500 million"],
    "draft": ["Table 1", "Figure 1", "Figure 2"],
    "slides": ["The worked examples", "b-bit MinHash", "Manku's parameters"],
    "psm": [
        *("Table 1", "Figure 1", "Figure 2", "Figure 3", "Figure 6", "Total recall"),
        *(
            "Section 8.3",
            "Equations (8) to (23)",
            "Table 2",
            "Table 2 once more",
            "Figure 5",
            "Figure 7",
            "Figure 8",
            "Figure 9(a)",
        ),
        "Figure 9(b)",
    ],
    "matchcode": ["Four equal chunks"],
}


@pytest.mark.parametrize("name", [document.name for document in DOCUMENTS])
def test_a_page_has_every_table_and_figure(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LOOKALIKE_DATA", raising=False)
    assert main(["--scale", "tiny", "--only", name, "--output", str(tmp_path)]) == 0
    page = (tmp_path / "papers.md").read_text()
    titles = re.findall(r"^### (.*)$", page, re.MULTILINE)
    assert len(titles) == len(EXPECTED[name])
    for title, expected in zip(titles, EXPECTED[name], strict=True):
        assert title.startswith(expected)
    pictures = re.findall(r"\]\((papers/.*)\)", page)
    assert len(pictures) >= sum(title.startswith("Figure") for title in titles)
    assert page.count("at the size `tiny`, with made-up texts.*") == len(titles)
    for picture in pictures:
        assert (tmp_path / picture).read_bytes().startswith(b"\x89PNG")
    for line in page.splitlines():
        assert "nan" not in line or not line.startswith("|")
    tables = re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE)
    for table in tables:
        assert len({line.count("|") for line in table.splitlines()}) == 1


def test_every_document_is_expected() -> None:
    assert list(EXPECTED) == [document.name for document in DOCUMENTS]


def test_the_scale_comes_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("LOOKALIKE_DATA", raising=False)
    monkeypatch.setenv("SCALE", "tiny")
    assert main(["--only", "matchcode", "--output", str(tmp_path)]) == 0
    assert "size `tiny`" in (tmp_path / "papers.md").read_text()
    monkeypatch.setenv("SCALE", "huge")
    with pytest.raises(SystemExit):
        main(["--output", str(tmp_path)])
    assert "SCALE is 'huge'" in capsys.readouterr().err


def test_missing_data_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Made-up texts must not be taken for real ones."""
    arguments = ["--scale", "tiny", "--only", "draft", "--output", str(tmp_path)]
    assert main([*arguments, "--data", str(tmp_path)]) == 1
    assert f"{ABSTRACTS} cannot be read" in capsys.readouterr().err


# Texts


def test_texts_are_read_and_thinned(tmp_path: Path) -> None:
    with gzip.open(tmp_path / ABSTRACTS, "wt") as file:
        for number in range(10):
            row = {"abstract": f"text {number}", "categories": "a,b"}
            file.write(json.dumps(row) + "\n")
        file.write(json.dumps({"abstract": "  ", "categories": "a"}) + "\n")
    texts = read_texts(tmp_path, ABSTRACTS, 4)
    assert texts.texts == ["text 0", "text 3", "text 6", "text 9"]
    assert texts.categories == ["a"] * 4
    assert len(read_texts(tmp_path, ABSTRACTS, 100).texts) == 10
    enlarged = read_texts(tmp_path, ABSTRACTS, 10).enlarged(25)
    assert len(enlarged.texts) == 25
    assert "15 pseudo-documents" in enlarged.origin
    (tmp_path / ABSTRACTS).write_bytes(b"not gzip")
    with pytest.raises(FileError):
        read_texts(tmp_path, ABSTRACTS, 4)


def test_made_up_texts_are_the_same_each_time_and_have_near_duplicates() -> None:
    texts = made_up(300)
    assert texts == made_up(300)
    pairs = la.ScanIndex(la.SimHash(64).sign(texts.texts)).pairs(3)
    assert len(pairs.left) > 3
    assert len(set(texts.texts)) > 280


# Figures that can be counted


def test_attempts_are_places_in_the_order_of_probability() -> None:
    generator = np.random.default_rng(0)
    for size in (1, 2, 3):
        odds = generator.normal(size=(20, 8))
        sets = [set(one) for one in combinations(range(8), size)]
        flips = np.zeros((20, 8), bool)
        for row in flips:
            row[generator.choice(8, size, replace=False)] = True
        for row, flipped, place in zip(odds, flips, attempts(odds, flips), strict=True):
            ordered = sorted(sets, key=lambda one: -sum(row[list(one)]))
            assert ordered[place - 1] == set(np.flatnonzero(flipped))


def test_volatile_bits_are_those_of_small_weights() -> None:
    differences = np.random.default_rng(0).normal(size=10_000).astype(np.float32)
    odds = flip_odds(np.array([[0.0, -0.1, 0.5, -2.0, 9.0]], np.float32), differences)
    assert (np.diff(odds[0]) < 0).all()
    assert odds[0, 0] == pytest.approx(0, abs=0.1)  # a coin toss


def test_the_worked_examples_come_out_as_printed_but_for_the_slips() -> None:
    section = worked_examples()
    differing = {row[0]: row[2] for row in section.rows if row[1] != row[2]}
    assert differing == {
        "similarity of S1, S3 (true)": "1 (0.6)",
        "permuted table": "0010, 0010, 0011, 0111, 1100",
    }
    assert len(section.rows) == 9


def test_the_variance_of_one_bit_as_on_the_slides() -> None:
    """b = 1, R = 0.5: 3 times the variance; 64 / 3 = 21.3 times smaller."""
    assert variance_factor(1, 0.5) == pytest.approx(3)
    assert 64 / variance_factor(1, 0.5) == pytest.approx(21.3, abs=0.05)
    assert variance_factor(16, 0.5) == pytest.approx(1, abs=1e-3)


# Pages


def test_a_section_is_markdown() -> None:
    section = Section("Table 9: t", "Text.", ("a", "b"), [("1", "2")], ["p.png"])
    assert section.markdown("papers") == (
        "### Table 9: t\n\nText.\n\n| a | b |\n| --- | ---: |\n| 1 | 2 |\n\n"
        "![Table 9: t](papers/p.png)"
    )
    assert markdown_table(("a",), [("x",)]) == "| a |\n| --- |\n| x |"
