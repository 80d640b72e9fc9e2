"""Features that a function of the caller's finds in a text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from lookalike import _native
from lookalike.checks import instance
from lookalike.errors import ArgumentError
from lookalike.features.ready import ready_source
from lookalike.features.text_kind import TextKind
from lookalike.shown import brief

__all__ = ["FeatureFunction"]


class FeatureFunction(TextKind):
    """What `function(text)` yields: features as `la.Features` takes them, `str`, `bytes` or whole
    numbers, each alone or in a tuple with its weight.

    It is called once for each reading of a document, by one thread, and has to give equal features
    for equal texts. Its `name` stands for it in files: what is to be found again later (signatures
    in a file, an index, a work folder) needs one, and the program that reads such a file has to
    make the same features before, under the same name. Choose another name when the function
    changes.
    """

    _named: ClassVar[dict[str, Callable[[str], Any]]] = {}

    def __init__(
        self, function: Callable[[str], Any] | None = None, name: str | None = None
    ) -> None:
        self.name = name if name is None else instance("name", name, str, "a str or None")
        if function is None:
            function = _known(name)
        elif not callable(function):
            raise ArgumentError(
                f"function is {brief(function)}; expected one that takes a text and returns its "
                "features"
            )
        self.function = function
        if name is not None:
            FeatureFunction._named[name] = function

    def settings(self) -> dict[str, Any]:
        """Return the name, by which `FeatureFunction(name=...)` knows the function."""
        return {"name": self.name}

    def __reduce__(self) -> tuple[Any, ...]:
        return FeatureFunction, (self.function, self.name)  # pickled by where it can be imported

    def check_lasting(self) -> None:
        """Refuse a function that nothing but itself stands for."""
        if self.name is None:
            raise ArgumentError(
                "features are found by a function without a name, which nobody could tell from "
                "another one later; give it one: la.FeatureFunction(function, name='...')"
            )

    def batch_source(self, batch: _native.Documents, position: int) -> _native.Source:
        """Return what the function finds in texts."""
        return ready_source(self._features(batch.to_list(), position), position, hashed=False)

    def _features(self, texts: list[str], first_position: int) -> Iterator[Any]:
        for position, text in enumerate(texts, first_position):
            try:
                yield self.function(text)
            except Exception as error:
                error.add_note(f"raised by the function that finds features, of text {position}")
                raise

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, FeatureFunction)
            and self.name == other.name
            and (self.name is not None or self.function == other.function)
        )

    def __hash__(self) -> int:
        return hash((self.name, None if self.name is not None else self.function))


def _known(name: str | None) -> Callable[[str], Any]:
    try:
        return FeatureFunction._named[name or ""]
    except KeyError:
        raise ArgumentError(
            f"nothing is known of features with the name {brief(name)}; make them first, with the "
            "function that finds them: la.FeatureFunction(function, name='...')"
        ) from None
