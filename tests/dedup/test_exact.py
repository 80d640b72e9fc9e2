"""With `exact`, every pair is found, also where thousands are alike; what means nothing is refused.

That pairs are those of brute force, for all methods and rules, is held by `test_guarantee`.
"""

from __future__ import annotations

import json
import random
from itertools import combinations
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike.cli import main
from lookalike.dedup import join, propose
from lookalike.dedup import pairs as pair_arrays
from lookalike.dedup.pairs import VerifiedPairs
from lookalike.dedup.propose import NearbyRows
from support.oracles import dedup as dedup_oracle
from support.oracles import scan as oracle


def variants(count: int, seed: int = 1) -> list[str]:
    """Variants of one text: all share bands of their signatures; copies are among them."""
    rng = random.Random(seed)
    words = [f"w{number}" for number in range(120)]
    texts = []
    for _ in range(count):
        changed = words.copy()
        for _ in range(rng.randrange(6)):
            changed[rng.randrange(len(words))] = f"x{rng.randrange(1000)}"
        texts.append(" ".join(changed))
    return texts


def truth(texts: list[str], threshold: float) -> set[tuple[int, int]]:
    shingles = [set(map(hash, dedup_oracle.shingles(text, 5))) for text in texts]
    return {
        (left, right)
        for left, right in combinations(range(len(texts)), 2)
        if len(shingles[left] & shingles[right])
        >= threshold * len(shingles[left] | shingles[right])
    }


def pairs_of(pairs: VerifiedPairs) -> set[tuple[int, int]]:
    return set(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True))


def test_every_pair_of_hundreds_that_share_all_their_bands() -> None:
    texts = variants(120)
    expected = truth(texts, 0.7)
    with patch.object(propose, "LARGEST_GROUP", 20):
        in_part = la.dedup(texts, threshold=0.7)
    assert "--exact (in Python exact=True) finds every pair" in in_part.warnings[0]
    assert len(pairs_of(in_part.pairs)) < 0.9 * len(expected)
    result = la.dedup(texts, threshold=0.7, exact=True)
    assert pairs_of(result.pairs) == expected
    assert not result.warnings and result.complete
    assert result.counts.verified_pairs == len(result.pairs) == len(expected)
    known = dict(zip(sorted(expected), result.pairs.distance.tolist(), strict=True))
    pairs = in_part.pairs
    for left, right, distance in zip(
        pairs.left.tolist(), pairs.right.tolist(), pairs.distance.tolist(), strict=True
    ):
        assert known[left, right] == distance


def test_a_threshold_of_nearly_nothing() -> None:
    texts = ["one two three four five six", "six five four one two three four five", "", "seven"]
    assert la.dedup(texts, threshold=1e-6, exact=True).pairs.left.tolist() == [0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"verify": False}, "verify=False"),
        ({"method": "simhash", "radius": 3}, "radius is 3"),
        ({"radius": 0}, "radius is 0"),
        ({"exact": "yes"}, "exact is 'yes'"),
    ],
)
def test_what_means_nothing_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(la.errors.ArgumentError, match=message):
        la.dedup(["a"], **{"exact": True, **options})


def test_old_signatures_cannot_be_compared(tmp_path: Path) -> None:
    old = tmp_path / "old.lookalike"
    la.dedup(variants(3), save_signatures=old)
    with pytest.raises(la.errors.ArgumentError, match="old.lookalike has only signatures"):
        la.dedup(variants(3), exact=True, against=old)


def test_pairs_that_an_earlier_run_has_found(tmp_path: Path) -> None:
    corpus, work = tmp_path / "corpus.jsonl", tmp_path / "work"
    corpus.write_text("".join(json.dumps({"text": text}) + "\n" for text in variants(100)))
    with patch.object(propose, "LARGEST_GROUP", 20):
        proposed = la.dedup(corpus, work=work)
    first = la.dedup(corpus, work=work, exact=True)
    again = la.dedup(corpus, work=work, exact=True)
    assert "verify" not in first.reused and "sign" in first.reused
    assert {"sign", "propose", "verify"} <= set(again.reused)
    assert len(proposed.pairs) < len(first.pairs) == len(again.pairs)
    assert pairs_of(first.pairs) == pairs_of(again.pairs)


def test_an_interrupted_join_is_made_again(tmp_path: Path) -> None:
    corpus, work = tmp_path / "corpus.jsonl", tmp_path / "work"
    corpus.write_text("".join(json.dumps({"text": text}) + "\n" for text in variants(50)))

    def stop(step: str, share: float) -> None:
        if step == "verify" and share > 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        la.dedup(corpus, work=work, exact=True, progress=stop)
    result = la.dedup(corpus, work=work, exact=True)
    assert "verify" not in result.reused
    assert pairs_of(result.pairs) == truth(variants(50), 0.8)


def test_memory_is_kept_to() -> None:
    texts = variants(400)
    with pytest.raises(la.errors.ResultTooLargeError, match="memory_limit"):
        la.dedup(texts, exact=True, memory_limit=(600 << 20) + 60_000 + 100)
    with (
        patch.object(join, "_BYTES_A_SHARED_FEATURE", 1 << 40),
        pytest.raises(la.errors.ResultTooLargeError, match="share more features") as raised,
    ):
        la.dedup(texts, exact=True, memory_limit=700 << 20)
    typed = raised.value.as_typed({"memory_limit": "--memory-limit", "exact": "--exact"})
    assert "than fit into --memory-limit" in typed


def test_the_command_says_that_pairs_are_complete(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = variants(100)
    corpus, pairs, report = (tmp_path / name for name in ("corpus.jsonl", "pairs.csv", "page.html"))
    corpus.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    command = ["dedup", str(corpus), "--exact", "--pairs", str(pairs), "--report", str(report)]
    assert main(command) == 0
    count = len(truth(texts, 0.8))
    assert f"{count:,}  complete: every pair at or above 0.8 was found" in capsys.readouterr().out
    lines = pairs.read_text().splitlines()
    assert lines[0] == "left,right,similarity,distance" and len(lines) == count + 1
    assert "Every pair at or above the threshold was found" in report.read_text()
    assert main([*command[:3], "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["complete"] is True and told["counts"]["verified_pairs"] == count
    assert main(["dedup", str(corpus), "--exact", "--no-verify"]) != 0
    assert main(["dedup", str(corpus), "--exact", "--method", "topsig", "--radius", "9"]) != 0


def test_more_pairs_than_the_limit_are_counted_and_not_written(tmp_path: Path) -> None:
    equal = ["some text that comes again and again"] * 1000
    found = la.dedup([*equal, "another text"], exact=True)
    path = tmp_path / "pairs.csv"
    with pytest.raises(la.errors.ResultTooLargeError) as raised:
        found.write_pairs(path, limit=499_499)
    assert str(raised.value) == (
        "there are 499,500 pairs, more than limit=499,499; pair equal texts with their first only "
        "by collapse=True (999 pairs), write the group of each document by write_annotated, or "
        "raise limit"
    )
    with pytest.raises(
        la.errors.ResultTooLargeError, match="there are 999 pairs, more than limit=998; "
    ):
        found.write_pairs(path, limit=998, collapse=True)
    assert not list(tmp_path.iterdir())
    assert found.write_pairs(path, limit=999, collapse=True) == 999
    star = path.read_text().splitlines()
    assert star[0] == "left,right,similarity,distance"
    assert star[1:] == [f"0,{copy},1.0,0" for copy in range(1, 1000)]
    by_signatures = la.dedup([*equal, "another text"])
    assert by_signatures.write_pairs(tmp_path / "star.csv", limit=999) == 999
    assert (tmp_path / "star.csv").read_text() == path.read_text()
    assert found.write_pairs(path, limit=499_500) == 499_500


def test_a_million_equal_documents_have_no_pairs_that_can_be_held() -> None:
    found = la.dedup(["some text that comes again and again"] * 1_000_000, exact=True)
    for pairs in ("pairs", "old_pairs"):
        with pytest.raises(la.errors.ResultTooLargeError, match="there are 499,999,500,000 pairs"):
            getattr(found, pairs)
    assert sum(len(new) for new, _ in found.pair_batches(collapse=True)) == 999_999


def test_the_pairs_of_a_command_are_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("c.txt").write_text("some text that comes again\n" * 100)
    command = ["dedup", "c.txt", "--quiet", "-o", "out.txt", "--exact"]
    assert main([*command, "--pairs", "pairs.csv", "--max-pairs", "4949"]) == 1
    assert capsys.readouterr().err == (
        "lookalike: there are 4,950 pairs, more than --max-pairs 4,949; pair equal texts with "
        "their first only by --collapse (99 pairs), write the group of each document by "
        "--annotate, or raise --max-pairs\n"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["c.txt"]
    assert main([*command, "--pairs", "pairs.csv", "--max-pairs", "99", "--collapse"]) == 0
    assert len(Path("pairs.csv").read_text().splitlines()) == 100
    assert main([*command, "--pairs", "pairs.csv"]) == 0
    assert len(Path("pairs.csv").read_text().splitlines()) == 4951
    for option in (["--max-pairs", "5"], ["--collapse"]):
        assert main([*command, *option]) == 2
        assert "needs a file of pairs: --pairs FILE" in capsys.readouterr().err


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32))
def test_copies_are_paired_as_their_texts_are(seed: int) -> None:
    rng = random.Random(seed)
    first = [0]
    for position in range(1, rng.randint(1, 25)):
        first.append(rng.choice([position, position, *sorted(set(first))]))
    texts = sorted(set(first))
    old = rng.randint(0, len(first))
    has_new = set(first[old:])
    every = [pair for pair in combinations(texts, 2) if has_new & set(pair)]
    some = sorted(rng.sample(every, rng.randint(0, len(every))))
    left, right = (np.array([pair[side] for pair in some], np.int64) for side in (0, 1))
    similarity = np.arange(len(some)) / 100
    pairs = VerifiedPairs(left, right, similarity, np.arange(len(some), dtype=np.int32))
    known = dict(zip(some, similarity.tolist(), strict=True))
    expected = []
    for one, two in combinations(range(len(first)), 2):
        both = (min(first[one], first[two]), max(first[one], first[two]))
        if two >= old and (both[0] == both[1] or both in known):
            expected.append((one, two, known.get(both, 1.0)))
    with patch.object(pair_arrays, "_PAIRS_AT_A_TIME", rng.choice([1, 3, 1000])):
        parts = list(pair_arrays.every_pair(pairs, np.array(first), old))
    found = [
        row
        for part in parts
        for row in zip(
            part.left.tolist(), part.right.tolist(), part.similarity.tolist(), strict=True
        )
    ]
    assert found == expected
    assert pair_arrays.count_every_pair(pairs, np.array(first), old) == len(expected)
    (star,) = pair_arrays.with_copies(pairs, np.array(first), old)
    assert pair_arrays.count_with_copies(pairs, np.array(first), old) == len(star)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 3), st.integers(1, 12), st.booleans())
def test_the_best_and_the_nearest_of_too_many_neighbors(
    seed: int, threads: int, most: int, limited: bool
) -> None:
    rng = np.random.default_rng(seed)
    rows = oracle.collection(int(rng.integers(1, 80)), 2, "clustered", seed % 1000)
    rank = rng.permutation(len(rows))
    radius = int(rng.integers(0, 12))
    nearby = NearbyRows(
        rows, rank, radius, most=most, limit=1 if limited else None, threads=threads
    )
    with patch.multiple(
        "lookalike.dedup.propose",
        LEADERS=2,
        NEAREST=3,
        _ROWS_AT_A_TIME=8,
        _MATCHES_AT_A_TIME=16,
    ):
        found = {
            (better, worse): distance
            for part in nearby.pairs(lambda share: None)
            for better, worse, distance in zip(*(column.tolist() for column in part), strict=True)
        }
    stands: dict[bytes, int] = {}
    for row in sorted(range(len(rows)), key=rank.__getitem__):
        stands.setdefault(rows[row].tobytes(), row)
    expected, all_pairs, crowded = {}, 0, 0
    for row in range(len(rows)):
        own = stands[rows[row].tobytes()]
        if own != row:
            expected[own, row] = 0
            continue
        near = [
            (oracle.distance(rows[row], rows[other]), rank[other], other)
            for other in stands.values()
            if rank[other] < rank[row] and oracle.distance(rows[row], rows[other]) <= radius
        ]
        all_pairs += len(near)
        crowd = len(near) > most
        crowded += crowd
        best = sorted(near, key=lambda one: one[1])[:2] if crowd else near
        for distance, _, other in [*best, *(sorted(near)[:3] if crowd else [])]:
            expected[other, row] = distance
    copied = len(rows) - len(stands)
    if all_pairs + copied > min(most * len(rows), 1 if limited else 2**40):
        assert nearby.crowded == crowded and found == expected
    else:
        assert nearby.crowded == 0 and len(found) == all_pairs + copied


@pytest.mark.parametrize("method", ["simhash", "topsig"])
def test_more_neighbors_than_can_be_looked_at_are_compared_in_part(method: str) -> None:
    """Once an error, and now a warning; who stays is like nobody else who does."""
    texts = variants(150)
    with patch.object(propose, "LARGEST_GROUP", 20):
        result = la.dedup(texts, method=method, threshold=0.6)
    assert "was compared with only some of them" in result.warnings[0]
    whole = la.dedup(texts, method=method, threshold=0.6, exact=True)
    assert result.counts.proposed_pairs < whole.counts.verified_pairs
    assert result.counts.kept == whole.counts.kept
