"""The page, from its title to its end: one function for each part."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from pathlib import Path

import numpy as np

from lookalike.dedup.report.remade import argument_text, reading_arguments
from lookalike.report.frame import (
    figure,
    made_line,
    page,
    remade_card,
    tile,
    typed_command,
    write_page,
)
from lookalike.report.markup import clipped, one_line, shown, table
from lookalike.shown import counted
from lookalike.topics import cluster_documents
from lookalike.topics.report.charts import MOST_ON_MAP, map_chart, spread_chart
from lookalike.topics.report.style import STYLE
from lookalike.topics.result import DocumentCluster, DocumentClusters, about

__all__ = ["write_report"]

MOST_CARDS, MOST_BARS = 100, 300
"""Clusters that are told of, and that have a bar: the largest."""
_ID, _BEGINNING, _BEGINNING_BYTES = 80, 280, 1200


def write_report(
    result: DocumentClusters, path: Path, command: Sequence[str] | None = None
) -> None:
    """Write the page; an interrupted run leaves what was there before.

    The same result gives the same page. Its size is bounded, however large the corpus.
    """
    name = shown(result.source.name)
    heading = [
        f"<h1>Topics of <bdi>{name}</bdi></h1>",
        made_line(result.made),
        f'<p class="lead">{_lead(result)}</p>',
    ]
    sections = [
        ("summary", "Summary", _summary(result)),
        ("sizes", "Sizes", _sizes(result)),
        ("map", "Map", _map(result)),
        ("clusters", "Clusters", _clusters(result)),
        ("left-out", "Left out", _left_out(result)),
        ("settings", "Settings", f"{_settings(result)}\n{remade_card(_typed(result, command))}"),
    ]
    write_page(page(f"Topics of {name}", "lookalike cluster", heading, sections, style=STYLE), path)


def _lead(result: DocumentClusters) -> str:
    if not result.clusters:
        return "There are no documents with words in it."
    clustered = len(result.labels) - result.without_features
    return (
        f"{counted(clustered, 'document')} in {counted(len(result), 'cluster')}. Words are those "
        "that tell a cluster best from the others."
    )


def _summary(result: DocumentClusters) -> str:
    tiles = [tile(shown(name), value, note) for name, value, note in about(result)]
    return "\n".join(['<div class="tiles">', *tiles, "</div>"])


def _title(one: DocumentCluster) -> str:
    """Return what a cluster is called, safe for the page."""
    words = ", ".join(word for word, _ in one.words[:5])
    return f"<bdi>{shown(words or 'no words of its own')}</bdi>"


def _sizes(result: DocumentClusters) -> str:
    if not result.clusters:
        return ""
    most = result.clusters[0].size
    rows = []
    for one in result.clusters[:MOST_BARS]:
        title = _title(one)
        if one.number < MOST_CARDS:
            title = f'<a href="#c{one.number}">{title}</a>'
        else:
            title = f"<span>{title}</span>"
        rows.append(
            f'<li><span class="rank">{one.number}</span>{title}'
            f'<span class="count">{one.size:,}</span>'
            f'<span class="share" style="width:{100 * one.size / most:.1f}%"></span></li>'
        )
    rest = len(result) - MOST_BARS
    more = f'<p class="soft">And {counted(rest, "smaller cluster")}.</p>' if rest > 0 else ""
    listed = "\n".join(rows)
    return f'<div class="card"><ol class="sizes">\n{listed}\n</ol>{more}</div>'


def _map(result: DocumentClusters) -> str:
    if len(result) < 2:
        return ""
    which = "Clusters" if len(result) <= MOST_ON_MAP else f"The largest {MOST_ON_MAP} clusters"
    return figure(
        "Map of the clusters",
        map_chart(result, MOST_CARDS),
        f"{which}; areas grow with the number of documents. Clusters with similar centers are near "
        "each other, as far as two dimensions can show it (classical scaling of the bits that "
        "differ); overlapping circles are moved apart. A circle links to its cluster.",
    )


def _clusters(result: DocumentClusters) -> str:
    some = result.clusters[:MOST_CARDS]
    if not some:
        return ""
    far = result.distances[result.labels >= 0]
    span = (int(far.min()), int(far.max()))
    order = np.argsort(result.labels, kind="stable")
    ends = np.searchsorted(result.labels[order], np.arange(len(some) + 1))
    cards = [
        _card(result, one, result.distances[order[ends[at] : ends[at + 1]]], span)
        for at, one in enumerate(some)
    ]
    rest = len(result) - len(some)
    if rest > 0:
        cards.append(f'<p class="soft">And {counted(rest, "smaller cluster")}.</p>')
    return "\n".join(cards)


def _card(
    result: DocumentClusters,
    one: DocumentCluster,
    distances: np.ndarray[tuple[int], np.dtype[np.int32]],
    span: tuple[int, int],
) -> str:
    share = 100 * one.mean_distance / result.bits
    head = (
        f'<div class="head"><h3>{one.number}. {_title(one)}</h3><span class="soft">'
        f"{counted(one.size, 'document')}, {share:.1f}% of the bits from the center on average"
        "</span></div>"
    )
    picture = spread_chart(distances, result.bits, span)
    return (
        f'<article class="card" id="c{one.number}">{head}\n<div class="topic-card">\n'
        f"<div>{_words(one)}</div>\n<figure>{picture}</figure>\n{_central(result, one)}\n"
        "</div></article>"
    )


def _words(one: DocumentCluster) -> str:
    if not one.words:
        return '<p class="soft">No word tells it from the others.</p>'
    most = one.words[0][1]
    rows = "\n".join(
        f'<li><bdi>{shown(word)}</bdi><span class="weight">{weight:,.4g}</span>'
        f'<span class="share" style="width:{100 * weight / most:.1f}%"></span></li>'
        for word, weight in one.words
    )
    return f'<ol class="words">\n{rows}\n</ol>'


def _central(result: DocumentClusters, one: DocumentCluster) -> str:
    rows = []
    for row in one.central:
        name = clipped(one_line(str(result.id(row))), _ID)
        begin = one_line(result.documents.texts.beginning(row, _BEGINNING_BYTES))
        rows.append(
            [
                f"{int(result.distances[row]):,}",
                f'<bdi class="id">{shown(name)}</bdi>',
                f'<span class="begin" dir="auto">{shown(clipped(begin, _BEGINNING))}</span>',
            ]
        )
    if not rows:
        return ""
    return table(["bits away", "most central", "text"], rows, {0}, "central")


def _left_out(result: DocumentClusters) -> str:
    """Return which documents were left out, or some of them, and why."""
    documents = result.documents
    if not documents.examples:
        return ""
    more = documents.bad + sum(documents.left_out.values()) - len(documents.examples)
    items = "\n".join(f"<li><bdi>{shown(example)}</bdi></li>" for example in documents.examples)
    rest = f"<p>And {more:,} more.</p>" if more > 0 else ""
    return f'<div class="card"><ul>\n{items}\n</ul>{rest}</div>'


def _settings(result: DocumentClusters) -> str:
    pairs = [
        (name, shown(clipped(f"{value}", 200)))
        for name, value in result.settings.to_dict().items()
        if value is not None
    ]
    pairs.append(("text column", f"<bdi>{shown(result.columns.text)}</bdi>"))
    ids = result.columns.id
    pairs.append(("ids", "row numbers, from 0" if ids is None else f"<bdi>{shown(ids)}</bdi>"))
    items = "\n".join(f"<div><dt>{shown(name)}</dt><dd>{value}</dd></div>" for name, value in pairs)
    return f'<dl class="card settings">\n{items}\n</dl>'


def _typed(result: DocumentClusters, command: Sequence[str] | None) -> str:
    """Return what to type for the page: in a shell if a command made it, else in Python."""
    if command is not None:
        return typed_command(command)
    given = reading_arguments(result.source, result.columns)
    if result.wanted is not None:
        given.insert(1, f"{result.wanted}")
    settings = result.settings
    for name, parameter in signature(cluster_documents).parameters.items():
        value = getattr(settings, name, parameter.default)
        if value != parameter.default:
            given.append(f"{name}={argument_text(name, value)}")
    return f"la.cluster_documents({', '.join(given)}).report('topics.html')"
