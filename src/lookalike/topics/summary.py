"""What was found, in lines for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lookalike.shown import counted, shown

if TYPE_CHECKING:
    from lookalike.topics.result import DocumentCluster, DocumentClusters

__all__ = ["about", "summary_text"]

MOST_CLUSTERS = 50
"""That are printed."""
_CENTRAL, _ID = 3, 60


def summary_text(result: DocumentClusters) -> str:
    """Return counts, then each cluster with its words and documents, the largest first."""
    lines = [f"  {name:<18} {value:>12}  {note}".rstrip() for name, value, note in about(result)]
    if result.clusters:
        lines += ["", f"  {'cluster':>7}  {'documents':>9}  words"]
    for one in result.clusters[:MOST_CLUSTERS]:
        lines += _lines(result, one)
    if len(result) > MOST_CLUSTERS:
        lines.append(f"  and {counted(len(result) - MOST_CLUSTERS, 'more cluster')}")
    return "\n".join(lines)


def about(result: DocumentClusters) -> list[tuple[str, str, str]]:
    """Return what is to be known of the whole: a name, a figure and a note."""
    sizes = [one.size for one in result.clusters]
    found = [("documents", f"{len(result.labels):,}", "")]
    note = ""
    if sizes:
        note = f"the largest has {counted(sizes[0], 'document')}, the smallest {sizes[-1]:,}"
    if result.wanted is not None and len(sizes) < result.wanted:
        note += f"; {result.wanted:,} were asked for, and no more differ"
    found.append(("clusters", f"{len(sizes):,}", note))
    if result.without_features:
        found.append(("without words", f"{result.without_features:,}", "in no cluster"))
    if sizes:
        share = 100 * result.mean_distance / result.bits
        note = f"of {result.bits:,} bits differ on average"
        others = result.other_distances[result.other_distances >= 0]
        if len(others):
            next_share = 100 * float(others.mean()) / result.bits
            note += f"; {next_share:.1f}% from the next nearest center"
        found.append(("from the center", f"{share:.1f}%", note))
    for count, name in (
        (result.documents.bad, "bad rows"),
        (result.documents.binary, "binary files"),
        *((count, kind) for kind, count in result.documents.left_out.items()),
    ):
        if count:
            found.append((name, f"{count:,}", "left out"))
    seconds = sum(result.seconds.values())
    steps = ", ".join(f"{step} {passed:.1f}" for step, passed in result.seconds.items())
    found.append(("seconds", f"{seconds:.1f}", steps))
    return found


def _lines(result: DocumentClusters, one: DocumentCluster) -> list[str]:
    words = " ".join(shown(word) for word, _ in one.words) or "-"
    lines = [f"  {one.number:>7}  {one.size:>9,}  {words}"]
    central = [shown(result.id(row), _ID) for row in one.central[:_CENTRAL]]
    if central:
        lines.append(f"  {'':>7}  {'':>9}    most central: {', '.join(central)}")
    return lines
