"""Old items by their signatures: files, lists of hashes, indexes and collections say the same."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from benchmarks.images.scenes import CHANGES, scene
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike.cli import main
from lookalike.errors import ArgumentError, FormatError
from lookalike.images.signed import most_differing, pairs_by_hashes
from support.cases.videos import film, write


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("signed")
    for name in ("old", "new"):
        (top / name).mkdir()
    for number in range(4):
        scene(number, 240).save(top / "old" / f"{number}.png")
    shutil.copy(top / "old" / "0.png", top / "new" / "equal.png")
    CHANGES["twice the size"](scene(1, 240)).save(top / "new" / "larger.png")
    scene(2, 240).rotate(90, expand=True).save(top / "new" / "turned.png")
    scene(5, 240).save(top / "new" / "unseen.png")
    CHANGES["half the size"](scene(5, 240)).save(top / "new" / "unseen small.png")
    return top


def _file(old: Path, signer: la.ImageHash, out: Path) -> Any:
    hash = ["--hash", signer.kind, "--bits", str(signer.bits)]
    main(["sign", str(old), "-o", str(out / "old.lookalike"), "--quiet", *hash])
    return out / "old.lookalike"


def _index(old: Path, signer: la.ImageHash, out: Path) -> Any:
    main(["index", str(_file(old, signer, out)), "-o", str(out / "index.lookalike"), "--quiet"])
    assert isinstance(la.load_index(out / "index.lookalike"), la.indexes.Index)
    return out / "index.lookalike"


def _index_object(old: Path, signer: la.ImageHash, out: Path) -> Any:
    return la.load_index(_index(old, signer, out))


def _collection(old: Path, signer: la.ImageHash, out: Path) -> Any:
    with la.open_collection(out / "old.db", "pictures", signer=signer) as collection:
        files = [str(file) for file in sorted(old.iterdir())]
        collection.add(files, files)
    with la.open_collection(out / "old.db", "texts", purpose="duplicates") as other:
        other.add(["a"], ["some text"])  # another medium is not looked at
    return out / "old.db"


def _address(old: Path, signer: la.ImageHash, out: Path) -> Any:
    return f"sqlite:///{_collection(old, signer, out)}"


def _collection_object(old: Path, signer: la.ImageHash, out: Path) -> Any:
    return la.open_collection(_collection(old, signer, out), "pictures")


def _several(old: Path, signer: la.ImageHash, out: Path) -> Any:
    for name in ("one", "two"):
        (out / name).mkdir()
    for file in sorted(old.iterdir()):
        shutil.copy(file, out / ("one" if file.name < "2" else "two") / file.name)
    first = _file(out / "one", signer, out)
    return [first, _collection(out / "two", signer, out)]


FORMS = [_file, _index, _index_object, _collection, _address, _collection_object, _several]


def outcome(result: Any) -> dict[str, Any]:
    """Return which files are dropped because of which old ones, by names."""
    found: dict[str, Any] = {
        file.name: (
            bool(result.keep[row]),
            Path(result.old_id(result.matched_old[row])).name
            if result.matched_old[row] >= 0
            else None,
            int(result.distance[row]),
            float(result.similarity[row]) if not result.keep[row] else None,
        )
        for row, file in enumerate(result.files)
    }
    return found | {"counts": vars(result.counts)}


@pytest.mark.parametrize("kind, bits", [("dct", 256), ("dct", 64), ("pdq", 256)])
@pytest.mark.parametrize("rotated", [False, True])
def test_all_forms_say_the_same(
    pictures: Path, tmp_path: Path, kind: str, bits: int, rotated: bool
) -> None:
    signer, found = la.ImageHash(bits, kind), []
    for number, form in enumerate(FORMS if kind == "dct" else FORMS[:4:3]):
        (tmp_path / str(number)).mkdir()
        against = form(pictures / "old", signer, tmp_path / str(number))
        result = la.dedup(pictures / "new", against=against, rotated=rotated)
        found.append(outcome(result))
        assert len(result.old_signed) == result.old == 4 and not result.old_files
        assert "by signatures alone" in result.summary()
    assert all(one == found[0] for one in found[1:])
    one = found[0]
    assert one["equal.png"][:3] == (False, "0.png", 0) and one["larger.png"][:2] == (False, "1.png")
    assert one["turned.png"][1] == ("2.png" if rotated else None)
    assert one["unseen.png"][:2] == (True, None) and one["unseen small.png"][0] is False
    counts = one["counts"]
    assert counts["estimated_duplicates"] == counts["in_old"] == 2 + rotated
    assert counts["estimated_pairs"] == 2 + rotated and counts["near_duplicates"] == 1


def test_files_and_signatures_together(pictures: Path, tmp_path: Path) -> None:
    against = _file(pictures / "old", la.ImageHash(256), tmp_path)
    result = la.dedup(pictures / "new", against=[pictures / "old", against])
    assert result.old == 8 and len(result.old_signed) == len(result.old_files) == 4
    rows = dict(zip((file.name for file in result.files), result.matched_old.tolist(), strict=True))
    assert Path(str(result.old_id(rows["equal.png"]))).name == "0.png"
    assert result.counts.in_old == 2
    # An old file has decided about the equal one, byte for byte.
    assert result.counts.exact_duplicates == 1 and rows["equal.png"] >= 4
    result.write_pairs(tmp_path / "pairs.jsonl")
    pairs = [json.loads(line) for line in (tmp_path / "pairs.jsonl").read_text().splitlines()]
    # The equal file is paired with the old file alone.
    assert sum(pair["old"] for pair in pairs) == 3 and len(pairs) == 4
    result.report(tmp_path / "page.html")
    assert "by signatures" in (tmp_path / "page.html").read_text() or rows["larger.png"] >= 4


def test_applying_leaves_alone_what_has_no_old_file(pictures: Path, tmp_path: Path) -> None:
    shutil.copytree(pictures / "new", tmp_path / "new")
    against = _file(pictures / "old", la.ImageHash(256), tmp_path)
    result = la.dedup(tmp_path / "new", against=against)
    result.report(tmp_path / "page.html")
    assert "by signatures" in (tmp_path / "page.html").read_text()
    done = result.apply("move", tmp_path / "moved", journal=tmp_path / "journal")
    assert [Path(one.path).name for one in done.done] == ["unseen small.png"]
    assert {one.path.name: one.reason for one in done.left_alone} == dict.fromkeys(
        ("equal.png", "larger.png"), "the old copy is known only by its signature"
    )


def test_a_list_of_pdq_hashes(
    pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    signer = la.ImageHash(kind="pdq")
    saved = la.dedup(
        pictures / "new", hash="pdq", against=_file(pictures / "old", signer, tmp_path)
    )
    main(["sign", str(pictures / "old"), "-o", str(tmp_path / "list.csv"), "--hash", "pdq"])
    hashes = [line.split(",")[0] for line in (tmp_path / "list.csv").read_text().splitlines()]
    (tmp_path / "plain.txt").write_text("\n".join(one for one in hashes if len(one) == 64) + "\n")
    for name in ("list.csv", "plain.txt"):
        found = la.dedup(pictures / "new", hash="pdq", against=tmp_path / name)
        assert found.matched_old.tolist() == saved.matched_old.tolist()
        assert found.counts == saved.counts
    with pytest.raises(ArgumentError, match=r"list of hashes of 256 bits, which does not tell"):
        la.dedup(pictures / "new", against=tmp_path / "list.csv")
    capsys.readouterr()
    code = main(
        [
            *("dedup", str(pictures / "new"), "--against", str(tmp_path / "list.csv")),
            *("--hash", "pdq", "--json", "-o", str(tmp_path / "kept.txt")),
        ]
    )
    assert not code
    told = json.loads(capsys.readouterr().out)
    assert told["counts"]["in_old"] == 2
    code = main(
        [
            *("dedup", str(pictures / "new"), "--against", str(tmp_path / "list.csv")),
            *("--hash", "pdq", "-o", str(tmp_path / "list.csv")),
        ]
    )
    assert code and "list.csv" in capsys.readouterr().err


def test_what_is_refused(pictures: Path, tmp_path: Path) -> None:
    text = la.SimHash()
    la.save_signatures(tmp_path / "text.lookalike", text.sign(["a b c"]), text)
    with pytest.raises(ArgumentError, match=r"which was not signed by la.ImageHash"):
        la.dedup(pictures / "new", against=tmp_path / "text.lookalike")
    with pytest.raises(ArgumentError, match=r"of the kind 'gradient', which are too often"):
        la.dedup(
            pictures / "new",
            against=_file(pictures / "old", la.ImageHash(64, "gradient"), tmp_path),
        )
    database = _collection(pictures / "old", la.ImageHash(64), tmp_path)
    la.open_collection(database, "more", signer=la.ImageHash(64)).close()
    with pytest.raises(ArgumentError, match=r"2 collections of images \(it has 'more', 'pictures'"):
        la.dedup(pictures / "new", against=database)
    with pytest.raises(ArgumentError, match=r"no collection of recordings"):
        la.dedup(pictures / "new", kind="recordings", against=database)
    with (
        la.open_collection(database, "texts") as texts,
        pytest.raises(ArgumentError, match=r"the collection 'texts' of text; expected one of imag"),
    ):
        la.dedup(pictures / "new", against=texts)


@given(
    st.integers(0, 2**32),
    st.integers(0, 12),
    st.integers(0, 12),
    st.sampled_from([("dct", 64), ("dct", 256), ("pdq", 256)]),
    st.sampled_from([1, 8]),
)
@settings(max_examples=60, deadline=None)
def test_pairs_by_hashes(
    seed: int, old: int, new: int, hash: tuple[str, int], orientations: int
) -> None:
    """Compared with brute force."""
    random, (kind, bits) = np.random.default_rng(seed), hash
    base = random.integers(0, 2, bits)
    flips = random.random((old + new * orientations, bits)) < random.random() / 3
    rows = np.packbits(base ^ flips, axis=1, bitorder="little")
    quality = random.integers(0, 101 if kind == "pdq" else bits + 1, new)
    most = most_differing(la.ImageHash(bits, kind), quality)
    hashes = rows[old:].reshape(new, orientations, bits // 8)
    found = pairs_by_hashes(rows[:old], hashes, most, threads=1)
    expected = [
        (left, right, distance)
        for left in range(old)
        for right in range(new)
        for turn in range(orientations)
        if (distance := int(np.bitwise_count(rows[left] ^ hashes[right, turn]).sum()))
        <= most[right]
    ]
    assert sorted(zip(*(one.tolist() for one in found), strict=True)) == sorted(expected)


def test_fewer_clear_bits_may_differ_less() -> None:
    for bits, kind in ((64, "dct"), (256, "dct")):
        most = most_differing(la.ImageHash(bits, kind), np.arange(bits + 1))
        assert most[16] == -1 and (np.diff(most) >= 0).all() and most[-1] > 0
    assert most_differing(la.ImageHash(kind="pdq"), np.array([49, 50])).tolist() == [-1, 31]


# Recordings and videos: words and frames are all that is compared of files, too.


def _noise(seed: int, seconds: float) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).normal(size=round(8000 * seconds)).astype(np.float32) / 8


@pytest.fixture(scope="module")
def sounds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("sounds")
    for name in ("old", "new"):
        (top / name).mkdir()
    for number in range(3):
        soundfile.write(top / "old" / f"{number}.wav", _noise(number, 8), 8000)
    soundfile.write(top / "new" / "again.flac", _noise(1, 8) / 2, 8000)
    soundfile.write(top / "new" / "longer.wav", np.r_[_noise(2, 8), _noise(9, 1)], 8000)
    soundfile.write(top / "new" / "half.wav", _noise(0, 4), 8000)
    soundfile.write(top / "new" / "unseen.wav", _noise(5, 8), 8000)
    return top


def _sound_collection(old: Path, out: Path) -> Any:
    with la.open_collection(out / "old.db", signer=la.AudioHash()) as collection:
        files = [str(file) for file in sorted(old.iterdir())]
        collection.add(files, files)
    return out / "old.db"


def _sound_index(old: Path, out: Path) -> Any:
    index = la.RecordingIndex()
    for file in sorted(old.iterdir()):
        index.add(str(file), file)
    index.save(out / "old.parts")  # as `audio index -o` may name it
    return out / "old.parts"


@pytest.mark.parametrize("form", [_sound_collection, _sound_index])
@pytest.mark.parametrize("threshold", [0.4, 0.8, 0.95])
def test_recordings_are_decided_as_files_are(
    sounds: Path, tmp_path: Path, form: Callable[..., Any], threshold: float
) -> None:
    files = la.dedup(sounds / "new", against=sounds / "old", threshold=threshold)
    signed = la.dedup(sounds / "new", against=form(sounds / "old", tmp_path), threshold=threshold)
    assert outcome(files) == outcome(signed)
    assert files.counts.in_old == {0.4: 3, 0.8: 2, 0.95: 1}[threshold]
    assert signed.counts.estimated_duplicates == 0


def test_recordings_of_another_signer(sounds: Path, tmp_path: Path) -> None:
    video = tmp_path / "videos.db"
    la.open_collection(video, signer=la.VideoHash()).close()
    with pytest.raises(ArgumentError, match="no collection of recordings"):
        la.dedup(sounds / "new", against=video)
    index = la.PartIndex(32)
    index.add("a", np.arange(9, dtype=np.uint32))
    with pytest.raises(ArgumentError, match=r"not signed by AudioHash"):
        la.dedup(sounds / "new", against=index)


def test_videos_against_a_collection(tmp_path: Path) -> None:
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    still = np.repeat(film(7, 1)[:1], 60, axis=0)
    films = {"a": film(1, 5), "b": film(2, 5), "c": np.r_[film(3, 3), still]}
    for name, pixels in films.items():
        write(tmp_path / "old" / f"{name}.mp4", pixels)
    write(tmp_path / "new" / "a again.mkv", films["a"][:, ::2, ::2])
    write(tmp_path / "new" / "c again.mp4", films["c"], bit_rate=300_000)
    write(tmp_path / "new" / "unseen.mp4", film(5, 5))
    with la.open_collection(tmp_path / "old.db", signer=la.VideoHash()) as collection:
        files = [str(file) for file in sorted((tmp_path / "old").iterdir())]
        collection.add(files, files)
    found = la.dedup(tmp_path / "new", against=tmp_path / "old.db")
    rows = {file.name: found.matched_old[row] for row, file in enumerate(found.files)}
    assert rows == {"a again.mkv": 0, "c again.mp4": 2, "unseen.mp4": -1}
    assert found.counts.estimated_duplicates == 2


# Texts


TEXTS = {
    "fox": "the quick brown fox jumps over the lazy dog and runs away into the dark forest",
    "owl": "an owl sleeps by day and hunts by night for mice and voles in the wide fields",
}
NEW = [TEXTS["fox"], TEXTS["owl"] + " today", "a text about other things that no one has seen yet"]


def _texts(tmp_path: Path, keep_text: bool, signer: Any) -> Path:
    with la.open_collection(tmp_path / "t.db", signer=signer, keep_text=keep_text) as collection:
        collection.add(list(TEXTS), list(TEXTS.values()))
    return tmp_path / "t.db"


def test_texts_of_a_collection(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They are compared as those of a corpus, whatever the signer of the collection is."""
    (tmp_path / "old.jsonl").write_text(
        "".join(json.dumps({"id": id, "text": text}) + "\n" for id, text in TEXTS.items())
    )
    database = _texts(tmp_path, True, la.SimHash(bits=128))
    for way in ({}, {"exact": True}, {"method": "simhash", "threshold": 0.6}):
        expected = la.dedup(NEW, against=tmp_path / "old.jsonl", **way)
        found = la.dedup(NEW, against=database, **way)
        assert vars(found.counts) == vars(expected.counts) and found.counts.in_old == 2
        assert found.matched_old.tolist() == expected.matched_old.tolist() == [0, 1, -1]
        assert [found.old_id(row) for row in (0, 1)] == list(TEXTS)
    (tmp_path / "new.jsonl").write_text("".join(json.dumps({"body": one}) + "\n" for one in NEW))
    code = main(
        [
            *("dedup", str(tmp_path / "new.jsonl"), "--against", str(database), "--json"),
            *("-o", str(tmp_path / "kept.jsonl")),
        ]
    )
    assert not code and json.loads(capsys.readouterr().out)["counts"]["in_old"] == 2
    assert main(["dedup", str(tmp_path / "new.jsonl"), "--against", f"sqlite:///{database}"]) == 0


def test_a_collection_without_texts_and_an_index(tmp_path: Path) -> None:
    signer = la.SimHash(bits=128, features=la.Words(ngram=3))
    database = _texts(tmp_path, False, signer)
    la.save_signatures(
        tmp_path / "s.lookalike", signer.sign(list(TEXTS.values())), signer, ids=list(TEXTS)
    )
    main(["index", str(tmp_path / "s.lookalike"), "-o", str(tmp_path / "i.lookalike"), "--quiet"])
    ways = [tmp_path / "s.lookalike", tmp_path / "i.lookalike", database]
    ways += [la.load_index(ways[1]), la.open_collection(database)]  # type: ignore[list-item]
    found = [la.dedup(NEW, method="simhash", threshold=0.6, against=way) for way in ways]
    for one in found:
        assert vars(one.counts) == vars(found[0].counts) and one.counts.estimated_duplicates == 2
        assert one.matched_old.tolist() == [0, 1, -1] and one.old_id(1) == "owl"
    with pytest.raises(FormatError, match="the collection 'documents' was signed by"):
        la.dedup(NEW, against=database)
    with pytest.raises(ArgumentError, match="which does not have signatures of documents"):
        la.dedup(NEW, method="simhash", against=la.ScanIndex(signer.sign(NEW)))


def test_a_job_against_a_collection_is_resumed(tmp_path: Path) -> None:
    database = _texts(tmp_path, True, la.SimHash())
    source = tmp_path / "new.jsonl"
    source.write_text("".join(json.dumps({"text": one}) + "\n" for one in NEW))
    first = la.dedup(source, against=database, work=tmp_path / "work")
    again = la.dedup(source, against=database, work=tmp_path / "work")
    assert not first.reused and "sign" in again.reused
    assert vars(first.counts) == vars(again.counts)
    with la.open_collection(database) as collection:
        collection.delete(["fox"])
    changed = la.dedup(source, against=database, work=tmp_path / "work")
    assert changed.counts.in_old == 1 and not changed.reused
