"""The process that decodes images: a hostile file can harm this process and nothing else.

It answers each image with what was asked for, with a reason why there is nothing (a text), or with
the bytes of memory that the image needs beyond what it may take, and what it is.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from lookalike.errors import DocumentError
from lookalike.images.decode import MemoryNeededError
from lookalike.images.image_hash import ImageHash, hashed_image
from lookalike.images.thumbnails import small_jpeg
from lookalike.images.workers import NEEDS_MEMORY, THUMBNAIL
from lookalike.processes import reserved_bytes, serve, set_memory_limit, time_limit

__all__ = ["main"]


def main() -> None:
    """Answer requests: what is wanted, how, the limits, and images as paths or bytes."""
    image: Any = import_module("PIL.Image")
    image.init()
    warnings.simplefilter("ignore")
    # One thread for each image: other images are decoded by other processes.
    with contextlib.suppress(ImportError):
        from PIL import AvifImagePlugin

        AvifImagePlugin.DEFAULT_MAX_THREADS = 1
    reserved = reserved_bytes()

    def answers_to(request: Any) -> Iterator[Any]:
        wanted, how, settings, (memory, hard_limit, seconds), images = request
        most_pixels, heif = settings
        image.MAX_IMAGE_PIXELS = most_pixels
        if heif and "HEIF" not in image.OPEN:
            _register_heif()
        received = sum(len(source) for source in images if isinstance(source, bytes))
        set_memory_limit(reserved, hard_limit + received)
        for source in images:
            with time_limit(seconds):
                yield _answer(wanted, how, source, memory)

    serve(answers_to)


def _register_heif() -> None:
    """Do what the program that started this process has done: register pillow-heif."""
    with contextlib.suppress(ImportError):
        import_module("pillow_heif").register_heif_opener()


def _answer(wanted: str, how: Any, source: str | bytes, memory: int) -> Any:
    try:
        if wanted == THUMBNAIL:
            size, most = how
            return small_jpeg(source, size, most, memory)
        bits, kind, orientations = how
        found = hashed_image(ImageHash(bits, kind), source, orientations, memory)
        return (
            found.signatures.tobytes(),
            found.quality,
            found.width,
            found.height,
            found.format,
        )
    except MemoryNeededError as error:
        return NEEDS_MEMORY, error.needed, error.described
    except MemoryError:
        return NEEDS_MEMORY, None, ""
    except DocumentError as error:
        return str(error)
