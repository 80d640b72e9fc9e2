"""Hashes of frames: which are sampled, which vote, and what they find."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pdqhash
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike.parts.signer import SignedParts
from lookalike.videos.decode import STEP, container_of, hash_frame
from lookalike.videos.frames import LEAST_QUALITY, VideoFrames, VideoInfo, voting_frames
from support.cases.videos import RATE, film, write

HASH = la.VideoHash()


def indexed(videos: dict[str, SignedParts]) -> la.PartIndex:
    index = la.PartIndex(256)
    for name, parts in videos.items():
        index.add(name, *parts)
    return index


def search(index: la.PartIndex, parts: SignedParts) -> list[tuple[str | int, int]]:
    votes = HASH.votes
    answer = index.search(
        *parts,
        radius=votes.radius,
        tolerance=votes.tolerance,
        min_votes=votes.min_votes(len(parts.signatures)),
        nearness=votes.nearness,
    )
    return [(one.item, one.offset) for one in answer if one.score >= votes.least_score]


@given(st.integers(5, 90), st.integers(5, 90), st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_a_frame_is_hashed_by_pdq(rows: int, columns: int, seed: int) -> None:
    gray = np.random.default_rng(seed).integers(0, 256, (rows, columns)).astype(np.uint8)
    bits, quality = pdqhash.compute(np.repeat(gray[..., None], 3, axis=2))
    (signature,), found = hash_frame(gray)
    # Three equal channels are weighted to the gray level, up to rounding in the last bit.
    assert np.unpackbits(signature ^ np.packbits(bits, bitorder="little")).sum() <= 4
    assert abs(found - quality) <= 1


def changed(row: np.ndarray, bits: int, rng: np.random.Generator) -> np.ndarray:
    flips = np.zeros(256, np.uint8)
    flips[rng.choice(256, bits, replace=False)] = 1
    return row ^ np.packbits(flips)


def test_the_place_in_a_film_of_one_still_scene() -> None:
    """All frames are near each other, so most votes do not tell where; distances do."""
    rng = np.random.default_rng(4)
    still = rng.integers(0, 256, 32).astype(np.uint8)
    film_rows = [changed(still, 8, rng) for _ in range(12)]
    film_rows += [changed(still, 50, rng) for _ in range(4)]  # something moves
    query = [changed(row, 6, rng) for row in film_rows[4:]]
    query[-1] = changed(still, 30, rng)  # too far from its frame, near all others
    offsets = np.arange(16) * STEP
    index = indexed({"film": SignedParts(np.array(film_rows), offsets)})
    parts = SignedParts(np.array(query), offsets[:12])
    votes = HASH.votes
    asked = {"radius": votes.radius, "tolerance": 0}
    assert index.search(*parts, **asked)[0].offset != 4 * STEP  # type: ignore[arg-type]
    assert index.search(*parts, **asked, nearness=True)[0].offset == 4 * STEP  # type: ignore[arg-type]
    assert search(index, parts) == [("film", 4 * STEP)]
    with pytest.raises(la.errors.ArgumentError, match="nearness needs radius"):
        index.search(*parts, neighbors=1, nearness=True)


def test_four_frames_of_a_second_are_hashed(tmp_path: Path) -> None:
    path = write(tmp_path / "film.mp4", film(1, 5))
    frames = HASH.frames(path)
    assert frames.signatures.shape == (20, 32)
    assert np.array_equal(frames.offsets, np.arange(20) * STEP)
    assert frames.info.width == 128 and frames.info.height == 96 and frames.info.rate == RATE
    assert frames.info.seconds == pytest.approx(5) and frames.info.format == "mov"
    data = HASH.frames(path.read_bytes())
    assert np.array_equal(data.signatures, frames.signatures)
    parts = HASH.sign_query(frames)
    assert np.array_equal(HASH.sign(path), parts.signatures)
    assert frames.to_numpy()["hash"][0] == la.signatures.signatures_to_hex(frames.signatures)[0]


def test_black_and_repeated_frames_do_not_vote(tmp_path: Path) -> None:
    pixels = film(2, 6)
    pixels[: 2 * RATE] = 0
    pixels[2 * RATE : 5 * RATE] = pixels[2 * RATE]
    frames = HASH.frames(write(tmp_path / "film.mp4", pixels))
    votes = frames.offsets[frames.voting]
    assert votes[0] >= 2000 and (frames.quality[frames.offsets < 2000] < LEAST_QUALITY).all()
    still = votes[votes < 5000]
    assert 3 <= len(still) <= 4 and (np.diff(still) >= 1000).all()
    assert (votes >= 5000).sum() >= 3


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 100)), max_size=40))
def test_voting_frames_are_as_they_are_defined(given: list[tuple[int, int]]) -> None:
    patterns = np.zeros((4, 32), np.uint8)
    patterns[1, :1] = 63  # 6 bits: a repetition
    patterns[2, :4] = 255
    patterns[3] = 255
    rows = patterns[[kind for kind, _ in given]].reshape(-1, 32)
    offsets = np.arange(len(given)) * STEP
    quality = np.array([one for _, one in given], np.uint8)
    expected: list[bool] = []
    last = None
    for at in range(len(given)):
        repeats = (
            last is not None
            and offsets[at] - offsets[last] < 1000
            and np.unpackbits(rows[at] ^ rows[last]).sum() <= 6
        )
        expected.append(bool(quality[at] >= LEAST_QUALITY and not repeats))
        last = at if expected[-1] else last
    assert voting_frames(rows, offsets, quality).tolist() == expected


def test_copies_and_clips_are_found_where_they_are(tmp_path: Path) -> None:
    films = {str(seed): film(seed, 12) for seed in range(5)}
    index = indexed(
        {name: HASH.sign_query(write(tmp_path / f"{name}.mp4", one)) for name, one in films.items()}
    )
    whole = films["3"]
    logo = whole.copy()
    logo[:, 5:12, 105:117] = 220
    for name, pixels, start in (
        ("smaller.avi", whole[:, ::2, ::2], 0),
        ("poor.mp4", whole, 0),
        ("logo.mp4", logo, 0),
        ("clip.mp4", whole[5 * RATE + 4 : 9 * RATE], 5333),
        ("within.mp4", np.concatenate([film(77, 4), whole[2 * RATE : 8 * RATE]]), -2000),
    ):
        rate = 60_000 if name == "poor.mp4" else 600_000
        parts = HASH.sign_query(write(tmp_path / name, pixels, bit_rate=rate))
        found = search(index, parts)
        assert [item for item, _ in found] == ["3"], name
        assert abs(found[0][1] - start) <= STEP, (name, found)
    stranger = HASH.sign_query(write(tmp_path / "stranger.mp4", film(99, 8)))
    assert search(index, stranger) == []


def test_clips_that_begin_between_hashed_frames_are_found(tmp_path: Path) -> None:
    """Every frame differs from the next one; the clip begins a frame after a hashed one."""
    whole = np.concatenate([film(100 + seed, 1 / RATE) for seed in range(6 * RATE)])
    path = write(tmp_path / "whole.mp4", whole)
    index = indexed({"whole": SignedParts(*HASH.sign_parts(path))})
    begin = 2 * RATE + 1
    clip = write(tmp_path / "clip.mp4", whole[begin : begin + 2 * RATE])
    frames = HASH.frames(clip, query=True)
    assert len(frames.offsets) == 2 * RATE and len(HASH.frames(clip).offsets) == 8
    assert search(index, SignedParts(*HASH.sign_parts(clip))) == []
    ((item, offset),) = search(index, HASH.sign_query(clip))
    assert item == "whole" and abs(offset - 1000 * begin / RATE) <= STEP


def test_collections_take_videos(tmp_path: Path) -> None:
    paths = [str(write(tmp_path / f"{seed}.mp4", film(seed, 8))) for seed in range(3)]
    with la.open_collection(tmp_path / "videos.db", "videos", signer=HASH) as collection:
        collection.add(["0", "1", "2"], paths)
        clip = write(tmp_path / "clip.mp4", film(1, 8)[3 * RATE : 7 * RATE])
        (match,) = collection.search(str(clip), 1)
        assert match.id == "1" and match.offset is not None
        assert abs(match.offset - 3000) <= STEP


def test_vpdq_text_is_written_and_read(tmp_path: Path) -> None:
    frames = HASH.frames(write(tmp_path / "film.mp4", film(4, 3)))
    text = tmp_path / "film.txt"
    frames.write_vpdq(text)
    first = text.read_text().splitlines()[0]
    assert first == (
        f"0,{frames.quality[0]},{la.signatures.signatures_to_hex(frames.signatures)[0]},0.000"
    )
    read = HASH.frames(text)
    for name in ("signatures", "offsets", "quality"):
        assert np.array_equal(getattr(read, name), getattr(frames, name))
    assert np.array_equal(HASH.sign(text), HASH.sign(tmp_path / "film.mp4"))
    assert len(la.load_hex(text)[0]) == len(frames.offsets)


@given(
    st.lists(
        st.tuples(st.integers(0, 10**7), st.integers(0, 100), st.binary(min_size=32, max_size=32)),
        max_size=20,
    )
)
def test_vpdq_text_keeps_everything(rows: list[tuple[int, int, bytes]]) -> None:
    rows = sorted(rows)
    frames = VideoFrames(
        np.frombuffer(b"".join(row for *_, row in rows), np.uint8).reshape(-1, 32),
        np.array([at for at, *_ in rows], np.int64),
        np.array([quality for _, quality, _ in rows], np.uint8),
        VideoInfo(1.0, 1, 1, 1.0, "", ""),
    )
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder, "list.txt")
        frames.write_vpdq(text)
        read = HASH.frames(text)
        again = Path(folder, "again.txt")
        read.write_vpdq(again)
        assert again.read_bytes() == text.read_bytes()
    for name in ("signatures", "offsets", "quality"):
        assert np.array_equal(getattr(read, name), getattr(frames, name))
    assert read.info.seconds == (rows[-1][0] / 1000 if rows else 0)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1,2,3", "line 2 has 3 columns; expected frame, quality, hash and second"),
        (f"1,x,{'0' * 64},0.5", "line 2, column quality: 'x' is not a number from 0 to 100"),
        (f"1,101,{'0' * 64},0.5", "line 2, column quality: '101'"),
        (f"1,99,{'0' * 63}g,0.5", "line 2, column hash: .*expected 64"),
        (f"1,99,{'0' * 62},0.5", "line 2, column hash: .*expected 64"),
        (f"1,99,{'0' * 64},nan", "line 2, column second: 'nan'"),
        (f"1,99,{'0' * 64},0.05", "line 2, column second: '0.05' is before the last one"),
    ],
)
def test_errors_in_vpdq_text_name_line_and_column(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "bad.txt").write_text(f"0,99,{'f' * 64},0.100\n{line}\n")
    with pytest.raises(la.errors.FormatError, match=message):
        HASH.frames(tmp_path / "bad.txt")


@pytest.mark.parametrize(
    ("head", "container"),
    [
        (b"\0\0\0\x20ftypisom\0\0\2\0isomiso2avc1mp41", "mov"),
        (b"\0\0\0\x14ftypqt  \0\0\0\0qt  ", "mov"),
        (b"\0\0\0\x08wide", "mov"),
        (b"\0\0\0\x20ftypavif\0\0\0\0avifmif1", None),
        (b"\0\0\0\x20ftypM4A \0\0\0\0M4A mp42", None),
        (b"\x1a\x45\xdf\xa3", "matroska"),
        (b"RIFF\0\0\0\0AVI LIST", "avi"),
        (b"RIFF\0\0\0\0WAVEfmt ", None),
        (b"OggS" + bytes(24) + b"\x80theora", "ogg"),
        (b"OggS" + bytes(24) + b"\x01vorbis", None),
        (b"GIF89a", None),
        (b"#EXTM3U\n", None),
        (b"ffconcat version 1.0\n", None),
        (b"", None),
    ],
)
def test_videos_are_recognized_by_their_first_bytes(head: bytes, container: str | None) -> None:
    assert container_of(head) == container
