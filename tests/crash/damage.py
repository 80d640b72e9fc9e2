"""What may happen to the bytes of a file: at random, or every byte of it in turn."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

__all__ = ["Change", "every_change", "random_change"]

_BLOCKS = (512, 4096)


@dataclass(frozen=True)
class Change:
    """Something that may happen to a file, and in words what that is."""

    what: str
    made: Callable[[bytes], bytes]


def random_change(size: int, rng: random.Random) -> Change:
    """Return what disks, cables, copies and hands have been seen to do to a file of that size."""
    begin = rng.randrange(size)
    length = min(size - begin, rng.choice((1, 2, 8, 64, 512, 4096)))
    page = begin - begin % 4096
    other = rng.randrange(0, size, 4096)
    match rng.randrange(10):
        case 0 | 1 | 2:
            return Change(f"bit at {begin}", partial(_put, begin, rng.randrange(8)))
        case 3 | 4:
            new = rng.randbytes(length)
            return Change(f"{length} random bytes at {begin}", partial(_over, begin, new))
        case 5:
            return Change(f"{length} zeros at {begin}", partial(_over, begin, bytes(length)))
        case 6:
            ones = b"\xff" * length
            return Change(f"{length} bytes 255 at {begin}", partial(_over, begin, ones))
        case 7:
            whole = bytes(min(4096, size - page))
            return Change(f"page of zeros at {page}", partial(_over, page, whole))
        case 8:
            return Change(f"page at {other} written to {page}", partial(_copied, other, page))
    if rng.random() < 0.5:
        return Change(f"cut to {begin} bytes", partial(_cut, begin))
    return Change(f"{length} bytes more", partial(_longer, rng.randbytes(length)))


def every_change(whole: bytes) -> list[Change]:
    """Return a flipped bit, 0 and 255 for every byte, every length, every block of zeros, and more.

    What changes nothing is left out; and of long stretches of zeros, which are what lies between
    the parts of a file, all but the ends and every 61st byte.
    """
    changes = []
    idle = _far_inside(whole)
    for at, byte in enumerate(whole):
        if at in idle and at % 61:
            continue
        changes.append(Change(f"bit at {at}", partial(_put, at, at % 8)))
        changes += [
            Change(f"byte {at} set to {value}", partial(_over, at, bytes([value])))
            for value in (0, 255)
            if value not in (byte, byte ^ 1 << at % 8)
        ]
        changes.append(Change(f"cut to {at} bytes", partial(_cut, at)))
    for size in _BLOCKS:
        changes += [
            Change(f"{size} zeros at {at}", partial(_over, at, bytes(min(size, len(whole) - at))))
            for at in range(0, len(whole), size)
            if any(whole[at : at + size])
        ]
    for more in (b"\0", b"\xff", bytes(4096), b"\xa5" * 4096, whole):
        changes.append(Change(f"{len(more)} bytes more", partial(_longer, more)))
    return changes


def _far_inside(whole: bytes) -> set[int]:
    """Return the places of zeros that have nothing but zeros for 64 bytes around them."""
    inside: set[int] = set()
    for stretch in re.finditer(rb"\0{129,}", whole):
        inside.update(range(stretch.start() + 64, stretch.end() - 64))
    return inside


def _put(at: int, bit: int, data: bytes) -> bytes:
    return _over(at, bytes([data[at] ^ 1 << bit]), data)


def _over(at: int, new: bytes, data: bytes) -> bytes:
    return data[:at] + new + data[at + len(new) :]


def _copied(source: int, target: int, data: bytes) -> bytes:
    return _over(target, data[source : source + 4096], data)[: len(data)]


def _cut(length: int, data: bytes) -> bytes:
    return data[:length]


def _longer(more: bytes, data: bytes) -> bytes:
    return data + more
