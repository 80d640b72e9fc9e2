"""Options that several commands have in common."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import Field, fields
from pathlib import Path
from typing import Any, Protocol

from lookalike.checks import whole_number
from lookalike.cli.command import Group, add_number, add_switch
from lookalike.cli.options.pages import PAGE_OPTIONS, add_page_options
from lookalike.cli.options.sizes import byte_count
from lookalike.cli.terminal.output import warn, warn_left_out
from lookalike.cli.terminal.streams import corpus_of_input, is_standard
from lookalike.corpora import FORMATS, Corpus, open_corpus
from lookalike.corpora.base import MAX_DOCUMENT
from lookalike.corpora.opening import with_pages
from lookalike.corpora.page_rows import MAX_PAGE
from lookalike.corpora.remote import is_address
from lookalike.dedup import ALIASES, DedupSettings
from lookalike.dedup.settings import refuse_idle
from lookalike.errors import ArgumentError, FileError, Said
from lookalike.features.text import STOP_LISTS
from lookalike.signatures import Signer
from lookalike.signatures.estimates import estimated_radius, proposal_radius
from lookalike.storage import is_folder, same_file

_TYPED = "typed_settings"


def add_corpus_options(group: Group, *, or_longest: str = "") -> None:
    """Declare how a corpus is read; `or_longest` is what else may bound a document."""
    group.add_argument("--text", metavar="COLUMN", help="column with the text (default: a guess)")
    group.add_argument("--id", metavar="COLUMN", help="column with ids (default: a guess, or rows)")
    group.add_argument("--format", choices=FORMATS, help="format of the input, if its name lies")
    group.add_argument(
        "--encoding",
        metavar="NAME",
        help="encoding of text files, such as cp1252 or utf-16 (default: detected)",
    )
    add_switch(group, "--skip-bad", "leave out and count rows that cannot be read")
    group.add_argument(
        "--max-document",
        type=byte_count,
        metavar="SIZE",
        help=f"longer documents cannot be read (default {MAX_DOCUMENT >> 20}MiB{or_longest}; web "
        f"pages {MAX_PAGE >> 20}MiB)",
    )
    add_page_options(group)


def settings_fields(*, signs: bool = False, only: Iterable[str] = ()) -> list[Field[Any]]:
    """Return the settings of `dedup`; `signs`: those alone that signatures depend on; `only`: those
    of these names.
    """
    chosen = set(only)
    return [
        one
        for one in fields(DedupSettings)
        if (one.metadata["signs"] or not signs) and (one.name in chosen or not chosen)
    ]


def settings_of(
    options: argparse.Namespace, *, signs: bool = False, only: Iterable[str] = ()
) -> dict[str, Any]:
    """Return what options say of `settings_fields`, stop words as they are in their file."""
    chosen = {
        one.name: getattr(options, one.name) for one in settings_fields(signs=signs, only=only)
    }
    if chosen.get("stop_words") is not None and chosen["stop_words"] not in STOP_LISTS:
        chosen["stop_words"] = _stop_words(Path(chosen["stop_words"]))
    return chosen


def _stop_words(path: Path) -> list[str]:
    """Return the words of a file, one a line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        raise FileError(
            f"--stop-words is {path}, which cannot be read: {reason}; expected "
            f"{', '.join(STOP_LISTS)}, or a file with a word on each line"
        ) from None
    return [line.strip() for line in lines if line.strip()]


def add_settings(group: Group, *, signs: bool = False, only: Iterable[str] = ()) -> None:
    """Declare options for `settings_fields`, with their defaults and what they say of themselves.

    A setting that is on gets an option that turns it off, one that is off an option that turns it
    on.
    """
    for setting in settings_fields(signs=signs, only=only):
        name, help = setting.name, setting.metadata["help"]
        if setting.default is True:
            group.add_argument(f"--no-{name}", dest=name, action="store_false", help=help)
            continue
        if setting.default is False:
            group.add_argument(f"--{name}", dest=name, action="store_true", help=help)
            continue
        names = [name, *(alias for alias, meant in ALIASES.items() if meant == name)]
        spelt = [f"--{one.replace('_', '-')}" for one in names]
        spelt += [f"--{one}" for one in names[1:] if "_" in one]
        group.add_argument(
            *spelt,
            action=_Noted,
            dest=name,
            default=setting.default,
            help=help,
            **setting.metadata["option"],
        )


def check_settings(options: argparse.Namespace) -> None:
    """Refuse settings that were typed and do nothing, be it with their default."""
    refuse_idle(vars(options), getattr(options, _TYPED, ()))


def typed_settings(options: argparse.Namespace) -> list[str]:
    """Return the settings that were typed, be it with their defaults, by name."""
    return sorted(getattr(options, _TYPED, ()))


class _Noted(argparse._StoreAction):
    """Keeps a value, and that it was typed."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        super().__call__(parser, namespace, values, option)
        setattr(namespace, _TYPED, {*getattr(namespace, _TYPED, ()), self.dest})


def add_threshold(group: Group) -> None:
    """Declare a similarity in place of a number of bits."""
    group.add_argument(
        "--threshold",
        type=float,
        metavar="T",
        help="least similarity, as signatures estimate it, from 0 to 1",
    )


def radius_of(
    options: argparse.Namespace, signer: Signer | None, bits: int, *, proposing: bool = False
) -> int | None:
    """Return in how many bits an answer may differ: --radius, or what --threshold comes to.

    That is farther if signatures are `proposing` what is then compared.
    """
    if options.threshold is None:
        if options.radius is None:
            return None
        return whole_number("radius", options.radius, at_least=0)
    if signer is None:
        raise ArgumentError(
            Said("--threshold"),
            " needs to know how documents were signed, which is not known here; give --radius",
        )
    radius = proposal_radius if proposing else estimated_radius
    return radius(signer, options.threshold, bits)


def add_threads(group: Group) -> None:
    """Declare the number of threads."""
    add_number(group, "--threads", "threads (default: all cores)")


def corpus_of(paths: list[str], options: argparse.Namespace) -> Corpus:
    """Open the corpus that arguments name, to be read as options say; `-` is standard input.

    What people should know of it is printed.
    """
    if len(paths) > 1 and any(map(is_address, paths)):
        raise ArgumentError("an address such as s3://... has to be the only input; give it alone")
    format, encoding = (getattr(options, name, None) for name in ("format", "encoding"))
    html, limits = (getattr(options, name, None) for name in PAGE_OPTIONS)
    if any(map(is_standard, paths)):
        corpus = corpus_of_input(paths, format, getattr(options, "work", None), encoding)
    else:
        source = paths[0] if len(paths) == 1 else [Path(path) for path in paths]
        corpus = open_corpus(source, format, encoding=encoding)
    if html is not None or limits is not None:
        corpus = with_pages(corpus, html, limits)
    for notice in corpus.notices:
        warn(notice, kind="")
    corpus.notices = ()
    if getattr(options, "max_document", None) is not None:
        corpus.max_document = whole_number("max_document", options.max_document, at_least=1)
    return corpus


class Read(Protocol):
    """What commands know of a corpus that was read."""

    @property
    def bad_rows(self) -> int:
        """Rows that could not be read."""

    @property
    def binary_files(self) -> int:
        """Files of a folder that are not text."""

    @property
    def left_out(self) -> Mapping[str, int]:
        """Documents that were left out for other reasons, by kind."""

    @property
    def examples(self) -> Sequence[str]:
        """Some of these, with the reason."""

    @property
    def notices(self) -> Sequence[str]:
        """What people should know of how files were read."""


def warn_read(read: Read) -> None:
    """Print what people should know of how a corpus was read, and what was left out."""
    for notice in read.notices:
        warn(notice, kind="")
    warn_left_out(read.bad_rows + read.binary_files + sum(read.left_out.values()), read.examples)


def check_folder(path: Path | None) -> None:
    """Refuse to write where there is no folder, before the work is done."""
    if path is not None and len(path.parts) > 1 and path.parts[0].endswith(":"):
        raise FileError(
            f"{path} is an address, to which this command cannot write. Write a local file and "
            "copy it: aws s3 cp FILE s3://..."
        )
    if path is not None and not is_folder(path.absolute().parent):
        raise FileError(f"{path}: there is no folder {path.absolute().parent}; make it first")


def check_not_read(option: str, output: Path | None, inputs: Iterable[Path]) -> None:
    """Refuse to write over what is read, by whatever name."""
    if output is not None and same_file(output, inputs) is not None:
        raise ArgumentError(f"{option} is {output}, which is read; give another name")
