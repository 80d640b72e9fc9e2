"""Web pages of 50 KB: ours beside the library alone and two others, by speed and by the text."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import fmean

import trafilatura
from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree
from selectolax.lexbor import LexborHTMLParser

import lookalike as la
from benchmarks.harness import Contender, Effort, Measurement, Result, Verdict, measure
from benchmarks.pages.layouts import LAYOUTS, Article, make_article, make_page
from lookalike.corpora import Problems, open_corpus
from lookalike.corpora.base import limited
from lookalike.pages import RawPage
from lookalike.pages.extract import read_page

__all__ = ["CASES", "page_table", "run_pages"]

CASES = ("pages",)
COUNT = 2_000
TARGET_RATE = 3_000
TARGET_LAYOUTS = 0.9
SHINGLES = la.Words(5)
OURS = "lookalike, 2 processes"


@dataclass(frozen=True)
class PageResult(Result):
    """What came out, with what was read."""

    pages: int
    page_bytes: int
    article: dict[str, float]
    """Mean similarity of what was read with the article, by library."""
    layouts: dict[str, float]
    """The lowest similarity of one article in two layouts, by library."""


def run_pages(selected: Sequence[str], *, part: int) -> Iterator[PageResult]:
    """Time and judge."""
    if not selected:
        return
    articles = [make_article(seed) for seed in range(COUNT // part // len(LAYOUTS))]
    pages = [make_page(article, layout, at) for at, article in enumerate(articles)
             for layout in LAYOUTS]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pages.jsonl"
        path.write_text("".join(json.dumps({"html": page}) + "\n" for page in pages))
        few = pages[: max(20, len(pages) // 20)]
        scale = len(pages) / len(few)
        contenders = [
            Contender(OURS, lambda: _read(path, 2)),
            Contender("lookalike, 1 process", lambda: _read(path, 1), is_rival=False),
            *(
                Contender(name, _all(read, few), scale, is_rival=False)
                for name, read in LIBRARIES.items()
            ),
        ]
        _read(path, 2)  # starts the processes
        measured = measure(contenders, Effort(5, 20.0))
    some = articles[:10]
    article = {name: _likeness(read, some) for name, read in [("lookalike", _ours), *_others()]}
    layouts = {name: _lowest(read, some) for name, read in [("lookalike", _ours), *_others()]}
    rate = len(pages) / measured[0].best
    yield PageResult(
        "pages",
        f"main text of {len(pages):,} web pages",
        measured,
        [
            Verdict("web pages of 50 KB, 2 cores: pages/s", f">= {TARGET_RATE:,}", f"{rate:,.0f}",
                    rate >= TARGET_RATE),
            Verdict("one article in two layouts: least Jaccard of word 5-grams",
                    f">= {TARGET_LAYOUTS}", f"{layouts['lookalike']:.3f}",
                    layouts["lookalike"] >= TARGET_LAYOUTS),
        ],
        pages=len(pages),
        page_bytes=round(fmean(len(page.encode()) for page in pages)),
        article=article,
        layouts=layouts,
    )  # fmt: skip


def page_table(result: PageResult) -> str:
    """Return what was measured as a table."""
    lines = [
        f"{result.title}, {result.page_bytes:,} bytes each",
        "",
        f"{'':<34}{'pages/s':>10}{'article':>10}{'two layouts':>13}",
    ]
    lines += [_line(result, one) for one in result.measurements]
    return "\n".join(lines)


def _line(result: PageResult, one: Measurement) -> str:
    key = one.name.split(",")[0]
    rate = result.pages / one.best
    return f"{one.name:<34}{rate:>10,.0f}{result.article[key]:>10.3f}{result.layouts[key]:>13.3f}"


def _read(path: Path, threads: int) -> int:
    with limited(None, threads):
        corpus = open_corpus(path, html="html")
        return sum(len(batch) for batch in corpus.read(["text"], Problems()))


def _ours(page: str) -> str:
    return read_page(RawPage(page.encode(), "utf-8"), ["text"]).text or ""


def _resiliparse(page: str) -> str:
    tree = HTMLTree.parse_from_bytes(page.encode())
    return str(extract_plain_text(tree, main_content=True, links=False))


def _trafilatura(page: str) -> str:
    return trafilatura.extract(page, include_comments=False) or ""


def _selectolax(page: str) -> str:
    tree = LexborHTMLParser(page)
    tree.strip_tags(["script", "style", "noscript", "nav", "header", "footer", "aside"])
    return tree.body.text(separator=" ") if tree.body else ""


LIBRARIES: dict[str, Callable[[str], str]] = {
    "Resiliparse": _resiliparse,
    "Trafilatura": _trafilatura,
    "Selectolax": _selectolax,
}
"""Each by itself, in one process. Selectolax has no notion of main text: elements go by name."""


def _others() -> list[tuple[str, Callable[[str], str]]]:
    return list(LIBRARIES.items())


def _all(read: Callable[[str], str], pages: Sequence[str]) -> Callable[[], object]:
    return lambda: [read(page) for page in pages] and None


def _likeness(read: Callable[[str], str], articles: Sequence[Article]) -> float:
    return fmean(
        la.jaccard(article.text, read(make_page(article, layout, at)), SHINGLES)
        for at, article in enumerate(articles)
        for layout in LAYOUTS
    )


def _lowest(read: Callable[[str], str], articles: Sequence[Article]) -> float:
    lowest = 1.0
    for at, article in enumerate(articles):
        texts = [read(make_page(article, layout, at)) for layout in LAYOUTS]
        for one, two in combinations(texts, 2):
            lowest = min(lowest, la.jaccard(one, two, SHINGLES))
    return lowest
