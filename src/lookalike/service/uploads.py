"""Files that clients upload: received on disk within limits, never in memory.

A body is the file itself, or a form (multipart/form-data) with one file.
"""

from __future__ import annotations

import mmap
import os
import re
import secrets
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from lookalike.service.limits import Limit
from lookalike.service.problems import Problem, slow_request, too_large
from lookalike.service.routing import Context

_BINARY: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}
_FORM: dict[str, Any] = {
    "schema": {
        "type": "object", "required": ["file"],
        "properties": {"file": {"type": "string", "format": "binary"}},
    }
}  # fmt: skip
FILE: dict[str, Any] = {"application/octet-stream": _BINARY}
"""The body of a request in OpenAPI: a file."""
FILE_OR_FORM: dict[str, Any] = {**FILE, "multipart/form-data": _FORM}
"""The same, or a form with a file."""
_CHUNK = 1 << 20
_LEAST = 256 << 10
"""Bytes of a file that must arrive within the time limit for slow requests."""
_AT_ONCE = 4
"""Files of the largest size that are on disk at once."""
_WAITING = 8
"""Files that are decoded or wait for it, for each that is decoded."""
_MOST_PARTS, _MOST_HEAD = 16, 8 << 10
_BOUNDARY = re.compile(r'boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))', re.IGNORECASE)


async def new_path(context: Context, suffix: str = "") -> Path:
    """Return a path for a file to receive; refuse one that is too large."""
    service = context.service
    context.check_length(service.settings.max_upload, "--max-upload")
    folder = service.run / "uploads"
    await service.slowly(lambda: folder.mkdir(mode=0o700, exist_ok=True))
    return folder / f"{secrets.token_hex(12)}{suffix}"


@asynccontextmanager
async def uploaded_file(context: Context) -> AsyncIterator[Path]:
    """Yield the file that a client uploads, to be decoded in this context; it is removed then."""
    service = context.service
    paths = [await new_path(context)]
    counted = _Counted(context)
    waits = False
    try:
        await receive_file(context, paths[0], counted)
        boundary = _boundary(context)
        if boundary is not None:
            counted.add(paths[0].stat().st_size)
            paths.append(paths[0].with_suffix(".file"))
            await service.slowly(unwrap, paths[0], boundary, paths[1])
        if service.files_waiting >= _WAITING * service.settings.max_decodes:
            message = f"{service.files_waiting} files are decoded or wait for it"
            raise Problem(429, "too_many_files", f"{message}; try again in a second", retry_after=1)
        service.files_waiting += 1
        waits = True
        yield paths[-1]
    finally:
        service.files_waiting -= waits
        counted.release()
        for path in paths:
            path.unlink(missing_ok=True)


class _Counted:
    """The bytes of uploaded files of one request on the disk."""

    def __init__(self, context: Context) -> None:
        self._service = context.service
        self._size = 0

    def add(self, size: int) -> None:
        """Count more bytes, or refuse them."""
        most = _AT_ONCE * self._service.settings.max_upload
        if self._service.uploaded_bytes + size > most:
            message = f"uploaded files take {most} bytes; try again in a second"
            raise Problem(429, "too_much_at_once", message, retry_after=1)
        self._service.uploaded_bytes += size
        self._size += size

    def release(self) -> None:
        """Count nothing any more."""
        self._service.uploaded_bytes -= self._size
        self._size = 0


async def receive_file(
    context: Context, path: os.PathLike[str], counted: _Counted | None = None
) -> None:
    """Write the body to a file as it arrives."""
    service, size, waiting = context.service, 0, bytearray()
    settings = service.settings
    context.held.need(2 * _CHUNK)  # the bytes to write, and their copy for the thread
    file = await service.slowly(open, path, "wb")
    more = True
    try:
        while more:
            with Limit(service.watch, settings.slow_limit, slow_request):
                enough = len(waiting) + _LEAST
                while more and len(waiting) < enough:
                    part, more = await context.next_part()
                    waiting += part
            if len(waiting) >= _CHUNK or not more:
                size += len(waiting)
                if size > settings.max_upload:
                    raise too_large(f"more than {settings.max_upload}", "--max-upload")
                if counted is not None:
                    counted.add(len(waiting))
                if waiting and shutil.disk_usage(service.run).free < 2 * len(waiting) + (64 << 20):
                    raise Problem(413, "no_room", "the disk has no space for the file")
                await service.slowly(file.write, bytes(waiting))
                waiting.clear()
        if not size:
            raise Problem(422, "empty_file", "the file is empty; send its content as the body")
    finally:
        file.close()


def _boundary(context: Context) -> bytes | None:
    """Return the boundary of a form, or None if the body is the file."""
    kind = context.info.headers.get("content-type", "")
    if not kind.lower().startswith("multipart/"):
        return None
    found = _BOUNDARY.search(kind)
    if not kind.lower().startswith("multipart/form-data") or found is None:
        message = f"the Content-Type is {kind[:80]!r}; expected multipart/form-data with a boundary"
        raise Problem(415, "content_type", f"{message}, or the file itself as the body")
    return (found[1] or found[2]).encode("latin-1")


def unwrap(path: Path, boundary: bytes, target: Path) -> None:
    """Write the one file of a form to another file."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as form:
        files = [
            (begin, end) for head, begin, end in _parts(form, boundary) if b"filename=" in head
        ]
        if len(files) != 1:
            message = f"the form has {len(files)} files; expected one"
            raise Problem(422, "bad_form", f"{message}, as `curl -F file=@FILE` sends it")
        begin, end = files[0]
        file.seek(begin)
        with open(target, "wb") as made:
            while begin < end:
                piece = file.read(min(_CHUNK, end - begin))
                made.write(piece)
                begin += len(piece)


def _parts(form: mmap.mmap, boundary: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Yield the headers of each part, in lower case, and where its content begins and ends."""
    mark = b"--" + boundary
    if form[: len(mark)] != mark:
        raise _bad_form()
    at = len(mark)
    for _ in range(_MOST_PARTS):
        if form[at : at + 2] == b"--":
            return
        head_end = form.find(b"\r\n\r\n", at, at + _MOST_HEAD)
        end = form.find(b"\r\n" + mark, max(at, head_end + 2))
        if form[at : at + 2] != b"\r\n" or head_end < 0 or end < 0:
            raise _bad_form()
        yield form[at:head_end].lower(), head_end + 4, max(head_end + 4, end)
        at = end + 2 + len(mark)
    raise _bad_form()


def _bad_form() -> Problem:
    message = "the form is truncated, has too many fields, or does not begin with its boundary"
    return Problem(422, "bad_form", f"{message}; send the file itself as the body")
