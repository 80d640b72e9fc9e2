"""Who stays, if a function says so, and if nobody is to stay."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike.cli import main
from support.oracles import dedup as dedup_oracle

WORDS = [f"w{number}" for number in range(60)]
RULES = {
    "first": lambda rows: 0,
    "last": lambda rows: rows[-1],
    "longest": lambda rows: max(rows, key=lambda row: len(row["text"])),
    "max:score": lambda rows: max(rows, key=lambda row: row["score"]),
    "min:score": lambda rows: np.argmin([row["score"] for row in rows]),
}


@st.composite
def corpora(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Rows in chains: each like the one before, or the same, or new; in any order."""
    rng = random.Random(draw(st.integers(0, 2**32)))
    texts: list[list[str]] = []
    for _ in range(draw(st.integers(1, 30))):
        how = rng.choice(["new", "edit", "edit", "edit", "same"])
        words = rng.choices(WORDS, k=12) if how == "new" or not texts else list(rng.choice(texts))
        if how == "edit":
            words[rng.randrange(12)] = f"x{rng.randrange(10**6)}"
        texts.append(words)
    return [
        {"n": n, "text": " ".join(words), "score": rng.randrange(4)}
        for n, words in enumerate(texts)
    ]


def near(rows: list[dict[str, Any]], threshold: float) -> set[tuple[int, int]]:
    texts = [row["text"] for row in rows]
    return {
        (one, two)
        for two in range(len(rows))
        for one in range(two)
        if dedup_oracle.jaccard(texts[one], texts[two], 1) >= threshold - 1e-12
    }


def chain_from_an_old_one() -> list[dict[str, Any]]:
    """Rows each like the next: five different ones with the old one and whom it drops, three
    without; one is there three times, and one is like no other.
    """
    texts = [
        "w0 w21 w35 w17 w37 x5 w31 w7 w53 w17 w9 w33",
        "w0 w21 w35 w17 w37 x5 x9 w7 w53 w17 w9 w33",
        "w21 w24 w49 w0 w16 w41 w16 w47 w41 w57 w10 w56",
        "w0 x8 w35 w17 w37 x5 x9 w7 w53 w17 w9 w33",
        *["w0 x8 w35 w17 x4 x5 x9 w7 w53 w17 w9 w33"] * 3,
        "w0 x8 w35 w17 w37 x1 x9 w7 w53 w17 w9 w33",
    ]
    return [{"n": n, "text": text, "score": 0} for n, text in enumerate(texts)]


@settings(max_examples=40, deadline=None)
@example(rows=chain_from_an_old_one(), rule="last", grouping="components", old=1, most=4)
@given(
    rows=corpora(),
    rule=st.sampled_from(sorted(RULES)),
    grouping=st.sampled_from(["star", "components"]),
    old=st.integers(0, 5),
    most=st.sampled_from([2, 4, 1000]),
)
def test_a_function_that_does_what_a_rule_does_keeps_the_same(
    rows: list[dict[str, Any]], rule: str, grouping: str, old: int, most: int
) -> None:
    options: dict[str, Any] = {
        "ngram": 1, "threshold": 0.7, "exact": True, "grouping": grouping,
        "against": rows[:old] or None,
    }  # fmt: skip
    if grouping == "components":
        options["max_group"] = most
    new = rows[old:] or rows[:1]
    by_rule = la.dedup(new, keep=rule, **options)
    by_function = la.dedup(new, keep=RULES[rule], **options)
    same = ["keep"]
    if grouping == "star" or not old:  # rules rank old documents, too, of which one stands for all
        same += ["duplicate_of", "matched_old", "similarity"]
    if not old:
        same += ["group_of"]
    for name in same:
        assert np.array_equal(
            getattr(by_rule, name), getattr(by_function, name), equal_nan=name == "similarity"
        ), name


@settings(max_examples=40, deadline=None)
@given(rows=corpora(), seed=st.integers(0, 9), exact=st.booleans())
def test_whatever_a_function_says_whoever_goes_is_like_one_that_stays(
    rows: list[dict[str, Any]], seed: int, exact: bool
) -> None:
    rng = random.Random(seed)
    asked = set()

    def choose(group: list[dict[str, Any]]) -> Any:
        numbers = tuple(row["n"] for row in group)
        assert len(group) > 1 and numbers == tuple(sorted(numbers))
        assert numbers not in asked  # of the same rows only once
        asked.add(numbers)
        assert all(row == rows[row["n"]] for row in group)
        rng.shuffle(group)  # it is the function's own
        return rng.choice([0, group[-1]])

    result = la.dedup(rows, keep=choose, ngram=1, threshold=0.7, exact=exact)
    pairs = near(rows, 0.7)
    for row, stays in enumerate(result.keep.tolist()):
        other = int(result.duplicate_of[row])
        assert stays == (other < 0)
        assert stays or (result.keep[other] and (min(row, other), max(row, other)) in pairs)
    if exact:
        assert not any(result.keep[one] and result.keep[two] for one, two in pairs)
    assert result.settings.to_dict()["keep"].startswith("function ")
    json.dumps(result.to_dict())


@settings(max_examples=40, deadline=None)
@given(rows=corpora(), grouping=st.sampled_from(["star", "components"]), old=st.integers(0, 5))
def test_none_drops_everyone_that_has_a_near_duplicate(
    rows: list[dict[str, Any]], grouping: str, old: int
) -> None:
    old = min(old, len(rows) - 1)
    result = la.dedup(
        rows[old:], against=rows[:old] or None, keep="none", ngram=1, threshold=0.7,
        exact=True, grouping=grouping,
    )  # fmt: skip
    pairs = {pair for pair in near(rows, 0.7) if pair[1] >= old}
    go = {row for pair in pairs for row in pair if row >= old}
    assert {row + old for row in np.flatnonzero(~result.keep).tolist()} == go
    texts = [row["text"] for row in rows]
    for row in go:
        own, matched = int(result.duplicate_of[row - old]), int(result.matched_old[row - old])
        other = matched if own < 0 else own + old
        assert (own < 0) != (matched < 0) and (min(row, other), max(row, other)) in pairs
        expected = dedup_oracle.jaccard(texts[row], texts[other], 1)
        assert result.similarity[row - old] == pytest.approx(expected)
        if own >= 0:  # the most similar one
            assert not result.keep[own]
            assert expected >= max(
                dedup_oracle.jaccard(texts[row], texts[other], 1)
                for other in range(old, len(texts))
                if other != row
            )
    counts = result.counts
    equal = sum(texts.count(texts[row]) > 1 for row in go)
    assert counts.exact_duplicates == equal and counts.near_duplicates == len(go) - equal
    assert counts.below_threshold == 0
    assert (counts.lowest_similarity is None) == (not go)


@pytest.mark.parametrize("suffix", ["jsonl", "json", "csv", "parquet", "list"])
def test_functions_see_whole_rows_of_every_kind_of_corpus(suffix: str, tmp_path: Path) -> None:
    text = "the quick brown fox jumps over the lazy dog near the river"
    rows = [
        {"id": "a", "text": text, "stars": 3},
        {"id": "b", "text": "minimum wage legislation was debated in parliament", "stars": 9},
        {"id": "c", "text": text, "stars": 5},
    ]
    path: Any = tmp_path / f"c.{suffix}"
    if suffix == "parquet":
        pa.parquet.write_table(pa.Table.from_pylist(rows), path)
    elif suffix == "csv":
        path.write_text(
            "\n".join(["id,text,stars", *(",".join(map(str, r.values())) for r in rows)])
        )
    elif suffix == "json":
        path.write_text(json.dumps(rows))
    elif suffix == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        path = rows
    seen = []

    def best(group: list[dict[str, Any]]) -> dict[str, Any]:
        seen.append([row["id"] for row in group])
        return max(group, key=lambda row: int(row["stars"]))

    result = la.dedup(path, keep=best)
    assert seen == [["a", "c"]]
    assert result.keep.tolist() == [False, True, True] and result.duplicate_of[0] == 2


@pytest.mark.parametrize("answer", [None, 2, -1, "a", {"n": 0}, True, 0.0, [0]])
def test_other_answers_are_refused(answer: Any) -> None:
    with pytest.raises(la.errors.ArgumentError, match="expected one of the rows that it was given"):
        la.dedup([{"text": "one two three four five six"}] * 2, keep=lambda rows: answer)


def test_errors_of_the_function_are_the_callers() -> None:
    with pytest.raises(ZeroDivisionError):
        la.dedup([{"text": "one two three four five six"}] * 2, keep=lambda rows: 1 // 0)


def test_a_work_folder_goes_on_with_another_function(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text('{"text": "one two three four five six"}\n' * 3)
    first = la.dedup(path, work=tmp_path / "work", keep=lambda rows: 1)
    last = la.dedup(path, work=tmp_path / "work", keep=lambda rows: 2)
    assert first.keep.tolist() == [False, True, False]
    assert last.keep.tolist() == [False, False, True]
    assert "verify" in last.reused


def test_none_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("c.txt").write_text(
        "one two three four five six\nown words\none two three four five six\n"
    )
    assert main(["dedup", "c.txt", "--keep", "none", "-o", "o.txt", "--report", "r.html"]) == 0
    assert Path("o.txt").read_text() == "own words\n"
    assert "which is also dropped" in capsys.readouterr().out
    page = Path("r.html").read_text()
    assert "no document of a group is kept" in page and "none is kept" in page
    assert main(["dedup", "c.txt", "--keep", "nobody"]) == 2
    assert "shortest, none, max:COLUMN" in capsys.readouterr().err


def test_what_goes_with_its_whole_group_is_known_next_time(tmp_path: Path) -> None:
    seen = tmp_path / "seen.lookalike"
    text, other = "a text that has a few words more than others", "quite another text of its own"
    la.dedup([text, text, other], keep="none", save_signatures=seen)
    again = la.dedup([text, "something nobody has ever written before"], against=seen)
    assert again.keep.tolist() == [False, True]
    assert len(la.load_signatures(seen).signatures) == 2
