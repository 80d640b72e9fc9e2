"""Two texts side by side, with the words that differ marked."""

from __future__ import annotations

import re

from lookalike.compare.diff import Change, Difference, difference
from lookalike.report.markup import Markup, clipped, escape_html, pieces
from lookalike.shown import counted

_TEMPLATE = "dedup/report/dedup.html"
_DEL, _INS = Markup("<del>{}</del>"), Markup("<ins>{}</ins>")

SHOWN_WHOLE = 1600
"""Characters of a text that is shown in full, whatever has changed in it."""
MOST_PARTS = 6
MOST_CHANGES = 60

_PART_CHARACTERS = 3000
_CHANGE_CHARACTERS = 800
_CHANGE_END = 200
_CONTEXT_CHARACTERS = 160
_LEAD_CHARACTERS = 24
"""Before the first change of an excerpt: few, so that it is in view on small screens."""
_MISSING = 60
"""Characters of words that an excerpt lacks and that are shown there."""

_WHITE = re.compile(r"\s+")
_WRAPPED = re.compile(r"^([^\n]{62,100})\n(?=\w)", re.MULTILINE)


def side_by_side(left: str, right: str, *, cut: bool = False) -> str:
    """Return the differences of two texts as HTML of bounded length.

    Short texts are shown in full, of long ones the surroundings of the first changes. `cut`: these
    are only the beginnings of the documents.
    """
    # Hard-wrapped lines are joined; the words are the same.
    left, right = _WRAPPED.sub(r"\1 ", left), _WRAPPED.sub(r"\1 ", right)
    found = difference(left, right)
    if not found.changes:
        known = "The two texts have" if found.complete and not cut else "The beginnings have"
        return pieces(_TEMPLATE).same_words(known, _text(clipped(left, SHOWN_WHOLE)))
    whole = max(len(left), len(right)) <= SHOWN_WHOLE and found.complete
    parts = [found.changes] if whole else _parts(found.changes)[:MOST_PARTS]
    lines = []
    at, shown_changes = (0, 0), 0
    for part in parts:
        shown_changes += len(part)
        edges = (slice(0, len(left)), slice(0, len(right)))
        if not whole:
            edges = _edges(left, right, found, part, shown_changes, at)
        if edges[0].start > at[0]:
            lines.append(_gap(f"{edges[0].start - at[0]:,} characters with the same words"))
        lines.append(_side(left, edges[0], [change.left for change in part], _DEL))
        lines.append(_side(right, edges[1], [change.right for change in part], _INS))
        at = (edges[0].stop, edges[1].stop)
    lines.append(_ending(found, shown_changes, len(left) - at[0], cut))
    return pieces(_TEMPLATE).sides([line for line in lines if line])


def excerpt(text: str, other: str, most: int, *, cut: bool) -> str | None:
    """Return at most `most` characters of a text that show its first difference from `other`.

    Words that only one of the two has are marked. None if no word differs. `cut`: these are only
    the beginnings, so that a difference at their ends does not count.
    """
    found = difference(other, text)
    changes = found.changes
    ends = found.complete and cut and changes
    if ends and (changes[-1].left.stop == len(other) or changes[-1].right.stop == len(text)):
        changes = changes[:-1]
    if not changes:
        return None
    begin = _word_begin(text, 0, changes[0].right.start, _LEAD_CHARACTERS)
    end = min(len(text), begin + most)
    words, at = [], begin
    for change in changes:
        here = change.right
        if here.start > end or (here.start == end and here.start < len(text)):
            break
        words.append(_text(text[at : here.start]))
        if change.left.start < change.left.stop:
            words.append(_DEL.format(_text(clipped(other[change.left], _MISSING))) + " ")
        if here.start < here.stop:
            words.append(_INS.format(_text(text[here.start : min(here.stop, end)])))
        at = min(here.stop, end)
    words.append(_text(text[at:end]))
    return Markup().join(["…" if begin else "", *words, "…" if end < len(text) else ""])


def _parts(changes: list[Change]) -> list[list[Change]]:
    """Group changes that are near each other, up to a readable length."""
    parts: list[list[Change]] = []
    for change in changes[:MOST_CHANGES]:
        if parts and all(
            next_one.start - last.stop <= 2 * _CONTEXT_CHARACTERS
            and next_one.stop - begin.start <= _PART_CHARACTERS
            for begin, last, next_one in (
                (parts[-1][0].left, parts[-1][-1].left, change.left),
                (parts[-1][0].right, parts[-1][-1].right, change.right),
            )
        ):
            parts[-1].append(change)
        else:
            parts.append([change])
    return parts


def _edges(
    left: str,
    right: str,
    found: Difference,
    part: list[Change],
    next_change: int,
    at: tuple[int, int],
) -> tuple[slice, slice]:
    """Return which part of each text is shown: the changes and some context."""
    until = (found.left_end, found.right_end)
    if next_change < len(found.changes):
        after = found.changes[next_change]
        until = (after.left.start, after.right.start)
    first, last = part[0], part[-1]
    one, two = (
        slice(_word_begin(text, least, begin.start), _word_end(text, end.stop, most))
        for text, least, begin, end, most in (
            (left, at[0], first.left, last.left, until[0]),
            (right, at[1], first.right, last.right, until[1]),
        )
    )
    return one, two


def _word_begin(text: str, least: int, at: int, context: int = _CONTEXT_CHARACTERS) -> int:
    """Return where the context before a position begins."""
    if at - least <= context:
        return least
    begin = at - context
    space = _WHITE.search(text, begin, at)
    return space.end() if space and space.end() < at else begin


def _word_end(text: str, at: int, most: int) -> int:
    """Return where the context after a position ends."""
    if most - at <= _CONTEXT_CHARACTERS:
        return most
    end = at + _CONTEXT_CHARACTERS
    for place in range(end, max(at, end - 40), -1):
        if text[place].isspace():
            return place
    return end


def _side(text: str, edges: slice, changes: list[slice], mark: Markup) -> str:
    """Return a part of one text with its changes marked."""
    words, at = [], edges.start
    for change in changes:
        words.append(_text(text[at : change.start]))
        if change.start < change.stop:
            words.append(mark.format(_changed(text[change])))
        at = change.stop
    marked = Markup().join([*words, _text(text[at : edges.stop])])
    return pieces(_TEMPLATE).side(marked)


def _changed(text: str) -> str:
    """Return changed words; of many the beginning and the end."""
    if len(text) <= _CHANGE_CHARACTERS + _CHANGE_END + 100:
        return _text(text)
    hidden = len(text) - _CHANGE_CHARACTERS - _CHANGE_END
    begin, end = _text(text[:_CHANGE_CHARACTERS]), _text(text[-_CHANGE_END:])
    return Markup().join([begin, pieces(_TEMPLATE).hidden(hidden), end])


def _text(text: str) -> str:
    return escape_html(_WHITE.sub(_white, text))


def _white(match: re.Match[str]) -> str:
    """Return white space with a bounded number of lines and indentation."""
    lines = match[0].split("\n")
    if len(lines) == 1:
        return " "
    return "\n" * min(2, len(lines) - 1) + " " * min(16, len(lines[-1].expandtabs(4)))


def _gap(text: str) -> str:
    return pieces(_TEMPLATE).gap(text)


def _ending(found: Difference, shown_changes: int, rest: int, cut: bool) -> str:
    """Return the note below the last part."""
    more = len(found.changes) - shown_changes
    if not found.complete:
        first = f"{counted(more, 'more change')}, and a" if more else "A"
        return _gap(f"{first} rest that was not compared: too long, or too different")
    if more:
        return _gap(counted(more, "more change"))
    if cut:
        return _gap("the rest of these long documents was not compared here")
    return _gap(f"{rest:,} characters with the same words") if rest > 0 else ""
