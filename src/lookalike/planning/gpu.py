"""What a card would cost for a question."""

from __future__ import annotations

from functools import cache

from lookalike.gpu.bench import QUERIES, Speed, speed
from lookalike.gpu.card import MOST_BITS, Card, Layout, card
from lookalike.planning.question import Option, Question

_UPLOAD_BYTES = 5e9
"""Bytes a second that come to a card from ordinary memory, at least."""


def gpu_option(question: Question) -> Option:
    """Return the scan on the first card: every signature, for some hundred queries at a time."""
    here = card(0)
    if question.bits > MOST_BITS:
        wide = f"takes up to {MOST_BITS} bits"
        return Option("gpu", float("inf"), 0.0, question.signature_bytes, obstacle=wide)
    layout = Layout.of(question.bits)
    needed, free = layout.bytes_of(question.count), here.free_bytes()
    known = _speed(here, layout)
    together = min(question.batch, QUERIES)
    reading = question.count * layout.stored / known.bytes_read
    comparing = together * question.count / known.compared
    seconds = (known.overhead + max(reading, comparing)) / together
    return Option(
        "gpu",
        1e6 * seconds,
        question.signature_bytes / _UPLOAD_BYTES,
        needed,
        remark=here.name,
        obstacle=f"{free:,} bytes are free on the card" if needed > free else None,
    )


@cache
def _speed(here: Card, layout: Layout) -> Speed:
    return speed(here, layout)
