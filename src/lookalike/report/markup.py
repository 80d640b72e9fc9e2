"""Text made fit for a page: whatever comes from documents is hostile until it has been here."""

from __future__ import annotations

import html
import re

__all__ = ["clipped", "compact", "one_line", "shown", "table"]


def _stand_ins() -> dict[int, str | None]:
    """Return what is shown for characters that are invisible or would rearrange others."""
    found: dict[int, str | None] = {code: chr(0x2400 + code) for code in range(32)}
    found[0x7F] = "\u2421"
    found |= dict.fromkeys([*range(0x80, 0xA0), 0xFFFE, 0xFFFF, *range(0xD800, 0xE000)], "\ufffd")
    orders = [*range(0x202A, 0x202F), *range(0x2066, 0x206A), *range(0xE0000, 0xE0080)]
    found |= {code: f"\u2039U+{code:04X}\u203a" for code in orders}
    found[ord("\r")] = None
    del found[ord("\t")], found[ord("\n")]
    return found


_STAND_INS = _stand_ins()
_SPACES = re.compile(r"\s+")


def shown(text: object) -> str:
    """Return text as HTML that is nothing but that text.

    Controls become pictures of themselves, orders that turn the direction of writing and other
    invisible ones their numbers, halves of surrogate pairs the replacement character.
    """
    return html.escape(str(text).translate(_STAND_INS))


def clipped(text: str, most: int) -> str:
    """Return the text, or its beginning and an ellipsis; not yet escaped."""
    return text if len(text) <= most else text[:most].rstrip() + "…"


def one_line(text: str) -> str:
    """Return the text with every run of white space a single space."""
    return _SPACES.sub(" ", text).strip()


def compact(count: int) -> str:
    """Return a count for a place with little room: 950, 12.3k, 4M."""
    if count < 10_000:
        return f"{count:,}"
    unit, size = "k", 1_000
    if count >= 1_000_000:
        unit, size = "M", 1_000_000
    value = count / size
    return f"{value:.1f}{unit}" if value < 100 and count % size else f"{value:,.0f}{unit}"


def table(
    heads: list[str], rows: list[list[str]], numbers: set[int], name: str = "", *, id: str = ""
) -> str:
    """Return a table of ready HTML; `numbers` are the columns to be set to the right."""
    align = [' class="number"' if column in numbers else "" for column in range(len(heads))]
    known = [f'{key}="{value}"' for key, value in (("class", name), ("id", id)) if value]
    lines = [f"<{' '.join(['table', *known])}>"]
    head = "".join(f"<th{a}>{text}</th>" for a, text in zip(align, heads, strict=True))
    lines.append(f"<thead><tr>{head}</tr></thead>")
    lines.append("<tbody>")
    for row in rows:
        cells = "".join(f"<td{a}>{cell}</td>" for a, cell in zip(align, row, strict=True))
        lines.append(f"<tr>{cells}</tr>")
    lines += ["</tbody>", "</table>"]
    return "\n".join(lines)
