"""A saved index behind a service beside the same one here: the same answers, the same errors."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike.client.packing import matches_of, neighbors_of, result_value
from lookalike.errors import ArgumentError, ResultTooLargeError, UnavailableError
from lookalike.service.keys import make_key
from support.oracles import scan as oracle
from support.services.running import Running, running

BITS = 64
DRAW = np.random.default_rng(31)
ROWS = DRAW.integers(0, 256, (400, BITS // 8), np.uint8)
ROWS[100:130] = ROWS[0]
ROWS[130:200] = ROWS[:70] ^ (DRAW.random((70, BITS // 8)) < 0.1).astype(np.uint8)
QUERIES = np.concatenate([ROWS[:20], DRAW.integers(0, 256, (20, BITS // 8), np.uint8)])
OWN_IDS = 3 * np.arange(len(ROWS)) + 5

INDEXES: dict[str, Any] = {
    "scan": la.ScanIndex(ROWS, ids=OWN_IDS),
    "slices": la.SliceIndex(ROWS, 16),
    "slices of given widths": la.SliceIndex(ROWS, [32, 17]),
    "blocks": la.BlockIndex(ROWS, radius=6),
    "flips": la.FlipIndex(ROWS),
    "prefix": la.PrefixIndex(ROWS, 4),
    "clusters": la.ClusterIndex(ROWS, clusters=8),
    "sharded": la.ShardedIndex([la.SliceIndex(ROWS[:150], 16), la.SliceIndex(ROWS[150:], 16)]),
}


def same(one: Any, two: Any) -> None:
    """Compare two results of searches, whole."""
    assert type(one) is type(two)
    assert one.exact == two.exact and not one.missing
    for name in ("ids", "distances", "unmasked", "scores", "offsets"):
        left, right = getattr(one, name, None), getattr(two, name, None)
        assert (left is None) == (right is None), name
        if left is not None and right is not None:
            np.testing.assert_array_equal(left, right)
            assert left.dtype == right.dtype
    assert (one.explanation is None) == (two.explanation is None)
    if one.explanation is not None:
        told, expected = one.explanation.to_numpy(), two.explanation.to_numpy()
        assert {name: list(map(str, column)) for name, column in told.items()} == {
            name: list(map(str, column)) for name, column in expected.items()
        }


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, la.client.RemoteIndex]]:
    """All kinds of index, each behind a service of its own."""
    with ExitStack() as stack:
        found = {}
        for name, index in INDEXES.items():
            folder = tmp_path_factory.mktemp(name)
            index.save(folder / "rows.lookalike")
            run = tmp_path_factory.mktemp(f"{name}-run")
            asked = stack.enter_context(running(folder / "rows.lookalike", run))
            found[name] = stack.enter_context(la.connect([asked.url]))
        yield found


@pytest.mark.parametrize("kind", INDEXES)
def test_a_served_index_is_like_the_same_one_here(
    kind: str, served: dict[str, la.client.RemoteIndex]
) -> None:
    here, there = INDEXES[kind], served[kind]
    assert isinstance(there, la.Index)
    facts = ("bits", "own_ids", "next_id", "takes_masks", "memory_bytes")
    assert [getattr(there, one) for one in facts] == [getattr(here, one) for one in facts]
    assert len(there) == len(here)
    for method in ("search", "within"):
        assert there.settings(method) == here.settings(method) - {"self", "weights"}
    stats = there.stats()
    assert stats["index"] == "remote" and stats["served"]["index"] == here.kind
    assert stats["signatures"] == len(ROWS) and json.dumps(stats)
    same(there.search(QUERIES, 7), here.search(QUERIES, 7))
    same(there.search(QUERIES[0], 1000), here.search(QUERIES[0], 1000))
    same(there.within(QUERIES, 5), here.within(QUERIES, 5))
    same(there.search(QUERIES[:0], 3), here.search(QUERIES[:0], 3))
    same(there.within(QUERIES[:0], 3), here.within(QUERIES[:0], 3))
    if "exact" in here.settings("search"):
        proven = there.search(QUERIES, 5, exact=True)
        assert proven.exact
        same(proven, here.search(QUERIES, 5, exact=True))
    if "explain" in here.settings("search"):
        same(there.search(QUERIES, 5, explain=True), here.search(QUERIES, 5, explain=True))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    kind=st.sampled_from(["scan", "slices", "sharded"]),
    queries=st.integers(0, 40),
    k=st.integers(1, 500),
    radius=st.integers(0, 70),
    among=st.one_of(
        st.none(), st.just("mask"), st.lists(st.integers(0, 1300), min_size=1, max_size=80)
    ),
    masked=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_answers_are_those_of_the_oracle(
    kind: str, queries: int, k: int, radius: int, among: Any, masked: bool, seed: int,
    served: dict[str, la.client.RemoteIndex],
) -> None:  # fmt: skip
    here, there = INDEXES[kind], served[kind]
    draw = np.random.default_rng(seed)
    options: dict[str, Any] = {"among": among}
    if among == "mask":
        options["among"] = draw.random(here.next_id) < 0.5
    if masked:
        options["masks"] = draw.integers(0, 256, (queries, BITS // 8), np.uint8)
    rows = QUERIES[:queries]
    same(there.search(rows, k, **options), here.search(rows, k, **options))
    same(there.within(rows, radius, **options), here.within(rows, radius, **options))
    if kind == "scan" and among is None and not masked and queries:
        ids, distances = oracle.search(ROWS, rows, min(k, len(ROWS)), ids=OWN_IDS.tolist())
        found = there.search(rows, min(k, len(ROWS)))
        np.testing.assert_array_equal(found.ids, ids)
        np.testing.assert_array_equal(found.distances, distances)


def test_large_batches_are_divided(
    served: dict[str, la.client.RemoteIndex], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = INDEXES["scan"], served["scan"]
    asked = []
    ask = there._replicas.ask
    monkeypatch.setattr("lookalike.client.index._TOGETHER", 7)

    def noted(*given: Any) -> Any:
        asked.append(given[1])
        return ask(*given)

    monkeypatch.setattr(there._replicas, "ask", noted)
    same(there.search(QUERIES, 9), here.search(QUERIES, 9))
    same(there.within(QUERIES, 20), here.within(QUERIES, 20))
    masks = DRAW.integers(0, 256, QUERIES.shape, np.uint8)
    same(there.search(QUERIES, 9, masks=masks), here.search(QUERIES, 9, masks=masks))
    assert asked.count("/v1/index/search") == 2 * 6 and asked.count("/v1/index/within") == 6


def test_more_matches_than_a_service_returns_at_once(tmp_path: Path) -> None:
    index = INDEXES["scan"]
    index.save(tmp_path / "rows.lookalike")
    with running(tmp_path / "rows.lookalike", tmp_path, max_results=450, max_k=300) as asked:
        there = la.connect(asked.url)
        same(there.within(QUERIES, 64), index.within(QUERIES, 64))  # 400 of each
        same(there.search(QUERIES, 200), index.search(QUERIES, 200))
        with pytest.raises(ResultTooLargeError, match="limit=700 matches"):
            there.within(QUERIES, 64, limit=700)
        with pytest.raises(ResultTooLargeError, match="limit=399 matches"):
            there.within(QUERIES[0], 64, limit=399)
        asked.refused(422, "k_too_large", "POST", "/v1/index/search",
                      {"signatures": ["00" * 8], "k": 301})  # fmt: skip
        asked.refused(422, "result_too_large", "POST", "/v1/index/search",
                      {"signatures": ["00" * 8] * 2, "k": 300})  # fmt: skip
        asked.refused(422, "result_too_large", "POST", "/v1/index/within",
                      {"signatures": ["00" * 8] * 2, "radius": 64})  # fmt: skip
        there.close()


def test_requests_fit_the_limits_of_a_service(tmp_path: Path) -> None:
    """Bodies, batches and answers have limits at the door; a client divides its batch by them."""
    index = INDEXES["slices"]
    index.save(tmp_path / "rows.lookalike")
    narrow: dict[str, Any] = {"max_body": 1_500, "max_batch": 9, "max_answer": 3_000}
    with running(tmp_path / "rows.lookalike", tmp_path, **narrow) as asked:
        many = {"signatures": ["00" * 8] * 10, "k": 1}
        asked.refused(422, "batch_too_large", "POST", "/v1/index/search", many)
        packed = base64.b64encode(bytes(8 * 10)).decode()
        asked.refused(
            422, "batch_too_large", "POST", "/v1/index/search", {"packed": packed, "k": 1}
        )
        large = {"packed": base64.b64encode(bytes(1_600)).decode()}
        asked.refused(413, "body_too_large", "POST", "/v1/index/search", large)
        long = {"signatures": ["00" * 8], "k": 400}
        asked.refused(422, "answer_too_large", "POST", "/v1/index/search", long)
        with la.connect(asked.url) as there:
            same(there.search(QUERIES, 5), index.search(QUERIES, 5))
            same(there.within(QUERIES, 20), index.within(QUERIES, 20))
            masks = np.full_like(QUERIES, 255)
            same(there.search(QUERIES, 5, masks=masks), index.search(QUERIES, 5, masks=masks))


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("bad_body", {"k": 3}, "exactly one of these is required"),
    ("bad_body", {"signatures": ["00"], "packed": "AA=="}, "exactly one of these is required"),
    ("bad_body", {"signatures": ["00" * 8], "no": 1}, "no"),
    ("bad_argument", {"signatures": ["00"]}, "row 0 has 8 bits; the index has 64"),
    ("bad_argument", {"packed": "AAAA"}, "3 bytes, not a multiple of 8"),
    ("bad_argument", {"packed": "A"}, "packed|signatures"),
    ("bad_argument", {"signatures": ["00" * 8], "probe": 3}, "not an option of this index"),
    ("bad_argument", {"signatures": ["00" * 8], "packed_among_mask": "AA=="}, "the index has 400"),
    ("bad_argument", {"signatures": ["00" * 8], "packed_among": "AA=="}, "multiple of 8"),
    ("bad_argument", {"signatures": ["00" * 8], "masks": []}, "one mask per query"),
    ("bad_body", {"signatures": ["00" * 8], "cull": "first"}, "'pessimistic', 'optimistic' or"),
    ("no_signer", {"texts": ["a b c"]}, "no signer of texts"),
    ("bad_body", {"signatures": ["00" * 8], "among": [1], "packed_among": ""}, "at most one"),
]


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("asked")
    INDEXES["slices"].save(folder / "rows.lookalike")
    with running(folder / "rows.lookalike", folder) as found:
        yield found


@pytest.mark.parametrize(("code", "body", "message"), BAD)
def test_bad_requests_are_refused(
    asked: Running, code: str, body: dict[str, Any], message: str
) -> None:
    assert re.search(message, asked.refused(422, code, "POST", "/v1/index/search", body))


def test_answers_are_lists_unless_packed(asked: Running) -> None:
    body = {"signatures": [ROWS[3].tobytes().hex()], "k": 2, "exact": True}
    plain = asked.good("POST", "/v1/index/search", body)
    expected = INDEXES["slices"].search(ROWS[3], 2, exact=True)
    assert plain["ids"] == expected.ids.tolist() and plain["exact"] is True
    packed = asked.good("POST", "/v1/index/search", {**body, "pack": True})
    assert base64.b64decode(packed["ids"]) == expected.ids.astype("<i8").tobytes()
    described = asked.good("GET", "/v1/index")
    assert described["digest"] == plain["digest"] == packed["digest"]
    assert described["stats"]["file"] is None, "the path of the file is not told"
    assert asked.good("GET", "/readyz") == {"status": "ready", "index": "rows"}
    assert asked.refused(404, "no_route", "GET", "/v1/collections")
    paths = set(asked.good("GET", "/v1/openapi.json")["paths"])
    assert {"/v1/index", "/v1/index/search", "/v1/index/within"} <= paths
    assert not any("collections" in path for path in paths)


def test_texts_are_signed_with_learned_weights_by_the_service(tmp_path: Path) -> None:
    texts = [f"the {animal} jumps over the lazy {other}" for animal in ("fox", "dog", "cat", "owl")
             for other in ("bear", "wolf", "mouse", "hare")]  # fmt: skip
    signer = la.SimHash(bits=64, weights=la.Weights()).fit(texts)
    index = la.ScanIndex(signer.sign(texts))
    index.signer, index.names = signer, [f"text-{at}" for at in range(len(texts))]
    index.save(tmp_path / "texts.lookalike")
    with (
        running(tmp_path / "texts.lookalike", tmp_path, max_text=100) as asked,
        la.connect(asked.url) as there,
    ):
        same(there.search(texts, 3), index.search(texts, 3))
        same(there.within(texts[0], 8), index.within(texts[0], 8))
        assert there.signer is not None and there.signer.to_dict() == signer.to_dict()
        assert there.name(3) == "text-3" and there.name(99) == 99
        with pytest.raises(ArgumentError, match="id is 'x'; expected a whole number"):
            there.name("x")
        with pytest.raises(la.LookalikeError, match="text 0"):
            there.search("w" * 101, 3)


def test_a_hash_of_files_does_not_read_the_files_of_the_service(tmp_path: Path) -> None:
    index = la.ScanIndex(ROWS)
    index.signer = la.ImageHash(bits=64)
    index.save(tmp_path / "images.lookalike")
    with running(tmp_path / "images.lookalike", tmp_path) as asked:
        message = asked.refused(
            422, "no_signer", "POST", "/v1/index/search", {"texts": ["/etc/passwd"]}
        )
        assert "no signer of texts" in message


def test_what_a_served_index_does_not_have(
    served: dict[str, la.client.RemoteIndex], tmp_path: Path
) -> None:
    there = served["slices"]
    for call in (there.living, lambda: there.pairs(3), lambda: there.save(tmp_path / "x")):
        with pytest.raises(ArgumentError, match="are at its service; open its file there"):
            call()
    with pytest.raises(ArgumentError, match="probe is not an option of this index"):
        there.search(QUERIES, 3, probe=2)
    with pytest.raises(ArgumentError, match="does not support masks"):
        served["blocks"].search(QUERIES, 3, masks=QUERIES)
    with pytest.raises(la.errors.SignatureError, match="have 8 bits, the index has 64"):
        there.search(QUERIES[:, :1], 3)
    assert repr(there).startswith("RemoteIndex(400 signatures of 64 bits at http://127.0.0.1:")


def test_keys_are_for_an_index_by_its_name(tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    good = make_key(keys, "good", "read-only", ["rows"])
    other = make_key(keys, "other", "read-only", ["else"])
    INDEXES["scan"].save(tmp_path / "rows.lookalike")
    with running(tmp_path / "rows.lookalike", tmp_path, keys=str(keys)) as asked:
        with la.connect(asked.url, key=good) as there:
            assert there.label == "rows" and there.search(QUERIES, 1).exact
        for key, message in ((other, "is not for the collection 'rows'"), ("wrong", "API key")):
            with pytest.raises(la.LookalikeError, match=message):
                la.connect([asked.url], key=key)


def test_addresses_that_cannot_be_used(asked: Running) -> None:
    with pytest.raises(ArgumentError, match="url has 0 addresses; expected 1 to 64"):
        la.connect([])
    with pytest.raises(ArgumentError, match="pass the address of a collection alone"):
        la.connect([asked.url, asked.url], "name")  # type: ignore[call-overload]
    with pytest.raises(UnavailableError, match="no service of the index has answered"):
        la.connect(["http://127.0.0.1:9"], retries=0, timeout=5)


def test_copies_must_be_copies(tmp_path: Path, asked: Running) -> None:
    la.SliceIndex(ROWS[:-1], 16).save(tmp_path / "rows.lookalike")
    different = pytest.raises(ArgumentError, match="serve different indexes; expected copies")
    with running(tmp_path / "rows.lookalike", tmp_path) as other, different:
        la.connect([asked.url, other.url])


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_damaged_answers_are_refused(data: st.DataObject) -> None:
    """Whatever a service sends, it becomes a result of the right shape or one error."""
    index = INDEXES["slices"]
    for result, take in (
        (index.search(QUERIES, 3, explain=True), lambda value: neighbors_of(value, 40, 3)),
        (index.within(QUERIES, 9), lambda value: matches_of(value, 40)),
    ):
        value = result_value(result, pack=True)
        same(take(value), result)
        name = data.draw(st.sampled_from(sorted(value)))
        broken = {**value, name: data.draw(st.one_of(
            st.none(), st.integers(), st.text(max_size=8), st.just("AAAA"), st.just({}),
            st.just(base64.b64encode(b"\xff" * 8 * 41).decode()),
        ))}  # fmt: skip
        try:
            found = take(broken)
        except UnavailableError as error:
            assert "the answer of a service cannot be used" in str(error)
        else:
            assert len(found) == 40
