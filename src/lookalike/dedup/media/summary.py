"""What was found in a folder, in a few lines for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lookalike.dedup.summary import share_text, size_text

if TYPE_CHECKING:
    from lookalike.dedup.media.result import MediaResult

__all__ = ["count_lines", "summary_text"]


def count_lines(result: MediaResult) -> list[tuple[str, str, str]]:
    """Return what there is to know: name, value, note."""
    counts, noun = result.counts, result.medium.noun
    share = share_text(counts.kept, counts.files)
    largest = f"the largest has {counts.largest_cluster:,}"
    saved = f"{size_text(counts.bytes_saved)} of {size_text(counts.bytes)}"
    lines = [
        (result.kind, f"{counts.files:,}", ""),
        ("exact duplicates", f"{counts.exact_duplicates:,}", "the same file, byte for byte"),
        ("near-duplicates", f"{counts.near_duplicates:,}", result.medium.criterion()),
        ("kept", f"{counts.kept:,}", f"{share} of the {result.kind}" if counts.files else ""),
        ("clusters", f"{counts.clusters:,}", largest if counts.clusters else ""),
        ("saved", share_text(counts.bytes_saved, counts.bytes), f"{saved}, if the others go"),
    ]
    lines += [(name, f"{count:,}", note) for name, count, note in result.notices if count]
    if counts.left_out:
        lines.append(("left out", f"{counts.left_out:,}", "could not be read"))
    if counts.other_files:
        lines.append(("other files", f"{counts.other_files:,}", f"no {noun}: not looked at"))
    return lines


def summary_text(result: MediaResult) -> str:
    """Return counts and times, a line each."""
    lines = count_lines(result)
    text = [f"  {name:<18} {value:>12}  {note}".rstrip() for name, value, note in lines]
    text += ["", f"  {'step':<18} {'seconds':>12}"]
    steps = {**result.seconds, "all": sum(result.seconds.values())}
    text += [f"  {step:<18} {seconds:>12.2f}" for step, seconds in steps.items()]
    return "\n".join(text)
