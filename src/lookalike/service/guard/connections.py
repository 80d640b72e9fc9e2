"""Which connections there may be, and which of them give way when there are too many.

A connection is lingering (its answer was sent, the rest of its request is dropped), idle (kept
alive between requests), waiting (for the rest of the headers) or working. Where there is no room
for a new one, the first of these gives way: the oldest lingering one, the oldest idle one, one that
waits and is from an address with more connections, and one that has waited for longer than a
second. Working ones stay. So one address cannot keep others out by connections alone, and where all
come from the address of a proxy, it cannot either.
"""

from __future__ import annotations

import ipaddress
import resource
import time
from collections import Counter
from typing import Protocol

__all__ = ["IDLE", "LINGERING", "WAITING", "WORKING", "Connections", "allow_files"]

LINGERING, IDLE, WAITING, WORKING = range(4)
_PATIENCE = 1.0
_OTHER_FILES = 256
"""Files beside connections: databases, the log, jobs."""


class Connection(Protocol):
    """A connection that can be ended."""

    def give_way(self) -> None:
        """End at once: there is no room."""


class Connections:
    """The connections of one event loop."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._addresses: dict[Connection, str] = {}
        self._by_address: Counter[str] = Counter()
        # Of each state, the connections in the order in which they came into it, and when.
        self._states: tuple[dict[Connection, float], ...] = ({}, {}, {}, {})

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._addresses)

    def admit(self, connection: Connection, address: str) -> bool:
        """Take a new connection, which waits; return whether there is room for it."""
        address = _network(address)
        if len(self._addresses) >= self._most:
            other = self._dispensable(address)
            if other is None:
                return False
            self.remove(other)
            other.give_way()
        self._addresses[connection] = address
        self._by_address[address] += 1
        self.mark(connection, WAITING)
        return True

    def mark(self, connection: Connection, state: int) -> None:
        """Note what a connection does now."""
        if connection in self._addresses:
            for one in self._states:
                one.pop(connection, None)
            self._states[state][connection] = time.monotonic()

    def remove(self, connection: Connection) -> None:
        """Forget a connection that has ended."""
        address = self._addresses.pop(connection, None)
        if address is None:
            return
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]
        for one in self._states:
            one.pop(connection, None)

    def _dispensable(self, address: str) -> Connection | None:
        for state in (LINGERING, IDLE):
            if self._states[state]:
                return next(iter(self._states[state]))
        waiting = self._states[WAITING]
        greedy, most = max(self._by_address.items(), key=lambda item: item[1])
        if most > self._by_address[address] + 1:
            for connection in waiting:
                if self._addresses[connection] == greedy:
                    return connection
        for connection, since in waiting.items():
            return connection if time.monotonic() - since > _PATIENCE else None
        return None


def allow_files(connections: int) -> None:
    """Let this process have as many open files as its connections need, if it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + _OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        possible = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (possible, hard))


def _network(address: str) -> str:
    """Return what stands for a client: its address, or the network of 64 bits of IPv6."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return address
    mapped = parsed.ipv4_mapped
    return str(mapped) if mapped is not None else parsed.packed[:8].hex()
