"""Everything that lookalike raises on purpose.

    LookalikeError
    ├── ArgumentError (ValueError)              a number or option that makes no sense
    ├── DocumentError (ValueError)              a document that is none: its position is named
    ├── NotFittedError (RuntimeError)           weights that have to be learnt first
    ├── SignatureError (ValueError)             an array that is not signatures, or of another width
    ├── ResultTooLargeError (MemoryError)       more results than the caller's limit
    ├── MissingDependencyError (ImportError)    an extra that is not installed
    └── FileError
        ├── FormatError                         not our file, or one from a newer version
        └── CorruptIndexError                   our file, but damaged

Each message says what was given, what was expected and what to do about it.
"""

from __future__ import annotations

__all__ = [
    "ArgumentError",
    "CorruptIndexError",
    "DocumentError",
    "FileError",
    "FormatError",
    "LookalikeError",
    "MissingDependencyError",
    "NotFittedError",
    "ResultTooLargeError",
    "SignatureError",
]


class LookalikeError(Exception):
    """The root of all errors of this package."""


class ArgumentError(LookalikeError, ValueError):
    """A number or option that makes no sense where it was given."""


class DocumentError(LookalikeError, ValueError):
    """Something that cannot be read as a document; the message names its position."""


class NotFittedError(LookalikeError, RuntimeError):
    """Weights that have to be learnt with `fit` were used before."""


class SignatureError(LookalikeError, ValueError):
    """An array that cannot be read as signatures, or signatures of the wrong width."""


class ResultTooLargeError(LookalikeError, MemoryError):
    """The answer would be larger than the limit; nothing was returned rather than a part of it."""


class MissingDependencyError(LookalikeError, ImportError):
    """An optional package is needed for this call and not installed."""


class FileError(LookalikeError):
    """A file cannot be used."""


class FormatError(FileError):
    """The file is not one of ours, or was written by a newer version."""


class CorruptIndexError(FileError):
    """The file is one of ours, but damaged or cut short."""
