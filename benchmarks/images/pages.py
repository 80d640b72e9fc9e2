"""Pictures that look alike at a glance, each from its own number, and none a copy of another.

Gradients, slides, charts, icons, scanned pages, night skies, and windows of the same program. The
limits of `dedup` were not chosen on them.
"""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from benchmarks.images.scenes import scene

__all__ = ["PAGES", "page"]

Picture = Image.Image
Size = tuple[int, int]
Generator = np.random.Generator

_GROUNDS = ((255, 255, 255), (250, 248, 240), (32, 40, 60), (0, 0, 0), (235, 235, 235))
_SYLLABLES = "ka lo mi ter den ra so vi un ing est por ta le con qui ner al".split()


def page(number: int, longest: int = 256) -> Picture:
    """Return a picture, the same for the same number."""
    rng = np.random.default_rng([number, 91])
    kinds = list(PAGES.values())
    size = longest, round(longest / float(rng.choice([1, 4 / 3, 16 / 9])))
    return kinds[number % len(kinds)](rng, size)


def _gradient(rng: Generator, size: Size) -> Picture:
    """Colors along a line, around a point, or from a corner, with two to four stops."""
    width, height = size
    y, x = np.mgrid[:height, :width] / np.array([[[height]], [[width]]])
    kind, (across, down) = int(rng.integers(4)), rng.random(2)
    if kind == 0:
        angle = rng.uniform(0, 2 * np.pi)
        values = np.cos(angle) * x + np.sin(angle) * y
    elif kind == 1:
        values = np.hypot(x - across, y - down)
    elif kind == 2:
        values = np.arctan2(y - down, x - across)
    else:
        values = np.maximum(np.abs(x - across), np.abs(y - down))
    values = (values - values.min()) / np.ptp(values)
    stops = np.sort(np.concatenate([[0, 1], rng.random(int(rng.integers(0, 3)))]))
    colors = rng.integers(0, 256, (len(stops), 3))
    channels = [np.interp(values, stops, colors[:, channel]) for channel in range(3)]
    return Image.fromarray(np.stack(channels, 2).astype(np.uint8))


def _words(rng: Generator, count: int) -> str:
    return " ".join("".join(rng.choice(_SYLLABLES, int(rng.integers(1, 5)))) for _ in range(count))


def _slide(rng: Generator, size: Size) -> Picture:
    """A title, and a few lines of text below it."""
    ground = _GROUNDS[int(rng.integers(len(_GROUNDS)))]
    ink = (20, 20, 20) if sum(ground) > 380 else (240, 240, 240)
    picture = Image.new("RGB", size, ground)
    draw, (width, height) = ImageDraw.Draw(picture), size
    if rng.random() < 0.5:
        draw.rectangle((0, 0, width, 0.18 * height), fill=(30, 90, 160))
    draw.text((0.06 * width, 0.05 * height), _words(rng, 3), fill=ink, font_size=height // 10)
    for line in range(int(rng.integers(2, 7))):
        place = 0.1 * width, (0.28 + 0.1 * line) * height
        draw.text(place, f"- {_words(rng, 4)}", fill=ink, font_size=height // 16)
    return picture


def _chart(rng: Generator, size: Size) -> Picture:
    """Two axes, and bars, lines or points in between."""
    picture = Image.new("RGB", size, "white")
    draw, (width, height) = ImageDraw.Draw(picture), size
    left, bottom = 0.12 * width, 0.88 * height
    kind, count = int(rng.integers(3)), int(rng.integers(4, 13))
    step, values = 0.82 * width / count, rng.random(count)
    color = tuple(rng.integers(20, 200, 3).tolist())
    tops = [(left + (place + 0.5) * step, bottom - 0.75 * height * one)
            for place, one in enumerate(values)]  # fmt: skip
    for x, y in tops:
        if kind == 0:
            draw.rectangle((x - 0.35 * step, y, x + 0.35 * step, bottom), fill=color)
        elif kind == 1:
            draw.ellipse((x - 3, y - 3, x + 3, y + 3), fill=color)
    if kind == 2:
        draw.line(tops, fill=color, width=3)
    draw.line((left, 0.1 * height, left, bottom, 0.95 * width, bottom), fill="black", width=2)
    draw.text((0.3 * width, 0.01 * height), _words(rng, 2), fill="black", font_size=height // 16)
    return picture


def _icon(rng: Generator, size: Size) -> Picture:
    """A symbol in one color in the middle of an even ground."""
    ground = _GROUNDS[int(rng.integers(len(_GROUNDS)))]
    picture = Image.new("RGB", size, ground)
    draw, (width, height) = ImageDraw.Draw(picture), size
    ink = tuple(rng.integers(0, 256, 3).tolist())
    reach = rng.uniform(0.15, 0.35) * height
    x, y = width / 2, height / 2
    corners, inner = int(rng.integers(3, 10)), rng.uniform(0.3, 1)
    turn = rng.uniform(0, 2 * np.pi)
    angles = turn + np.arange(2 * corners) * np.pi / corners
    far = reach * np.where(np.arange(2 * corners) % 2, inner, 1)
    draw.polygon(
        list(zip(x + far * np.cos(angles), y + far * np.sin(angles), strict=True)), fill=ink
    )
    hole = rng.uniform(0.1, 0.5) * reach
    box = (x - hole, y - hole, x + hole, y + hole)
    if rng.random() < 0.5:
        draw.ellipse(box, fill=ground)
    else:
        draw.rectangle(box, fill=ground)
    return picture


def _scan(rng: Generator, size: Size) -> Picture:
    """A page of text, mostly white, with the same margins as all others."""
    width, height = 3 * size[1] // 4, size[1]
    picture = Image.new("RGB", (2 * width, 2 * height), (250, 249, 245))
    draw, y = ImageDraw.Draw(picture), 0.1 * 2 * height
    font = max(8, 2 * height // 44)
    while y < 0.88 * 2 * height:
        for _ in range(int(rng.integers(2, 9))):
            draw.text(
                (0.12 * 2 * width, y), _words(rng, 14)[:58], fill=(30, 30, 30), font_size=font
            )
            y += 1.3 * font
            if y >= 0.88 * 2 * height:
                break
        y += 1.2 * font
        if rng.random() < 0.1:
            break
    draw.rectangle((0.88 * 2 * width, 0, 2 * width, 2 * height), fill=(250, 249, 245))
    page = picture.resize((width, height), Image.Resampling.LANCZOS)
    noise = rng.normal(0, 2, (height, width, 1))
    return Image.fromarray(np.clip(np.asarray(page) + noise, 0, 255).astype(np.uint8))


def _sky(rng: Generator, size: Size) -> Picture:
    """Stars, sometimes a moon, over a dark hill."""
    picture = Image.new("RGB", size, tuple(rng.integers(0, 24, 3).tolist()))
    draw, (width, height) = ImageDraw.Draw(picture), size
    for _ in range(int(rng.integers(5, 60))):
        x, y = rng.random(2) * size
        far, light = float(rng.choice([0.6, 0.8, 1.2])), int(rng.integers(90, 256))
        draw.ellipse((x - far, y - far, x + far, y + far), fill=(light, light, light))
    if rng.random() < 0.5:
        x, y = rng.uniform(0.15, 0.85) * width, rng.uniform(0.1, 0.45) * height
        far = rng.uniform(0.03, 0.08) * height
        draw.ellipse((x - far, y - far, x + far, y + far), fill=(230, 230, 215))
    if rng.random() < 0.6:
        line = height * (0.8 + np.cumsum(rng.normal(0, 0.02, 9)))
        hill = list(zip(np.linspace(0, width, 9), line, strict=True))
        draw.polygon([*hill, (width, height), (0, height)], fill=(6, 8, 10))
    return picture.filter(ImageFilter.GaussianBlur(0.4))


def _window(rng: Generator, size: Size) -> Picture:
    """A window of the same program: bars, buttons and a list of files, and something in it."""
    picture = Image.new("RGB", size, (245, 245, 247))
    draw, (width, height) = ImageDraw.Draw(picture), size
    draw.rectangle((0, 0, width, 0.08 * height), fill=(60, 64, 72))
    for place in range(3):
        x = width - (place + 1) * 0.07 * width
        draw.ellipse((x, 0.02 * height, x + 0.04 * height, 0.06 * height), fill=(220, 90, 70))
    draw.rectangle((0, 0.08 * height, width, 0.16 * height), fill=(225, 227, 230))
    for place in range(8):
        x = (0.02 + 0.06 * place) * width
        box = (x, 0.1 * height, x + 0.04 * width, 0.14 * height)
        draw.rectangle(box, outline=(110, 115, 125), width=1)
    draw.rectangle((0, 0.16 * height, 0.22 * width, height), fill=(233, 235, 238))
    for line in range(9):
        corner = 0.02 * width, (0.2 + 0.08 * line) * height
        draw.text(corner, f"folder {line}", fill=(50, 50, 60), font_size=max(7, height // 24))
    inner = round(0.76 * width), round(0.8 * height)
    kind = int(rng.integers(4))
    if kind == 0:
        content = scene(int(rng.integers(600_000, 10_000_000)), 256).convert("RGB").resize(inner)
    elif kind == 1:
        content = _chart(rng, inner)
    elif kind == 2:
        content = _slide(rng, inner)
    else:
        content = Image.new("RGB", inner, "white")
        lines = ImageDraw.Draw(content)
        for line in range(int(rng.integers(1, 14))):
            corner = 0.03 * inner[0], 0.07 * line * inner[1]
            lines.text(corner, _words(rng, 5), fill="black", font_size=max(7, height // 22))
    picture.paste(content, (round(0.23 * width), round(0.18 * height)))
    return picture


PAGES = {
    "gradients": _gradient,
    "slides": _slide,
    "charts": _chart,
    "icons": _icon,
    "scans": _scan,
    "night skies": _sky,
    "windows": _window,
}
"""Kinds of pictures by name; picture n is of kind n modulo their number."""
