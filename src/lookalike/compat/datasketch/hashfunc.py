"""The hash functions of datasketch: the first bytes of SHA-1, lowest first."""

from __future__ import annotations

from hashlib import sha1

__all__ = ["sha1_hash32", "sha1_hash64"]


def sha1_hash32(data: bytes) -> int:
    """Return 32 bits of the SHA-1 of some bytes."""
    return int.from_bytes(sha1(data).digest()[:4], "little")


def sha1_hash64(data: bytes) -> int:
    """Return 64 bits of the SHA-1 of some bytes."""
    return int.from_bytes(sha1(data).digest()[:8], "little")
