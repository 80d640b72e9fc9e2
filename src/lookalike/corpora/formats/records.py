"""Records of CSV: like lines, but a quoted value may have some of its own."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lookalike.corpora.formats.lines import LineBatch, Lines, count_newlines

_QUOTE, _NEWLINE, _RETURN = b'"\n\r'

_AT_A_TIME = 1 << 16
"""Quotes."""

State = tuple[bool, int]
"""Whether a place is inside of quotes, and the byte before it."""


class RecordBatch(LineBatch):
    """Consecutive records of a file."""

    def line(self, index: int) -> int:
        """Return the number in the file of the line at which a record begins."""
        return self.first + count_newlines(self.data[: self.ends[index - 1] if index else 0])


class Records(Lines):
    """Where the records of a file end: at \\n, \\r or both, outside of quotes."""

    begin: State = (False, _NEWLINE)
    batch = RecordBatch
    marks = b'"\n\r'

    def __init__(self, delimiter: str) -> None:
        self._before_values = (ord(delimiter), _NEWLINE, _RETURN, _QUOTE)

    def ends(
        self, data: NDArray[np.uint8], state: State, at_end: bool
    ) -> tuple[NDArray[np.int64], State]:
        """Return where records end, and what comes after the data."""
        if not len(data):
            return np.empty(0, np.int64), state
        inside, before = state
        turns = self._turns(data, inside, before)
        ends, _ = super().ends(data, None, at_end)
        returns = _places(data, _RETURN)
        if len(returns):
            # One that a newline follows, or may follow, is not yet the end.
            following = data[np.minimum(returns + 1, len(data) - 1)]
            at_last = returns == len(data) - 1
            alone = returns[np.where(at_last, at_end, following != _NEWLINE)]
            ends = np.union1d(ends, alone + 1) if len(alone) else ends
        if len(turns) or inside:
            ends = ends[(np.searchsorted(turns, ends - 1) + inside) % 2 == 0]
        if before == _RETURN and not inside and data[0] != _NEWLINE:
            ends = np.append(0, ends)  # the record before ended with it
        last = int(data[-1])
        if last == _QUOTE and (not len(turns) or turns[-1] != len(data) - 1):
            last = 0  # a character like any other, after which no value begins
        return ends, (bool((len(turns) + inside) % 2), last)

    def _turns(self, data: NDArray[np.uint8], inside: bool, before: int) -> NDArray[np.int64]:
        """Return the quotes that begin or end a quoted value.

        One begins it only where a value begins; elsewhere, as in 5" of snow, it is a character like
        any other. Two in a row inside of a value end it and begin it again, which is the same.
        """
        quotes = _places(data, _QUOTE)
        ahead = np.where(quotes > 0, data[quotes - 1], before)
        if np.isin(ahead[int(inside) :: 2], self._before_values).all():
            return quotes
        turning = np.zeros(len(quotes), np.bool_)
        ended = -1 if before == _QUOTE else -2  # the last quote that turned
        for begin in range(0, len(quotes), _AT_A_TIME):  # objects take more than numbers
            part = slice(begin, begin + _AT_A_TIME)
            turned = []
            for place, byte in zip(quotes[part].tolist(), ahead[part].tolist(), strict=True):
                turns = inside or (
                    ended == place - 1 if byte == _QUOTE else byte in self._before_values
                )
                if turns:
                    ended, inside = place, not inside
                turned.append(turns)
            turning[part] = turned
        return quotes[turning]


def _places(data: NDArray[np.uint8], byte: int) -> NDArray[np.int64]:
    """Return where a byte is; quick if it is nowhere."""
    found = data == byte
    return np.flatnonzero(found) if found.any() else np.empty(0, np.int64)
