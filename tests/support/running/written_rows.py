"""What commands have written: to a file, or to a folder of parts, in any order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

__all__ = ["json_rows", "written_lines"]


def written_lines(path: Path) -> list[str]:
    """Return the lines of all files, sorted."""
    files = [path] if path.is_file() else [one for one in path.iterdir() if one.name[0] not in "._"]
    lines = [line for file in files for line in file.read_text("utf-8").splitlines()]
    return sorted(line for line in lines if line)


def json_rows(path: Path) -> list[dict[str, Any]]:
    """Return the objects of these lines."""
    return [json.loads(line) for line in written_lines(path)]
