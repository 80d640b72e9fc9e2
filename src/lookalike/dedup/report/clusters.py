"""Documents of a report: the largest clusters, pairs near the threshold, and the list of clusters.

First which of them are shown, then how.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lookalike.dedup.report.diff_view import excerpt, side_by_side
from lookalike.dedup.summary import similarity_text, size_text
from lookalike.report.markup import Markup, clipped, one_line, pieces, rendered
from lookalike.shown import counted

if TYPE_CHECKING:
    from lookalike.dedup.pairs import VerifiedPairs
    from lookalike.dedup.result import TextResult

__all__ = [
    "SCRIPT",
    "TEMPLATE",
    "Cluster",
    "ShownPair",
    "all_clusters_section",
    "cluster_section",
    "cluster_sizes",
    "largest_clusters",
    "least_similar",
    "matches_with_old",
    "most_similar_rejected",
    "old_section",
    "pair_sections",
]


TEMPLATE = "dedup/report/dedup.html"

PAIRS = 10

PAIRS_OF_ONE_CLUSTER = 2

CLUSTERS = 12

MEMBERS = 8

MEMBERS_ALL_EQUAL = 3

_CONSIDERED = 10_000


@dataclass(frozen=True)
class Cluster:
    """A cluster, and some of those in it."""

    size: int
    stays: list[int]
    """The row that stays; none if an old document stands for all."""
    others: list[int]
    """Some of the rows that go, from the least similar to the most."""
    least: float
    """Similarity of a dropped one with the one that stands for it; NaN if none is known."""
    below: int
    """Dropped ones that are less similar than the threshold: they came in through others."""
    estimated: bool
    """Whether some of the similarities are estimates."""


@dataclass(frozen=True)
class ShownPair:
    """Two rows; of the old corpus, if `old`, the left one."""

    left: int
    right: int
    similarity: float
    distance: int
    old: bool = False


def cluster_sizes(result: TextResult) -> NDArray[np.int64]:
    """Return the sizes of clusters with two or more documents."""
    sizes = np.bincount(result.clusters)
    return sizes[sizes > 1]


def largest_clusters(result: TextResult, most: int = CLUSTERS) -> list[Cluster]:
    """Return the largest clusters; of equally large ones those that come first."""
    sizes = np.bincount(result.clusters)
    labels = np.flatnonzero(sizes > 1)
    found = []
    for label in labels[np.argsort(-sizes[labels], kind="stable")[:most]].tolist():
        rows = np.flatnonzero(result.clusters == label)
        gone = rows[~result.keep[rows]]
        similarity = result.similarity[gone]
        by_similarity = gone[np.argsort(similarity, kind="stable")]  # NaN comes last
        most_members = MEMBERS_ALL_EQUAL if (similarity == 1).all() else MEMBERS
        places = np.linspace(0, len(gone) - 1, min(most_members, len(gone)))
        found.append(
            Cluster(
                int(sizes[label]),
                rows[result.keep[rows]].tolist(),
                by_similarity[places.round().astype(np.int64)].tolist(),
                float(np.nanmin(similarity)) if not np.isnan(similarity).all() else float("nan"),
                int((similarity < result.settings.threshold).sum()),
                bool(result.estimated[gone].any()),
            )
        )
    return found


def least_similar(result: TextResult, most: int = PAIRS) -> list[ShownPair]:
    """Return accepted pairs, the least similar first, few of each cluster; no equal ones."""
    pairs, old = result.text_pairs, result.documents.old
    different = pairs[np.flatnonzero((pairs.similarity < 1) & (pairs.left >= old))].moved(old, old)
    clusters = result.clusters[different.left]
    return _few_of_each(different, different.similarity, clusters, most)


def most_similar_rejected(result: TextResult, most: int = PAIRS) -> list[ShownPair]:
    """Return pairs that were compared and rejected, the most similar first, few of each cluster."""
    pairs = result.rejected
    return _few_of_each(pairs, -pairs.similarity, result.clusters[pairs.left], most)


def matches_with_old(result: TextResult, most: int = PAIRS) -> list[ShownPair]:
    """Return rows that are in the old corpus, with what they match, the least similar first."""
    rows = np.flatnonzero(result.matched_old >= 0)
    order = rows[np.argsort(result.similarity[rows], kind="stable")[:most]]
    return [
        ShownPair(int(result.matched_old[row]), row, float(result.similarity[row]), -1, old=True)
        for row in order.tolist()
    ]


def _few_of_each(
    pairs: VerifiedPairs, value: NDArray[np.float64], groups: NDArray[np.int64], most: int
) -> list[ShownPair]:
    """Return pairs of least value, not more than some of each group."""
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
        if seen[group] <= PAIRS_OF_ONE_CLUSTER:
            found.append(
                ShownPair(
                    int(pairs.left[place]),
                    int(pairs.right[place]),
                    float(pairs.similarity[place]),
                    int(pairs.distance[place]),
                )
            )
        if len(found) == most:
            break
    return found


COMPARED_BYTES = 4 << 20

"""Of each document of a pair that is shown: longer ones are compared up to here."""

_BEGINNING_BYTES = 1600

_MEMBER_BYTES = 1 << 16

"""Of each member of a cluster that is compared with the kept document."""

_BEGINNING = 280

_ID = 160


def cluster_section(result: TextResult) -> str:
    """Return the largest clusters, with some members of each."""
    clusters = largest_clusters(result)
    if not clusters:
        return ""
    shown_all = len(clusters) == result.counts.clusters
    which = "All of them." if shown_all else f"{len(clusters)} of {result.counts.clusters:,}."
    intro = pieces(TEMPLATE).soft(
        f"{which} Of each, the one that stays and some of the others, from the least similar to it "
        "to the most, each from its first difference on; words that only one of the two has are "
        "marked."
    )
    return Markup("\n").join([intro, *(_cluster(result, cluster) for cluster in clusters)])


def _cluster(result: TextResult, cluster: Cluster) -> str:
    stays = cluster.stays[0] if cluster.stays else None
    rows = [_member(result, row, stays) for row in [*cluster.stays, *cluster.others]]
    others = cluster.size - len(cluster.stays)
    notes = [f"{len(cluster.others)} of {others:,} others are shown"]
    if others == len(cluster.others):
        notes = ["the other one is shown" if others == 1 else "all others are shown"]
    if not cluster.stays:
        none = result.settings.keep == "none"
        notes.append("none stays" if none else "documents of the old corpus stand for all")
    if cluster.least == 1:
        notes.append("all of similarity 1")
    elif not math.isnan(cluster.least):
        notes.append(f"the least similar has {_similarity(cluster.least, cluster.estimated)}")
    made: str = pieces(TEMPLATE).cluster(cluster.size, "; ".join(notes), cluster.below, rows)
    return made


def _member(result: TextResult, row: int, stays: int | None) -> list[str]:
    parts, position = pieces(TEMPLATE), row + result.documents.old
    similarity = float(result.similarity[row])
    if result.keep[row]:
        value = parts.badge("stays", "stays")
    elif math.isnan(similarity):
        value = parts.unknown("its signature was not compared with that of the one that stays")
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
    if stays is None or row == stays:
        text = one_line(texts.beginning(position, _BEGINNING_BYTES))
        begins = clipped(text, _BEGINNING)
    elif size <= COMPARED_BYTES and texts.equal(position, stays + old_count):
        begins = parts.remark("the same text")
    else:
        text, other = (
            one_line(texts.beginning(at, _MEMBER_BYTES)) for at in (position, stays + old_count)
        )
        cut = max(size, texts.size(stays + old_count)) > _MEMBER_BYTES
        begins = excerpt(text, other, _BEGINNING, cut=cut) or parts.remark(_alike(cut))
    return [value, name, size_text(size), parts.begin(begins)]


def _alike(cut: bool) -> str:
    """Return what is said of a member in which no word differs from the kept document."""
    if cut:
        return f"no difference in the first {size_text(_MEMBER_BYTES)}"
    return "the same words; only the spaces between them differ"


def old_section(result: TextResult) -> str:
    """Return documents that are in the old corpus, with what they match there."""
    if not result.documents.old:
        return ""
    parts = pieces(TEMPLATE)
    if not result.counts.in_old:
        none: str = parts.soft(f"None of the documents is like {_one_of_old(result)}.")
        return none
    pairs = matches_with_old(result)
    intro = parts.soft(
        f"{counted(result.counts.in_old, 'document')} dropped because of {_one_of_old(result)}. "
        f"{_these(len(pairs), result.counts.in_old)}, the least similar first, with the old "
        "document on the left."
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
            "threshold. At most two of a cluster."
        )
        cards = [_pair(result, pair) for pair in pairs]
        if pairs:
            found.append((kind, f"{title} {kind} pairs", Markup("\n").join([intro, *cards])))
    return found


def _pair(result: TextResult, pair: ShownPair) -> str:
    """Return two documents and how they differ."""
    old = result.documents.old
    left, right = pair.left + (0 if pair.old else old), pair.right + old
    unknown = pair.old and not result.documents.texts.size(left)
    estimated = unknown or not result.settings.verify
    differ = ""
    if pair.distance >= 0:
        values = f"{result.settings.permutations:,} values"
        if not result.settings.by_bands:
            values = f"{result.settings.bits:,} bits"
        differ = f"{pair.distance:,} of {values} {'differs' if pair.distance == 1 else 'differ'}"
    together = not pair.old and result.clusters[pair.left] == result.clusters[pair.right]
    made: str = pieces(TEMPLATE).pair(
        _similarity(pair.similarity, estimated),
        differ,
        together and pair.similarity < result.settings.threshold,
        _name(result.old_id(pair.left) if pair.old else result.id(pair.left)),
        _name(result.id(pair.right)),
        _only_signature(result, right) if unknown else _compared(result, left, right),
    )
    return made


def _compared(result: TextResult, left: int, right: int) -> str:
    texts = result.documents.texts
    one, two = (texts.beginning(position, COMPARED_BYTES) for position in (left, right))
    longest = max(texts.size(left), texts.size(right))
    return side_by_side(one, two, cut=longest > COMPARED_BYTES)


def _only_signature(result: TextResult, position: int) -> str:
    """Return the new document of a match whose old one is not known."""
    text = one_line(result.documents.texts.beginning(position, _BEGINNING_BYTES))
    made: str = pieces(TEMPLATE).only_signature(clipped(text, _BEGINNING))
    return made


def _name(name: str | int) -> str:
    return clipped(one_line(str(name)), _ID)


def _similarity(value: float, estimated: bool = False) -> str:
    """Return a similarity, and whether it is an estimate."""
    if math.isnan(value):
        return "not known"
    return ("≈ " if estimated else "") + similarity_text(value)


def _these(count: int, of: int) -> str:
    return "These are all" if count == of else f"These are {count}"


MOST_BYTES = 2_000_000

"""Of the list; what does not fit is left out, the smallest clusters first, and that is said."""

MOST_IDS = 24

_LISTED_ID = 80

_LISTED_BEGINNING = 90

_LISTED_BYTES = 400

SCRIPT = rendered("dedup/report/finder.js")
"""Hides rows, and nothing else: without it, all of them are there."""


def all_clusters_section(result: TextResult) -> str:
    """Return the list, the largest cluster first; nothing if there is none."""
    rows: list[list[str]] = []
    room = MOST_BYTES
    for row in _rows(result):
        room -= sum(map(len, row))
        if room < 0 and rows:
            break
        rows.append(row)
    if not rows:
        return ""
    count = result.counts.clusters
    which = "All of them" if len(rows) == count else f"The largest {len(rows):,} of {count:,}"
    rest = (
        ""
        if len(rows) == count
        else " The others are left out, to keep this page small; annotated output has all."
    )
    intro = (
        f"{which}, with the first {MOST_IDS} ids of each and the beginning of the document that "
        f"stays.{rest}"
    )
    made: str = pieces(TEMPLATE).all_clusters(intro, rows, SCRIPT)
    return made


def _rows(result: TextResult) -> Iterator[list[str]]:
    """Yield a row of cells for each cluster, made when asked for."""
    order = np.argsort(result.clusters, kind="stable")
    begins = np.flatnonzero(np.diff(result.clusters[order], prepend=-1))
    sizes = np.diff(begins, append=len(order))
    parts, texts, old = pieces(TEMPLATE), result.documents.texts, result.documents.old
    for place in np.argsort(-sizes, kind="stable").tolist():
        if sizes[place] < 2:
            return
        rows = order[begins[place] : begins[place] + sizes[place]]
        stay, gone = rows[result.keep[rows]], rows[~result.keep[rows]]
        similarity = result.similarity[gone]
        known = similarity[~np.isnan(similarity)]
        first = int(stay[0] if len(stay) else rows[0])
        begin = one_line(texts.beginning(first + old, _LISTED_BYTES))
        yield [
            f"{int(sizes[place]):,}",
            _lowest(float(known.min()) if len(known) else math.nan),
            _ids(result, stay.tolist()) or parts.soft_span("an old one"),
            _ids(result, gone.tolist()),
            parts.begin(clipped(begin, _LISTED_BEGINNING)),
        ]


def _lowest(value: float) -> str:
    return "-" if math.isnan(value) else similarity_text(value)


def _ids(result: TextResult, rows: list[int]) -> str:
    parts = pieces(TEMPLATE)
    names = (clipped(one_line(str(result.id(row))), _LISTED_ID) for row in rows[:MOST_IDS])
    listed = [parts.id(name) for name in names]
    if len(rows) > MOST_IDS:
        listed.append(parts.soft_span(f"and {len(rows) - MOST_IDS:,} more"))
    return Markup(" ").join(listed)
