"""Pictures with little in them, each from its own number, and none a copy of another: smooth ones,
logos on an even ground, and different pictures in the same frames.
"""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw

from benchmarks.images.scenes import scene

__all__ = ["plain_picture"]

Picture = Image.Image
Size = tuple[int, int]

_FRAMES = ((0, 0, 0), (255, 255, 255), (120, 80, 40), (20, 20, 80), (200, 180, 60), (0, 0, 0))
_PLAIN_FRAMES = 2  # of these, without lines


def plain_picture(number: int, longest: int = 256) -> Picture:
    """Return a smooth picture, a logo or a framed picture, the same for the same number."""
    rng = np.random.default_rng([number, 77])
    size = longest, round(longest / float(rng.choice([1, 4 / 3, 16 / 9])))
    if number % 3 == 0:
        return _smooth(rng, size)
    if number % 3 == 1:
        return _logo(rng, size)
    inner = _smooth(rng, size) if rng.random() < 0.5 else scene(number + 500_000, longest)
    return _framed(rng, size, inner)


def _smooth(rng: np.random.Generator, size: Size) -> Picture:
    """Waves, hills, or a slope with a few hills."""
    width, height = size
    y, x = np.mgrid[:height, :width] / np.array([[[height]], [[width]]])
    values = np.zeros((height, width))
    kind, most = int(rng.integers(3)), int(rng.integers(2, 5))
    if kind == 0:
        for down in range(most):
            for across in range(most):
                if down + across:
                    wave = np.cos(np.pi * across * x) * np.cos(np.pi * down * y)
                    values += rng.normal() / (down + across) ** 1.5 * wave
    else:
        if kind == 2:
            slope = rng.uniform(0, 2 * np.pi)
            values += np.cos(slope) * x + np.sin(slope) * y
        wide = (0.1, 0.5) if kind == 1 else (0.05, 0.2)
        for _ in range(most + 1):
            far = (x - rng.random()) ** 2 + (y - rng.random()) ** 2
            values += rng.normal() * np.exp(-far / (2 * rng.uniform(*wide) ** 2)) / kind
    values = (values - values.min()) / max(float(np.ptp(values)), 1e-9)
    dark = int(rng.integers(0, 128))
    high = int(rng.integers(25, 256 - dark)) * values
    channels = [dark + high * share for share in (1, *rng.uniform(0.6, 1, 2))]
    return Image.fromarray(np.stack(channels, 2).astype(np.uint8))


def _logo(rng: np.random.Generator, size: Size) -> Picture:
    picture = Image.new("RGB", size, (int(rng.choice([255, 0, 240, 32])),) * 3)
    draw = ImageDraw.Draw(picture)
    center = (0.5, 0.5) if rng.random() < 0.6 else rng.uniform(0.25, 0.75, 2)
    reach = rng.uniform(0.08, 0.3) * min(size)
    for _ in range(int(rng.integers(2, 6))):
        x, y = np.array(center) * size + rng.uniform(-1, 1, 2) * reach
        across, down = rng.uniform(0.2, 1, 2) * reach
        box = x - across, y - down, x + across, y + down
        color = tuple(rng.integers(0, 256, 3).tolist())
        kind = int(rng.integers(4))
        if kind == 0:
            draw.ellipse(box, fill=color)
        elif kind == 1:
            draw.rectangle(box, fill=color)
        elif kind == 2:
            draw.polygon([(x, y - down), (x + across, y + down), (x - across, y)], fill=color)
        else:
            letters = "".join(map(chr, rng.integers(65, 91, int(rng.integers(1, 6)))))
            draw.text(box[:2], letters, fill=color, font_size=max(8, int(across)))
    return picture


def _framed(rng: np.random.Generator, size: Size, inner: Picture) -> Picture:
    width, height = size
    kind = int(rng.integers(len(_FRAMES)))
    side = round(float(rng.choice([0.05, 0.1, 0.15, 0.2])) * min(size))
    picture = Image.new("RGB", size, _FRAMES[kind])
    if kind >= _PLAIN_FRAMES:
        draw = ImageDraw.Draw(picture)
        for at, color in ((side // 3, (250, 240, 200)), (side * 2 // 3, (30, 20, 10))):
            line = max(1, side // 7)
            draw.rectangle((at, at, width - at, height - at), outline=color, width=line)
    picture.paste(inner.resize((width - 2 * side, height - 2 * side)), (side, side))
    return picture
