"""What the kurtosis of weights consists of (Figure 1 of Sood and Loguinov)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from papers.psm_weights import EUCLID, LENGTH, SUM, Weighed, as_pages, kurtosis, weigh
from papers.psm_weights import kurtosis_parts as parts_of
from papers.texts import made_up


def drawn(weights: list[list[float]], bits: int) -> Weighed:
    """Return documents of these features' weights, with random signs for each bit."""
    generator = np.random.default_rng(0)
    length = np.array([np.linalg.norm(one) for one in weights])
    counters = [
        (generator.choice([-1.0, 1.0], (bits, len(one))) @ one) / np.linalg.norm(one)
        for one in weights
    ]
    return Weighed(
        np.array(counters),
        length,
        np.array([sum(one) for one in weights]),
        np.array([sum(w**4 for w in one) for one in weights]),
        np.array([float(len(one)) for one in weights]),
        np.array([float(len(one)) for one in weights]),
    )


documents = st.lists(st.lists(st.floats(0.5, 4), min_size=1, max_size=12), min_size=2, max_size=5)


@given(documents)
def test_the_parts_add_up_to_the_kurtosis(weights: list[list[float]]) -> None:
    weighed = drawn(weights, 20_000)
    for way, scale in weighed.scales().items():
        unlike, few = parts_of(weighed, scale)
        values = weighed.counters * scale[:, None]
        assert kurtosis(values) == pytest.approx(unlike + few, abs=0.25)
        if way == EUCLID:
            assert unlike == 0
            assert few < 0


def test_exponential_variances_make_laplace() -> None:
    generator = np.random.default_rng(1)
    normal = generator.normal(size=400_000)
    assert kurtosis(normal) == pytest.approx(0, abs=0.05)
    assert kurtosis(np.sqrt(generator.exponential(size=400_000)) * normal) == pytest.approx(
        3, abs=0.3
    )


def test_words_are_weighed_as_simhash_does() -> None:
    weighed = weigh(["the cats and the cat", "dogs dogs dog", "", "a cat, a dog"])
    assert weighed.words.tolist() == [2, 3, 2]
    assert weighed.features.tolist() == [1, 1, 2]
    rare = 1 + np.log(4 / 3)
    assert weighed.total == pytest.approx([2 * rare, 3 * rare, 2 * rare])
    assert weighed.length == pytest.approx([2 * rare, 3 * rare, np.sqrt(2) * rare])
    assert np.abs(weighed.counters[:2]) == pytest.approx(1, abs=1e-6)
    assert weighed.scales()[SUM] == pytest.approx([1, 1, np.sqrt(0.5)])
    assert weighed.scales()[LENGTH] == pytest.approx([rare, rare, np.sqrt(0.5) * rare])


def test_pages_keep_every_word() -> None:
    texts = made_up(200).texts
    for spread in (0.5, 1.1):
        pages = as_pages(texts, spread)
        assert " ".join(pages) == " ".join(texts)
        assert min(len(page.split()) for page in pages[:-1]) >= 20
