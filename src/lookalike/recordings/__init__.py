"""Recordings: which words of 32 bits does this sound have, and which recording has them, too?

Each name is imported when it is first asked for.
"""

from typing import TYPE_CHECKING

from lookalike.lazy import names_from

if TYPE_CHECKING:
    from lookalike.recordings.audio_hash import AudioHash, Fingerprint
    from lookalike.recordings.index import RecordingIndex, RecordingMatch

__all__ = ["AudioHash", "Fingerprint", "RecordingIndex", "RecordingMatch"]

__getattr__ = names_from(
    globals(),
    {
        "lookalike.recordings.audio_hash": ("AudioHash", "Fingerprint"),
        "lookalike.recordings.index": ("RecordingIndex", "RecordingMatch"),
    },
)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
