"""Passages that documents have in common: what was quoted, copied or pasted, and where."""

from typing import TYPE_CHECKING

from lookalike.lazy import names_from

if TYPE_CHECKING:
    from lookalike.common_passages.finding import overlaps, passages
    from lookalike.common_passages.results import Overlap, Overlaps, Passage, Passages
    from lookalike.common_passages.signing import PassageHash, sign_passages

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
        "lookalike.common_passages.finding": ("overlaps", "passages"),
        "lookalike.common_passages.results": ("Overlap", "Overlaps", "Passage", "Passages"),
        "lookalike.common_passages.signing": ("PassageHash", "sign_passages"),
    },
)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
