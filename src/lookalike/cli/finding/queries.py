"""What `lookalike search` looks for: texts that were typed, documents of files, signatures."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import hexdigits
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.checks import thread_count
from lookalike.cli.options import corpus_of, filters_of
from lookalike.cli.options.kinds import warn_problems
from lookalike.cli.options.queries import no_weights
from lookalike.cli.terminal import warn, warn_left_out
from lookalike.corpora import Problems
from lookalike.corpora.columns import columns_for, filtered, find_columns, id_strings, text_strings
from lookalike.corpora.opening import expand_paths
from lookalike.errors import ArgumentError, Said, SignatureError
from lookalike.images import ImageHash, is_image
from lookalike.images.medium import ImageMedium
from lookalike.indexes import Index
from lookalike.indexes.kinds import open_with_weights
from lookalike.media import find_files, head_of
from lookalike.shown import escape_terminal
from lookalike.signatures.bit_weights import BitWeightSigner, Mask, sign_masked
from lookalike.signatures.files import signatures_from_hex
from lookalike.signatures.signer import DocumentSigner


def are_images(queries: list[str]) -> bool:
    """Return whether what was typed are names of image files, all of it."""
    try:
        return bool(queries) and all(is_image(head_of(Path(query))[0]) for query in queries)
    except (OSError, ValueError):
        return False


def image_queries(
    options: argparse.Namespace, signer: ImageHash, at_a_time: int
) -> Iterator[tuple[list[str], NDArray[np.uint8], frozenset[int]]]:
    """Yield the paths of images that are looked for, their signatures, and which of these say
    nothing; what cannot be read is named.
    """
    named = [options.file] if options.file is not None else options.queries
    found = find_files(expand_paths(named), ImageMedium)
    if not found.files:
        raise ArgumentError(
            Said("queries"),
            f": {named[0]} is no image, and the index has images; expected files of images, or "
            "--signatures FILE",
        )
    medium = ImageMedium(bits=signer.bits, hash=signer.kind)
    problems = list(found.problems)
    for begin in range(0, len(found.files), at_a_time):
        read = medium.read(
            found.files[begin : begin + at_a_time],
            threads=thread_count(options.threads),
            tell=lambda share: None,
        )
        empty = frozenset(np.flatnonzero(~read.content.clear).tolist())
        rows = np.ascontiguousarray(read.content.signatures[:, 0])
        yield list(map(str, read.files)), rows, empty
        problems += read.problems
    warn_problems(problems)


AT_A_TIME = 1 << 12

_SIGNATURES = (".lookalike", ".npy", ".npz")
_LONGEST_NAME = 4096


@dataclass(frozen=True)
class Queries:
    """Some queries at a time."""

    labels: Sequence[str | int]
    signatures: NDArray[Any]
    """Or vectors, of an index of these."""
    texts: list[str] | None = None
    """None where there are signatures alone."""
    empty: frozenset[int] = frozenset()
    """Those that have no words, and so nothing to look for."""
    masks: NDArray[np.uint8] | None = None
    """The bits that words decide, of each; None where no query is to be masked."""
    masked: frozenset[int] = frozenset()
    """Those of which only these bits are compared."""

    def parts(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.uint8] | None]]:
        """Yield which queries are searched for together: those without masks, those with."""
        with_mask = np.isin(np.arange(len(self.labels)), list(self.masked))
        if not with_mask.all() or not len(with_mask):
            yield np.flatnonzero(~with_mask), None
        if self.masks is not None and with_mask.any():
            yield np.flatnonzero(with_mask), self.masks[with_mask]

    weights: NDArray[Any] | None = None
    """Behind the bits, where they were asked for."""
    nothing: str = "has no words"
    """What is said of those that are empty."""


def take_files(options: argparse.Namespace) -> None:
    """Let a QUERY that is the name of a file stand for what is in it, and say so.

    Nobody looks for the words of a file's name; who does may send them through standard input.
    """
    files = [query for query in options.queries if _is_file(query)]
    if not files or are_images(options.queries):
        options.queries = [sys.stdin.read() if one == "-" else one for one in options.queries]
        return
    if len(options.queries) > 1 or options.file is not None or options.signatures is not None:
        raise ArgumentError(
            Said("queries"),
            f" {files[0]} is a file, and there is something else to look for; search for one after "
            "the other",
        )
    if Path(files[0]).suffix in _SIGNATURES:
        options.signatures = Path(files[0])
    else:
        options.file = files[0]
    options.queries = []
    warn(f"{escape_terminal(files[0])} is a file: what is in it is looked for", kind="")


def _is_file(query: str) -> bool:
    try:
        return len(query) < _LONGEST_NAME and Path(query).is_file()
    except (OSError, ValueError):
        return False


def queries_of(
    options: argparse.Namespace, index: Index, mask: Mask = False, *, weighted: bool = False
) -> Iterator[Queries]:
    """Yield what is looked for, some at a time; texts with masks if they are to have some.

    `weighted`: with the weights behind its bits.
    """
    if options.signatures is not None:
        yield from _signature_queries(options.signatures, index, weighted)
        return
    if index.signer is None and _are_hashes(options.queries, index.bits):
        yield Queries(options.queries, signatures_from_hex(options.queries))
        return
    if isinstance(index.signer, ImageHash):
        for paths, signatures, empty in image_queries(options, index.signer, AT_A_TIME):
            yield Queries(paths, signatures, empty=empty, nothing="is of one colour, or nearly")
        return
    signer = text_signer(index, options.index)
    if are_images(options.queries):
        raise ArgumentError(
            Said("queries"),
            f" {options.queries[0]} is an image, and {options.index} was signed by ",
            signer.said(),
            "; expected texts",
        )
    if weighted and not isinstance(signer, BitWeightSigner):
        raise ArgumentError(
            f"{options.index} was signed by ",
            signer.said(),
            ", whose bits have no weights; leave --recall and --flips out",
        )
    if options.queries:
        for begin in range(0, len(options.queries), AT_A_TIME):
            texts = options.queries[begin : begin + AT_A_TIME]
            yield _signed(texts, texts, signer, mask, options.threads, weighted)
        return
    corpus = corpus_of([options.file], options)
    columns = find_columns(corpus, options.text, options.id)
    columns = columns_for(corpus, columns, signer.features)
    corpus = filtered(corpus, columns, filters_of(options))
    row = 0
    problems = Problems(options.skip_bad)
    for batch in corpus.read(columns.names, problems):
        texts = text_strings(batch.column(0), columns.text, corpus).fill_null("").to_pylist()
        labels: Any = list(range(row, row + len(texts)))
        if columns.id:
            labels = id_strings(batch.column(1), row).to_pylist()
        for begin in range(0, len(texts), AT_A_TIME):
            part = slice(begin, begin + AT_A_TIME)
            yield _signed(labels[part], texts[part], signer, mask, options.threads, weighted)
        row += len(texts)
    for notice in problems.notices():
        warn(notice, kind="")
    warn_left_out(problems.left_out_count, problems.examples)


def _are_hashes(queries: Sequence[str], bits: int) -> bool:
    """Return whether what was typed are signatures in hexadecimal, all of it."""
    digits = bits // 4
    return bool(queries) and all(
        len(query) == digits and set(query) <= set(hexdigits) for query in queries
    )


def _signature_queries(path: Path, index: Index, weighted: bool) -> Iterator[Queries]:
    queries, weights = open_with_weights(path)
    if weighted and weights is None:
        raise no_weights(path)
    both = (queries.signer, index.signer)
    if both[0] is not None and both[1] is not None and both[0] != both[1]:
        raise SignatureError(
            f"{path} was signed by ",
            both[0].said(),
            ", the index holds signatures of ",
            both[1].said(),
            "; sign the queries again with --like INDEX",
        )
    signatures, ids = queries.living()
    for begin in range(0, len(ids), AT_A_TIME):
        part = slice(begin, begin + AT_A_TIME)
        labels: Any = [queries.name(id) for id in ids[part].tolist()]
        behind = weights[part] if weighted and weights is not None else None
        yield Queries(labels, signatures[part], weights=behind)


def text_signer(index: Index, path: Path) -> DocumentSigner:
    """Return the signer of an index that takes texts."""
    signer = index.signer
    if signer is None:
        raise ArgumentError(
            f"{path} does not say how its documents were signed; look for --signatures FILE, or "
            "make it from a file of `lookalike sign`"
        )
    if not isinstance(signer, DocumentSigner) or not signer.features.is_document(""):
        raise ArgumentError(
            f"{path} was signed by ",
            signer.said(),
            ", which takes no texts; look for --signatures FILE",
        )
    return signer


def _signed(
    labels: Sequence[str | int],
    texts: list[str],
    signer: DocumentSigner,
    mask: Mask,
    threads: int | None,
    weighted: bool = False,
) -> Queries:
    counts = signer.feature_counts(texts, threads=threads)
    empty = frozenset(np.flatnonzero(counts == 0).tolist())
    if weighted and isinstance(signer, BitWeightSigner):
        signatures, weights = signer.sign_with_weights(texts, threads=threads)
        return Queries(labels, signatures, texts, empty, weights=weights)
    found = sign_masked(signer, texts, mask, threads)
    if found is None:
        return Queries(labels, signer.sign(texts, threads=threads), texts, empty)
    masked = frozenset(np.flatnonzero(found.masked).tolist())
    return Queries(labels, found.signatures, texts, empty, found.masks, masked)
