"""Find benchmark items in training text: the corpus is read as a stream, the items are held."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, fields
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lookalike import _native
from lookalike.checks import flag, one_of, share, thread_count, whole_number
from lookalike.cleaning.benchmarks import Benchmark, open_benchmarks, without_nulls
from lookalike.cleaning.contamination_result import ContaminatedDocument, Contamination, Evidence
from lookalike.corpora import Problems, open_corpus
from lookalike.corpora.base import limited, pa
from lookalike.corpora.columns import find_columns, text_strings
from lookalike.dedup.kinds import chosen
from lookalike.dedup.old import is_collection, opened_collection, write_texts
from lookalike.dedup.pairs import Ints
from lookalike.errors import ArgumentError, Said
from lookalike.features.base import text_batches
from lookalike.jobs.context import JobProgress
from lookalike.progress import listener
from lookalike.storage.files import temporary_folder

RULES = ("ngram", "share", "run", "near")
"""In the order of the core."""
ACTIONS = ("drop", "cut", "mark")
NGRAM, NEAR_NGRAM, SHORTEST, GAP, MARGIN = 13, 5, 8, 4, 200
MIN_SHARE, NEAR_SHARE = 0.5, 0.8
_EXCERPT, _CONTEXT = 600, 60
"""Characters of a passage that are kept to be shown, and before and after it."""
_WIDER = 50
"""Characters that a cut is made wider by, not to cut a word."""


@dataclass(frozen=True, kw_only=True)
class ContaminationSettings:
    """The settings of `la.decontaminate`."""

    rule: str
    ngram: Any
    shortest: Any
    min_share: Any
    gap: Any
    action: str
    margin: Any

    def __post_init__(self) -> None:
        own = vars(self)
        one_of("rule", self.rule, RULES)
        one_of("action", self.action, ACTIONS)
        near = self.rule == "near"
        usual = NEAR_NGRAM if near else NGRAM
        words = usual if self.ngram is None else self.ngram
        own["ngram"] = whole_number("ngram", words, at_least=1, at_most=1 << 20)
        fewest = min(SHORTEST, own["ngram"]) if self.shortest is None else self.shortest
        own["shortest"] = whole_number("shortest", fewest, at_least=1, at_most=own["ngram"])
        self._refuse("gap", near, "rule='near'", "--rule near")
        own["gap"] = whole_number("gap", GAP if self.gap is None else self.gap, at_least=0)
        self._refuse("min_share", self.rule != "ngram", "another rule", "another --rule")
        least = (NEAR_SHARE if near else MIN_SHARE) if self.min_share is None else self.min_share
        own["min_share"] = share("min_share", least)
        self._refuse("margin", self.action == "cut", "action='cut'", "--action cut")
        own["margin"] = whole_number(
            "margin", MARGIN if self.margin is None else self.margin, at_least=0
        )

    def _refuse(self, name: str, used: bool, in_python: str, typed: str) -> None:
        if getattr(self, name) is not None and not used:
            raise ArgumentError(Said(name), " is for ", Said(in_python, typed), "; leave it out")

    def to_dict(self) -> dict[str, Any]:
        """Return the settings that have an effect, in plain values."""
        idle = {"gap"} if self.rule != "near" else set()
        idle |= {"min_share"} if self.rule == "ngram" else set()
        idle |= {"margin"} if self.action != "cut" else set()
        return {one.name: getattr(self, one.name) for one in fields(self) if one.name not in idle}


class _Hits(NamedTuple):
    """What the core found in texts."""

    texts: Any
    documents: Any
    columns: Any
    """None if no text contains an item."""


@dataclass(frozen=True, eq=False)
class ItemSearch:
    """Looks for the items of benchmarks in texts; the items are compiled when first needed."""

    settings: ContaminationSettings
    names: list[str]
    """Of benchmarks."""
    firsts: Ints
    """The numbers of their first items."""
    texts: Any
    """Of all items, as Arrow."""
    ids: Any

    @classmethod
    def of(cls, benchmarks: Sequence[Benchmark], settings: ContaminationSettings) -> ItemSearch:
        """Return what looks for the items of these benchmarks."""
        kind = pa.large_string()
        return cls(
            settings,
            [one.name for one in benchmarks],
            np.array([one.first for one in benchmarks], np.int64),
            pa.chunked_array([one.texts for one in benchmarks], kind).combine_chunks(),
            pa.chunked_array([one.ids for one in benchmarks], kind).combine_chunks(),
        )

    def __getstate__(self) -> dict[str, Any]:
        """Return what a worker gets, which compiles the items itself."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @cached_property
    def items(self) -> _native.BenchmarkItems:
        """The items, compiled."""
        (documents,) = text_batches(self.texts, None)
        return _native.BenchmarkItems(
            documents,
            RULES.index(self.settings.rule),
            self.settings.ngram,
            self.settings.shortest,
            self.settings.min_share,
            self.settings.gap,
        )

    def found(
        self, texts: Any, ids: Callable[[], Any], first: int, threads: int
    ) -> list[ContaminatedDocument]:
        """Return which texts, an Arrow array, contain items.

        `ids` returns their ids, and `first` is the row of the first.
        """
        return list(self.told(self.hits(texts, threads), ids, first))

    def hits(self, texts: Any, threads: int) -> _Hits:
        """Return which texts, an Arrow array, contain items; `told` says more about them."""
        if not len(texts):
            return _Hits(texts, None, None)
        (documents,) = text_batches(texts, None)
        columns = self.items.find(documents, threads)
        return _Hits(texts, documents, columns if len(columns[0]) else None)

    def told(
        self, hits: _Hits, ids: Callable[[], Any], first: int
    ) -> Iterator[ContaminatedDocument]:
        """Yield the documents with items, and which these are."""
        if hits.columns is not None:
            yield from self._told(hits.columns, hits.documents, hits.texts, ids(), first)

    def _told(
        self, hits: Any, documents: Any, texts: Any, ids: Any, first: int
    ) -> Iterator[ContaminatedDocument]:
        rows, numbers, longest, shares, offsets, begins, ends = hits
        # Behind benchmarks without items, which begin at the same number.
        of = np.searchsorted(self.firsts, numbers, "right") - 1
        range_rows = np.tile(np.repeat(rows, np.diff(offsets)), 2).astype(np.int64)
        range_bytes = np.concatenate([begins, ends]).astype(np.int64)
        by_place = np.lexsort((range_bytes, range_rows))
        characters = np.empty(len(by_place), np.int64)
        characters[by_place] = _native.characters_at(
            documents, range_rows[by_place], range_bytes[by_place]
        )
        begins, ends = np.split(characters, 2)
        order = np.argsort(rows, kind="stable")
        different, starts = np.unique(rows[order], return_index=True)
        for row, hits_of_row in zip(different.tolist(), np.split(order, starts[1:]), strict=True):
            text = str(texts[row].as_py())
            evidence = []
            ranges: list[tuple[int, int]] = []
            for at in hits_of_row.tolist():
                own = list(
                    zip(
                        begins[offsets[at] : offsets[at + 1]].tolist(),
                        ends[offsets[at] : offsets[at + 1]].tolist(),
                        strict=True,
                    )
                )
                ranges += own
                begin, end = own[0][0], own[-1][1]
                shown = text[max(0, begin - _CONTEXT) : min(end + _CONTEXT, begin + _EXCERPT)]
                evidence.append(
                    Evidence(
                        benchmark=self.names[of[at]],
                        item=str(self.ids[int(numbers[at])].as_py()),
                        number=int(numbers[at]),
                        words=int(longest[at]),
                        share=round(float(shares[at]), 6),
                        characters=(begin, end),
                        passage=shown,
                    )
                )
            cuts = cut_ranges(text, ranges, int(self.settings.margin or 0))
            new = _without(text, cuts) if self.settings.action == "cut" else None
            yield ContaminatedDocument(first + row, str(ids[row].as_py()), evidence, cuts, new)


def opened_items(
    given: Any, columns: Any, settings: ContaminationSettings
) -> tuple[list[Benchmark], ItemSearch]:
    """Read benchmarks, of which these columns are looked for."""
    benchmarks = open_benchmarks(given, [columns] if isinstance(columns, str) else columns)
    return benchmarks, ItemSearch.of(benchmarks, settings)


def run_decontamination(options: dict[str, Any]) -> Contamination:
    """Look for the items, with the arguments of `lookalike.cleaning.decontaminate`."""
    settings = ContaminationSettings(**chosen(options, ContaminationSettings))
    skip_bad, threads = flag("skip_bad", options["skip_bad"]), thread_count(options["threads"])
    steps = JobProgress(listener(options["progress"]))
    with ExitStack() as left:
        given = options["source"]
        if is_collection(given):
            given = _collection_file(given, left)
        corpus = open_corpus(given, options["format"], encoding=options["encoding"])
        if options["max_document"] is not None:
            corpus.max_document = whole_number("max_document", options["max_document"], at_least=1)
        found = find_columns(corpus, options["text"], options["id"])
        with steps.timed("benchmarks"):
            benchmarks, search = opened_items(options["benchmarks"], options["columns"], settings)
            skipped = search.items.skipped
        identity, problems = corpus.identity(), Problems(skip_bad)
        limits = (None, threads)
        with steps.timed("find"), limited(*limits):
            hits: list[ContaminatedDocument] = []
            rows = 0
            searched: deque[tuple[Future[_Hits], Callable[[], Any], int]] = deque()

            def tell() -> None:
                looking, ids, first = searched.popleft()
                hits.extend(search.told(looking.result(), ids, first))

            with ThreadPoolExecutor(1) as pool:  # searches a batch while the next one is read
                for batch in corpus.read(found.names, problems):
                    texts = without_nulls(text_strings(batch.column(0), found.text, corpus))
                    looking = pool.submit(search.hits, texts, threads)
                    searched.append((looking, partial(found.ids, batch, rows), rows))
                    rows += len(texts)
                    if len(searched) > 1:
                        tell()
                    steps.step("find", corpus.done)
                while searched:
                    tell()
            corpus.check_identity(identity)
        return Contamination(
            settings=settings,
            benchmarks=benchmarks,
            skipped_items=skipped,
            document_count=rows,
            contaminated=hits,
            seconds=dict(steps.seconds),
            warnings=[*corpus.notices, *problems.notices()],
            source=corpus,
            source_identity=identity,
            columns=found,
            skip_bad=skip_bad,
            limits=limits,
            problems=problems,
        )


def _collection_file(given: Any, left: ExitStack) -> Path:
    """Write the documents of a collection to a file; return its path."""
    with opened_collection(given, "text") as collection:
        path = left.enter_context(temporary_folder("lookalike-train-")) / "collection.jsonl"
        if not write_texts(collection, path):
            raise ArgumentError(
                Said("source"), " is a collection that keeps no texts; give the documents instead"
            )
        return path


def cut_ranges(text: str, ranges: Sequence[tuple[int, int]], margin: int) -> list[tuple[int, int]]:
    """Return ranges with a margin, up to the ends of words, in order; none of them meet."""
    made: list[tuple[int, int]] = []
    for begin, end in sorted(ranges):
        begin, end = max(0, begin - margin), min(len(text), end + margin)
        for _ in range(_WIDER):
            if begin == 0 or text[begin - 1].isspace():
                break
            begin -= 1
        for _ in range(_WIDER):
            if end == len(text) or text[end].isspace():
                break
            end += 1
        if made and begin <= made[-1][1]:
            made[-1] = made[-1][0], max(end, made[-1][1])
        else:
            made.append((begin, end))
    return made


def _without(text: str, ranges: Sequence[tuple[int, int]]) -> str:
    parts, at = [], 0
    for begin, end in ranges:
        parts.append(text[at:begin])
        at = end
    return "".join([*parts, text[at:]])
