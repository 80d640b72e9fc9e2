"""Everything that lookalike raises on purpose.

    LookalikeError
    ├── ArgumentError (ValueError)              a number or option that makes no sense
    ├── DocumentError (ValueError)              a document that is none: its position is named
    ├── NotFittedError (RuntimeError)           weights that have to be learned first
    ├── SignatureError (ValueError)             an array that is not signatures, or of another width
    ├── ResultTooLargeError (MemoryError)       more results than the caller's limit
    ├── MissingDependencyError (ImportError)    an extra that is not installed
    ├── UnavailableError (ConnectionError)      an index of a service that does not answer
    ├── FileError
    │   ├── FormatError                         not our file, or one from a newer version
    │   └── CorruptIndexError                   our file, but damaged
    └── CollectionError                         a collection's database that cannot be used
        ├── CollectionBusyError                 locked by another process for too long
        ├── BatchError (ValueError)             items of a batch that cannot be written
        └── NotFoundError (LookupError)         a collection or document that is not there

    LookalikeWarning (UserWarning)              what works, but much worse than it could

Each message says what was given, what was expected and what to do about it. It is safe to print, on
one line of bounded length. It is its `args` one after the other: parts that are Python's (the name
of an argument, a call) are a `Said`, for which the command line says what people type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lookalike.display import Displayed
from lookalike.shown import escape_terminal

__all__ = [
    "ArgumentError",
    "BatchError",
    "CollectionBusyError",
    "CollectionError",
    "CorruptIndexError",
    "DocumentError",
    "FileError",
    "FormatError",
    "LookalikeError",
    "LookalikeWarning",
    "MissingDependencyError",
    "NotFittedError",
    "NotFoundError",
    "ResultTooLargeError",
    "SignatureError",
    "UnavailableError",
]


_LONGEST_MESSAGE = 2000


@dataclass(frozen=True)
class Said:
    """A part of a message that is said in one way in Python, in another on the command line."""

    in_python: str
    """The name of an argument, unless `typed` says otherwise."""
    typed: str | None = None
    """What people type; None: the option that stands for the argument, where there is one."""

    def __str__(self) -> str:
        return self.in_python


class _Worded(Exception):
    """A message in parts."""

    def __str__(self) -> str:
        return escape_terminal("".join(map(str, self.args)), _LONGEST_MESSAGE)

    def as_typed(self, options: Mapping[str, str]) -> str:
        """Return the message for who typed a command: `options` are its, by argument."""
        typed = "".join(_typed(part, options) for part in self.args)
        return escape_terminal(typed, _LONGEST_MESSAGE)


def _typed(part: object, options: Mapping[str, str]) -> str:
    if not isinstance(part, Said):
        return str(part)
    return options.get(part.in_python, part.in_python) if part.typed is None else part.typed


class LookalikeError(_Worded):
    """The root of all errors of this package."""


class LookalikeWarning(_Worded, UserWarning):
    """A call works, but much worse than it could; the message says how to improve it."""


class ArgumentError(LookalikeError, ValueError):
    """An argument is invalid."""


class DocumentError(LookalikeError, ValueError):
    """Something that cannot be read as a document; the message names its position."""


class NotFittedError(LookalikeError, RuntimeError):
    """Weights were used before they were learned with `fit`."""


class SignatureError(LookalikeError, ValueError):
    """An array that cannot be read as signatures, or signatures of the wrong width."""


class ResultTooLargeError(LookalikeError, MemoryError):
    """The answer would be larger than the limit; nothing was returned."""


class MissingDependencyError(LookalikeError, ImportError):
    """An optional package is needed for this call and not installed."""


class UnavailableError(LookalikeError, ConnectionError):
    """No service of an index answered in time, or they serve another index now."""


class FileError(LookalikeError):
    """A file cannot be used."""


class FormatError(FileError):
    """The file was not written by lookalike, or by a newer version."""


class CorruptIndexError(FileError):
    """The file was written by lookalike, but is damaged or truncated."""


class CollectionError(LookalikeError):
    """The database of a collection cannot be used, or does not hold what was expected."""


class CollectionBusyError(CollectionError):
    """Another process held the database for longer than the time-out; try again."""


class NotFoundError(CollectionError, LookupError):
    """There is no such collection, or no such document in it."""


@dataclass(frozen=True, repr=False)
class ItemError(Displayed):
    """What is wrong with one item of a batch."""

    position: int
    id: object
    message: str
    remedy: Said | None = None
    """What to do about it, where that is a call."""
    exists: bool = False
    """Whether the only problem is that a document with this id exists."""

    @property
    def parts(self) -> tuple[object, ...]:
        """What it says, as the parts of an error."""
        said = f"item {self.position} ({str(self.id)[:80]!r}): {self.message}"
        return (said,) if self.remedy is None else (said, "; ", self.remedy)

    def __str__(self) -> str:
        return "".join(map(str, self.parts))


class BatchError(CollectionError, ValueError):
    """Some items of a batch cannot be written, and so none was; `errors` has one entry for each."""

    def __init__(self, errors: Sequence[ItemError], count: int) -> None:
        self.errors = list(errors)
        self.count = count
        examples = [part for error in self.errors[:3] for part in ("; ", *error.parts)][1:]
        more = f"; and {len(self.errors) - 3} more" if len(self.errors) > 3 else ""
        super().__init__(
            f"{len(self.errors)} of {count} items cannot be written, so none was: ",
            *examples,
            f"{more}. Correct them",
            Said(", or pass on_error='skip' to write the others", ""),
        )

    def __reduce__(self) -> tuple[type[BatchError], tuple[Sequence[ItemError], int]]:
        return type(self), (self.errors, self.count)  # so that it reaches another process
