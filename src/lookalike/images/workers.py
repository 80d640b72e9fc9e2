"""Images to worker processes and back, in order.

Every image that is a path or bytes is decoded in an isolated process, with a hard limit on its
memory and time. An image that needs more memory than most do waits until there is room for it.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from importlib import import_module
from pathlib import Path
from threading import Event
from typing import Any

from lookalike.errors import DocumentError
from lookalike.images.decode import ImageSource, is_in_memory, pillow
from lookalike.processes import Death, MemoryBudget, answers_or_deaths

__all__ = [
    "DEFAULT_MEMORY",
    "HASH",
    "LEAST_MEMORY",
    "NEEDS_MEMORY",
    "THUMBNAIL",
    "ask_each",
    "ask_one",
    "decoding_budget",
]

HASH, THUMBNAIL = "hash", "thumbnail"
NEEDS_MEMORY = "needs memory"
_MODULE = "lookalike.images.worker"
_SECONDS = 60
"""Of processor time for one image."""
_SPARE = 32 << 20
"""Bytes that a decoder may take beyond what was counted for its image before it is stopped."""
_PROCESS = 48 << 20
"""Bytes of a worker without an image."""
_USUAL = 96 << 20
"""Bytes that an image may take at once. One that needs more waits until there is room for it."""
LEAST_MEMORY = _USUAL + _SPARE + _PROCESS
"""Bytes of one worker."""
DEFAULT_MEMORY = max(1 << 30, LEAST_MEMORY * (os.cpu_count() or 1))
"""Bytes for all decoders of this process together, where no other limit is given."""
_BATCH = 8
_BATCH_BYTES = 4 << 20
_AHEAD = 2
"""Batches for each worker that are on their way."""

_SHARED = MemoryBudget(DEFAULT_MEMORY)


def decoding_budget(memory: int | None) -> MemoryBudget:
    """Return a budget for decoders; None: the one that all calls of this process share."""
    return _SHARED if memory is None else MemoryBudget(max(memory, LEAST_MEMORY))


def ask_one(source: ImageSource, wanted: str, how: Any, memory: int | None = None) -> Any:
    """Return the answer for a path or bytes; raise `DocumentError` if there is none."""
    (answer,) = _ask([source], wanted, how, decoding_budget(memory), Event())
    if isinstance(answer, DocumentError):
        raise answer
    return answer


def ask_each(
    sources: Iterable[ImageSource],
    wanted: str,
    how: Any,
    here: Callable[[ImageSource], Any],
    *,
    threads: int,
    budget: MemoryBudget,
) -> Iterator[Any]:
    """Yield the answer for each image, or a `DocumentError`, in order.

    `here` answers for an image of Pillow, in this process. Few images are held. When the caller
    stops, workers stop after the image at hand.
    """
    stopped = Event()

    def answers(batch: list[ImageSource]) -> list[Any]:
        outside = iter(
            _ask([one for one in batch if not is_in_memory(one)], wanted, how, budget, stopped)
        )
        return [here(one) if is_in_memory(one) else next(outside) for one in batch]

    waiting: deque[Future[list[Any]]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for batch in _batches(sources):
                waiting.append(pool.submit(answers, batch))
                while len(waiting) > _AHEAD * threads:
                    yield from waiting.popleft().result()
            while waiting:
                yield from waiting.popleft().result()
        finally:
            stopped.set()
            for future in waiting:
                future.cancel()


def _batches(sources: Iterable[ImageSource]) -> Iterator[list[ImageSource]]:
    """Yield batches. The first ones are small, so that few images keep all workers busy."""
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
    sources: Sequence[ImageSource], wanted: str, how: Any, budget: MemoryBudget, stopped: Event
) -> list[Any]:
    """Return the answers of a worker. Those that need more memory are asked again, one by one."""
    found: list[Any] = []
    if not sources:
        return found
    most = budget.total - _SPARE - _PROCESS
    with (
        budget.taken(LEAST_MEMORY),
        closing(_answers(sources, wanted, how, min(_USUAL, most))) as answers,
    ):
        for answer in answers:
            found.append(DocumentError("was not read") if stopped.is_set() else answer)
            if stopped.is_set():
                break
    found += [DocumentError("was not read")] * (len(sources) - len(found))
    for place, answer in enumerate(found):
        if _needs_memory(answer) and not stopped.is_set():
            found[place] = _ask_for_more(sources[place], wanted, how, answer, most, budget)
    return found


def _ask_for_more(
    source: ImageSource, wanted: str, how: Any, answer: Any, most: int, budget: MemoryBudget
) -> Any:
    """Return the answer for an image that gets as much memory as it needs, if there is as much."""
    _, needed, described = answer
    if needed is not None and needed > most:
        return DocumentError(
            f"needs up to {_mebibytes(needed)} of memory to be decoded ({described}), and may "
            f"take {_mebibytes(most)}; raise the memory limit to read it"
        )
    memory = most if needed is None else needed
    with budget.taken(memory + _SPARE + _PROCESS):
        (again,) = _answers([source], wanted, how, memory)
    if _needs_memory(again):
        return DocumentError(
            f"takes more than {_mebibytes(memory + _SPARE)} of memory to be decoded, which is more "
            "than its header says"
        )
    return again


def _needs_memory(answer: Any) -> bool:
    return isinstance(answer, tuple) and answer[0] == NEEDS_MEMORY


def _answers(
    sources: Sequence[ImageSource], wanted: str, how: Any, memory: int, spare: int = _SPARE
) -> Generator[Any, None, None]:
    """Yield what workers answer; a `DocumentError` in place of a reason or of a crash."""
    pillow.init()  # an error if Pillow is not installed
    image = import_module("PIL.Image")
    settings = image.MAX_IMAGE_PIXELS, "HEIF" in image.OPEN

    def request(rest: Sequence[ImageSource]) -> Any:
        limits = memory, memory + spare, _SECONDS
        return wanted, how, settings, limits, [_packed(source) for source in rest]

    for answer in answers_or_deaths(_MODULE, sources, request):
        if isinstance(answer, Death):
            yield DocumentError(_reason(answer))
        else:
            yield DocumentError(answer) if isinstance(answer, str) else answer


def _packed(source: Any) -> str | bytes:
    """Return the absolute path of an image, or its bytes."""
    if isinstance(source, str | os.PathLike):
        return str(Path(os.fsdecode(os.fspath(source))).absolute())
    return bytes(source)


def _reason(death: Death) -> str:
    if death.out_of_time:
        return f"takes more than {_SECONDS} s to be decoded"
    return f"crashes the process that decodes it (status {death.status})"


def _mebibytes(count: int) -> str:
    return f"{count / (1 << 20):,.0f} MiB"
