"""Decode images in isolated worker processes, in order, with limits on memory and time.

An image that needs more memory than usual waits until that is free.
"""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from lookalike.errors import DocumentError
from lookalike.images.decode import ImageSource, MemoryNeededError, is_in_memory, pillow, small_jpeg
from lookalike.processes import (
    Failure,
    MemoryBudget,
    Stop,
    Task,
    keep_freed_memory,
    run,
    run_in_order,
)

HASH, THUMBNAIL = "hash", "thumbnail"
NEEDS_MEMORY = "needs memory"
_SECONDS = 60  # processor time for one image
_SPARE = 32 << 20  # bytes that a decoder may take beyond those counted for its image
_KEPT = 8 << 20  # freed bytes that a worker keeps, which are part of those
_PROCESS = 48 << 20  # bytes of a worker without an image
_USUAL = 96 << 20  # bytes that an image may take without waiting
LEAST_MEMORY = _USUAL + _SPARE + _PROCESS
"""Bytes of one worker."""
DEFAULT_MEMORY = max(1 << 30, LEAST_MEMORY * (os.cpu_count() or 1))
"""Bytes for all decoders of this process together by default."""
_SHARED = MemoryBudget(DEFAULT_MEMORY)
_BATCH = 32
_BATCH_BYTES = 4 << 20

Wanted = tuple[Any, ...]
"""What to do: `(HASH, bits, kind, orientations, points)` or `(THUMBNAIL, size, most)`."""


def decoding_budget(memory: int | None) -> MemoryBudget:
    """Return a memory budget for decoders; the shared budget of this process for None."""
    return _SHARED if memory is None else MemoryBudget(max(memory, LEAST_MEMORY))


def ask_one(source: ImageSource, wanted: Wanted, memory: int | None = None) -> Any:
    """Return the answer for a path or bytes, or raise `DocumentError`."""
    (answer,) = _ask([source], wanted, decoding_budget(memory), Stop())
    if isinstance(answer, DocumentError):
        raise answer
    return answer


def ask_each(
    sources: Iterable[ImageSource],
    wanted: Wanted,
    here: Callable[[ImageSource], Any],
    *,
    threads: int,
    budget: MemoryBudget,
) -> Iterator[Any]:
    """Yield the answer for each image, or a `DocumentError`; `here` handles Pillow images."""

    def answers(batch: list[ImageSource], stop: Stop) -> Iterator[Any]:
        outside = [one for one in batch if not is_in_memory(one)]
        found = iter(_ask(outside, wanted, budget, stop))
        for one in batch:
            yield here(one) if is_in_memory(one) else next(found)

    return run_in_order(answers, _batches(sources), threads=threads)


def _batches(sources: Iterable[ImageSource]) -> Iterator[list[ImageSource]]:
    """Yield batches; the first ones are small, so that few images keep all workers busy."""
    batch: list[ImageSource] = []
    size = made = 0
    for source in sources:
        batch.append(source)
        if isinstance(source, bytes | bytearray | memoryview):
            size += memoryview(source).nbytes
        if len(batch) >= min(_BATCH, 1 + made // 4) or size >= _BATCH_BYTES:
            yield batch
            batch, size, made = [], 0, made + 1
    if batch:
        yield batch


def _ask(
    sources: Sequence[ImageSource], wanted: Wanted, budget: MemoryBudget, stop: Stop
) -> list[Any]:
    """Return the answers of a worker; images that need more memory are decoded one by one."""
    if not sources:
        return []
    most = budget.total - _SPARE - _PROCESS
    with budget.taken(LEAST_MEMORY):
        found = list(image_answers(sources, wanted, min(_USUAL, most), stop=stop))
    found += [DocumentError("was not read")] * (len(sources) - len(found))  # stopped
    return [
        _ask_again(source, wanted, budget, stop, answer) if _needs_memory(answer) else answer
        for source, answer in zip(sources, found, strict=True)
    ]


def _ask_again(
    source: ImageSource, wanted: Wanted, budget: MemoryBudget, stop: Stop, answer: Any
) -> Any:
    """Return the answer for an image with as much memory as it needs, if that is available."""
    _, needed, described = answer
    most = budget.total - _SPARE - _PROCESS
    if needed is not None and needed > most:
        return DocumentError(
            f"needs up to {_mebibytes(needed)} of memory to be decoded ({described}); the limit is "
            f"{_mebibytes(most)}: raise the memory limit to read it"
        )
    memory = most if needed is None else needed
    with budget.taken(memory + _SPARE + _PROCESS):
        found = list(image_answers([source], wanted, memory, stop=stop))
    if not found:
        return DocumentError("was not read")  # stopped
    if _needs_memory(found[0]):
        return DocumentError(
            f"takes more than {_mebibytes(memory + _SPARE)} of memory to be decoded, more than its "
            "header declares"
        )
    return found[0]


def _needs_memory(answer: Any) -> bool:
    return isinstance(answer, tuple) and answer[0] == NEEDS_MEMORY


def image_answers(
    sources: Sequence[ImageSource],
    wanted: Wanted,
    memory: int,
    *,
    spare: int = _SPARE,
    stop: Stop | None = None,
) -> Iterator[Any]:
    """Yield the answers of a worker, or a `DocumentError` for a reason or a crash."""
    pillow.init()  # an error if Pillow is not installed
    image = import_module("PIL.Image")
    settings = image.MAX_IMAGE_PIXELS, "HEIF" in image.OPEN
    packed = [_packed(source) for source in sources]
    received = sum(len(one) for one in packed if isinstance(one, bytes))
    task = Task(
        "lookalike.images.workers:_decoder", (wanted, memory, *settings), seconds=_SECONDS,
        memory=memory + spare + received,
    )  # fmt: skip
    for answer in run(task, packed, stop):
        if isinstance(answer, Failure):
            out = answer.out_of_memory
            yield (NEEDS_MEMORY, None, "") if out else DocumentError(task.reason(answer))
        else:
            yield DocumentError(answer) if isinstance(answer, str) else answer


def _packed(source: Any) -> str | bytes:
    if isinstance(source, str | os.PathLike):
        return str(Path(os.fsdecode(os.fspath(source))).absolute())
    return bytes(source)


def _mebibytes(count: int) -> str:
    return f"{count / (1 << 20):,.0f} MiB"


def _decoder() -> Callable[..., Any]:
    """Prepare a worker; return the function that decodes an image.

    It returns what is wanted, a reason why that is not possible (a text), or
    `(NEEDS_MEMORY, bytes, description)`.
    """
    from lookalike.images.image_hash import ImageHash, hashed_image  # which imports this module

    keep_freed_memory(_KEPT)
    image: Any = import_module("PIL.Image")
    image.init()
    warnings.simplefilter("ignore")
    # One thread for each image, since images are decoded by several processes.
    with contextlib.suppress(ImportError):
        from PIL import AvifImagePlugin

        AvifImagePlugin.DEFAULT_MAX_THREADS = 1

    def decode(
        source: str | bytes, wanted: Wanted, memory: int, most_pixels: int, heif: bool
    ) -> Any:
        image.MAX_IMAGE_PIXELS = most_pixels
        if heif and "HEIF" not in image.OPEN:  # as in the process that started this one
            with contextlib.suppress(ImportError):
                import_module("pillow_heif").register_heif_opener()
        try:
            if wanted[0] == THUMBNAIL:
                _, size, most = wanted
                return small_jpeg(source, size, most, memory)
            _, bits, kind, orientations, points = wanted
            found = hashed_image(ImageHash(bits, kind), source, orientations, points, memory)
        except MemoryNeededError as error:
            return NEEDS_MEMORY, error.needed, error.described
        except DocumentError as error:
            return str(error)
        details = None if found.details is None else found.details.to_plain()
        facts = found.quality, found.width, found.height, found.format
        return found.signatures.tobytes(), *facts, details

    return decode
