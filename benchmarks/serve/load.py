"""Load from a process of its own: `python -m benchmarks.serve.load`, told what by standard input.

So many connections send one of the requests each, wait for the answer, and send the next.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

import uvloop


class Connection(asyncio.Protocol):
    """One that sends the next request when it has the answer to the last."""

    def __init__(self, load: Load, first: int) -> None:
        self.load = load
        self.place = first
        self.read = bytearray()

    def connection_made(self, transport: Any) -> None:
        """Begin."""
        self.transport = transport
        self.send()

    def send(self) -> None:
        """Send the next request."""
        requests = self.load.requests
        self.sent = time.perf_counter()
        self.transport.write(requests[self.place % len(requests)])
        self.place += self.load.connections

    def data_received(self, data: bytes) -> None:
        """Take a piece of an answer; when it is whole, note its time."""
        self.read += data
        end = self.read.find(b"\r\n\r\n")
        if end < 0:
            return
        head = bytes(self.read[:end]).lower()
        at = head.index(b"content-length: ") + 16
        size = int(head[at : head.find(b"\r", at) if head.find(b"\r", at) > 0 else None])
        if len(self.read) < end + 4 + size:
            return
        now = time.perf_counter()
        self.load.take(head.startswith(b"http/1.1 200"), now - self.sent, self.read[end + 4 :])
        self.read.clear()
        if now < self.load.end:
            self.send()
        else:
            self.transport.close()
            self.load.left()

    def connection_lost(self, error: Exception | None) -> None:
        """Count a connection that the other side has closed."""
        if time.perf_counter() < self.load.end:
            self.load.errors += 1
            self.load.left()


class Load:
    """What is sent, and what came back."""

    def __init__(self, requests: list[bytes], connections: int, seconds: float) -> None:
        self.requests = requests
        self.connections = connections
        self.seconds = seconds
        self.times: list[float] = []
        self.errors = 0
        self.first_error = ""
        self.open = connections
        self.done = asyncio.Event()

    def take(self, good: bool, seconds: float, body: bytearray) -> None:
        """Count an answer."""
        self.times.append(seconds)
        if not good:
            self.errors += 1
            self.first_error = self.first_error or body[:200].decode("latin-1")

    def left(self) -> None:
        """Count a connection that has ended."""
        self.open -= 1
        if not self.open:
            self.done.set()

    async def run(self, host: str, port: int) -> dict[str, Any]:
        """Send until the time is over."""
        loop = asyncio.get_running_loop()
        begin = time.perf_counter()
        self.end = begin + self.seconds
        for number in range(self.connections):
            await loop.create_connection(lambda n=number: Connection(self, n), host, port)  # type: ignore[misc]
        await self.done.wait()
        passed = time.perf_counter() - begin
        times = sorted(self.times)
        return {
            "requests": len(times),
            "per_second": len(times) / passed,
            "p50": times[len(times) // 2],
            "p99": times[int(len(times) * 0.99)],
            "errors": self.errors,
            "first_error": self.first_error,
        }


def main() -> None:
    """Do what standard input says."""
    order = json.load(sys.stdin)
    requests = [one.encode("latin-1") for one in order["requests"]]
    load = Load(requests, order["connections"], order["seconds"])
    print(json.dumps(uvloop.run(load.run(order["host"], order["port"]))))


if __name__ == "__main__":
    main()
