"""Files that are damaged, huge, endless or not videos: named, and never in the way of others."""

from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

import lookalike as la
from lookalike.errors import DocumentError
from lookalike.processes import Task, end_idle_workers, run
from lookalike.videos import decode
from lookalike.videos.decode import Reading
from lookalike.videos.workers import picture_of, read_videos
from support.cases.videos import film, write

CONTAINERS = {
    ".mp4": "mpeg4",
    ".avi": "mpeg4",
    ".mkv": "libx264",
    ".webm": "libvpx",
    ".mpg": "mpeg2video",
}
CODECS = {
    "libx264": ".mp4",
    "libx265": ".mp4",
    "libvpx-vp9": ".webm",
    "libvpx": ".webm",
    "mpeg4": ".avi",
    "mpeg2video": ".mpg",
    "mjpeg": ".avi",
    "ffv1": ".mkv",
}


def outcome(path: Path) -> Any:
    (found,) = read_videos([path])
    return found


@pytest.mark.parametrize("suffix", CONTAINERS)
def test_damaged_files_are_read_in_part_or_refused(suffix: str, tmp_path: Path) -> None:
    rate = 25 if suffix == ".mpg" else 12
    data = write(
        tmp_path / f"good{suffix}", film(1, 3), codec=CONTAINERS[suffix], rate=rate
    ).read_bytes()
    chance = random.Random(suffix)
    damaged = [data[: len(data) * share // 10] for share in (0, 1, 5, 9)]
    for _ in range(12):
        changed = bytearray(data)
        for _ in range(chance.randrange(1, 40)):
            changed[chance.randrange(64, len(changed))] = chance.randrange(256)
        damaged.append(bytes(changed))
    paths = []
    for number, content in enumerate(damaged):
        paths.append(tmp_path / f"{number}{suffix}")
        paths[-1].write_bytes(content)
    good = tmp_path / f"good{suffix}"
    for one in read_videos([*paths, good]):
        assert isinstance(one, DocumentError) or len(one.offsets) > 0
    assert not isinstance(one, DocumentError)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n", "is not a video"),
        (b"ffconcat version 1.0\nfile /etc/passwd\n", "is not a video"),
        (b"\0\0\0\x20ftypisom" + bytes(20), "cannot be decoded|has no video stream"),
        (b"\x1a\x45\xdf\xa3" + bytes(100), "cannot be decoded|has no video stream"),
    ],
)
def test_files_that_are_not_videos(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "file.mp4").write_bytes(content)
    found = outcome(tmp_path / "file.mp4")
    assert isinstance(found, DocumentError)
    with pytest.raises(DocumentError, match=message):
        raise found
    with pytest.raises(la.errors.FileError, match="file.mp4"):
        la.VideoHash().sign(tmp_path / "file.mp4")
    assert picture_of(tmp_path / "file.mp4", 100, 10_000) is None


def test_a_file_without_pictures(tmp_path: Path) -> None:
    path = tmp_path / "sound.mkv"
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream("pcm_s16le", rate=8000, layout="mono")
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 8000), np.int16), "s16", "mono")
        frame.sample_rate = 8000
        container.mux(stream.encode(frame))
        container.mux(stream.encode())
    found = outcome(path)
    assert isinstance(found, DocumentError) and "has no video stream" in str(found)


def test_dimensions_beyond_the_limit_are_refused_before_decoding(tmp_path: Path) -> None:
    path = write(tmp_path / "film.avi", film(1, 1))
    data = path.read_bytes()
    size = struct.pack("<ii", 128, 96)
    assert size in data
    path.write_bytes(data.replace(size, struct.pack("<ii", 60_000, 60_000)))
    found = outcome(path)
    if isinstance(found, DocumentError):  # or the stream says its true size
        assert "pixels" in str(found) or "cannot be decoded" in str(found)
    huge = tmp_path / "huge.y4m"
    huge.write_bytes(b"YUV4MPEG2 W60000 H60000 F25:1 C420\nFRAME\n" + bytes(1000))
    found = outcome(huge)
    assert isinstance(found, DocumentError)


def test_endless_videos_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "slow.mkv", film(1, 1), codec="ffv1")
    monkeypatch.setattr(decode, "LONGEST", 0)
    with pytest.raises(DocumentError, match="is longer than 0 hours"):
        decode.read_frames(path)


def test_hundreds_of_streams_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "streams.mov"
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream("mpeg4", rate=12)
        stream.height, stream.width, stream.pix_fmt = 96, 128, "yuv420p"
        tracks: list[Any] = [
            container.add_stream("pcm_s16le", rate=8000, layout="mono") for _ in range(300)
        ]
        for one in film(1, 2):
            frame = av.VideoFrame.from_ndarray(one, format="gray").reformat(format="yuv420p")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
        for track in tracks:
            heard = av.AudioFrame.from_ndarray(np.zeros((1, 80), np.int16), "s16", "mono")
            heard.sample_rate = 8000
            container.mux(track.encode(heard))
            container.mux(track.encode())
    (found,) = read_videos([path], Reading(sound=True))
    assert isinstance(found, DocumentError) and "has more than 64 streams" in str(found)


def test_lengths_in_headers_are_not_believed(tmp_path: Path) -> None:
    path = write(tmp_path / "film.mp4", film(1, 3))
    data = bytearray(path.read_bytes())
    for box, place in ((b"mvhd", 20), (b"mdhd", 20), (b"tkhd", 24)):
        at = data.index(box) + place
        data[at : at + 4] = b"\x7f\xff\xff\xff"
    path.write_bytes(data)
    (found,) = read_videos([path], Reading(sound=True))
    assert not isinstance(found, DocumentError), str(found)
    assert len(found.offsets) == 12 and found.info.seconds == pytest.approx(3, abs=0.2)
    assert picture_of(path, 100, 10_000) is not None


def test_time_is_limited(tmp_path: Path) -> None:
    path = write(tmp_path / "film.mp4", np.tile(film(1, 8), (15, 1, 1)), codec="libx264")
    task = Task("lookalike.videos.workers:_hasher", seconds=0.005, memory=640 << 20, tries=1)
    (found,) = run(task, [str(path)])
    assert found.out_of_time


@pytest.mark.parametrize("codec", CODECS)
def test_memory_is_limited_for_every_codec(codec: str, tmp_path: Path) -> None:
    """Frames of 4 megapixels do not fit into a few mebibytes, and fit into what workers have."""
    try:
        av.codec.Codec(codec, "w")
    except av.error.FFmpegError:
        pytest.skip(f"this PyAV has no {codec}")
    pixels = np.zeros((3, 1440, 2560), np.uint8)
    pixels[:, ::7, ::5] = 200
    pixels[1, 300:900, 500:900] = 120
    path = tmp_path / f"film{CODECS[codec]}"
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream(codec, rate=25)
        stream.height, stream.width = pixels.shape[1:3]
        stream.pix_fmt = "yuvj420p" if codec == "mjpeg" else "yuv420p"
        if codec in ("libx264", "libx265"):
            stream.options = {"preset": "ultrafast"}
        if codec.startswith("libvpx"):
            stream.options = {"deadline": "realtime", "cpu-used": "8"}
        for one in pixels:
            frame = av.VideoFrame.from_ndarray(one, format="gray").reformat(format=stream.pix_fmt)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    end_idle_workers()  # which keep the memory of earlier files
    task = Task("lookalike.videos.workers:_hasher", seconds=60, memory=4 << 20, tries=1)
    (found,) = run(task, [str(path)])
    assert isinstance(found, str) or found.__class__.__name__ == "Failure", codec
    good = outcome(path)
    assert not isinstance(good, DocumentError), str(good)
    assert good.info.width == 2560


def test_dedup_leaves_bad_files_out(tmp_path: Path) -> None:
    folder = tmp_path / "videos"
    folder.mkdir()
    write(folder / "a.mp4", film(1, 6))
    write(folder / "b.avi", film(1, 6)[:, ::2, ::2])
    write(folder / "other.mp4", film(2, 6))
    write(folder / "clip.mp4", film(2, 6)[24:60])
    write(folder / "black.mp4", np.zeros((30, 96, 128), np.uint8))
    write(folder / "dark.mp4", np.full((40, 96, 128), 2, np.uint8))
    (folder / "broken.mp4").write_bytes((folder / "a.mp4").read_bytes()[:3000])
    result = la.dedup(folder)
    assert result.kind == "videos"
    assert [path.name for path in result.dropped()] == ["b.avi"]
    assert [problem.path.name for problem in result.problems] == ["broken.mp4"]
    assert result.counts.without_features == 2
    contained = la.dedup(folder, kind="videos", measure="containment")
    assert sorted(path.name for path in contained.dropped()) == ["b.avi", "clip.mp4"]
    assert "from 2.0 s on" in contained.medium.describe_pair(1.0, 2000)
    with pytest.raises(la.errors.ArgumentError, match="measure"):
        la.dedup(folder, kind="videos", measure="cosine")
    page = tmp_path / "report.html"
    result.report(page)
    assert page.read_text().count("data:image/jpeg;base64,") >= 2
