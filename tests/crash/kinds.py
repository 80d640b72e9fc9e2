"""Every kind of file that is written, as small as it can be, and all that can be asked of it.

A kind makes its files in a folder, and answers from them whatever a caller could see. Answers of a
damaged file are compared with those of the whole one, which other tests compare with the truth.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import lookalike as la
from lookalike import SignatureFile
from lookalike.storage.file_cache import RECENT, FileCache, Kept
from support.oracles import scan as oracle

__all__ = ["KINDS", "Kind"]

_TEXTS = ["the quick brown fox jumps", "the quick brown dog jumps", "over the lazy dog", "more"]
_ROWS = oracle.collection(24, 2, "clustered", 3)
_IDS = (np.arange(24) * 7 + 3).astype(np.int64)
_QUERIES = np.concatenate([_ROWS[::5], oracle.collection(3, 2, "uniform", 4)])
_NAMES = [f"name {place}" for place in range(24)]


@dataclass(frozen=True)
class Kind:
    """One kind of file."""

    make: Callable[[Path], None]
    """Write the files into a folder."""
    ask: Callable[[Path], Any]
    """Return everything there is in them."""
    files: tuple[str, ...] = ("file.lookalike",)
    """Which of them are damaged."""
    used: Callable[[Path], bool] = lambda folder: True
    """Whether whole files are really used, where they need not be: then they are not made anew."""
    most: int | None = None
    """Changes that are tried at most: of a database, most pages are empty."""


def _signer() -> la.SimHash:
    return la.SimHash(bits=16, weights="tfidf").fit(_TEXTS)


def _signed(signer: la.Signer) -> bytes:
    """Return what a signer that was read makes of texts."""
    assert isinstance(signer, la.SimHash)
    return bytes(signer.sign(_TEXTS).tobytes())


def _path(folder: Path) -> Path:
    return folder / "file.lookalike"


# Rows under keys

_SIGNER = la.MinHash(permutations=16, features=la.Words(1))


def _make_bands(folder: Path) -> None:
    bands = la.BandIndex(threshold=0.5, permutations=16)
    bands.insert_many(["a", 2, b"c", ("d", 4)], _SIGNER.sign(_TEXTS))
    bands.remove(2)
    bands.save(_path(folder))


def _ask_bands(folder: Path) -> Any:
    bands = la.BandIndex.load(_path(folder))
    found = bands.query_many(_SIGNER.sign(_TEXTS))
    return list(bands.keys()), [[repr(match) for match in one] for one in found]


# Parts of items


def _make_parts(folder: Path) -> None:
    """Save items of which some were removed, and ids used again."""
    parts = la.PartIndex(16)
    parts.add_many(["a", 2, "ä"], [_ROWS[:6], _ROWS[6:12], _ROWS[12:18]], [range(0, 60, 10)] * 3)
    parts.search(_QUERIES)
    parts.remove("a")
    parts.add("a", _ROWS[18:])
    parts.add("nothing", [])
    parts.signer = _signer()
    parts.save(_path(folder), notes={"n": 1})


def _ask_parts(folder: Path) -> Any:
    """Save them again before anything is asked, so that damage cannot be passed on."""
    found: list[Any] = []
    la.PartIndex.load(_path(folder)).save(folder / "again", notes={"n": 1})
    for path in (_path(folder), folder / "again"):
        parts = la.PartIndex.load(path)
        assert parts.signer is not None
        answer = parts.search(_QUERIES, radius=3, min_votes=1, tolerance=1)
        matches = [(one.item, one.offset, one.votes, one.parts) for one in answer]
        found.append((parts.items(), parts.part_count, parts.notes, matches, answer.exact))
        found.append((_signed(parts.signer), parts.bits, parts.kind, answer.left_out))
    return found


# Vectors

_VECTORS = np.random.default_rng(5).normal(size=(24, 3)).astype(np.float16)


def _make_vectors(folder: Path) -> None:
    index = la.VectorIndex(_VECTORS, _IDS, bits=16)
    index.remove(_IDS[:2])
    index.add(_VECTORS[:1])
    index.tune(2, 0.5)
    index.save(_path(folder))


def _ask_vectors(folder: Path) -> Any:
    """Save them again before anything else is read, so that damage cannot be passed on."""
    la.VectorIndex.load(_path(folder), verify=False).save(folder / "again")
    found: list[Any] = []
    for path in (_path(folder), folder / "again"):
        index = la.VectorIndex.load(path)
        near = index.search(_VECTORS, 5, candidates=8, probe=1)
        rows, ids = index.living()
        exact = index.search(_VECTORS, 5, exact=True)
        found.append((near.ids.tolist(), exact.ids.tolist(), exact.similarities.tolist()))
        found.append((rows.tolist(), ids.tolist(), index.next_id, repr(index.tunings)))
    return found


def _make_bits_of_vectors(folder: Path) -> None:
    index = la.VectorIndex(_VECTORS, _IDS, bits=16, only_bits=True)
    index.remove(_IDS[:2])
    index.add(_VECTORS[:1])
    index.save(_path(folder))


def _ask_bits_of_vectors(folder: Path) -> Any:
    """Save them again before anything else is read, so that damage cannot be passed on."""
    la.VectorIndex.load(_path(folder), verify=False).save(folder / "again")
    found: list[Any] = []
    for path in (_path(folder), folder / "again"):
        index = la.VectorIndex.load(path)
        near = index.search(_VECTORS, 5, candidates=24, probe=index.clusters)
        found.append((near.ids.tolist(), near.similarities.tolist(), len(index), index.next_id))
    return found


def _make_work_of_vectors(folder: Path) -> None:
    corpus = folder / "corpus.jsonl"
    rows = [*_VECTORS.tolist(), *(2 * _VECTORS[:5]).tolist()]
    lines = [{"id": n, "embedding": row} for n, row in enumerate(rows)]
    corpus.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "where").write_text(str(corpus))  # as for the work folder of texts
    _dedup_vectors(folder)


def _dedup_vectors(folder: Path) -> Any:
    corpus = Path((folder / "where").read_text())
    return la.dedup(corpus, vectors="embedding", work=folder / "work", threads=1)


def _ask_work_of_vectors(folder: Path) -> Any:
    result = _dedup_vectors(folder)
    pairs = result.pairs
    return (
        (result.keep.tolist(), result.duplicate_of.tolist(), result.group_of.tolist()),
        (pairs.left.tolist(), pairs.right.tolist(), pairs.similarity.tolist()),
    )


def _work_of_vectors_used(folder: Path) -> bool:
    return bool(_dedup_vectors(folder).reused)


# Files of media

_KEPT = Kept(["bytes"], bytes, bytes)


def _make_file_cache(folder: Path) -> None:
    """Keep what was read of files, which are as old as an entry needs them to be."""
    files = folder / "files"
    files.mkdir()
    for place, name in enumerate(_NAMES):
        (files / name).write_bytes(_ROWS[place].tobytes() * (place % 5))
    (folder / "where").write_text(str(files))
    time.sleep(RECENT / 1e9 + 0.1)
    _ask_file_cache(folder)


def _ask_file_cache(folder: Path) -> Any:
    """Read all files; a bad cache costs time, no answer."""
    return _read_files(folder)[0]


def _read_files(folder: Path) -> tuple[Any, int]:
    files = sorted(Path((folder / "where").read_text()).iterdir())
    with FileCache(folder / "cache" / "files.sqlite", None) as cache:
        keys = cache.keys(files, _KEPT.made_by)
        found = list(cache.reading(files, _KEPT, lambda some: [one.read_bytes() for one in some]))
        return (found, cache.together(keys, _KEPT, lambda: b"all of them")), cache.hits


def _file_cache_used(folder: Path) -> bool:
    return _read_files(folder)[1] == len(_NAMES) + 1


# Signatures and signers


def _make_signatures(folder: Path) -> None:
    la.save_signatures(_path(folder), _ROWS, _signer(), _NAMES)


def _ask_signatures(folder: Path) -> Any:
    """Save them again before anything else is read, so that damage cannot be passed on."""
    saved = la.load_signatures(_path(folder))
    la.save_signatures(folder / "again", saved.signatures, saved.signer, saved.ids)
    found: list[Any] = []
    for path in (_path(folder), folder / "again"):
        saved = la.load_signatures(path)
        found.append((saved.signatures.tobytes(), list(saved.ids or ()), _signed(saved.signer)))
    return found


def _make_weighted(folder: Path) -> None:
    weights = np.where(np.unpackbits(_ROWS, axis=1, bitorder="little"), 3, -2).astype(np.int16)
    la.save_signatures(_path(folder), _ROWS, _signer(), _NAMES, weights=weights)


def _ask_weighted(folder: Path) -> Any:
    saved = la.load_signatures(_path(folder))
    assert saved.weights is not None
    la.save_signatures(folder / "more", saved.signatures, saved.signer, weights=saved.weights)
    return saved.weights.tolist(), _ask_signatures(folder)


def _make_signer(folder: Path) -> None:
    _signer().save(_path(folder))


def _ask_signer(folder: Path) -> Any:
    signer = la.load_signer(_path(folder))
    return signer.to_dict(), _signed(signer)


# Indexes


def _save(index: la.Index, path: Path) -> None:
    index.signer, index.names = _signer(), _NAMES
    index.save(path, notes={"n": 1})


def _answers(index: la.Index) -> Any:
    """Return all answers of an index, with all it has besides."""
    nearest = index.search(_QUERIES, 4)
    near = index.within(_QUERIES, 3)
    pairs = index.pairs(2)
    rows, ids = index.living()
    signed = None if index.signer is None else _signed(index.signer)
    return (
        (nearest.ids.tolist(), nearest.distances.tolist(), nearest.exact),
        (near.offsets.tolist(), near.ids.tolist(), near.distances.tolist(), near.exact),
        (pairs.left.tolist(), pairs.right.tolist(), pairs.distances.tolist()),
        (rows.tobytes(), ids.tolist(), len(index), index.bits),
        (signed, index.notes, None if index.names is None else list(index.names)),
    )


def _ask_index(folder: Path) -> Any:
    """Save it again before anything is asked of it, so that damage cannot be passed on."""
    index = la.load_index(_path(folder))
    index.save(folder / "again", notes=index.notes)
    return [_answers(la.load_index(path)) for path in (_path(folder), folder / "again")]


def _make_scan(folder: Path) -> None:
    _save(la.ScanIndex(_ROWS, _IDS), _path(folder))


def _make_slices(folder: Path) -> None:
    """Save several segments, with rows that were removed, and ids that were used again."""
    index = la.SliceIndex(_ROWS[:20], 8, _IDS[:20])
    index.add(_ROWS[20:], _IDS[20:])
    index.remove(_IDS[3:6])
    index.add(_ROWS[3:5], _IDS[3:5])
    _save(index, _path(folder))


def _make_built_slices(folder: Path) -> None:
    la.SliceIndex.build(_path(folder), _lists(), 4, memory=256)


def _lists() -> np.ndarray[Any, Any]:
    """Return signatures that are enough for slices of 4 bits to have lists."""
    return oracle.collection(40, 2, "uniform", 5)


def _make_blocks(folder: Path) -> None:
    _save(la.BlockIndex(_ROWS, 2, ids=_IDS), _path(folder))


def _make_compressed_blocks(folder: Path) -> None:
    _save(la.BlockIndex(_ROWS, 2, ids=_IDS, compressed=True), _path(folder))


def _make_sharded(folder: Path) -> None:
    parts = [la.SliceIndex(_ROWS[:10], 4, _IDS[:10]), la.ScanIndex(_ROWS[10:], _IDS[10:])]
    la.ShardedIndex(parts).save(_path(folder))


def _make_flips(folder: Path) -> None:
    _save(la.FlipIndex(_ROWS, 6, _IDS), _path(folder))


def _make_clusters(folder: Path) -> None:
    """Save groups some of whose rows were removed, others added, and ids used again."""
    index = la.ClusterIndex(_ROWS[:20], 4, _IDS[:20])
    index.tune_probes(2, 0.9)
    index.add(_ROWS[20:], _IDS[20:])
    index.remove(_IDS[3:6])
    index.add(_ROWS[3:5], _IDS[3:5])
    _save(index, _path(folder))


def _make_prefixes(folder: Path) -> None:
    _save(la.PrefixIndex(_ROWS, 2, _IDS), _path(folder))


def _make_shards(folder: Path) -> None:
    la.SliceIndex(_ROWS[:12], 8, _IDS[:12]).save(folder / "one.lookalike")
    la.SliceIndex(_ROWS[12:], 8, _IDS[12:]).save(folder / "two.lookalike")


def _ask_shards(folder: Path) -> Any:
    shards = [la.load_index(folder / f"{name}.lookalike") for name in ("one", "two")]
    return _answers(la.ShardedIndex(shards))


# Runs of signatures


def _runs(path: Path) -> list[tuple[bytes, list[int]]]:
    file = SignatureFile(path)
    file.verify()
    return [(rows.tobytes(), ids.tolist()) for rows, ids in file.each_run()]


def _make_runs(folder: Path) -> None:
    for begin in (0, 8, 16):
        la.match_batch(_path(folder), _ROWS[begin : begin + 8], 2, method="blocks", threads=1)


def _ask_runs(folder: Path) -> Any:
    """Read, match, append, and read again: what was there must still be there."""
    path = _path(folder)
    before = _runs(path)
    found = la.match_batch(path, _QUERIES, 2, method="blocks", append=False, threads=1)
    la.match_batch(path, _QUERIES, 2, method="flips", threads=1)
    assert _runs(path)[:-1] == before, "appending changed what was there"
    last = _runs(path)[-1]
    SignatureFile(path).compact(threads=1)
    return before, found.offsets.tolist(), found.ids.tolist(), last, _runs(path)


# Collections


def _open(folder: Path) -> la.Collection:
    return la.open_collection(folder / "docs.db", bits=8, cache=folder / "cache")


def _make_collection(folder: Path) -> None:
    with _open(folder) as docs:
        docs.add(_NAMES, signatures=_ROWS[:, :1])
        docs.delete(_NAMES[:3])
        docs.add(_NAMES[:3], signatures=_ROWS[3:6, :1])
        docs.refresh()
        docs._native._changes = 10**9  # so that so small an index is written
        docs._native.save()


def _ask_cache(folder: Path) -> Any:
    """Search; a bad cache costs time, no answer."""
    with _open(folder) as docs:
        answer = docs.within_many(_QUERIES[:, :1], 2)
        return [list(zip(found.ids, found.distances, strict=True)) for found in answer]


def _cache_used(folder: Path) -> bool:
    with _open(folder) as docs:
        docs.search(_QUERIES[0, :1], 1)
        return docs._native._changes == 0  # an index that was built has changes


def _make_snapshot(folder: Path) -> None:
    with la.open_collection(folder / "docs.db", bits=16, cache=False) as docs:
        docs.add(
            _NAMES[:8],
            [f"the text of {name}" for name in _NAMES[:8]],
            signatures=_ROWS[:8],
            metadata=[{"n": place} for place in range(8)],
        )
        docs.snapshot(_path(folder))


def _ask_snapshot(folder: Path) -> Any:
    """Restore it, and read all that was restored."""
    target = folder / "restored.db"
    target.unlink(missing_ok=True)
    la.restore_collection(_path(folder), target)
    with la.open_collection(target, cache=False) as docs:
        found = [
            (item.id, item.text, json.dumps(item.metadata), item.signature.tobytes())
            for item in docs
        ]
        assert docs.verify().ok, "what was restored is damaged"
        answers = docs.within_many(_QUERIES, 3, text=True)
        return found, docs.count(), [list(answer) for answer in answers]


# Work folders


def _corpus() -> list[str]:
    rng = np.random.default_rng(1)
    texts = [" ".join(f"w{n}" for n in line) for line in rng.integers(0, 30, (6, 12)).tolist()]
    return [*texts, texts[0] + " more", texts[1], texts[2] + " w1 w2"]


def _make_work(folder: Path) -> None:
    corpus = folder / "corpus.jsonl"
    lines = [{"id": f"id{n}", "text": text} for n, text in enumerate(_corpus())]
    corpus.write_text("".join(json.dumps(line) + "\n" for line in lines))
    # Stamps tell a corpus by its name and time, so copies of the folder share this one.
    (folder / "where").write_text(str(corpus))
    _dedup(folder)


def _dedup(folder: Path, **options: Any) -> la.results.TextResult:
    settings: dict[str, Any] = {"threshold": 0.5, "ngram": 2, "permutations": 32, "threads": 1}
    corpus = Path((folder / "where").read_text())
    return la.dedup(corpus, work=folder / "work", **settings, **options)


def _make_unfinished_work(folder: Path) -> None:
    """Stop while documents are being signed."""
    _make_work(folder)
    shutil.rmtree(folder / "work")

    def stop(step: str, share: float) -> None:
        if step == "sign" and share > 0.5:
            raise KeyboardInterrupt

    sign: Any = sys.modules["lookalike.dedup.sign"]
    before = sign._AT_A_TIME
    sign._AT_A_TIME = 3
    try:
        _dedup(folder, progress=stop)
    except KeyboardInterrupt:
        return
    finally:
        sign._AT_A_TIME = before
    raise AssertionError("the job came to its end")


def _ask_work(folder: Path) -> Any:
    result = _dedup(folder)
    pairs = result.pairs
    return (
        (result.keep.tolist(), result.duplicate_of.tolist(), result.group_of.tolist()),
        (pairs.left.tolist(), pairs.right.tolist(), pairs.similarity.tolist()),
        [(result.id(row), result.text(row)) for row in range(len(_corpus()))],
    )


def _work_used(folder: Path) -> bool:
    return _dedup(folder).reused == ("read", "sign", "propose", "verify")


def _signing_goes_on(folder: Path) -> bool:
    return _dedup(folder).reused == ("read", "sign")


KINDS = {
    "signatures": Kind(_make_signatures, _ask_signatures),
    "weighted signatures": Kind(_make_weighted, _ask_weighted),
    "signer": Kind(_make_signer, _ask_signer),
    "scan": Kind(_make_scan, _ask_index),
    "slices": Kind(_make_slices, _ask_index),
    "built slices": Kind(_make_built_slices, _ask_index),
    "blocks": Kind(_make_blocks, _ask_index),
    "compressed blocks": Kind(_make_compressed_blocks, _ask_index),
    "flips": Kind(_make_flips, _ask_index),
    "prefix": Kind(_make_prefixes, _ask_index),
    "clusters": Kind(_make_clusters, _ask_index),
    "shards": Kind(_make_shards, _ask_shards, ("one.lookalike", "two.lookalike")),
    "bands": Kind(_make_bands, _ask_bands),
    "parts": Kind(_make_parts, _ask_parts),
    "vectors": Kind(_make_vectors, _ask_vectors),
    "bits of vectors": Kind(_make_bits_of_vectors, _ask_bits_of_vectors),
    "shards in one file": Kind(_make_sharded, _ask_index),
    "runs": Kind(_make_runs, _ask_runs),
    "cache": Kind(_make_collection, _ask_cache, ("cache/*",), _cache_used),
    "snapshot": Kind(_make_snapshot, _ask_snapshot),
    "work": Kind(_make_work, _ask_work, ("work/*",), _work_used),
    "work of vectors": Kind(
        _make_work_of_vectors, _ask_work_of_vectors, ("work/*",), _work_of_vectors_used
    ),
    "file cache": Kind(
        _make_file_cache, _ask_file_cache, ("cache/*",), _file_cache_used, most=20_000
    ),
    "unfinished work": Kind(_make_unfinished_work, _ask_work, ("work/*",), _signing_goes_on),
}
