"""A command that is told to end removes what it has not completed, and says why it ended."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from lookalike.cli.terminal.output import warn
from lookalike.storage.unfinished import remove_unfinished

_ENDING = {signal.SIGTERM: "told to end", signal.SIGHUP: "its terminal is gone"}
_PAUSE = 0.1
_STATUS = 128
"""Plus the number of the signal is the exit status of a process that a signal has ended."""


class Interruption:
    """Whether somebody has pressed Ctrl-C. Not every library lets the exception through."""

    came = False

    def take(self, number: int, frame: FrameType | None) -> None:
        """Be the handler of the signal."""
        self.came = True
        raise KeyboardInterrupt


@contextmanager
def orderly_end() -> Iterator[Interruption]:
    """Watch for signals; those that another thread, or `nohup`, watches for are left to them."""
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    # A thread of its own: the main one may be in the core for minutes, and hears nothing there.
    watching = threading.Thread(target=_end_when_told, args=(reader,), daemon=True)
    watching.start()
    heard_before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    before = {
        number: signal.signal(number, _leave_to_thread)
        for number in _ENDING
        if signal.getsignal(number) == signal.SIG_DFL
    }
    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
        before[signal.SIGINT] = signal.signal(signal.SIGINT, interruption.take)
    try:
        yield interruption
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(heard_before)
        os.close(writer)
        watching.join()
        os.close(reader)


def _leave_to_thread(number: int, frame: FrameType | None) -> None:
    """Do nothing; that there is a handler makes Python write to the pipe."""


def _end_when_told(reader: int) -> None:
    """Read the numbers of signals, and end the process at the first that says so.

    Ctrl-C is an exception in the main thread, but that may be waiting for a database.
    """
    while numbers := _read(reader):
        for number in numbers:
            reading = sys.modules.get("lookalike.corpora.formats.duck")
            if number == signal.SIGINT and reading is not None:
                reading.interrupt_queries()
            if number in _ENDING:
                remove_unfinished()
                warn(_ENDING[signal.Signals(number)], kind="")
                os._exit(_STATUS + number)


def _read(reader: int) -> bytes:
    """Read from the pipe; what the system cannot do now it may the next time."""
    while True:
        try:
            return os.read(reader, 16)
        except OSError:
            time.sleep(_PAUSE)
