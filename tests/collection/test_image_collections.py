"""Images in a collection: added by their paths, searched by image."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks.images.scenes import CHANGES, scene
from PIL import Image

import lookalike as la


@pytest.fixture
def photos(tmp_path: Path) -> list[str]:
    for number in range(4):
        scene(number, 160).save(tmp_path / f"{number}.png")
    return [str(tmp_path / f"{number}.png") for number in range(4)]


def test_images_are_added_and_found(photos: list[str], tmp_path: Path) -> None:
    signer = la.ImageHash(256)
    copy = CHANGES["half the size"](scene(2, 160))
    copy.save(tmp_path / "copy.jpg")
    asked = (
        *(tmp_path / "copy.jpg", str(tmp_path / "copy.jpg"), (tmp_path / "copy.jpg").read_bytes()),
        *(copy, signer.sign(copy), signer.sign(copy)[0]),
    )
    with la.open_collection(tmp_path / "photos.db", "photos", signer=signer) as photo:
        photo.add(["a", "b", "c", "d"], photos, metadata=[{"place": n} for n in range(4)])
        for query in asked:
            answer = photo.search(query, 2, text=True)
            assert answer[0].id == "c" and answer[0].text == photos[2]
            assert [match.id for match in photo.within(query, signer.radius)] == ["c"]
        several: list[str | Path] = [photos[0], Path(photos[3])]
        many = photo.search_many(several, 1)
        assert [answer[0].id for answer in many] == ["a", "d"]
        many = photo.within_many([Image.open(photos[1])], 0, where={"place": 1})
        assert [[match.id for match in answer] for answer in many] == [["b"]]
        photo.add(["e"], signatures=signer.sign(copy))
        assert [(pair.left, pair.right) for pair in photo.pairs(signer.radius)] == [("c", "e")]
        with pytest.raises(la.errors.ArgumentError, match="mask"):
            photo.search(photos[0], mask=True)
        with pytest.raises(la.errors.DocumentError, match="No such file"):
            photo.search("words that are no path")
    with la.open_collection(tmp_path / "photos.db", "photos") as photo:
        assert photo.signer == signer
        document = photo.get("b")
        assert document is not None and document.text == photos[1]
        assert np.array_equal(document.signature, signer.sign(photos[1])[0])


def test_broken_images_are_named(photos: list[str], tmp_path: Path) -> None:
    Path(photos[1]).write_bytes(Path(photos[1]).read_bytes()[:200])
    with la.open_collection(tmp_path / "photos.db", "photos", signer=la.ImageHash()) as photo:
        with pytest.raises(
            la.errors.BatchError, match=r"1 of 4 items.*item 1 \('b'\): the image cannot"
        ):
            photo.add(["a", "b", "c", "d"], photos)
        assert photo.count() == 0
        written = photo.add(["a", "b", "c", "d"], photos, on_error="skip")
        assert written.added == 3 and [error.position for error in written.errors] == [1]
        assert photo.search(photos[3], 1)[0].id == "d"
        written = photo.upsert(["a", "x"], [photos[2], "nowhere.png"], on_error="skip")
        assert written.updated == 1 and len(written.errors) == 1
        assert {match.id for match in photo.within(photos[2], 0)} == {"a", "c"}
