"""The texts of what was found, read when it is known what that is: a few at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lookalike.collection.answers import Answer
from lookalike.collection.documents import Row, check_row, damaged, decoded_text
from lookalike.collection.search.bounds import spend
from lookalike.collection.stores.base import State, View

_AT_ONCE = 64
"""Documents of a question: a database may hold all that it answers, with texts of megabytes."""


def rows_with_texts(view: View, state: State, ids: Sequence[str]) -> Iterator[tuple[Row, bytes]]:
    """Yield documents of these ids that are as they were written, and their signatures."""
    for begin in range(0, len(ids), _AT_ONCE):
        for row, signature in view.documents(state, ids[begin : begin + _AT_ONCE]):
            yield row, check_row(row, signature)


def add_texts(view: View, state: State, answers: Iterable[Answer]) -> None:
    """Give each match the text of its document."""
    wanted: dict[str, list[dict[str, object]]] = {}
    for answer in answers:
        for match in answer:
            wanted.setdefault(match.id, []).append(vars(match))
    for row, _ in rows_with_texts(view, state, list(wanted)):
        text = decoded_text(row)
        places = wanted.pop(row.id)
        spend(len(row.text or b"") * len(places))
        if text is not None:
            for fields in places:
                fields["text"] = text
    for id in wanted:
        raise damaged(f"the document {id[:80]!r} was found, but is not there")
