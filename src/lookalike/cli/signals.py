"""Commands that are told to end: they remove what they have not completed, and say why they ended.

Ctrl-C raises `KeyboardInterrupt` in the main thread. SIGTERM and SIGHUP, and a second Ctrl-C, are
handled by another thread, because the main thread may be in native code for minutes. The second
signal of any kind ends the process at once. Nothing here depends on a terminal that still works.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from lookalike.storage.files import remove_unfinished

_REASONS = {
    signal.SIGTERM: "told to end",
    signal.SIGHUP: "its terminal is gone",
    signal.SIGINT: "interrupted",
}
_ENDING = (signal.SIGTERM, signal.SIGHUP)
_PAUSE = 0.1
_PATIENCE = 1.0
"""Seconds to wait for a standard error that takes no more text, before ending without a word."""
_STATUS = 128
"""Plus the number of the signal is the exit status of a process that a signal has ended."""


class Interruption:
    """Whether Ctrl-C was pressed, and whether the process is about to end.

    Some libraries turn `KeyboardInterrupt` into another exception, so it is recorded here.
    """

    def __init__(self) -> None:
        self.came = False
        self._ending = threading.Event()

    def take(self, number: int, frame: FrameType | None) -> None:
        """Handle SIGINT: raise the first time; the thread of `orderly_end` handles the second."""
        if not self.came:
            self.came = True
            raise KeyboardInterrupt

    def end(self, number: signal.Signals) -> None:
        """Remove unfinished files and end the process; at once, if it is ending already."""
        if self._ending.is_set():
            os._exit(_STATUS + number)
        self._ending.set()
        try:
            threading.Thread(target=_end, args=(number,), daemon=True).start()
        except RuntimeError:  # no more threads: then this one, which hears no second signal
            _end(number)

    def wait_if_ending(self) -> None:
        """Wait for the end of a process that is about to end.

        What fails meanwhile fails because its files are gone, and is not reported.
        """
        while self._ending.is_set():
            time.sleep(_PAUSE)


@contextmanager
def orderly_end() -> Iterator[Interruption]:
    """Handle signals, except those that are ignored (`nohup`) or that have a handler already."""
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    watching = threading.Thread(target=_watch, args=(reader, interruption), daemon=True)
    watching.start()
    heard_before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    before = {
        number: signal.signal(number, leave_to_thread)
        for number in _ENDING
        if signal.getsignal(number) == signal.SIG_DFL
    }
    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
        before[signal.SIGINT] = signal.signal(signal.SIGINT, interruption.take)
    try:
        yield interruption
    finally:
        interruption.wait_if_ending()
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(heard_before)
        os.close(writer)
        watching.join()
        os.close(reader)


def leave_to_thread(number: int, frame: FrameType | None) -> None:
    """Do nothing; because this is a handler, Python writes the number to the pipe."""


def _watch(reader: int, interruption: Interruption) -> None:
    """Read the numbers of signals until the pipe is closed, and end the process where they say so.

    The first Ctrl-C is an exception in the main thread, but that may be waiting for a database.
    """
    ending = False
    while numbers := _read(reader):
        for number in map(signal.Signals, numbers):
            if number in _ENDING or (number == signal.SIGINT and ending):
                interruption.end(number)
            if number == signal.SIGINT:
                reading = sys.modules.get("lookalike.corpora.formats.duck")
                if reading is not None:
                    reading.interrupt_queries()
            ending = ending or number in _REASONS


def _read(reader: int) -> bytes:
    """Read from the pipe; what the system cannot do now it may the next time."""
    while True:
        try:
            return os.read(reader, 16)
        except OSError:
            time.sleep(_PAUSE)


def _end(number: signal.Signals) -> None:
    try:
        remove_unfinished()
        _say_at_the_end(f"lookalike: {_REASONS[number]}\n")
    finally:
        os._exit(_STATUS + number)


def _say_at_the_end(line: str) -> None:
    """Write a line to standard error if that is possible without waiting.

    Not through `sys.stderr`: a thread that waits for its terminal may hold the lock of that.
    """
    with suppress(OSError, ValueError, AttributeError):
        descriptor = sys.stderr.fileno()
        if select.select([], [descriptor], [], _PATIENCE)[1]:
            os.write(descriptor, line.encode())
