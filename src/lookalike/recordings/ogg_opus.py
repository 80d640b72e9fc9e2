"""Ogg Opus files whose time stamps jump, as programs that cut and join files leave them.

libsndfile refuses a page whose granule position is less than the samples up to it, which happens
in files that players accept. Positions are counted anew from the packets, so that each page
follows the one before.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

__all__ = ["with_counted_positions"]

_PAGE = 27
"""Bytes of a page's header before its table of segments."""
_FRAMES = (480, 960, 1920, 2880) * 3 + (480, 960) * 2 + (120, 240, 480, 960) * 4
"""Samples, at 48 kHz, of a frame of each configuration of Opus."""
_HEADERS = 2
_REVERSED = bytes(int(f"{value:08b}"[::-1], 2) for value in range(256))


@dataclass
class _Page:
    begin: int
    end: int
    position: int
    """Samples up to its end, as it says; -1 if no packet ends on it."""
    samples: int
    """Samples of the packets that end on it."""
    headers: int
    """Header packets that end on it."""


def with_counted_positions(data: bytes) -> bytes | None:
    """Return an Ogg Opus file with the granule position of each page counted from its packets.

    None if nothing has to change, or if it is something else: several streams, or damaged pages.
    """
    pages = [page for page in _pages(data) if not page.headers and page.position != -1]
    if not pages:
        return None
    made, position, before, jumps = bytearray(data), 0, 0, False
    for page in pages:
        counted, before = page.position - before, page.position
        if counted < page.samples and page is not pages[-1]:
            jumps = True
        # On the last page, what is not counted is padding.
        is_padded = page is pages[-1] and 0 < counted < page.samples
        position += counted if is_padded else page.samples
        made[page.begin + 6 : page.begin + 14] = position.to_bytes(8, "little")
        made[page.begin + 22 : page.begin + 26] = bytes(4)
        made[page.begin + 22 : page.begin + 26] = _checksum(made[page.begin : page.end])
    return bytes(made) if jumps else None


def _checksum(page: bytes | bytearray) -> bytes:
    """Return the checksum of a page: that of zlib from the other end of each byte."""
    value = zlib.crc32(page.translate(_REVERSED), 0xFFFFFFFF) ^ 0xFFFFFFFF
    return int(f"{value:032b}"[::-1], 2).to_bytes(4, "little")


def _pages(data: bytes) -> list[_Page]:
    pages: list[_Page] = []
    packet, headers, begin, stream = b"", _HEADERS, 0, data[14:18]
    while begin + _PAGE <= len(data):
        table = data[begin + _PAGE :][: data[begin + 26]]
        at = begin + _PAGE + len(table)
        if data[begin : begin + 4] != b"OggS" or data[begin + 14 : begin + 18] != stream:
            return []
        if at + sum(table) > len(data):
            break  # cut off within a page
        samples = ended = 0
        for length in table:
            packet += data[at : at + min(length, 2 if len(packet) < 2 else 0)]
            at += length
            if length < 255:
                if headers:
                    headers, ended = headers - 1, ended + 1
                else:
                    samples += _samples(packet)
                packet = b""
        position = int.from_bytes(data[begin + 6 : begin + 14], "little", signed=True)
        pages.append(_Page(begin, at, position, samples, ended))
        begin = at
    return pages


def _samples(packet: bytes) -> int:
    """Return the samples of a packet that begins with these bytes."""
    if not packet:
        return 0
    code = packet[0] & 3
    frames = (1, 2, 2, packet[1] & 63 if len(packet) > 1 else 0)[code]
    return _FRAMES[packet[0] >> 3] * frames
