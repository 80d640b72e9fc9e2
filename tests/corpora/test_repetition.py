"""`max_repetition`: documents that say the same again and again are left out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lookalike as la
from lookalike.corpora.base import pa
from lookalike.corpora.columns import repeated_shares


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=20).map(" ".join), max_size=4))
def test_shares(texts: list[str]) -> None:
    for text, share in zip(texts, repeated_shares(pa.array(texts, pa.large_string())), strict=True):
        words = text.split()
        runs = [tuple(words[at : at + 5]) for at in range(len(words) - 4)]
        # A shorter text is one run.
        assert share == pytest.approx(1 - len(set(runs)) / len(runs) if runs else 0.0)


def test_repetitive_documents_are_left_out() -> None:
    texts = ["buy now and save money " * 20, "a text of some different words only", ""]
    result = la.dedup(texts, max_repetition=0.3)
    assert result.kept() == texts[1:]
    assert result.documents.left_out == {"repetitive": 1}
    with pytest.raises(la.LookalikeError, match="max_repetition"):
        la.dedup(texts, max_repetition=2)
