"""Pictures that others have made: photographs, wallpapers and stamps of installed packages.

Of PyPI: scikit-image, scikit-learn and matplotlib. Of Debian, where they are: `gnome-backgrounds
mate-backgrounds ukui-wallpapers lxqt-themes plasma-workspace-wallpapers tuxpaint-stamps-default`,
below /usr/share, or where `LOOKALIKE_PICTURES` says that this lies. `LOOKALIKE_PHOTOGRAPHS` names a
folder of other photographs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from PIL import Image

__all__ = ["FOUND", "opened"]

_SUFFIXES = (".jpg", ".jpeg", ".png", ".webp")

_VARIANTS = (
    *("-d.", "Elephants_", "Stripes-Light", "-logo", "origami-", "motorcycle_right"),
    "chessboard_RGB",
)
"""In the names of files that show what another one shows, in other colors or sizes."""

_LEAST = 128
"""Pixels that a stamp has each way at least: a quarter of it is still a picture."""


def opened(path: Path, longest: int) -> Image.Image:
    """Return a picture in colors, on white where it is transparent, no larger than said."""
    with Image.open(path) as image:
        picture = image.convert("RGBA")
    picture.thumbnail((longest, longest), Image.Resampling.LANCZOS)
    white = Image.new("RGBA", picture.size, "white")
    white.alpha_composite(picture)
    return white.convert("RGB")


def _photographs() -> list[Path]:
    """Return photographs and wallpapers, one of each motif."""
    share = _share()
    found = [
        *_pictures(_package("skimage") / "data"),
        *_pictures(_package("sklearn") / "datasets" / "images"),
        *_pictures(_package("matplotlib") / "mpl-data" / "sample_data"),
        *_pictures(share / "backgrounds"),
        *_pictures(share / "backgrounds" / "gnome"),
        *_pictures(share / "backgrounds" / "mate", "*"),
        *_pictures(share / "lxqt" / "wallpapers"),
    ]
    # Of each of these there are several sizes: the widest.
    for folder in sorted((share / "wallpapers").glob("*/contents/images")):
        found += sorted(_pictures(folder), key=lambda path: int(path.name.split("x")[0]))[-1:]
    return [path for path in found if not any(part in path.name for part in _VARIANTS)]


def _others() -> list[Path]:
    """Return the photographs of a folder that is named, or those of packages."""
    folder = os.environ.get("LOOKALIKE_PHOTOGRAPHS")
    return _photographs() if folder is None else _pictures(Path(folder), "**")


def _stamps() -> list[Path]:
    """Return things cut out of photographs, drawings and symbols."""
    found = _pictures(_share() / "tuxpaint" / "stamps", "**")
    return [path for path in found if _shorter(path) >= _LEAST and "_mirror" not in path.name]


def _shorter(path: Path) -> int:
    with Image.open(path) as image:
        return min(image.size)


def _pictures(folder: Path, below: str = "") -> list[Path]:
    pattern = f"{below}/*" if below else "*"
    return sorted(path for path in folder.glob(pattern) if path.suffix.lower() in _SUFFIXES)


def _package(name: str) -> Path:
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"{name} is not installed; run: make bench")
    return Path(spec.origin).parent


def _share() -> Path:
    return Path(os.environ.get("LOOKALIKE_PICTURES", "/usr/share"))


FOUND: Mapping[str, Callable[[], Sequence[Path]]] = {
    "photographs": _photographs,
    "stamps": _stamps,
    "parts": _others,
}
"""Kinds of pictures, and where they are."""
