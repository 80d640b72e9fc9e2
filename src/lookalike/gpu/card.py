"""A card: its memory, and kernels compiled for it."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from lookalike.checks import optional_module
from lookalike.errors import ArgumentError, FileError, MissingDependencyError
from lookalike.gpu.kernels import Kernels
from lookalike.gpu.layout import Layout
from lookalike.storage import user_cache_folder, whole_file

_RESERVED = 256 * 2**20
"""Bytes of a card that CUDA itself and the compiled kernels may still want."""


@cache
def card(number: int) -> Card:
    """Return the card of that number."""
    return Card(number)


class Card:
    """One CUDA device. `with card:` makes it the current one of the calling thread."""

    def __init__(self, number: int) -> None:
        self.xp = _cupy()
        most = int(self.xp.cuda.runtime.getDeviceCount()) - 1
        if number > most:
            raise ArgumentError(
                f"device is {number}; expected 0 to {most}, which are the cards here"
            )
        self.number = number
        self._kernels: dict[Layout, Kernels] = {}

    def __enter__(self) -> Any:
        return self._device.__enter__()

    def __exit__(self, *exception: object) -> None:
        self._device.__exit__(*exception)

    @cached_property
    def _device(self) -> Any:
        return self.xp.cuda.Device(self.number)

    @cached_property
    def name(self) -> str:
        """What its maker calls it."""
        return str(self.xp.cuda.runtime.getDeviceProperties(self.number)["name"].decode())

    @cached_property
    def processors(self) -> int:
        """How many multiprocessors it has."""
        return int(self._device.attributes["MultiProcessorCount"])

    @cached_property
    def has_tensors(self) -> bool:
        """Whether it has the instructions that tensor.cu is written in, which only Hopper has."""
        return self._architecture == "90"

    @property
    def _architecture(self) -> str:
        return str(self._device.compute_capability)

    def free_bytes(self) -> int:
        """Return the memory that could be had now."""
        with self:
            pool = self.xp.get_default_memory_pool()
            free = int(self.xp.cuda.runtime.memGetInfo()[0]) + int(pool.free_bytes())
            return max(0, free - _RESERVED)

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Do what follows beside other work on the card; it is done when this ends."""
        stream = self.xp.cuda.Stream(non_blocking=True)
        with stream:
            yield
        stream.synchronize()

    def synchronize(self) -> None:
        """Wait until it has done everything."""
        with self:
            self._device.synchronize()

    def host(self, array: Any) -> NDArray[Any]:
        """Return a copy in the machine's own memory."""
        copy: NDArray[Any] = self.xp.asnumpy(array)
        return copy

    def put(self, array: NDArray[Any]) -> Any:
        """Return a copy on the card."""
        return self.xp.asarray(array)

    def kernels(self, layout: Layout) -> Kernels:
        """Return the kernels for signatures of one width, compiled when they are first called."""
        return self._kernels.setdefault(layout, Kernels(self, layout))

    def compiled(self, file: str, settings: dict[str, int], **replaced: str) -> Any:
        """Return the module of one of our files, with words in it replaced and constants set."""
        source = (resources.files("lookalike.gpu") / file).read_text()
        for word, by in replaced.items():
            source = source.replace(f"@{word}@", by)
        options = (
            f"-arch=sm_{self._architecture}{'a' if self.has_tensors else ''}",
            "-std=c++17",
            *(f"-D{name}={value}" for name, value in sorted(settings.items())),
        )
        nvrtc = self.xp.cuda.nvrtc  # since CuPy's own way of compiling knows no sm_90a
        return self.xp.RawModule(path=str(_cubin(nvrtc, source, options)))


def _cupy() -> Any:
    cupy = optional_module("cupy", "GpuIndex", extra="gpu")
    try:
        count = int(cupy.cuda.runtime.getDeviceCount())
    except Exception as error:
        raise _no_card(str(error)) from error
    if not count:
        raise _no_card("there is none")
    return cupy


def _no_card(reason: str) -> MissingDependencyError:
    return MissingDependencyError(
        f"GpuIndex needs an NVIDIA card and its driver ({reason}); a machine with one can be "
        "rented by the hour, and everywhere a ScanIndex gives the same answers"
    )


def _cubin(nvrtc: Any, source: str, options: tuple[str, ...]) -> Path:
    """Return a file with machine code: of an earlier run, or compiled now and kept for the next."""
    known = repr((source, options, nvrtc.getVersion()))
    name = f"{hashlib.sha256(known.encode()).hexdigest()}.cubin"
    kept = user_cache_folder()
    if kept is not None and (kept / name).exists():
        return kept / name
    code = _compile(nvrtc, source, options)
    if kept is not None:
        with suppress(OSError, FileError):
            return _written(kept, name, code)
    return _written(Path(tempfile.mkdtemp(prefix="lookalike-gpu-")), name, code)


def _written(folder: Path, name: str, content: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    with whole_file(folder / name) as unfinished:
        unfinished.write_bytes(content)
    return folder / name


def _compile(nvrtc: Any, source: str, options: tuple[str, ...]) -> bytes:
    program = nvrtc.createProgram(source, "lookalike.cu", (), ())
    try:
        nvrtc.compileProgram(program, options)
        return bytes(nvrtc.getCUBIN(program))
    except nvrtc.NVRTCError as error:
        log = nvrtc.getProgramLog(program)
        raise RuntimeError(f"the kernels do not compile on this card: {log}") from error
    finally:
        nvrtc.destroyProgram(program)
