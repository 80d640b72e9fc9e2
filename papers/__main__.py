"""Run the experiments and write the page: `python -m papers`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import perf_counter

from lookalike.errors import LookalikeError
from lookalike.storage import whole_file
from papers import (
    draft,
    issl,
    matchcode,
    psm_batch,
    psm_search,
    psm_texts,
    slides,
)
from papers.page import Section
from papers.scale import SCALES
from papers.shared import World

Experiments = Callable[[World], Iterator[Section]]

DOCUMENTS: Sequence[tuple[str, str, Sequence[Experiments]]] = (
    (
        "issl",
        "Inverted signature slice lists (Chappell, Geva, Zuccon, 2015)",
        [issl.run],
    ),
    ("draft", "Indexed signature slice lists, the earlier draft", [draft.run]),
    (
        "slides",
        "Probabilistic data structures, part 4: similarity (Gakhov, 2016)",
        [slides.run],
    ),
    (
        "psm",
        "Probabilistic near-duplicate detection using simhash (Sood, Loguinov, 2011)",
        [psm_texts.run, psm_search.run, psm_batch.run],
    ),
    (
        "matchcode",
        "Data structure design for efficient index search (AboutCode)",
        [matchcode.run],
    ),
)
"""(name, title, what to run), in the order of the page."""

PAGE, PICTURES = "papers.md", "papers"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for, write the page, and return 0; 1 for an error."""
    options = parse(arguments)
    try:
        write(options.output, options.scale, options.data, options.only)
    except LookalikeError as error:
        print(f"papers: {error}", file=sys.stderr)
        return 1
    return 0


def write(folder: Path, scale: str, data: Path | None, only: str = "") -> None:
    """Run the documents with `only` in their name, and write the page and its pictures.

    The page is written anew after each section: a long run that is stopped leaves what it had.
    """
    pictures = folder / PICTURES
    pictures.mkdir(parents=True, exist_ok=True)
    world = World(SCALES[scale], data, pictures)
    parts = [introduction(world)]
    for name, title, runs in DOCUMENTS:
        if only not in name:
            continue
        parts.append(f"## {title}")
        for run in runs:
            start = perf_counter()
            for section in run(world):
                parts.append(section.markdown(PICTURES))
                seconds, start = perf_counter() - start, perf_counter()
                with whole_file(folder / PAGE) as page:
                    page.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
                print(f"{name}: {section.title} ({seconds:.0f} s)", flush=True)
    print(f"wrote {folder / PAGE}")


def introduction(world: World) -> str:
    """Return the top of the page: what this is, and how it was made."""
    where = "real texts" if world.folder else "made-up texts"
    return f"""# The papers, run again

lookalike stands on five documents. This page has their tables and figures, what they report, and
what comes out here. It is written by `make papers`; this is the size `{world.scale.name}`, on
{where}. `make papers SCALE=paper` takes the papers' own sizes where they fit into memory:
60 million fingerprints, 10 million queries, a million texts. `LOOKALIKE_DATA` names the folder that
texts are read from: `arxiv_abstracts_120k.jsonl.gz` and `debian_descriptions.jsonl.gz`, a JSON
object a line. Without it texts are made up, and near-duplicates with them.

Times are those of one run on one machine, which had other work to do, and the papers' machines were
others: compare ratios, not milliseconds. Where a paper has a curve without figures, those of its
text stand here.

Fingerprints in millions are generated, from a seed: see `papers.generated` for what
they are fitted to."""


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m papers",
        description="Run the papers' experiments and write a page with their figures and ours.",
    )
    parser.add_argument(
        "--scale",
        choices=tuple(SCALES),
        default=os.environ.get("SCALE") or "quick",
        help="tiny (seconds), quick (minutes) or paper (two hours and 16 GB); default: the "
        "environment variable SCALE, or quick",
    )
    parser.add_argument(
        "--data",
        type=Path,
        metavar="FOLDER",
        default=os.environ.get("LOOKALIKE_DATA") or None,
        help="where the texts are (default: the environment variable LOOKALIKE_DATA; without "
        "either, texts are made up)",
    )
    parser.add_argument(
        "--only", default="", metavar="NAME", help="only documents with NAME in their name"
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FOLDER",
        default=Path("docs"),
        help="where to write papers.md and papers/ (default: docs)",
    )
    options = parser.parse_args(arguments)
    if options.scale not in SCALES:
        parser.error(f"SCALE is {options.scale!r}; expected one of {', '.join(SCALES)}")
    return options


if __name__ == "__main__":
    sys.exit(main())
