"""Large answers: how large they may be, and how they are sent to whoever takes them slowly."""

from __future__ import annotations

import msgpack
from fastapi.responses import Response
from starlette.types import Receive, Scope, Send

from lookalike.service.formats import JSON
from lookalike.service.guard.watch import Limit
from lookalike.service.problems import ClientGone, Problem
from lookalike.service.service import Service

__all__ = ["Counter", "LargeResponse", "answers_together", "check_answer"]

_PART = 32 << 10


def check_answer(size: int, most: int) -> None:
    """Refuse an answer that is larger than the service gives out."""
    if size > most:
        raise Problem(
            422, "answer_too_large", f"the answer has more than {most} bytes; ask for fewer "
            "documents, or without their texts, or start the service with a larger --max-answer",
            kind="ResultTooLargeError",
        )  # fmt: skip


class Counter:
    """Counts the bytes of an answer, and refuses what does not fit while it grows."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = 0

    def counted(self, position: int, part: bytes) -> bytes:
        """Return the part at a position, if there is room for it; the first one begins anew."""
        self._size = len(part) + (self._size if position else 0)
        check_answer(self._size, self._most)
        return part


def answers_together(parts: list[bytes], format: str) -> bytes:
    """Return `{"answers": [...]}` of answers in a format."""
    if format == JSON:
        return b'{"answers":[' + b",".join(parts) + b"]}"
    packer = msgpack.Packer()
    begin = [
        packer.pack_map_header(1),
        packer.pack("answers"),
        packer.pack_array_header(len(parts)),
    ]
    return b"".join([*begin, *parts])


class LargeResponse(Response):
    """An answer that is sent a part at a time, each when the one before was taken.

    It counts as long as it is held: clients that read nothing cannot fill the memory with answers.
    If there is no room for it, it is refused; the answer to a write is not (`refuse=False`), since
    the write has been done.
    """

    def __init__(
        self,
        content: bytes,
        status: int,
        media_type: str,
        service: Service,
        *,
        refuse: bool = True,
    ) -> None:
        super().__init__(content, status, media_type=media_type)
        self._service = service
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it; whoever does not take a part in time gets no more."""
        service, body = self._service, self.body
        seconds = service.settings.slow_limit
        held = service.memory.hold(scope["lookalike"].key.name)
        # Measured: buffers and freed memory come on top of the answer.
        held.need(2 * len(body), refuse=self._refuse)
        try:
            await send(
                {"type": "http.response.start", "status": self.status_code,
                 "headers": self.raw_headers}
            )  # fmt: skip
            for begin in range(0, len(body), _PART):
                with Limit(service.watch, seconds, ClientGone):
                    await send(
                        {
                            "type": "http.response.body", "body": body[begin : begin + _PART],
                            "more_body": begin + _PART < len(body),
                        }
                    )  # fmt: skip
        finally:
            held.release()
