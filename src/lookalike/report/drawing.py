"""Pictures of pages, in SVG. Their colours are the page's, so that they turn dark with it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lookalike.report.markup import compact, shown

__all__ = [
    "BOTTOM",
    "HEIGHT",
    "LEFT",
    "RIGHT",
    "TOP",
    "WIDTH",
    "Heights",
    "across_name",
    "bar",
    "counted_axis",
    "grid",
    "label",
    "svg",
]

WIDTH, HEIGHT = 560, 280
LEFT, RIGHT, TOP, BOTTOM = 46, 548, 44, 236
_LOGARITHMIC_FROM = 60


@dataclass(frozen=True)
class Heights:
    """How high a count stands: in proportion, or by its logarithm where counts are far apart."""

    top: int

    @property
    def logarithmic(self) -> bool:
        """Whether it is the logarithm."""
        return self.top > _LOGARITHMIC_FROM

    def of(self, count: float) -> float:
        """Return where the top of a bar is."""
        share = math.log1p(count) / math.log1p(self.top) if self.logarithmic else count / self.top
        return BOTTOM - share * (BOTTOM - TOP)

    def ticks(self) -> list[int]:
        """Return the counts that lines are drawn at."""
        if self.logarithmic:
            return [10**power for power in range(len(str(self.top)))]
        step = next(step for step in (1, 2, 5, 10, 20) if self.top <= 5 * step)
        return list(range(0, self.top + 1, step))


def counted_axis(heights: Heights, what: str) -> list[str]:
    """Return the lines and numbers of an axis of counts."""
    lines = []
    for tick in heights.ticks():
        lines += grid(heights.of(tick), compact(tick))
    scale = ", logarithmic" if heights.logarithmic else ""
    lines.append(label(4, 13, f"{what}{scale}", "begin"))
    lines.append(f'<line class="base" x1="{LEFT}" x2="{RIGHT}" y1="{BOTTOM}" y2="{BOTTOM}"/>')
    return lines


def grid(y: float, name: str) -> list[str]:
    """Return a line across, with its name."""
    return [
        f'<line class="grid" x1="{LEFT}" x2="{RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>',
        label(LEFT - 7, y + 4, name, "end"),
    ]


def bar(kind: str, x: float, top: float, width: float, hint: str) -> str:
    """Return a bar that stands on the base; `hint` is ready HTML."""
    return (
        f'<rect class="{kind}" x="{x:.1f}" y="{top:.1f}" width="{width:.1f}" '
        f'height="{BOTTOM - top:.1f}"><title>{hint}</title></rect>'
    )


def label(x: float, y: float, text: str, kind: str = "") -> str:
    """Return text at a place."""
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{shown(text)}</text>'


def across_name(text: str) -> str:
    """Return the name of what goes across."""
    return label((LEFT + RIGHT) / 2, HEIGHT - 6, text, "axis")


def svg(name: str, lines: list[str], height: int = HEIGHT, role: str = "img") -> str:
    """Return a picture of these lines; `name` is for those who do not see it.

    The `role` of one with links is "group": what is in an image cannot be reached.
    """
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="{role}" aria-label="{shown(name)}">\n'
        + "\n".join(lines)
        + "\n</svg>"
    )
