"""Passages that documents have in common: what was quoted, copied or pasted, and where."""

from typing import TYPE_CHECKING

from lookalike.lazy import names_from

if TYPE_CHECKING:
    from lookalike.excerpts.finding import overlaps, passages
    from lookalike.excerpts.results import Overlap, Overlaps, Passage, Passages
    from lookalike.excerpts.signing import PassageHash, sign_passages

__all__ = [
    "Overlap",
    "Overlaps",
    "Passage",
    "PassageHash",
    "Passages",
    "overlaps",
    "passages",
    "sign_passages",
]

__getattr__ = names_from(
    globals(),
    {
        "lookalike.excerpts.finding": ("overlaps", "passages"),
        "lookalike.excerpts.results": ("Overlap", "Overlaps", "Passage", "Passages"),
        "lookalike.excerpts.signing": ("PassageHash", "sign_passages"),
    },
)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
