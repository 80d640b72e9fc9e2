"""What a page of results is made of: sections with tables and pictures, as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Section", "markdown_table"]

Row = Sequence[str]


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

    def markdown(self, folder: str) -> str:
        """Return the section; pictures are linked in `folder`."""
        parts = [f"### {self.title}", self.text]
        if self.rows:
            parts.append(markdown_table(self.heading, self.rows))
        parts += [f"![{self.title}]({folder}/{name})" for name in self.pictures]
        return "\n\n".join(parts)


def markdown_table(heading: Row, rows: Sequence[Row]) -> str:
    """Return a table; columns after the first are numbers, to the right."""
    alignment = [" --- ", *(" ---: " for _ in heading[1:])]
    lines = [" | ".join(heading), "|".join(alignment).strip(), *(" | ".join(row) for row in rows)]
    return "\n".join(f"| {line} |" for line in lines)
