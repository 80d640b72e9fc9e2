"""The process that parses pages: whatever a page does, it does it here.

It reads a batch from standard input and writes an answer for each page, so that whoever reads them
knows at which one it died. A page that takes too long is ended by the system, with the process.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import resource
import signal
import sys
from typing import Any, BinaryIO

from lookalike.pages.extract import read_page, unpack
from lookalike.pages.limits import PageLimits, refusal
from lookalike.pages.page import RawPage
from lookalike.shown import shown

__all__ = ["main", "read_frame", "write_frame"]

_LENGTH = 8
_REASON = 120
"""Characters of what a library says."""


def write_frame(stream: BinaryIO, value: Any) -> None:
    """Write plain values, and how many bytes they are."""
    data = marshal.dumps(value)
    stream.write(len(data).to_bytes(_LENGTH, "little"))
    stream.write(data)


def read_frame(stream: BinaryIO) -> Any:
    """Return what was written; raise `EOFError` at the end."""
    length = stream.read(_LENGTH)
    if len(length) < _LENGTH:
        raise EOFError
    size = int.from_bytes(length, "little")
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return marshal.loads(data)


def main() -> None:
    """Answer until standard input ends, which it does when the process that began this does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever began this says when it ends
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # What a library prints must not be taken for an answer.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    reserved = _reserved()
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            limits, wanted, pages = read_frame(sys.stdin.buffer)
            bounds = PageLimits(**limits)
            most = reserved + bounds.memory
            resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
            _answer(answers, bounds, wanted, pages)


def _reserved() -> int:
    """Return the addresses that are taken before there is a page.

    They are not memory: numerical libraries reserve gigabytes of them where there are many cores.
    """
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def _answer(
    answers: BinaryIO, limits: PageLimits, wanted: list[str], pages: list[tuple[Any, ...]]
) -> None:
    for html, charset, url, unpacked in pages:
        signal.setitimer(signal.ITIMER_PROF, limits.seconds)
        try:
            if unpacked:
                html = unpack(html, unpacked)
            reason = refusal(html, limits)
            found: Any = reason
            if reason is None:
                page = read_page(RawPage(html, charset, url), wanted)
                found = (page.text, page.title, page.language, page.links, page.marked)
        except MemoryError:
            found = f"took more than {limits.memory:,} bytes of memory to be parsed"
        except (ValueError, RuntimeError, RecursionError, LookupError, OSError) as error:
            # What the error says may have all of the page in it.
            found = f"cannot be parsed ({type(error).__name__}: {shown(str(error), _REASON)})"
        signal.setitimer(signal.ITIMER_PROF, 0)
        write_frame(answers, found)
        answers.flush()


if __name__ == "__main__":
    main()
