"""Where things are kept that can be made again."""

from __future__ import annotations

import os
from pathlib import Path


def user_cache_folder() -> Path | None:
    """Return our folder in `XDG_CACHE_HOME`, or in `~/.cache`; None for a user without a home.

    It need not be there yet. The standard has relative paths ignored: what is kept would depend on
    where a program was started.
    """
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if named.is_absolute():
        return named / "lookalike"
    try:
        return Path.home() / ".cache" / "lookalike"
    except RuntimeError:
        return None
