"""Images in a collection: added by their paths, searched by image."""

from __future__ import annotations

from collections.abc import Callable
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


def test_a_job_against_a_collection_in_any_database(
    photos: list[str], tmp_path: Path, new_url: Callable[[], str]
) -> None:
    """Old images are known by their hashes alone; the job names their ids."""
    url, new = new_url(), tmp_path / "new"
    new.mkdir()
    CHANGES["half the size"](scene(2, 160)).save(new / "copy.png")
    scene(8, 160).save(new / "unseen.png")
    with la.open_collection(url, "photos", signer=la.ImageHash(256)) as photo:
        photo.add(["a", "b", "c", "d"], photos)
        found = [la.dedup(new, kind="images", against=old) for old in (url, photo)]
    for result in found:
        assert [path.name for path in result.kept()] == ["unseen.png"]
        (row,) = [at for at, file in enumerate(result.files) if file.name == "copy.png"]
        assert result.annotated()["duplicate_of"].to_pylist()[row] == "c"
        assert result.counts.in_old == 1


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


def test_a_folder_of_images_is_imported(photos: list[str], tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not an image")
    told: list[tuple[str, float]] = []
    database = tmp_path.with_name("images.db")
    with la.open_collection(database, signer=la.ImageHash(256)) as docs:
        done = docs.import_file(tmp_path, progress=lambda *step: told.append(step))
        assert (done.added, done.updated, done.bad) == (4, 0, 0)
        assert [document.id for document in docs] == [f"{number}.png" for number in range(4)]
        assert docs.search(photos[2], 1).distances == [0] and told[-1] == ("importing", 1.0)
        assert docs.import_file([photos[0], Path(photos[1])], replace=True).added == 2
        with pytest.raises(la.errors.BatchError, match="exists"):
            docs.import_file(tmp_path)
        with pytest.raises(la.errors.ArgumentError, match="text does nothing: the collection"):
            docs.import_file(tmp_path, text="text")
        empty = tmp_path / "empty"
        empty.mkdir()
        with pytest.raises(la.errors.FileError, match="no images found in"):
            docs.import_file(empty)
        table = [{"id": "x", "text": photos[3]}]
        assert docs.import_file(table).added == 1
