"""Images, recordings and videos with previews in a collection."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import lookalike as la
from lookalike.cli import main
from lookalike.images.medium import ImageMedium
from lookalike.media import MOST_PREVIEW, PREVIEW_BYTES, PREVIEW_SIDE
from support.cases.media_files import LATER, SIGNERS, part, whole
from support.running.exploring import examples

MEDIA = list(SIGNERS)


def picture_of(preview: dict[str, object]) -> Image.Image:
    address = str(preview["picture"])
    assert address.startswith("data:image/jpeg;base64,")
    data = base64.b64decode(address.partition(",")[2], validate=True)
    assert len(data) <= PREVIEW_BYTES
    return Image.open(io.BytesIO(data), formats=["JPEG"])


@pytest.mark.parametrize("medium", MEDIA)
def test_files_are_added_with_previews_and_found(medium: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(whole(medium, 1))
    with la.open_collection(tmp_path / "files.db", signer=SIGNERS[medium]) as docs:
        added = docs.add_file("path", path, metadata={"year": 1987})
        assert (added.added, added.version) == (1, 1)
        docs.add_file("bytes", whole(medium, 2))
        known = docs.get("path")
        assert known is not None and known.text == str(path) and known.metadata["year"] == 1987
        docs.add(["plain"], [str(path)])
        plain = docs.get("plain")
        assert plain is not None and plain.metadata == {}
        assert plain.signature.tobytes() == known.signature.tobytes()
        assert docs.search(part(medium, 2), 1).ids == ["bytes"]
        (match,) = docs.search(part(medium, 1), 1, exclude=["plain"])
        assert match.id == "path"
        if docs.parts:
            assert match.start is not None and match.query_start is not None
            assert match.length is not None
            assert abs(match.start - match.query_start - 1000 * LATER) <= 250
            assert 1000 < match.length <= 4250  # at most a step too long
        with pytest.raises(la.errors.BatchError, match="a document with this id exists"):
            docs.add_file("path", path)
        assert docs.add_file("path", whole(medium, 3), replace=True).updated == 1
    with la.open_collection(tmp_path / "files.db") as docs:  # opened again
        known = docs.get("path")
        assert known is not None and known.text is None
        assert docs.search(part(medium, 3), 1).ids == ["path"]
        assert docs.verify().problems == []


@pytest.mark.parametrize("medium", MEDIA)
def test_previews_are_small_and_show_the_file(medium: str, tmp_path: Path) -> None:
    with la.open_collection(tmp_path / "files.db", signer=SIGNERS[medium]) as docs:
        docs.add_file("one", whole(medium, 4))
        document = docs.get("one")
    assert document is not None
    preview = document.metadata["preview"]
    assert len(json.dumps(preview)) <= MOST_PREVIEW
    if medium == "recordings":
        assert preview["format"] == "FLAC" and preview["seconds"] == 8
        assert len(base64.b64decode(preview["waveform"], validate=True)) == 200
        return
    picture = picture_of(preview)
    assert max(picture.size) <= PREVIEW_SIDE
    assert abs(picture.width / picture.height - preview["width"] / preview["height"]) < 0.05
    if medium == "images":
        original = Image.open(io.BytesIO(whole(medium, 4)))
        assert (preview["width"], preview["height"]) == original.size
        small = np.asarray(original.resize(picture.size), float)
        assert np.abs(small - np.asarray(picture, float)).mean() < 12
    else:
        assert abs(preview["seconds"] - 7) < 0.2


@settings(max_examples=examples(12), deadline=None)
@given(
    st.integers(1, 3000), st.integers(1, 3000), st.integers(0, 99), st.sampled_from("L RGB".split())
)
def test_the_preview_of_any_image_is_bounded(width: int, height: int, seed: int, mode: str) -> None:
    shape = (height, width) if mode == "L" else (height, width, 3)
    noise = np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)
    made = io.BytesIO()
    Image.fromarray(noise).save(made, "BMP")
    preview = ImageMedium.sign_file(la.ImageHash(), made.getvalue(), preview=True).preview
    assert len(json.dumps(dict(preview))) <= MOST_PREVIEW
    assert (preview["width"], preview["height"]) == (width, height)


@pytest.mark.parametrize("medium", MEDIA)
def test_files_of_another_medium_are_named(medium: str, tmp_path: Path) -> None:
    with la.open_collection(tmp_path / "files.db", signer=SIGNERS[medium]) as docs:
        for other in MEDIA:
            if other != medium:
                noun = f"{'an' if other == 'images' else 'a'} {other.removesuffix('s')}"
                with pytest.raises(la.errors.DocumentError, match=f"the file is {noun}, by its"):
                    docs.add_file("one", whole(other, 1))
        with pytest.raises(la.errors.DocumentError, match="of a type that is not known"):
            docs.add_file("one", b"just a text, and no file of a medium")
        with pytest.raises(la.errors.DocumentError, match="the file is empty"):
            docs.add_file("one", b"")
        with pytest.raises(la.errors.DocumentError, match=r"cannot be read \(No such file"):
            docs.add_file("one", tmp_path / "missing")
        assert len(docs) == 0
    with (
        la.open_collection(tmp_path / "texts.db", signer=la.SimHash()) as docs,
        pytest.raises(la.errors.ArgumentError, match="holds no files"),
    ):
        docs.add_file("one", whole(medium, 1))


def test_folders_are_imported_with_previews(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.png").write_bytes(whole("images", number))
    (folder / "bad.png").write_bytes(whole("images", 0)[:300])
    database = str(tmp_path / "photos.db")
    with la.open_collection(database, signer=la.ImageHash(256)) as docs:
        with pytest.raises(la.errors.BatchError, match="bad.png"):
            docs.import_file(folder, previews=True)
        done = docs.import_file(folder, previews=True, skip_bad=True, replace=True)
        assert done.bad == 1 and done.added + done.updated == 3
        assert all("picture" in document.metadata["preview"] for document in docs)
        with pytest.raises(la.errors.ArgumentError, match="previews is for images"):
            docs.import_file([{"id": "a", "text": "b"}], previews=True)
    assert main(["collection", "add", database, "new", str(folder / "1.png"), "--preview"]) == 0
    assert (
        main(
            ["collection", "import", database, str(folder), "--previews", "--replace", "--skip-bad"]
        )
        == 0
    )
    with la.open_collection(database) as docs:
        known = docs.get("new")
        assert known is not None and known.metadata["preview"]["format"] == "PNG"
    capsys.readouterr()
    assert main(["collection", "search", database, str(folder / "1.png"), "-k", "1"]) == 0
    assert main(["collection", "get", database, "new"]) == 0
    assert "data:image" not in capsys.readouterr().out
    assert main(["collection", "search", database, str(folder / "1.png"), "--json"]) == 0
    assert "data:image/jpeg" in capsys.readouterr().out
