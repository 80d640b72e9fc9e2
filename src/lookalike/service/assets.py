"""The page: files of the folder `page`, all of which belong to the package.

Nothing outside the folder can be reached: the files are known when the service starts, and asked
for by name.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.responses import Response

from lookalike.service.problems import Problem

__all__ = ["FOLDER", "add_page"]

FOLDER = Path(__file__).parent / "page"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".json": "application/json",
}


def add_page(app: FastAPI) -> None:
    """Serve the page: `/` is index.html, `/page/NAME` every file."""
    files = {}
    for path in sorted(FOLDER.rglob("*")):
        kind = _TYPES.get(path.suffix)
        if path.is_file() and kind is not None:
            content = path.read_bytes()
            tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
            files[path.relative_to(FOLDER).as_posix()] = (content, kind, tag)

    async def file(request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        request.scope["lookalike"].route = "/page"
        if name not in files:
            raise Problem(404, "no_route", "there is no such file; the page is at /")
        content, kind, tag = files[name]
        headers = {"etag": tag, "cache-control": "no-cache"}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(content, headers=headers, media_type=kind)

    app.add_route("/", file, ["GET"], include_in_schema=False)
    app.add_route("/page/{name:path}", file, ["GET"], include_in_schema=False)
