"""All kinds of index, and how a saved index is opened.

`KINDS` has the class, build options, help text and planner functions of each kind. To add a kind,
write a subclass of `Index` and an entry here. Another package adds an `IndexKind` in the entry
point group `lookalike.indexes`; entry point, kind and class (its `kind`) have the same name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from inspect import signature
from pathlib import Path
from textwrap import fill
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import file_path, flag
from lookalike.errors import FormatError, Said
from lookalike.indexes.base import Index, StoredIndex
from lookalike.indexes.scan import ScanIndex
from lookalike.registry import Registry
from lookalike.signatures.files import (
    HEX_SUFFIXES,
    is_npy,
    is_npz,
    load_hex,
    npz_weights,
    read_npy,
    read_npz,
    signatures_in,
    weights_in,
)
from lookalike.storage.container import Container, is_container, open_container
from lookalike.storage.files import is_database

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class BuildOption:
    """A parameter of an index, and the option of `lookalike index` that sets it."""

    name: str
    help: str
    type: Literal["number", "size", "switch", "widths"] = "number"


@dataclass(frozen=True)
class IndexKind:
    """A kind of index: how to build, open, plan and measure it.

    A target "module:name" is imported on first use.
    """

    name: str
    """Name in files, on the command line and in plans."""
    target: str | type[StoredIndex]
    """Class of the index."""
    help: str = ""
    """Help text of `lookalike index`; empty: not built by name."""
    options: tuple[BuildOption, ...] = ()
    """Build options besides signatures, ids and threads."""
    holds: Literal["signatures", "vectors", "parts", "rows"] = "signatures"
    """What is searched; kinds that hold signatures are an `Index`."""
    saved_as: str = ""
    """Kind that its files name (default: its own)."""
    signer: str = ""
    """Files of `saved_as` are of this kind if this signer made their contents."""
    predictor: str | Callable[..., Iterator[Any]] = ""
    """Yields a `Prediction` per choice of settings; empty: `plan` skips the kind."""
    grid: str | Callable[..., Iterable[tuple[Settings, list[Settings]]]] = ""
    """Returns the build options and search settings that `evaluate` measures
    (`lookalike.advice.evaluation`); empty: the defaults.
    """
    compares: str = ""
    """Parameter of `search` for the number of compared signatures (default: none)."""

    @cached_property
    def cls(self) -> type[Any]:
        """Class of the index."""
        found: type[Any] = _imported(self.target)
        return found

    @property
    def is_built(self) -> bool:
        """Whether it can be built by name from signatures alone."""
        return bool(self.help)

    def build(self, items: Any, ids: Any = None, *, threads: Any = None, **options: Any) -> Any:
        """Return a new index of this kind; options that are None have their defaults."""
        chosen = {name: value for name, value in options.items() if value is not None}
        if "threads" in signature(self.cls).parameters:
            chosen["threads"] = threads
        return self.cls(items, ids=ids, **chosen)

    def predictions(self, question: Any, costs: Any) -> list[Any]:
        """Return the options of this kind for `plan`."""
        return list(_imported(self.predictor)(question, costs)) if self.predictor else []

    def measured(self, request: Any) -> list[tuple[Settings, list[Settings]]]:
        """Return the build options and search settings that `evaluate` measures."""
        return list(_imported(self.grid)(request)) if self.grid else [({}, [{}])]

    def is_in(self, meta: dict[str, Any]) -> bool:
        """Return whether a file with this metadata has an index of this kind."""
        if meta.get("index") != (self.saved_as or self.name):
            return False
        described = meta.get("signer")
        made_by = described.get("signer") if isinstance(described, dict) else None
        return self.signer == made_by if self.saved_as else True


def _imported(target: Any) -> Any:
    if not isinstance(target, str):
        return target
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


_MEMORY = BuildOption(
    "memory", "maximum size of lists or tables, such as 2GB (default: no limit)", "size"
)
_CLUSTERS = BuildOption("clusters", "clusters: number of groups (default: derived from the size)")
_PREDICTIONS, _GRIDS = "lookalike.advice.predictions", "lookalike.advice.evaluation"

KINDS: Registry[IndexKind] = Registry(
    "kind of index",
    "lookalike.indexes",
    {
        kind.name: kind
        for kind in (
            IndexKind(
                "slices",
                "lookalike.indexes.slices.index:SliceIndex",
                "inverted lists of slices: fast, for near neighbors, exact on request",
                (
                    BuildOption(
                        "slice_bits",
                        "slices: width in bits, or that of each slice, such as 32,31 (default: "
                        "derived from the size)",
                        "widths",
                    ),
                    _MEMORY,
                ),
                predictor=f"{_PREDICTIONS}:slice_options",
                grid=f"{_GRIDS}:slice_grid",
                compares="rerank",
            ),
            IndexKind(
                "blocks",
                "lookalike.indexes.tables.blocks:BlockIndex",
                "sorted tables: all matches within a few bits (--radius), exact; up to 512 bits",
                (
                    BuildOption("radius", "blocks: largest Hamming distance (default: 3)"),
                    BuildOption(
                        "tables", "blocks: number of tables (default: derived from the size)"
                    ),
                    BuildOption("blocks", "blocks: blocks of a signature, in place of --tables"),
                    BuildOption(
                        "lead", "blocks: leading blocks per table (default: derived from the size)"
                    ),
                    _MEMORY,
                    BuildOption(
                        "compressed",
                        "blocks: one copy of the signatures only; less memory, slower",
                        "switch",
                    ),
                ),
                predictor=f"{_PREDICTIONS}:block_options",
            ),
            IndexKind(
                "flips",
                "lookalike.indexes.tables.flips:FlipIndex",
                "one sorted table: most matches within a few bits, in the least memory",
                (
                    BuildOption(
                        "header_bits",
                        "flips: number of header bits (default: derived from the size)",
                    ),
                ),
                predictor=f"{_PREDICTIONS}:flip_options",
            ),
            IndexKind(
                "scan",
                ScanIndex,
                "exhaustive scan: exact, for small collections",
                predictor=f"{_PREDICTIONS}:scan_options",
            ),
            IndexKind(
                "prefix",
                "lookalike.indexes.tables.prefixes:PrefixIndex",
                "random permutations of the bits: most near-duplicates, at a constant cost",
                (BuildOption("orders", "prefix: number of permutations (default: 16)"),),
                predictor=f"{_PREDICTIONS}:prefix_options",
                grid=f"{_GRIDS}:prefix_grid",
                compares="examine",
            ),
            IndexKind(
                "clusters",
                "lookalike.indexes.clusters.index:ClusterIndex",
                "groups of near signatures: nearest neighbors that may be far away",
                (_CLUSTERS,),
                predictor=f"{_PREDICTIONS}:cluster_options",
                grid=f"{_GRIDS}:cluster_grid",
            ),
            IndexKind("sharded", "lookalike.indexes.sharded:ShardedIndex"),
            IndexKind(
                "gpu",
                "lookalike.gpu.index:GpuIndex",
                saved_as="scan",
                predictor=f"{_PREDICTIONS}:gpu_options",
            ),
            IndexKind(
                "vectors",
                "lookalike.vectors.index:VectorIndex",
                options=(
                    BuildOption("bits", "number of bits of the signatures"),
                    _CLUSTERS,
                    BuildOption("only_bits", "store signatures without vectors", "switch"),
                ),
                holds="vectors",
            ),
            IndexKind("bands", "lookalike.indexes.band_index:BandIndex", holds="rows"),
            IndexKind(
                "recordings",
                "lookalike.recordings.index:RecordingIndex",
                holds="parts",
                saved_as="parts",
                signer="AudioHash",
            ),
            IndexKind(
                "covers",
                "lookalike.recordings.cover_index:CoverIndex",
                holds="parts",
                saved_as="parts",
                signer="CoverHash",
            ),
            IndexKind("parts", "lookalike.parts.index:PartIndex", holds="parts"),
        )
    },
)
"""All kinds of index, by name."""


def kinds_text(kinds: Iterable[IndexKind]) -> str:
    """Return the help texts of kinds for `--help`, a paragraph each."""
    shown = list(kinds)
    width = max(len(kind.name) for kind in shown)
    return "\n".join(
        fill(
            kind.help,
            100,
            initial_indent=f"  {kind.name:<{width}}  ",
            subsequent_indent=" " * (width + 4),
        )
        for kind in shown
    )


def load_index(path: str | os.PathLike[str], *, verify: bool = True) -> Any:
    """Open a saved index of any kind, memory-mapped.

    Do not change the file in place while it is open. Saving to the same name is safe.

    Args:
        path: File that `save` wrote.
        verify: Compare all checksums first, which reads the file once (default: yes). With False,
            opening is immediate, and damage may show up in results until `index.verify` is called.

    Returns:
        The index, of the class that was saved.

    Examples:
        >>> la.ScanIndex(np.zeros((3, 8), np.uint8)).save("zeros.lookalike")
        >>> la.load_index("zeros.lookalike")
        ScanIndex(3 signatures of 64 bits)
    """
    checked = flag("verify", verify)
    return index_in(open_container(file_path("path", path), verify=checked))


def open_index(path: str | os.PathLike[str], *, verify: bool = True) -> Index:
    """Open any file with signatures as an index.

    Accepts indexes of signatures, files of `la.save_signatures`, `np.save` and `np.savez`, and text
    files (.txt, .hex, .csv, .tsv) with hexadecimal hashes. Plain signatures become a `ScanIndex`,
    with signer and names if the file has them.

    Args:
        path: File to open.
        verify: As for `load_index`. Files of `np.save` have no checksums.

    Examples:
        >>> np.save("rows.npy", np.zeros((3, 8), np.uint8))
        >>> la.open_index("rows.npy")
        ScanIndex(3 signatures of 64 bits)
    """
    path, verify = file_path("path", path), flag("verify", verify)
    if path.is_dir():
        raise FormatError(f"{path} is a folder; expected a file with signatures{_sign_first(path)}")
    if is_npy(path):
        return ScanIndex(read_npy(path))
    if is_npz(path):
        rows, ids = read_npz(path)
        return ScanIndex(rows, ids=ids)
    if path.suffix.lower() in HEX_SUFFIXES:
        try:
            return named_scan(*load_hex(path))
        except FormatError as error:
            raise FormatError(f"{error}{_sign_first(path)}") from error
    if is_database(path):
        raise FormatError(
            f"{path} is an SQLite database, not a file with signatures. To search a collection: ",
            Said(f"la.open_collection({str(path)!r})", f"lookalike collection search {path} ..."),
        )
    if not is_container(path):
        raise FormatError(
            f"{path} is not a lookalike file with signatures, nor is it a .npy or .npz file, which "
            f"np.save and np.savez write{_sign_first(path)}"
        )
    container = open_container(path, verify=verify)
    if container.meta.get("kind") != "signatures":
        return signature_index_in(container)
    saved = signatures_in(container)
    index = ScanIndex(saved.signatures)
    index._container = container
    index.signer, index.names = saved.signer, saved.ids
    return index


def _sign_first(path: Path) -> str:
    return f". To sign a corpus: lookalike sign {path} -o NAME.lookalike"


def named_scan(signatures: NDArray[np.uint8], names: Sequence[str] | None) -> ScanIndex:
    """Return an index of signatures of an unknown signer, with the names of the documents."""
    index = ScanIndex(signatures)
    index.names = names
    return index


def open_with_weights(path: str | os.PathLike[str]) -> tuple[Index, NDArray[np.int16] | None]:
    """Open any file with signatures, and return the weights of their bits or None."""
    index = open_index(path)
    if is_npz(path):
        return index, npz_weights(path, index.living()[0])
    container = index._container
    if container is None or container.meta.get("kind") != "signatures":
        return index, None
    return index, weights_in(container, index.living()[0])


def kind_in(container: Container) -> IndexKind:
    """Return the kind of the index in a container, or raise."""
    for kind in KINDS:
        if kind.is_in(container.meta):
            return kind
    name = container.meta.get("index")
    if name in KINDS:  # of a package that has not been imported
        return KINDS.get(name)
    raise FormatError(
        f"{container.path} holds an index of kind {name!r}; this version knows "
        f"{list(KINDS.names())}"
    )


def index_in(container: Container) -> Any:
    """Return the index in a container, of any kind."""
    return kind_in(container).cls.from_container(container)


def signature_index_in(container: Container) -> Index:
    """Return the index of signatures in a container, or raise."""
    kind = kind_in(container)
    if kind.holds != "signatures":
        raise FormatError(
            f"{container.path} holds a {kind.cls.__name__}, and signatures are expected; "
            "la.load_index opens it"
        )
    index: Index = kind.cls.from_container(container)
    return index
