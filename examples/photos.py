"""Find copies of photographs that were resized or compressed again. Nothing is deleted.

Run it with `python examples/photos.py`. It needs the extra `images`.
"""

import random
import tempfile
from pathlib import Path

from PIL import Image, ImageDraw

import lookalike as la


def make_photo(seed: int) -> Image.Image:
    """Draw a picture of overlapping ellipses."""
    chance = random.Random(seed)
    image = Image.radial_gradient("L").resize((640, 480)).convert("RGB")
    draw = ImageDraw.Draw(image)
    for _ in range(25):
        x, y = chance.randrange(600), chance.randrange(440)
        color = tuple(chance.randrange(256) for _ in range(3))
        draw.ellipse((x, y, x + chance.randrange(20, 200), y + chance.randrange(20, 160)), color)
    return image


def main() -> None:
    """Make a folder of pictures with copies, and list which copy is kept."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number in range(8):
            photo = make_photo(number)
            photo.save(folder / f"{number}.png")
            if number < 3:
                photo.resize((320, 240)).save(folder / f"{number}-small.jpg", quality=60)

        result = la.dedup(folder, kind="images")
        print(f"{result.counts.documents} images, {result.counts.kept} kept")
        for path in result.dropped():
            print(f"{path.name} is a copy of a larger image")


if __name__ == "__main__":
    main()
