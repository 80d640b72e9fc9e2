"""Features of links: where a page leads, in which words, and what is said around them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, SupportsIndex

from lookalike import _native
from lookalike.checks import flag, whole_number
from lookalike.errors import ArgumentError, DocumentError
from lookalike.features.base import BATCH, FeatureKind, text_batches
from lookalike.features.ready import ready_source
from lookalike.pages import RawPage, Refused
from lookalike.pages.marks import has_marks, split_marks
from lookalike.pages.workers import read_pages

_WORD = re.compile(r"[^\W_]+")


class Links(FeatureKind):
    """The links in a page's main text: `urls`, where they lead, without what follows a #;
    `anchors`, the words of links; `around`, so many words before and after each.

    The three are told apart: a word of a link is another feature than the same word beside one. A
    feature weighs as often as it occurs. A document is a page, as HTML or as a corpus of pages
    gives it (`la.dedup("crawl.warc.gz", features=la.Links())`); a text without links has no
    features. Reading HTML needs the extra `html`.
    """

    reads_links = True

    def __init__(self, urls: bool = True, anchors: bool = True, around: SupportsIndex = 5) -> None:
        self.urls = flag("urls", urls)
        self.anchors = flag("anchors", anchors)
        self.around = whole_number("around", around, at_least=0, at_most=1000)
        if not (self.urls or self.anchors or self.around):
            raise ArgumentError(
                "urls and anchors are False and around is 0, which leaves no features; expected "
                "one of them"
            )

    def is_document(self, value: Any) -> bool:
        """Return whether this is one page."""
        return isinstance(value, str)

    def sources(self, documents: Any, size: int | None = BATCH) -> Iterator[_native.Source]:
        """Yield batches of documents; see `FeatureKind.sources`."""
        position = 0
        for batch in text_batches(documents, size):
            texts = marked_texts(batch.to_list(), position)
            yield ready_source(map(self._features, texts), position, hashed=False)
            position += len(texts)

    def _features(self, text: str) -> list[str]:
        parts = split_marks(text)
        found: list[str] = []
        words: list[str] = []  # of all the text
        places: list[tuple[int, int]] = []  # where links begin and end among them
        for kind, part in enumerate(parts):
            if kind % 3 == 1:
                if self.urls:
                    found.append(f"url {part.partition('#')[0]}")
                continue
            these = _WORD.findall(part.lower())
            if kind % 3 == 2:
                places.append((len(words), len(words) + len(these)))
                if self.anchors:
                    found += [f"anchor {word}" for word in these]
            words += these
        if self.around:
            for begin, end in places:
                near = words[max(0, begin - self.around) : begin] + words[end : end + self.around]
                found += [f"around {word}" for word in near]
        return found


def marked_texts(texts: list[str], first_position: int) -> list[str]:
    """Return texts with their links marked; those that are HTML are parsed."""
    pages = [at for at, text in enumerate(texts) if "<" in text and not has_marks(text)]
    if not pages:
        return texts
    raw = (RawPage(texts[at].encode("utf-8", "replace"), "utf-8") for at in pages)
    for at, page in zip(pages, read_pages(raw, ["marked"]), strict=True):
        if isinstance(page, Refused):
            raise DocumentError(f"document {first_position + at} {page.reason}")
        texts[at] = page.marked or ""
    return texts
