"""Sign a corpus that may be larger than memory: signatures are written batch by batch."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from lookalike import _native
from lookalike.checks import thread_count
from lookalike.corpora.base import Corpus, Problems, StringWriter, native_documents, pa
from lookalike.corpora.columns import Columns, text_strings
from lookalike.corpora.lengths import TextLengths, lengths_of
from lookalike.errors import ArgumentError, FileError, Said
from lookalike.features import FeatureKind, Weights
from lookalike.progress import Progress, listener
from lookalike.signatures import save_signatures
from lookalike.signatures.bit_weights import BitWeightSigner
from lookalike.signatures.signer import DocumentSigner, WeightedSigner
from lookalike.storage.files import whole_file
from lookalike.storage.strings import Strings

SIGNATURE_SUFFIXES = (".lookalike", ".npy")
_BYTES_A_FEATURE = 4


@dataclass(frozen=True)
class SignedCorpus:
    """Counts of signed and skipped documents; see `lookalike.corpora.base.Problems`."""

    documents: int
    signatures: int
    bits: int  # bits of each signature
    signer: DocumentSigner
    features_reason: str | None  # why the features fit, if the lengths of documents chose them
    without_features: int  # documents that have no features to sign
    bad_rows: int
    binary_files: int
    examples: list[str]
    left_out: dict[str, int]
    files_left_out: list[str]
    notices: list[str]


def sign_corpus(
    corpus: Corpus,
    columns: Columns,
    signer: DocumentSigner,
    path: Path,
    *,
    fit: bool = False,
    skip_bad: bool = False,
    threads: SupportsIndex | None = None,
    progress: Progress | bool | None = None,
    weighted: bool = False,
    fitting: Callable[[TextLengths], DocumentSigner] | None = None,
) -> SignedCorpus:
    """Write the signatures of all documents to a file, whole or not at all.

    NAME.lookalike has the signer and the ids or row numbers; documents without features are
    skipped, because they would all be equal. NAME.npy has a row for each document and nothing else.
    Memory holds one batch; the disk needs twice the size of the signatures.

    Args:
        fit: learn the weights of the signer first, in another reading.
        weighted: also write the weights of the bits, 16 bits each, to NAME.lookalike.
        fitting: returns the signer that fits the lengths of the documents. If it is another one,
            the corpus is read once more.
    """
    if path.suffix not in SIGNATURE_SUFFIXES:
        raise ArgumentError(
            f"{path}: expected a name that ends in {' or '.join(SIGNATURE_SUFFIXES)}"
        )
    if weighted:
        check_weighted(signer, path)
    tell = listener(progress)
    identity = corpus.identity()
    count = thread_count(threads)
    if fit:
        _fit(corpus, columns, signer, skip_bad, count, tell)
    described: TextLengths | None = None
    while True:
        with _scratch(path) as files:
            read = _sign(corpus, columns, signer, path, files, skip_bad, count, weighted, tell)
            corpus.check_identity(identity)
            tell("sign", 1.0)
            if fitting is not None:
                described, (better, fitting) = read.lengths, (fitting(read.lengths), None)
                if better != signer:
                    signer = better
                    continue
            rows = _write(signer, path, files, weighted)
        problems = read.problems
        return SignedCorpus(
            documents=read.documents,
            signatures=len(rows),
            bits=8 * rows.shape[1],
            signer=signer,
            features_reason=None if described is None else described.reason,
            without_features=read.without_features,
            bad_rows=problems.bad,
            binary_files=problems.binary,
            examples=problems.examples,
            left_out=problems.left_out,
            files_left_out=problems.files,
            notices=problems.notices(),
        )


@dataclass(frozen=True)
class _Read:
    """What was read while signing."""

    documents: int
    without_features: int
    lengths: TextLengths
    problems: Problems


def _sign(
    corpus: Corpus,
    columns: Columns,
    signer: DocumentSigner,
    path: Path,
    files: list[BinaryIO],
    skip_bad: bool,
    threads: int,
    weighted: bool,
    tell: Progress,
) -> _Read:
    """Write signatures, ids and weights to scratch files."""
    rows_file, id_bytes, id_ends, weights_file = files
    named, problems, lengths = path.suffix == ".lookalike", Problems(skip_bad), TextLengths()
    documents = without = 0
    ids = StringWriter(id_bytes, id_ends)
    for batch in corpus.read(columns.names, problems):
        texts = text_strings(batch.column(0), columns.text, corpus).fill_null("")
        weights = np.empty((0, 0), np.int16)
        if weighted and isinstance(signer, BitWeightSigner):
            signatures, weights = signer.sign_with_weights(texts, quantized=True, threads=threads)
        else:
            signatures = signer.sign(texts, threads=threads)
        enough = signer.with_features(texts, signatures, threads=threads)
        without += len(texts) - int(np.count_nonzero(enough))
        lengths += lengths_of(native_documents(texts))
        if named:
            kept = np.flatnonzero(enough)
            signatures = np.ascontiguousarray(signatures[kept])
            ids.append(columns.ids(batch, documents).take(kept))
            if weighted:
                weights_file.write(np.ascontiguousarray(weights[kept]).data)
        rows_file.write(signatures.data)
        documents += len(texts)
        tell("sign", corpus.done)
    return _Read(documents, without, lengths, problems)


def _write(
    signer: DocumentSigner, path: Path, files: list[BinaryIO], weighted: bool
) -> NDArray[np.uint8]:
    """Write what is in scratch files to the file; return the signatures."""
    rows_file, id_bytes, id_ends, weights_file = files
    rows = _mapped(rows_file, np.uint8, signer.sign([]).shape[1])
    if path.suffix == ".lookalike":
        names = Strings(_mapped(id_ends, np.int64), _mapped(id_bytes, np.uint8))
        behind = _mapped(weights_file, np.int16, 8 * rows.shape[1]) if weighted else None
        save_signatures(path, rows, signer, names, weights=behind)
    else:
        with whole_file(path) as temporary, open(temporary, "xb") as file:
            np.save(file, rows, allow_pickle=False)
    return rows


def check_weighted(signer: DocumentSigner, path: Path) -> None:
    """Refuse weights that the signer lacks or the file cannot hold."""
    if not isinstance(signer, BitWeightSigner):
        raise ArgumentError(
            Said("weighted", "--bit-weights"),
            " requires ",
            Said("SimHash or TopSig", "--method simhash or topsig"),
            ", whose bits are signs of sums; leave it out",
        )
    if path.suffix != ".lookalike":
        raise ArgumentError(
            Said("weighted", "--bit-weights"),
            f" requires an output called NAME.lookalike, got {path}; give another name",
        )


def _fit(
    corpus: Corpus,
    columns: Columns,
    signer: DocumentSigner,
    skip_bad: bool,
    threads: int,
    tell: Progress,
) -> None:
    if not isinstance(signer, WeightedSigner) or not signer.weights.learns:
        raise ArgumentError(
            Said(f"{signer!r}", "this method"),
            " has no weights to learn; ",
            Said("fit"),
            " requires the weights tfidf, log-likelihood or idf",
        )

    def texts() -> Iterator[str]:
        for batch in corpus.read([columns.text], Problems(skip_bad)):
            strings = text_strings(batch.column(0), columns.text, corpus).fill_null("")
            yield from strings.to_pylist()
            tell("fit", corpus.done)

    signer.fit(texts(), threads=threads)
    tell("fit", 1.0)


def corpus_weights(
    corpus: Corpus,
    columns: Columns,
    features: FeatureKind,
    weights: Weights,
    *,
    skip_bad: bool,
    threads: int,
) -> Weights:
    """Return weights that were learned from a corpus, which is read three times.

    As in `dedup`, only documents with features count, and equal ones count once.
    """
    seen: set[bytes] = set()
    counted: list[NDArray[np.bool_]] = []
    size = 0

    def batches() -> Iterator[Any]:
        for batch in corpus.read([columns.text], Problems(skip_bad)):
            yield text_strings(batch.column(0), columns.text, corpus).fill_null("")

    def is_new(text: str) -> bool:
        before = len(seen)
        seen.add(blake2b(text.encode(), digest_size=16).digest())
        return len(seen) > before

    for strings in batches():
        new = np.array([is_new(text) for text in strings.to_pylist()], bool)
        counted.append(new & (features.counts(strings, threads=threads) > 0))
        size += strings.nbytes

    def sources() -> Iterator[_native.Source]:
        for strings, which in zip(batches(), counted, strict=True):
            yield from features.sources(strings.filter(pa.array(which)))

    return weights.fit_whole(sources, expected=size // _BYTES_A_FEATURE, threads=threads)


@contextmanager
def _scratch(path: Path) -> Iterator[list[BinaryIO]]:
    try:
        with ExitStack() as files:
            yield [
                files.enter_context(tempfile.TemporaryFile(dir=path.absolute().parent))
                for _ in range(4)
            ]
    except OSError as error:
        raise FileError(
            f"{path} cannot be written: {error.strerror or error}; the folder needs free space for "
            "twice the size of the signatures"
        ) from error


def _mapped(file: BinaryIO, dtype: type[np.generic], columns: int | None = None) -> NDArray[Any]:
    """Return what was written to a file as an array, mapped and not read."""
    file.flush()
    length = file.tell() // np.dtype(dtype).itemsize
    shape = (length,) if columns is None else (length // columns, columns)
    if length == 0:
        return np.empty(shape, dtype)
    return np.memmap(file, dtype, "r", shape=shape)
