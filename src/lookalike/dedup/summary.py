"""What a job has found, in a few lines for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lookalike.dedup.result import DedupResult

__all__ = ["criterion", "largest_clusters", "share_text", "size_text", "summary_text"]


def summary_text(result: DedupResult) -> str:
    """Return counts and times, a line each."""
    counts = result.counts
    lines = [
        ("documents", counts.documents, ""),
        ("exact duplicates", counts.exact_duplicates, "the same text, byte for byte"),
        ("near-duplicates", counts.near_duplicates, criterion(result)),
        ("kept", counts.kept, f"{share_text(counts.kept, counts.documents)} of the documents"),
        ("clusters", counts.clusters, f"the largest has {counts.largest_cluster:,}"),
    ]
    optional = [
        ("in the old corpus", counts.in_old, "dropped because of a document there"),
        ("without features", counts.without_features, "kept: too short to be compared"),
        ("bad rows", counts.bad_rows, "left out"),
        ("binary files", counts.binary_files, "left out"),
        ("estimated pairs", counts.estimated_pairs, "accepted by their signatures alone"),
    ]
    lines += [line for line in optional if line[1]]
    text = [f"  {name:<18} {value:>12,}  {note}".rstrip() for name, value, note in lines]
    saved = f"{size_text(counts.bytes_saved)} of {size_text(counts.bytes)} of text"
    text.append(f"  {'saved':<18} {share_text(counts.bytes_saved, counts.bytes):>12}  {saved}")
    text += ["", f"  {'step':<18} {'seconds':>12}  {'documents/s':>12}"]
    for step, seconds in result.seconds.items():
        text.append(_timing(step, seconds, counts.documents))
    text.append(_timing("all", sum(result.seconds.values()), counts.documents))
    text += [f"\nwarning: {warning}" for warning in result.warnings]
    return "\n".join(text)


def largest_clusters(result: DedupResult, most: int = 5) -> list[tuple[int, list[int]]]:
    """Return the sizes and rows of the largest clusters, the one that stays first."""
    import numpy as np

    sizes = np.bincount(result.clusters, minlength=len(result.clusters))
    order = np.lexsort((np.arange(len(sizes)), -sizes))[:most]
    found = []
    for label in order[sizes[order] > 1].tolist():
        rows = np.flatnonzero(result.clusters == label)
        rows = rows[np.argsort(~result.keep[rows], kind="stable")]
        found.append((int(sizes[label]), rows.tolist()))
    return found


def criterion(result: DedupResult) -> str:
    """Return in words what makes two documents near-duplicates."""
    settings = result.settings
    how = "exact" if settings.verify else "estimated"
    unit = "words" if settings.ngram == 1 else f"word {settings.ngram}-grams"
    return f"{how} {settings.measure} of {unit} at least {settings.threshold:g}"


def share_text(part: int, whole: int) -> str:
    """Return a part of a whole in percent."""
    return f"{part / whole:.1%}" if whole else "-"


def _timing(step: str, seconds: float, documents: int) -> str:
    rate = f"{documents / seconds:,.0f}" if seconds > 0 else "-"
    return f"  {step:<18} {seconds:>12.2f}  {rate:>12}"


def size_text(count: int) -> str:
    """Return a number of bytes in the unit that suits it."""
    value = float(count)
    for unit in ("bytes", "KB", "MB", "GB"):
        if value < 1000:
            return (
                f"{value:.0f} {unit}" if unit == "bytes" or value >= 100 else f"{value:.1f} {unit}"
            )
        value /= 1000
    return f"{value:.1f} TB"
