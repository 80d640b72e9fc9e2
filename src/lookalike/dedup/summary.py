"""What a job has found, in a few lines for the terminal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from lookalike.features.choice import unit_text
from lookalike.shown import shown

if TYPE_CHECKING:
    from lookalike.dedup.result import DedupResult
    from lookalike.dedup.settings import DedupSettings

__all__ = [
    "about_dropped",
    "about_pairs",
    "columns_text",
    "criterion",
    "exceptions",
    "share_text",
    "similarity_text",
    "size_text",
    "summary_text",
    "timings",
]


_LONGEST_COLUMN = 60

_WHY = {
    "too short": "left out: fewer words than wanted",
    "few links": "left out: fewer links than wanted",
    "other language": "left out: not in a language that is wanted",
    "unknown encoding": "left out: name it with --encoding",
}
"""What is said of documents that were left out, by kind."""


def summary_text(result: DedupResult) -> str:
    """Return counts and times, a line each."""
    counts = result.counts
    share = share_text(counts.kept, counts.documents)
    largest = f"the largest has {counts.largest_cluster:,}"
    lines = [
        ("documents", f"{counts.documents:,}", columns_text(result)),
        ("exact duplicates", f"{counts.exact_duplicates:,}", "the same text, byte for byte"),
        ("near-duplicates", f"{counts.near_duplicates:,}", criterion(result.settings, "exact")),
        *about_dropped(result),
        ("kept", f"{counts.kept:,}", f"{share} of the documents" if counts.documents else ""),
        ("clusters", f"{counts.clusters:,}", largest if counts.clusters else ""),
        *about_pairs(result),
        *((name, f"{count:,}", note) for name, count, note in exceptions(result) if count),
    ]
    text = [f"  {name:<18} {value:>12}  {note}".rstrip() for name, value, note in lines]
    saved = f"{size_text(counts.bytes_saved)} of {size_text(counts.bytes)} of text"
    text.append(f"  {'saved':<18} {share_text(counts.bytes_saved, counts.bytes):>12}  {saved}")
    text += ["", f"  {'step':<18} {'seconds':>12}  {'documents/s':>12}"]
    for step, seconds, rate, note in timings(result):
        text.append(f"  {step:<18} {seconds:>12.2f}  {rate:>12}  {note}".rstrip())
    text += [f"\nwarning: {warning}" for warning in result.warnings]
    return "\n".join(text)


def columns_text(result: DedupResult) -> str:
    """Return which columns the texts and ids came from, where a corpus has any to choose from."""
    columns = result.columns
    if result.source.fixed_columns:
        return ""
    ids = "" if columns.id is None else f", ids from {shown(columns.id, _LONGEST_COLUMN)!r}"
    return f"text from the column {shown(columns.text, _LONGEST_COLUMN)!r}{ids}"


def about_pairs(result: DedupResult) -> list[tuple[str, str, str]]:
    """Return the number of pairs where that is a fact of the corpus: name, value, note."""
    if not result.complete:
        return []
    note = f"complete: every pair at or above {result.settings.threshold:g} was found"
    return [("pairs", f"{result.counts.verified_pairs:,}", note)]


def about_dropped(result: DedupResult) -> list[tuple[str, str, str]]:
    """Return what must be known of dropped documents: name, value, note.

    Those that only signatures vouch for; how similar the least similar is to the one that stands
    for it; and those that are less similar than the threshold, if chains were followed.
    """
    counts, settings = result.counts, result.settings
    lines = []
    if counts.estimated_duplicates:
        note = f"by signatures alone: {criterion(settings, 'estimated')}"
        lines.append(("estimated", f"{counts.estimated_duplicates:,}", note))
    whose = "of a dropped document and the one that stands for it"
    if settings.keep == "none":
        whose = "of a dropped document and one that it resembles, which is dropped, too"
    for name, value, how in [
        ("lowest similarity", counts.lowest_similarity, "exact,"),
        ("lowest estimate", counts.lowest_estimate, "by signatures,"),
    ]:
        if value is not None:
            lines.append((name, similarity_text(value), f"{how} {whose}"))
    if counts.below_threshold:
        note = "dropped, and like none that stays: a chain of others connects them (components)"
        lines.append(("below threshold", f"{counts.below_threshold:,}", note))
    return lines


def exceptions(result: DedupResult) -> list[tuple[str, int, str]]:
    """Return what most jobs have none of: name, count, note."""
    counts, kinds = result.counts, result.documents.left_out
    return [
        ("in the old corpus", counts.in_old, "dropped because of a document there"),
        ("without features", counts.without_features, "kept: too short to be compared"),
        ("bad rows", counts.bad_rows, "left out"),
        ("binary files", counts.binary_files, "left out: not text"),
        *((kind, count, _WHY.get(kind, "left out")) for kind, count in kinds.items()),
        ("estimated pairs", counts.estimated_pairs, "accepted by their signatures alone"),
    ]


def criterion(settings: DedupSettings, how: str) -> str:
    """Return in words why documents are dropped, by "exact" or "estimated" similarity."""
    words = f"{how} {settings.measure} of {unit_text(settings.feature_kind())} at least"
    if settings.cluster == "components":
        return f"connected by pairs of {words} {settings.threshold:g}"
    return f"{words} {settings.threshold:g}"


def similarity_text(value: float) -> str:
    """Return a similarity; what is below a round number is not shown as that number."""
    return "1" if value == 1 else f"{math.floor(value * 10_000 + 1e-9) / 10_000:.4f}"


def share_text(part: int, whole: int) -> str:
    """Return a part of a whole in percent."""
    return f"{part / whole:.1%}" if whole else "-"


def timings(result: DedupResult) -> list[tuple[str, float, str, str]]:
    """Return each step and all together: name, seconds, documents a second, what to know of it.

    A step has no speed if a part of its work was done elsewhere: by an earlier run, or while
    documents were read.
    """
    rows = []
    for step, seconds in result.seconds.items():
        note = "partly done while reading" if step in result.overlapped else ""
        if step in result.reused:
            note = "from an earlier run"
        rows.append((step, seconds, _rate(result, 0.0 if note else seconds), note))
    whole = sum(result.seconds.values())
    return [*rows, ("all", whole, _rate(result, 0.0 if result.reused else whole), "")]


def _rate(result: DedupResult, seconds: float) -> str:
    return f"{result.counts.documents / seconds:,.0f}" if seconds > 0 else "-"


def size_text(count: int) -> str:
    """Return a number of bytes in the unit that suits it."""
    value = float(count)
    for unit in ("bytes", "KB", "MB", "GB"):
        if value < 1000:
            if unit == "bytes":
                return "1 byte" if count == 1 else f"{count} bytes"
            return f"{value:.0f} {unit}" if value >= 100 else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"
