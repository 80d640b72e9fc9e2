"""PDQ: every bit, the quality and the hashes of turned images are those of pdqhash."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pdqhash
import pytest
from benchmarks.images.scenes import scene
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

import lookalike as la
from lookalike import _native
from lookalike.errors import ArgumentError
from lookalike.signatures import signatures_to_hex

SIGNER = la.ImageHash(kind="pdq")
DIHEDRAL = (0, 5, 2, 4, 6, 3, 7, 1)
"""For each EXIF orientation, the position of the same image among those of pdqhash."""


def reference(pixels: NDArray[np.uint8]) -> tuple[bytes, int]:
    bits, quality = pdqhash.compute(pixels)
    return np.packbits(bits, bitorder="little").tobytes(), quality


def pixels_of(kind: str, rows: int, columns: int, seed: int) -> NDArray[np.uint8]:
    random = np.random.default_rng(seed)
    y, x = np.mgrid[:rows, :columns]
    if kind == "noise":
        made: Any = random.integers(0, 256, (rows, columns, 3))
    elif kind == "black and white":
        made = np.repeat(random.integers(0, 2, (rows, columns, 1)) * 255, 3, axis=2)
    elif kind == "one color":
        made = np.broadcast_to(random.integers(0, 256, 3), (rows, columns, 3))
    elif kind == "gradient":
        made = np.stack([y * 255 // rows, x * 255 // columns, (x + y) % 256], 2)
    else:  # smooth
        waves = random.normal(size=(4, 2))
        angles = y[..., None] / rows * waves[:, 0] + x[..., None] / columns * waves[:, 1]
        gray = np.sin(6 * angles).sum(axis=2)
        made = np.repeat(((gray + 4) * 31.875)[..., None], 3, axis=2)
    return np.ascontiguousarray(made, np.uint8)


KINDS = st.sampled_from(["noise", "black and white", "one color", "gradient", "smooth"])
SIDES = st.one_of(st.integers(1, 300), st.sampled_from([4, 5, 63, 64, 65, 127, 128, 129, 256, 257]))


@given(KINDS, SIDES, SIDES, st.integers(0, 2**32))
@example("noise", 64, 64, 0)
@example("noise", 1, 700, 0)
@example("noise", 5, 1025, 0)
@settings(max_examples=150, deadline=None)
def test_bits_and_quality_are_those_of_the_reference(
    kind: str, rows: int, columns: int, seed: int
) -> None:
    pixels = pixels_of(kind, rows, columns, seed)
    image = Image.fromarray(pixels)
    signatures, quality = SIGNER.sign_with_quality(image)
    assert (signatures[0].tobytes(), int(quality[0])) == reference(pixels)
    turned = SIGNER.sign(image, orientations=8)[0]
    assert turned[0].tobytes() == signatures[0].tobytes()
    if (rows, columns) != (64, 64):  # where the functions of the reference disagree
        others, _ = pdqhash.compute_dihedral(pixels)
        expected = [np.packbits(others[at], bitorder="little").tobytes() for at in DIHEDRAL]
        assert [row.tobytes() for row in turned] == expected


@pytest.mark.parametrize("mode", ["L", "1", "P", "LA", "RGBA", "CMYK", "YCbCr", "I;16"])
def test_modes_are_converted_to_rgb(mode: str) -> None:
    image = scene(3, 200)
    if mode == "I;16":
        given = Image.fromarray(np.asarray(image.convert("L")).astype(np.uint16) << 8)
        expected = image.convert("L").convert("RGB")
    else:
        given = image.convert("L").convert("LA") if mode == "LA" else image.convert(mode)
        expected = given.convert("RGB")
    assert SIGNER.sign(given)[0].tobytes() == reference(np.asarray(expected))[0]


def test_files_are_hashed_at_full_size_as_they_are_stored() -> None:
    file = io.BytesIO()
    exif = Image.Exif()
    exif[0x0112] = 6  # a quarter turn, which other programs ignore
    scene(5, 900).save(file, "JPEG", quality=80, exif=exif)
    with Image.open(io.BytesIO(file.getvalue())) as image:
        expected = reference(np.asarray(image.convert("RGB")))
    signatures, quality = SIGNER.sign_with_quality(file.getvalue())
    assert (signatures[0].tobytes(), int(quality[0])) == expected


def test_golden() -> None:
    y, x = np.mgrid[:192, :256]
    channels = [(x * 3 + y * y // 7) % 256, (x * y // 50 + 31) % 256, (x // 9 * 37 + y) % 256]
    signatures = SIGNER.sign(Image.fromarray(np.stack(channels, 2).astype(np.uint8)))
    assert signatures_to_hex(signatures) == [
        "3612a415cab591ad2169da6ab4ca59a273624ed539ade3c99f3370e6078e7578"
    ]


def test_the_number_of_bits_is_fixed() -> None:
    assert SIGNER.bits == 256 and la.ImageHash(256, "pdq") == SIGNER
    with pytest.raises(ArgumentError, match="bits is 64; expected 256"):
        la.ImageHash(64, "pdq")
    assert la.ImageHash().bits == 64


def test_less_than_five_rows_have_no_hash() -> None:
    hasher, signatures = _native.Pdq.of(4, 6), np.ones((2, 32), np.uint8)
    hasher.feed(np.full((4, 6, 3), 7, np.uint8))
    assert hasher.finish(signatures) == 0 and not signatures.any()


def test_dedup_and_collections_take_it(tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    for number in range(4):
        scene(number, 300).save(folder / f"{number}.png")
    scene(2, 300).resize((200, 160)).save(folder / "copy.jpg", quality=70)
    result = la.dedup(folder, kind="images", hash="pdq")
    assert [path.name for path in result.dropped()] == ["copy.jpg"]
    with la.open_collection(tmp_path / "photos.db", "photos", signer=SIGNER) as collection:
        paths = [str(folder / f"{number}.png") for number in range(4)]
        collection.add(["0", "1", "2", "3"], paths)
        assert collection.search(folder / "copy.jpg", 1)[0].id == "2"


def test_the_list_of_hashes_is_that_of_other_programs(tmp_path: Path) -> None:
    signatures, quality = SIGNER.sign_with_quality([scene(number, 200) for number in range(3)])
    names = ["a.png", "b, c.png", 'd".png']
    la.signatures.save_hex(tmp_path / "list.csv", signatures, names, quality=quality.tolist())
    lines = (tmp_path / "list.csv").read_text().splitlines()
    assert lines[0] == f"{signatures_to_hex(signatures)[0]},{quality[0]},a.png"
    rows, ids = la.load_hex(tmp_path / "list.csv")
    assert np.array_equal(rows, signatures) and ids == names
