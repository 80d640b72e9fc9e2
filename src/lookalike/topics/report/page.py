"""The page of clusters; `topics.html` has the markup."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

from lookalike.dedup.report.remade import argument_text, reading_arguments
from lookalike.report.frame import listed_card, made_line, page, settings_cards, write_page
from lookalike.report.markup import Markup, clipped, one_line, pieces, rendered
from lookalike.topics import cluster_documents
from lookalike.topics.report.charts import MOST_ON_MAP, map_chart, spread_chart
from lookalike.topics.result import DocumentCluster, DocumentClusters, about

_TEMPLATE = "topics/report/topics.html"
SCRIPT = rendered("topics/report/finder.js")
"""Searches documents, and opens the list of a cluster that is clicked."""
MOST_CARDS, MOST_BARS = 100, 300
"""The number of clusters that have a card, and that have a bar: the largest."""
MOST_LISTED, LEAST_LISTED = 5000, 20
"""The number of documents on the page, and of each cluster at least: the most central."""
_ID, _TITLE, _BEGINNING, _BEGINNING_BYTES = 80, 160, 280, 1200


def write_report(
    result: DocumentClusters, path: Path, command: Sequence[str] | None = None
) -> None:
    """Write the page, of bounded size: the same page for the same result."""
    parts, name = pieces(_TEMPLATE), result.source.name
    clustered = len(result.labels) - result.without_features
    lead = parts.lead(clustered, len(result.clusters))
    settings = settings_cards(_settings(result), command, partial(_call_text, result))
    sections = [
        ("summary", "Summary", parts.summary(about(result))),
        ("map", "Map", _map(result)),
        ("sizes", "Sizes", _sizes(result)),
        ("clusters", "Clusters", _clusters(result)),
        ("left-out", "Left out", _left_out(result)),
        ("settings", "Settings", settings),
    ]
    above = [parts.heading(name), made_line(result.made), lead]
    style = rendered("topics/report/style.css")
    title = f"Topics of {name}"
    scripts = [SCRIPT] if result.clusters else []
    text = page(title, "lookalike cluster", above, sections, scripts=scripts, style=style)
    write_page(text, path)


def _named(one: DocumentCluster) -> dict[str, Any]:
    """Return number, title and size of a cluster."""
    title = ", ".join(word for word, _ in one.words[:5])
    return {"number": one.number, "title": title, "size": one.size, "words": one.words}


def _sizes(result: DocumentClusters) -> str:
    if not result.clusters:
        return ""
    most = result.clusters[0].size
    listed = [
        {**_named(one), "told": one.number < MOST_CARDS, "share": 100 * one.size / most}
        for one in result.clusters[:MOST_BARS]
    ]
    return pieces(_TEMPLATE).sizes(listed, len(result) - MOST_BARS)


def _map(result: DocumentClusters) -> str:
    if len(result) < 2:
        return ""
    which = "Clusters" if len(result) <= MOST_ON_MAP else f"The largest {MOST_ON_MAP} clusters"
    return pieces(_TEMPLATE).map(which, map_chart(result, MOST_CARDS))


def _clusters(result: DocumentClusters) -> str:
    some = result.clusters[:MOST_CARDS]
    if not some:
        return ""
    known = result.similarities[result.labels >= 0]
    span = (float(known.min()), float(known.max()))
    most = max(LEAST_LISTED, MOST_LISTED // len(some))

    def card(one: DocumentCluster) -> dict[str, Any]:
        rows = result.members(one.number)
        listed = [_listed(result, row) for row in rows[:most].tolist()]
        return {
            **_named(one),
            "similarity": one.mean_similarity,
            "chart": spread_chart(result.similarities[rows], span),
            "central": [_central(result, row) for row in one.central],
            "documents": listed,
        }

    parts = pieces(_TEMPLATE)
    cards = [card(one) for one in some]
    return Markup("\n").join(
        [parts.finder(), parts.clusters(cards, len(result) - len(some)), parts.script(SCRIPT)]
    )


def _central(result: DocumentClusters, row: int) -> list[str]:
    """Return the cells of one of the most central documents."""
    title = clipped(result.title(row), _TITLE)
    begin = one_line(result.documents.texts.beginning(row, _BEGINNING_BYTES))
    text = clipped(begin.removeprefix(title).strip(), _BEGINNING)
    name = clipped(one_line(str(result.id(row))), _ID)
    near = f"{result.similarities[row]:.2f}"
    return [near, pieces(_TEMPLATE).document(title, name, text)]


def _listed(result: DocumentClusters, row: int) -> tuple[str, str]:
    """Return the title and the id of a document."""
    title = clipped(result.title(row), _TITLE)
    return title, clipped(one_line(str(result.id(row))), _ID)


def _left_out(result: DocumentClusters) -> str:
    documents = result.documents
    more = documents.bad + sum(documents.left_out.values()) - len(documents.examples)
    rest = f"And {more:,} more." if more > 0 else ""
    return listed_card([(example, "") for example in documents.examples], rest)


def _settings(result: DocumentClusters) -> list[tuple[str, str, bool]]:
    """Return names and values; True where the value comes from the corpus."""
    pairs = [
        (name, clipped(f"{value}", 200), False)
        for name, value in result.settings.to_dict().items()
        if value is not None
    ]
    ids = result.columns.id
    pairs.append(("text column", f"{result.columns.text}", True))
    pairs.append(("ids", "row numbers, from 0" if ids is None else ids, ids is not None))
    if result.columns.title is not None:
        pairs.append(("title column", result.columns.title, True))
    return pairs


def _call_text(result: DocumentClusters) -> str:
    """Return the call in Python that makes the page."""
    given = reading_arguments(result.source, result.columns)
    if result.wanted is not None:
        given.insert(1, f"{result.wanted}")
    if result.columns.title is not None:
        given.append(f"title={result.columns.title!r}")
    for name, parameter in signature(cluster_documents).parameters.items():
        value = getattr(result.settings, name, parameter.default)
        if value != parameter.default:
            given.append(f"{name}={argument_text(name, value)}")
    return f"la.cluster_documents({', '.join(given)}).report('topics.html')"
