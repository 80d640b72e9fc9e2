"""`lookalike dedup` for folders of images or recordings."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Container, Iterable, Sequence
from functools import partial
from inspect import signature
from itertools import combinations
from pathlib import Path
from typing import Any

from lookalike.checks import is_address
from lookalike.cli.options import check_folder, check_not_read, output_name, publish, typed_settings
from lookalike.cli.parser import Group, add_switch
from lookalike.cli.terminal import is_standard, progress_bars, say, say_json, warn, warn_left_out
from lookalike.corpora import check_table_target
from lookalike.corpora.opening import expand_paths
from lookalike.corpora.writing import check_outside_folder
from lookalike.dedup.media.job import run_media_job
from lookalike.dedup.media.kinds import DOCUMENTS, KINDS, kind_of, medium_of
from lookalike.dedup.media.medium import Problem
from lookalike.dedup.media.result import MediaResult
from lookalike.dedup.media.write import check_list, check_survivors
from lookalike.errors import ArgumentError, FileError, Said
from lookalike.images.bits import KINDS as HASHES
from lookalike.shown import shown
from lookalike.storage import check_replaceable, same_file

_OF_DOCUMENTS = (
    *("text", "id", "format", "skip_bad", "max_document", "html", "page_limits", "against"),
    *("min_words", "language", "min_links", "strip_urls", "in_place", "save_signatures", "work"),
    *("memory_limit", "device", "engine", "verify", "exact", "vectors"),
    *("max_pairs", "collapse", "encoding"),
)
_NAMED = 20
"""Files that were left out, of which the names are printed."""


def add_kind(group: Group) -> None:
    """Declare what the input is taken for."""
    group.add_argument(
        "--kind",
        choices=("auto", *KINDS),
        default="auto",
        help="what is compared; auto: images or recordings if more than half of all files are, by "
        "what they begin with, else documents (default auto)",
    )


def add_hash(group: Group) -> None:
    """Declare how images are hashed."""
    group.add_argument(
        "--hash",
        choices=HASHES,
        help="of images: dct (waves) unless told, or gradient (steps of brightness)",
    )


def add_media_options(group: Group) -> None:
    """Declare what only kinds other than documents have."""
    add_hash(group)
    add_switch(group, "--rotated", "find images that were turned or mirrored, too")


def add_dropped(group: Group) -> None:
    """Declare a list of files that could go."""
    group.add_argument(
        "--dropped",
        type=output_name,
        metavar="FILE",
        help="a list of images or recordings that could go, with what stands for each; nothing is "
        "deleted",
    )


def media_kind(options: argparse.Namespace) -> str | None:
    """Return the kind that the input is of; None for documents."""
    if options.kind != "auto":
        return None if options.kind == DOCUMENTS else str(options.kind)
    engine = getattr(options, "engine", ("local", None))
    told = options.format or options.text or options.html or engine[0] != "local"
    told = told or getattr(options, "vectors", None)
    if told or any(is_standard(path) or is_address(path) for path in options.input):
        return None
    try:
        kind = kind_of(expand_paths(options.input))
    except FileError:
        return None  # whoever reads documents says the same
    return None if kind == DOCUMENTS else kind


def tell_kind(options: argparse.Namespace, kind: str) -> None:
    """Print what the input was taken for, unless that was said."""
    if options.kind == "auto":
        named = options.input[0] if len(options.input) == 1 else "the input"
        warn(f"{shown(named)} has mostly {kind}; --kind documents takes it for texts", kind="")


def refuse_media_options(options: argparse.Namespace) -> None:
    """Refuse options that do nothing for documents."""
    for name in ("hash", "rotated", "dropped"):
        if getattr(options, name, None):
            raise ArgumentError(Said(name), " goes with --kind images; leave it out")


def run_on_media(options: argparse.Namespace, kind: str) -> None:
    """Compare the files, write what was asked for, print the summary."""
    medium = medium_of(kind)
    known = set(signature(medium).parameters)
    refuse_idle_for(options, kind, known)
    if options.annotate and options.output is None:
        raise ArgumentError(Said("--annotate"), " needs a file to write to: -o FILE")
    paths = expand_paths(options.input)
    _check_outputs(options, paths)
    settings = {
        name: value for name in known if (value := getattr(options, name, None)) is not None
    }
    chosen = medium(**settings)
    tell_kind(options, kind)
    with progress_bars(options.quiet or options.json) as progress:
        result = run_media_job(paths, chosen, threads=options.threads, progress=progress)
        start = time.perf_counter()
        written = _write(options, result)
    if written:
        result.seconds["write"] = time.perf_counter() - start
    if options.json:
        say_json({**result.to_dict(), "written": written})
    elif not options.quiet:
        say(result.summary())
        if written:
            say()
        for what, path in written.items():
            say(f"  {what}: {shown(path)}")
    warn_problems(result.problems)


def warn_problems(problems: Sequence[Problem]) -> None:
    """Print which files were left out, or some of them, and why."""
    told = [shown(f"{problem.path}: {problem.reason}", 500) for problem in problems[:_NAMED]]
    warn_left_out(len(problems), told)


def refuse_idle_for(
    options: argparse.Namespace, kind: str, known: Container[str], more: Iterable[str] = ()
) -> None:
    """Refuse options that do nothing for files of this kind: all that documents have, and `more`,
    but for those `known`.
    """
    unsaid = {"verify": True, "device": "cpu", "engine": ("local", None)}
    for name in [*typed_settings(options), "hash", "rotated", *_OF_DOCUMENTS, *more]:
        value = getattr(options, name, None)
        was_said = value != unsaid[name] if name in unsaid else value not in (None, False, 0)
        if name not in known and value is not None and was_said:
            raise ArgumentError(Said(name), f" does nothing for {kind}; leave it out")


def _check_outputs(options: argparse.Namespace, paths: Sequence[Path]) -> None:
    """Refuse what can be seen to fail, before the work is done."""
    wanted = {
        name: getattr(options, name)
        for name in ("output", "dropped", "pairs", "report")
        if getattr(options, name) is not None
    }
    checks = {
        "output": check_table_target if options.annotate else check_survivors,
        "dropped": check_list,
        "pairs": check_table_target,
        "report": check_replaceable,
    }
    for name, path in wanted.items():
        if is_standard(path):
            raise ArgumentError(
                Said(name), " is -; expected the name of a file, or of a new folder"
            )
        check_folder(path)
        for folder in paths:
            check_outside_folder(folder if folder.is_dir() else None, path)
        check_not_read(f"--{name}", path, [file for file in paths if not file.is_dir()])
        checks[name](path)
    if any(
        one.resolve() == two.resolve() or same_file(one, [two])
        for one, two in combinations(wanted.values(), 2)
    ):
        raise ArgumentError("two outputs have the same name; give each its own")


def _write(options: argparse.Namespace, result: MediaResult) -> dict[str, str]:
    """Write the files; return what is where."""
    kept, write = ("annotated files", result.write_annotated)
    if not options.annotate:
        kept, write = ("files that stay", result.write)
    jobs: list[tuple[str, Path | None, Callable[[Path], Any]]] = [
        (kept, options.output, write),
        ("files that could go", options.dropped, result.write_dropped),
        ("pairs", options.pairs, result.write_pairs),
        ("report", options.report, partial(result.report, command=options.command_line)),
    ]
    written = {}
    for what, path, job in jobs:
        if path is not None:
            job(path)
            written[what] = publish(options, path)
    return written
