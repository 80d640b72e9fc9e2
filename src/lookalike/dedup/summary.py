"""What a job has found, in a few lines for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lookalike.dedup.result import DedupResult

__all__ = ["criterion", "share_text", "size_text", "summary_text", "timings", "unit_text"]


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
    for step, seconds, rate, note in timings(result):
        text.append(f"  {step:<18} {seconds:>12.2f}  {rate:>12}  {note}".rstrip())
    text += [f"\nwarning: {warning}" for warning in result.warnings]
    return "\n".join(text)


def criterion(result: DedupResult) -> str:
    """Return in words what makes two documents near-duplicates."""
    settings = result.settings
    how = "exact" if settings.verify else "estimated"
    unit = unit_text(settings.ngram)
    return f"{how} {settings.measure} of {unit} at least {settings.threshold:g}"


def unit_text(ngram: int | None) -> str:
    """Return what documents are compared by."""
    return "words" if ngram == 1 else f"word {ngram}-grams"


def share_text(part: int, whole: int) -> str:
    """Return a part of a whole in percent."""
    return f"{part / whole:.1%}" if whole else "-"


def timings(result: DedupResult) -> list[tuple[str, float, str, str]]:
    """Return each step and all together: name, seconds, documents a second, what to know of it.

    What an earlier run has done says nothing about speed.
    """
    steps = [(step, passed, step in result.reused) for step, passed in result.seconds.items()]
    steps.append(("all", sum(result.seconds.values()), bool(result.reused)))
    return [
        (
            step,
            seconds,
            "-" if reused or seconds <= 0 else f"{result.counts.documents / seconds:,.0f}",
            "from an earlier run" if reused and step != "all" else "",
        )
        for step, seconds, reused in steps
    ]


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
