"""Features of links: their addresses, their words and the words around them."""

from __future__ import annotations

import re
from typing import SupportsIndex

from lookalike import _native
from lookalike.checks import flag, whole_number
from lookalike.errors import ArgumentError, DocumentError
from lookalike.features.base import TextKind
from lookalike.features.ready import ready_source
from lookalike.pages import RawPage, Refused
from lookalike.pages.marks import BREAK, has_marks, split_marks
from lookalike.pages.workers import read_pages

_WORD = re.compile(r"[^\W_]+")


class Links(TextKind):
    """Links in the main text of a page.

    A document is a page: HTML, which needs the extra `html`, or a document of a corpus of pages
    (`la.dedup("crawl.warc.gz", features=la.Links())`). A text without links has no features. A
    feature counts as often as it occurs; a word in a link is another feature than the word beside
    it.

    Args:
        urls: Whether the addresses of links are features, without what follows a #.
        anchors: Whether the words of links are features.
        around: Number of words before and after each link that are features.
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

    def batch_source(self, batch: _native.Documents, position: int) -> _native.Source:
        """Return the links of pages."""
        texts = marked_texts(batch.to_list(), position)
        return ready_source(map(self._features, texts), position, hashed=False)

    def _features(self, text: str) -> list[str]:
        return [feature for part in text.split(BREAK) for feature in self._of_part(part)]

    def _of_part(self, text: str) -> list[str]:
        found: list[str] = []
        words: list[str] = []  # of the whole text
        places: list[tuple[int, int]] = []  # where links begin and end in `words`
        for kind, part in enumerate(split_marks(text)):
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
    """Return texts with their links marked; HTML is parsed."""
    pages = [at for at, text in enumerate(texts) if "<" in text and not has_marks(text)]
    if not pages:
        return texts
    raw = (RawPage(texts[at].encode("utf-8", "replace"), "utf-8") for at in pages)
    for at, page in zip(pages, read_pages(raw, ["marked"]), strict=True):
        if isinstance(page, Refused):
            raise DocumentError(f"document {first_position + at} {page.reason}")
        texts[at] = page.marked or ""
    return texts
