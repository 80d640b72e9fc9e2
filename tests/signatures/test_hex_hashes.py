"""Hashes of other tools: what they are as signatures, and how they are read from files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lookalike as la


@given(
    st.integers(1, 40).flatmap(
        lambda size: st.lists(st.binary(min_size=size, max_size=size), min_size=1)
    )
)
def test_bits_are_those_of_the_number_from_the_left(hashes: list[bytes]) -> None:
    rows = la.signatures.signatures_from_hex([one.hex() for one in hashes])
    assert rows.dtype == np.uint8
    for row, one in zip(rows, hashes, strict=True):
        digits = f"{int.from_bytes(one):0{8 * len(one)}b}"
        assert "".join(map(str, np.unpackbits(row, bitorder="little"))) == digits
    assert la.signatures.signatures_to_hex(rows) == [one.hex() for one in hashes]


def test_distances_are_those_of_the_other_tool() -> None:
    """imagehash counts the bits in which two differ; so does PDQ."""
    one, two = "8f373714acfcf4d0", "8f373714bcfcf4d1"
    rows = la.signatures.signatures_from_hex([one, two.upper()])
    assert la.ScanIndex(rows).pairs(64).distances.tolist() == [
        (int(one, 16) ^ int(two, 16)).bit_count()
    ]
    assert la.signatures.signatures_from_hex(f"0x{one}").tolist() == rows[:1].tolist()


@pytest.mark.parametrize(
    ("hashes", "message"),
    [
        (["abc"], "hash 0 is 'abc'; expected an even number"),
        (["ff", "fg"], "hash 1 is 'fg'"),
        (["ff", "ffff"], "hash 1 has 16 bits, the first has 8"),
        ([], "no hashes"),
        ([""], "hash 0"),
        ([3], "hash 0 is 3"),
        (3, "hashes are 3"),
    ],
)
def test_what_is_no_hash(hashes: list[str], message: str) -> None:
    with pytest.raises(la.errors.SignatureError, match=message):
        la.signatures.signatures_from_hex(hashes)


ONE, TWO = "8f373714acfcf4d0", "0f373714acfcf4d1"
PDQ = "d8f8f0cce0f4a84f0e370a22028f67f0b36e2ed596623e1d33e6b39c4e9c9b22"


@pytest.mark.parametrize(
    ("name", "content", "ids"),
    [
        ("lines.txt", f"{ONE}\n{TWO}\n", None),
        ("marked.hex", f"\ufeff{ONE}\r\n\r\n{TWO}\r\n", None),
        ("named.csv", f'path,phash\na.png,{ONE}\n"b, c.png",{TWO}\n', ["a.png", "b, c.png"]),
        ("plain.csv", f"{ONE},100,a.png\n{TWO},100,b.png\n", ["a.png", "b.png"]),
        ("qualities.csv", f"{ONE},99,a.png\n{TWO},100,b.png\n", ["a.png", "b.png"]),
        (
            "prefixes.csv",
            f"hash={ONE},quality=9,filename=a\nhash={TWO},quality=8,filename=b\n",
            ["a", "b"],
        ),
        ("frames.txt", f"0,100,{ONE},0.000\n1,100,{TWO},0.033\n", ["0", "1"]),
        ("tabs.tsv", f"hash\tquality\tname\n{ONE}\t1\tx\n{TWO}\t1\ty\n", ["x", "y"]),
        ("spaces.csv", f"hash, file\n {ONE} , x\n{TWO},y\n", ["x", "y"]),
    ],
)
def test_files(tmp_path: Path, name: str, content: str, ids: list[str] | None) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8", newline="")
    rows, found = la.load_hex(tmp_path / name)
    assert la.signatures.signatures_to_hex(rows) == [ONE, TWO] and found == ids
    index = la.open_index(tmp_path / name)
    assert len(index) == 2 and index.bits == 64 and index.signer is None
    assert index.name(1) == (1 if ids is None else ids[1])


def test_columns_that_are_named(tmp_path: Path) -> None:
    path = tmp_path / "hashes.csv"
    path.write_text(f"key,phash,pdq,url\n1,{ONE},{PDQ},u\n2,{TWO},{PDQ},v\n")
    with pytest.raises(
        la.errors.ArgumentError, match=r"several columns of hashes \(phash, pdq\); say"
    ):
        la.load_hex(path)
    rows, ids = la.load_hex(path, column="pdq")
    assert rows.shape == (2, 32) and ids == ["u", "v"]
    assert la.load_hex(path, column="phash", id="key")[1] == ["1", "2"]
    with pytest.raises(la.errors.ArgumentError, match="column is 'phsh'.*did you mean 'phash'"):
        la.load_hex(path, column="phsh")
    with pytest.raises(la.errors.SignatureError, match="line 2, column 'url': 'u' is not"):
        la.load_hex(path, column="url")
    path.write_text("path,word\na,8f37\nb,0001\n")  # shorter than a hash that is not named
    rows, ids = la.load_hex(path, column="word")
    assert la.signatures.signatures_to_hex(rows) == ["8f37", "0001"] and ids == ["a", "b"]
    for lines, message in (
        ("a,zz373714acfcf4d0\n", "line 2, column 'phash': 'zz373714acfcf4d0'"),
        ("", "there are no hashes"),
    ):
        path.write_text(f"path,phash\n{lines}")
        with pytest.raises(la.errors.SignatureError, match=message):
            la.load_hex(path, column="phash")


def test_columns_without_names_have_numbers(tmp_path: Path) -> None:
    path = tmp_path / "hashes.csv"
    path.write_text(f"a,{ONE},{TWO}\nb,{TWO},{ONE}\n")
    with pytest.raises(
        la.errors.ArgumentError, match=r"several columns of hashes \(1, 2\); say which"
    ):
        la.load_hex(path)
    rows, ids = la.load_hex(path, column="2")
    assert la.signatures.signatures_to_hex(rows) == [TWO, ONE] and ids == ["a", "b"]
    assert la.load_hex(path, column="2", id="1")[1] == [ONE, TWO]
    with pytest.raises(la.errors.ArgumentError, match="it has no header, so there are: 0, 1, 2"):
        la.load_hex(path, column="3")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"words\nand more\n", "no column with hashes"),
        (b"1234\n5678\n", "no column with hashes"),
        (f"{ONE}\n{PDQ}\n".encode(), "line 2, column '0': the hash has 256 bits, .* 64"),
        (f"{ONE},a\n{TWO}\n".encode(), "has 2 columns in its first line and 1 in line 2"),
        (f"{ONE}\n{TWO}\n\n{ONE[:-1]}x\n".encode(), "line 4, column '0': .*x' is not a hash"),
        (b"\xff\xfe\x00", "is not a text of hexadecimal hashes"),
        (b'"' + b"a" * 200_000, "is not a text of hexadecimal hashes"),
        (b"a,\0" + ONE.encode(), "no column|is not a text"),
    ],
)
def test_files_that_cannot_be_used(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "hashes.txt").write_bytes(content)
    with pytest.raises((la.errors.FormatError, la.errors.SignatureError), match=message):
        la.load_hex(tmp_path / "hashes.txt")
    with pytest.raises(la.errors.FileError, match="cannot be read"):
        la.load_hex(tmp_path / "nowhere.txt")


def test_saved_hashes_are_read_again(tmp_path: Path) -> None:
    rows = la.signatures.signatures_from_hex([ONE, TWO])
    path = tmp_path / "hashes.csv"
    la.signatures.save_hex(path, rows)
    assert path.read_text() == f"{ONE}\n{TWO}\n"
    la.signatures.save_hex(path, rows, ["a, b", "c"], quality=[1, 2])
    assert path.read_text() == f'{ONE},1,"a, b"\n{TWO},2,c\n'
    found, ids = la.load_hex(path)
    assert np.array_equal(found, rows) and ids == ["a, b", "c"]
    for bad in ({"ids": ["a"]}, {"quality": [1, 2, 3]}):
        with pytest.raises(la.errors.SignatureError, match="and 2 signatures; expected as many"):
            la.signatures.save_hex(path, rows, **bad)
    assert la.load_hex(path)[1] == ["a, b", "c"]  # as it was
