"""What a page of results is made of: sections with tables and pictures, as Markdown.

The page is also where sections are kept: a run that makes some of them anew leaves the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from lookalike.storage.files import whole_file

__all__ = ["Page", "Section", "Verdict", "markdown_table", "section_name"]

Row = Sequence[str]
Claim = Literal["Holds", "Holds in part", "Does not hold"]
_CLAIMS = get_args(Claim)

_ANCHOR = re.compile(r'^<a id="([a-z0-9-]+)"></a>$', re.MULTILINE)
_VERDICT = re.compile(rf"^\*\*({'|'.join(_CLAIMS)})\.\*\* (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether what a paper says is so here, and why."""

    claim: Claim
    why: str
    """One line."""

    @classmethod
    def of(cls, holds: Sequence[bool], why: str) -> Verdict:
        """Return what these parts of what the paper says come to."""
        claim: Claim = "Holds in part"
        if all(holds):
            claim = "Holds"
        elif not any(holds):
            claim = "Does not hold"
        return cls(claim, why)


@dataclass(frozen=True, slots=True)
class Section:
    """One table or figure of a paper, and what came out here."""

    title: str
    """ "Table 1: ...", with what it is about."""
    text: str
    """What was done, and what differs from the paper."""
    heading: Row = ()
    rows: Sequence[Row] = ()
    pictures: Sequence[str] = ()
    """File names."""
    verdict: Verdict | None = None
    """For the first lines of the page."""

    def markdown(self, folder: str) -> str:
        """Return the section; pictures are linked in `folder`."""
        parts = [f"### {self.title}"]
        if self.verdict:
            parts.append(f"**{self.verdict.claim}.** {self.verdict.why}")
        parts.append(self.text)
        if self.rows:
            parts.append(markdown_table(self.heading, self.rows))
        parts += [f"![{self.title}]({folder}/{name})" for name in self.pictures]
        return "\n\n".join(parts)


def section_name(document: str, title: str) -> str:
    """Return the name of a section: of its document, and of what stands before the colon."""
    words = re.findall(r"[a-z0-9]+", title.partition(":")[0].lower())
    return "-".join([document, *words])


class Page:
    """The sections of a page by name, as they were written last."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sections: dict[str, str] = {}
        if path.exists():
            pieces = _ANCHOR.split(path.read_text(encoding="utf-8"))
            for name, text in zip(pieces[1::2], pieces[2::2], strict=True):
                # The title of the next document is behind the last section of one.
                self.sections[name] = re.split(r"^## ", text, flags=re.MULTILINE)[0].strip()

    def write(self, introduction: str, documents: Mapping[str, Sequence[str]]) -> None:
        """Write the page: `documents` have their title, and names that sections begin with."""
        body: list[str] = []
        first: list[str] = []
        for title, names in documents.items():
            sections = list(self._of(names))
            if sections:
                body.append(f"## {title}")
            for name, text in sections:
                body.append(f'<a id="{name}"></a>\n\n{text}')
                first += self._verdict(name, text, title)
        top, _, rest = introduction.partition("\n\n")
        first.sort(key=lambda line: _CLAIMS.index(line.split("**")[1].rstrip(".")))
        parts = [top, "\n".join(first), rest, *body]
        with whole_file(self.path) as page:
            page.write_text("\n\n".join(part for part in parts if part) + "\n", encoding="utf-8")

    def _of(self, names: Sequence[str]) -> Iterator[tuple[str, str]]:
        for begin in names:
            for name, text in self.sections.items():
                if begins_with(name, begin):
                    yield name, text

    @staticmethod
    def _verdict(name: str, text: str, document: str) -> list[str]:
        """Return the section's line among the first of the page."""
        found = _VERDICT.search(text)
        if not found:
            return []
        what = text.partition("\n")[0].removeprefix("### ").partition(":")[0]
        authors = re.findall(r"\((.*)\)$", document) or [document]
        return [f"- **{found[1]}.** [{authors[0]}: {what}](#{name}). {found[2]}"]

    def forget(self, names: Sequence[str], but: Sequence[str]) -> None:
        """Drop sections that begin so, all but these: an experiment that makes them no more."""
        for name in list(self.sections):
            if name not in but and any(begins_with(name, begin) for begin in names):
                del self.sections[name]


def begins_with(name: str, begin: str) -> bool:
    """Say whether the words of a name begin with these: psm-figure-1 is not psm-figure-10."""
    return f"{name}-".startswith(f"{begin}-")


def markdown_table(heading: Row, rows: Sequence[Row]) -> str:
    """Return a table; columns after the first are numbers, to the right."""
    alignment = [" --- ", *(" ---: " for _ in heading[1:])]
    lines = [" | ".join(heading), "|".join(alignment).strip(), *(" | ".join(row) for row in rows)]
    return "\n".join(f"| {line} |" for line in lines)
