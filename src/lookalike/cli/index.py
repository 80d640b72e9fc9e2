"""`lookalike index`: signatures in, an index that is searched without building it again out."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lookalike.checks import byte_count
from lookalike.cli.options import add_threads, check_folder, check_not_read, save_built
from lookalike.cli.parser import add_number, add_switch
from lookalike.cli.terminal import say, say_json
from lookalike.cli.vectors.index import add_vector_options, are_vectors, run_on_vectors
from lookalike.errors import ArgumentError, Said
from lookalike.indexes import (
    BlockIndex,
    ClusterIndex,
    FlipIndex,
    Index,
    PrefixIndex,
    ScanIndex,
    SliceIndex,
    open_index,
)
from lookalike.indexes.files import named_scan
from lookalike.shown import counted, escape_terminal
from lookalike.signatures import load_hex
from lookalike.storage import check_replaceable


@dataclass(frozen=True)
class _Kind:
    """A sort of index, and which options it is built with."""

    build: Callable[..., Index]
    options: tuple[str, ...]


_BLOCKS = ("radius", "tables", "blocks", "lead", "memory", "compressed", "threads")
_KINDS = {
    "slices": _Kind(SliceIndex, ("slice_bits", "memory", "threads")),
    "blocks": _Kind(BlockIndex, _BLOCKS),
    "flips": _Kind(FlipIndex, ("header_bits", "threads")),
    "scan": _Kind(ScanIndex, ()),
    "prefix": _Kind(PrefixIndex, ("orders", "threads")),
    "clusters": _Kind(ClusterIndex, ("clusters", "threads")),
}

PURPOSE = "build an index of signatures and save it"
DESCRIPTION = "Build an index from a file of signatures."
DETAILS = """\
kinds:
  slices    lists of signatures that agree in some bits: quick, near neighbours, exact on demand
  blocks    sorted tables: all within a few bits (--radius), exactly and quickest; up to 512 bits
  flips     one sorted table: most of what is within a few bits, in the least memory
  scan      signatures and ids alone, all of them looked at: exact, for small collections
  prefix    orders by random permutations of the bits: most near-duplicates, at the same cost for
            any number of signatures
  clusters  groups of signatures that are near each other: the nearest, if they are far away, too

The index holds the signatures, and ids and signer where the input has them, so that
`lookalike search` takes texts and answers with ids. It is mapped, not read, when it is opened.

hashes of other tools:
  a .txt with a hash in hexadecimal on each line, or a .csv or .tsv with a column of them and one of
  paths or ids, such as those of imagehash and PDQ. `lookalike search INDEX` then takes such a hash,
  and --signatures such a file.

vectors:
  a column of lists of numbers of Parquet or JSON Lines (--vectors COLUMN), or a .npy file of
  fractions. Signatures propose, the true cosine decides; the index holds the vectors, and ids where
  there are some. `lookalike search INDEX` then takes vectors.

exit status:
  0 done, 1 an error (nothing is half-written), 2 wrong usage, 130 interrupted

examples:
  lookalike index corpus.lookalike -o index.lookalike
  lookalike index corpus.lookalike -o index.lookalike --slice-bits 16
  lookalike index hashes.csv --column phash -o index.lookalike
  lookalike index signatures.npy -o index.lookalike --kind scan
  lookalike index corpus.lookalike -o index.lookalike --kind blocks --radius 3 --tables 10
  lookalike index corpus.lookalike -o index.lookalike --kind flips --header-bits 20
  lookalike index corpus.lookalike -o index.lookalike --kind clusters
  lookalike index rows.parquet --vectors embedding -o vectors.lookalike
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "signatures",
        type=Path,
        metavar="SIGNATURES",
        help="a file of `lookalike sign`, .npy or .npz, another index, hashes in hexadecimal, or "
        "vectors",
    )
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE", help="such as index.lookalike"
    )
    parser.add_argument(
        "--kind", choices=tuple(_KINDS), default="slices", help="of index (default slices)"
    )
    add_number(parser, "--slice-bits", "width of slices (default: by the size)")
    parser.add_argument(
        "--memory", type=byte_count, metavar="SIZE", help="most that lists or tables take, as 2GB"
    )
    add_number(parser, "--radius", "that blocks are made for (default 3)")
    add_number(parser, "--tables", "how many there are of blocks (default: by the size)")
    add_switch(parser, "--compressed", "blocks in less memory: one copy of the signatures; slower")
    add_number(parser, "--orders", "random permutations of prefix (default 16)")
    add_number(parser, "--clusters", "groups of clusters (default: by the size)")
    add_number(parser, "--blocks", "that signatures are cut into, in place of --tables")
    add_number(
        parser,
        "--lead",
        "blocks that lead each table (default: by the size)",
    )
    add_number(
        parser, "--header-bits", "upper bits that flips are looked up by (default: by the size)"
    )
    parser.add_argument(
        "--column",
        metavar="NAME",
        help="of hashes in hexadecimal, in a table with several such columns",
    )
    add_vector_options(parser.add_argument_group("vectors"))
    add_threads(parser)
    add_switch(parser, "--json", "print the summary as JSON")
    add_switch(parser, "--quiet", "no summary")


def run(options: argparse.Namespace) -> None:
    """Build, save, and say what was built."""
    own = ("slice_bits", "header_bits", "orders", *_BLOCKS[:-1])
    if are_vectors(options):
        run_on_vectors(options, [*own, "column"])
        return
    kind = _KINDS[options.kind]
    for name in (*own, "clusters"):
        if getattr(options, name) not in (None, False) and name not in kind.options:
            raise ArgumentError(
                Said(name), f" does nothing with --kind {options.kind}; leave it out"
            )
    check_folder(options.output)
    check_not_read("-o", options.output, [options.signatures])
    check_replaceable(options.output)
    source = _source(options)
    start = time.perf_counter()
    signatures, ids = source.living()
    index = kind.build(
        signatures,
        ids=ids if source.own_ids else None,
        **{name: value for name in kind.options if (value := getattr(options, name)) is not None},
    )
    index.signer, index.names = source.signer, source.names
    summary = {
        **save_built(index, options.output, start),
        "signer": None if index.signer is None else type(index.signer).__name__,
    }
    if options.json:
        say_json(summary)
    elif not options.quiet:
        how = _how(index)
        say(
            f"{len(index):,} signatures of {index.bits} bits{how}: "
            f"{escape_terminal(options.output)}\n"
            f"  {summary['file_bytes']:,} bytes, {summary['seconds']:.2f} s"
        )
        if index.signer is None:
            unknown = "signer and ids are" if index.names is None else "the signer is"
            say(f"  {unknown} not known: search it by signatures, not by texts")


def _source(options: argparse.Namespace) -> Index:
    """Return the signatures, as an index that only has them."""
    if options.column is None:
        return open_index(options.signatures)
    return named_scan(*load_hex(options.signatures, column=options.column))


def _how(index: Index) -> str:
    """Return what was chosen for the index."""
    if isinstance(index, SliceIndex):
        return f", slices of {index.slice_bits} bits"
    if isinstance(index, BlockIndex):
        return f", {counted(index.tables, 'table')} for a radius of {index.radius}"
    if isinstance(index, FlipIndex):
        return f", a header of {index.header_bits} bits"
    if isinstance(index, ClusterIndex):
        return f", in {counted(index.clusters, 'group')}"
    return ""
