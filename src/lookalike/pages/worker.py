"""The process that parses pages: whatever a page does, it does it here.

A page that takes too long is ended by the system, with the process.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lookalike.pages import PageLimits, RawPage, refusal
from lookalike.pages.extract import read_page, unpack
from lookalike.processes import reserved_bytes, serve, set_memory_limit, time_limit
from lookalike.shown import shown

__all__ = ["main"]

_REASON = 120
"""Characters of what a library says."""


def main() -> None:
    """Answer batches of pages."""
    reserved = reserved_bytes()

    def answers_to(request: Any) -> Iterator[Any]:
        limits, wanted, pages = request
        bounds = PageLimits(**limits)
        set_memory_limit(reserved, bounds.memory)
        for page in pages:
            yield _answer(bounds, wanted, page)

    serve(answers_to)


def _answer(limits: PageLimits, wanted: list[str], page: tuple[Any, ...]) -> Any:
    html, charset, url, unpacked = page
    with time_limit(limits.seconds):
        try:
            if unpacked:
                html = unpack(html, unpacked)
            reason = refusal(html, limits)
            if reason is not None:
                return reason
            found = read_page(RawPage(html, charset, url), wanted)
            return found.text, found.title, found.language, found.links, found.marked
        except MemoryError:
            return f"took more than {limits.memory:,} bytes of memory to be parsed"
        except (ValueError, RuntimeError, RecursionError, LookupError, OSError) as error:
            # What the error says may have all of the page in it.
            return f"cannot be parsed ({type(error).__name__}: {shown(str(error), _REASON)})"


if __name__ == "__main__":
    main()
