"""la.cluster_documents: every row against the oracle, and what is refused."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike.errors import ArgumentError, LookalikeError
from lookalike.indexes.clusters import majority
from lookalike.topics.settings import usual_clusters
from support.oracles import topics as oracle

TEXTS = oracle.scattered(0)


def signed(texts: list[str], **settings: Any) -> Any:
    kind = la.Words(**settings)
    return la.TopSig(4096, features=kind, weights="tfidf").fit(texts).sign(texts)


def check(result: la.results.DocumentClusters, texts: list[str]) -> None:
    """Compare all that a result says with what is computed slowly."""
    rows = signed(texts)
    words = [bool(re.search(r"\w", text)) for text in texts]
    labels, distances = result.labels.tolist(), result.distances.tolist()
    assert [label >= 0 for label in labels] == words
    for row, label in enumerate(labels):
        other = (int(result.other_labels[row]), int(result.other_distances[row]))
        if label < 0:
            assert distances[row] == -1 and other == (-1, -1)
            continue
        nearest, distance, following = oracle.nearest_two(rows[row], result.centers)
        assert label in nearest and distances[row] == distance
        if following is None:
            assert other == (-1, -1)
        else:
            assert other[1] == following and other[0] != label
            far = np.unpackbits(rows[row] ^ result.centers[other[0]]).sum()
            assert far == following
    sizes = [labels.count(number) for number in range(len(result))]
    assert all(sizes) and sizes == sorted(sizes, reverse=True)
    for one in result.clusters:
        assert one.size == sizes[one.number]
        members = [row for row, label in enumerate(labels) if label == one.number]
        assert one.mean_distance == pytest.approx(np.mean([distances[row] for row in members]))
        assert one.central == oracle.central(rows, distances, labels, one.number, 5)
        assert result.members(one.number).tolist() == sorted(
            members, key=lambda row: (distances[row], row)
        )
        expected = oracle.weights(texts, labels, one.number)
        assert [weight for _, weight in one.words] == pytest.approx(
            sorted((w for w in expected.values() if w > 0), reverse=True)[:10]
        )
        assert all(expected[word] == pytest.approx(weight) for word, weight in one.words)


@pytest.mark.parametrize("k", [1, 4, 30])
def test_rows_and_clusters_are_those_of_the_oracle(k: int) -> None:
    result = la.cluster_documents(TEXTS, k)
    check(result, TEXTS)
    assert len(result) == k and result.without_features == 2


@settings(max_examples=25, deadline=None)
@given(
    texts=st.lists(
        st.lists(st.sampled_from(["a", "b", "c", "?"]), max_size=4).map(" ".join), max_size=12
    ),
    data=st.data(),
)
def test_small_corpora_with_copies_and_without_words(texts: list[str], data: Any) -> None:
    having = sum(bool(re.search(r"\w", text)) for text in texts)
    k = data.draw(st.none() | st.integers(1, max(1, having)))
    if k is not None and k > having:
        with pytest.raises(
            ArgumentError, match="no document has words|the documents that have words"
        ):
            la.cluster_documents(texts, k)
        return
    result = la.cluster_documents(texts, k, threads=data.draw(st.integers(1, 3)))
    check(result, texts)
    wanted = usual_clusters(having) if k is None else k
    assert len(result) <= wanted and bool(len(result)) == bool(having)
    equal = dict(zip(texts, result.labels.tolist(), strict=True))
    assert [equal[text] for text in texts] == result.labels.tolist()


def test_subjects_are_told_apart() -> None:
    result = la.cluster_documents(TEXTS, 4)
    for one in result.clusters:
        subjects = {word[:2] for word, _ in one.words[:5]}
        assert len(subjects) == 1
        own = next(iter(subjects))
        assert all(own in result.text(int(row)) for row in result.members(one.number))


def test_the_same_for_any_number_of_threads_and_again() -> None:
    first = la.cluster_documents(TEXTS, 6, threads=1)
    for threads in (1, 2, 5):
        again = la.cluster_documents(TEXTS, 6, threads=threads)
        assert again.to_arrow().equals(first.to_arrow())
        assert again.clusters == first.clusters
    other = la.cluster_documents(TEXTS, 6, seed=1)
    assert not np.array_equal(other.centers, first.centers)


def test_fewer_clusters_where_no_more_differ() -> None:
    result = la.cluster_documents(["one text"] * 5 + ["another story"] * 3, 4)
    assert [one.size for one in result.clusters] == [5, 3]
    assert [len(one.central) for one in result.clusters] == [1, 1]
    assert "4 were asked for, and no more differ" in result.summary()


def test_so_many_clusters_that_a_tree_finds_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tree misses some of the nearest centers; sizes are those of what belongs to each."""
    monkeypatch.setattr(majority, "LARGE", 100)
    chance = random.Random(1)
    words = [f"word{number}" for number in range(3000)]
    texts = [" ".join(chance.choices(words, k=6)) for _ in range(3000)]
    found = la.cluster_documents(texts, k=1000)
    sizes = [one.size for one in found.clusters]
    assert sizes == sorted(sizes, reverse=True)
    assert min(sizes) > 0
    assert np.bincount(found.labels).tolist() == sizes


def test_nothing_and_one_document() -> None:
    empty = la.cluster_documents([])
    assert len(empty) == 0 and empty.to_arrow().num_rows == 0
    blank = la.cluster_documents(["", "?"])
    assert blank.labels.tolist() == [-1, -1] and blank.to_arrow()["cluster"].null_count == 2
    one = la.cluster_documents(["the only fox, the fox"])
    assert one.labels.tolist() == [0] and one.distances.tolist() == [0]
    assert {word for word, _ in one.clusters[0].words} == {"the", "only", "fox"}


def test_tables_have_a_row_for_each_document() -> None:
    rows = [{"id": f"d{at}", "text": text} for at, text in enumerate(TEXTS)]
    result = la.cluster_documents(rows, 4)
    table = result.to_arrow()
    assert table.column_names == [
        *("id", "cluster", "words", "distance", "other_cluster", "other_distance")
    ]
    assert table["id"].to_pylist() == [row["id"] for row in rows]
    known = [None if label < 0 else label for label in result.labels.tolist()]
    assert table["cluster"].to_pylist() == known
    names = [None if label is None else result.clusters[label].name for label in known]
    assert table["words"].to_pylist() == names
    assert [name and len(name.split()) for name in names[:4]] == [3] * 4
    frame = result.to_pandas()
    assert str(frame["cluster"].dtype) == "Int64" and int(frame["cluster"].isna().sum()) == 2
    assert repr(result).startswith("DocumentClusters(documents=120, clusters=4, ")


def test_methods_and_features() -> None:
    several: tuple[dict[str, Any], ...] = (
        {"method": "simhash", "bits": 256},
        {"weights": "log-likelihood", "stem": "english"},
        {"weights": "count", "ngram": (1, 2), "stop_words": "english"},
        {"features": "chars"},
        {"features": "words,chars"},
        {"features": str.split},
        {"words": 0, "central": 0},
    )
    for chosen in several:
        result = la.cluster_documents(TEXTS, 3, **chosen)
        assert len(result) == 3, chosen
        assert result.to_dict()["settings"]["method"] == chosen.get("method", "topsig")
    assert la.cluster_documents(TEXTS).settings.signing.ngram == 1
    assert la.cluster_documents(TEXTS, features="chars").settings.signing.ngram == 5


def test_how_many_clusters_unless_told() -> None:
    assert [usual_clusters(count) for count in (0, 1, 2, 8, 200, 5000, 10**6)] == [
        *(0, 1, 1, 2, 10, 50, 50)
    ]
    assert len(la.cluster_documents(TEXTS)) == usual_clusters(118)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"k": 0}, "k is 0; expected"),
    ({"k": 1.5}, "k is 1.5"),
    ({"k": 119}, "k is 119; expected at most 118, the documents that have words"),
    ({"method": "minhash"}, "method is 'minhash'; expected one of topsig, simhash"),
    ({"method": 3}, "method is 3"),
    ({"bits": 12}, "bits"),
    ({"bits": -8}, "bits is -8"),
    ({"weights": "heavy"}, "weights"),
    ({"words": -1}, "words is -1"),
    ({"central": "x"}, "central is 'x'"),
    ({"seed": -1}, "seed"),
    ({"stem": "klingon"}, "stem is 'klingon'"),
    ({"features": "links,wrods"}, "features"),
    ({"features": "chars", "stem": "english"}, "stem does not go with"),
    ({"ngram": 0}, "ngram"),
    ({"threads": 0}, "threads"),
    ({"skip_bad": "yes"}, "skip_bad"),
    ({"text": "body"}, "no column 'body'"),
    ({"max_document": 0}, "max_document"),
    ({"min_words": -3}, "min_words"),
]


@pytest.mark.parametrize(("given", "message"), BAD, ids=lambda one: str(one)[:30])
def test_what_makes_no_sense_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(LookalikeError, match=re.escape(message)):
        la.cluster_documents(TEXTS, **given)


def test_answers_are_asked_for_what_there_is(tmp_path: Path) -> None:
    result = la.cluster_documents(TEXTS, 3)
    with pytest.raises(ArgumentError, match="row is 120"):
        result.id(120)
    with pytest.raises(ArgumentError, match="row is -1"):
        result.text(-1)
    with pytest.raises(ArgumentError, match="number is 3"):
        result.members(3)
    with pytest.raises(ArgumentError, match="path is 3"):
        result.report(3)  # type: ignore[arg-type]
    with pytest.raises(LookalikeError, match="topics.txt"):
        result.write(tmp_path / "topics.txt")
    assert not list(tmp_path.iterdir())
