"""The queries of `lookalike search`: texts, documents of files, signatures."""

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
from lookalike.cli.common import signed_corpus
from lookalike.cli.finding.options import no_weights
from lookalike.cli.kinds import has_parts, warn_problems
from lookalike.cli.terminal import warn, warn_left_out
from lookalike.corpora import Problems, format_of
from lookalike.corpora.columns import id_strings, text_strings
from lookalike.corpora.opening import expand_paths
from lookalike.errors import ArgumentError, Said, SignatureError
from lookalike.indexes import Index
from lookalike.indexes.kinds import open_with_weights
from lookalike.media import MEDIA, Medium, find_files, head_of, medium_of_signer, with_article
from lookalike.operation import in_batches, in_parts
from lookalike.shown import escape_terminal
from lookalike.signatures.bit_weights import BitWeightSigner, Mask, sign_masked
from lookalike.signatures.files import signatures_from_hex
from lookalike.signatures.signer import DocumentSigner, Signer
from lookalike.storage.files import is_file

AT_A_TIME = 1 << 12

_SIGNATURES = (".lookalike", ".npy", ".npz")


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
    """Replace a QUERY that is the name of a file by its content, and print a notice."""
    files = [query for query in options.queries if is_file(query)]
    if not files or medium_of_queries(options.queries) is not None:
        for query in filter(_is_missing_file, options.queries):
            warn(f"there is no file {escape_terminal(query)}; searching for this text", kind="")
        options.queries = [sys.stdin.read() if one == "-" else one for one in options.queries]
        return
    if len(options.queries) > 1 or options.file is not None or options.signatures is not None:
        raise ArgumentError(
            Said("queries"),
            f" {files[0]} is a file, and there are other queries; search for one after the other",
        )
    if is_signature_file(files[0]):
        options.signatures = Path(files[0])
    else:
        options.file = files[0]
    options.queries = []
    warn(f"{escape_terminal(files[0])} is a file; searching for its content", kind="")


def is_signature_file(query: str) -> bool:
    """Return whether a query is the name of a file of signatures."""
    return is_file(query) and Path(query).suffix in _SIGNATURES


def _is_missing_file(query: str) -> bool:
    """Return whether a query looks like the name of a file, of which there is none."""
    if len(query.split()) != 1 or is_file(query):
        return False
    return format_of(Path(query)) is not None or Path(query).suffix in _SIGNATURES


def medium_of_queries(queries: list[str]) -> type[Medium[Any]] | None:
    """Return the medium of the files that queries name, if all name files of one medium."""
    try:
        heads = [head_of(Path(query))[0] for query in queries]
    except (OSError, ValueError):
        return None
    return MEDIA.find(lambda medium: all(map(medium.recognizes, heads))) if heads else None


def _file_queries(
    options: argparse.Namespace, signer: Signer | None, medium: type[Medium[Any]]
) -> Iterator[Queries]:
    """Yield files of a medium to look for; those that cannot be read are named."""
    named = [options.file] if options.file is not None else options.queries
    found = find_files(expand_paths(named), medium)
    if not found.files:
        raise ArgumentError(
            Said("queries"),
            f": {named[0]} is not {with_article(medium.noun)}, but the index has {medium.name}; "
            "expected such files, or --signatures FILE",
        )
    problems, threads = list(found.problems), thread_count(options.threads)
    nothing = f"is {medium.no_features.partition(':')[0]}"
    for begin in in_parts(range(0, len(found.files), AT_A_TIME)):
        part = found.files[begin : begin + AT_A_TIME]
        signed = medium.sign_files(signer, part, threads=threads, tell=lambda share: None)
        empty = frozenset(np.flatnonzero(~signed.clear).tolist())
        yield Queries([*map(str, signed.files)], signed.signatures, empty=empty, nothing=nothing)
        problems += signed.problems
    warn_problems(problems)


def queries_of(
    options: argparse.Namespace, index: Index, mask: Mask = False, *, weighted: bool = False
) -> Iterator[Queries]:
    """Yield the queries in batches, with masks or bit weights if requested."""
    if options.signatures is not None:
        yield from _signature_queries(options.signatures, index, weighted)
        return
    if index.signer is None and _are_hashes(options.queries, index.bits):
        yield Queries(options.queries, signatures_from_hex(options.queries))
        return
    medium = medium_of_signer(index.signer)
    if medium is not None and not has_parts(index.signer):
        yield from _file_queries(options, index.signer, medium)
        return
    signer = text_signer(index, options.index)
    if (other := medium_of_queries(options.queries)) is not None:
        what = f" {options.queries[0]} is {with_article(other.noun)}"
        raise ArgumentError(
            Said("queries"),
            f"{what}, and {options.index} was signed by ",
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
        for begin in in_parts(range(0, len(options.queries), AT_A_TIME)):
            texts = options.queries[begin : begin + AT_A_TIME]
            yield _signed(texts, texts, signer, mask, options.threads, weighted)
        return
    corpus, columns = signed_corpus([options.file], options, signer)
    row = 0
    problems = Problems(options.skip_bad)
    for batch in in_batches(corpus.read(columns.names, problems), lambda: corpus.done):
        texts = text_strings(batch.column(0), columns.text, corpus).fill_null("").to_pylist()
        labels: Any = list(range(row, row + len(texts)))
        if columns.id:
            labels = id_strings(batch.column(1), row).to_pylist()
        for begin in in_parts(range(0, len(texts), AT_A_TIME)):
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
    one, two = queries.signer, index.signer
    if one is not None and two is not None and one != two:
        signers = one.said(), ", the index holds signatures of ", two.said()
        again = "; sign the queries again with --like INDEX"
        raise SignatureError(f"{path} was signed by ", *signers, again)
    signatures, ids = queries.living()
    for begin in in_parts(range(0, len(ids), AT_A_TIME)):
        part = slice(begin, begin + AT_A_TIME)
        labels: Any = [queries.name(id) for id in ids[part].tolist()]
        behind = weights[part] if weighted and weights is not None else None
        yield Queries(labels, signatures[part], weights=behind)


def text_signer(index: Index, path: Path) -> DocumentSigner:
    """Return the signer of an index that takes texts."""
    signer = index.signer
    if signer is None:
        raise ArgumentError(
            f"{path} has no signer for texts; search for --signatures FILE, or build it from a "
            "file of `lookalike sign`. A list of image hashes gets one by `lookalike index --hash "
            "pdq`"
        )
    if not isinstance(signer, DocumentSigner) or not signer.features.is_document(""):
        raise ArgumentError(
            f"{path} was signed by ",
            signer.said(),
            ", which takes no texts; search for --signatures FILE",
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
