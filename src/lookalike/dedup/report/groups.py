"""Groups and pairs of a report: first which of them are shown, then how."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from lookalike.dedup.pairs import Floats, Ints, VerifiedPairs
from lookalike.dedup.report.diff_view import excerpt, side_by_side
from lookalike.dedup.summary import similarity_text, size_text
from lookalike.report.markup import Markup, clipped, one_line, pieces, rendered
from lookalike.shown import counted

if TYPE_CHECKING:
    from lookalike.dedup.result import TextResult

TEMPLATE = "dedup/report/dedup.html"
SCRIPT = rendered("dedup/report/finder.js")
"""Hides rows; without it, all of them are shown."""

PAIRS, PAIRS_OF_ONE_GROUP = 10, 2
GROUPS, MEMBERS, MEMBERS_ALL_EQUAL = 12, 8, 3
MOST_BYTES, MOST_IDS = 2_000_000, 24
"""Of the list of all groups, and ids of each; the smallest groups are left out."""
COMPARED_BYTES = 4 << 20
"""Of each document of a pair: the rest of longer ones is not compared."""
_MEMBER_BYTES = 1 << 16
"""Of each member of a group that is compared with the kept document."""
_CONSIDERED = 10_000
_BEGINNING, _BEGINNING_BYTES, _ID = 280, 1600, 160
_LISTED_BEGINNING, _LISTED_BYTES, _LISTED_ID = 90, 400, 80


@dataclass(frozen=True)
class Group:
    """A group and some of its rows."""

    size: int
    kept: list[int]
    """The kept row; none if an old document replaces all."""
    others: list[int]
    """Some of the dropped rows, from the least similar to the most."""
    least: float
    """The lowest similarity of a dropped row; NaN if none is known."""
    below: int
    """Dropped rows below the threshold: others connect them with the kept row."""
    estimated: bool
    """Whether some similarities are estimates."""


@dataclass(frozen=True)
class ShownPair:
    """Two rows; with `old`, the left one is of the old corpus."""

    left: int
    right: int
    similarity: float
    distance: int
    old: bool = False


def group_sizes(result: TextResult) -> Ints:
    """Return the sizes of groups with two or more documents."""
    sizes = np.bincount(result.group_of)
    return sizes[sizes > 1]


def largest_groups(result: TextResult, most: int = GROUPS) -> list[Group]:
    """Return the largest groups; of equally large ones the first."""
    found = []
    for rows in islice(_by_size(result), most):
        gone = rows[~result.keep[rows]]
        similarity = result.similarity[gone]
        by_similarity = gone[np.argsort(similarity, kind="stable")]  # NaN comes last
        most_members = MEMBERS_ALL_EQUAL if (similarity == 1).all() else MEMBERS
        places = np.linspace(0, len(gone) - 1, min(most_members, len(gone)))
        found.append(
            Group(
                len(rows),
                rows[result.keep[rows]].tolist(),
                by_similarity[places.round().astype(np.int64)].tolist(),
                float(np.nanmin(similarity)) if not np.isnan(similarity).all() else float("nan"),
                int((similarity < result.settings.threshold).sum()),
                bool(result.estimated[gone].any()),
            )
        )
    return found


def _by_size(result: TextResult) -> Iterator[Ints]:
    """Yield the rows of each group of two or more, the largest group first."""
    order = np.argsort(result.group_of, kind="stable")
    begins = np.flatnonzero(np.diff(result.group_of[order], prepend=-1))
    sizes = np.diff(begins, append=len(order))
    for place in np.argsort(-sizes, kind="stable").tolist():
        if sizes[place] < 2:
            return
        yield order[begins[place] : begins[place] + sizes[place]]


def least_similar(result: TextResult, most: int = PAIRS) -> list[ShownPair]:
    """Return accepted pairs, the least similar first, few of each group; no equal ones."""
    pairs, old = result.different_pairs, result.documents.old
    different = pairs[np.flatnonzero((pairs.similarity < 1) & (pairs.left >= old))].moved(old, old)
    groups = result.group_of[different.left]
    return _few_of_each(different, different.similarity, groups, most)


def most_similar_rejected(result: TextResult, most: int = PAIRS) -> list[ShownPair]:
    """Return pairs that were compared and rejected, the most similar first, few of each group."""
    pairs = result.rejected
    return _few_of_each(pairs, -pairs.similarity, result.group_of[pairs.left], most)


def matches_with_old(result: TextResult, most: int = PAIRS) -> list[ShownPair]:
    """Return rows that are in the old corpus, with what they match, the least similar first."""
    rows = np.flatnonzero(result.matched_old >= 0)
    order = rows[np.argsort(result.similarity[rows], kind="stable")[:most]]
    return [
        ShownPair(int(result.matched_old[row]), row, float(result.similarity[row]), -1, old=True)
        for row in order.tolist()
    ]


def _few_of_each(pairs: VerifiedPairs, value: Floats, groups: Ints, most: int) -> list[ShownPair]:
    """Return the pairs of least value, few of each group."""
    if len(value) > _CONSIDERED:
        last = np.partition(value, _CONSIDERED)[_CONSIDERED]
        sure, tied = np.flatnonzero(value < last), np.flatnonzero(value == last)
        some = np.concatenate([sure, tied[: _CONSIDERED - len(sure)]])
        pairs, value, groups = pairs[some], value[some], groups[some]
    found: list[ShownPair] = []
    seen: dict[int, int] = {}
    for place in np.lexsort((pairs.right, pairs.left, value)).tolist():
        group = int(groups[place])
        seen[group] = seen.get(group, 0) + 1
        if seen[group] <= PAIRS_OF_ONE_GROUP:
            found.append(ShownPair(*(one[place].item() for one in pairs.to_numpy().values())))
        if len(found) == most:
            break
    return found


def group_section(result: TextResult) -> str:
    """Return the largest groups, with some members of each."""
    groups = largest_groups(result)
    if not groups:
        return ""
    shown_all = len(groups) == result.counts.groups
    which = "All of them." if shown_all else f"{len(groups)} of {result.counts.groups:,}."
    intro = pieces(TEMPLATE).soft(
        f"{which} The kept document comes first. Dropped documents follow, least similar first. "
        "Each excerpt starts at its first difference. Green: only in this document. Red: only in "
        "the kept one."
    )
    return Markup("\n").join([intro, *(_group(result, group) for group in groups)])


def _group(result: TextResult, group: Group) -> str:
    kept = group.kept[0] if group.kept else None
    rows = [_member(result, row, kept) for row in [*group.kept, *group.others]]
    others = group.size - len(group.kept)
    notes = [f"{len(group.others)} of {others:,} others are shown"]
    if others == len(group.others):
        notes = ["the other one is shown" if others == 1 else "all others are shown"]
    if not group.kept:
        none = result.settings.keep == "none"
        notes.append("none is kept" if none else "documents of the old corpus replace all")
    if group.least == 1:
        notes.append("all of similarity 1")
    elif not math.isnan(group.least):
        notes.append(f"the least similar has {_similarity(group.least, group.estimated)}")
    return pieces(TEMPLATE).group(group.size, "; ".join(notes), group.below, rows)


def _member(result: TextResult, row: int, kept: int | None) -> list[str]:
    parts, position = pieces(TEMPLATE), row + result.documents.old
    similarity = float(result.similarity[row])
    if result.keep[row]:
        value: str = parts.badge("kept", "kept")
    elif math.isnan(similarity):
        value = parts.unknown("its signature was not compared with that of the kept document")
    else:
        value = _similarity(similarity, bool(result.estimated[row]))
        if similarity < result.settings.threshold:
            value = parts.badge(value, "low")
    name = parts.id(_name(result.id(row)))
    old = int(result.matched_old[row])
    if old >= 0:
        also = parts.soft_span("is old"), parts.id(_name(result.old_id(old)))
        name = Markup(" ").join([name, *also])
    texts, old_count = result.documents.texts, result.documents.old
    size = texts.size(position)
    if kept is None or row == kept:
        text = one_line(texts.beginning(position, _BEGINNING_BYTES))
        begins = clipped(text, _BEGINNING)
    elif size <= COMPARED_BYTES and texts.equal(position, kept + old_count):
        begins = parts.remark("the same text")
    else:
        text, other = (
            one_line(texts.beginning(at, _MEMBER_BYTES)) for at in (position, kept + old_count)
        )
        cut = max(size, texts.size(kept + old_count)) > _MEMBER_BYTES
        same = "the same words; only the spaces between them differ"
        if cut:
            same = f"no difference in the first {size_text(_MEMBER_BYTES)}"
        begins = excerpt(text, other, _BEGINNING, cut=cut) or parts.remark(same)
    return [value, name, size_text(size), parts.begin(begins)]


def old_section(result: TextResult) -> str:
    """Return documents that are in the old corpus, with what they match there."""
    if not result.documents.old:
        return ""
    parts = pieces(TEMPLATE)
    if not result.counts.in_old:
        return parts.soft(f"No document is similar to {_one_of_old(result)}.")
    pairs = matches_with_old(result)
    which = "all" if len(pairs) == result.counts.in_old else len(pairs)
    intro = parts.soft(
        f"{counted(result.counts.in_old, 'document')} dropped because of {_one_of_old(result)}. "
        f"These are {which}, the least similar first, with the old document on the left."
    )
    return Markup("\n").join([intro, *(_pair(result, pair) for pair in pairs)])


def _one_of_old(result: TextResult) -> str:
    count = result.documents.old
    return "the old one" if count == 1 else f"one of the {count:,} old ones"


def pair_sections(result: TextResult) -> list[tuple[str, str, str]]:
    """Return the accepted and the rejected pairs that are nearest to the threshold."""
    about = "estimated" if not result.settings.verify else "exact"
    found: list[tuple[str, str, str]] = []
    for kind, title, pairs, advice in [
        ("accepted", "Least similar", least_similar(result), "no duplicates to you, raise"),
        ("rejected", "Most similar", most_similar_rejected(result), "duplicates to you, lower"),
    ]:
        intro = pieces(TEMPLATE).soft(
            f"{kind.capitalize()}, but only just ({about} similarity): if these are {advice} the "
            "threshold. At most two of a group."
        )
        cards = [_pair(result, pair) for pair in pairs]
        if pairs:
            found.append((kind, f"{title} {kind} pairs", Markup("\n").join([intro, *cards])))
    return found


def _pair(result: TextResult, pair: ShownPair) -> str:
    old, texts = result.documents.old, result.documents.texts
    left, right = pair.left + (0 if pair.old else old), pair.right + old
    unknown = pair.old and not texts.size(left)
    if unknown:
        text = one_line(texts.beginning(right, _BEGINNING_BYTES))
        content: str = pieces(TEMPLATE).only_signature(clipped(text, _BEGINNING))
    else:
        one, two = (texts.beginning(position, COMPARED_BYTES) for position in (left, right))
        longest = max(texts.size(left), texts.size(right))
        content = side_by_side(one, two, cut=longest > COMPARED_BYTES)
    estimated = unknown or not result.settings.verify
    differ = ""
    if pair.distance >= 0:
        values = f"{result.settings.permutations:,} MinHash values"
        if not result.settings.by_bands:
            values = f"{result.settings.bits:,} bits"
        differ = f"{pair.distance:,} of {values} {'differs' if pair.distance == 1 else 'differ'}"
    together = not pair.old and result.group_of[pair.left] == result.group_of[pair.right]
    return pieces(TEMPLATE).pair(
        _similarity(pair.similarity, estimated),
        differ,
        together and pair.similarity < result.settings.threshold,
        _name(result.old_id(pair.left) if pair.old else result.id(pair.left)),
        _name(result.id(pair.right)),
        content,
        [not pair.old and bool(result.keep[pair.left]), bool(result.keep[pair.right])],
    )


def _name(name: str | int, most: int = _ID) -> str:
    return clipped(one_line(str(name)), most)


def _similarity(value: float, estimated: bool = False) -> str:
    """Return a similarity, and whether it is an estimate."""
    if math.isnan(value):
        return "not known"
    return ("≈ " if estimated else "") + similarity_text(value)


def all_groups_section(result: TextResult) -> str:
    """Return the list, the largest group first; nothing if there is none."""
    rows: list[list[str]] = []
    room = MOST_BYTES
    for row in _rows(result):
        room -= sum(map(len, row))
        if room < 0 and rows:
            break
        rows.append(row)
    if not rows:
        return ""
    count = result.counts.groups
    which, rest = "All of them", ""
    if len(rows) < count:
        which = f"The largest {len(rows):,} of {count:,}"
        rest = " The others are left out, to keep this page small; annotated output has all."
    intro = (
        f"{which}, with the first {MOST_IDS} ids of each and the beginning of the kept "
        f"document.{rest}"
    )
    return pieces(TEMPLATE).all_groups(intro, rows, SCRIPT)


def _rows(result: TextResult) -> Iterator[list[str]]:
    """Yield a row of cells for each group, made when asked for."""
    parts, texts, old = pieces(TEMPLATE), result.documents.texts, result.documents.old
    for rows in _by_size(result):
        kept, dropped = rows[result.keep[rows]], rows[~result.keep[rows]]
        similarity = result.similarity[dropped]
        known = similarity[~np.isnan(similarity)]
        first = int(kept[0] if len(kept) else rows[0])
        begin = one_line(texts.beginning(first + old, _LISTED_BYTES))
        yield [
            f"{len(rows):,}",
            similarity_text(float(known.min())) if len(known) else "-",
            _ids(result, kept.tolist()) or parts.soft_span("an old one"),
            _ids(result, dropped.tolist()),
            parts.begin(clipped(begin, _LISTED_BEGINNING)),
        ]


def _ids(result: TextResult, rows: list[int]) -> str:
    parts = pieces(TEMPLATE)
    listed = [parts.id(_name(result.id(row), _LISTED_ID)) for row in rows[:MOST_IDS]]
    if len(rows) > MOST_IDS:
        listed.append(parts.soft_span(f"and {len(rows) - MOST_IDS:,} more"))
    return Markup(" ").join(listed)
