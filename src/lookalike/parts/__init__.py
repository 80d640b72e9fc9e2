"""Items of many signatures each, found by the parts of a query that are near theirs.

Each name is imported when it is first used.
"""

from typing import TYPE_CHECKING

from lookalike.lazy import names_from

if TYPE_CHECKING:
    from lookalike.parts.index import PartIndex
    from lookalike.parts.votes import PartAnswer, PartMatch

__all__ = ["PartAnswer", "PartIndex", "PartMatch"]

__getattr__ = names_from(
    globals(),
    {
        "lookalike.parts.votes": ("PartAnswer", "PartMatch"),
        "lookalike.parts.index": ("PartIndex",),
    },
)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
