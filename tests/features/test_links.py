"""Features of links."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import lookalike as la
from lookalike.features import feature_kind_from_dict
from lookalike.features.base import reads_links
from support.cases.web_pages import page

ONE = page(
    "Alpha beta gamma.", links='<p>Read <a href="http://x.example/a#part">this page</a> now.</p>'
)
TWO = page("Other words here.", links='<p>Read <a href="http://x.example/a">this page</a> now.</p>')
NONE = page("No links at all.")


def features(kind: la.Links, html: str) -> set[str]:
    from lookalike.features.links import marked_texts

    return set(kind._features(marked_texts([html], 0)[0]))


def test_what_links_are() -> None:
    everything = features(la.Links(around=2), ONE)
    assert everything == {
        "url http://x.example/a",
        *("anchor this", "anchor page"),
        *("around gamma", "around read", "around now"),
    }
    assert features(la.Links(anchors=False, around=0), ONE) == {"url http://x.example/a"}
    assert features(la.Links(urls=False, around=0), ONE) == {"anchor this", "anchor page"}
    assert features(la.Links(), NONE) == set()


def test_pages_are_alike_by_their_links() -> None:
    assert la.jaccard(ONE, TWO, la.Links(around=1)) == 1
    assert la.jaccard(ONE, TWO, la.Links(around=3)) < 1
    assert la.jaccard(ONE, TWO, la.Words()) < 1
    signatures = la.SimHash(64, features=la.Links(around=0)).sign([ONE, TWO, NONE])
    assert np.array_equal(signatures[0], signatures[1])
    assert la.Links().counts(["plain text", NONE, ONE]).tolist()[:2] == [0, 0]


def test_they_are_kept_like_other_features() -> None:
    kind = la.Links(anchors=False, around=3)
    assert feature_kind_from_dict(kind.to_dict()) == kind
    assert pickle.loads(pickle.dumps(kind)) == kind
    assert reads_links(kind)
    assert not reads_links(la.Words())


def test_what_leaves_nothing_is_refused() -> None:
    with pytest.raises(la.errors.ArgumentError, match="leaves no features"):
        la.Links(urls=False, anchors=False, around=0)
    with pytest.raises(
        la.errors.DocumentError, match="document 1 has elements nested more than 1,000 levels deep"
    ):
        la.Links().counts([ONE, "<div>" * 3000])
