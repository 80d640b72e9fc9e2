"""`lookalike index`: signatures in, an index that is searched without building it again out."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from lookalike.checks import one_of
from lookalike.cli import common
from lookalike.cli.finding.vectors import has_vectors, npy_vectors
from lookalike.cli.parser import VALUES, RegisteredNames, refuse_given
from lookalike.cli.terminal import say, say_json, warn
from lookalike.dedup.vectors import read_embeddings
from lookalike.errors import ArgumentError
from lookalike.images.image_hash import KINDS as HASHES
from lookalike.images.image_hash import ImageHash
from lookalike.indexes import Index, open_index
from lookalike.indexes.kinds import KINDS, IndexKind, kinds_text, named_scan
from lookalike.progress import watched
from lookalike.shown import counted, escape_terminal
from lookalike.signatures import load_hex
from lookalike.vectors import VectorIndex

_BUILT = tuple(kind for kind in KINDS if kind.is_built)
_OPTIONS = tuple({option.name: option for kind in _BUILT for option in kind.options}.values())
"""Options of all kinds, each once."""
_WORDS = {"size": " SIZE", "switch": "", "number": " N", "widths": " WIDTHS"}
_TYPED = {"memory": "memory:--memory-limit"}
"""Options that have another name here than in Python."""
_OPTION_LINES = "\n".join(
    f"  {_TYPED.get(one.name, f'--{one.name}').replace('_', '-')}{_WORDS[one.type]}  {one.help}"
    for one in _OPTIONS
)
_FOR_VECTORS = {
    "vectors": None,
    "id": None,
    "format": None,
    "bits": 512,
    "only_bits": False,
    "recall": None,
}
"""Options that are for vectors alone, and their defaults."""


VALUES["TYPE"] = RegisteredNames(KINDS, lambda kind: kind.is_built)

TASK = "search"
PURPOSE = "build an index of signatures or vectors and save it"
DESCRIPTION = "Build an index from a file of signatures, hexadecimal hashes or vectors."
ARGUMENTS = f"""
  SIGNATURES           file of `lookalike sign`, .npy or .npz, an index, a table of hexadecimal
                       hashes, or vectors
  -o --output FILE     file to write, such as index.lookalike (required)
  kind:--type TYPE={_BUILT[0].name}  {", ".join(kind.name for kind in _BUILT)} (or from a plugin)
  --json
  --quiet
vectors:
  --vectors COLUMN     column with vectors: lists of numbers in Parquet or JSON Lines
  --id COLUMN          column with ids (default: detected, or row numbers)
{common.FORMAT}
advanced options:
  column:--signature COLUMN  column with hexadecimal hashes (default: the only one there is)
  --hash NAME          image hash that made the hashes, such as pdq: then `lookalike search` takes
                       images
  --threads
{_OPTION_LINES}
  --bits N={_FOR_VECTORS["bits"]}  bits of the signatures that propose pairs of vectors
  --only-bits          store signatures, and no vectors: similarities are estimates
  --recall SHARE       measure how many candidates find this share of the 10 nearest vectors, for
                       `lookalike search --recall`
"""
EXAMPLES = """\
  lookalike index corpus.lookalike -o index.lookalike
  lookalike index corpus.lookalike -o index.lookalike --type blocks --radius 3
  lookalike index rows.parquet --vectors embedding -o vectors.lookalike
"""
DETAILS = f"""\
types of index:
{kinds_text(_BUILT)}

The index holds the signatures, and ids and signer where the input has them, so that
`lookalike search` takes texts and returns ids. It is memory-mapped when it is opened.

hashes of other tools, such as imagehash and PDQ:
  a .txt with a hexadecimal hash on each line, or a .csv or .tsv with a column of hashes and one of
  paths or ids. `lookalike search INDEX` then takes such a hash, and --signatures such a file. With
  --hash pdq, it also takes images.

vectors:
  a column (--vectors) or a .npy file of floating-point numbers. Sketches propose, exact cosines
  decide; the index holds the vectors and ids.
"""


def run(options: argparse.Namespace) -> None:
    """Build, save, and say what was built."""
    vectors = options.vectors is not None or has_vectors(options.signatures)
    kind = KINDS["vectors" if vectors else options.kind]
    _refuse_others(options, kind)
    common.check_output("-o", options.output, [options.signatures])
    start = time.perf_counter()
    index: Any
    index, more = (_of_vectors if vectors else _of_signatures)(options, kind)
    with watched("save", options.quiet or options.json):
        index.save(options.output)
    summary = {
        **index.stats(),
        "seconds": round(time.perf_counter() - start, 3),
        "file": str(options.output),
        "file_bytes": options.output.stat().st_size,
        "ids": index.names is not None,
        **more,
    }
    if options.json:
        say_json(summary)
    elif not options.quiet:
        say(
            f"{index.summary()}: {escape_terminal(options.output)}\n"
            f"  {summary['file_bytes']:,} bytes, {summary['seconds']:.2f} s"
        )
        if index.signer is None:
            unknown = "signer and ids are" if index.names is None else "the signer is"
            say(f"  {unknown} not known: search by signatures, not by texts")
        for tuning in index.tunings if vectors else ():
            candidates, probe = map(tuning.chosen.get, ("candidates", "probe"))
            say(
                f"  a recall of {tuning.target:g} takes {candidates:,} candidates of "
                f"{counted(probe, 'group')}; measured {tuning.recall:.3f}"
            )
    if missing := more.get("without_vector"):
        warn(f"{counted(missing, 'row')} without a vector left out")


def _refuse_others(options: argparse.Namespace, kind: IndexKind) -> None:
    """Refuse options of other kinds."""
    own = {option.name for option in kind.options}
    vectors = kind.name == "vectors"
    what = "vectors" if vectors else f"--type {kind.name}"
    others = [option.name for option in _OPTIONS if option.name not in own]
    refuse_given(options, others, f"does nothing with {what}")
    if vectors:
        usual = {"column": None, "hash": None, "kind": _BUILT[0].name}
        refuse_given(options, usual, "does nothing with vectors")
    else:
        refuse_given(options, _FOR_VECTORS, "needs vectors: --vectors COLUMN")


def _chosen(options: argparse.Namespace, kind: IndexKind) -> dict[str, Any]:
    """Return what the index is built with."""
    return {option.name: getattr(options, option.name) for option in kind.options}


def _of_signatures(options: argparse.Namespace, kind: IndexKind) -> tuple[Index, dict[str, Any]]:
    """Return an index of signatures, with the signer and names where the file has them."""
    if options.column is None:
        source = open_index(options.signatures)
    else:
        source = named_scan(*load_hex(options.signatures, column=options.column))
    if options.hash is not None:
        if source.signer is not None:
            refuse_given(options, ("hash",), f"does nothing: {options.signatures} has the signer")
        source.signer = ImageHash(source.bits, one_of("hash", options.hash, HASHES))
    signatures, ids = source.living()
    own = ids if source.own_ids else None
    with watched("index", options.quiet or options.json, len(signatures)):
        index: Index = kind.build(
            signatures, own, threads=options.threads, **_chosen(options, kind)
        )
    index.signer, index.names = source.signer, source.names
    return index, {"signer": None if index.signer is None else type(index.signer).__name__}


def _of_vectors(options: argparse.Namespace, kind: IndexKind) -> tuple[VectorIndex, dict[str, Any]]:
    """Return an index of vectors, and how many rows had none."""
    ids: Any = None
    rows: Any = None
    missing = 0
    if has_vectors(options.signatures):
        refuse_given(
            options,
            ("vectors", "id", "format"),
            f"does nothing: {options.signatures} is an array without columns",
        )
        vectors = npy_vectors(options.signatures)
    else:
        corpus = common.corpus_of([str(options.signatures)], options)
        common.check_not_read("-o", options.output, [Path(one) for one in corpus.files])
        with watched("read", options.quiet or options.json, common.megabytes(corpus), "MB"):
            given, _ = read_embeddings(corpus, options.vectors, options.id, None)
        if not len(given.rows):
            raise ArgumentError(f"{corpus.name} has no vectors in the column {options.vectors!r}")
        missing = given.count - len(given.rows)
        vectors, ids, rows = given.vectors, given.ids, given.rows
    own = rows if missing else None
    with watched("index", options.quiet or options.json, len(vectors), "vectors"):
        index: VectorIndex = kind.build(
            vectors, own, threads=options.threads, **_chosen(options, kind)
        )
    if ids is not None:
        # Vectors that are added get the numbers behind the last, and none of these names.
        index.names = ids[: int(rows[-1]) + 1]
    if options.recall is not None:
        with watched("tune", options.quiet or options.json):
            index.tune(10, options.recall, threads=options.threads)
    return index, {"without_vector": missing}
