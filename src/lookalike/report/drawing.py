"""Charts in SVG. They use the colors of the page, also in dark mode."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lookalike.report.markup import Markup, compact, escape_html

WIDTH, HEIGHT = 560, 280
LEFT, RIGHT, TOP, BOTTOM = 46, 548, 44, 236
_LOGARITHMIC_FROM = 60


@dataclass(frozen=True)
class Heights:
    """The height of a bar for a count: linear, or logarithmic if counts are far apart."""

    top: int

    @property
    def logarithmic(self) -> bool:
        """Whether the scale is logarithmic."""
        return self.top > _LOGARITHMIC_FROM

    def of(self, count: float) -> float:
        """Return the y coordinate of the top of a bar."""
        share = math.log1p(count) / math.log1p(self.top) if self.logarithmic else count / self.top
        return BOTTOM - share * (BOTTOM - TOP)

    def ticks(self) -> list[int]:
        """Return the counts at which grid lines are drawn."""
        if self.logarithmic:
            return [10**power for power in range(len(str(self.top)))]
        step = next(step for step in (1, 2, 5, 10, 20) if self.top <= 5 * step)
        return list(range(0, self.top + 1, step))


def counted_axis(heights: Heights, what: str) -> list[str]:
    """Return the lines and numbers of an axis of counts."""
    lines: list[str] = []
    for tick in heights.ticks():
        lines += grid(heights.of(tick), compact(tick))
    scale = ", logarithmic" if heights.logarithmic else ""
    lines.append(label(4, 13, f"{what}{scale}", "begin"))
    base = '<line class="base" x1="{}" x2="{}" y1="{}" y2="{}"/>'
    lines.append(element(base, LEFT, RIGHT, BOTTOM, BOTTOM))
    return lines


def grid(y: float, name: str) -> list[str]:
    """Return a horizontal grid line with its label."""
    line = '<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>'
    return [element(line, LEFT, RIGHT, y, y), label(LEFT - 7, y + 4, name, "end")]


def bar(kind: str, x: float, top: float, width: float, hint: str) -> str:
    """Return a bar on the base line; `hint` is plain text."""
    return element(
        '<rect class="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}">'
        "<title>{}</title></rect>",
        *(kind, x, top, width, BOTTOM - top, hint),
    )


def label(x: float, y: float, text: str, kind: str = "") -> str:
    """Return text at a position."""
    return element('<text class="{}" x="{:.1f}" y="{:.1f}">{}</text>', kind, x, y, text)


def across_name(text: str) -> str:
    """Return the title of the x axis."""
    return label((LEFT + RIGHT) / 2, HEIGHT - 6, text, "axis")


def element(markup: str, *values: object) -> str:
    """Return markup with values in place of its braces, each escaped if it is not `Markup`."""
    return Markup(markup).format(*(escape_html(v) if isinstance(v, str) else v for v in values))


def svg(name: str, lines: Sequence[str], height: int = HEIGHT, role: str = "img") -> str:
    """Return a chart of these lines of markup; `name` is for screen readers.

    A chart with links needs the role "group": links in an "img" cannot be reached.
    """
    return element(
        '<svg viewBox="0 0 {} {}" role="{}" aria-label="{}">\n{}\n</svg>',
        *(WIDTH, height, role, name, Markup("\n").join(lines)),
    )
