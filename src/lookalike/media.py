"""Media: kinds of files, such as images and recordings, that are compared by their content.

A medium is a class derived from `Medium`. It recognizes files, decodes and signs them, finds
similar pairs, and chooses the best copy. It is registered in `MEDIA`, by lookalike or through entry
points of another package:

    [project.entry-points."lookalike.media"]
    scores = "my_package.scores:ScoreMedium"

    [project.entry-points."lookalike.signers"]
    scorehash = "my_package.scores:ScoreHash"

Then `la.dedup`, the commands `dedup`, `sign` and `search`, and collections support it.
"""

from __future__ import annotations

import base64
import errno
import hashlib
import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from lookalike.errors import ArgumentError, DocumentError, Said
from lookalike.registry import Registry
from lookalike.signatures.signer import Signer
from lookalike.storage.file_cache import FileCache, Kept
from lookalike.storage.files import FileState, is_folder, open_plain, walk_folder

HEAD = 64
"""First bytes of a file by which it is recognized."""

MOST_PREVIEW = 13_000
"""Maximum bytes of the preview of a file as JSON."""
PREVIEW_SIDE, PREVIEW_BYTES = 192, 9_000
"""Maximum pixels each way, and maximum bytes, of the JPEG in a preview."""

_PIECE = 1 << 20
_LOOKED_AT = 1000  # files of a folder that are enough to detect its medium
_PROCESS = 128 << 20
_BYTES_A_FILE = 4 << 10  # bytes of memory for the job itself, and for each file

Content = TypeVar("Content")
Tell = Callable[[float], None]
"""Called with the completed share of a step."""


@dataclass(frozen=True)
class Problem:
    """A file that was skipped."""

    path: Path
    reason: str  # such as "cannot be read (Permission denied)"; follows the path and a colon


@dataclass(frozen=True, eq=False)
class SimilarPairs:
    """Similar pairs of files, each once, sorted by (left, right)."""

    left: NDArray[np.int64]  # positions in `Read.files`, each less than that in `right`
    right: NDArray[np.int64]
    similarity: NDArray[np.float64]  # from 0 to 1
    distance: NDArray[np.int32]
    """The Hamming distance, or another whole number that measures similarity; or -1."""
    related: Sequence[tuple[int, int]] = ()
    """Pairs that are not similar, but have something in common: see `Medium.relation`."""


@dataclass(frozen=True, eq=False)
class Read(Generic[Content]):
    """The files that a medium has read. Arrays and lists have an element for each of `files`."""

    files: Sequence[Path]  # the files that could be read, in the order in which they were given
    merit: NDArray[np.int64]
    """Of similar files, the one with the highest merit is kept (see `Medium.merits`), then the
    largest, then the first by path."""
    facts: Mapping[str, Sequence[Any]]
    """Output columns about each file, named in `Medium.facts`; None for a missing value."""
    described: Sequence[str]  # the caption of each file in a report, such as "4000 x 3000, JPEG"
    content: Content  # signatures and other data that `Medium.pairs` needs
    problems: list[Problem] = field(default_factory=list)
    """One for each file that could not be read; the others are in `files`."""
    without_features: NDArray[np.bool_] | None = None
    """Whether each file cannot be compared, such as an image of one color (default: none)."""


@dataclass(frozen=True, eq=False)
class SignedFiles:
    """The signatures of the files that could be read, and problems of the others."""

    files: Sequence[Path]
    signatures: NDArray[np.uint8]
    clear: NDArray[np.bool_]
    """Whether a signature is meaningful; that of an image of one color is not."""
    problems: Sequence[Problem]
    quality: Sequence[int] | None = None
    """The quality of each signature, if the medium measures it."""


class WrongMediumError(DocumentError):
    """A file is not of the expected medium."""


@dataclass(frozen=True, eq=False)
class SignedFile:
    """A file as a collection holds it."""

    signature: Any  # one signature, or the signatures and offsets of its parts
    preview: Mapping[str, Any] = field(default_factory=dict)
    """What shows the file, in plain values: facts, and a small `picture` (a data URI of JPEG) or
    `waveform` (base64 of one byte per stretch). At most `MOST_PREVIEW` bytes as JSON."""


@dataclass(frozen=True, eq=False)
class SignedItems:
    """Old items that are known only by their signatures."""

    name: str  # of the file or the collection
    signer: Signer | None  # None: a list of hashes does not tell how they were made
    ids: Sequence[str] | None  # None: they are identified by position
    signatures: NDArray[np.uint8]  # a row for each item; none for items of many parts
    parts: Sequence[tuple[NDArray[np.uint8], NDArray[np.int64]]] = ()
    """Signatures and offsets of each item of many parts."""

    def __len__(self) -> int:
        return len(self.parts) or len(self.signatures)

    @property
    def names(self) -> list[str]:
        """The ids, or positions where there are none."""
        return list(map(str, range(len(self)))) if self.ids is None else list(self.ids)


class Medium(ABC, Generic[Content]):
    """A kind of file, with the settings that decide whether two files are similar.

    The parameters of the constructor are the options of `la.dedup` that the medium supports.
    """

    name: ClassVar[str]  # the name in `MEDIA`, such as "images"
    noun: ClassVar[str]  # the name of one item, such as "image"
    suffixes: ClassVar[frozenset[str]]
    """File extensions in lower case, with their dot. A file with such an extension that is not
    recognized is a problem; other files are ignored."""
    facts: ClassVar[Mapping[str, str]]
    """The columns of `Read.facts`, and the name of their Arrow type, such as {"width": "int64"}."""
    policy: ClassVar[str] = "img-src data:"
    """What the Content-Security-Policy of a report must allow for `preview`, besides styles."""
    no_features: ClassVar[str] = "without features: only equal files are similar"
    """The description of `Read.without_features`: what they are, a colon, and what follows."""
    relation: ClassVar[tuple[str, str]] = "", ""
    """What `SimilarPairs.related` have in common, and what these pairs are, in a summary."""
    signer: Signer  # signs files by their paths. Its `medium` is the name of this medium.

    @classmethod
    @abstractmethod
    def recognizes(cls, head: bytes) -> bool:
        """Return whether a file that begins with these bytes, up to `HEAD`, is of this medium.

        It is called for every file of a folder, so it is fast, needs no extra, and never raises.
        """

    @classmethod
    def sign_options(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options of `lookalike sign`, whose defaults may differ from `dedup`."""
        return dict(given)

    @classmethod
    def is_one(cls, value: object) -> bool:
        """Return whether a value is one file (a path, or the bytes of a file), not several."""
        return isinstance(value, str | os.PathLike | bytes | bytearray | memoryview)

    @classmethod
    def sign_each(
        cls, signer: Any, files: Sequence[str], *, threads: int
    ) -> Iterator[NDArray[np.uint8] | DocumentError]:
        """Yield the signature of each file, or an error, for a collection."""
        for file in files:
            try:
                yield signer.sign([file], threads=threads)[0]
            except DocumentError as error:
                yield error

    @classmethod
    def sign_file(
        cls, signer: Any, file: Path | bytes, *, preview: bool, query: bool = False
    ) -> SignedFile:
        """Return the signature of a file, or of its bytes, and its preview if that is wanted.

        A `query` is searched for, and may have more parts than a file that is searched.

        The file is untrusted: it is decoded in an isolated process, with limits.

        Raises:
            DocumentError: It cannot be decoded within the limits; the reason follows its name.
        """
        if isinstance(file, bytes):
            raise DocumentError("is given as bytes, which its medium cannot read; pass a path")
        each = getattr(signer, "sign_each", partial(cls.sign_each, signer))  # of parts
        (found,) = each([str(file)], threads=1)
        return SignedFile(readable(found))

    @classmethod
    def sign_files(
        cls,
        signer: Any,
        files: Sequence[Path],
        *,
        threads: int,
        tell: Tell,
        cache: FileCache | None = None,
    ) -> SignedFiles:
        """Return the signatures of files, one for each, for `lookalike sign` and `search`."""
        each = cls.sign_each(signer, [str(file) for file in files], threads=threads)
        good, rows, problems = split_problems(files, each, tell)
        signatures = np.concatenate([signer.sign([]), *(row[None] for row in rows)])
        return SignedFiles(good, signatures, np.ones(len(good), bool), problems)

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Return the settings in plain values, for reports and `to_dict`."""

    @abstractmethod
    def criterion(self) -> str:
        """Return when two files are similar, such as "at most 56 of 256 bits differ"."""

    @abstractmethod
    def read(
        self,
        files: Sequence[Path],
        *,
        threads: int,
        tell: Tell,
        memory: int | None = None,
        cache: FileCache | None = None,
    ) -> Read[Content]:
        """Read files with `threads` threads or processes and `memory` bytes in total.

        A bad file becomes a `Problem`, not an error. Time and memory for each file are limited.
        What `read_each` finds in `cache` is not read again.
        """

    def made_by(self) -> Sequence[Any] | None:
        """Return plain values that say what `read` takes from files and how, with versions.

        None, if it does not use a cache.
        """
        return None

    @abstractmethod
    def pairs(self, read: Read[Content], *, threads: int, tell: Tell) -> SimilarPairs:
        """Return the similar pairs of files."""

    def signed_pairs(
        self,
        read: Read[Content],
        signed: SignedItems,
        *,
        threads: int,
        memory: int | None = None,
        cache: FileCache | None = None,
    ) -> SimilarPairs:
        """Return pairs of old items (left) and files (right) that their signatures decide.

        Old items are told by their positions in `signed`.

        Raises:
            ArgumentError: These signatures are not of this medium.
        """
        raise ArgumentError(
            Said("against"),
            f" is {signed.name}, which has signatures; {self.name} are compared with files",
        )

    def signed_criterion(self) -> str:
        """Return when a file and an old item that is known by its signature are similar.

        It is empty if that is decided as for two files.
        """
        return ""

    def merits(self, read: Read[Content], pairs: SimilarPairs) -> NDArray[np.int64]:
        """Return the merit of each file among those similar to it: the best one is kept."""
        return read.merit

    @abstractmethod
    def describe_pair(self, similarity: float, distance: int) -> str:
        """Return how similar a pair is, such as "12 of 256 bits differ"."""

    @abstractmethod
    def preview(self, file: Path, most: int, *, memory: int | None = None) -> str | None:
        """Return HTML of at most `most` characters that shows a file, such as a thumbnail, or None.

        All content from the file must be escaped.
        """


MEDIA: Registry[type[Medium[Any]]] = Registry(
    "medium",
    "lookalike.media",
    {
        "images": "lookalike.images.medium:ImageMedium",
        "recordings": "lookalike.recordings.medium:RecordingMedium",
        "videos": "lookalike.videos.medium:VideoMedium",
    },
)


def readable(found: Content | DocumentError) -> Content:
    """Return what was found in a file, or raise why it could not be read."""
    if isinstance(found, DocumentError):
        raise found
    return found


def read_each(
    files: Sequence[Path],
    read: Callable[[Sequence[Path]], Iterable[Content | DocumentError]],
    cache: FileCache | None,
    kept: Callable[[], Kept[Content]],
) -> Iterator[Content | DocumentError]:
    """Yield what `read` yields for files, or what a cache knows of them; `kept` says what that is.

    Without a cache, `kept` is not called.
    """
    return iter(read(files)) if cache is None else cache.reading(files, kept(), read)


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
    """Return the medium of more than half of the readable files by their first bytes, or None."""
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
    """Return the medium of a signer; None for texts and vectors."""
    return None if signer is None or signer.medium in ("text", "vector") else MEDIA[signer.medium]


@dataclass
class Found:
    """The files of one medium, in the order of the arguments, those of a folder by path."""

    files: list[Path] = field(default_factory=list)
    states: list[FileState] = field(default_factory=list)  # of each file, before it was read
    others: list[Path] = field(default_factory=list)  # files of other kinds, which are ignored
    problems: list[Problem] = field(default_factory=list)
    """Files that cannot be read, or are not of this medium although their extension is."""


def find_files(
    paths: Sequence[Path], medium: type[Medium[Any]], seen: set[str] | None = None
) -> Found:
    """Return the files of one medium among these files and in these folders, each once.

    Symbolic links in folders are not followed: a link would be a duplicate of its file. Files whose
    resolved paths are in `seen` are left out, and those of others are added to it.
    """
    found, seen = Found(), set[str]() if seen is None else seen
    for path in paths:
        real = str(path.resolve())
        for inside, file, problem in _walk(path):
            itself = f"{real}/{inside}" if inside else real
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
        head, state = head_of(file)
    except OSError as error:
        found.problems.append(Problem(file, f"cannot be read ({error.strerror})"))
        return
    if medium.recognizes(head):
        found.files.append(file)
        found.states.append(state)
    elif named or file.suffix.lower() in medium.suffixes:
        reason = f"is not {with_article(medium.noun)}: its first bytes are not those of one"
        found.problems.append(Problem(file, reason if head else "is empty"))
    else:
        found.others.append(file)


def check_head(head: bytes, medium: type[Medium[Any]]) -> None:
    """Raise `DocumentError` unless a file with these first bytes is of this medium."""
    if medium.recognizes(head):
        return
    other = MEDIA.find(lambda one: one.recognizes(head))
    found = "of a type that is not known" if other is None else with_article(MEDIA[other.name].noun)
    what = f"is {found}, by its first bytes" if head else "is empty"
    raise WrongMediumError(f"the file {what}; expected {with_article(medium.noun)}")


def picture_address(jpeg: bytes) -> str:
    """Return a JPEG as a data URI."""
    return f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode('ascii')}"


def with_article(noun: str) -> str:
    """Return a noun with its article: an image."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def walk(path: Path) -> Iterator[tuple[Path, str]]:
    """Yield a file, or those in a folder by path, each with its problem, or ""."""
    for _, file, problem in _walk(path):
        yield file, problem


def _walk(path: Path) -> Iterator[tuple[str, Path, str]]:
    """Yield files as `walk` does, each after its path within the folder.

    Names are texts as long as possible: there may be a million, and a `Path` takes as long as
    opening a file.
    """
    if not is_folder(path):
        yield "", path, ""
        return
    closed: list[OSError] = []
    found: list[tuple[list[str], str, str]] = []
    top = os.fspath(path)
    begin = len(top) if top.endswith("/") else len(top) + 1
    for folder, folders, names in walk_folder(path, closed):
        links = [name for name in folders if os.path.islink(f"{folder}/{name}")]  # noqa: PTH114
        for name in [*names, *links]:
            file = f"{folder}/{name}" if not folder.endswith("/") else f"{folder}{name}"
            found.append((file[begin:].split("/"), file, _wrong(file)))
    for one in closed:
        file = os.fspath(one.filename)
        found.append((file[begin:].split("/"), file, f"cannot be read ({one.strerror})"))
    for _, file, problem in sorted(found):
        yield file[begin:], Path(file), problem


def _wrong(file: str) -> str:
    """Return the problem of a name in a folder, or "", without opening it."""
    try:
        mode = os.lstat(file).st_mode
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    if stat.S_ISLNK(mode):
        return "is a symbolic link, which is not followed"
    return "" if stat.S_ISREG(mode) else "is not a plain file"


def head_of(file: Path) -> tuple[bytes, FileState]:
    """Return the first bytes of a plain file, and its state."""
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is not a plain file", os.fspath(file))
        return os.read(descriptor, HEAD), FileState.of(status)
    finally:
        os.close(descriptor)


def first_equal(
    files: Sequence[Path],
    sizes: NDArray[np.int64],
    *,
    threads: int,
    tell: Tell,
    cache: FileCache | None = None,
) -> NDArray[np.int64]:
    """Return for each file the first one with the same bytes; only files of equal size are read."""
    first = np.arange(len(files))
    order = np.argsort(sizes, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(sizes[order])) + 1)
    doubtful = [position for group in groups if len(group) > 1 for position in group.tolist()]
    seen: dict[tuple[int, bytes], int] = {}
    with ThreadPoolExecutor(threads) as pool:
        digests = read_each(
            [files[position] for position in doubtful],
            lambda some: pool.map(_digest, some),
            cache,
            lambda: Kept(["sha256"], bytes, bytes),
        )
        for done, (position, digest) in enumerate(zip(doubtful, digests, strict=True)):
            if not isinstance(digest, DocumentError):
                key = int(sizes[position]), digest
                first[position] = seen.setdefault(key, position)
            tell((done + 1) / len(doubtful))
    return first


def _digest(file: Path) -> bytes | DocumentError:
    """Return the SHA-256 of a file, or why it cannot be read."""
    digest = hashlib.sha256()
    try:
        with open_plain(file) as opened:
            while piece := opened.read(_PIECE):
                digest.update(piece)
    except OSError as error:
        return DocumentError(f"cannot be read ({error.strerror})")
    return digest.digest()


def memory_for_decoders(
    limit: int | None, files: int, least: int, of_each: int = _BYTES_A_FILE
) -> int | None:
    """Return the bytes of a memory limit that are left for decoders, which need `least` each.

    `of_each` are the bytes that the job itself holds for each file.
    """
    if limit is None:
        return None
    needed = _PROCESS + files * of_each
    if limit - needed < least:
        raise ArgumentError(
            Said("memory_limit"),
            f" is {limit:,} bytes; a job with {files:,} files takes about {needed + least:,}. "
            "Raise it, or process parts of the folder",
        )
    return limit - needed
