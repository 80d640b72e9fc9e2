"""Pictures to recognize again: scenes that are drawn, each from its own number, and what people do
to pictures.

Half of them are like photographs: soft shapes, shadows, and detail at every scale. The others are
drawings, charts and pages of text, whose large even areas are hard for hashes.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageChops, ImageDraw, ImageEnhance, ImageFilter, ImageOps

__all__ = ["CHANGES", "EDITS", "ROTATIONS", "SCENES", "jpeg", "scene"]

Picture = Image.Image


def scene(number: int, longest: int = 800) -> Picture:
    """Return one of endlessly many scenes, the same for the same number; as many pixels wide or
    high as said.
    """
    rng = np.random.default_rng([number, 1])
    kind = list(SCENES.values())[number % len(SCENES)]
    ratio = float(rng.choice([1.0, 4 / 3, 3 / 2, 16 / 9]))
    short = round(longest / ratio)
    size = (longest, short) if rng.random() < 0.7 else (short, longest)
    return kind(rng, size).convert("RGB")


def _field(rng: np.random.Generator, size: tuple[int, int], slope: float) -> NDArray[np.float64]:
    """Return noise with detail at every scale, from 0 to 1: the steeper, the softer."""
    width, height = size
    rows, columns = np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None]
    frequency = np.hypot(rows * height, columns * width)
    frequency[0, 0] = 1
    phases = np.exp(2j * np.pi * rng.random(frequency.shape))
    values = np.fft.irfft2(
        phases * rng.rayleigh(size=frequency.shape) / frequency**slope, (height, width)
    )
    values -= values.min()
    return np.asarray(values / values.max())


def _colors(rng: np.random.Generator, values: NDArray[np.float64]) -> Picture:
    """Return values from 0 to 1 as a picture, from one color over a second to a third."""
    stops = rng.integers(0, 256, (3, 3))
    channels = [np.interp(values, [0, 0.5, 1], stops[:, channel]) for channel in range(3)]
    return Image.fromarray(np.stack(channels, 2).astype(np.uint8))


def _texture(rng: np.random.Generator, size: tuple[int, int]) -> Picture:
    """Clouds, stone, bark: noise whose detail is at every scale."""
    return _colors(rng, _field(rng, size, float(rng.uniform(1.1, 1.8))))


def _landscape(rng: np.random.Generator, size: tuple[int, int]) -> Picture:
    """Hills before a sky, trees and a sun."""
    width, height = size
    picture = _colors(rng, np.linspace(0, 1, height)[:, None] * np.ones((1, width)))
    clouds = Image.fromarray((_field(rng, size, 1.6) * 200).astype(np.uint8))
    picture.paste(Image.new("RGB", size, "white"), mask=clouds)
    draw = ImageDraw.Draw(picture)
    x, y, radius = rng.uniform(0, width), rng.uniform(0, height / 2), rng.uniform(0.03, 0.1) * width
    draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=_color(rng))
    for level in sorted(rng.uniform(0.35, 0.95, 4)):
        steps = np.arange(0, width + 8, 8)
        waves = np.zeros(len(steps))
        for turn in range(1, 6):
            height_of = rng.uniform(0.01, 0.08) / turn
            waves += height_of * np.sin(steps / width * turn * 7 + rng.uniform(0, 7))
        line = [
            (int(at), int((level + wave) * height)) for at, wave in zip(steps, waves, strict=True)
        ]
        draw.polygon([*line, (width, height), (0, height)], fill=_color(rng))
        for _ in range(int(rng.integers(0, 12))):
            foot, top = int(rng.integers(0, width)), rng.uniform(0.03, 0.15) * height
            base = level * height + top / 2
            draw.polygon(
                [(foot, base - top), (foot - top / 4, base), (foot + top / 4, base)],
                fill=_color(rng),
            )
    grain = _field(rng, size, 0.9)[..., None] * 40 - 20
    return Image.fromarray(np.clip(np.asarray(picture) + grain, 0, 255).astype(np.uint8))


def _objects(rng: np.random.Generator, size: tuple[int, int]) -> Picture:
    """Things on a table: soft shapes with shadows, before a texture."""
    picture = _texture(rng, size)
    for _ in range(int(rng.integers(4, 14))):
        shape = Image.new("L", size, 0)
        _shape(rng, ImageDraw.Draw(shape), size, fill=255)
        shade = shape.filter(ImageFilter.GaussianBlur(size[0] / 80))
        shade = ImageChops.offset(shade, size[0] // 60, size[1] // 60).point(
            lambda value: value // 2
        )
        picture.paste(Image.new("RGB", size, "black"), mask=shade)
        picture.paste(_colors(rng, _field(rng, size, 1.9)), mask=shape)
    return picture


def _drawing(rng: np.random.Generator, size: tuple[int, int]) -> Picture:
    """Flat shapes on an even ground, as in icons and slides."""
    picture = Image.new("RGB", size, _color(rng))
    draw = ImageDraw.Draw(picture)
    for _ in range(int(rng.integers(6, 30))):
        _shape(rng, draw, size, fill=_color(rng))
    return picture


def _chart(rng: np.random.Generator, size: tuple[int, int]) -> Picture:
    """Bars or lines on white, between axes."""
    width, height = size
    picture = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(picture)
    left, bottom = 0.1 * width, 0.9 * height
    draw.line(
        [(left, 0.05 * height), (left, bottom), (0.95 * width, bottom)], fill="black", width=3
    )
    count = int(rng.integers(6, 24))
    step = 0.85 * width / count
    heights = rng.uniform(0.02, 0.8, count) * height
    for place, high in enumerate(heights):
        at = left + place * step
        draw.rectangle(
            (at + 0.15 * step, bottom - high, at + 0.85 * step, bottom), fill=_color(rng)
        )
    for _ in range(int(rng.integers(1, 4))):
        values = np.cumsum(rng.normal(0, 0.08, 40)) + rng.uniform(0.3, 0.7)
        points = [
            (left + at * 0.85 * width / 39, bottom - float(np.clip(value, 0, 1)) * 0.8 * height)
            for at, value in enumerate(values)
        ]
        draw.line(points, fill=_color(rng), width=4)
    return picture


def _page(rng: np.random.Generator, size: tuple[int, int]) -> Picture:
    """A page: a heading, paragraphs of words, a figure."""
    width, height = size
    picture = Image.new("RGB", size, (250, 249, 245))
    draw = ImageDraw.Draw(picture)
    line, at = height / 42, height * 0.06
    figure = rng.uniform(0.2, 0.7) * height
    while at < 0.94 * height:
        if figure < at < figure + 0.2 * height:
            tile = (int(0.3 * width), int(0.2 * height))
            picture.paste(_texture(rng, tile), (int(rng.uniform(0.1, 0.6) * width), int(at)))
            at, figure = at + tile[1] + line, math.inf
            continue
        end = width * (0.9 if rng.random() < 0.8 else rng.uniform(0.2, 0.8))
        x = 0.1 * width
        while x < end:
            word = rng.uniform(0.02, 0.12) * width
            draw.rectangle((x, at, min(x + word, end), at + 0.5 * line), fill=(40, 40, 45))
            x += word + 0.012 * width
        at += line * (2.2 if end < 0.9 * width else 1)
    return picture


def _shape(
    rng: np.random.Generator, draw: Any, size: tuple[int, int], fill: int | tuple[int, ...]
) -> None:
    width, height = size
    x, y = rng.uniform(0, width), rng.uniform(0, height)
    across, down = rng.uniform(0.04, 0.3) * width, rng.uniform(0.04, 0.3) * height
    box = (x - across, y - down, x + across, y + down)
    which = int(rng.integers(3))
    if which == 0:
        draw.rectangle(box, fill=fill)
    elif which == 1:
        draw.ellipse(box, fill=fill)
    else:
        turns = np.sort(rng.uniform(0, 2 * np.pi, int(rng.integers(3, 7))))
        draw.polygon([(x + across * math.cos(a), y + down * math.sin(a)) for a in turns], fill=fill)


def _color(rng: np.random.Generator) -> tuple[int, ...]:
    return tuple(rng.integers(0, 256, 3).tolist())


SCENES: Mapping[str, Callable[[np.random.Generator, tuple[int, int]], Picture]] = {
    "landscape": _landscape,
    "drawing": _drawing,
    "objects": _objects,
    "chart": _chart,
    "texture": _texture,
    "page": _page,
}
"""In this order, one after the other: every second is like a photograph."""


def jpeg(picture: Picture, quality: int) -> Picture:
    """Return a picture after it was written as JPEG and read again."""
    written = io.BytesIO()
    picture.save(written, "JPEG", quality=quality)
    return Image.open(io.BytesIO(written.getvalue())).convert("RGB")


def _resized(share: float) -> Callable[[Picture], Picture]:
    def change(picture: Picture) -> Picture:
        size = round(picture.width * share), round(picture.height * share)
        return picture.resize(size, Image.Resampling.LANCZOS)

    return change


def _cropped(share: float) -> Callable[[Picture], Picture]:
    def change(picture: Picture) -> Picture:
        """Cut off this share of the width and of the height, in all."""
        x, y = picture.width * share / 2, picture.height * share / 2
        return picture.crop(
            (round(x), round(y), round(picture.width - x), round(picture.height - y))
        )

    return change


def _brighter(share: float) -> Callable[[Picture], Picture]:
    return lambda picture: ImageEnhance.Brightness(picture).enhance(share)


def _grain(picture: Picture) -> Picture:
    noise = np.random.default_rng(picture.width).normal(0, 8, (picture.height, picture.width, 1))
    return Image.fromarray(np.clip(np.asarray(picture) + noise, 0, 255).astype(np.uint8))


CHANGES: Mapping[str, Callable[[Picture], Picture]] = {
    "half the size": _resized(0.5),
    "a quarter of the size": _resized(0.25),
    "twice the size": _resized(2),
    "a tenth wider": lambda picture: picture.resize((round(picture.width * 1.1), picture.height)),
    "JPEG quality 75": lambda picture: jpeg(picture, 75),
    "JPEG quality 30": lambda picture: jpeg(picture, 30),
    "JPEG quality 10": lambda picture: jpeg(picture, 10),
    "brightness 70%": _brighter(0.7),
    "brightness 130%": _brighter(1.3),
    "contrast 70%": lambda picture: ImageEnhance.Contrast(picture).enhance(0.7),
    "gray": lambda picture: picture.convert("L").convert("RGB"),
    "noise": _grain,
    "crop 2%": _cropped(0.02),
    "crop 5%": _cropped(0.05),
    "crop 10%": _cropped(0.1),
    "rotated by 1°": lambda picture: picture.rotate(1, Image.Resampling.BICUBIC),
}
"""What people do to pictures, by what it is called."""

ROTATIONS: Mapping[str, Callable[[Picture], Picture]] = {
    "rotated by 90°": lambda picture: picture.transpose(Image.Transpose.ROTATE_90),
    "rotated by 180°": lambda picture: picture.transpose(Image.Transpose.ROTATE_180),
    "mirrored": lambda picture: picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT),
    "rotated by 270° and mirrored": lambda picture: picture.transpose(Image.Transpose.TRANSVERSE),
}
"""What only `orientations=8` finds."""


def _cropped_to(share: float, sides: bool = False) -> Callable[[Picture], Picture]:
    """Keep this share of the area, somewhere in the picture; with `sides`, cut one way alone."""

    def change(picture: Picture) -> Picture:
        rng = np.random.default_rng([picture.width, picture.height, *picture.getpixel((9, 9))])  # type: ignore[misc]
        wide = (share, 1.0) if rng.random() < 0.5 else (1.0, share)
        across, down = wide if sides else (share**0.5, share**0.5)
        width, height = picture.width * across, picture.height * down
        x, y = rng.uniform(0, picture.width - width), rng.uniform(0, picture.height - height)
        return picture.crop((round(x), round(y), round(x + width), round(y + height)))

    return change


def _framed(share: float, color: str) -> Callable[[Picture], Picture]:
    return lambda picture: ImageOps.expand(picture, round(share * min(picture.size)), color)


def _caption(picture: Picture) -> Picture:
    """Cover the lowest eighth with a white bar and words."""
    picture, high = picture.copy(), picture.height / 8
    draw = ImageDraw.Draw(picture)
    top = picture.height - high
    draw.rectangle((0, top, picture.width, picture.height), fill="white")
    words = "A caption that covers the picture"
    draw.text((0.05 * picture.width, top + high / 4), words, fill="black", font_size=high / 2)
    return picture


def _below(picture: Picture) -> Picture:
    """Put words below the picture."""
    high = picture.height // 7
    made = Image.new("RGB", (picture.width, picture.height + high), "white")
    made.paste(picture)
    at = (0.05 * picture.width, picture.height + high / 5)
    ImageDraw.Draw(made).text(at, "WORDS BELOW", fill="black", font_size=high / 2)
    return made


def _logo(picture: Picture) -> Picture:
    """Cover a fifth of the width and of the height."""
    picture, (width, height) = picture.copy(), picture.size
    draw = ImageDraw.Draw(picture)
    draw.ellipse((0.7 * width, 0.65 * height, 0.9 * width, 0.85 * height), fill=(230, 30, 40))
    draw.text((0.74 * width, 0.71 * height), "LOGO", fill="white", font_size=height / 14)
    return picture


def _watermark(picture: Picture) -> Picture:
    """Write three lines across the picture, half transparent."""
    layer = Image.new("RGBA", picture.size, (0, 0, 0, 0))
    for line in range(3):
        ImageDraw.Draw(layer).text(
            (picture.width / 10, picture.height * (0.15 + 0.3 * line)),
            "WATERMARK",
            fill=(255, 255, 255, 110),
            font_size=picture.height / 6,
        )
    return Image.alpha_composite(picture.convert("RGBA"), layer).convert("RGB")


def _small_crop(picture: Picture) -> Picture:
    return jpeg(_resized(0.5)(_cropped_to(0.7)(picture)), 75)


EDITS: Mapping[str, Callable[[Picture], Picture]] = {
    **{f"crop to {share}%": _cropped_to(share / 100) for share in (90, 80, 70, 60, 50)},
    **{f"one way to {share}%": _cropped_to(share / 100, sides=True) for share in (90, 70, 50)},
    "crop to 70%, half the size, JPEG 75": _small_crop,
    "frame 3%": _framed(0.03, "black"),
    "frame 20%": _framed(0.2, "black"),
    "white frame 20%": _framed(0.2, "white"),
    "caption": _caption,
    "words below": _below,
    "logo": _logo,
    "watermark": _watermark,
    "rotated by 2°": lambda picture: picture.rotate(2, Image.Resampling.BICUBIC),
}
"""What leaves a part of a picture, or adds to it. Shares of crops are of the area; those of frames
of the shorter side, added on each side."""
