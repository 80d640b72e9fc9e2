"""The bits of image hashes: by definition, the same for ever, and the same for copies."""

from __future__ import annotations

import base64
import io
import pickle
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.images.found import opened
from benchmarks.images.scenes import CHANGES, ROTATIONS, scene
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

import lookalike as la
from lookalike.images.image_hash import HashedImage
from support.oracles.images import dct_bits, gradient_bits

SIGNERS = [la.ImageHash(bits, kind) for bits in (64, 256) for kind in ("dct", "gradient")]


def distance(one: NDArray[np.uint8], two: NDArray[np.uint8]) -> int:
    return int(np.unpackbits(one ^ two).sum())


def written(image: Image.Image, format: str, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, format, **options)
    return file.getvalue()


def drawn() -> Image.Image:
    """A picture made of whole numbers, so that no library decides what it is."""
    y, x = np.mgrid[:192, :256]
    pixels = [(x * 3 + y * y // 7) % 256, (x * y // 50 + 31) % 256, (x // 9 * 37 + y) % 256]
    return Image.fromarray(np.stack(pixels, 2).astype(np.uint8))


@given(st.integers(1, 63), st.integers(1, 63), st.integers(0, 2**32), st.sampled_from([2, 40, 256]))
@settings(max_examples=12, deadline=None)
def test_bits_are_as_they_are_defined(width: int, height: int, seed: int, levels: int) -> None:
    gray = np.random.default_rng(seed).integers(0, levels, (height, width)).astype(np.uint8)
    image, rows = Image.fromarray(gray), gray.tolist()
    for side in (8, 16):
        expected = {"gradient": gradient_bits(rows, side)}
        if side == 8:
            expected["dct"] = dct_bits(rows, side)
        for kind, bits in expected.items():
            found = la.ImageHash(side * side, kind).sign(image)
            assert found.tobytes() == np.packbits(bits, bitorder="little").tobytes()


def test_256_bits_of_waves_are_as_they_are_defined() -> None:
    gray = np.asarray(drawn().convert("L"))[:70, :90]
    found = la.ImageHash(256).sign(Image.fromarray(gray))
    assert found.tobytes() == np.packbits(dct_bits(gray.tolist(), 16), bitorder="little").tobytes()


GOLDEN = {
    (64, "dct"): "0043cf8180ef09fa",
    (64, "gradient"): "9baff8e3ced992b5",
    (256, "dct"): "0043c78180ef09fa81870f073cfe194e1803cef870dfc7101e18803dd3f0a300",
    (256, "gradient"): "e3cfe79ece78fdeecee0eecedd1fdc5fdcfcf9f9fbe5f3cff39ee7bce73bee73",
}
"""These never change; if they have to, `SIGNER_VERSION` grows."""


def test_golden() -> None:
    for signer in SIGNERS:
        assert la.signatures.signatures_to_hex(signer.sign(drawn())) == [
            GOLDEN[signer.bits, signer.kind]
        ]


@pytest.mark.parametrize("signer", SIGNERS, ids=repr)
def test_paths_bytes_and_images_have_the_same_bits(signer: la.ImageHash, tmp_path: Path) -> None:
    image = drawn()
    image.save(tmp_path / "image.png")
    row = signer.sign(image)
    assert row.shape == (1, signer.bits // 8) and row.dtype == np.uint8
    data = (tmp_path / "image.png").read_bytes()
    for same in (
        *(tmp_path / "image.png", str(tmp_path / "image.png"), data, bytearray(data)),
        *(memoryview(data), Image.open(tmp_path / "image.png")),
    ):
        assert np.array_equal(signer.sign(same), row)
    others = [scene(number, 160) for number in range(9)]
    many = signer.sign(others, threads=1)
    for threads in (2, 5):
        assert np.array_equal(signer.sign(iter(others), threads=threads), many)
    assert np.array_equal(many, np.concatenate([signer.sign(one) for one in others]))
    assert signer.sign([]).shape == (0, signer.bits // 8)
    assert signer.sign([], orientations=8).shape == (0, 8, signer.bits // 8)


@pytest.mark.parametrize("signer", SIGNERS, ids=repr)
def test_copies_are_near_and_others_far(signer: la.ImageHash) -> None:
    pictures = [scene(number, 240) for number in range(12)]
    rows = signer.sign(pictures)
    for name, change in CHANGES.items():
        if name in ("crop 10%", "JPEG quality 10", "rotated by 1°", "crop 5%"):
            continue  # most of these are found; docs/images.md says how many
        copies = signer.sign([change(picture) for picture in pictures])
        far = [distance(*both) for both in zip(rows, copies, strict=True)]
        assert max(far) <= signer.radius, name
    index = la.ScanIndex(rows)
    assert len(index.pairs(signer.radius).left) == 0


def test_photographs_and_icons_of_packages_are_known_again() -> None:
    spec = find_spec("matplotlib")
    assert spec and spec.origin
    data = Path(spec.origin).parent / "mpl-data"
    paths = [*data.glob("sample_data/*.jpg"), *data.glob("sample_data/*.png")]
    paths += data.glob("images/*_large.png")
    assert len(paths) > 10
    signer, pictures = la.ImageHash(256), [opened(path, 480) for path in paths]
    rows, quality = signer.sign_with_quality(pictures)
    assert (quality >= 16).all()
    for name in ("half the size", "JPEG quality 30", "brightness 70%", "crop 2%"):
        copies = signer.sign([CHANGES[name](picture) for picture in pictures])
        for path, one, copy in zip(paths, rows, copies, strict=True):
            assert distance(one, copy) <= signer.radius, (name, path.name)
    assert len(la.ScanIndex(rows).pairs(signer.radius).left) == 0


@pytest.mark.parametrize("signer", SIGNERS, ids=repr)
def test_turned_copies_are_found_among_eight_orientations(signer: la.ImageHash) -> None:
    picture = scene(2, 512).resize((512, 384))
    index = la.ScanIndex(signer.sign([scene(0, 200), picture, scene(1, 200)]))
    for change in ROTATIONS.values():
        turned = signer.sign(change(picture), orientations=8)
        assert turned.shape == (1, 8, signer.bits // 8)
        assert np.array_equal(turned[:, 0], signer.sign(change(picture)))
        found = index.search(turned[0], 1)
        assert found.ids[found.distances.argmin(axis=0)[0], 0] == 1
        assert found.distances.min() == 0  # no pixel has moved to another block
    assert len({row.tobytes() for row in turned[0]}) == 8


@pytest.mark.parametrize("format", ["PNG", "TIFF"])  # Pillow turns TIFF itself, as it decodes
def test_exif_says_how_an_image_stands(format: str) -> None:
    """What every viewer shows upright has one hash, however the camera was held."""
    signer, picture = la.ImageHash(256), scene(0, 256).resize((256, 192))
    operations = Image.Transpose
    lying = {
        1: None,
        2: operations.FLIP_LEFT_RIGHT,
        3: operations.ROTATE_180,
        4: operations.FLIP_TOP_BOTTOM,
        5: operations.TRANSPOSE,
        6: operations.ROTATE_90,
        7: operations.TRANSVERSE,
        8: operations.ROTATE_270,
    }
    upright = signer.sign(picture)
    for number, operation in lying.items():
        stored = picture if operation is None else picture.transpose(operation)
        exif = Image.Exif()
        exif[0x0112] = number
        data = written(stored, format, exif=exif)
        assert np.array_equal(signer.sign(data), upright), number
        assert np.array_equal(signer.sign(Image.open(io.BytesIO(data))), upright), number
        (found,) = signer.each([data])
        assert isinstance(found, HashedImage) and (found.width, found.height) == picture.size
    exif = Image.Exif()
    exif[0x0112] = 77
    assert np.array_equal(signer.sign(written(picture, format, exif=exif)), upright)


def test_what_is_transparent_is_white() -> None:
    signer, picture = la.ImageHash(256), scene(2, 200)
    mask = Image.linear_gradient("L").resize(picture.size)
    white = Image.new("RGB", picture.size, "white")
    expected = signer.sign(Image.composite(picture, white, mask))
    clear = picture.copy()
    clear.putalpha(mask)
    assert distance(signer.sign(clear)[0], expected[0]) <= 2  # rounding
    assert distance(signer.sign(written(clear, "PNG"))[0], expected[0]) <= 2
    gray = clear.convert("LA")
    assert distance(signer.sign(gray)[0], expected[0]) <= 8
    black = Image.new("RGBA", (80, 80), (0, 0, 0, 0))
    assert signer.sign_with_quality(black)[1] == 0


@pytest.mark.parametrize(
    "mode", ["L", "P", "CMYK", "YCbCr", "HSV", "I;16", "I", "F", "RGBA", "LAB"]
)
def test_every_mode_shows_the_same(mode: str) -> None:
    signer, picture = la.ImageHash(256), scene(4, 200)
    gray = picture.convert("L")
    if mode == "LAB":
        from PIL import ImageCms

        profiles = ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB")
        other = ImageCms.profileToProfile(picture, *profiles, outputMode="LAB")
        assert other is not None
    elif mode in ("I;16", "I", "F"):
        wide = np.asarray(gray).astype(np.uint16) * 257
        kind = {"I;16": np.uint16, "I": np.int32, "F": np.float32}[mode]
        other = Image.fromarray(wide.astype(kind))
    elif mode == "P":
        other = picture.quantize(256)
    else:
        other = picture.convert(mode)
    assert other.mode == mode
    far = distance(signer.sign(other)[0], signer.sign(picture)[0])
    assert far <= {"P": 16, "LAB": 60, "F": 16}.get(mode, 8)


def test_sixteen_bits_of_a_file_keep_their_upper_half() -> None:
    signer, gray = la.ImageHash(64), drawn().convert("L")
    wide = Image.fromarray(np.asarray(gray).astype(np.uint16) * 256 + 17)
    for format in ("PNG", "TIFF"):
        assert np.array_equal(signer.sign(written(wide, format)), signer.sign(gray))


def test_of_moving_images_the_first_frame_counts() -> None:
    signer, frames = la.ImageHash(64), [scene(number, 120).quantize(64) for number in range(3)]
    alone = signer.sign(written(frames[0], "GIF"))
    moving = written(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert np.array_equal(signer.sign(moving), alone)
    assert distance(signer.sign(written(frames[1], "GIF"))[0], alone[0]) > 10


def test_images_of_one_color_say_nothing() -> None:
    for signer in SIGNERS:
        for color in ("white", "black", (200, 30, 40)):
            rows, quality = signer.sign_with_quality(Image.new("RGB", (300, 200), color))
            assert quality.tolist() == [0] and not rows.any()
        noise = np.random.default_rng(0).integers(199, 201, (300, 300)).astype(np.uint8)
        assert signer.sign_with_quality(Image.fromarray(noise))[1] < 16
        _, quality = signer.sign_with_quality([scene(number, 200) for number in range(6)])
        assert quality.min() >= 16
    ramp = Image.linear_gradient("L")
    assert la.ImageHash(256).sign_with_quality(ramp)[1] < 16


def test_draft_mode_is_for_files_alone_and_changes_little() -> None:
    signer, picture = la.ImageHash(256), scene(0, 1600)
    data = written(picture, "JPEG", quality=95)
    whole = Image.open(io.BytesIO(data))
    assert distance(signer.sign(data)[0], signer.sign(whole)[0]) <= 8
    assert whole.size == picture.size and whole.mode == "RGB"


def test_jpeg_with_more_pictures_behind_is_jpeg() -> None:
    """As telephones write it; Pillow calls it MPO."""
    signer, first, second = la.ImageHash(256), scene(0, 1600), scene(2, 1600)
    several = written(first, "MPO", save_all=True, append_images=[second], quality=90)
    (found,) = signer.each([several])
    assert isinstance(found, HashedImage) and found.format == "MPO"
    assert (found.width, found.height) == first.size
    assert np.array_equal(found.signatures, signer.sign(written(first, "JPEG", quality=90)))


def test_very_long_and_very_small_images() -> None:
    signer = la.ImageHash(64)
    for size in ((1, 1), (5000, 1), (1, 3000), (3, 2000), (65, 63), (127, 129)):
        rows = np.random.default_rng(0).integers(0, 256, size[::-1]).astype(np.uint8)
        assert signer.sign(Image.fromarray(rows)).shape == (1, 8)


def test_the_contract_of_signers(tmp_path: Path) -> None:
    for signer in SIGNERS:
        assert signer.to_dict() == {
            "signer": "ImageHash",
            "version": 1,
            "bits": signer.bits,
            "kind": signer.kind,
        }
        same = la.signatures.signer_from_dict(signer.to_dict())
        assert same == signer and repr(same) == repr(signer)
        assert pickle.loads(pickle.dumps(signer)) == signer
        signer.save(tmp_path / "signer")
        assert la.load_signer(tmp_path / "signer") == signer
    assert la.ImageHash(64) != la.ImageHash(256) != la.SimHash(256)
    rows = SIGNERS[0].sign([scene(0, 100), scene(1, 100)])
    la.save_signatures(tmp_path / "rows", rows, SIGNERS[0], ["a", "b"])
    index = la.open_index(tmp_path / "rows")
    assert index.signer == SIGNERS[0] and index.name(1) == "b"
    for wrong in ({"bits": 63}, {"bits": 128}, {"kind": "wavelet"}, {"bits": 0}):
        with pytest.raises(la.errors.ArgumentError, match="expected"):
            la.ImageHash(**wrong)
    with pytest.raises(la.errors.ArgumentError, match="expected 1 or 8"):
        SIGNERS[0].sign(drawn(), orientations=4)


@pytest.mark.parametrize("suffix", ["jpg", "tiff"])
def test_thumbnails_are_upright_and_small(suffix: str, tmp_path: Path) -> None:
    left = Image.new("RGB", (400, 200), "white")
    left.paste("red", (0, 0, 200, 200))
    exif = left.getexif()
    exif[0x0112] = 6  # to be turned by a quarter to the right
    left.save(tmp_path / f"turned.{suffix}", exif=exif)
    address = la.images.thumbnail(tmp_path / f"turned.{suffix}", 100)
    kind, _, data = address.partition(",")
    assert kind == "data:image/jpeg;base64"
    small = Image.open(io.BytesIO(base64.b64decode(data)))
    assert small.size == (50, 100)
    top, bottom = (np.asarray(small)[row, 25].astype(int) for row in (10, 90))
    assert top[0] > 200 > 60 > top[1] and bottom[1] > 200
    (tmp_path / "broken.png").write_bytes(b"no image")
    with pytest.raises(
        la.errors.DocumentError, match=r"broken.png.* is not an image in a known format"
    ):
        la.images.thumbnail(tmp_path / "broken.png")
