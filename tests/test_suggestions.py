"""What was meant: the known word that is most like the given one."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lookalike as la
from lookalike.suggestions import did_you_mean, did_you_mean_file, nearest_word

WORDS = st.text("abcdefghijklmnopqrstuvwxyz-", min_size=4, max_size=12)


@given(st.lists(WORDS, min_size=1, max_size=8, unique=True), st.data())
def test_a_word_with_one_letter_wrong_is_understood(known: list[str], data: st.DataObject) -> None:
    meant = data.draw(st.sampled_from(known))
    at = data.draw(st.integers(0, len(meant) - 1))
    typed = meant[:at] + data.draw(st.sampled_from(["", "x", meant[at] * 2])) + meant[at + 1 :]
    found = nearest_word(typed, known)
    assert found in known
    if typed in known:
        assert found == typed


def test_what_is_like_nothing_is_left_alone() -> None:
    assert did_you_mean("xyzzy", ["text", "title"]) == ""
    assert did_you_mean("TITLE", ["text", "Title"]) == "; did you mean 'Title'?"
    assert did_you_mean("t" * 101, ["t" * 100]) == ""
    assert did_you_mean(3, []) == ""


def test_files_of_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "corpus.jsonl").write_text("")
    assert did_you_mean_file(tmp_path / "corpus.json").endswith("corpus.jsonl'?")
    assert did_you_mean_file(tmp_path / "none" / "corpus.jsonl") == ""
    assert did_you_mean_file("a\0b") == ""
    monkeypatch.chdir(tmp_path)
    assert did_you_mean_file("corpsu.jsonl") == "; did you mean 'corpus.jsonl'?"
    with pytest.raises(la.errors.FileError, match=r"did you mean 'corpus\.jsonl'\?"):
        la.dedup(Path("corpus.jsnl"))
    with pytest.raises(la.errors.FileError, match=r"did you mean 'corpus\.jsonl'\?"):
        la.load_index("corpus.jsnl")


def test_columns_and_settings_are_asked_for(tmp_path: Path) -> None:
    with pytest.raises(
        la.errors.ArgumentError, match=r"its columns: id, content; did you mean 'content'\?"
    ):
        la.dedup([{"id": "1", "content": "a text"}], text="contents")
    with pytest.raises(la.errors.ArgumentError, match=r"did you mean 'images'\?"):
        la.dedup(["a text"], kind="image")
