"""Text in any encoding, read as UTF-8.

A byte order mark decides first. Valid UTF-8 is always read as UTF-8. For other text, charset-
normalizer detects the encoding from at most 16 KB.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.corpora.base import Problems
from lookalike.errors import ArgumentError, FileError
from lookalike.lazy import LazyModule
from lookalike.shown import brief

charset_normalizer = LazyModule("charset_normalizer", "detecting the encoding of text")

UTF8, ASCII = "utf-8", "ascii"

NAME_ENCODING = "set it with --encoding (in Python encoding=)"

_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # begins with the mark of UTF-16
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, UTF8),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_LONGEST_MARK = 4
_ZEROS = {"x0x0": "utf-16-le", "0x0x": "utf-16-be", "x000": "utf-32-le", "000x": "utf-32-be"}
_SAMPLE = 1 << 16  # bytes, from the first that is not ASCII, that decide the encoding
_LOOKED_AT = 1 << 14  # bytes of non-ASCII lines in the sample for charset-normalizer
_BEFORE = 64  # ASCII characters before the first other one, which may belong to its word
_PIECE = 1 << 20  # bytes that are decoded at a time

_WESTERN = "cp1252"
_LATIN = ("cp1252", "cp1250", "cp1254", "cp1257", "iso8859_2", "mac_roman", "cp850", "cp437")
_CANDIDATES = (
    *_LATIN, "gb18030", "cp932", "euc_jp", "big5", "cp949", "koi8_r", "cp1251", "cp866", "cp1253",
    "cp1255", "cp1256", "cp874",
)  # fmt: skip
_NOT_WESTERN = {0x81, 0x8D, 0x8F, 0x90, 0x9D}  # bytes that cp1252 lacks
_LATIN_MARGIN = 0.1  # how much messier than the best guess cp1252 may be
_BEGINNING = 8192  # a NUL byte in these first bytes makes a file binary
_BINARY = "is binary: it has a NUL byte near its beginning"
_PACKED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bzip2", b"\xfd7zXZ\0": "xz"}
_WIDE = ("utf-16", "utf-32")
_NOT_TEXT = ("idna", "punycode", "undefined", "unicode_escape", "raw_unicode_escape")
# control characters that texts do not have
_CONTROLS = re.compile(rb"[\x00-\x06\x0e-\x19\x1c-\x1f]")
_ASCII_BYTES = bytes(range(128))
_HIGH_RUNS = re.compile(rb"[\x80-\xff]+")
# A non-ASCII byte beside a letter. One that stands alone is a mistake or a sign.
_IN_WORDS = re.compile(rb"[A-Za-z][\x80-\xff]|[\x80-\xff][A-Za-z\x80-\xff]")
# Signs in ASCII text, as in © 2003; most Windows encodings share them.
_SIGN = re.compile("[€…•–—™¢£¤¥§©«®°±·»¼½¾×]".encode("cp1252"))
_LATIN_BYTES = re.compile(rb"[\x80\x82\x84\x85\x91-\x97\xa0\xab\xbb\xc0-\xff]")
_UTF8_CHARACTERS = re.compile(
    rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
)


class NotText(ValueError):
    """Bytes that are not text, or whose encoding is unknown; the message is the reason."""

    def __init__(self, reason: str, binary: bool = False) -> None:
        super().__init__(reason)
        self.binary = binary


def check_encoding(name: object) -> str | None:
    """Return Python's name of a text encoding; None for None."""
    if name is None:
        return None
    try:
        if not isinstance(name, str) or "\0" in name:
            raise LookupError
        found = codecs.lookup(name)
        if not found._is_text_encoding or found.name in _NOT_TEXT:
            raise LookupError
    except (LookupError, UnicodeError):  # a name may have half a character
        raise ArgumentError(
            f"encoding is {brief(name)}, which is not a text encoding; expected one such as utf-8, "
            "latin-1, cp1252, utf-16, shift_jis, gb18030 or koi8-r"
        ) from None
    return UTF8 if found.name == "utf-8-sig" else found.name


def marked(beginning: bytes) -> tuple[str, int] | None:
    """Return the encoding by the byte order mark, and the length of the mark."""
    return next(
        ((name, len(mark)) for mark, name in _MARKS if beginning.startswith(mark)), None
    ) or _unmarked_wide(beginning[:_LONGEST_MARK])


def _unmarked_wide(first: bytes) -> tuple[str, int] | None:
    """Return UTF-16 or UTF-32 if the zero bytes of the first characters show it."""
    name = _ZEROS.get("".join("x" if byte else "0" for byte in first))
    # Characters below the tab begin binary files, not texts.
    return (name, 0) if name and all(byte == 0 or byte >= 9 for byte in first) else None


def detect(sample: bytes, at_end: bool = True) -> str | None:
    """Return the encoding of text that is not all ASCII; None if it is unknown.

    It is UTF-8 if most non-ASCII characters are valid. Unless `at_end`, the last character may be
    cut.
    """
    try:
        codecs.getincrementaldecoder(UTF8)().decode(sample, at_end)
        return UTF8
    except UnicodeDecodeError:
        pass
    if _CONTROLS.search(sample):
        return None
    runs = _HIGH_RUNS.findall(sample)
    if not _IN_WORDS.search(sample):
        return _WESTERN if all(map(_SIGN.fullmatch, runs)) else None
    high = sum(map(len, runs))
    if 2 * sum(map(len, _UTF8_CHARACTERS.findall(sample))) > high:
        return UTF8
    return _guess(_with_high_bytes(sample))


def _with_high_bytes(sample: bytes) -> bytes:
    """Return the first lines with non-ASCII characters, as many as the detection needs."""
    if len(sample) <= _LOOKED_AT:
        return sample
    lines = [line for line in sample.splitlines(keepends=True) if not line.isascii()]
    return b"".join(lines)[:_LOOKED_AT]


@lru_cache(64)
def _guess(sample: bytes) -> str | None:
    matches = list(
        charset_normalizer.from_bytes(sample, cp_isolation=list(_CANDIDATES), enable_fallback=False)
    )
    chaos = {
        name: match.chaos
        for match in reversed(matches)
        for name in (match.encoding, *(one.encoding for one in match.submatch))
    }
    best = matches[0].encoding if matches else None
    single = _is_latin(sample)
    if best is None or (best not in _LATIN and not single):
        return best
    latin = min((chaos[name] for name in _LATIN if name in chaos), default=None)
    western = chaos.get(_WESTERN)
    if latin is None:  # words with single accents, which look like halves of other characters
        return _WESTERN if single and not set(sample) & _NOT_WESTERN else best
    if western is not None and western <= latin + _LATIN_MARGIN:
        return _WESTERN
    return min((name for name in _LATIN if name in chaos), key=lambda name: chaos[name])


def _is_latin(sample: bytes) -> bool:
    """Return whether characters that are not ASCII stand alone, as accented letters do."""
    runs = _HIGH_RUNS.findall(sample)
    letters = sum(len(_LATIN_BYTES.findall(run)) for run in runs)
    high = sum(map(len, runs))
    return high < 1.5 * len(runs) and letters >= 0.9 * high


def is_binary(beginning: bytes, given: str | None) -> bool:
    """Return whether the first bytes of a file show that it is not text."""
    name, _ = _known(beginning[:_LONGEST_MARK], given) or ("", 0)
    return not name.startswith(_WIDE) and b"\0" in beginning[:_BEGINNING]


def read_bytes(path: Path, most: int, given: str | None) -> bytes:
    """Return at most one byte more than `most` of a file, and of a binary one its first 8 KB."""
    with open(path, "rb") as file:
        data = file.read(_BEGINNING)
        return data if is_binary(data, given) else data + file.read(max(0, most + 1 - len(data)))


def utf8_of(data: bytes, given: str | None) -> tuple[bytes, str]:
    """Return the text of a file in UTF-8, without a mark, and its encoding, or raise `NotText`."""
    if is_binary(data[:_BEGINNING], given):
        raise NotText(_packed(data) or _BINARY, True)
    name, skipped = _known(data[:_LONGEST_MARK], given) or (None, 0)
    wide = name is not None and name.startswith(_WIDE)
    data = data[skipped:]
    if name in (None, UTF8):
        where = _first_not_utf8(data)
        if where is None:
            return data, ASCII if data.isascii() else UTF8
        byte = f"its byte {where:,} is 0x{data[where]:02x}"
        sample = data[:_SAMPLE]
        if _CONTROLS.search(sample):
            why = _packed(data) or f"is binary: it has control characters, and {byte}"
            raise NotText(why, True)
        name = name or detect(sample, len(data) <= _SAMPLE)
        if name is None:
            raise NotText(f"is text in an unknown encoding: {byte}")
        if name == UTF8:
            raise NotText(f"is not valid UTF-8: {byte}")
    decoder = codecs.getincrementaldecoder(str(name))()
    parts = []
    for begin in range(0, max(len(data), 1), _PIECE):
        try:
            last = begin + _PIECE >= len(data)
            parts.append(decoder.decode(data[begin : begin + _PIECE], last).encode())
        except UnicodeError as error:
            reason = error.reason if isinstance(error, UnicodeDecodeError) else str(error)
            raise NotText(f"is not valid {name}, after byte {begin:,}: {reason}") from None
    if wide and any(map(_CONTROLS.search, parts)):
        raise NotText(_BINARY, True)
    return b"".join(parts), str(name)


def packed_by(data: bytes) -> str:
    """Return the compression of data, such as "gzip", by its first bytes; "" if there is none."""
    return next((name for magic, name in _PACKED.items() if data.startswith(magic)), "")


def _packed(data: bytes) -> str:
    found = packed_by(data)
    return (
        found
        and f"is compressed by {found}; only files of rows are decompressed: decompress it first"
    )


def mark_of(data: bytes) -> bytes:
    """Return the byte order mark at the beginning of data; b"" if it has none."""
    _, length = marked(data[:_LONGEST_MARK]) or ("", 0)
    return data[:length]


def is_other_utf8(data: bytes | bytearray, given: str | None) -> bool:
    """Return whether data is non-ASCII UTF-8 although another encoding was given."""
    if given is None or given == UTF8 or given.startswith(_WIDE):
        return False
    first = _HIGH_RUNS.search(data)
    begin = first.start() if first else len(data)
    try:
        return bool(codecs.getincrementaldecoder(UTF8)().decode(data[begin : begin + _SAMPLE]))
    except UnicodeDecodeError:
        return False


def _known(beginning: bytes, given: str | None) -> tuple[str, int] | None:
    """Return the encoding by its mark or as given, and the length of the mark; else None."""
    mark = marked(beginning)
    if given in _WIDE and mark is None:  # nearly all such files are little-endian
        return f"{given}-le", 0
    if given in _WIDE and mark is not None and mark[0].startswith(given):
        return mark
    return (given, 0) if given is not None and (mark is None or not mark[1]) else mark


def _first_not_utf8(data: bytes) -> int | None:
    """Return the position of the first byte that is not valid UTF-8; None if all are."""
    decoder = codecs.getincrementaldecoder(UTF8)()
    for begin in range(0, len(data), _PIECE):
        held = len(decoder.getstate()[0])
        try:
            decoder.decode(data[begin : begin + _PIECE], begin + _PIECE >= len(data))
        except UnicodeDecodeError as error:
            return begin - held + error.start
    return None


def _unreadable(error: UnicodeError) -> tuple[str, int]:
    """Replace bytes that are invalid in their encoding by one that is invalid in UTF-8."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "\udcff", error.end


codecs.register_error("lookalike.unreadable", _unreadable)


class Encodings:
    """The encodings of the files of a corpus: given, or detected when first read."""

    def __init__(self, given: str | None = None) -> None:
        self.given = check_encoding(given)
        self.found: dict[Path, tuple[str, bytes]] = {}

    def of_output(self, paths: Sequence[Path]) -> tuple[str, bytes]:
        """Return the encoding of all files and its byte order mark; UTF-8 if they differ."""
        found = {self.found[path] for path in paths}
        found = {(name, mark) for name, mark in found if name != ASCII}
        return found.pop() if len(found) == 1 else (UTF8, b"")

    def note(
        self, path: Path, name: str, mark: bytes, problems: Problems, *, valid_utf8: bool = False
    ) -> None:
        """Keep the encoding of a file; note one that was detected, or given for valid UTF-8."""
        self.found[path] = name, mark
        if not mark and name not in (UTF8, ASCII) and (self.given is None or valid_utf8):
            problems.note_encoding(name, path, given=self.given is not None)


@dataclass(eq=False)
class TextStream:
    """A stream of bytes in any encoding, read as UTF-8.

    ASCII passes unchanged. The 64 KB from the first other byte decide the encoding. Bytes that
    cannot be decoded become 0xff, which makes their row bad.
    """

    _raw: Any
    _given: str | None
    encoding: str = ASCII
    mark: bytes = b""
    decided: bool = False
    _ready: bytes = b""
    _decoder: codecs.IncrementalDecoder | None = None
    _before: bytes = b""
    _begun: bool = False
    _sample: bytearray = field(default_factory=bytearray)

    def note(self, path: Path, encodings: Encodings, problems: Problems) -> None:
        """Add the encoding of this file, as far as it was read, to those of a corpus."""
        other = is_other_utf8(self._sample, self._given)
        encodings.note(path, self.encoding, self.mark, problems, valid_utf8=other)

    def fill(self, buffer: NDArray[np.uint8]) -> int:
        """Read until a buffer is full or the stream ends; return the number of bytes."""
        done = 0
        while done < len(buffer) and (read := self.readinto(buffer[done:])):
            done += read
        return done

    def readinto(self, buffer: NDArray[np.uint8]) -> int:
        """Fill a part of a buffer; return the number of bytes, 0 at the end."""
        if not self._begun:
            self._begin()
        if self._ready:
            return self._hand_out(buffer)
        if self._decoder is None:
            read = int(self._raw.readinto(buffer))
            if self.decided or not read:
                return read
            return self._passed(buffer, read)
        while not self._ready:
            data = bytes(self._raw.read(_PIECE))
            self._ready = self._decoded(data)
            if not data:
                break
        return self._hand_out(buffer)

    def read(self, size: int) -> bytes:
        """Return some bytes, none at the end."""
        buffer = np.empty(size, np.uint8)
        return buffer[: self.readinto(buffer)].tobytes()

    def _begin(self) -> None:
        self._begun = True
        beginning = b""
        while len(beginning) < _LONGEST_MARK and (more := self._raw.read(_LONGEST_MARK)):
            beginning += bytes(more)
        known = _known(beginning, self._given)
        if known is None:
            self._ready = self._examined(beginning)
            return
        name, skipped = known
        if name != UTF8:  # the mark of UTF-8 is removed where lines are read
            self.mark, beginning = beginning[:skipped], beginning[skipped:]
        self._decide(name)
        self._ready = self._decoded(beginning) if beginning else b""

    def _examined(self, beginning: bytes) -> bytes:
        """Return the first bytes, and those that were read to decide the encoding."""
        high = len(beginning) - len(beginning.lstrip(_ASCII_BYTES))
        self._before = beginning[:high]
        rest = beginning[high:]
        return self._before + (self._decided_by(rest) if rest else b"")

    def _passed(self, buffer: NDArray[np.uint8], read: int) -> int:
        """Pass ASCII on; decide by the first other character, which is passed on later."""
        part = buffer[:read]
        if int(part.max()) < 128:
            self._before = (self._before + part[-_BEFORE:].tobytes())[-_BEFORE:]
            return read
        high = int(np.argmax(part > 127))
        ascii_part = part[max(0, high - _BEFORE) : high].tobytes()
        self._before = (self._before + ascii_part)[-_BEFORE:]
        self._ready = self._decided_by(part[high:].tobytes())
        return high if high else self._hand_out(buffer)

    def _decided_by(self, data: bytes) -> bytes:
        """Decide by data that begins with the first non-ASCII byte; return it as UTF-8."""
        while len(data) < _SAMPLE and (more := bytes(self._raw.read(_SAMPLE - len(data)))):
            data += more
        name = detect(self._before[-_BEFORE:] + data[:_SAMPLE], len(data) < _SAMPLE)
        self._decide(name or UTF8)
        return data if self._decoder is None else self._decoded(data)

    def _decide(self, name: str) -> None:
        self.decided = True
        self.encoding = name
        if name != UTF8:
            self._decoder = codecs.getincrementaldecoder(name)("lookalike.unreadable")

    def _decoded(self, data: bytes) -> bytes:
        if self._decoder is None:
            return data
        if self._given is not None and len(self._sample) < _SAMPLE:
            part = data if self._sample else data.lstrip(_ASCII_BYTES)
            self._sample += part[: _SAMPLE - len(self._sample)]
        text = self._decoder.decode(data, not data)
        return text.encode(UTF8, "surrogateescape")

    def _hand_out(self, buffer: NDArray[np.uint8]) -> int:
        size = min(len(buffer), len(self._ready))
        buffer[:size] = np.frombuffer(self._ready, np.uint8, size)
        self._ready = self._ready[size:]
        return size


def _json_escape(error: UnicodeError) -> tuple[str, int]:
    """Escape characters that an encoding lacks, as JSON strings may."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


codecs.register_error("lookalike.json_escape", _json_escape)


class EncodedOutput:
    """Writes UTF-8 in another encoding; with `is_json`, characters that it lacks are escaped."""

    def __init__(self, file: Any, encoding: str, mark: bytes, *, is_json: bool = False) -> None:
        self._file = file
        self._encoding = encoding
        self._decoder = codecs.getincrementaldecoder(UTF8)()
        errors = "lookalike.json_escape" if is_json else "strict"
        self._encoder = codecs.getincrementalencoder(encoding)(errors)
        file.write(mark)

    def write(self, data: Any) -> None:
        """Write some bytes, which need not end with a whole character."""
        view = memoryview(data).cast("B")
        for begin in range(0, len(view), _PIECE):
            text = self._decoder.decode(view[begin : begin + _PIECE])
            try:
                self._file.write(self._encoder.encode(text))
            except UnicodeEncodeError as error:
                raise FileError(
                    f"the output cannot be written in {self._encoding}, the encoding of the input: "
                    f"it has no {text[error.start]!r}; write another format, such as .jsonl"
                ) from None
