"""The rounds that find repeated text on Spark, without Spark: partitions are lists of batches."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lookalike as la
from lookalike.spark import repeats
from support.running.spark_rounds import found_pieces

_WORDS = st.sampled_from(["a", "B", "ö", "d"])
_ENDS = st.sampled_from([" ", " ", ", ", ". ", "\n", "\n\n"])
_TEXTS = st.lists(
    st.lists(st.tuples(_WORDS, _ENDS).map("".join), max_size=14).map("".join), max_size=9
)

_OPTIONS = st.one_of(
    st.fixed_dictionaries(
        {
            "words": st.integers(2, 5),
            "boundary": st.sampled_from(["word", "auto", "line", "sentence", "paragraph"]),
            "remove": st.sampled_from(["copies", "all"]),
            "keep": st.sampled_from(["first", "last", "longest", "shortest"]),
        }
    ),
    st.fixed_dictionaries(
        {
            "words": st.integers(1, 2),
            "unit": st.sampled_from(["line", "sentence", "paragraph"]),
            "max_documents": st.integers(1, 3),
            "remove": st.sampled_from(["copies", "all"]),
            "keep": st.sampled_from(["first", "last", "longest", "shortest"]),
        }
    ),
)


@given(_TEXTS, st.lists(st.integers(0, 9), max_size=3), st.integers(1, 5), _OPTIONS,
       st.sampled_from([1, 20, 1 << 20]))  # fmt: skip
def test_rounds(
    texts: list[str], cuts: list[int], rows_a_batch: int, options: dict[str, Any], size: int
) -> None:
    """Removed ranges, their words and first copies are those of the local job."""
    local = la.clean(texts, **options, threads=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repeats, "BYTES_A_SLICE", size)
        patch.setattr(repeats, "BYTES_A_BUCKET", 3 * size)
        found, rounds, units = found_pieces(texts, cuts, rows_a_batch, options)
    removals = local.removals
    expected = zip(*(column.tolist() for column in removals[:5]), strict=True)
    assert found == sorted(expected)
    assert rounds == local.rounds
    if "unit" in options:
        counts = local.unit_counts
        columns = (counts.documents, counts.begins, counts.document_counts, counts.place_counts)
        known = [tuple(map(int, row)) for row in zip(*columns, strict=True)]
        mine = [(one["document"], one["word"], one["documents"], one["places"])
                for some in units for one in some]  # fmt: skip
        assert sorted(tuple(map(int, one)) for one in mine) == sorted(known)
