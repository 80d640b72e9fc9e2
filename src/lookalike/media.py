"""Media: kinds of files, such as images and recordings, that are compared by what they show.

A medium is one module with a class derived from `Medium`: which files are of this kind, how they
are decoded and signed, which pairs of them are similar, and which copy is best. It is registered in
`MEDIA`, by lookalike or through an entry point of another package:

    [project.entry-points."lookalike.media"]
    scores = "my_package.scores:ScoreMedium"

    [project.entry-points."lookalike.signers"]
    scorehash = "my_package.scores:ScoreHash"

From then on `la.dedup`, the commands `dedup`, `sign` and `search`, and collections of its signer
work with it.
"""

from __future__ import annotations

import hashlib
import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from lookalike.errors import ArgumentError, DocumentError, Said
from lookalike.registry import Registry
from lookalike.signatures.signer import Signer
from lookalike.storage.files import is_folder, open_plain, walk_folder

HEAD = 64
"""Bytes at the beginning of a file by which it is recognized."""

_PIECE = 1 << 20
_LOOKED_AT = 1000
"""Files of a folder that are enough to tell which medium most of them are of."""
_PROCESS = 128 << 20
_BYTES_A_FILE = 4 << 10
"""Memory of this process: for the job itself, and for what is known of each file."""

Content = TypeVar("Content")
Tell = Callable[[float], None]
"""Is called with the share of a step that is done."""


@dataclass(frozen=True)
class Problem:
    """A file that was left out."""

    path: Path
    reason: str
    """Such as "cannot be read (Permission denied)"; shown after the path and a colon."""


@dataclass(frozen=True, eq=False)
class SimilarPairs:
    """Pairs of files that are similar, each once, sorted by (left, right)."""

    left: NDArray[np.int64]
    """Positions in `Read.files`, each less than that in `right`."""
    right: NDArray[np.int64]
    similarity: NDArray[np.float64]
    """From 0 to 1."""
    distance: NDArray[np.int32]
    """A whole number that people know the similarity by, such as bits that differ; or -1."""


@dataclass(frozen=True, eq=False)
class Read(Generic[Content]):
    """What a medium has read. Arrays and lists have an element for each of `files`."""

    files: Sequence[Path]
    """The files that could be read, in the order in which they were given."""
    merit: NDArray[np.int64]
    """Of similar files, the one of most merit is kept (or by `Medium.merits`), then of most bytes,
    then the first by path."""
    facts: Mapping[str, Sequence[Any]]
    """Columns of what is written of each file, named in `Medium.facts`; None where it has none."""
    described: Sequence[str]
    """What people read below a file in a report, such as "4000 × 3000, JPEG"."""
    content: Content
    """Signatures and whatever else `Medium.pairs` needs."""
    problems: list[Problem] = field(default_factory=list)
    """One for each file that could not be read: each is either here or in `files`."""
    without_features: int = 0
    """Files that cannot be compared, such as images of one color; only equal files are similar."""


@dataclass(frozen=True, eq=False)
class SignedFiles:
    """The signatures of the files that could be read, and what is wrong with the others."""

    files: Sequence[Path]
    signatures: NDArray[np.uint8]
    clear: NDArray[np.bool_]
    """Whether a signature says anything; that of an image of one color does not."""
    problems: Sequence[Problem]


class Medium(ABC, Generic[Content]):
    """A kind of file, with the settings by which two files of it are similar.

    The parameters of the constructor are the options of `la.dedup` that the medium supports.
    """

    name: ClassVar[str]
    """The name in `MEDIA`, such as "images"."""
    noun: ClassVar[str]
    """One of them, such as "image"."""
    suffixes: ClassVar[frozenset[str]]
    """Of file names, in lower case with their dot. A file with such a name that is not recognized
    is broken; another one is something else."""
    facts: ClassVar[Mapping[str, str]]
    """The columns of `Read.facts`, and the name of their Arrow type, such as {"width": "int64"}."""
    policy: ClassVar[str] = "img-src data:"
    """What the Content-Security-Policy of a report has to allow for `preview`, beside styles."""
    no_features: ClassVar[str] = "without features: only equal files are similar"
    """What is said of `Read.without_features`: what they are, and after a colon what follows."""
    sign_defaults: ClassVar[Mapping[str, Any]] = {}
    """Options for which `lookalike sign` has other defaults than `la.dedup`."""
    signer: Signer
    """Signs files by their paths. Its `medium` is the name of this medium: collections with this
    signer hold files of the medium."""

    @classmethod
    @abstractmethod
    def recognizes(cls, head: bytes) -> bool:
        """Return whether a file that begins with these bytes, up to `HEAD`, is of this medium.

        It is asked of every file of a folder, so it is quick, needs no extra, and never raises.
        """

    @classmethod
    def is_one(cls, value: object) -> bool:
        """Return whether a value is one file, and not several: a path, or the bytes of a file."""
        return isinstance(value, str | os.PathLike | bytes | bytearray | memoryview)

    @classmethod
    def sign_each(
        cls, signer: Any, files: Sequence[str], *, threads: int
    ) -> Iterator[NDArray[np.uint8] | DocumentError]:
        """Yield the signature of each file, or what is wrong with it, for a collection."""
        for file in files:
            try:
                yield signer.sign([file], threads=threads)[0]
            except DocumentError as error:
                yield error

    @classmethod
    def sign_files(
        cls, signer: Any, files: Sequence[Path], *, threads: int, tell: Tell
    ) -> SignedFiles:
        """Return the signatures of files, one for each, for `lookalike sign` and `search`."""
        each = cls.sign_each(signer, [str(file) for file in files], threads=threads)
        good, rows, problems = split_problems(files, each, tell)
        signatures = np.concatenate([signer.sign([]), *(row[None] for row in rows)])
        return SignedFiles(good, signatures, np.ones(len(good), bool), problems)

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Return when two files are similar, in plain values: for reports and `to_dict`."""

    @abstractmethod
    def criterion(self) -> str:
        """Return in words when two are similar, such as "at most 56 of 256 bits differ"."""

    @abstractmethod
    def read(
        self, files: Sequence[Path], *, threads: int, tell: Tell, memory: int | None = None
    ) -> Read[Content]:
        """Read files, with this many threads or processes and `memory` bytes for all of them.

        A bad file becomes a `Problem`, never an error. Time and memory for one file are bounded.
        """

    @abstractmethod
    def pairs(self, read: Read[Content], *, threads: int, tell: Tell) -> SimilarPairs:
        """Return which of the files are similar."""

    def merits(self, read: Read[Content], pairs: SimilarPairs) -> NDArray[np.int64]:
        """Return how good each file is among those it is similar to: the best one is kept."""
        return read.merit

    @abstractmethod
    def likeness(self, similarity: float, distance: int) -> str:
        """Return how similar a pair is, in few words: "12 of 256 bits differ"."""

    @abstractmethod
    def preview(self, file: Path, most: int, *, memory: int | None = None) -> str | None:
        """Return HTML of at most `most` characters that shows a file, or None.

        Such as a thumbnail as a data URI. Nothing in it may come from the file unescaped.
        """


MEDIA: Registry[type[Medium[Any]]] = Registry(
    "medium",
    "lookalike.media",
    {
        "images": "lookalike.images.medium:ImageMedium",
        "recordings": "lookalike.recordings.medium:RecordingMedium",
    },
)


def split_problems(
    files: Sequence[Path], found: Iterable[Content | DocumentError], tell: Tell
) -> tuple[list[Path], list[Content], list[Problem]]:
    """Return the files that could be read, what was found in each, and problems of the others."""
    good: list[Path] = []
    contents: list[Content] = []
    problems: list[Problem] = []
    for done, (file, one) in enumerate(zip(files, found, strict=True), 1):
        if isinstance(one, DocumentError):
            problems.append(Problem(file, str(one)))
        else:
            good.append(file)
            contents.append(one)
        tell(done / len(files))
    return good, contents, problems


def medium_of_files(paths: Sequence[Path]) -> str | None:
    """Return the medium that more than half of all readable files are of, or None.

    Their first bytes decide, not their names; of many files, those of about a thousand.
    """
    files = [file for path in paths for file, wrong in walk(path) if not wrong]
    step = max(1, -(-len(files) // _LOOKED_AT))
    heads = []
    for file in files[::step]:
        try:
            heads.append(head_of(file)[0])
        except OSError:
            continue
    found = MEDIA.find(lambda medium: 2 * sum(map(medium.recognizes, heads)) > len(heads))
    return None if found is None else found.name


def medium_of_signer(signer: Signer | None) -> type[Medium[Any]] | None:
    """Return the medium whose files this signer signs; None for texts and vectors."""
    return None if signer is None or signer.medium in ("text", "vector") else MEDIA[signer.medium]


@dataclass
class Found:
    """The files of one medium, in the order of the arguments, those of a folder by path."""

    files: list[Path] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    """Bytes of each."""
    others: list[Path] = field(default_factory=list)
    """Files of another kind, which are not looked at."""
    problems: list[Problem] = field(default_factory=list)
    """Files that cannot be read, or have the name of one of this medium and are something else."""


def find_files(paths: Sequence[Path], medium: type[Medium[Any]]) -> Found:
    """Return the files of one medium among these files and in these folders.

    A file comes once, also if several arguments lead to it. Symbolic links in folders are not
    followed: a link would be a duplicate of its file, which may then be deleted.
    """
    found, seen = Found(), set[Path]()
    for path in paths:
        real = path.resolve()
        for file, problem in walk(path):
            itself = real / file.relative_to(path)
            if itself in seen:
                continue
            seen.add(itself)
            if problem:
                found.problems.append(Problem(file, problem))
            else:
                _sort_in(file, medium, found, named=file == path)
    return found


def _sort_in(file: Path, medium: type[Medium[Any]], found: Found, *, named: bool) -> None:
    try:
        head, size = head_of(file)
    except OSError as error:
        found.problems.append(Problem(file, f"cannot be read ({error.strerror})"))
        return
    if medium.recognizes(head):
        found.files.append(file)
        found.sizes.append(size)
    elif named or file.suffix.lower() in medium.suffixes:
        reason = f"is not {with_article(medium.noun)}: it does not begin like one"
        found.problems.append(Problem(file, reason if head else "is empty"))
    else:
        found.others.append(file)


def with_article(noun: str) -> str:
    """Return a noun with its article: an image."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def walk(path: Path) -> Iterator[tuple[Path, str]]:
    """Yield a file, or those in a folder by path, each with what is wrong with it, or ""."""
    if not is_folder(path):
        yield path, ""
        return
    closed: list[OSError] = []
    found: list[tuple[Path, str]] = []
    for folder, folders, names in walk_folder(path, closed):
        links = [name for name in folders if Path(folder, name).is_symlink()]
        found += [(Path(folder, name), _wrong(Path(folder, name))) for name in [*names, *links]]
    found += [(Path(one.filename), f"cannot be read ({one.strerror})") for one in closed]
    yield from sorted(found)


def _wrong(file: Path) -> str:
    """Return what is wrong with a name in a folder, without opening it."""
    try:
        mode = file.lstat().st_mode
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    if stat.S_ISLNK(mode):
        return "is a link, which is not followed"
    return "" if stat.S_ISREG(mode) else "is not a plain file"


def head_of(file: Path) -> tuple[bytes, int]:
    """Return the beginning of a plain file, and how many bytes it has."""
    with open_plain(file) as opened:
        return opened.read(HEAD), os.fstat(opened.fileno()).st_size


def first_equal(
    files: Sequence[Path], sizes: NDArray[np.int64], *, threads: int, tell: Tell
) -> NDArray[np.int64]:
    """Return for each file the first with the same bytes; itself, if there is none before it.

    Only files of equal size are read. A file that cannot be read is equal to no other.
    """
    first = np.arange(len(files))
    order = np.argsort(sizes, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(sizes[order])) + 1)
    doubtful = [position for group in groups if len(group) > 1 for position in group.tolist()]
    seen: dict[tuple[int, bytes], int] = {}
    with ThreadPoolExecutor(threads) as pool:
        digests = pool.map(_digest, (files[position] for position in doubtful))
        for done, (position, digest) in enumerate(zip(doubtful, digests, strict=True)):
            if digest is not None:
                key = int(sizes[position]), digest
                first[position] = seen.setdefault(key, position)
            tell((done + 1) / len(doubtful))
    return first


def _digest(file: Path) -> bytes | None:
    """Return the SHA-256 of a file, or None if it cannot be read."""
    digest = hashlib.sha256()
    try:
        with open_plain(file) as opened:
            while piece := opened.read(_PIECE):
                digest.update(piece)
    except OSError:
        return None
    return digest.digest()


def memory_for_decoders(limit: int | None, files: int, least: int) -> int | None:
    """Return the bytes of a memory limit that are left to decode files; None without a limit.

    `least` is what one decoder takes.
    """
    if limit is None:
        return None
    needed = _PROCESS + files * _BYTES_A_FILE
    if limit - needed < least:
        raise ArgumentError(
            Said("memory_limit"),
            f" is {limit:,} bytes; a job of {files:,} files takes about {needed + least:,}: raise "
            "it, or de-duplicate parts of the folder",
        )
    return limit - needed
