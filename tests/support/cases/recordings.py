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

    def covers() -> la.CoverIndex:
        made = la.CoverIndex()
        made.add("one", sound)
        return made

    index().save(folder / "music.parts")
    covers().save(folder / "covers.parts")
    cover_hash = la.CoverHash()
    return {
        "CoverHash.chroma": (cover_hash.chroma, {"recording": sound}),
        "CoverHash.from_bytes": (la.CoverHash.from_bytes, {"data": cover_hash.to_bytes()}),
        "CoverHash.from_dict": (la.CoverHash.from_dict, {"description": cover_hash.to_dict()}),
        "CoverHash.save": (cover_hash.save, {"path": folder / "CoverHash"}),
        "CoverHash.sign": (cover_hash.sign, {"recording": sound}),
        "CoverHash.sign_parts": (cover_hash.sign_parts, {"recording": sound}),
        "CoverHash.sign_query": (cover_hash.sign_query, {"thing": sound}),
        "CoverIndex.add": (
            lambda **given: covers().add(**given),
            {"name": "two", "recording": sound},
        ),
        "CoverIndex.add_files": (
            lambda **given: covers().add_files(**given),
            {"files": [folder / "none.wav"], "folder": folder},
        ),
        "CoverIndex.name": (covers().name, {"id": 3}),
        "CoverIndex.from_bytes": (la.CoverIndex.from_bytes, {"data": covers().to_bytes()}),
        "CoverIndex.load": (la.CoverIndex.load, {"path": folder / "covers.parts"}),
        "CoverIndex.remove": (lambda **given: covers().remove(**given), {"name": "one"}),
        "CoverIndex.save": (covers().save, {"path": folder / "saved.covers"}),
        "CoverIndex.search": (covers().search, {"recording": sound}),
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
