"""How signatures of one width lie on a card; tiles.cu says why."""

from __future__ import annotations

from dataclasses import dataclass

from lookalike.errors import SignatureError

PIECE = 65_536
"""Signatures that are sorted together by their number of ones; a place in a piece is a uint16."""

MOST_BITS = 4096
"""A distance has 13 bits of what is found, and a card's registers hold no wider queries."""


@dataclass(frozen=True)
class Layout:
    """Bytes, rows and tiles of signatures of one width."""

    bytes: int
    """Of a signature as it comes."""

    @classmethod
    def of(cls, bits: int) -> Layout:
        """Return the layout for signatures of so many bits, or say that they are too wide."""
        if bits > MOST_BITS:
            raise SignatureError(
                f"the signatures have {bits} bits; a GpuIndex takes up to {MOST_BITS}: "
                "a ScanIndex takes any"
            )
        return cls(bits // 8)

    @property
    def stored(self) -> int:
        """Bytes of a signature on the card, zeros at the end."""
        return next((size for size in (8, 16) if self.bytes <= size), -(-self.bytes // 32) * 32)

    @property
    def pack(self) -> int:
        """Signatures side by side in a row, which has 32 bytes at least."""
        return max(1, 32 // self.stored)

    @property
    def steps(self) -> int:
        """Tensor instructions a row: 32 bytes each."""
        return self.stored * self.pack // 32

    @property
    def columns(self) -> int:
        """Rows of a tile: as many as leave a warpgroup registers for its queries."""
        return 128 if self.steps <= 8 else 64

    @property
    def tile_signatures(self) -> int:
        """Signatures of a tile; pieces are whole tiles."""
        return self.columns * self.pack

    @property
    def tile_bytes(self) -> int:
        """Bytes of a tile."""
        return 32 * self.steps * self.columns

    def tiles(self, count: int) -> int:
        """Return how many tiles hold so many signatures."""
        return -(-count // self.tile_signatures)

    def bytes_of(self, count: int) -> int:
        """Return the memory that so many signatures take, with their places and tiles' ones."""
        return self.tiles(count) * (self.tile_bytes + 4) + 2 * count
