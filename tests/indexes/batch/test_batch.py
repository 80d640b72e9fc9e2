"""match_batch: the answers of the indexes, from a file that grows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lookalike as la
from lookalike import SignatureFile, _native
from lookalike.indexes.batch import signature_file
from lookalike.indexes.batch.match import batch_header_bits, chunks_for
from support.cases.tables import found
from support.oracles import scan as oracle

Signatures = oracle.Signatures


def filled(path: Path, batches: list[Signatures]) -> Signatures:
    path.unlink(missing_ok=True)
    for batch in batches:
        la.match_batch(path, batch, method="blocks", radius=min(1, 8 * batch.shape[1] - 1))
    return np.concatenate(batches)


@given(st.data())
def test_blocks_and_all_flips_equal_the_oracle(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("batch") / "file"
    width = data.draw(st.sampled_from([1, 5, 8, 16, 33]))
    sizes = data.draw(st.lists(st.integers(0, 40), min_size=1, max_size=4))
    styles = st.sampled_from(oracle.STYLES)
    batches = [
        oracle.collection(size, width, data.draw(styles), seed) for seed, size in enumerate(sizes)
    ]
    rows = filled(path, batches)
    queries = oracle.collection(data.draw(st.integers(0, 9)), width, "clustered", 7)
    if len(rows):
        queries[::2] = rows[: len(queries[::2])][: len(queries[::2])] if len(rows) > 9 else rows[0]
    radius = data.draw(st.integers(0, min(4, 8 * width - 1)))
    chunk = data.draw(st.one_of(st.none(), st.integers(1, 60)))
    expected = oracle.within(rows, queries, radius)
    for method in ("flips", "blocks"):
        for threads in (1, 3):
            options: dict[str, Any] = {"method": method, "chunk": chunk, "threads": threads}
            matches = la.match_batch(path, queries, radius, append=False, **options)
            assert found(matches) == expected
            assert matches.exact
            first = la.match_batch(path, queries, radius, append=False, first=True, **options)
            counts = [min(1, len(each)) for each in expected]
            assert [len(each) for each in found(first)] == counts
            assert all(set(a) <= set(b) for a, b in zip(found(first), expected, strict=True))


def edited(count: int, seed: int) -> tuple[Signatures, Any]:
    weights = np.random.default_rng(seed).normal(size=(count, 64)).astype(np.float32)
    return np.packbits(weights >= 0, axis=1, bitorder="little"), weights


def test_flips_agree_with_the_index_chunk_by_chunk(tmp_path: Path) -> None:
    rows, weights = edited(6000, 0)
    filled(tmp_path / "file", [rows])
    noise = np.random.default_rng(1).normal(0, 0.1, weights.shape).astype(np.float32)
    asked = weights + noise
    queries = np.packbits(asked >= 0, axis=1, bitorder="little")
    seen: list[tuple[str, float]] = []
    whole = la.FlipIndex(rows, batch_header_bits([6000], 6000, 64, 3, 0.95))
    for flips in (0, 7, 64, 90):
        expected = whole.within(queries, 3, weights=asked, flips=flips)
        matches = la.match_batch(
            tmp_path / "file", queries, weights=asked, flips=flips, append=False,
            progress=lambda step, share: seen.append((step, share)),
        )  # fmt: skip
        assert found(matches) == found(expected)
        assert matches.exact == expected.exact
        # Smaller chunks have shorter headers, of which as many flips find more.
        parts = la.match_batch(
            tmp_path / "file", queries, weights=asked, flips=flips, append=False, chunk=1000
        )
        assert len(parts.ids) >= len(matches.ids)
    assert seen[-1] == ("match", 1)
    exact = la.match_batch(tmp_path / "file", queries, method="blocks", append=False)
    tuned = la.match_batch(tmp_path / "file", queries, weights=asked, recall=0.9, append=False)
    assert 0.85 * len(exact.ids) < len(tuned.ids) < len(exact.ids)
    units = la.match_batch(
        tmp_path / "file",
        queries,
        weights=la.signatures.quantize_weights(asked),
        flips=7,
        append=False,
    )
    assert len(units.ids) > 0.8 * len(exact.ids)
    all_of_it = la.match_batch(tmp_path / "file", queries, weights=asked, recall=1, append=False)
    assert found(all_of_it) == found(exact)


@given(st.data())
def test_flips_find_the_same_however_the_file_is_cut(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """What has one of the headers tried is found, in whatever chunk it is."""
    path = tmp_path_factory.mktemp("batch") / "file"
    width = data.draw(st.sampled_from([2, 8, 9]))
    sizes = data.draw(st.lists(st.integers(0, 300), min_size=1, max_size=5))
    generator = np.random.default_rng(len(sizes))
    weights = generator.normal(size=(40, 8 * width)).astype(np.float32)
    copies = weights[generator.integers(0, 40, sum(sizes))]
    copies = copies + generator.normal(0, 0.3, copies.shape).astype(np.float32)
    rows = np.packbits(copies >= 0, axis=1, bitorder="little")
    ends = np.cumsum(sizes)
    filled(path, [rows[end - size : end] for size, end in zip(sizes, ends, strict=True)])
    queries = np.packbits(weights >= 0, axis=1, bitorder="little")
    chunk = data.draw(st.one_of(st.none(), st.integers(1, 400)))
    flips = data.draw(st.sampled_from([0, 1, 7, 64, 65, 200]))
    threads = data.draw(st.sampled_from([1, 3]))
    options: dict[str, Any] = {
        "weights": weights, "flips": flips, "chunk": chunk, "threads": threads, "append": False,
    }  # fmt: skip
    chunks = chunks_for(SignatureFile(path), 40, chunk).sizes()
    assert sum(chunks) == len(rows) and all(0 < each <= (chunk or 1 << 20) for each in chunks)
    header = batch_header_bits(chunks, 40, 8 * width, 3, 0.95)
    expected = la.FlipIndex(rows, header).within(queries, 3, weights=weights, flips=flips)
    matches = la.match_batch(path, queries, **options)
    assert found(matches) == found(expected)
    first = la.match_batch(path, queries, first=True, **options)
    counts = [min(1, len(each)) for each in found(expected)]
    assert [len(each) for each in found(first)] == counts
    assert all(set(a) <= set(b) for a, b in zip(found(first), found(expected), strict=True))


@pytest.mark.parametrize("width", [1, 8, 12])
def test_queries_are_asked_in_the_order_of_their_upper_bits(width: int) -> None:
    queries = oracle.collection(3000, width, "clustered", 0)
    ordered, rows = np.empty_like(queries), np.empty(3000, np.uint32)
    places = np.empty(3000, np.uint32)
    _native.order_by_prefix(queries, ordered, rows, places)
    assert np.array_equal(ordered, queries[rows])
    assert np.array_equal(rows[places], np.arange(3000))
    first = min(width, 8) - 1
    assert (np.diff(ordered[:, first].astype(int)) >= 0).all()
    with pytest.raises(_native.BorderError):
        _native.order_by_prefix(queries, ordered[1:], rows, places)


def test_reading_stops_when_every_query_has_its_match(tmp_path: Path) -> None:
    rows, _ = edited(4000, 0)
    filled(tmp_path / "file", [rows[:2000], rows[2000:]])
    for method in ("flips", "blocks"):
        seen: list[float] = []
        options: dict[str, Any] = {"method": method, "chunk": 2000, "append": False}
        first = la.match_batch(
            tmp_path / "file", rows[:50], 0, first=True, **options,
            progress=lambda step, share: seen.append(share),  # noqa: B023
        )  # fmt: skip
        assert first.ids.tolist() == list(range(50))
        assert seen == [0.5]


def test_batches_are_appended_sorted_with_their_ids(tmp_path: Path) -> None:
    path = tmp_path / "file"
    rows, _ = edited(300, 0)
    assert len(la.match_batch(path, rows[:100]).ids) == 0
    again = la.match_batch(path, rows[:150])
    assert again.ids.tolist() == list(range(100))
    assert again.query_ids.tolist() == list(range(100, 250))
    la.match_batch(path, rows[150:200], ids=np.arange(50) + 7000)
    later = la.match_batch(path, rows[:1])
    assert (later.ids.tolist(), later.query_ids.tolist()) == ([0, 100], [7050])
    only = la.match_batch(path, rows[150:151], append=False)
    assert (only.ids.tolist(), only.query_ids.tolist()) == ([7000], [7051])
    assert la.match_batch(path, rows[:1], append=False).ids.tolist() == [0, 100, 7050]
    store = SignatureFile(path)
    assert store.runs == [100, 150, 50, 1]
    assert (len(store), store.bits, store.largest_id) == (301, 64, 7050)
    assert repr(store) == "SignatureFile(301 signatures of 64 bits, 4 runs)"
    store.verify()
    for signatures, _ in store.each_run():
        words = signatures.copy().view("<u8")[:, 0]
        assert (words[1:] >= words[:-1]).all()


def test_an_append_that_was_cut_short_never_happened(tmp_path: Path) -> None:
    path = tmp_path / "file"
    rows, _ = edited(500, 0)
    filled(path, [rows[:200]])
    before = path.read_bytes()
    la.match_batch(path, rows[200:])
    after = path.read_bytes()
    end = len(before)
    unfinished = before + after[end:]  # the old end is still where the header of the run will be
    for length in (end, end + 1, end + 4096, end + 5000, len(after)):
        path.write_bytes(unfinished[:length])
        store = SignatureFile(path)
        assert store.runs == [200]
        assert la.match_batch(path, rows[:10], append=False).ids.tolist() == list(range(10))
        la.match_batch(path, rows[200:])
        assert path.read_bytes() == after


def test_damage_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    rows, _ = edited(500, 0)
    filled(path, [rows[:200], rows[200:]])
    good = path.read_bytes()

    def with_byte(at: int, value: int = 0x55) -> None:
        path.write_bytes(good[:at] + bytes([good[at] ^ value]) + good[at + 1 :])

    for at, message in ((12, "header does not match"), (4096 + 9, "no sound header")):
        with_byte(at)
        with pytest.raises(la.errors.CorruptIndexError, match=message):
            SignatureFile(path)
    with_byte(8192 + 100)
    with pytest.raises(la.errors.CorruptIndexError, match="signatures of run 0 have the checksum"):
        la.match_batch(path, rows[:3])
    with_byte(8192 + 4096 + 100)
    with pytest.raises(la.errors.CorruptIndexError, match="ids of run 0 have the checksum"):
        la.match_batch(path, rows[:3])
    path.write_bytes(good[:-1])
    with pytest.raises(la.errors.CorruptIndexError, match="cut short"):
        SignatureFile(path)
    with_byte(0)
    with pytest.raises(la.errors.FormatError, match="not a signature file"):
        la.match_batch(path, rows[:3])
    with_byte(8, 1)
    with pytest.raises(la.errors.FormatError, match="format version 3"):
        SignatureFile(path)
    path.write_bytes(good[:20])
    with pytest.raises(la.errors.CorruptIndexError, match="ends inside its header"):
        SignatureFile(path)


def test_a_run_that_is_not_sorted_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, _ = edited(500, 0)
    SignatureFile.create(tmp_path / "file", 64).append(rows, np.arange(500))
    with pytest.raises(la.errors.CorruptIndexError, match="should be sorted are not"):
        la.match_batch(tmp_path / "file", rows[:3])


def test_negative_ids_with_the_right_checksums_are_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No `append` of ours writes them; whoever makes a file by hand may."""
    rows, _ = edited(500, 0)
    signatures = np.sort(rows.copy().view("<u8")[:, 0]).view(np.uint8).reshape(-1, 8)
    file = SignatureFile.create(tmp_path / "file", 64)
    with pytest.raises(la.errors.ArgumentError, match="the smallest id is -1"):
        file.append(signatures, np.arange(500) - 1)
    with monkeypatch.context() as patched:
        patched.setattr(signature_file, "as_ids", lambda ids: ids)
        file.append(signatures, np.arange(500) - 1)
    with pytest.raises(la.errors.CorruptIndexError, match="negative ids"):
        la.match_batch(tmp_path / "file", signatures[:3])


def test_two_processes_append_one_after_the_other(tmp_path: Path) -> None:
    code = (
        "import sys, numpy as np, lookalike as la\n"
        "rng = np.random.default_rng(int(sys.argv[2]))\n"
        "for _ in range(10):\n"
        "    rows = rng.integers(0, 256, (500, 8), dtype=np.uint8)\n"
        "    la.match_batch(sys.argv[1], rows, method='blocks')\n"
    )
    SignatureFile.create(tmp_path / "file", 64)
    command = [sys.executable, "-c", code, str(tmp_path / "file")]
    both = [subprocess.Popen([*command, seed]) for seed in "12"]
    assert [process.wait(300) for process in both] == [0, 0]
    store = SignatureFile(tmp_path / "file")
    store.verify()
    assert store.runs == [500] * 20


WITHOUT_A_NUMBER = np.where(np.arange(3)[:, None] == 1, np.nan, np.ones((3, 64), np.float32))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "scan"}, "method is 'scan'; expected one of: flips, blocks"),
        ({"chunk": 0}, "chunk is 0"),
        ({"radius": -1}, "radius is -1"),
        ({"weights": np.zeros((3, 8), np.float32)}, r"weights have shape \(3, 8\)"),
        ({"weights": WITHOUT_A_NUMBER, "flips": 3}, "weights of query 1 are not finite"),
        ({"weights": WITHOUT_A_NUMBER, "flips": 99}, "weights of query 1 are not finite"),
        ({"ids": [1, 2]}, "there are 3 signatures"),
        ({"method": "blocks", "tables": 3}, "tables is 3"),
        ({"limit": -1}, "limit is -1"),
    ],
)
def test_arguments_that_make_no_sense_are_named(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    rows, _ = edited(3, 0)
    filled(tmp_path / "file", [rows])
    before = (tmp_path / "file").read_bytes()
    with pytest.raises(la.errors.ArgumentError, match=message):
        la.match_batch(tmp_path / "file", rows, **options)
    assert (tmp_path / "file").read_bytes() == before


def test_files_that_do_not_fit_are_named(tmp_path: Path) -> None:
    rows, _ = edited(3, 0)
    with pytest.raises(la.errors.ArgumentError, match="there is no file .*append=True"):
        la.match_batch(tmp_path / "none", rows, append=False)
    filled(tmp_path / "file", [rows])
    with pytest.raises(
        la.errors.ArgumentError, match="queries have 128 bits, the signatures of .* 64"
    ):
        la.match_batch(tmp_path / "file", np.zeros((1, 16), np.uint8))
    with pytest.raises(la.errors.ResultTooLargeError, match="limit=2 matches"):
        la.match_batch(tmp_path / "file", rows, limit=2)
    with pytest.raises(la.errors.FileError, match="cannot be written"):
        SignatureFile.create(tmp_path / "file", 64)
    with pytest.raises(la.errors.FileError, match="cannot be read"):
        SignatureFile(tmp_path)
    with pytest.raises(la.errors.ArgumentError, match="bits is 12"):
        SignatureFile.create(tmp_path / "new", 12)
    with pytest.raises(la.errors.ArgumentError, match=r"shape \(3, 8\) and there are 2 ids"):
        SignatureFile(tmp_path / "file").append(rows, np.arange(2))
