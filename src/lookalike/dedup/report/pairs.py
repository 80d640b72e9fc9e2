"""The parts of the page that show documents: clusters, matches and pairs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from lookalike.dedup.report.diff_view import excerpt, side_by_side
from lookalike.dedup.report.samples import (
    Cluster,
    ShownPair,
    largest_clusters,
    least_similar,
    matches_with_old,
    most_similar_rejected,
)
from lookalike.dedup.summary import similarity_text, size_text
from lookalike.report.markup import clipped, one_line, shown, table
from lookalike.shown import counted

if TYPE_CHECKING:
    from lookalike.dedup.result import DedupResult

__all__ = ["cluster_section", "old_section", "pair_sections"]

COMPARED_BYTES = 4 << 20
"""Of each document of a pair that is shown: longer ones are compared up to here."""

_BEGINNING_BYTES = 1600
_MEMBER_BYTES = 1 << 16
"""Of each member of a cluster that is compared with the kept document."""
_BEGINNING = 280
_ID = 160


def cluster_section(result: DedupResult) -> str:
    """Return the largest clusters, with some members of each."""
    clusters = largest_clusters(result)
    if not clusters:
        return ""
    shown_all = len(clusters) == result.counts.clusters
    which = "All of them." if shown_all else f"{len(clusters)} of {result.counts.clusters:,}."
    intro = (
        f'<p class="soft">{which} Of each, the one that stays and some of the others, from the '
        "least similar to it to the most, each from its first difference on; words that only one "
        "of the two has are marked.</p>"
    )
    return "\n".join([intro, *(_cluster(result, cluster) for cluster in clusters)])


def _cluster(result: DedupResult, cluster: Cluster) -> str:
    stays = cluster.stays[0] if cluster.stays else None
    rows = [_member(result, row, stays) for row in [*cluster.stays, *cluster.others]]
    heads = ["similarity", "id", "size", "text"]
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
    badge = ""
    if cluster.below:
        badge = (
            f'<span class="badge low">{cluster.below:,} below the threshold: here through others'
            "</span>"
        )
    return (
        f'<div class="card"><div class="head"><h3>{cluster.size:,} documents</h3>'
        f'<span class="soft">{"; ".join(notes)}</span>{badge}</div>\n'
        f"{table(heads, rows, {0, 2}, 'members')}</div>"
    )


def _member(result: DedupResult, row: int, stays: int | None) -> list[str]:
    position = row + result.documents.old
    similarity = float(result.similarity[row])
    if result.keep[row]:
        value = '<span class="badge stays">stays</span>'
    elif math.isnan(similarity):
        value = (
            '<span title="its signature was not compared with that of the one that stays">-</span>'
        )
    else:
        value = _similarity(similarity, bool(result.estimated[row]))
        if similarity < result.settings.threshold:
            value = f'<span class="badge low">{value}</span>'
    name = _id(result.id(row))
    old = int(result.matched_old[row])
    if old >= 0:
        name += f' <span class="soft">is old</span> {_id(result.old_id(old))}'
    texts, old_count = result.documents.texts, result.documents.old
    size = texts.size(position)
    if stays is None or row == stays:
        text = one_line(texts.beginning(position, _BEGINNING_BYTES))
        begins = shown(clipped(text, _BEGINNING))
    elif size <= COMPARED_BYTES and texts.equal(position, stays + old_count):
        begins = "<em>the same text</em>"
    else:
        text, other = (
            one_line(texts.beginning(at, _MEMBER_BYTES)) for at in (position, stays + old_count)
        )
        cut = max(size, texts.size(stays + old_count)) > _MEMBER_BYTES
        begins = excerpt(text, other, _BEGINNING, cut=cut) or _alike(cut)
    return [value, name, size_text(size), f'<span class="begin" dir="auto">{begins}</span>']


def _alike(cut: bool) -> str:
    """Return what is said of a member in which no word differs from the kept document."""
    if cut:
        return f"<em>no difference in the first {size_text(_MEMBER_BYTES)}</em>"
    return "<em>the same words; only the spaces between them differ</em>"


def old_section(result: DedupResult) -> str:
    """Return documents that are in the old corpus, with what they match there."""
    if not result.documents.old:
        return ""
    if not result.counts.in_old:
        return f'<p class="soft">None of the documents is like {_one_of_old(result)}.</p>'
    pairs = matches_with_old(result)
    intro = (
        f'<p class="soft">{counted(result.counts.in_old, "document")} dropped because of '
        f"{_one_of_old(result)}. {_these(len(pairs), result.counts.in_old)}, the "
        "least similar first, with the old document on the left.</p>"
    )
    return "\n".join([intro, *(_pair(result, pair) for pair in pairs)])


def _one_of_old(result: DedupResult) -> str:
    count = result.documents.old
    return "the old one" if count == 1 else f"one of the {count:,} old ones"


def pair_sections(result: DedupResult) -> list[tuple[str, str, str]]:
    """Return the accepted and the rejected pairs that are nearest to the threshold."""
    about = "estimated" if not result.settings.verify else "exact"
    found = []
    for kind, title, pairs, advice in [
        ("accepted", "Least similar", least_similar(result), "no duplicates to you, raise"),
        ("rejected", "Most similar", most_similar_rejected(result), "duplicates to you, lower"),
    ]:
        intro = (
            f'<p class="soft">{kind.capitalize()}, but only just ({about} similarity): if these '
            f"are {advice} the threshold. At most two of a cluster.</p>"
        )
        cards = [_pair(result, pair) for pair in pairs]
        if pairs:
            found.append((kind, f"{title} {kind} pairs", "\n".join([intro, *cards])))
    return found


def _pair(result: DedupResult, pair: ShownPair) -> str:
    """Return two documents and how they differ."""
    old = result.documents.old
    left, right = pair.left + (0 if pair.old else old), pair.right + old
    names = [
        _id(result.old_id(pair.left) if pair.old else result.id(pair.left)),
        _id(result.id(pair.right)),
    ]
    unknown = pair.old and not result.documents.texts.size(left)
    estimated = unknown or not result.settings.verify
    head = [f"<h3>{_similarity(pair.similarity, estimated)}</h3>"]
    if pair.distance >= 0:
        values = f"{result.settings.permutations:,} values"
        if not result.settings.by_bands:
            values = f"{result.settings.bits:,} bits"
        differ = "differs" if pair.distance == 1 else "differ"
        head.append(f'<span class="soft">{pair.distance:,} of {values} {differ}</span>')
    together = not pair.old and result.clusters[pair.left] == result.clusters[pair.right]
    if together and pair.similarity < result.settings.threshold:
        head.append('<span class="badge">in the same cluster, through others</span>')
    content = _only_signature(result, right) if unknown else _compared(result, left, right)
    return (
        f'<div class="card"><div class="head">{"".join(head)}</div>\n'
        f'<div class="sides names"><div class="name-of">{names[0]}</div>'
        f'<div class="name-of">{names[1]}</div></div>\n{content}</div>'
    )


def _compared(result: DedupResult, left: int, right: int) -> str:
    texts = result.documents.texts
    one, two = (texts.beginning(position, COMPARED_BYTES) for position in (left, right))
    longest = max(texts.size(left), texts.size(right))
    return side_by_side(one, two, cut=longest > COMPARED_BYTES)


def _only_signature(result: DedupResult, position: int) -> str:
    """Return the new document of a match whose old one is not known."""
    return (
        '<p class="note">Of the old document only the signature is known: the similarity is an '
        "estimate, and there are no texts to compare. The new one begins:</p>\n"
        f'<div class="sides one"><div class="side">{_beginning(result, position)}</div></div>'
    )


def _beginning(result: DedupResult, position: int) -> str:
    text = one_line(result.documents.texts.beginning(position, _BEGINNING_BYTES))
    return f'<span class="begin" dir="auto">{shown(clipped(text, _BEGINNING))}</span>'


def _id(name: str | int) -> str:
    return f'<bdi class="id">{shown(clipped(one_line(str(name)), _ID))}</bdi>'


def _similarity(value: float, estimated: bool = False) -> str:
    """Return a similarity, and whether it is an estimate."""
    if math.isnan(value):
        return "not known"
    return ("≈ " if estimated else "") + similarity_text(value)


def _these(count: int, of: int) -> str:
    return "These are all" if count == of else f"These are {count}"
