"""Hypothesis strategies for signatures of every width and temper."""

from __future__ import annotations

from hypothesis import strategies as st

from support.oracles import scan as oracle

# The specialized widths and their neighbors, and anything else up to 4096 bits.
widths = st.one_of(
    st.sampled_from([1, 3, 4, 5, 7, 8, 9, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 256, 512]),
    st.integers(1, 512),
)


@st.composite
def collections(
    draw: st.DrawFn, width: int | None = None, most: int = 70, least: int = 0
) -> oracle.Signatures:
    return oracle.collection(
        draw(st.integers(least, most)),
        draw(widths) if width is None else width,
        draw(st.sampled_from(oracle.STYLES)),
        draw(st.integers(0, 2**32 - 1)),
    )


@st.composite
def collections_with_queries(
    draw: st.DrawFn,
) -> tuple[oracle.Signatures, oracle.Signatures]:
    rows = draw(collections())
    queries = draw(collections(width=rows.shape[1], most=6))
    if len(rows) and len(queries) and draw(st.booleans()):
        queries[0] = rows[draw(st.integers(0, len(rows) - 1))]
    return rows, queries


@st.composite
def distinct_ids(draw: st.DrawFn, count: int) -> list[int] | None:
    return draw(
        st.one_of(
            st.none(),
            st.lists(st.integers(0, 2**63 - 1), min_size=count, max_size=count, unique=True),
        )
    )
