"""`lookalike dedup`: a corpus or a folder in; kept items, groups and a report out."""

from __future__ import annotations

import argparse
import io
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from inspect import signature
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lookalike.checks import is_address, whole_number, without_secret
from lookalike.cli import common, kinds
from lookalike.cli.engines import Output, SparkRun, add_engine, check_folders, on_spark
from lookalike.cli.parser import BETWEEN, Parser, refuse_given
from lookalike.cli.terminal import (
    check_read_once,
    is_standard,
    say,
    say_json,
    standard_output,
    warn,
    warn_left_out,
)
from lookalike.corpora import Corpus, check_table_target, check_target, format_of, open_corpus
from lookalike.corpora.lengths import SHORT_CHARACTERS, SHORT_SHARE
from lookalike.corpora.opening import expand_paths, with_old_pages
from lookalike.corpora.writing import check_outside_folder, is_written_as_folder
from lookalike.dedup import dedup
from lookalike.dedup.kinds import SPARK, TEXT, VECTORS, medium_with, refuse, support_lines, supports
from lookalike.dedup.old import is_collection, is_signed
from lookalike.dedup.result import MediaResult, TextResult
from lookalike.dedup.settings import DEVICES, FILE_RULES, RULES, DedupSettings
from lookalike.dedup.write import check_file_list, check_kept_files, is_folder_name
from lookalike.errors import (
    ArgumentError,
    FileError,
    LookalikeError,
    ResultTooLargeError,
    Said,
)
from lookalike.features.choice import SHORT_NGRAM
from lookalike.indexes.base import DEFAULT_LIMIT
from lookalike.media import Medium
from lookalike.progress import progress_bars
from lookalike.shown import counted, escape_terminal
from lookalike.signatures.methods import usual_ngram
from lookalike.storage.files import check_replaceable, is_folder, is_there, same_file

if TYPE_CHECKING:
    from lookalike.dedup.result import AnyResult
    from lookalike.storage.changes import Changes

_SIGNATURES = ".lookalike"
_OUTPUTS = ("output", "pairs", "report", "save_signatures", "dropped")

_NGRAM = usual_ngram("minhash")

TASK = "remove duplicates"
PURPOSE = "remove near-duplicates from a corpus or a folder of files"
DESCRIPTION = """\
Find groups of equal and nearly equal items, keep one item of each group, write
the kept items, and print a summary."""
ARGUMENTS = f"""
{common.INPUT}
input:
{common.CORPUS}
{kinds.KIND}
  --vectors COLUMN     compare the vectors in this column, by cosine
  --against OLD        drop what is in OLD: a corpus, files, signatures, or a collection
comparison:
output:
  -o --output TARGET   kept items: a file, a folder, an s3:// address, or -
  --in-place           replace the input file by the kept documents
  --dry-run            print the summary, but write no file
  --annotate           write all items to -o, with columns group_id, duplicate_of, similarity
  --pairs TARGET       write the verified pairs to this file
  --report TARGET      write an HTML report to this file
  --dropped TARGET     write a list of the dropped images or recordings
  --json
  --quiet
resources:
  --work FOLDER        keep intermediate results here, to resume a job
  --memory-limit SIZE  memory for the job, such as 8GB (default: not limited)
  --threads
advanced options:
{common.corpus_details(", or a 40th of --memory-limit")}
{common.FILTERS}
  --save-signatures TARGET  write the signatures of kept documents, for --against
  --journal TARGET     new file for the journal of --apply (default: named by date and time)
{kinds.HASH}
  --rotated            also find rotated and mirrored images and videos
{kinds.NO_CACHE}
  --recall SHARE       probability that a pair of vectors at the threshold is found (default: 0.999)
  --max-pairs N        stop with an error if --pairs would get more pairs (default:
                       {DEFAULT_LIMIT:,})
  --collapse           with --exact: in --pairs, pair each copy only with the first copy
  --device {"|".join(DEVICES)}=cpu  search pairs of signatures on the CPU or a CUDA GPU
"""
EXAMPLES = """\
  lookalike dedup corpus.jsonl -o unique.jsonl
  lookalike dedup photos/ --report photos.html --apply move copies/
  lookalike dedup today.jsonl --against yesterday.jsonl -o new.jsonl
"""
DETAILS = f"""\
A folder of mostly images or recordings is compared by content. Nothing is deleted: -o lists or
copies the kept files. An input is replaced only with --in-place, after everything is written.

--against OLD takes a corpus, or files of the kind that is compared. It also takes a file of
`lookalike sign` or --save-signatures, an index, and a collection (docs.db,
postgresql://HOST/DATABASE). Images in these are compared by their hashes alone. With --hash pdq, it
takes a list of PDQ hashes.

What was read of images, recordings and videos is kept in the user's cache folder (at most 1 GiB),
or in --work FOLDER. So unchanged files are not read again.

--apply, for images and recordings, changes the dropped files after everything is written:
  move DIR          move them to DIR, under the paths that they have in the folder
  trash             move them to the trash of the desktop
  hardlink          replace those that are equal to the kept file by a hard link to it
  symlink           replace those that are equal to the kept file by a symbolic link to it
  A file that has changed since it was read, or whose kept file has, is left alone. --dry-run shows
  what would be done. `lookalike undo JOURNAL` undoes it, also after a crash.

near-duplicates:
  two documents whose exact similarity is at least --threshold: Jaccard similarity of word
  {_NGRAM}-grams (minhash), or cosine of word n-gram counts (simhash, topsig). Signatures propose
  pairs; with --exact, every pair is found. Images: hashes that differ in at most --radius bits.
  If {SHORT_SHARE:.0%} of the documents have at most {SHORT_CHARACTERS} characters, minhash compares
  runs of {SHORT_NGRAM} characters instead (--features short). Then documents with different
  numbers or codes (such as units) are different.
  Each dropped document was compared with a kept one (or one in OLD), and no two kept documents are
  known near-duplicates. Exceptions are --grouping components, --keep none and --no-verify.

--keep RULE:
  documents and vectors: {", ".join(RULES)} (drop the whole group), max:COLUMN, min:COLUMN;
  vectors have no lengths. Files: {", ".join(FILE_RULES)},
  path:PATTERN (files that match are kept before others), max:COLUMN, min:COLUMN

options by kind, and with --engine spark; others are refused:
{support_lines()}

more in docs/deduplicating.md, docs/images.md, docs/recordings.md, docs/vectors.md, docs/spark.md

more examples:
  lookalike dedup corpus.jsonl --in-place --dry-run
  zcat crawl.jsonl.gz | lookalike dedup - -o - | gzip > unique.jsonl.gz
  lookalike dedup today.jsonl --against seen.lookalike --save-signatures seen.lookalike -o new.jsonl
"""

_LISTED = 20
"""Files that are printed by name."""
_LISTED_BYTES = 256 << 20
"""Of names of files on standard input."""
_HELD_BYTES, _HELD_SHARE = 128 << 20, 64
"""Of rows that will be written, held since they were read; and the share of a memory limit."""


def add(parser: Parser) -> None:
    """Declare the settings, what is done to files, and the engine."""
    parser.two_words = {"--apply": ["move"]}
    common.add_settings(parser, "comparison", ("threshold", "method", "exact", "keep"))
    parser.group("output").add_argument(
        "--apply",
        type=_action,
        metavar="ACTION",
        help="move DIR, trash, hardlink or symlink the dropped files; `lookalike undo` undoes it",
    )
    add_engine(parser)


def _action(text: str) -> tuple[str, Path | None]:
    """Return an action on dropped files, and its folder."""
    from lookalike.storage.changes import ACTIONS  # most jobs change no files

    action, _, folder = text.partition(BETWEEN)
    if action not in ACTIONS:
        expected = ", ".join(one if one != "move" else "move DIR" for one in ACTIONS)
        raise ArgumentError(Said("apply"), f" is {action!r}; expected {expected}")
    if action == "move" and (not folder or folder.startswith("-")):
        raise ArgumentError(Said("apply"), " move needs a folder: --apply move DIR")
    return action, Path(folder) if folder else None


def run(options: argparse.Namespace) -> None:
    """Run the job, write the outputs, print the summary."""
    typed = {name: getattr(options, name) for name in _OUTPUTS}
    options.folder_names = [
        name for name, one in typed.items() if isinstance(one, str) and not is_address(one)
    ]
    for name in options.folder_names:
        setattr(options, name, Path(typed[name]))
    with _uploads(options):
        _run(options)


@contextmanager
def _uploads(options: argparse.Namespace) -> Iterator[None]:
    """Replace addresses in options by local paths; `_publish` uploads what was written there.

    The addresses are checked at once. Errors name them. Spark writes to addresses by itself.
    """
    options.uploads = {}
    options.command_line = [without_secret(word) for word in options.command_line]
    if options.engine[0] == SPARK:
        yield
        return
    used: list[object] = [*options.input, options.against]
    with ExitStack() as left:
        for option in _OUTPUTS:
            address = getattr(options, option)
            if isinstance(address, str):
                from lookalike.corpora.remote import Upload

                upload = left.enter_context(Upload(address, used))
                used.append(address)
                options.uploads[upload.path] = upload
                setattr(options, option, upload.path)
        try:
            yield
        except LookalikeError as error:
            for path, upload in options.uploads.items():
                error.args = tuple(
                    part.replace(str(path), upload.shown) if isinstance(part, str) else part
                    for part in error.args
                )
            raise


def _run(options: argparse.Namespace) -> None:
    kind, typed = kinds.input_kind(options), kinds.typed_options(options)
    if options.kind == "auto" and not all(supports(kind, one) for one in typed):
        # The kind of a missing file is not known.
        named = [one for one in options.input if not (is_standard(one) or is_address(one))]
        expand_paths(named or ["."])
    refuse(kind, typed, vars(options))
    if kind == TEXT:
        common.check_settings(options)
    if on_spark(options):
        _run_on_spark(options)
        return
    source: Corpus | list[Path]
    old: Path | str | Corpus | list[Path] | None = None
    if kind in (TEXT, VECTORS):
        check_read_once([*options.input, options.against])
        old = before = _old(options)
        source = common.corpus_of(options.input, options)
        if options.in_place and options.output is None:
            options.output = _only_file(source)
        _check_row_outputs(options, source, before)
        if options.output is not None and kind == TEXT:
            source.room = min(_HELD_BYTES, (options.memory_limit or sys.maxsize) // _HELD_SHARE)
    else:
        source = expand_paths(_with_listed(options.input))
        read = list(source)
        if options.against is not None and is_signed(options.against):
            old = options.against
            read += [] if is_address(options.against) else [Path(options.against)]
        elif options.against is not None:
            old = expand_paths([options.against])
            read += old
        _check_apply(options, read)
        _check_file_outputs(options, read)
    arguments = _arguments(options, kind, typed)
    chosen = kind if kind in (TEXT, VECTORS) else medium_with(kind, arguments)
    if isinstance(chosen, Medium):
        kinds.tell_medium(options, chosen)
    size = common.megabytes(source)
    with progress_bars(options.quiet or options.json, size) as progress:
        result = dedup(source, kind=chosen, against=old, progress=progress, **arguments)
        written = _write(options, result, progress)
    more: dict[str, Any] = {}
    if options.apply is not None:
        action, folder = options.apply
        applied = result.apply(action, folder, journal=options.journal, dry_run=options.dry_run)
        more = {"applied": applied.to_dict()}
    # Rows are alone on standard output.
    file = sys.stderr if is_standard(options.output) else sys.stdout
    _tell(options, result, written, file=file, **more)
    if options.apply is not None:
        _tell_applied(options, applied)
    if isinstance(result, MediaResult):
        kinds.warn_problems(result.problems)
    if isinstance(result, TextResult):
        if not result.counts.documents and not options.quiet:
            warn(f"{escape_terminal(result.source.name)} has no documents")
        counts = result.counts
        left_out = counts.bad_rows + counts.binary_files + counts.left_out
        warn_left_out(left_out, result.documents.examples)


def _tell(
    options: argparse.Namespace, result: Any, written: dict[str, str], file: Any = None, **more: Any
) -> None:
    """Print a summary, and which file has what, the kept items first; or all as JSON."""
    if options.json or options.quiet:
        for warning in result.warnings:
            warn(warning)
    if options.json:
        more |= {"dry_run": True} if options.dry_run else {}
        say_json({**result.to_dict(), "written": written, **more}, file=file)
    if options.json or options.quiet:
        return
    if not _is_empty(result):  # a warning says it
        say(result.summary(), file=file)
    if options.dry_run and written:
        say("\nDry run: nothing was written.", file=file)
    elif options.output is None and not (_is_empty(result) or isinstance(result, MediaResult)):
        items = result.wording().items
        say(f"\nNo {items} were written; -o FILE writes the kept {items}.", file=file)
    elif written:
        say(file=file)
    for what, path in sorted(written.items(), key=lambda one: one[0] in ("pairs", "report")):
        exists = options.dry_run and not is_standard(path) and Path(path).exists()
        replaced = " (would be replaced)" if exists else ""
        say(f"  {what}: {escape_terminal(path)}{replaced}", file=file)


def _is_empty(result: Any) -> bool:
    """Return whether there was no document at all, not even one that was left out."""
    if not isinstance(result, TextResult) or result.warnings:
        return False
    counts = result.counts
    return not (counts.documents or counts.bad_rows or counts.binary_files or counts.left_out)


def _arguments(options: argparse.Namespace, kind: str, typed: Sequence[str]) -> dict[str, Any]:
    """Return the arguments of `la.dedup` that were typed and not used to open the corpus."""
    settings = common.settings_of(options)
    chosen = {one.name: settings[one.name] for one in common.settings_fields() if one.name in typed}
    others = [one for one in signature(dedup).parameters if one not in {*_USED, *settings}]
    given = {name: getattr(options, name, None) for name in others if supports(kind, name)}
    return {**chosen, **{name: value for name, value in given.items() if value is not None}}


_USED = {"kind", "against", "encoding", "html", "page_limits", "save_signatures"}


def _old(options: argparse.Namespace) -> Path | str | Corpus | None:
    """Return what --against names: a file of signatures, a collection, or a corpus."""
    if options.against is None:
        return None
    old, format, encoding = options.against, options.format, options.encoding
    if is_address(old) and is_collection(old):
        return str(old)
    if Path(old).suffix == _SIGNATURES or is_collection(old):
        return Path(old)
    if is_standard(old):
        corpus = common.corpus_of_input([old], format, options.work, encoding)
    else:
        # The format that was given is that of the input; an old file may well tell its own.
        unnamed = format_of(Path(old)) is None
        corpus = open_corpus(old, format if unnamed else None, encoding=encoding)
    return with_old_pages(corpus, options.html, options.page_limits)


def _with_listed(names: Sequence[str]) -> list[str | Path]:
    """Return the names of files, those on standard input in place of -.

    Names on standard input end with a line, or with a zero byte if there is one.
    """
    found: list[str | Path] = []
    for name in names:
        if not is_standard(name):
            found.append(name)
            continue
        check_read_once(names)
        text = common.standard_input().read(_LISTED_BYTES + 1)
        if len(text) > _LISTED_BYTES:
            raise ArgumentError(
                f"the list of files on standard input has more than {_LISTED_BYTES:,} bytes; give "
                "the folder instead"
            )
        end = b"\0" if b"\0" in text else b"\n"
        found += [Path(os.fsdecode(path)) for path in text.split(end) if path]
    return found


def _only_file(corpus: Corpus) -> Path:
    """Return the file to replace."""
    if len(corpus.files) != 1 or corpus.format == "files" or corpus.spool is not None:
        raise ArgumentError(
            f"--in-place replaces one file, but {corpus.name} is not a single file; write "
            "elsewhere with -o FILE"
        )
    return corpus.files[0]


def _check_row_outputs(
    options: argparse.Namespace, corpus: Corpus, old: Path | str | Corpus | None
) -> None:
    """Refuse what can be seen to fail, before the work is done."""
    if options.in_place and same_file(options.output, corpus.files) is None:
        raise ArgumentError(
            f"--in-place replaces the input, but -o is {options.output}; use one of them"
        )
    to_folder = isinstance(options.output, Path) and is_written_as_folder(corpus, options.output)
    paths = _check_outputs(options, "only the kept documents go to standard output", to_folder)
    for path in paths:
        if path is not options.output:
            check_outside_folder(corpus.root, path)
    # Only new signatures may replace the old, and kept documents their input, if that was asked.
    signatures = [old] if isinstance(old, Path) else []
    others = old.files if isinstance(old, Corpus) else []
    common.check_not_read("-o", options.output, [*signatures, *others])
    for name in ("pairs", "report"):
        path = getattr(options, name)
        common.check_not_read(f"--{name}", path, [*corpus.files, *signatures, *others])
    common.check_not_read("--save-signatures", options.save_signatures, [*corpus.files, *others])
    if options.output is not None:
        target = options.output if options.output in paths else io.BytesIO()
        check_target(corpus, target, annotated=options.annotate, in_place=options.in_place)
    if options.pairs is not None:
        check_table_target(options.pairs)
    for path in (options.report, options.save_signatures):
        if path is not None:
            check_replaceable(path)
    if options.save_signatures is not None and options.save_signatures.suffix != _SIGNATURES:
        raise ArgumentError(
            Said("--save-signatures"),
            f" is {options.save_signatures}; expected a name that ends in .lookalike",
        )


def _check_file_outputs(options: argparse.Namespace, paths: Sequence[Path]) -> None:
    """Refuse what can be seen to fail, before the work is done."""
    if is_standard(options.output):
        raise ArgumentError(Said("output"), " is -; expected a file, or a new folder")
    checks: dict[str, Callable[[Path], None]] = {
        "output": check_table_target if options.annotate else check_kept_files,
        "dropped": check_file_list,
        "pairs": check_table_target,
        "report": check_replaceable,
    }
    copied = options.output is not None and not options.annotate and is_folder_name(options.output)
    _check_outputs(options, "a list or a folder cannot go to standard output", copied)
    for name, check in checks.items():
        path = getattr(options, name)
        if path is None:
            continue
        for folder in paths:
            check_outside_folder(folder if folder.is_dir() else None, path)
        common.check_not_read(f"--{name}", path, [file for file in paths if not file.is_dir()])
        check(path)


def _check_apply(options: argparse.Namespace, paths: Sequence[Path]) -> None:
    """Refuse what cannot be done to the dropped files."""
    if options.apply is None:
        refuse_given(options, ("journal",), "needs --apply, which it is for")
        return
    _, folder = options.apply
    for path in paths:
        if folder is not None and path.is_dir():
            check_outside_folder(path, folder)
    if folder is not None and is_there(folder) and not is_folder(folder):
        raise ArgumentError(Said("apply"), f" move needs a folder, and {folder} is a file")
    if options.keep == "none":
        raise ArgumentError(
            Said("apply"),
            " needs a kept file for each dropped one; with --keep none, no similar file is kept",
        )
    if options.journal is not None:
        options.journal = Path(options.journal)
        common.check_folder(options.journal)
        if is_there(options.journal):
            raise FileError(f"--journal {options.journal} exists already; give a new name")


_DONE = {
    "move": "moved",
    "trash": "moved to the trash",
    "hardlink": "replaced by hard links",
    "symlink": "replaced by symbolic links",
}


def _tell_applied(options: argparse.Namespace, applied: Changes) -> None:
    """Print what was done to the dropped files, and which of them were left alone."""
    named = [escape_terminal(f"{one.path}: {one.reason}", 500) for one in applied.left_alone]
    if not (options.json or options.quiet):
        would = "would be " if options.dry_run else ""
        say(f"\n{counted(len(applied.done), 'file')} {would}{_DONE[applied.action]}")
        if options.dry_run:
            for one in applied.to_dict()["done"][:_LISTED]:
                say(f"  {escape_terminal(one['path'])} -> {escape_terminal(one['target'])}")
            if len(applied.done) > _LISTED:
                say(f"  and {len(applied.done) - _LISTED:,} more; --json lists all")
        if applied.journal is not None:
            say(f"  undo it: lookalike undo {escape_terminal(shlex.quote(str(applied.journal)))}")
    for name in named[:_LISTED]:
        warn(name, kind="left alone: ")
    if len(named) > _LISTED:
        warn(f"{len(named) - _LISTED:,} more", kind="left alone: ")


def _check_outputs(options: argparse.Namespace, reason: str, folder: bool) -> list[Path]:
    """Return the files to write, after checks that all kinds share; `folder`: -o is a folder."""
    for name in options.folder_names:
        if not (folder and name == "output"):
            raise ArgumentError(
                Said(name),
                f" is {getattr(options, name)}/, so it names a folder, but a file is written here; "
                "give the name of a file",
            )
    if options.annotate and options.output is None:
        raise ArgumentError(Said("--annotate"), " needs a file to write to: -o FILE")
    if options.max_pairs is not None:
        whole_number("max_pairs", options.max_pairs, at_least=0)
    if options.pairs is None:
        alone = "needs a file of pairs: --pairs FILE"
        refuse_given(options, ("max_pairs", "collapse"), alone)
    for name in _OUTPUTS[1:]:
        if is_standard(getattr(options, name)):
            raise ArgumentError(Said(name), f" is -; expected a file: {reason}")
    outputs = [getattr(options, name) for name in _OUTPUTS]
    paths = [path for path in outputs if path is not None and not is_standard(path)]
    for path in paths:
        common.check_folder(path)
    for one, two in combinations(paths, 2):
        if one.resolve() == two.resolve() or same_file(one, [two]) is not None:
            raise ArgumentError("two outputs have the same name; use different names")
    return paths


_ITEMS = {TEXT: "documents", VECTORS: "rows"}


def _write(options: argparse.Namespace, result: AnyResult, progress: Any) -> dict[str, str]:
    """Write the outputs, timed as one step; return which file has what."""
    items = _ITEMS.get(result.kind, "files")
    kept, write = f"kept {items}", result.write
    if options.annotate:
        kept, write = f"annotated {items}", result.write_annotated
    jobs: list[tuple[str, Path | None, Callable[[Path], object]]] = [
        ("pairs", options.pairs, partial(_write_pairs, options, result)),
        ("report", options.report, partial(result.report, command=options.command_line)),
        # After these: in place, it replaces the input, and the job could not be tried again.
        (kept, options.output, partial(_write_items, write, options.in_place)),
        ("dropped files", options.dropped, lambda path: result.write_dropped(path)),
        # Last: documents whose output failed must not be known when the job is tried again.
        ("signatures", options.save_signatures, lambda path: result.save_signatures(path)),
    ]
    wanted = [(what, path, job) for what, path, job in jobs if path is not None]
    if options.dry_run:
        return {what: _publish(options, path) for what, path, _ in wanted}
    written: dict[str, str] = {}
    start = time.perf_counter()
    for what, path, job in wanted:
        if progress is not None:
            progress("write", len(written) / len(wanted))
        job(path)
        written[what] = _publish(options, path)
    if written:
        result.seconds["write"] = time.perf_counter() - start
        if progress is not None:
            progress("write", 1.0)
    return written


def _publish(options: argparse.Namespace, path: Path) -> str:
    """Upload a file that is for an address, but not in a dry run; return the name to show."""
    upload = options.uploads.get(path)
    if upload is None:
        return str(path)
    if not options.dry_run:
        upload.publish()
    return str(upload.shown)


def _write_pairs(options: argparse.Namespace, result: AnyResult, path: Path) -> None:
    if result.kind != TEXT:
        result.write_pairs(path)
        return
    limit = DEFAULT_LIMIT if options.max_pairs is None else options.max_pairs
    result.write_pairs(path, limit=limit, collapse=options.collapse)


def _write_items(write: Callable[..., int], in_place: bool, path: Path) -> None:
    if is_standard(path):
        with standard_output() as stream:
            write(stream)
    else:
        write(path, **({"in_place": True} if in_place else {}))


def _run_on_spark(options: argparse.Namespace) -> None:
    """Run the job on Spark, write the outputs, print the summary."""
    settings = common.settings_of(options)
    order = DedupSettings(**settings).keep_column  # before anything starts
    check_folders(options, _FOLDERS)
    from lookalike.spark import job
    from lookalike.spark.sources import OldFiles, check_old

    old = None
    if options.against is not None:
        check_old(str(options.against))
        old = OldFiles(str(options.against), options.format, options.skip_bad)
    run = SparkRun.start(options, _FOLDERS, order, options.html)
    corpus = run.corpus
    found = job.dedup(
        corpus.frame,
        text=corpus.text,
        id=corpus.id,
        against=old,
        html=options.html,
        page_limits=options.page_limits,
        work=run.work,
        **vars(common.filters_of(options)),
        **settings,
    )
    bad = corpus.bad + (0 if old is None else old.bad)
    with found:
        if options.pairs is not None:
            _check_pair_count(found.counts.verified_pairs, options)
        kind, rows = "kept documents", Output(options.output, lambda: found.kept)
        if options.annotate:
            kind = "annotated documents"
            rows = Output(options.output, lambda: found.annotated, job.ANNOTATED)
        outputs = {"pairs": Output(options.pairs, lambda: found.pairs), kind: rows}
        started, written = dict(run.seconds), run.write(options, outputs)
        seconds = {**started, **found.seconds, **run.seconds}
    counts = replace(found.counts, bad_rows=bad)
    found = replace(found, counts=counts, seconds=seconds)
    _tell(options, found, written, bad_rows=bad)
    for kind, count in found.left_out.items():
        warn(f"{counted(count, 'document')} left out: {kind}")
    if bad:
        warn(f"{counted(bad, 'bad line')} left out")


_FOLDERS = ("output", "pairs")
"""Options that name new folders with the engine Spark."""


def _check_pair_count(count: int, options: argparse.Namespace) -> None:
    limit = DEFAULT_LIMIT if options.max_pairs is None else options.max_pairs
    if count > limit:
        raise ResultTooLargeError(
            f"there are {count:,} pairs, more than --max-pairs {limit:,}; raise it, leave out "
            "--exact to pair equal texts with their first only, or use --annotate instead"
        )
