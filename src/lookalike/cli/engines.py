"""`--engine`: what commands share that run a job on this machine, or on Apache Spark."""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any, NamedTuple

from lookalike.cli import kinds
from lookalike.cli.parser import ADVANCED, Parser
from lookalike.dedup.kinds import OPTIONS, SPARK, refuse, supports
from lookalike.errors import ArgumentError, Said


def add_engine(parser: Parser) -> None:
    """Declare the option."""
    parser.group(ADVANCED).add_argument(
        "--engine",
        type=_engine,
        default=("local", None),
        metavar="NAME",
        help="local, or spark[=MASTER] for an Apache Spark cluster, such as "
        "spark=spark://HOST:7077; -o is then a new folder (default: local)",
    )


def spark_details(arguments: str, local: Sequence[str] = ()) -> str:
    """Return what is different on Spark, for the details of a command with these arguments.

    `local` are options of the command that only the local engine has, beside those of `OPTIONS`.
    """
    names = [*local, *(name for name in OPTIONS if not supports(SPARK, name))]
    options = [f"--{name.replace('_', '-')}" for name in names]
    listed = [one for one in options if re.search(rf"{one}\b(?!-)", arguments)]
    text = (
        "With --engine spark, the input is one file, folder or pattern of JSON Lines, Parquet, "
        "CSV, TSV or text in UTF-8. Each output is a new folder. The result is that of the local "
        f"engine, with rows in any order. Options that are refused: {' '.join(listed)}. "
        "See docs/spark.md."
    )
    return fill(text, 98, break_on_hyphens=False)


def _engine(text: str) -> tuple[str, str | None]:
    """Return the engine that an option names, and its master."""
    name, _, master = text.partition("=")
    if name not in ("local", SPARK) or (name == "local" and master):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not an engine; expected local, spark, or spark=MASTER"
        )
    return name, master or None


def on_spark(options: argparse.Namespace, local: Sequence[str] = ()) -> bool:
    """Return whether the job runs on Spark; refuse options that Spark does not support."""
    if options.engine[0] != SPARK:
        return False
    for name in local:
        if getattr(options, name) is not None:
            raise ArgumentError(Said(name), " does nothing with --engine spark; leave it out")
    refuse(SPARK, kinds.typed_options(options), vars(options))
    return True


class Output(NamedTuple):
    """Rows that are written."""

    path: Any
    """The folder; None: they are not wanted."""
    rows: Callable[[], Any]
    """Returns the frame."""
    added: Sequence[str] = ()
    """Columns that are added to lines."""


@dataclass
class SparkRun:
    """A job on Spark: its session, its input, and the folders that it writes."""

    session: Any
    corpus: Any
    """A `lookalike.spark.files.SparkCorpus`."""
    seconds: dict[str, float]
    work: str | None

    @classmethod
    def start(
        cls,
        options: argparse.Namespace,
        outputs: Sequence[str],
        order: str | None = None,
        html: str | None = None,
    ) -> SparkRun:
        """Check what can be checked, start a session and open the input.

        `outputs` are the options that name new folders. `order` is a column that decides which
        documents are kept, and `html` one with pages.
        """
        check_folders(options, outputs)
        from lookalike.spark.files import SparkCorpus, check_new, session_of

        begin = time.perf_counter()
        session = session_of(options.engine[1])
        seconds = {"start": time.perf_counter() - begin}
        for name in outputs:
            if (output := getattr(options, name)) is not None:
                check_new(session, address(str(output)))
        given = {name: getattr(options, name) for name in ("format", "text", "id", "skip_bad")}
        corpus = SparkCorpus.read(session, options.input[0], order=order, html=html, **given)
        work = getattr(options, "work", None)
        return cls(session, corpus, seconds, None if work is None else address(str(work)))

    def write(self, options: argparse.Namespace, outputs: Mapping[str, Output]) -> dict[str, str]:
        """Write outputs, by what they have; return which folder has what."""
        begin = time.perf_counter()
        written = {}
        for what, output in outputs.items():
            if output.path is None:
                continue
            written[what] = address(str(output.path))
            if not options.dry_run:
                self.corpus.write(output.rows(), written[what], output.added)
        if written:
            self.seconds["write"] = time.perf_counter() - begin
        return written


def check_folders(options: argparse.Namespace, outputs: Sequence[str]) -> None:
    """Refuse inputs and outputs that Spark does not have."""
    if len(options.input) != 1 or options.input[0] == "-":
        raise ArgumentError(
            "--engine spark reads one input: a file, a folder, or a pattern such as "
            "'s3a://bucket/{a,b}/*.parquet'"
        )
    if options.annotate and options.output is None:
        raise ArgumentError(Said("--annotate"), " needs a folder to write to: -o FOLDER")
    for name in outputs:
        if str(getattr(options, name)) == "-":
            raise ArgumentError(Said(name), " is -; with --engine spark expected a new folder")


def address(path: str) -> str:
    """Return an address as it was typed: a path has lost one of its slashes."""
    return re.sub(r"^([a-z][a-z0-9+.-]+):/(?=[^/])", r"\1://", path)
