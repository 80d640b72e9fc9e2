"""Signatures in archives of `np.savez`: read, and never unpickled."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

import lookalike as la
from lookalike.cli import main
from support.running.refusals import refused

ROWS = np.random.default_rng(0).integers(0, 256, (50, 8), np.uint8)


def test_archives_are_opened_like_arrays(tmp_path: Path) -> None:
    np.savez(tmp_path / "one.npz", whatever=ROWS)
    np.savez_compressed(tmp_path / "many.npz", other=np.zeros(3), signatures=ROWS.view("<u8"))
    ids = np.arange(50, dtype=np.int32) * 7
    np.savez(tmp_path / "ids.npz", signatures=ROWS, ids=ids)
    for name in ("one", "many", "ids"):
        rows, found = la.open_index(tmp_path / f"{name}.npz").living()
        assert (rows == ROWS).all()
        assert found.tolist() == (ids if name == "ids" else np.arange(50)).tolist()


def test_commands_take_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(tmp_path / "rows.npz")
    np.savez(file, signatures=np.concatenate([ROWS, ROWS[:1]]))
    assert main(["pairs", file, "--radius", "3"]) == 0
    assert capsys.readouterr().out.splitlines() == ["left\tright\tdistance", "0\t50\t0"]
    index = str(tmp_path / "index.lookalike")
    assert main(["index", file, "-o", index, "--quiet"]) == 0
    assert main(["search", index, "--signatures", file, "-k", "1", "--exact"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 52
    assert main(["evaluate", file, "--sample", "3", "-k", "1", "--expand", "0", "--json"]) == 0


def test_what_cannot_be_used_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (Path.touch, (str(tmp_path / "ran"),))

    bombs = np.array([Bomb()] * 3, dtype=object)
    np.savez(tmp_path / "objects.npz", signatures=bombs)
    np.savez(tmp_path / "ids.npz", signatures=ROWS[:3], ids=bombs)
    np.save(tmp_path / "objects.npy", bombs)
    np.savez(tmp_path / "two.npz", a=ROWS, b=ROWS)
    np.savez(tmp_path / "none.npz")
    np.savez(tmp_path / "short.npz", signatures=ROWS, ids=np.arange(3))
    np.savez(tmp_path / "floats.npz", signatures=ROWS.astype(float))
    np.savez(tmp_path / "repeated.npz", signatures=ROWS, ids=np.zeros(50, int))
    whole = (tmp_path / "two.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[: len(whole) // 2])
    changed = bytearray(whole)
    changed[200] ^= 1
    (tmp_path / "changed.npz").write_bytes(changed)
    with zipfile.ZipFile(tmp_path / "other.npz", "w") as archive:
        archive.writestr("signatures.txt", "hello")
    with zipfile.ZipFile(tmp_path / "header.npz", "w") as archive:
        head = "{'descr': '|u1', 'fortran_order': False, 'shape': (9000000000000, 8), }"
        archive.writestr(
            "signatures.npy", b"\x93NUMPY\x01\x00v\x00" + head.ljust(117).encode() + b"\n"
        )
    for name, message in {
        "objects.npz": "cannot be used: Object arrays cannot be loaded",
        "ids.npz": "cannot be used: Object arrays cannot be loaded",
        "objects.npy": "is a .npy file that cannot be used",
        "two.npz": "has the arrays a, b; expected one that is called 'signatures'",
        "none.npz": "",
        "short.npz": "expected a whole number for each of 50 signatures",
        "floats.npz": "are float64; expected uint8",
        "repeated.npz": "given more than once",
        "cut.npz": "is a .npz file that cannot be used",
        "changed.npz": "",
        "other.npz": "",
        "header.npz": "is a .npz file that cannot be used",
    }.items():
        with pytest.raises(la.LookalikeError, match="(?s).*") as caught:
            la.open_index(tmp_path / name)
        assert message in str(caught.value), name
        assert "Traceback" not in refused(["pairs", str(tmp_path / name), "--radius", "1"], capsys)
    assert not (tmp_path / "ran").exists(), "nothing was unpickled"
