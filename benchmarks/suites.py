"""The cases beside searching and signing: how they are run, and which table shows them."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.advice.predictions import CASES as PLANNING
from benchmarks.advice.predictions import prediction_table, run_planning
from benchmarks.advice.real import CASES as REAL
from benchmarks.advice.real import real_table, run_real
from benchmarks.bands.live import CASES as BANDS
from benchmarks.bands.live import run_bands
from benchmarks.cleaning.cases import run_cleaning
from benchmarks.cleaning.cases import selected_cases as cleaning_cases
from benchmarks.clusters.cases import CASES as CLUSTERS
from benchmarks.clusters.cases import run_clusters
from benchmarks.collection.cases import CASES as COLLECTIONS
from benchmarks.collection.cases import run_collections
from benchmarks.dedup.whole_job import dedup_table, run_dedup, selected_cases
from benchmarks.harness import Result, Verdict
from benchmarks.images.cases import CASES as IMAGES
from benchmarks.images.cases import recall_table, run_images
from benchmarks.masks.cases import CASES as MASKS
from benchmarks.masks.cases import run_masks
from benchmarks.matching.cases import CASES as MATCHING
from benchmarks.matching.cases import matching_table, run_matching
from benchmarks.pages.cases import CASES as PAGES
from benchmarks.pages.cases import page_table, run_pages
from benchmarks.passages.cases import CASES as PASSAGES
from benchmarks.passages.cases import run_passages
from benchmarks.quality import quality_table
from benchmarks.recordings.cases import CASES as RECORDINGS
from benchmarks.recordings.cases import recordings_table, run_recordings
from benchmarks.report import case_table, summary_table
from benchmarks.scan.cases import QUICK_FRACTION
from benchmarks.serve.cases import CASES as SERVE
from benchmarks.serve.cases import run_serve
from benchmarks.slices.cases import CASES as SLICES
from benchmarks.slices.cases import run_slices
from benchmarks.vectors.cases import CASES as VECTORS
from benchmarks.vectors.cases import run_vectors
from benchmarks.videos.cases import CASES as VIDEOS
from benchmarks.videos.cases import run_videos, videos_table
from benchmarks.words.cases import CASES as WORDS
from benchmarks.words.cases import run_words

__all__ = ["SUITES", "Suite", "finish"]


@dataclass(frozen=True)
class Suite:
    """Cases of one subject; `file` is what their results are written to."""

    file: str
    cases: Callable[[str], Sequence[str]]
    """The names of cases that have this in them."""
    run: Callable[..., Iterable[Any]]
    """Called with the names, what `takes` says of the options, and the part of the full size."""
    table: Callable[[Any], str]
    takes: tuple[str, ...] = ()
    together: bool = False
    """Whether one table shows all results, when the last has been measured."""

    def measure(
        self, names: Sequence[str], options: Namespace
    ) -> tuple[list[Result], list[Verdict], dict[str, str]]:
        """Run these cases and print what they show; also return the table of each case."""
        given = [getattr(options, name) for name in self.takes]
        results: list[Result] = []
        tables = dict[str, str]()
        for result in self.run(names, *given, part=QUICK_FRACTION if options.quick else 1):
            results.append(result)
            if not self.together:
                tables[result.name] = self.table(result)
                print(f"\n{tables[result.name]}", flush=True)
        if self.together:
            print(f"\n{self.table(results)}", flush=True)
        return results, finish(results, quick=options.quick, summary=False), tables


def _with(names: Iterable[str]) -> Callable[[str], list[str]]:
    return lambda part: [name for name in names if part in name]


def _image_table(result: Any) -> str:
    return quality_table(result) if result.measurements else recall_table(result)


SUITES = (
    Suite("slices.json", _with(SLICES), run_slices, quality_table, ("data", "cache")),
    Suite("clusters.json", _with(CLUSTERS), run_clusters, quality_table, ("data", "cache")),
    Suite("matching.json", _with(MATCHING), run_matching, matching_table, ("data",)),
    Suite("planning.json", _with(PLANNING), run_planning, prediction_table, together=True),
    Suite("planning_real.json", _with(REAL), run_real, real_table, ("data",), together=True),
    Suite("collections.json", _with(COLLECTIONS), run_collections, case_table),
    Suite("bands.json", _with(BANDS), run_bands, case_table),
    Suite("masks.json", _with(MASKS), run_masks, quality_table, ("data",)),
    Suite("words.json", _with(WORDS), run_words, quality_table, ("data",)),
    Suite("dedup.json", selected_cases, run_dedup, dedup_table, ("data", "cache")),
    Suite("pages.json", _with(PAGES), run_pages, page_table),
    Suite("images.json", _with(IMAGES), run_images, _image_table),
    Suite("videos.json", _with(VIDEOS), run_videos, videos_table),
    Suite("recordings.json", _with(RECORDINGS), run_recordings, recordings_table, ("cache",)),
    Suite("passages.json", _with(PASSAGES), run_passages, case_table, ("data",)),
    Suite("cleaning.json", cleaning_cases, run_cleaning, case_table, ("data", "cache")),
    Suite("vectors.json", _with(VECTORS), run_vectors, quality_table, ("data", "cache")),
    Suite("serve.json", _with(SERVE), run_serve, case_table),
)


def finish(results: Sequence[Result], *, quick: bool, summary: bool = True) -> list[Verdict]:
    """Print the summary and return the verdicts in order, withheld if the sizes were not those."""
    compared = [each for each in results if any(rival.is_rival for rival in each.measurements[1:])]
    if compared and summary:
        print(f"\n{summary_table(compared)}", flush=True)
    verdicts = [verdict for result in results for verdict in result.verdicts]
    if quick:
        verdicts = [replace(verdict, passed=None) for verdict in verdicts]
    return sorted(verdicts, key=lambda verdict: verdict.title)
