"""Images that are the same, in whole or in part: beside slow references, and real changes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks.images.pages import PAGES, page
from benchmarks.images.plain import plain_picture
from benchmarks.images.scenes import CHANGES, EDITS, scene
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw, ImageOps

import lookalike as la
from lookalike import _native
from lookalike.images.decode import TURNS, decoded
from lookalike.images.details import Details, details_of, parts_of, turned_thumbnails
from lookalike.images.medium import ImageMedium
from lookalike.images.same import agreements, placement_of
from support.oracles.images import agreement_in_place, points


def field(seed: int, height: int, width: int, blur: int) -> Image.Image:
    rng = np.random.default_rng(seed)
    small = rng.integers(0, 256, (max(2, height // blur), max(2, width // blur)), np.uint8)
    return Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC)


@given(st.integers(0, 2**32), st.integers(16, 60), st.integers(16, 60), st.integers(2, 12))
@settings(max_examples=15, deadline=None)
def test_points_are_as_they_are_defined(seed: int, height: int, width: int, blur: int) -> None:
    gray = np.ascontiguousarray(np.asarray(field(seed, height, width, blur)))
    axes = (height, 1, False), (width, 1, False)
    rows, columns = max(16, height - seed % 5), max(16, width + seed % 7)
    words, *places = _native.image_points(gray, *axes, rows, columns, 10_000)
    found = list(zip(words.tolist(), *(one.tolist() for one in places), strict=True))
    expected = points(gray.tolist(), rows, columns)
    assert found == expected
    few = _native.image_points(gray, *axes, rows, columns, 3)
    assert [one.tolist() for one in few] == [
        words[:3].tolist(),
        *(one[:3].tolist() for one in places),
    ]


@given(st.integers(0, 2**32), st.floats(0, 1), st.integers(2, 10))
@settings(max_examples=10, deadline=None)
def test_agreement_is_as_it_is_defined(seed: int, share: float, blur: int) -> None:
    one, other = (
        np.asarray(field(seed + number, 64, 64, blur)).astype(np.float64) for number in (0, 1)
    )
    two = np.rint(share * other + (1 - share) * one).astype(np.uint8)
    thumbnails = np.stack([one.astype(np.uint8), two])
    placements = np.array([[1.0, 0, 1, 0]])
    (found,) = agreements(
        thumbnails, thumbnails, np.array([0]), np.array([1]), placements, refine=False, threads=1
    )
    expected = agreement_in_place(*(each.tolist() for each in thumbnails))
    assert found[0] == pytest.approx(expected.correlation)
    assert found[1:3].tolist() == [expected.windows, expected.agreeing]
    if expected.windows == expected.agreeing:  # no side is left out
        assert found[4:8] == pytest.approx(expected[3:])
    assert found[8:].tolist() == [1, 1]


def test_any_number_of_threads_and_both_orders() -> None:
    thumbnails = np.stack(
        [details_of(decoded(scene(number, 200), 128), 1).thumbnail for number in range(8)]
    )
    left, right = (each.ravel() for each in np.mgrid[:8, :8])
    found = []
    for threads in (1, 3):
        placements = np.tile([1.0, 0, 1, 0], (64, 1))
        found.append(
            agreements(
                thumbnails, thumbnails, left, right, placements, refine=True, threads=threads
            )
        )
    assert np.array_equal(found[0], found[1])
    same = left == right
    assert np.allclose(found[0][same, 0], 1) and (found[0][same, 1] == found[0][same, 2]).all()


@pytest.mark.parametrize("scale", [0.5, 1.0, 1.4])
def test_the_place_of_an_image_in_another(scale: float) -> None:
    rng = np.random.default_rng(0)
    one = np.stack([*rng.integers(0, 16 * 160, (2, 9)), rng.integers(20, 60, 9)], 1)
    two = one.copy()
    two[:, :2] = np.rint(scale * one[:, :2]) + np.array([300, -40])
    two[:, 2] += round(24 * np.log2(scale))
    two[7:] = two[7:][::-1] + 500  # wrong matches
    found = placement_of(one, two, (400, 400), (400, 400))
    assert found is not None
    assert np.allclose(found, [scale, 300 / 2560, scale, -40 / 2560], atol=0.01)
    assert placement_of(one[:1], two[:1], (400, 400), (400, 400)) is None


def test_details_travel_and_turn() -> None:
    image = decoded(scene(0, 300), 128)
    details = details_of(image, 8)
    same = Details.from_plain(*details.to_plain())
    assert np.array_equal(same.thumbnail, details.thumbnail) and len(same.points) == 8
    for one, two in zip(same.points, details.points, strict=True):
        assert np.array_equal(one.words, two.words) and np.array_equal(one.places, two.places)
    for turn in TURNS:
        turned = details_of(image.turned(turn), 1).thumbnail
        assert np.array_equal(turned_thumbnails(details.thumbnail[None], turn)[0], turned)
    assert parts_of(100, 100) == (160, 160) and parts_of(1, 100_000) == (640, 16)


def saved(folder: Path, pictures: dict[str, Image.Image]) -> Path:
    folder.mkdir()
    for name, picture in pictures.items():
        picture.save(folder / f"{name}.png")
    return folder


def near(folder: Path, **options: object) -> set[frozenset[str]]:
    result = la.dedup(folder, kind="images", **options)  # type: ignore[arg-type]
    assert isinstance(result, la.results.MediaResult)
    return {frozenset(result.files[row].stem for row in group) for group in result.groups()}


def test_parts_frames_and_captions_are_found_but_not_strictly(tmp_path: Path) -> None:
    originals = {str(number): scene(number, 400) for number in (0, 2, 4)}
    folder = saved(tmp_path / "parts", originals)
    expected = {}
    for number, name in zip(originals, ("crop to 50%", "frame 20%", "caption"), strict=True):
        EDITS[name](originals[number]).save(folder / f"{number} {name}.png")
        expected[number] = frozenset({number, f"{number} {name}"})
    assert near(folder) == set(expected.values())
    assert near(folder, threshold="loose") == set(expected.values())
    strict = near(folder, threshold="strict")
    assert not strict & {expected["0"], expected["2"]}
    turned = originals["0"].transpose(Image.Transpose.ROTATE_90)
    EDITS["crop to 70%"](turned).save(folder / "0 turned.png")
    assert frozenset({"0", "0 crop to 50%", "0 turned"}) in near(folder, rotated=True)


def test_frames_and_boxes_do_not_make_images_the_same(tmp_path: Path) -> None:
    pictures = {}
    for number in range(12):
        picture = scene(number, 300).resize((300, 225))
        pictures[f"black {number}"] = ImageOps.expand(picture, 40, "black")
        boxed = picture.copy()
        boxed.paste("white", (90, 60, 210, 165))
        pictures[f"box {number}"] = boxed
    for group in near(saved(tmp_path / "framed", pictures)):
        assert len({name.split()[1] for name in group}) == 1


def test_plain_pictures_are_not_the_same(tmp_path: Path) -> None:
    pictures = {str(number): plain_picture(number, 200) for number in range(90)}
    assert near(saved(tmp_path / "plain", pictures)) == set()


def test_pairs_do_not_depend_on_order_or_threads() -> None:
    """Pictures in the same frame share its corners, which are more than may vote."""
    rng = np.random.default_rng(3)
    pictures = []
    for number in range(40):
        framed = ImageOps.expand(scene(number, 200).resize((160, 120)), 24, "white")
        ImageDraw.Draw(framed).rectangle((8, 8, 199, 159), outline="black", width=4)
        pictures.append(framed)
    pictures += [EDITS["crop to 70%"](pictures[number]) for number in (3, 18, 31)]
    medium = ImageMedium()
    hashed = list(medium.signer.each(pictures, points=128, threads=1))
    expected: set[frozenset[int]] | None = None
    for threads in (1, 2):
        order = rng.permutation(len(hashed)) if threads == 2 else np.arange(len(hashed))
        read = medium.collected(
            [Path(str(place)) for place in order], [hashed[place] for place in order], []
        )
        found = medium.pairs(read, threads=threads, tell=lambda share: None)
        named = {
            frozenset((int(order[left]), int(order[right])))
            for left, right in zip(found.left.tolist(), found.right.tolist(), strict=True)
        }
        assert expected is None or named == expected
        expected = named
    assert {frozenset((3, 40)), frozenset((18, 41)), frozenset((31, 42))} == expected


@pytest.mark.parametrize("kind", PAGES)
def test_pages_of_one_kind_are_not_the_same(kind: str, tmp_path: Path) -> None:
    first = list(PAGES).index(kind)
    pictures = {str(number): page(first + number * len(PAGES), 200) for number in range(30)}
    assert near(saved(tmp_path / "pages", pictures)) == set()


ONCE_JOINED = {
    "one line of text": (1_002_091, 1_002_245),
    "a title and a line": (1_001_902, 1_004_975),
    "a slide": (1_000_299, 1_004_681),
    "a gradient around a point": (1_002_680, 1_003_310),
    "an edge, moved": (1_000_153, 1_001_441),
    "another line as long": (2_000_116, 2_000_697),
    "other colors, stretched": (2_003_365, 2_004_919),
    "nearly the same star": (1_001_864, 1_004_552),
    "a star, stretched": (1_003_817, 1_001_066),
    "a star with other arms": (1_000_506, 1_001_500),
}
"""Numbers of pages that agree but for what they show; lower limits have joined them."""


@pytest.mark.parametrize("why", ONCE_JOINED)
def test_what_two_frames_have_in_common_is_not_enough(why: str, tmp_path: Path) -> None:
    pictures = {str(number): page(number, 256) for number in ONCE_JOINED[why]}
    assert near(saved(tmp_path / "pages", pictures)) == set()


@pytest.mark.parametrize("angle", [-2, 1, 2])
def test_images_that_are_turned_a_little(angle: int, tmp_path: Path) -> None:
    pictures = {str(number): scene(number, 400) for number in (0, 2, 6)}
    folder = saved(tmp_path / "turned", pictures)
    for name, picture in pictures.items():
        picture.rotate(angle, Image.Resampling.BICUBIC).save(folder / f"{name} turned.png")
    assert near(folder) == {frozenset({name, f"{name} turned"}) for name in pictures}


def test_a_caption_that_different_images_share(tmp_path: Path) -> None:
    pictures = {
        str(number): EDITS["caption"](plain_picture(3 * number, 300)) for number in range(9)
    }
    assert near(saved(tmp_path / "captions", pictures)) == set()


def test_copies_of_plain_pictures_are_still_found(tmp_path: Path) -> None:
    found = total = 0
    for number in range(30):
        picture = plain_picture(number, 240)
        if la.ImageHash(256).sign_with_quality(picture)[1] < 32:
            continue
        copies = {"one": picture, "two": CHANGES["half the size"](picture)}
        total += 1
        found += len(near(saved(tmp_path / str(number), copies)))
    assert total > 15 and found >= 0.9 * total


@pytest.mark.parametrize("threshold", [0.9, "near", True])
def test_thresholds_of_images_are_words(threshold: object, tmp_path: Path) -> None:
    with pytest.raises(la.errors.ArgumentError, match="expected one of: strict, normal, loose"):
        la.dedup(tmp_path, kind="images", threshold=threshold)  # type: ignore[arg-type]
