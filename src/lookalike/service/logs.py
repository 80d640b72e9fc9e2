"""Logs: one JSON object a line, all of it ASCII, written by a thread that nobody waits for."""

from __future__ import annotations

import json
import logging
import os
import queue
import sys
import threading
import time
import traceback
from datetime import UTC, datetime
from typing import IO, Any

from lookalike.service.settings import LEVELS
from lookalike.shown import shown

__all__ = ["Log"]

_MOST_WAITING = 20_000
_MOST_OF_A_VALUE = 300
_MOST_TOGETHER = 1_000
_TOGETHER = 0.05
"""Seconds for which lines are collected."""


class Log:
    """Lines about what happens. Nothing in them is a key or a text of somebody's."""

    def __init__(self, level: str, stream: IO[str] | None = None) -> None:
        self._least = LEVELS.index(level)
        self._stream = sys.stderr if stream is None else stream
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._lost = 0
        self._ending = False
        self._thread = threading.Thread(target=self._write, name="log", daemon=True)
        self._thread.start()

    def wants(self, level: str) -> bool:
        """Return whether lines of this level are written."""
        return LEVELS.index(level) >= self._least

    def say(self, level: str, event: str, **values: Any) -> None:
        """Write a line; where the reader is slower than what happens, lines are lost and counted.

        Texts are shortened, and escaped.
        """
        if not self.wants(level):
            return
        if self._lines.qsize() > _MOST_WAITING:
            self._lost += 1
            return
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="milliseconds"),
            "level": level,
            "event": event,
            "process": os.getpid(),
        }
        for name, value in values.items():
            line[name] = shown(value, _MOST_OF_A_VALUE) if isinstance(value, str) else value
        self._lines.put(json.dumps(line, default=str))

    def failed(self, event: str, error: BaseException, **values: Any) -> None:
        """Write a line about an error that nobody has foreseen, with the places it came from."""
        frames = traceback.extract_tb(error.__traceback__)[-12:]
        places = [f"{os.path.basename(one.filename)}:{one.lineno} {one.name}" for one in frames]  # noqa: PTH119
        self.say("error", event, kind=type(error).__name__, error=str(error), at=places, **values)

    def take_over(self) -> None:
        """Let what uvicorn and others log come here, too."""
        for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio", "fastapi"):
            logger = logging.getLogger(name)
            logger.handlers, logger.propagate = [_Handler(self)], False
            logger.setLevel(logging.INFO if name.startswith("uvicorn") else logging.WARNING)

    def close(self) -> None:
        """Write what is left."""
        self._ending = True
        self._lines.put(None)
        self._thread.join(2.0)

    def _write(self) -> None:
        while (line := self._lines.get()) is not None:
            if not self._ending:
                time.sleep(_TOGETHER)  # a thread that wakes up for each line takes others' time
            lines, ended = [line], False
            while not self._lines.empty() and len(lines) < _MOST_TOGETHER:
                more = self._lines.get()
                if more is None:
                    ended = True
                    break
                lines.append(more)
            if self._lost:
                lost, self._lost = self._lost, 0
                lines.append(json.dumps({"level": "warning", "event": "lines lost", "count": lost}))
            try:
                self._stream.write("\n".join(lines) + "\n")
                self._stream.flush()
            except (OSError, ValueError):  # nobody reads any more
                return
            if ended:
                return


class _Handler(logging.Handler):
    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Pass a record on."""
        level = record.levelname.lower()
        level = level if level in LEVELS else "error"
        if level == "info" and record.name.startswith("uvicorn"):
            level = "debug"
        if record.exc_info and record.exc_info[1] is not None:
            self._log.failed(record.getMessage()[:200], record.exc_info[1])
        else:
            self._log.say(level, "server", message=record.getMessage())
