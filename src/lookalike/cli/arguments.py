"""Options that several commands have in common."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lookalike.checks import whole_number
from lookalike.cli.sizes import byte_count
from lookalike.corpora import FORMATS, Corpus, open_corpus
from lookalike.dedup import METHODS
from lookalike.errors import ArgumentError, FileError
from lookalike.storage import same_file

__all__ = [
    "SIGNER_DEFAULTS",
    "add_corpus_options",
    "add_max_document",
    "add_signer_options",
    "add_threads",
    "check_folder",
    "check_not_read",
    "corpus_of",
]

SIGNER_DEFAULTS: dict[str, Any] = {
    "method": "minhash",
    "ngram": None,
    "permutations": 128,
    "bits": None,
    "seed": 0,
}
"""What `add_signer_options` leaves where nothing is given; None: the method's own default."""

Group = argparse._ArgumentGroup | argparse.ArgumentParser


def add_corpus_options(group: Group) -> None:
    """Declare how a corpus is read."""
    group.add_argument("--text", metavar="COLUMN", help="column with the text (default: a guess)")
    group.add_argument("--id", metavar="COLUMN", help="column with ids (default: a guess, or rows)")
    group.add_argument("--format", choices=FORMATS, help="format of the input, if its name lies")
    group.add_argument(
        "--skip-bad", action="store_true", help="leave out and count rows that cannot be read"
    )
    add_max_document(group)


def add_max_document(group: Group) -> None:
    """Declare how long a document may be."""
    group.add_argument(
        "--max-document",
        type=byte_count,
        metavar="SIZE",
        help="longer documents cannot be read (default 256MiB, or a twelfth of --memory-limit)",
    )


def add_signer_options(group: Group) -> None:
    """Declare how documents are signed."""
    group.add_argument("--method", choices=METHODS, help="signatures (default minhash)")
    group.add_argument(
        "--ngram",
        "--ngram-size",
        "--ngram_size",
        type=int,
        metavar="N",
        help="words that make a feature (default: minhash 5, simhash 3, topsig 2)",
    )
    group.add_argument(
        "--permutations",
        "--num-perm",
        "--num_perm",
        type=int,
        metavar="N",
        help="of minhash (default 128)",
    )
    group.add_argument("--bits", type=int, metavar="N", help="simhash (128) and topsig (1024)")
    group.add_argument("--seed", type=int, metavar="N", help="of signatures (default 0)")
    group.set_defaults(**SIGNER_DEFAULTS)


def add_threads(group: Group) -> None:
    """Declare the number of threads."""
    group.add_argument("--threads", type=int, metavar="N", help="threads (default: all cores)")


def corpus_of(paths: list[str], options: argparse.Namespace) -> Corpus:
    """Open the corpus that arguments name, to be read as options say."""
    source = paths[0] if len(paths) == 1 else [Path(path) for path in paths]
    corpus = open_corpus(source, options.format)
    if options.max_document is not None:
        corpus.max_document = whole_number("--max-document", options.max_document, at_least=1)
    return corpus


def check_folder(path: Path | None) -> None:
    """Refuse to write where there is no folder, before the work is done."""
    if path is not None and not path.absolute().parent.is_dir():
        raise FileError(f"{path}: there is no folder {path.absolute().parent}; make it first")


def check_not_read(option: str, output: Path | None, inputs: Iterable[Path]) -> None:
    """Refuse to write over what is read, by whatever name."""
    if output is not None and same_file(output, inputs) is not None:
        raise ArgumentError(f"{option} is {output}, which is read; give another name")
