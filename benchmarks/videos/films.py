"""Films that are made up or found in packages, and what happens to films."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from benchmarks.images.scenes import scene

WIDTH, HEIGHT, RATE = 256, 192, 24
SOUND_RATE = 16_000
LONGEST, SHORTEST = 12, 4  # seconds of a film
FOLDER = "LOOKALIKE_FILMS"
"""Environment variable: a folder with films, such as those of Debian packages."""

Pixels = NDArray[np.uint8]  # `[frames, rows, columns, 3]`


@dataclass(frozen=True, eq=False)
class Film:
    """Frames, and how they are written."""

    pixels: Pixels
    rate: int = RATE
    codec: str = "libx264"
    quality: int = 23
    suffix: str = ".mp4"
    start: float = 0.0
    """Second of the original at which it begins; negative if something comes before."""
    sound: NDArray[np.float32] | None = None
    """Samples of one channel, `SOUND_RATE` per second."""
    sound_rate: int = 96_000
    """Bits per second of the encoded sound."""

    def write(self, path: Path) -> None:
        """Encode the film."""
        rows, columns = (side // 2 * 2 for side in self.pixels.shape[1:3])
        with av.open(str(path), "w") as container:
            stream: Any = container.add_stream(self.codec, rate=self.rate)
            stream.width, stream.height, stream.pix_fmt = columns, rows, "yuv420p"
            stream.options = {"crf": str(self.quality), "preset": "veryfast"}
            if self.codec == "libvpx":
                stream.bit_rate = 250_000
                stream.options = {"deadline": "realtime", "cpu-used": "8"}
            if self.codec == "mpeg4":
                stream.bit_rate = 300_000
            audio: Any = None
            if self.sound is not None:
                audio = container.add_stream("aac", rate=SOUND_RATE, layout="mono")
                audio.bit_rate = self.sound_rate
            for pixels in self.pixels:
                frame = av.VideoFrame.from_ndarray(
                    np.ascontiguousarray(pixels[:rows, :columns]), format="rgb24"
                )
                container.mux(stream.encode(frame))
            container.mux(stream.encode())
            if self.sound is not None:
                for begin in range(0, len(self.sound), 1024):
                    piece = np.ascontiguousarray(self.sound[None, begin : begin + 1024])
                    heard = av.AudioFrame.from_ndarray(piece, "fltp", "mono")
                    heard.sample_rate, heard.pts = SOUND_RATE, begin
                    container.mux(audio.encode(heard))
                container.mux(audio.encode())

    @property
    def seconds(self) -> float:
        """The length of the film."""
        return len(self.pixels) / self.rate


def made_up(number: int) -> Film:
    """Return a film of several shots, each a camera that moves over a picture."""
    random = np.random.default_rng(7_000 + number)
    shots = []
    for shot in range(int(random.integers(4, 8))):
        picture = scene(100_000 + 10 * number + shot, 640).convert("RGB")
        length = int(random.integers(2 * RATE, 4 * RATE))
        (left, top), (right, bottom) = random.uniform(0, 0.3, (2, 2))
        zoom = random.uniform(0.55, 0.7, 2)
        for share in np.linspace(0, 1, length):
            side = zoom[0] + share * (zoom[1] - zoom[0])
            x = (left + share * (right - left)) * picture.width
            y = (top + share * (bottom - top)) * picture.height
            box = (x, y, x + side * picture.width, y + side * picture.height)
            shots.append(
                np.asarray(picture.resize((WIDTH, HEIGHT), Image.Resampling.BILINEAR, box))
            )
    return Film(np.array(shots[: LONGEST * RATE], np.uint8))


def write_long(path: Path, begin: float, seconds: float, *, quality: int = 23) -> None:
    """Encode a part of an endless film: 12 frames a second, scenes of three to nine seconds."""
    rate, rows, columns = 12, 120, 160
    lengths = np.random.default_rng(4_000).integers(3 * rate, 9 * rate, 10_000)
    begins = np.concatenate([[0], np.cumsum(lengths)])
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream("libx264", rate=rate)
        stream.width, stream.height, stream.pix_fmt = columns, rows, "yuv420p"
        stream.options = {"crf": str(quality), "preset": "ultrafast"}
        shot, still = -1, np.zeros((2 * rows, 2 * columns), np.uint8)
        for number in range(round(begin * rate), round((begin + seconds) * rate)):
            now = int(np.searchsorted(begins, number, side="right")) - 1
            if now != shot:
                shot, random = now, np.random.default_rng([4_000, now])
                waves, phases = random.normal(0, 5, (8, 2)), random.uniform(0, 6, 8)
                y, x = np.mgrid[: 2 * rows, : 2 * columns] / rows
                light = np.sin(np.tensordot(waves, [y, x], 1) + phases[:, None, None]).sum(axis=0)
                still = np.clip(128 + 40 * light, 0, 255).astype(np.uint8)
                speed = random.uniform(-1, 1, 2)
            share = (number - begins[now]) / lengths[now]
            top, left = (round(float(0.5 + 0.5 * one * share) * side) for one, side in zip(
                speed, (rows, columns), strict=True))  # fmt: skip
            pixels = np.ascontiguousarray(still[top : top + rows, left : left + columns])
            frame = av.VideoFrame.from_ndarray(pixels, format="gray")
            container.mux(stream.encode(frame.reformat(format="yuv420p")))
        container.mux(stream.encode())


def found() -> Iterator[tuple[str, Film]]:
    """Yield films of the folder that `LOOKALIKE_FILMS` names, of at least four seconds."""
    folder, names = os.environ.get(FOLDER), set[str]()
    for path in sorted(Path(folder).rglob("*")) if folder else ():
        if not path.is_file() or path.stat().st_size < 20_000 or path.name in names:
            continue
        names.add(path.name)  # translations of a page have the same films
        try:
            film = _read(path)
        except (av.error.FFmpegError, ValueError, IndexError):
            continue
        if len(film.pixels) >= SHORTEST * film.rate and _moves(film.pixels):
            yield path.name, film


def _read(path: Path) -> Film:
    frames = []
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        rate = max(8, min(30, round(float(stream.average_rate or RATE))))
        width = min(WIDTH, stream.width) // 2 * 2
        height = round(stream.height * width / stream.width) // 2 * 2
        for frame in container.decode(stream):
            frames.append(frame.reformat(width, height, "rgb24").to_ndarray())
            if len(frames) >= LONGEST * rate:
                break
    return Film(np.array(frames, np.uint8), rate)


def _moves(pixels: Pixels) -> bool:
    """Return whether a film is neither black nor a single picture."""
    some = pixels[:: max(1, len(pixels) // 16)].astype(np.int16)
    return bool(some.std() > 8 and np.abs(np.diff(some, axis=0)).mean() > 0.5)


def _clip(film: Film, begin: float, end: float) -> Film:
    """Return the part between two shares of the length."""
    first, last = (round(share * len(film.pixels)) for share in (begin, end))
    start = film.start + first / film.rate
    return replace(film, pixels=film.pixels[first:last], start=start)


def _each(film: Film, change: Callable[[Image.Image], Image.Image]) -> Film:
    changed = [np.asarray(change(Image.fromarray(one)).convert("RGB")) for one in film.pixels]
    return replace(film, pixels=np.array(changed, np.uint8))


def _resized(image: Image.Image, share: float) -> Image.Image:
    return image.resize((round(image.width * share) // 2 * 2, round(image.height * share) // 2 * 2))


def _logo(image: Image.Image) -> Image.Image:
    image = image.copy()
    width, height = image.size
    box = (0.8 * width, 0.06 * height, 0.95 * width, 0.18 * height)
    draw = ImageDraw.Draw(image)
    draw.ellipse(box, fill="white", outline="black")
    draw.rectangle((0.84 * width, 0.1 * height, 0.91 * width, 0.14 * height), fill=(200, 20, 30))
    return image


def _subtitle(image: Image.Image) -> Image.Image:
    image = image.copy()
    width, height = image.size
    draw = ImageDraw.Draw(image)
    for line in range(2):
        for word in range(9):
            left, top = (0.2 + 0.07 * word) * width, (0.84 + 0.07 * line) * height
            draw.rectangle((left, top, left + 0.05 * width, top + 0.035 * height), fill="white")
    return image


def _bars(image: Image.Image, share: float) -> Image.Image:
    framed = Image.new("RGB", image.size)
    inner = round(image.height * (1 - 2 * share))
    framed.paste(image.resize((image.width, inner)), (0, (image.height - inner) // 2))
    return framed


def _cropped(image: Image.Image, share: float) -> Image.Image:
    width, height = image.size
    box = (share * width, share * height, (1 - share) * width, (1 - share) * height)
    return image.resize(image.size, Image.Resampling.BILINEAR, box)


def _brighter(film: Film) -> Film:
    levels = np.clip(np.arange(256) * 1.2 + 15, 0, 255).astype(np.uint8)
    return replace(film, pixels=levels[film.pixels])


def _fewer_frames(film: Film) -> Film:
    kept = np.arange(0, len(film.pixels), 2)
    return replace(film, pixels=film.pixels[kept], rate=max(1, film.rate // 2))


def _faster(film: Film) -> Film:
    kept = np.arange(0, len(film.pixels), 1.04).astype(np.int64)
    return replace(film, pixels=film.pixels[kept])


def _turned(image: Image.Image) -> Image.Image:
    return image.rotate(3, Image.Resampling.BILINEAR)


def _in_a_corner(image: Image.Image) -> Image.Image:
    picture = Image.linear_gradient("L").resize(image.size).convert("RGB")
    width, height = (round(0.55 * side) for side in image.size)
    picture.paste(image.resize((width, height)), (image.width - width, 0))
    return picture


WITH_SOUND: dict[str, Callable[[Film], Film]] = {
    "re-encoded": lambda film: replace(film, quality=38),
    "black bars, 12%": lambda film: _each(film, lambda one: _bars(one, 0.12)),
    "mirrored": lambda film: replace(film, pixels=film.pixels[:, :, ::-1]),
    "cropped 10%": lambda film: _each(film, lambda one: _cropped(one, 0.1)),
    "turned by 3°": lambda film: _each(film, _turned),
    "in a corner": lambda film: _each(film, _in_a_corner),
}
"""Changes of the pictures of a film; its sound is encoded again."""

CHANGES: dict[str, Callable[[Film], Film]] = {
    "re-encoded, low quality": lambda film: replace(film, quality=38),
    "MPEG-4, AVI": lambda film: replace(film, codec="mpeg4", suffix=".avi"),
    "half the size, WebM": lambda film: replace(
        _each(film, lambda one: _resized(one, 0.5)), codec="libvpx", suffix=".webm"
    ),
    "half of the frames": _fewer_frames,
    "brighter": _brighter,
    "gray": lambda film: _each(film, lambda one: one.convert("L")),
    "logo": lambda film: _each(film, _logo),
    "subtitles": lambda film: _each(film, _subtitle),
    "first 15% cut off": lambda film: _clip(film, 0.153, 1),
    "a third of it": lambda film: _clip(film, 0.317, 0.65),
    "a third, low quality, half the size": lambda film: replace(
        _each(_clip(film, 0.317, 0.65), lambda one: _resized(one, 0.5)), quality=34
    ),
    "cropped 3%": lambda film: _each(film, lambda one: _cropped(one, 0.03)),
    "black bars, 12%": lambda film: _each(film, lambda one: _bars(one, 0.12)),
    "4% faster": _faster,
    "mirrored": lambda film: replace(film, pixels=film.pixels[:, :, ::-1]),
}
