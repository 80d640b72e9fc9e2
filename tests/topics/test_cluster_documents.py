"""la.cluster_documents: every row against the oracle, and what is refused."""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike import _native
from lookalike.errors import ArgumentError, LookalikeError
from lookalike.topics import job
from lookalike.topics import space as topic_space
from lookalike.topics.centers import nearest, usual_clusters
from lookalike.topics.listed import Listed
from lookalike.topics.space import TopicSpace, unit
from support.oracles import topics as oracle

TEXTS = oracle.scattered(0)


def check(result: la.results.DocumentClusters, texts: list[str]) -> None:
    """Compare all that a result says with what is computed slowly."""
    words = [bool(re.search(r"\w", text)) for text in texts]
    labels, others = result.labels.tolist(), result.other_labels.tolist()
    near, next_near = result.similarities.tolist(), result.other_similarities.tolist()
    assert [label >= 0 for label in labels] == words
    for row, label in enumerate(labels):
        if label < 0:
            assert others[row] == -1 and math.isnan(near[row]) and math.isnan(next_near[row])
        elif len(result) == 1:
            assert others[row] == -1 and math.isnan(next_near[row])
        else:
            assert others[row] not in (-1, label) and next_near[row] <= near[row] <= 1.0001
    sizes = [labels.count(number) for number in range(len(result))]
    assert all(sizes) and sizes == sorted(sizes, reverse=True)
    assert np.linalg.norm(result.centers, axis=1) == pytest.approx(1, abs=1e-4)
    for one in result.clusters:
        assert one.size == sizes[one.number]
        members = [row for row, label in enumerate(labels) if label == one.number]
        assert one.mean_similarity == pytest.approx(np.mean([near[row] for row in members]))
        ordered = sorted(members, key=lambda row: (-near[row], row))
        assert result.members(one.number).tolist() == ordered
        different = [row for at, row in enumerate(ordered) if first_of(texts, ordered, at)]
        assert one.central == different[:5]
        expected = oracle.weights(texts, labels, one.number)
        assert all(expected[word] == pytest.approx(weight) for word, weight in one.words)
        weights = [weight for _, weight in one.words]
        assert weights == sorted(weights, reverse=True)


def first_of(texts: list[str], rows: list[int], at: int) -> bool:
    return all(texts[row] != texts[rows[at]] for row in rows[:at])


@pytest.mark.parametrize("k", [1, 4, 30])
def test_rows_and_clusters_are_those_of_the_oracle(k: int) -> None:
    result = la.cluster_documents(TEXTS, k)
    check(result, TEXTS)
    assert len(result) == k and result.without_features == 2


def test_points_have_the_cosines_of_all_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """With as many dimensions as documents, nothing is lost."""
    monkeypatch.setattr(topic_space, "_FEW_DIMENSIONS", 64)
    texts = [*TEXTS[:8], "", "one", "one two"]
    listed = Listed.of(la.Words(), _native.Documents.from_list(texts, 0), 2)
    space = TopicSpace.fit(listed, 0, 2, np.empty(0, np.uint64))
    found = space.points(space.entries(listed), 2)
    assert found @ found.T == pytest.approx(oracle.cosines(texts), abs=1e-3)
    lengths = np.linalg.norm(found, axis=1)
    assert lengths[8] == 0 and lengths[[*range(8), 9, 10]] == pytest.approx(1, abs=1e-5)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_the_nearest_two_centers_are_those_of_brute_force(data: Any) -> None:
    numbers = np.random.default_rng(data.draw(st.integers(0, 1000)))
    points, centers = (
        unit(numbers.integers(-2, 3, (count, 3)).astype(np.float32))
        for count in (data.draw(st.integers(1, 30)), data.draw(st.integers(1, 6)))
    )
    found, values = nearest(points, centers, 2)
    for point, (first, second), (near, far) in zip(points, found, values, strict=True):
        best, following = oracle.nearest_two(point, centers)
        assert near == pytest.approx(best, abs=2e-5)
        assert float(point @ centers[first]) == pytest.approx(best, abs=2e-5)
        if following is None:
            assert second == -1 and math.isnan(far)
        else:
            assert far == pytest.approx(following, abs=2e-5) and second != first


@pytest.mark.parametrize(("batch", "size"), [(1, 1000), (7, 1000), (64, 1000), (64, 10)])
def test_a_sample_is_fitted_and_the_rest_assigned(
    batch: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Documents outside the sample get the cluster of those inside that are like them."""
    monkeypatch.setattr(job, "_SAMPLE", 40)
    monkeypatch.setattr(job, "_AT_A_TIME", batch)
    monkeypatch.setattr(job, "_BYTES_AT_A_TIME", size)
    result = la.cluster_documents(TEXTS, 4)
    assert len(result) == 4 and result.without_features == 2
    for one in result.clusters:
        subjects = {int(row) % 4 for row in result.members(one.number)}
        assert len(subjects) == 1
    counted = oracle.weights(TEXTS, result.labels.tolist(), 0)
    assert (
        dict(result.clusters[0].words).items()
        <= {word: pytest.approx(weight) for word, weight in counted.items()}.items()
    )


@settings(max_examples=25, deadline=None)
@given(
    texts=st.lists(
        st.lists(st.sampled_from(["pear", "quince", "rice", "?"]), max_size=4).map(" ".join),
        max_size=12,
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
    assert bool(len(result)) == bool(having)
    assert len(result) <= (having if k is None else k)
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


def test_hundreds_of_clusters() -> None:
    chance = random.Random(1)
    words = [f"word{number}" for number in range(3000)]
    texts = [" ".join(chance.choices(words, k=6)) for _ in range(1000)]
    found = la.cluster_documents(texts, k=300)
    sizes = [one.size for one in found.clusters]
    assert sizes == sorted(sizes, reverse=True)
    assert min(sizes) > 0
    assert np.bincount(found.labels).tolist() == sizes


def subjects(count: int, documents: int, seed: int = 0) -> list[str]:
    """Return texts about some subjects, with function words."""
    chance = random.Random(seed)
    common = "the of and in we is that this for with".split()
    texts = []
    for number in range(documents):
        own = [f"s{number % count}word{letter}" for letter in "abcdefghijkl"]
        words = chance.choices(own, k=12) + chance.choices(common, k=20)
        chance.shuffle(words)
        texts.append(" ".join(words))
    return texts


@pytest.mark.parametrize("count", [2, 3, 5, 12])
def test_the_number_of_topics_is_found(count: int) -> None:
    """Clusters of one subject are merged, and those of several are split."""
    found = la.cluster_documents(subjects(count, 400))
    assert len(found) == count
    for one in found.clusters:
        assert len({int(row) % count for row in found.members(one.number)}) == 1
        assert len({word.partition("word")[0] for word, _ in one.words}) == 1


def test_no_cluster_is_a_mixture() -> None:
    """Large subjects do not hide small ones."""
    texts = subjects(3, 900) + [text.replace("s0", "rare") for text in subjects(1, 60, 1)]
    found = la.cluster_documents(texts)
    for one in found.clusters:
        assert len({("rare" in texts[int(row)]) for row in found.members(one.number)}) == 1


def test_titles_come_from_their_column_or_from_headings() -> None:
    rows = [
        {"title": f"Title {at}" if at else None, "text": f"Network Group\n\n{text}"}
        for at, text in enumerate(subjects(2, 40))
    ]
    found = la.cluster_documents(rows, 2)
    assert found.title(3) == "Title 3"
    assert found.title(0) == rows[0]["text"].partition("\n\n")[2]  # type: ignore[union-attr]
    named = [{"name": row["title"], "text": row["text"]} for row in rows]
    assert la.cluster_documents(named, 2).title(3) == rows[3]["text"].partition("\n\n")[2]  # type: ignore[union-attr]
    assert la.cluster_documents(named, 2, title="name").title(3) == "Title 3"
    with pytest.raises(LookalikeError, match="no column 'nam' for the titles"):
        la.cluster_documents(named, 2, title="nam")
    for one in found.to_dict()["clusters"]:
        assert all(
            told["title"] == found.title(told["id"])[:100] for told in one["central"] if told["id"]
        )


def test_a_document_without_a_title_is_shown_by_its_id() -> None:
    rows = [{"id": f"doc{at}", "text": f"Notice\n{at}"} for at in range(6)]
    assert la.cluster_documents(rows, 1).title(2) == "doc2"
    assert la.cluster_documents([row["text"] for row in rows], 1).title(2) == "Notice 2"


def test_nothing_and_one_document() -> None:
    empty = la.cluster_documents([])
    assert len(empty) == 0 and empty.to_arrow().num_rows == 0
    blank = la.cluster_documents(["", "?"])
    assert blank.labels.tolist() == [-1, -1] and blank.to_arrow()["cluster"].null_count == 2
    one = la.cluster_documents(["the only fox, the fox"])
    assert one.labels.tolist() == [0] and one.similarities == pytest.approx(1, abs=1e-4)
    assert {word for word, _ in one.clusters[0].words} == {"the", "only", "fox"}
    only = la.cluster_documents(["the", "the only", "of the"])
    assert only.without_features == 0 and only.clusters[0].words


def test_tables_have_a_row_for_each_document() -> None:
    rows = [{"id": f"d{at}", "text": text} for at, text in enumerate(TEXTS)]
    result = la.cluster_documents(rows, 4)
    table = result.to_arrow()
    assert table.column_names == [
        *("id", "cluster", "words", "similarity", "other_cluster", "other_similarity")
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
        {"stem": "english"},
        {"ngram": (1, 2), "stop_words": "english"},
        {"features": "chars"},
        {"features": "words,chars"},
        {"features": str.split},
        {"words": 0, "central": 0},
    )
    for chosen in several:
        result = la.cluster_documents(TEXTS, 3, **chosen)
        assert len(result) == 3, chosen
        assert result.to_dict()["settings"]["words"] == chosen.get("words", 10)
    assert la.cluster_documents(TEXTS).settings.used_ngram == 1
    assert la.cluster_documents(TEXTS, features="chars").settings.used_ngram == 5


def test_how_many_clusters_unless_told() -> None:
    assert [usual_clusters(count) for count in (0, 1, 2, 8, 200, 5000, 10**6)] == [
        *(0, 1, 1, 2, 10, 50, 50)
    ]
    assert len(la.cluster_documents(TEXTS)) == 4  # the subjects


def mixture(shares: list[int], documents: int, seed: int) -> list[str]:
    """Return texts about subjects of different sizes, with noise that the subjects share."""
    chance = random.Random(seed)
    noise = [f"noise{number}" for number in range(400)]
    texts = []
    for number in chance.choices(range(len(shares)), shares, k=documents):
        own = [f"s{number}word{letter}" for letter in "abcdefghijklmnop"]
        words = chance.choices(own, k=5) + chance.choices(noise, k=12)
        texts.append(" ".join(words))
    return texts


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    "shares",
    [[1] * 40, [*range(1, 41)], [30, 20, *[1] * 50], [2**at for at in range(10)]],
    ids=["even", "rising", "two large", "doubling"],
)
def test_a_large_cluster_is_of_one_topic(shares: list[int], seed: int) -> None:
    """Above 15% of the documents, no cluster has parts whose centers have a cosine below 0.8."""
    found = la.cluster_documents(mixture(shares, 1500, seed), seed=seed)
    texts = [found.text(row) for row in range(len(found.labels))]
    for one in found.clusters:
        if one.size > 0.16 * len(found.labels):
            about = [
                re.findall(r"s\d+(?=word)", texts[row])[0] for row in found.members(one.number)
            ]
            most = max(about.count(subject) for subject in set(about))
            assert most > 0.8 * one.size


@pytest.mark.parametrize("documents", [50, 200, 2000])
def test_the_number_of_clusters_grows_with_the_corpus(documents: int) -> None:
    found = la.cluster_documents(mixture([1] * 60, documents, 3))
    assert usual_clusters(documents) / 2 <= len(found) <= 2 * usual_clusters(documents)
    assert all(one.words for one in found.clusters)


def test_function_words_do_not_make_clusters() -> None:
    """Short German texts, where function words are most of the text, and are not repeated."""
    chance = random.Random(4)
    function = "ich wir man sie der die das und mit für nicht ist".split()
    texts = []
    for number in range(600):
        own = chance.sample([f"s{number % 6}wort{letter}" for letter in "abcd"], 2)
        texts.append(" ".join(own + chance.sample(function, 6)))
    found = la.cluster_documents(texts)
    for one in found.clusters:
        assert len({int(row) % 6 for row in found.members(one.number)}) == 1
        assert all("wort" in word for word, _ in one.words)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"k": 0}, "k is 0; expected"),
    ({"k": 1.5}, "k is 1.5"),
    ({"k": 119}, "k is 119; expected at most 118, the documents that have words"),
    ({"title": 3}, "no column 3 for the titles"),
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


@settings(max_examples=15, deadline=None)
@given(st.integers(11, 60), st.integers(0, 3), st.sampled_from(["words", "chars"]))
def test_what_many_documents_have_is_left_out(common: int, seed: int, features: str) -> None:
    """As if the words that more than `common` different documents have were not in the texts."""
    texts = [*TEXTS[:60], *TEXTS[:5]]
    having = Counter(word for text in set(texts) for word in set(re.findall(r"\w+", text)))
    too_common = {word for word, count in having.items() if count > common}
    how: Any = {"k": 3, "seed": seed, "features": features}
    kept = [" ".join(w for w in re.findall(r"\w+", t) if w not in too_common) for t in texts]
    assume(sum(map(bool, kept)) >= 3)
    found = la.cluster_documents(texts, **how, common=common)
    if features == "words":
        expected = la.cluster_documents(kept, **how)
        assert found.labels.tolist() == expected.labels.tolist()
        assert found.common_features == len(too_common)
        assert ("common features" in found.summary()) == bool(too_common)
        assert np.array_equal(found.similarities, expected.similarities, equal_nan=True)
    assert not too_common & {word for one in found.clusters for word, _ in one.words}
    assert found.to_dict()["settings"]["common"] == common


def test_common_is_a_number_of_documents() -> None:
    with pytest.raises(ArgumentError, match="common is 1"):
        la.cluster_documents(TEXTS, common=1)
    with pytest.raises(ArgumentError, match="no document has words that at most 2 documents have"):
        la.cluster_documents(["one two", "two one", "one, two"], 1, common=2)
