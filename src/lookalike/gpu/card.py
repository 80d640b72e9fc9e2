"""A GPU: its memory, the layout of signatures in it, and its compiled kernels."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import optional_module
from lookalike.errors import ArgumentError, FileError, MissingDependencyError, SignatureError
from lookalike.storage.files import user_cache_folder, whole_file

if TYPE_CHECKING:
    from lookalike.gpu.finding import Question


def products(columns: int) -> str:
    """Return C++ that multiplies 64 rows of queries: `multiply` and `wait`."""
    count = columns // 2
    sums = ", ".join(f"%{number}" for number in range(count))
    rows = ", ".join(f"%{count + number}" for number in range(4))
    outputs = ", ".join(f'"+r"(d[{number}])' for number in range(count))
    return f"""
__device__ __forceinline__ void multiply(int (&d)[{count}], const u32 (&a)[4], u64 b, u32 more) {{
    asm volatile(
        "{{\\n.reg .pred add;\\nsetp.ne.b32 add, %{count + 5}, 0;\\n"
        "wgmma.mma_async.sync.aligned.m64n{columns}k256.s32.b1.b1.and.popc "
        "{{{sums}}}, {{{rows}}}, %{count + 4}, add;\\n}}"
        : {outputs}
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(more));
}}

// With the registers as operands, so that nothing that reads them comes before.
template <int N>
__device__ __forceinline__ void wait(int (&d)[{count}]) {{
    asm volatile("wgmma.wait_group.sync.aligned %{count};" : {outputs} : "n"(N) : "memory");
}}
"""


PIECE = 65_536  # number of signatures that are sorted together by their number of ones
MOST_BITS = 4096
"""Maximum number of bits: a distance has 13 bits, and registers hold no wider queries."""


@dataclass(frozen=True)
class Layout:
    """Layout of signatures of one width: bytes, rows and tiles."""

    bytes: int  # bytes of a signature as given

    @classmethod
    def of(cls, bits: int) -> Layout:
        """Return the layout for signatures of this width, or raise if they are too wide."""
        if bits > MOST_BITS:
            raise SignatureError(
                f"the signatures have {bits} bits; a GpuIndex takes up to {MOST_BITS}: "
                "a ScanIndex takes any"
            )
        return cls(bits // 8)

    @property
    def stored(self) -> int:
        """Bytes of a signature on the GPU, zero-padded."""
        return next((size for size in (8, 16) if self.bytes <= size), -(-self.bytes // 32) * 32)

    @property
    def pack(self) -> int:
        """Number of signatures in a row of at least 32 bytes."""
        return max(1, 32 // self.stored)

    @property
    def steps(self) -> int:
        """Number of tensor instructions per row of 32 bytes each."""
        return self.stored * self.pack // 32

    @property
    def columns(self) -> int:
        """Number of rows of a tile, limited by registers."""
        return 128 if self.steps <= 8 else 64

    @property
    def tile_signatures(self) -> int:
        """Number of signatures of a tile; pieces are whole tiles."""
        return self.columns * self.pack

    @property
    def tile_bytes(self) -> int:
        """Bytes of a tile."""
        return 32 * self.steps * self.columns

    def tiles(self, count: int) -> int:
        """Return the number of tiles of `count` signatures."""
        return -(-count // self.tile_signatures)

    def bytes_of(self, count: int) -> int:
        """Return the memory of `count` signatures, with their positions and counts."""
        return self.tiles(count) * (self.tile_bytes + 4) + 2 * count


_SHARED_BYTES = 200 * 1024  # of a block's shared memory that tiles take; sm_90 has 227 KB


@dataclass(frozen=True)
class Shape:
    """Number of query rows that one block of `near_tiles` multiplies."""

    groups: int
    blocks: int

    @classmethod
    def of(cls, rows: int, steps: int) -> Shape:
        """Return the smallest shape for all rows, or the largest shape."""
        if rows <= 64:
            return cls(1, 1)
        if rows <= 128 or steps > 8:  # more queries of that width do not fit into registers
            return cls(2, 1)
        return cls(2, 2)

    @property
    def rows(self) -> int:
        """Number of query rows."""
        return 64 * self.groups * self.blocks


class Kernels:
    """Kernels of the GPU."""

    def __init__(self, card: Card, layout: Layout) -> None:
        self._card, self._layout = card, layout
        self._settings = {
            "STORED": layout.stored,
            "PACK": layout.pack,
            "STEPS": layout.steps,
            "COLUMNS": layout.columns,
            "PIECE": PIECE,
        }
        self._products: dict[Shape, Any] = {}

    def arrange(self, signatures: Any, tiles: Any, places: Any, fewest_ones: Any) -> None:
        """Sort uint8[count, bytes] in pieces and write them to zeroed tiles."""
        xp, count = self._card.xp, len(signatures)
        keys = xp.empty(count, xp.uint32)
        self._spread("sort_keys", count, signatures, np.uint64(count), keys)
        order = xp.argsort(keys, kind="stable").astype(xp.uint64)
        words = count * -(-self._layout.bytes // 4)
        arguments = signatures, np.uint64(count), order, keys, tiles, places, fewest_ones
        self._spread("arrange", words, *arguments)

    def take(self, tiles: Any, slots: Any) -> Any:
        """Return copies of the signatures in these slots: uint8[count, stored]."""
        xp, stored = self._card.xp, self._layout.stored
        signatures = xp.empty((len(slots), stored), xp.uint8)
        words = len(slots) * stored // 4
        self._spread("take", words, tiles, slots, np.uint64(len(slots)), signatures)
        return signatures

    def near(self, question: Question, found: Any, notes: Any, counts: Any) -> None:
        """Write all hits to `found`, as many as fit; `counts` get the numbers of notes and hits."""
        if not question.span.count or not len(question.queries):
            return
        tiles, queries, span = question.tiles, question.queries, question.span
        asked = (
            tiles.memory, tiles.places, np.uint64(tiles.count), np.uint64(tiles.base),
            _or_null(question.allowed), queries.rows, question.cuts, _or_null(question.behind),
            found, np.uint64(found.size), counts[1:],
        )  # fmt: skip
        where = np.uint64(span.first), np.uint64(span.count), np.uint64(span.step)
        if len(queries) == 1 or not self._card.has_tensors:  # one is read for as quickly so
            beside = min(64, -(-len(queries) // 4))
            blocks = min(span.count, 16 * self._card.processors), beside
            every = self._rows.get_function("every_row")
            every(blocks, (self._layout.columns,), (*asked, *where, np.uint32(len(queries))))
            return
        self._note(question, where, notes, counts)
        near = self._rows.get_function("near_rows")
        grid = (8 * self._card.processors,)
        near(grid, (256,), (*asked, notes, np.uint64(notes.size), counts))

    def _note(self, question: Question, where: tuple[Any, ...], notes: Any, counts: Any) -> None:
        tiles, queries = question.tiles, question.queries
        rows = len(queries) * self._layout.pack
        shape = Shape.of(rows, self._layout.steps)
        beside = -(-rows // shape.rows)
        across = max(1, min(question.span.count, self._card.processors // beside))
        least = self._card.xp.where(question.cuts < 0, 1 << 24, queries.ones - question.cuts)
        kernel, shared = self._multiplying(shape)
        kernel(
            (across, beside), (128 * shape.groups,),
            (tiles.memory, tiles.fewest_ones, *where, queries.rows, np.uint32(len(queries)),
             least.astype(np.int32), notes, np.uint64(notes.size), counts),
            shared_mem=shared,
        )  # fmt: skip

    def _multiplying(self, shape: Shape) -> tuple[Any, int]:
        """Return `near_tiles` for this shape, and its shared memory in bytes."""
        stages = min(12, _SHARED_BYTES // self._layout.tile_bytes)
        shared = -(-stages * (self._layout.tile_bytes + 16) // 128) * 128
        if shape not in self._products:
            settings = {"GROUPS": shape.groups, "BLOCKS": shape.blocks, "STAGES": stages}
            module = self._card.compiled(
                "tensor.cu", self._settings | settings, PRODUCTS=products(self._layout.columns)
            )
            kernel = module.get_function("near_tiles")
            kernel.max_dynamic_shared_size_bytes = shared
            self._products[shape] = kernel
        return self._products[shape], shared

    @cached_property
    def _rows(self) -> Any:
        return self._card.compiled("rows.cu", self._settings)

    @cached_property
    def _tiles(self) -> Any:
        return self._card.compiled("tiles.cu", self._settings | {"BYTES": self._layout.bytes})

    def _spread(self, name: str, threads: int, *arguments: Any) -> None:
        """Run a kernel over `threads` elements."""
        if threads:
            grid = min(-(-threads // 256), 32 * self._card.processors)
            self._tiles.get_function(name)((grid,), (256,), arguments)


def _or_null(array: Any) -> Any:
    return np.uint64(0) if array is None else array


_RESERVED = 256 * 2**20  # bytes of a card that CUDA itself and the compiled kernels may still want


@cache
def card(number: int) -> Card:
    """Return the GPU with this number."""
    return Card(number)


class Card:
    """A CUDA device. `with card:` makes it current in this thread."""

    def __init__(self, number: int) -> None:
        self.xp = _cupy()
        most = int(self.xp.cuda.runtime.getDeviceCount()) - 1
        if number > most:
            raise ArgumentError(
                f"device is {number}; expected 0 to {most}, the GPUs of this machine"
            )
        self.number = number
        self._kernels: dict[Layout, Kernels] = {}
        self._bands: dict[int, Any] = {}  # `band_keys` by the bytes of a band

    def __enter__(self) -> Any:
        return self._device.__enter__()

    def __exit__(self, *exception: object) -> None:
        self._device.__exit__(*exception)

    @cached_property
    def _device(self) -> Any:
        return self.xp.cuda.Device(self.number)

    @cached_property
    def name(self) -> str:
        """Product name."""
        return str(self.xp.cuda.runtime.getDeviceProperties(self.number)["name"].decode())

    @cached_property
    def processors(self) -> int:
        """Number of multiprocessors."""
        return int(self._device.attributes["MultiProcessorCount"])

    @cached_property
    def has_tensors(self) -> bool:
        """Whether it has the instructions of tensor.cu (Hopper only)."""
        return self._architecture == "90"

    @property
    def _architecture(self) -> str:
        return str(self._device.compute_capability)

    def free_bytes(self) -> int:
        """Return the available memory in bytes."""
        with self:
            pool = self.xp.get_default_memory_pool()
            free = int(self.xp.cuda.runtime.memGetInfo()[0]) + int(pool.free_bytes())
            return max(0, free - _RESERVED)

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Run the block in a separate stream, and wait for it."""
        stream = self.xp.cuda.Stream(non_blocking=True)
        with stream:
            yield
        stream.synchronize()

    def synchronize(self) -> None:
        """Wait for all work on the GPU."""
        with self:
            self._device.synchronize()

    def host(self, array: Any) -> NDArray[Any]:
        """Return a copy in main memory."""
        copy: NDArray[Any] = self.xp.asnumpy(array)
        return copy

    def put(self, array: NDArray[Any]) -> Any:
        """Return a copy on the GPU."""
        return self.xp.asarray(array)

    def kernels(self, layout: Layout) -> Kernels:
        """Return the kernels for one width, which are compiled on first use."""
        return self._kernels.setdefault(layout, Kernels(self, layout))

    def band_keys(self, rows: Any, band_bytes: int, bands: int) -> Any:
        """Return the keys of the bands of signatures, uint8[count, bytes]: uint32[bands, count]."""
        if band_bytes not in self._bands:
            module = self.compiled("bands.cu", {"BAND": band_bytes})
            self._bands[band_bytes] = module.get_function("band_keys")
        count, bytes = rows.shape
        keys = self.xp.empty((bands, count), self.xp.uint32)
        grid = min(-(-keys.size // 256), 32 * self.processors)
        if grid:
            sizes = np.uint64(count), np.uint64(bytes), np.uint64(bands)
            self._bands[band_bytes]((grid,), (256,), (rows, *sizes, keys))
        return keys

    def compiled(self, file: str, settings: dict[str, int], **replaced: str) -> Any:
        """Return the module of a source file, with words replaced and constants defined."""
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
        f"GpuIndex needs an NVIDIA GPU and its driver ({reason}). A ScanIndex returns the same "
        "results without one"
    )


def _cubin(nvrtc: Any, source: str, options: tuple[str, ...]) -> Path:
    """Return a file with machine code, from the cache or newly compiled."""
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
