"""Run the experiments and write the page: `python -m papers`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from time import perf_counter

from lookalike.errors import LookalikeError
from papers import (
    draft,
    issl,
    issl_large,
    matchcode,
    psm_batch,
    psm_lookups,
    psm_models,
    psm_search,
    psm_texts,
    psm_tree,
    psm_weights,
    slides,
)
from papers.page import Page, Section, section_name
from papers.scale import SCALES
from papers.shared import World

Run = Callable[[World], Iterator[Section]]


@dataclass(frozen=True, slots=True)
class Document:
    """What lookalike stands on: a short name, its title, and what is run again of it."""

    name: str
    title: str
    experiments: Sequence[tuple[Sequence[str], Run]]
    """What the names of their sections begin with, and what makes them."""


DOCUMENTS = (
    Document(
        "issl",
        "Inverted signature slice lists (Chappell, Geva, Zuccon, 2015)",
        [
            (["issl-table-1"], issl.settings),
            (["issl-table-2"], issl.widths),
            (["issl-figure-2"], issl.expansion),
            (["issl-figure-3"], issl.growing),
            (["issl-culling"], issl.culling),
            (["issl-500-million"], issl_large.run),
        ],
    ),
    Document(
        "draft",
        "Indexed signature slice lists, the earlier draft",
        [(["draft"], draft.run)],
    ),
    Document(
        "slides",
        "Probabilistic data structures, part 4: similarity (Gakhov, 2016)",
        [
            (["slides-the-worked-examples"], slides.by_hand),
            (["slides-b-bit-minhash"], slides.b_bits),
            (["slides-manku-s-parameters"], slides.parameters),
        ],
    ),
    Document(
        "psm",
        "Probabilistic near-duplicate detection using simhash (Sood, Loguinov, 2011)",
        [
            (["psm-table-1"], psm_texts.pair_times),
            (["psm-figure-1"], psm_weights.run),
            (["psm-figure-2"], psm_tree.run),
            (["psm-figure-3"], psm_texts.flips),
            (["psm-figure-6", "psm-total-recall"], psm_texts.distances_and_cosines),
            (["psm-section-8-3"], psm_lookups.run),
            (["psm-equations"], psm_models.run),
            (["psm-table-2"], psm_search.comparison),
            (["psm-figure-5"], psm_search.header_bits),
            (["psm-figure-7", "psm-figure-8"], psm_search.growing),
            (["psm-figure-9"], psm_batch.run),
        ],
    ),
    Document(
        "matchcode",
        "Data structure design for efficient index search (AboutCode)",
        [(["matchcode"], matchcode.run)],
    ),
)
"""In the order of the page."""

PAGE, PICTURES = "papers.md", "papers"

INTRODUCTION = """# The papers, repeated

lookalike implements the ideas of five documents. This page shows their tables and figures next to
our results. `make papers` writes it, section by section, each with the size of its run.
`make papers SCALE=paper` uses the papers' own sizes where they fit into memory: 60 million
fingerprints, 10 million queries, a million texts. `python -m papers --only psm-figure-9` makes one
section again and leaves the others. `LOOKALIKE_DATA` names the folder with the texts:
`arxiv_abstracts_120k.jsonl.gz` and `debian_descriptions.jsonl.gz`, one JSON object per line.
Without it, texts and near-duplicates are generated.

Where a paper has 20 threads, there were two cores here, with other load. Times are for one thread
and one run, and the papers used other machines. Compare ratios, not milliseconds. Where a paper
has a curve without figures, the figures of its text are used. Fingerprints in millions are
generated from a seed: see `papers.generated` for what they are fitted to."""


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
    """Run experiments with a name of `only` in theirs, and write the page and its pictures.

    The page is written anew after each section: a long run that is stopped leaves what it had, and
    sections that were not run stay as they are.
    """
    pictures = folder / PICTURES
    pictures.mkdir(parents=True, exist_ok=True)
    world = World(SCALES[scale], data, pictures)
    page = Page(folder / PAGE)
    names = {one.title: [name for each, _ in one.experiments for name in each] for one in DOCUMENTS}
    where = "real texts" if world.folder else "made-up texts"
    note = f"*Run on {date.today()} at the size `{scale}`, with {where}.*"
    for document in DOCUMENTS:
        for begins, run in document.experiments:
            if not any(part in name for part in only.split(",") for name in begins):
                continue
            made: list[str] = []
            start = perf_counter()
            for section in run(world):
                name = section_name(document.name, section.title)
                made.append(name)
                page.sections.pop(name, None)  # so that the new one follows those before it
                page.sections[name] = f"{section.markdown(PICTURES)}\n\n{note}"
                page.write(INTRODUCTION, names)
                seconds, start = perf_counter() - start, perf_counter()
                print(f"{document.name}: {section.title} ({seconds:.0f} s)", flush=True)
            page.forget(begins, but=made)
    page.write(INTRODUCTION, names)
    print(f"wrote {page.path}")


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
        "--only",
        default="",
        metavar="NAME[,NAME]",
        help="only what has NAME in its name, as issl, or psm-figure-9; the rest of the page stays",
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
