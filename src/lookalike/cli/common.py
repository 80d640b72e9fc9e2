"""What several commands share: options for corpora and settings, and checks of files."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import Field, fields
from glob import has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from lookalike.checks import is_address, whole_number
from lookalike.cli.parser import (
    ADVANCED,
    VALUES,
    Parser,
    RegisteredNames,
    share_of_one,
    share_or_word,
)
from lookalike.cli.terminal import STANDARD, check_read_once, is_standard, say, warn, warn_left_out
from lookalike.corpora import FORMATS, Corpus, open_corpus
from lookalike.corpora.base import MAX_DOCUMENT, MAX_PAGE
from lookalike.corpora.columns import Columns, Filters, columns_for, filtered, find_columns
from lookalike.corpora.opening import with_pages
from lookalike.corpora.writing import check_outside_folder
from lookalike.dedup.settings import ALIASES, DedupSettings, refuse_idle
from lookalike.errors import ArgumentError, FileError, Said
from lookalike.features.stop_words import STOP_LISTS
from lookalike.pages import PageLimits
from lookalike.shown import escape_terminal
from lookalike.signatures import Signer
from lookalike.signatures.estimates import estimated_radius, proposal_radius
from lookalike.signatures.signer import DocumentSigner
from lookalike.storage.files import check_replaceable, is_folder, is_there, same_file

if TYPE_CHECKING:
    from lookalike.common_passages.results import Overlaps, Passages
    from lookalike.corpora.signing import SignedCorpus

_FILTERS = (
    "min_words",
    "max_repetition",
    "language",
    "min_links",
    "strip_urls",
    "min_bytes",
)
COLLECTION_METHOD = "simhash"
"""Signature method of a collection of texts by default."""
_TYPED = "typed_settings"
_LIMITS = {one.name: one.default for one in fields(PageLimits)}


def page_limits(text: str) -> PageLimits:
    """Return limits as they are typed, such as depth=2000,seconds=30."""
    given: dict[str, int] = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        if name not in _LIMITS or not value.isdecimal():
            raise ArgumentError(
                f"{part!r} is not a page limit; expected {', '.join(_LIMITS)}, each as "
                "name=number, separated by commas"
            )
        given[name] = int(value)
    return PageLimits(**given)


VALUES |= {"FORMAT": RegisteredNames(FORMATS), "LIMITS": page_limits}


INPUT = "  input:INPUT...       files, folders, patterns, or - for standard input"
FORMAT = f"""\
  --format FORMAT      {", ".join(FORMATS.names())}; text: a document per line,
                       files: one per file (default: from the file extension)"""
CORPUS = f"""\
  --text COLUMN        column with the document text (default: detected)
  --id COLUMN          column with ids (default: detected, or row numbers)
{FORMAT}"""
STRIP_URLS = "  --strip-urls         ignore URLs when comparing texts"
FILTERS = f"""\
  --min-words N        skip documents with fewer words
  --min-bytes SIZE     skip smaller texts, and web pages with less HTML, such as 5KB
  --max-repetition SHARE  skip documents that repeat a larger share of their runs of five words
  --min-links N        skip pages with fewer links, and texts with fewer URLs
  --language CODES     skip documents in other languages than these, such as en or en,de
{STRIP_URLS}"""


def corpus_details(or_longest: str = "") -> str:
    """Return rarely used options for reading; `or_longest` is what else may limit a document."""
    limits = ",".join(f"{name}={value}" for name, value in _LIMITS.items())
    longest = f"{MAX_DOCUMENT >> 20}MiB{or_longest}; web pages {MAX_PAGE >> 20}MiB"
    return f"""\
  --encoding NAME      encoding of text files, such as cp1252 or utf-16 (default: detected)
  --skip-bad           skip and count rows that cannot be read (default: stop with an error)
  --html COLUMN        column with web pages; their main text is compared
  --max-document SIZE  longest document to read (default: {longest})
  --page-limits LIMITS  largest web page to parse (default: {limits})"""


CORPUS_DETAILS = corpus_details()


def settings_fields(*, signs: bool = False, only: Iterable[str] = ()) -> list[Field[Any]]:
    """Return the settings of `dedup`, or those that signatures depend on, or of these names."""
    chosen = set(only)
    return [
        one
        for one in fields(DedupSettings)
        if (one.metadata["signs"] or not signs) and (one.name in chosen or not chosen)
    ]


def settings_of(
    options: argparse.Namespace, *, signs: bool = False, only: Iterable[str] = ()
) -> dict[str, Any]:
    """Return what options say of `settings_fields`, stop words as they are in their file.

    Jobs and signers of a corpus choose features by the lengths of documents; others take words.
    """
    only = list(only)
    chosen = {
        one.name: getattr(options, one.name) for one in settings_fields(signs=signs, only=only)
    }
    if only and chosen.get("features", "") is None:
        chosen["features"] = "words"
    if chosen.get("stop_words") is not None and chosen["stop_words"] not in STOP_LISTS:
        chosen["stop_words"] = _stop_words(Path(chosen["stop_words"]))
    return chosen


def _stop_words(path: Path) -> list[str]:
    """Return the words of a file, one a line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise FileError(
            f"--stop-words {path} cannot be read: {reason}; expected {', '.join(STOP_LISTS)}, or "
            "a file with one word per line"
        ) from None
    return [line.strip() for line in lines if line.strip()]


_READERS: dict[object, Callable[[str], Any]] = {float: share_of_one, float | str: share_or_word}


def add_settings(
    parser: Parser,
    title: str,
    usual: Collection[str] = (),
    *,
    signs: bool = False,
    only: Iterable[str] = (),
) -> None:
    """Declare an option for each of `settings_fields`; all but the `usual` ones are advanced."""
    for setting in settings_fields(signs=signs, only=only):
        name, help = setting.name, setting.metadata["help"]
        group = parser.group(title if name in usual else ADVANCED)
        if isinstance(setting.default, bool):
            typed, action = ("no-", "store_false") if setting.default else ("", "store_true")
            group.add_argument(f"--{typed}{name}", dest=name, action=action, help=help)
            continue
        names = [name, *(alias for alias, meant in ALIASES.items() if meant == name)]
        spelt = [f"--{one.replace('_', '-')}" for one in names]
        spelt += [f"--{one}" for one in names[1:] if "_" in one]
        option = setting.metadata["option"]
        about = {"action": _Noted, "dest": name, "default": setting.default, "help": help, **option}
        if "choices" in option:
            about["metavar"] = "|".join(option["choices"])
        if option.get("type") in _READERS:
            about["type"] = _READERS[option["type"]]
        group.add_argument(*spelt, **about)


def check_settings(options: argparse.Namespace) -> None:
    """Refuse settings that were typed and have no effect, even with their default value."""
    refuse_idle(vars(options), getattr(options, _TYPED, ()))


def typed_settings(options: argparse.Namespace) -> list[str]:
    """Return the names of the settings that were typed, even with their default value."""
    return sorted(getattr(options, _TYPED, ()))


class _Noted(argparse._StoreAction):
    """Keeps a value, and that it was typed."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        super().__call__(parser, namespace, values, option)
        setattr(namespace, _TYPED, {*getattr(namespace, _TYPED, ()), self.dest})


def radius_of(
    options: argparse.Namespace, signer: Signer | None, bits: int, *, proposing: bool = False
) -> int | None:
    """Return the Hamming radius: --radius, or the radius of --threshold.

    It is larger if signatures are only `proposing` what is then compared.
    """
    if options.threshold is None:
        given = options.radius
        return None if given is None else whole_number("radius", given, at_least=0)
    if signer is None:
        raise ArgumentError(
            Said("--threshold"),
            " needs the signer of the documents, which is not known here; use --radius",
        )
    radius = proposal_radius if proposing else estimated_radius
    return radius(signer, options.threshold, bits)


def corpus_of(
    paths: list[str], options: argparse.Namespace, *, whole_files: bool = False
) -> Corpus:
    """Open the corpus that arguments name, as options say, and print its notices."""
    if len(paths) > 1 and any(map(is_address, paths)):
        raise ArgumentError("an address such as s3://... must be the only input")
    format, encoding = (getattr(options, name, None) for name in ("format", "encoding"))
    html, limits = (getattr(options, name, None) for name in ("html", "page_limits"))
    if any(map(is_standard, paths)):
        corpus = corpus_of_input(paths, format, getattr(options, "work", None), encoding)
    else:
        source = paths[0] if len(paths) == 1 else [Path(path) for path in paths]
        last, output = paths[-1], getattr(options, "output", "")
        if len(paths) > 1 and output is None and not (has_magic(last) or is_there(last)):
            raise ArgumentError(f"{last} does not exist; to write there, use -o {last}")
        corpus = open_corpus(source, format, encoding=encoding, whole_files=whole_files)
    if html is not None or limits is not None:
        corpus = with_pages(corpus, html, limits)
    for notice in corpus.notices:
        warn(notice, kind="")
    corpus.notices = ()
    if getattr(options, "max_document", None) is not None:
        corpus.max_document = whole_number("max_document", options.max_document, at_least=1)
    return corpus


def signed_corpus(
    paths: list[str], options: argparse.Namespace, signer: DocumentSigner
) -> tuple[Corpus, Columns]:
    """Return the corpus that options describe, and the columns of it that a signer reads."""
    corpus = corpus_of(paths, options)
    columns = find_columns(corpus, options.text, options.id)
    columns = columns_for(corpus, columns, signer.features)
    return filtered(corpus, columns, filters_of(options)), columns


def megabytes(source: Corpus | Sequence[Path]) -> float:
    """Return the size of the files of a corpus, as far as it is known."""
    size = 0
    for path in source.files if isinstance(source, Corpus) else source:
        with suppress(OSError):
            size += path.stat().st_size if path.is_file() else 0
    return size / 1e6


def reading_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return how a job reads a corpus."""
    return {name: getattr(options, name) for name in ("text", "id", "skip_bad", "threads")}


def corpus_of_input(
    names: Sequence[str], format: str | None, within: Path | None, encoding: str | None = None
) -> Corpus:
    """Return the corpus of standard input and files beside it, in the order of their names."""
    from lookalike.corpora.standard_input import open_standard_input  # it takes some time to import

    check_read_once(names)
    place = list(names).index(STANDARD)
    before, after = (list(map(Path, part)) for part in (names[:place], names[place + 1 :]))
    return open_standard_input(standard_input(), before, after, format, within, encoding)


def standard_input() -> BinaryIO:
    """Return standard input; a notice says that it is read if it is a terminal."""
    if sys.stdin is None:
        raise FileError("standard input is closed; pass a file")
    if sys.stdin.isatty():
        warn("reading standard input; Ctrl-D ends it", kind="")
    return sys.stdin.buffer


def warn_read(read: SignedCorpus | Overlaps | Passages) -> None:
    """Print notices about how a corpus was read, and what was skipped."""
    for notice in read.notices:
        warn(notice, kind="")
    warn_left_out(read.bad_rows + read.binary_files + sum(read.left_out.values()), read.examples)


def say_summary(options: argparse.Namespace, text: str) -> None:
    """Print a summary and where rows were written; to standard error if they were printed."""
    if options.output is None:
        say(text, file=sys.stderr)
    else:
        say(f"{text}: {escape_terminal(options.output)}")


def check_output(
    option: str, path: Path | None, inputs: Iterable[Path], root: Path | None = None
) -> None:
    """Refuse an output that cannot be written, or would replace an input, before the work."""
    if path is not None:
        check_folder(path)
        check_outside_folder(root, path)
        check_not_read(option, path, inputs)
        check_replaceable(path)


def check_folder(path: Path | None) -> None:
    """Refuse to write where there is no folder, before the work is done."""
    if path is not None and len(path.parts) > 1 and path.parts[0].endswith(":"):
        raise FileError(
            f"{path} is an address, and this command writes local files only. Write a file and "
            "copy it: aws s3 cp FILE s3://..."
        )
    if path is not None and not is_folder(path.absolute().parent):
        raise FileError(f"{path}: the folder {path.absolute().parent} does not exist")


def check_not_read(option: str, output: Path | None, inputs: Iterable[Path]) -> None:
    """Refuse to write over what is read, by whatever name."""
    if output is not None and same_file(output, inputs) is not None:
        raise ArgumentError(f"{option} is {output}, which is also an input; choose another name")


def filters_of(options: argparse.Namespace) -> Filters:
    """Return which documents are wanted."""
    given = {name: getattr(options, name, None) for name in _FILTERS}
    return Filters(**{name: value for name, value in given.items() if value is not None})
