"""A collection behind a service, and the function that connects to it, or to an index."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, SupportsIndex, overload
from urllib.parse import quote, urlencode

import numpy as np
from numpy.typing import NDArray

from lookalike import errors
from lookalike.checks import file_path, flag, thread_count, whole_number
from lookalike.client.channel import Channel
from lookalike.client.index import RemoteIndex
from lookalike.client.values import Sent, answer_of, document_of, question_value, sendable_where
from lookalike.collection.answers import Answer, Pair
from lookalike.collection.care.transfer import TransferSizes
from lookalike.collection.collection import BaseCollection
from lookalike.collection.documents import Document, encode_metadata
from lookalike.collection.opening import Purpose, check_purpose
from lookalike.collection.query import Question, Where, how_many, no_query, no_single_signatures
from lookalike.collection.signing import (
    WordKind,
    check_signer,
    check_words,
    no_signer_of_texts,
    text_or_row,
    texts_or_rows,
    wanted_mask,
)
from lookalike.collection.stores.base import checked_name
from lookalike.collection.vectors import encoded_vector
from lookalike.collection.writing import BatchInput, Written
from lookalike.display import Records
from lookalike.errors import ArgumentError, CollectionError, LookalikeError, NotFoundError, Said
from lookalike.media import medium_of_signer
from lookalike.parts.signer import PartSigner
from lookalike.signatures import Signer, signer_from_dict
from lookalike.signatures.arrays import listed_texts
from lookalike.storage.files import is_there, whole_file

_KEY = "LOOKALIKE_KEY"
_PAGE = 1_000
_WAIT = (0.02, 1.0)
_ENDED = ("done", "failed", "canceled")
_MOST_REPLICAS = 64
_WHOLE = {"include_vectors": True}


class RemoteCollection(BaseCollection):
    """A collection of a service, with the methods of `Collection`.

    Connect with `la.connect`. When a writing method returns, its changes are committed and visible
    to the next search of every client. Thread-safe. Conditions must be dictionaries, because a
    function cannot be sent. The service chooses its own number of threads.
    """

    # A character may take 12 bytes of a request, and a service takes 32 MiB by default.
    transfer = TransferSizes(rows=1_000, bytes=2 << 20, page=250)

    def __init__(self, channel: Channel, described: Mapping[str, Any]) -> None:
        self.name = str(described["name"])
        self.bits = int(described["bits"])
        self._dimensions = int(described.get("dimensions") or 0)
        self._channel = channel
        self.parts = bool(described.get("parts", False))
        self._keeps_text = bool(described["keeps_text"])
        self._described: dict[str, Any] | None = described["signer"]
        self._path = f"/v1/collections/{quote(self.name, safe='')}"

    @cached_property
    def signer(self) -> Signer | None:
        """The signer without its learned weights; None if the caller passes signatures."""
        return None if self._described is None else signer_from_dict(self._described)

    @property
    def dimensions(self) -> int:
        """The number of dimensions of the vectors; 0 if no vector was ever written."""
        if not self._dimensions:
            self._dimensions = int(self.stats().get("dimensions") or 0)
        return self._dimensions

    @property
    def version(self) -> int:
        """The number of writes to the collection."""
        return int(self.stats()["version"])

    def __repr__(self) -> str:
        return f"RemoteCollection({self.name!r}, {self.bits} bits, at {self._channel.shown})"

    def stats(self) -> dict[str, Any]:
        """Return what the service reports about the collection, as plain values."""
        found: dict[str, Any] = self._channel.read("GET", self._path)
        return found

    # Writing

    def _write(self, given: BatchInput) -> Written:
        dimensions = 0 if given.vectors is None else self.dimensions
        sent = Sent.of(
            given, self.bits, self.parts, self._check_signs, self._keeps_text, dimensions
        )
        if not sent.documents:
            return Written(errors=sent.errors, version=self.version)
        body = {
            "documents": sent.documents,
            "mode": "upsert" if given.replace else "add",
            "on_error": "skip" if given.skip else "raise",
        }
        try:
            done = self._channel.write("PUT", f"{self._path}/documents", body)
        except errors.BatchError as error:
            raise sent.refused(error) from None
        return sent.written(done)

    def _check_signs(self) -> None:
        if self._holds_files:
            raise ArgumentError(
                f"the collection {self.name!r} of a service holds files; send them with add_file"
            )
        if self._described is None or not {"features", "by"} & self._described.keys():
            raise no_signer_of_texts(self.name, str((self._described or {}).get("signer", "")))

    @cached_property
    def _holds_files(self) -> bool:
        return medium_of_signer(self.signer) is not None

    def _write_file(
        self, id: str, file: Path | bytes, metadata: Mapping[str, Any] | None, replace: bool
    ) -> Written:
        given = {"mode": "upsert" if replace else "add"}
        if metadata:
            given["metadata"] = encode_metadata(metadata)
        path = f"{self._path}/files/{quote(id, safe='')}?{urlencode(given)}"
        done = self._channel.send_file("PUT", path, file)
        added = done["status"] == "added"
        return Written(int(added), int(not added), version=done["version"])

    def _delete(self, ids: list[str]) -> Written:
        done = self._channel.write("POST", f"{self._path}/documents/delete", {"ids": ids})
        return Written(deleted=done["deleted"], version=done["version"])

    # Reading

    def _documents(self, ids: list[str]) -> dict[str, Document]:
        if not ids:
            return {}
        found = self._channel.read("POST", f"{self._path}/documents/get", {"ids": ids, **_WHOLE})
        known = zip(ids, found["documents"], strict=True)
        return {id: document_of(value) for id, value in known if value is not None}

    def count(self, where: Where | None = None) -> int:
        """Return the number of documents, or of those that meet a condition."""
        body = {"where": sendable_where(where)}
        return int(self._channel.read("POST", f"{self._path}/documents/count", body)["count"])

    def _next(self, after: str, limit: int, where: Where | None) -> list[Document]:
        condition = sendable_where(where)
        found: list[Document] = []
        while len(found) < limit:
            size = min(_PAGE, limit - len(found))
            body = {"after": after, "limit": size, "where": condition, **_WHOLE}
            page = self._channel.read("POST", f"{self._path}/documents/scroll", body)
            found += map(document_of, page["documents"])
            if page["next"] is None:
                break
            after = page["next"]
        return found

    def _pages(self, size: int, where: Where | None) -> Iterator[list[Document]]:
        after = ""
        while page := self._next(after, size, where):
            yield page
            after = page[-1].id

    # Searching

    def _one(self, query: Any) -> Any:
        if self._is_file(query) or self.parts:
            return [query]
        return text_or_row(query, self.bits, lambda: self.signer)

    def _is_file(self, query: Any) -> bool:
        return isinstance(query, str | os.PathLike | bytes) and self._holds_files

    def _ask(
        self, queries: Any, question: Question, vectors: NDArray[np.float32] | None = None
    ) -> list[Answer]:
        if self.parts:
            question.refuse_single(self.name, question.plan or "native")
            for option in ("tolerance", "min_votes"):
                if getattr(question, option) is not None:
                    raise ArgumentError(Said(option), " cannot be sent to a service; leave it out")
        else:
            question.refuse_votes(self.name)
        if self._is_file(queries):
            queries = [queries]
        files = isinstance(queries, list | tuple) and queries and all(map(self._is_file, queries))
        if files and vectors is None:
            return [self._ask_file(one, question) for one in queries]
        body = question_value(question, self.bits)
        if vectors is not None:
            question.check_vectors(alone=queries is None)
            body["vectors"] = [encoded_vector(vector) for vector in vectors]
        elif queries is None:
            raise no_query()
        if queries is not None:
            wanted_mask(queries, question)  # raises as a local collection does
            if self.parts and listed_texts(queries) is None:
                raise ArgumentError(
                    "signatures of parts cannot be sent to a service; search for a text or a file"
                )
            asked = texts_or_rows(queries, self.bits, lambda: self.signer)
            if isinstance(asked, list):
                body["texts"] = asked
            else:
                body["signatures"] = [row.tobytes().hex() for row in asked]
        found = self._channel.read("POST", f"{self._path}/query/batch", body)
        return [answer_of(value) for value in found["answers"]]

    def _ask_file(self, query: str | os.PathLike[str] | bytes, question: Question) -> Answer:
        """Send a file to search for."""
        if question.limit is not None:
            raise ArgumentError("within needs signatures here; use search with a radius")
        if question.by == "words" or question.mask is True:
            raise ArgumentError("by='words' and mask=True are for texts; leave them out for files")
        body = question_value(question, self.bits)
        where = None if body["where"] is None else json.dumps(body["where"])
        options = {
            **{name: body[name] for name in ("k", "radius", "min_score")},
            "where": where, "include_text": question.text, "explain": question.explain,
            "preview": False, "exclude": body["exclude"],
        }  # fmt: skip
        given = {name: value for name, value in options.items() if value is not None}
        path = f"{self._path}/query/file?{urlencode(given, doseq=True)}"
        file = query if isinstance(query, bytes) else file_path("query", query)
        return answer_of(self._channel.send_file("POST", path, file))

    def _ask_like(self, id: str, question: Question) -> Answer:
        if self.parts:
            raise no_single_signatures(self.name)
        body = {"id": id, **question_value(question, self.bits)}
        return answer_of(self._channel.read("POST", f"{self._path}/query", body))

    def pairs(
        self, radius: SupportsIndex, *, limit: SupportsIndex = 1_000_000, threads: int | None = None
    ) -> Records[Pair]:
        """Return every pair of documents within the radius, each once, by (left, right).

        A job of the service finds them. More than `limit` pairs raise `ResultTooLargeError`.
        """
        near = min(whole_number("radius", radius, at_least=0), self.bits)
        most = how_many("limit", limit, at_least=0)
        thread_count(threads)
        body = {"radius": near, "limit": most}
        job = self._channel.write("POST", f"{self._path}/pairs", body)
        place = f"/v1/jobs/{job['id']}"
        try:
            self._await(place)
            found = Records(Pair)
            after: int | None = 0
            while after is not None:
                page = self._channel.read("GET", f"{place}/results?after={after}&limit=10000")
                found.extend(Pair(**pair) for pair in page["results"])
                after = page["next"]
            return found
        finally:
            with suppress(LookalikeError):  # a read-only key may not; the service deletes it later
                self._channel.write("DELETE", place)

    def _await(self, place: str) -> None:
        pause, longest = _WAIT
        while (job := self._channel.read("GET", place))["state"] not in _ENDED:
            time.sleep(pause)
            pause = min(longest, 1.5 * pause)
        if job["state"] != "done":
            kind = getattr(errors, str(job.get("error_kind")), CollectionError)
            raise kind(job["error"] or f"the job was {job['state']}; start it again")

    # Care

    def refresh(self) -> int:
        """Return the last committed version: the service keeps its index up to date itself."""
        return self.version

    def snapshot(self, path: str | os.PathLike[str]) -> None:
        """Write one version of the collection to a new local SQLite file."""
        target = file_path("path", path)
        if is_there(target):
            raise errors.FileError(f"{target} already exists; choose another name, or remove it")
        made = self._channel.write("POST", f"{self._path}/snapshots")["name"]
        place = f"{self._path}/snapshots/{made}"
        try:
            with whole_file(target) as temporary, open(temporary, "wb") as file:
                self._channel.download(place, file)
        finally:
            self._channel.write("DELETE", place)

    def close(self) -> None:
        """Close the connections."""
        self._channel.close()


@overload
def connect(
    url: str, name: str, *, key: str | None = None, signer: Signer | None = None,
    bits: SupportsIndex | None = None, keep_text: bool = True, words: WordKind | None = None,
    purpose: Purpose | None = None, timeout: float = 30.0, retries: SupportsIndex = 2,
) -> RemoteCollection: ...  # fmt: skip
@overload
def connect(
    url: str, name: None = None, *, key: str | None = None, signer: Signer | None = None,
    bits: SupportsIndex | None = None, keep_text: bool = True, words: WordKind | None = None,
    purpose: Purpose | None = None, timeout: float = 30.0, retries: SupportsIndex = 2,
) -> Any: ...  # fmt: skip
@overload
def connect(
    url: Sequence[str], name: None = None, *, key: str | None = None, timeout: float = 30.0,
    retries: SupportsIndex = 2,
) -> RemoteIndex: ...  # fmt: skip
def connect(
    url: str | Sequence[str],
    name: str | None = None,
    *,
    key: str | None = None,
    signer: Signer | None = None,
    bits: SupportsIndex | None = None,
    keep_text: bool = True,
    words: WordKind | None = None,
    purpose: Purpose | None = None,
    timeout: float = 30.0,
    retries: SupportsIndex = 2,
) -> RemoteCollection | RemoteIndex:
    """Connect to a collection, or to an index, of a service that `lookalike serve` runs.

        docs = la.connect("http://127.0.0.1:8600", "documents")
        docs.search("the quick brown fox", k=5).ids

        index = la.connect(["http://shard-1a:8600", "http://shard-1b:8600"])
        index.search(signatures, k=10).ids

    A collection has the methods of `Collection`, an index those of `Index`. They raise the same
    errors, and `UnavailableError` if no service of an index answers.

    Args:
        url: Address of the service, such as http://127.0.0.1:8600. A list has the addresses of
            copies of one index: a request that one does not answer is sent to another.
        name: Name of the collection (default: the index, or the only collection of the service).
        key: API key (default: the environment variable LOOKALIKE_KEY).
        signer: Create the collection with this signer if it does not exist.
        bits: Create the collection for signatures of this width if it does not exist.
        keep_text: Whether a collection that is created keeps texts.
        words: Keyword index of a collection that is created, see `la.open_collection`.
        purpose: Create the collection for "search" or "duplicates" if it does not exist, see
            `la.open_collection`.
        timeout: Seconds to wait for an answer, of each attempt.
        retries: Number of retries of a failed read; writes are not retried. With several addresses,
            each is tried at least once.

    Returns:
        A `RemoteCollection` or a `RemoteIndex`.
    """
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout <= 1e6:
        raise ArgumentError(
            Said("timeout"), f" is {timeout!r}; expected seconds, above 0 and up to a million"
        )
    again = whole_number("retries", retries, at_least=0, at_most=100)
    keep_text = flag("keep_text", keep_text)
    if name is not None:
        checked_name(name)
    check_signer(signer)
    if words is not None:
        check_words(words, isinstance(signer, PartSigner), signer)
    if purpose is not None:
        check_purpose(purpose, signer)
    if signer is not None and bits is not None:
        raise ArgumentError(Said("bits"), " is set by the signer; leave it out")
    width = None if bits is None else whole_number("bits", bits, at_least=8)
    secret = os.environ.get(_KEY) if key is None else key
    wants_collection = name is not None or any(one is not None for one in (signer, width, purpose))
    with ExitStack() as stack:
        channels = []
        for one in _addresses(url, wants_collection):
            channels.append(Channel(one, secret, timeout, again))
            stack.callback(channels[-1].close)
        connected: RemoteCollection | RemoteIndex
        described = None
        if isinstance(url, str):
            try:
                described = _described(channels[0], name, signer, width, keep_text, words, purpose)
            except ArgumentError:  # a service of an index does not have this route
                if wants_collection:
                    raise
        if described is None:
            connected = RemoteIndex(channels, timeout, again)
        else:
            connected = RemoteCollection(channels[0], described)
        stack.pop_all()
        return connected


def _addresses(url: str | Sequence[str], wants_collection: bool) -> list[str]:
    """Return the addresses of services, or raise."""
    if isinstance(url, str) or not isinstance(url, Sequence):
        return [url]  # which a channel checks
    if not url or len(url) > _MOST_REPLICAS:
        raise ArgumentError(
            Said("url"), f" has {len(url)} addresses; expected 1 to {_MOST_REPLICAS}"
        )
    if wants_collection:
        raise ArgumentError(
            Said("url"), " is a list, which is for an index; pass the address of a collection alone"
        )
    return list(url)


def _described(
    channel: Channel, name: str | None, signer: Signer | None, bits: int | None, keep_text: bool,
    words: WordKind | None, purpose: Purpose | None,
) -> dict[str, Any]:  # fmt: skip
    found: dict[str, Any]
    if name is None:
        listed = channel.read("GET", "/v1/collections")
        there = listed["collections"]
        if len(there) != 1 or listed.get("unavailable"):
            names = [one["name"] for one in [*there, *listed.get("unavailable", [])]]
            raise NotFoundError(
                f"{channel.shown} serves {len(names)} collections, {names}; choose one with name="
            )
        found = there[0]
    else:
        try:
            found = channel.read("GET", f"/v1/collections/{quote(name, safe='')}")
        except NotFoundError:
            if signer is None and bits is None and purpose is None:
                raise
            signed = {"bits": bits} if signer is None else {"description": signer.to_dict()}
            wanted = {"keep_text": keep_text, "words": words, "purpose": purpose}
            body = {"name": name, **wanted, **signed}
            found = channel.write("POST", "/v1/collections", body)
    if signer is not None and found["signer"] != signer.to_dict():
        raise ArgumentError(
            f"the collection {found['name']!r} has another signer than {signer!r}, so signatures "
            "cannot be compared; connect without a signer"
        )
    if bits is not None and bits != found["bits"]:
        raise ArgumentError(
            f"the collection {found['name']!r} has {found['bits']} bits, not {bits}"
        )
    return found
