"""What was read of images, recordings and videos is kept; the result is the same as without."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
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
from lookalike.errors import ArgumentError, FileError
from lookalike.storage import file_cache
from support.cases.videos import film, write

TICK = 0.012  # seconds; the system counts the times of files in ticks of 10 ms at most


@pytest.fixture(autouse=True)
def later(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let files be old enough at once, and each test begin with an empty cache."""
    now = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now() + 10_000_000_000)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def facts_of(result: Any) -> dict[str, Any]:
    """Return all of a result but its times, and how much of it was known."""
    pairs = result.different_pairs
    return {
        "counts": vars(result.counts),
        "files": list(result.files),
        "facts": {name: list(values) for name, values in result.facts.items()},
        "descriptions": list(result.descriptions),
        "problems": [(one.path, one.reason) for one in result.problems],
        "arrays": [
            array.tolist()
            for array in (
                *(result.keep, result.group_of, result.duplicate_of, result.distance),
                *(pairs.left, pairs.right, pairs.similarity, pairs.distance),
            )
        ],
    }


def images(folder: Path) -> Path:
    folder.mkdir()
    for number in range(4):
        scene(number, 200).save(folder / f"{number}.png")
    CHANGES["twice the size"](scene(1, 200)).save(folder / "larger.jpg")
    scene(2, 200).rotate(90, expand=True).save(folder / "turned.png")
    scene(3, 200).crop((20, 20, 180, 140)).save(folder / "crop.png")
    shutil.copy(folder / "0.png", folder / "copy.png")
    (folder / "broken.png").write_bytes((folder / "0.png").read_bytes()[:1000])
    return folder


def recordings(folder: Path) -> Path:
    folder.mkdir()
    rng = np.random.default_rng(3)
    for number in range(3):
        samples = rng.normal(size=8 * 8000).astype(np.float32) / 8
        soundfile.write(folder / f"{number}.wav", samples, 8000)
        if number:
            soundfile.write(folder / f"{number} again.flac", samples / 2, 8000)
    soundfile.write(folder / "silent.wav", np.zeros(8000, np.float32), 8000)
    return folder


def videos(folder: Path) -> Path:
    folder.mkdir()
    for number in range(2):
        write(folder / f"{number}.mp4", film(number, 4))
    write(folder / "again.mkv", film(1, 4))
    return folder


@pytest.mark.parametrize("make", [images, recordings, videos])
def test_known_files_are_not_read_again(make: Any, tmp_path: Path) -> None:
    folder, work = make(tmp_path / "files"), tmp_path / "work"
    plain = la.dedup(folder, cache=False)
    assert plain.known == 0 and not (tmp_path / "cache").exists()
    different = len(set(plain.first_equal.tolist()))
    ways: list[dict[str, Any]] = [{}, {"work": work}]
    for more in ways:
        first, second = la.dedup(folder, **more), la.dedup(folder, **more)
        assert facts_of(plain) == facts_of(first) == facts_of(second)
        assert first.known == 0 and second.known == different
        assert "not read again" in second.summary() and "not read again" not in first.summary()
        assert first.reused == () and second.reused == ("sign", "propose")
    shutil.rmtree(tmp_path / "cache")
    assert la.dedup(folder, work=work).known == different  # it needs no other
    assert not (tmp_path / "cache").exists()


def test_settings_have_their_own_entries(tmp_path: Path) -> None:
    folder = images(tmp_path / "files")
    ways: list[dict[str, Any]] = [
        *({}, {"rotated": True}, {"hash": "pdq"}, {"hash": "gradient"}),
        *({"bits": 64}, {"threshold": "strict"}),
    ]
    plain = [facts_of(la.dedup(folder, cache=False, **way)) for way in ways]
    for known in (False, True):
        for way, expected in zip(ways, plain, strict=True):
            result = la.dedup(folder, **way)
            assert facts_of(result) == expected and bool(result.known) == known
    # What is read does not depend on these, but pairs do.
    others: list[dict[str, Any]] = [{"radius": 10}, {"threshold": "loose"}]
    for way in others:
        assert la.dedup(folder, **way).reused == ("sign",)
    assert la.dedup(folder, keep="smallest").reused == ("sign", "propose")


def _same_size(folder: Path, draw: random.Random) -> None:
    file = draw.choice(sorted(folder.glob("[0-9].bmp")))
    before, size = file.stat(), file.stat().st_size
    scene(draw.randrange(100), 64).convert("RGB").resize((64, 48)).save(file)
    assert file.stat().st_size == size
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def _swap(folder: Path, draw: random.Random) -> None:
    one, two = draw.sample(sorted(folder.iterdir()), 2)
    one.rename(folder / "between")
    two.rename(one)
    (folder / "between").rename(two)


def _link(folder: Path, draw: random.Random) -> None:
    one, two = draw.sample(sorted(folder.iterdir()), 2)
    one.unlink()
    os.link(two, one)


def _delete(folder: Path, draw: random.Random) -> None:
    if len(list(folder.iterdir())) > 3:
        draw.choice(sorted(folder.iterdir())).unlink()


def _touch(folder: Path, draw: random.Random) -> None:
    os.utime(draw.choice(sorted(folder.iterdir())), (0, 10**9))


@given(
    st.lists(st.sampled_from([_same_size, _swap, _link, _delete, _touch]), max_size=4),
    st.integers(0, 2**32),
)
@settings(max_examples=12, deadline=None)
def test_changed_files_are_read_again(
    tmp_path_factory: pytest.TempPathFactory, changes: list[Any], seed: int
) -> None:
    top, draw = tmp_path_factory.mktemp("changes"), random.Random(seed)
    folder = top / "files"
    folder.mkdir()
    for number in range(6):
        scene(number // 2, 64).convert("RGB").resize((64, 48)).save(folder / f"{number}.bmp")
    la.dedup(folder, kind="images", work=top / "work")
    for change in changes:
        time.sleep(TICK)
        change(folder, draw)
    known = la.dedup(folder, kind="images", work=top / "work")
    assert facts_of(known) == facts_of(la.dedup(folder, kind="images", cache=False))


KILLED = """
import os, signal, sys, time
import lookalike as la
from lookalike.storage import file_cache
file_cache._COMMIT_BYTES = 1
now = time.time_ns
file_cache.time.time_ns = lambda: now() + 10_000_000_000
left = int(sys.argv[3])

def progress(step, share):
    global left
    left -= step == "sign"
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

la.dedup(sys.argv[1], work=sys.argv[2], progress=progress, threads=1)
"""


def test_killed_and_resumed(tmp_path: Path) -> None:
    folder, work = images(tmp_path / "files"), tmp_path / "work"
    expected = facts_of(la.dedup(folder, cache=False))
    for reports in (2, 5, 7):
        done = subprocess.run(
            [sys.executable, "-c", KILLED, str(folder), str(work), str(reports)],
            capture_output=True,
        )
        assert done.returncode == -signal.SIGKILL, done.stderr.decode()
        shutil.copytree(work, tmp_path / f"work {reports}")
        resumed = la.dedup(folder, work=tmp_path / f"work {reports}")
        assert facts_of(resumed) == expected
        assert resumed.known >= reports - 2 and (resumed.known or reports == 2)


def test_signatures_of_known_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, outputs = images(tmp_path / "files"), []
    for number, more in enumerate(([], [], ["--no-cache"])):
        out = tmp_path / f"{number}.lookalike"
        main(["sign", str(folder), "-o", str(out), "--quiet", *more])
        outputs.append(la.load_signatures(out))
        database = tmp_path / "cache" / "lookalike" / file_cache.NAME
        assert database.exists()
    for one in outputs[1:]:
        assert np.array_equal(one.signatures, outputs[0].signatures)
        assert list(one.ids or ()) == list(outputs[0].ids or ())
    capsys.readouterr()


def test_what_cannot_go_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = images(tmp_path / "files")
    with pytest.raises(ArgumentError, match="cache=False reads all files again, and work"):
        la.dedup(folder, cache=False, work=tmp_path / "work")
    with pytest.raises(ArgumentError, match="cache is 3"):
        la.dedup(folder, cache=3)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="cache does nothing for text"):
        la.dedup(["a", "b"], cache=False)
    (tmp_path / "others").mkdir()
    (tmp_path / "others" / "letter.txt").write_text("mine")
    with pytest.raises(FileError, match=r"has files that are not from a job"):
        la.dedup(folder, work=tmp_path / "others")
    assert main(["dedup", str(folder), "--no-cache", "--work", str(tmp_path / "work")])
    said = capsys.readouterr().err
    assert "--no-cache reads all files again, and --work keeps what was read" in said
