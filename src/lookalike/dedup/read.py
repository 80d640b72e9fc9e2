"""Step 1, read: documents of a corpus to texts and ids on disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.corpora import Corpus, Problems
from lookalike.corpora.base import arrow, arrow_compute
from lookalike.corpora.columns import Columns, id_strings, text_strings, undictionaried
from lookalike.dedup.progress import JobProgress
from lookalike.dedup.strings_on_disk import StringsOnDisk, TextWriter
from lookalike.dedup.work_folder import WorkFolder, digest, naming
from lookalike.errors import ArgumentError, DocumentError

__all__ = ["DocumentTable", "OldSignatures", "read_documents"]

_EXPANSION, _EXPANDED_BYTES = 10_000, 4 << 30
"""How many times its size a corpus may have when it is read, and the bytes that are always fine."""


@dataclass(frozen=True)
class OldSignatures:
    """Old documents of which there are only signatures."""

    signatures: NDArray[np.uint8]
    ids: Sequence[str] | None
    identity: list[Any]
    """Changes when the file they come from does."""

    def __len__(self) -> int:
        return len(self.signatures)


@dataclass
class DocumentTable:
    """What was read. Those of an old corpus come first, `old` of them."""

    texts: StringsOnDisk
    ids: StringsOnDisk | None
    old_ids: Sequence[str] | StringsOnDisk | None
    old: int
    order: NDArray[np.int64] | None
    """Ranks by the column that decides who survives, of all documents."""
    key: str
    without_text: int
    bad: int
    binary: int
    examples: list[str]

    def __len__(self) -> int:
        return len(self.texts)

    def id_of(self, position: int) -> str | int:
        """Return the id of a document, or its row in its own corpus where there is none."""
        ids, row = (
            (self.old_ids, position) if position < self.old else (self.ids, position - self.old)
        )
        return row if ids is None else ids[row]


def read_documents(
    work: WorkFolder,
    corpora: list[tuple[Corpus, Columns]],
    *,
    old_signatures: OldSignatures | None,
    skip_bad: bool,
    progress: JobProgress,
    check: Callable[[int], None],
) -> DocumentTable:
    """Read an old corpus, if there are two, and the one to be de-duplicated.

    Documents known only by their signatures come before all others, without text. `check` is told
    how many there are so far, and raises if they are too many.
    """
    identities = [corpus.identity() for corpus, _ in corpora]
    described = [
        [identity, corpus.format, vars(columns), corpus.max_document]
        for identity, (corpus, columns) in zip(identities, corpora, strict=True)
    ]
    repeatable = all(identity is not None for identity in identities)
    known = None if old_signatures is None else old_signatures.identity
    key = digest("read", described, known, skip_bad)
    facts = work.facts("read", key) if repeatable else None
    if facts is not None:
        progress.reuse("read")
    else:
        work.begin("read")
        problems = Problems(skip_bad)
        counts, without = [], 0
        with ExitStack() as files:
            texts = files.enter_context(TextWriter.open(work, "texts"))
            if old_signatures is not None:
                texts.append_empty(len(old_signatures))
            for number, (corpus, columns) in enumerate(corpora):
                begin = texts.count
                ids = (
                    files.enter_context(TextWriter.open(work, f"ids{number}"))
                    if columns.id
                    else None
                )
                without += _read(work, corpus, columns, texts, ids, problems, progress, check)
                corpus.check_identity(identities[number])
                counts.append(texts.count - begin)
        facts = {
            "counts": counts,
            "without_text": without,
            "bad": problems.bad,
            "binary": problems.binary,
            "examples": problems.examples,
        }
        names = ["texts", *(f"ids{at}" for at, (_, which) in enumerate(corpora) if which.id)]
        made = [f"{name}.{part}" for name in names for part in ("bytes", "ends")]
        ordered = ["order.arrow"] if corpora[-1][1].order and counts[-1] else []
        work.complete("read", key, facts, [*made, *ordered])
    last = len(corpora) - 1
    columns = corpora[last][1]
    check(sum(facts["counts"]) + (0 if old_signatures is None else len(old_signatures)))
    old = sum(facts["counts"][:last]) if old_signatures is None else len(old_signatures)
    old_ids: Sequence[str] | StringsOnDisk | None = None
    if old_signatures is not None:
        old_ids = old_signatures.ids
    elif last and corpora[0][1].id:
        old_ids = StringsOnDisk(work, "ids0")
    return DocumentTable(
        StringsOnDisk(work, "texts"),
        StringsOnDisk(work, f"ids{last}") if columns.id else None,
        old_ids,
        old,
        _ranks(work, old, facts["counts"][last]) if columns.order else None,
        key if repeatable else digest(key, np.random.default_rng().bytes(16).hex()),
        facts["without_text"],
        facts["bad"],
        facts["binary"],
        facts["examples"],
    )


def _read(
    work: WorkFolder,
    corpus: Corpus,
    columns: Columns,
    texts: TextWriter,
    ids: TextWriter | None,
    problems: Problems,
    progress: JobProgress,
    check: Callable[[int], None],
) -> int:
    """Append the documents of one corpus; return how many have no text."""
    pa = arrow()
    without = row = 0
    order: list[Any] = []
    for batch in corpus.read(columns.names, problems):
        strings = text_strings(batch.column(0), columns.text, corpus)
        without += strings.null_count
        texts.append(strings)
        if ids is not None:
            ids.append(id_strings(batch.column(1), row))
        if columns.order:
            order.append(_comparable(batch.column(len(columns.names) - 1)))
        row += len(batch)
        check(texts.count)
        _check_expansion(corpus, texts.size)
        progress.step("read", corpus.done)
    if columns.order and order:
        table = pa.table({"order": pa.chunked_array(order)})
        with (
            work.writer("order.arrow") as file,
            pa.ipc.new_file(file, table.schema) as writer,
        ):
            writer.write_table(table)
    return without


def _check_expansion(corpus: Corpus, size: int) -> None:
    """Refuse what is not a corpus that was compressed, but made to fill the disk."""
    packed = sum(file.stat().st_size for file in corpus.files) if size > _EXPANDED_BYTES else size
    if corpus.files and size > _EXPANSION * packed:
        raise DocumentError(
            f"{corpus.name} has {packed:,} bytes and expands to more than {size:,}; expected no "
            f"more than {_EXPANSION:,} times as many, above {_EXPANDED_BYTES:,}. If it is "
            "meant, write it anew without compression"
        )


def _comparable(column: Any) -> Any:
    """Return a column in a type that Arrow can rank, where it is but another form of one."""
    pa = arrow()
    column = undictionaried(column)
    if pa.types.is_string_view(column.type):
        return column.cast(pa.large_string())
    if pa.types.is_floating(column.type):  # what is not a number is no value
        return arrow_compute().if_else(arrow_compute().is_nan(column), None, column)
    return column


def _ranks(work: WorkFolder, old: int, count: int) -> NDArray[np.int64]:
    """Return how the values of the deciding column stand to each other: the least is 1.

    Values are numbers if every one is, else text. Those that are missing rank above all: -1.
    """
    pa = arrow()
    ranks = np.full(old + count, -1, np.int64)
    if count == 0:
        return ranks
    path = work.path("order.arrow")
    with naming(path, "read"), pa.memory_map(str(path)) as file:
        values = pa.ipc.open_file(file).read_all()["order"]
        if values.null_count == count:  # of any type, or of none
            return ranks
        if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
            for kind in (pa.int64(), pa.float64()):
                try:
                    values = values.cast(kind)
                    break
                except pa.ArrowInvalid:
                    pass
        try:
            dense = arrow_compute().rank(values, tiebreaker="dense")
        except pa.ArrowNotImplementedError as error:
            raise ArgumentError(
                f"the column to keep by is of type {values.type}, which has no order"
            ) from error
        ranks[old:] = dense.to_numpy()
        ranks[old:][values.is_null().to_numpy()] = -1
    return ranks
