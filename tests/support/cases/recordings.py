"""A call that works for everything public about recordings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.recordings.sounds import music

import lookalike as la

__all__ = ["recording_calls"]


def recording_calls(folder: Path) -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
    """Return a function and arguments that work, by name; what a method changes is made anew."""
    sound = music(1, 2, 8000), 8000
    hash = la.AudioHash()

    def index() -> la.RecordingIndex:
        made = la.RecordingIndex()
        made.add("one", sound)
        return made

    index().save(folder / "music.parts")
    return {
        "AudioHash": (la.AudioHash, {}),
        "AudioHash.fingerprint": (hash.fingerprint, {"recording": sound}),
        "AudioHash.from_bytes": (la.AudioHash.from_bytes, {"data": hash.to_bytes()}),
        "AudioHash.from_dict": (la.AudioHash.from_dict, {"description": hash.to_dict()}),
        "AudioHash.save": (hash.save, {"path": folder / "AudioHash"}),
        "AudioHash.sign": (hash.sign, {"recording": sound}),
        "AudioHash.sign_parts": (hash.sign_parts, {"recording": sound}),
        "AudioHash.sign_query": (hash.sign_query, {"thing": sound}),
        "RecordingIndex": (la.RecordingIndex, {}),
        "RecordingIndex.add": (
            lambda **given: index().add(**given),
            {"name": "two", "recording": sound},
        ),
        "RecordingIndex.add_files": (
            lambda **given: index().add_files(**given),
            {"files": [folder / "none.wav"], "folder": folder},
        ),
        "RecordingIndex.name": (index().name, {"id": 3}),
        "RecordingIndex.from_bytes": (la.RecordingIndex.from_bytes, {"data": index().to_bytes()}),
        "RecordingIndex.load": (la.RecordingIndex.load, {"path": folder / "music.parts"}),
        "RecordingIndex.remove": (lambda **given: index().remove(**given), {"name": "one"}),
        "RecordingIndex.save": (index().save, {"path": folder / "saved.parts"}),
        "RecordingIndex.search": (index().search, {"recording": sound}),
    }
