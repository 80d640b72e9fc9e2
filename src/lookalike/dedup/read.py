"""Step 1, read: documents of a corpus to texts and ids on disk."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.corpora import Corpus, Problems
from lookalike.corpora.base import compute, pa
from lookalike.corpora.columns import Columns, id_strings, text_strings, undictionaried
from lookalike.dedup.context import JobContext
from lookalike.dedup.early import EarlySignatures
from lookalike.dedup.strings_on_disk import StringsOnDisk, TextWriter
from lookalike.dedup.work_folder import WorkFolder, digest, naming
from lookalike.errors import ArgumentError, DocumentError

__all__ = ["DocumentTable", "OldSignatures", "Source", "read_documents"]

_EXPANSION, _EXPANDED_BYTES = 10_000, 4 << 30
"""How many times its size a corpus may have when it is read, and the bytes that are always fine."""


@dataclass(frozen=True)
class Source:
    """A corpus that is to be read."""

    corpus: Corpus
    columns: Columns
    identity: list[Any] | None
    """What it is now; see `Corpus.identity`."""


@dataclass(frozen=True)
class OldSignatures:
    """Old documents of which there are only signatures."""

    signatures: NDArray[np.uint8]
    ids: Sequence[str] | None
    identity: list[Any]
    """Changes when the file they come from does."""

    def __len__(self) -> int:
        return len(self.signatures)


@dataclass(frozen=True, eq=False)
class DocumentTable:
    """What was read. Those of an old corpus come first, `old` of them."""

    texts: StringsOnDisk
    ids: StringsOnDisk | None
    old_ids: Sequence[str] | StringsOnDisk | None
    old: int
    order: NDArray[np.int64] | None
    """Ranks by the column that decides who survives, of all documents."""
    key: str
    signatures_only: int
    """Old documents of which there is no text: the first ones."""
    bad: int
    binary: int
    examples: list[str]
    left_out: dict[str, int]
    """Documents that were not wanted, and pages that cannot be read, by kind."""
    files_left_out: list[str]
    """Every file of a folder that was left out, with the reason."""
    notices: list[str]
    """What people should know of how files were read."""

    def __len__(self) -> int:
        return len(self.texts)

    def id_of(self, position: int) -> str | int:
        """Return the id of a document, or its row in its own corpus where there is none."""
        ids, row = (
            (self.old_ids, position) if position < self.old else (self.ids, position - self.old)
        )
        return row if ids is None else ids[row]


def read_documents(
    job: JobContext,
    source: Source,
    old: Source | OldSignatures | None,
    early: EarlySignatures | None,
) -> DocumentTable:
    """Read an old corpus, if there is one, and the one to be de-duplicated.

    Documents known only by their signatures come before all others, without text. More than there
    is memory for are refused as soon as that is seen. What signs early gets those with text.
    """
    work = job.work
    signatures = old if isinstance(old, OldSignatures) else None
    without_text = 0 if signatures is None else len(signatures)
    sources = [*([old] if isinstance(old, Source) else []), source]
    described = [
        [
            *(one.identity, one.corpus.format, vars(one.columns), one.corpus.max_document),
            *([] if one.corpus.described is None else [one.corpus.described]),
        ]
        for one in sources
    ]
    repeatable = all(one.identity is not None for one in sources)
    known = None if signatures is None else signatures.identity
    key = digest("read", described, known, job.skip_bad)
    facts = work.facts("read", key) if repeatable else None
    if facts is not None:
        job.progress.reuse("read")
    else:
        work.begin("read")
        facts = _read_all(job, sources, without_text, early)
        names = ["texts", *(f"ids{at}" for at, one in enumerate(sources) if one.columns.id)]
        made = [f"{name}.{part}" for name in names for part in ("bytes", "ends")]
        ordered = ["order.arrow"] if source.columns.order and facts["counts"][-1] else []
        work.complete("read", key, facts, [*made, *ordered])
    job.check_memory(sum(facts["counts"]) + without_text)
    last = len(sources) - 1
    count = sum(facts["counts"][:last]) if signatures is None else len(signatures)
    old_ids: Sequence[str] | StringsOnDisk | None = None
    if signatures is not None:
        old_ids = signatures.ids
    elif last and sources[0].columns.id:
        old_ids = StringsOnDisk(work, "ids0")
    return DocumentTable(
        texts=StringsOnDisk(work, "texts"),
        ids=StringsOnDisk(work, f"ids{last}") if source.columns.id else None,
        old_ids=old_ids,
        old=count,
        order=_ranks(work, count, facts["counts"][last]) if source.columns.order else None,
        key=key if repeatable else digest(key, np.random.default_rng().bytes(16).hex()),
        signatures_only=without_text,
        bad=facts["bad"],
        binary=facts["binary"],
        examples=facts["examples"],
        left_out=facts.get("left_out", {}),
        files_left_out=facts.get("files", []),
        notices=facts.get("notices", []),
    )


def _read_all(
    job: JobContext, sources: Sequence[Source], without_text: int, early: EarlySignatures | None
) -> dict[str, Any]:
    """Write texts and ids to disk, first so many empty ones; return what is to be known of them."""
    problems = Problems(job.skip_bad)
    counts = []
    with ExitStack() as files:
        texts = files.enter_context(TextWriter.open(job.work, "texts"))
        texts.append_empty(without_text)
        for number, source in enumerate(sources):
            begin = texts.count
            ids = None
            if source.columns.id:
                ids = files.enter_context(TextWriter.open(job.work, f"ids{number}"))
            _read(job, source, texts, ids, early, problems)
            source.corpus.check_identity(source.identity)
            counts.append(texts.count - begin)
    pa.default_memory_pool().release_unused()  # batches are gone: later steps get their memory
    return {
        "counts": counts,
        "bad": problems.bad,
        "binary": problems.binary,
        "examples": problems.examples,
        "left_out": problems.left_out,
        "files": problems.files,
        "notices": problems.notices(),
    }


def _read(
    job: JobContext,
    source: Source,
    texts: TextWriter,
    ids: TextWriter | None,
    early: EarlySignatures | None,
    problems: Problems,
) -> None:
    """Append the documents of one corpus."""
    corpus, columns = source.corpus, source.columns
    row = 0
    order: list[Any] = []
    for batch in corpus.read(columns.names, problems):
        # Here `done` is that of the batches before.
        job.check_memory(texts.count, texts.count - row + round(row / (corpus.done or 1.0)))
        strings = text_strings(batch.column(0), columns.text, corpus)
        if early is not None:
            early.add(strings)
        texts.append(strings)
        if ids is not None:
            ids.append(id_strings(batch.column(1), row))
        if columns.order:
            order.append(_comparable(batch.column(len(columns.names) - 1)))
        row += len(batch)
        _check_expansion(corpus, texts.size)
        job.progress.step("read", corpus.done)
    if columns.order and order:
        table = pa.table({"order": pa.chunked_array(order)})
        with (
            job.work.writer("order.arrow") as file,
            pa.ipc.new_file(file, table.schema) as writer,
        ):
            writer.write_table(table)


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
    column = undictionaried(column)
    if pa.types.is_string_view(column.type):
        return column.cast(pa.large_string())
    if pa.types.is_floating(column.type):  # what is not a number is no value
        return compute.if_else(compute.is_nan(column), None, column)
    return column


def _ranks(work: WorkFolder, old: int, count: int) -> NDArray[np.int64]:
    """Return how the values of the deciding column stand to each other: the least is 1.

    Values are numbers if every one is, else text. Those that are missing rank above all: -1.
    """
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
            dense = compute.rank(values, tiebreaker="dense")
        except pa.ArrowNotImplementedError as error:
            raise ArgumentError(
                f"the column to keep by is of type {values.type}, which has no order"
            ) from error
        ranks[old:] = dense.to_numpy()
        ranks[old:][values.is_null().to_numpy()] = -1
    return ranks
