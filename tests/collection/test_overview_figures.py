"""Overviews beside what brute force says of the same documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import lookalike as la
from lookalike.collection import Collection
from lookalike.collection.overview import distances, groups, map_of

BITS = 64


def chain(steps: int = 12) -> dict[str, bytes]:
    """Return signatures that differ by four bits from one to the next, some of them twice."""
    found = {}
    for step in range(steps):
        row = np.zeros(BITS, np.uint8)
        row[: 4 * step] = 1
        found[f"{7 * step % steps:02}"] = np.packbits(row, bitorder="little").tobytes()
    rng = np.random.default_rng(0)
    for number in range(20):
        found[f"alone {number:02}"] = rng.integers(0, 256, BITS // 8, np.uint8).tobytes()
    for copy, of in (
        ("00 copy", "00"),
        ("05 copy", "05"),
        ("05 last", "05"),
        ("alone", "alone 03"),
    ):
        found[copy] = found[of]
    return found


@pytest.fixture
def docs(tmp_path: Path) -> Iterator[Collection]:
    documents = chain()
    with la.open_collection(tmp_path / "docs.db", bits=BITS, keep_text=False) as opened:
        rows = np.array([list(one) for one in documents.values()], np.uint8)
        opened.add(list(documents), signatures=rows)
        yield opened


def apart(left: bytes, right: bytes) -> int:
    return (int.from_bytes(left) ^ int.from_bytes(right)).bit_count()


def slow_groups(documents: dict[str, bytes], radius: int) -> list[list[str]]:
    """Return each document by id with those within the radius that no earlier one has."""
    free, found = sorted(documents), []
    while free:
        first = free[0]
        near = [id for id in free if apart(documents[first], documents[id]) <= radius]
        found.append(near)
        free = [id for id in free if id not in near]
    return sorted((one for one in found if len(one) > 1), key=len, reverse=True)


@pytest.mark.parametrize("radius", [0, 1, 3, 4, 8, 20, 30, BITS])
def test_groups_are_within_the_radius_of_their_first_document(
    docs: Collection, radius: int
) -> None:
    documents = chain()
    found, version = groups(docs, radius, members=100)
    assert version == 1
    assert [[id for id, _ in one.members] for one in found] == slow_groups(documents, radius)
    for one in found:
        first = documents[one.members[0][0]]
        assert one.members == [(id, apart(first, documents[id])) for id, _ in one.members]
        assert one.size == len(one.members)
        assert one.largest_distance == max(far for _, far in one.members) <= radius
        bits = [far for _, far in one.members]
        equal = [1 - far / BITS for far in bits]
        signer = docs.signer  # None if signatures were given
        expected = (
            equal if signer is None else la.estimated_similarity(signer, bits, bits=BITS).tolist()
        )
        assert one.similarities == pytest.approx(expected)
        assert one.least_similarity == min(one.similarities)


@pytest.mark.parametrize("radius", [0, 4, 20])
def test_groups_are_those_of_group_pairs(docs: Collection, radius: int) -> None:
    found, _ = groups(docs, radius, members=100)
    pairs = [(pair.left, pair.right) for pair in docs.pairs(radius)]
    expected = la.group_pairs(pairs, ids=sorted(chain())).groups()
    assert sorted([id for id, _ in one.members] for one in found) == sorted(expected)


@pytest.mark.parametrize("members", [1, 2, 3])
def test_the_first_members_are_listed_and_the_size_counts_all(
    docs: Collection, members: int
) -> None:
    whole, _ = groups(docs, 8, members=100)
    some, _ = groups(docs, 8, most=2, members=members)
    assert [one.size for one in some] == [one.size for one in whole[:2]]
    assert [one.largest_distance for one in some] == [one.largest_distance for one in whole[:2]]
    assert [one.members for one in some] == [one.members[:members] for one in whole[:2]]


def test_documents_that_share_a_signature_are_all_counted(docs: Collection) -> None:
    copies = Counter(chain().values())
    expected = sum(count for count in copies.values() if count > 1)
    assert distances(docs).sharing == expected == 7


@pytest.mark.parametrize("texts", [[], ["one"], ["one", "one"], ["one", "two"]])
def test_sharing_in_small_collections(tmp_path: Path, texts: list[str]) -> None:
    with la.open_collection(tmp_path / "docs.db", signer=la.SimHash(64)) as docs:
        docs.add([str(place) for place in range(len(texts))], texts)
        found = distances(docs)
    assert found.sharing == (2 if texts == ["one", "one"] else 0)
    assert sum(found.nearest) == (2 if len(set(texts)) == 2 else 0)


def test_distances_are_those_of_brute_force(docs: Collection) -> None:
    rows = sorted(set(chain().values()))
    found = distances(docs)
    nearest = Counter(min(apart(one, other) for other in rows if other != one) for one in rows)
    assert {far: count for far, count in enumerate(found.nearest) if count} == nearest
    possible = {apart(one, other) for one, other in combinations(rows, 2)}
    drawn = {far for far, count in enumerate(found.random_pairs) if count}
    assert drawn == possible  # 50,000 pairs are drawn of a few hundred
    assert sum(found.random_pairs) == 50_000


def test_regions_of_the_map_count_their_places(docs: Collection) -> None:
    documents = chain()
    drawn = map_of(docs, regions=4)
    assert drawn.signatures == len(drawn.places) == len(set(documents.values()))
    first = {documents[id]: id for id in sorted(documents, reverse=True)}
    assert sorted(place.id for place in drawn.places) == sorted(first.values())
    rows = np.array([list(documents[place.id]) for place in drawn.places], np.uint8)
    clusters = la.cluster(rows, 4)
    for number, region in enumerate(drawn.regions):
        inside = {documents[place.id] for place in drawn.places if place.region == number}
        assert inside == {rows[row].tobytes() for row in clusters.members(number)}
        center = clusters.centers[number].tobytes()
        far = {one: apart(center, one) for one in inside}
        assert region.size == len(inside)
        assert region.mean_distance == round(sum(far.values()) / len(far), 2)
        assert far[documents[region.example]] == min(far.values())
