"""A collection that a service holds, and how to connect to it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, Literal, Self, SupportsIndex
from urllib.parse import quote

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lookalike import errors
from lookalike.checks import file_path, flag, thread_count, whole_number
from lookalike.client.channel import Channel
from lookalike.client.values import Sent, answer_of, asked_value, document_of, sendable_where
from lookalike.collection.answers import Answer, Pair
from lookalike.collection.documents import Document, as_id, is_id
from lookalike.collection.query import Query, Way, Where, how_many, listed
from lookalike.collection.signing import query_rows, wanted_mask
from lookalike.collection.stores.base import checked_name
from lookalike.collection.writing import Written
from lookalike.errors import ArgumentError, CollectionError, LookalikeError, NotFoundError, Said
from lookalike.signatures import Signer, signer_from_dict
from lookalike.signatures.bit_weights import Mask, as_mask
from lookalike.storage import is_there, whole_file

__all__ = ["RemoteCollection", "connect"]

_KEY = "LOOKALIKE_KEY"
_MOST_MATCHES = 10_000
_PAGE = 1_000
_WAIT = (0.02, 1.0)
_ENDED = ("done", "failed", "cancelled")


class RemoteCollection:
    """Documents of a collection that a service has: the methods of `Collection`.

    Connect to one with `la.connect`. What a method has returned from is committed, and seen by
    the next search of everybody. Safe to use from many threads. Conditions are dictionaries: a
    function cannot be sent.
    """

    def __init__(self, channel: Channel, described: Mapping[str, Any]) -> None:
        self._channel = channel
        self._name = str(described["name"])
        self._bits = int(described["bits"])
        self._keeps_text = bool(described["keeps_text"])
        self._described: dict[str, Any] | None = described["signer"]
        self._path = f"/v1/collections/{quote(self._name, safe='')}"

    # What it is

    @property
    def name(self) -> str:
        """The name of the collection."""
        return self._name

    @property
    def bits(self) -> int:
        """How many bits each signature has."""
        return self._bits

    @cached_property
    def signer(self) -> Signer | None:
        """How documents are signed, unless by weights that were learnt, which stay there; None if
        signatures are given by the caller.
        """
        return None if self._described is None else signer_from_dict(self._described)

    @property
    def version(self) -> int:
        """How many times the collection has been written to."""
        return int(self.stats()["version"])

    def __len__(self) -> int:
        return self.count()

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and self.get(id) is not None

    def __iter__(self) -> Iterator[Document]:
        """Yield all documents by id; what is written meanwhile may or may not be among them."""
        for page in self.pages():
            yield from page

    def __repr__(self) -> str:
        return f"RemoteCollection({self._name!r}, {self._bits} bits, at {self._channel.shown})"

    def stats(self) -> dict[str, Any]:
        """Return what the service tells of the collection, in plain values."""
        found: dict[str, Any] = self._channel.read("GET", self._path)
        return found

    # Writing

    def add(
        self,
        ids: Sequence[str],
        texts: Sequence[str] | None = None,
        *,
        signatures: ArrayLike | None = None,
        metadata: Sequence[Mapping[str, Any] | None] | None = None,
        on_error: Literal["raise", "skip"] = "raise",
    ) -> Written:
        """Add documents, all of them or none; see `Collection.add`."""
        return self._write(ids, texts, signatures, metadata, on_error, mode="add")

    def upsert(
        self,
        ids: Sequence[str],
        texts: Sequence[str] | None = None,
        *,
        signatures: ArrayLike | None = None,
        metadata: Sequence[Mapping[str, Any] | None] | None = None,
        on_error: Literal["raise", "skip"] = "raise",
    ) -> Written:
        """Add documents or replace those with the same ids; see `Collection.upsert`."""
        return self._write(ids, texts, signatures, metadata, on_error, mode="upsert")

    def delete(self, ids: Sequence[str] | str) -> Written:
        """Remove documents, all in one step; ids that are not there are passed over."""
        wanted = [as_id(id) for id in ([ids] if isinstance(ids, str) else listed("ids", ids))]
        done = self._channel.write("POST", f"{self._path}/documents/delete", {"ids": wanted})
        return Written(deleted=done["deleted"], version=done["version"])

    def _write(
        self,
        ids: Sequence[str],
        texts: Sequence[str] | None,
        signatures: ArrayLike | None,
        metadata: Sequence[Mapping[str, Any] | None] | None,
        on_error: str,
        mode: str,
    ) -> Written:
        signs = self._described is not None and "features" in self._described
        kind = None if self._described is None else str(self._described["signer"])
        sent = Sent.of(
            ids, texts, signatures, metadata, on_error=on_error, unique=mode == "add",
            keep_text=self._keeps_text, bits=self._bits, name=self._name,
            unsigned=None if signs else kind or "",
        )  # fmt: skip
        if not sent.documents:
            return Written(errors=sent.errors, version=self.version)
        body = {"documents": sent.documents, "mode": mode, "on_error": on_error}
        try:
            done = self._channel.write("PUT", f"{self._path}/documents", body)
        except errors.BatchError as error:
            raise sent.refused(error) from None
        return sent.written(done)

    # Reading

    def get(self, id: str) -> Document | None:
        """Return a document, or None if there is none of that id."""
        return self.get_many([id])[0]

    def get_many(self, ids: Sequence[str]) -> list[Document | None]:
        """Return the documents of these ids, None for each that is not there."""
        wanted = [id if is_id(id) else "" for id in listed("ids", ids)]
        asked = list(dict.fromkeys(id for id in wanted if id))
        if not asked:
            return [None] * len(wanted)
        found = self._channel.read("POST", f"{self._path}/documents/get", {"ids": asked})
        known = {
            id: None if value is None else document_of(value)
            for id, value in zip(asked, found["documents"], strict=True)
        }
        return [known.get(id) for id in wanted]

    def count(self, where: Where | None = None) -> int:
        """Return how many documents there are, or how many meet a condition (reads all)."""
        body = {"where": sendable_where(where)}
        return int(self._channel.read("POST", f"{self._path}/documents/count", body)["count"])

    def scroll(
        self, after: str = "", limit: SupportsIndex = 100, *, where: Where | None = None
    ) -> list[Document]:
        """Return the next documents by id, those behind `after`; an empty list at the end.

        More than a thousand come by several requests.
        """
        wanted = how_many("limit", limit)
        after = "" if isinstance(after, str) and not after else as_id(after)
        condition = sendable_where(where)
        found: list[Document] = []
        while len(found) < wanted:
            size = min(_PAGE, wanted - len(found))
            body = {"after": after, "limit": size, "where": condition}
            page = self._channel.read("POST", f"{self._path}/documents/scroll", body)
            found += map(document_of, page["documents"])
            if page["next"] is None:
                break
            after = page["next"]
        return found

    def pages(
        self, size: SupportsIndex = 1000, *, where: Where | None = None
    ) -> Iterator[list[Document]]:
        """Yield all documents by id that meet a condition, `size` at a time.

        What is written meanwhile may or may not be among them.
        """
        wanted, after = how_many("size", size), ""
        while page := self.scroll(after, wanted, where=where):
            yield page
            after = page[-1].id

    # Searching

    def search(
        self, query: str | ArrayLike, k: SupportsIndex = 10, *, radius: SupportsIndex | None = None,
        where: Where | None = None, exclude: Iterable[str] = (), explain: bool = False,
        text: bool = False, mask: Mask = "auto", way: Way | None = None,
        threads: int | None = None,
    ) -> Answer:  # fmt: skip
        """Return the k nearest documents to a text or signature; see `Collection.search`.

        `threads` is the matter of the service.
        """
        return self.search_many(
            self._one(query), k, radius=radius, where=where, exclude=exclude, explain=explain,
            text=text, mask=mask, way=way, threads=threads,
        )[0]  # fmt: skip

    def search_many(
        self, queries: Sequence[str] | ArrayLike, k: SupportsIndex = 10, *,
        radius: SupportsIndex | None = None, where: Where | None = None,
        exclude: Iterable[str] = (), explain: bool = False, text: bool = False,
        mask: Mask = "auto", way: Way | None = None, threads: int | None = None,
    ) -> list[Answer]:  # fmt: skip
        """Return what `search` returns for each of many queries, at one version."""
        k = how_many("k", k)  # in the order in which a collection that is here looks at them
        wanted_mask(queries, mask, whole=radius is not None)
        asked = self._asked(queries)
        checked = self._query(len(asked), radius, where, exclude, explain, text, way, threads, k=k)
        body = asked_value(checked, where, way)
        body.update(k=checked.k, radius=checked.radius, mask=as_mask(mask))
        return self._answers(asked, body)

    def within(
        self, query: str | ArrayLike, radius: SupportsIndex, *,
        limit: SupportsIndex = _MOST_MATCHES, where: Where | None = None,
        exclude: Iterable[str] = (), explain: bool = False, text: bool = False,
        way: Way | None = None, threads: int | None = None,
    ) -> Answer:  # fmt: skip
        """Return every document at distance `radius` or less; see `Collection.within`."""
        return self.within_many(
            self._one(query), radius, limit=limit, where=where, exclude=exclude, explain=explain,
            text=text, way=way, threads=threads,
        )[0]  # fmt: skip

    def within_many(
        self, queries: Sequence[str] | ArrayLike, radius: SupportsIndex, *,
        limit: SupportsIndex = _MOST_MATCHES, where: Where | None = None,
        exclude: Iterable[str] = (), explain: bool = False, text: bool = False,
        way: Way | None = None, threads: int | None = None,
    ) -> list[Answer]:  # fmt: skip
        """Return what `within` returns for each of many queries, at one version."""
        asked = self._asked(queries)
        checked = self._query(
            len(asked), radius, where, exclude, explain, text, way, threads, limit=limit
        )
        body = asked_value(checked, where, way)
        body.update(radius=checked.radius, limit=checked.limit)
        return self._answers(asked, body)

    def duplicates_of(
        self, id: str, radius: SupportsIndex, *, where: Where | None = None,
        limit: SupportsIndex = _MOST_MATCHES, explain: bool = False, text: bool = False,
        way: Way | None = None, threads: int | None = None,
    ) -> Answer:  # fmt: skip
        """Return every other document within the radius of this one; see `within`."""
        checked = self._query(1, radius, where, (), explain, text, way, threads, limit=limit)
        body = asked_value(checked, where, way)
        body.update(id=as_id(id), radius=checked.radius, limit=checked.limit)
        return answer_of(self._channel.read("POST", f"{self._path}/query", body))

    def pairs(
        self, radius: SupportsIndex, *, limit: SupportsIndex = 1_000_000, threads: int | None = None
    ) -> list[Pair]:
        """Return every pair of documents within the radius, each once, by (left, right).

        A job of the service looks for them. More than `limit` raise `ResultTooLargeError`.
        """
        near = min(whole_number("radius", radius, at_least=0), self._bits)
        most = how_many("limit", limit, at_least=0)
        thread_count(threads)
        body = {"radius": near, "limit": most}
        job = self._channel.write("POST", f"{self._path}/pairs", body)
        place = f"/v1/jobs/{job['id']}"
        try:
            self._await(place)
            found: list[Pair] = []
            after: int | None = 0
            while after is not None:
                page = self._channel.read("GET", f"{place}/results?after={after}&limit=10000")
                found += [Pair(**pair) for pair in page["results"]]
                after = page["next"]
            return found
        finally:
            with suppress(LookalikeError):  # a key for reading may not; it goes by itself
                self._channel.write("DELETE", place)

    # Keeping it well

    def refresh(self) -> int:
        """Return the last committed version: the service takes in what is new by itself."""
        return self.version

    def snapshot(self, path: str | os.PathLike[str]) -> None:
        """Write the collection, as it is at one moment, to a new SQLite file here."""
        target = file_path("path", path)
        if is_there(target):
            raise errors.FileError(
                f"{target} is there already; name a new file, or remove that one"
            )
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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # Within

    def _one(self, query: str | ArrayLike) -> list[str] | NDArray[np.uint8]:
        if isinstance(query, str):
            return [query]
        rows = query_rows(query, self._bits, self)
        if len(rows) != 1:
            raise ArgumentError(
                f"the query is {len(rows)} signatures; expected one: use search_many or within_many"
            )
        return rows

    def _asked(self, queries: Sequence[str] | ArrayLike) -> list[str] | NDArray[np.uint8]:
        if isinstance(queries, str):
            raise ArgumentError("queries are one str; expected a list of them, or use search()")
        if isinstance(queries, Sequence) and all(isinstance(query, str) for query in queries):
            return [str(query) for query in queries]
        return query_rows(queries, self._bits, self)

    def _query(
        self, count: int, radius: SupportsIndex | None, where: Where | None,
        exclude: Iterable[str], explain: bool, text: bool, way: Way | None, threads: int | None,
        k: SupportsIndex | None = None, limit: SupportsIndex | None = None,
    ) -> Query:  # fmt: skip
        """Return the query as it would be here, so that what is wrong is told in the same words."""
        nothing = np.empty((count, self._bits // 8), np.uint8)
        return Query.of(
            nothing, radius, where=where, exclude=exclude, explain=explain, text=text,
            way="native" if way is None else way, threads=threads, k=k, limit=limit,
        )  # fmt: skip

    def _answers(self, asked: list[str] | NDArray[np.uint8], body: dict[str, Any]) -> list[Answer]:
        if isinstance(asked, list):
            body["texts"] = asked
        else:
            body["signatures"] = [row.tobytes().hex() for row in asked]
        found = self._channel.read("POST", f"{self._path}/query/batch", body)
        return [answer_of(value) for value in found["answers"]]

    def _await(self, place: str) -> None:
        """Wait for a job, and raise what has gone wrong with it."""
        pause, longest = _WAIT
        while (job := self._channel.read("GET", place))["state"] not in _ENDED:
            time.sleep(pause)
            pause = min(longest, 1.5 * pause)
        if job["state"] != "done":
            kind = getattr(errors, str(job.get("error_kind")), CollectionError)
            raise kind(job["error"] or f"the job was {job['state']}; start it again")


def connect(
    url: str,
    name: str | None = None,
    *,
    key: str | None = None,
    signer: Signer | None = None,
    bits: SupportsIndex | None = None,
    keep_text: bool = True,
    timeout: float = 30.0,
    retries: SupportsIndex = 2,
) -> RemoteCollection:
    """Return a collection of the service at `url`, which `lookalike serve` runs.

    It has the methods of `Collection`, and raises the same errors.

    Args:
        url: Address of the service, such as http://127.0.0.1:8600.
        name: Name of the collection (default: the only collection of the service).
        key: API key (default: that of the environment variable LOOKALIKE_KEY).
        signer: Create the collection with this signer if it does not exist.
        bits: Create the collection for signatures of this width if it does not exist.
        keep_text: Whether a collection that is created keeps texts.
        timeout: Seconds to wait for an answer.
        retries: How often a read that fails on its way is tried again; writes never are.
    """
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout <= 1e6:
        raise ArgumentError(Said("timeout"), f" is {timeout!r}; expected seconds, up to a million")
    again = whole_number("retries", retries, at_least=0, at_most=100)
    keep_text = flag("keep_text", keep_text)
    if name is not None:
        checked_name(name)
    if signer is not None and not isinstance(signer, Signer):
        raise ArgumentError(
            Said("signer"), f" is {signer!r}; expected one such as la.SimHash(bits=128)"
        )
    if signer is not None and bits is not None:
        raise ArgumentError(Said("bits"), " is the signer's matter; leave it out")
    width = None if bits is None else whole_number("bits", bits, at_least=8)
    channel = Channel(url, os.environ.get(_KEY) if key is None else key, timeout, again)
    try:
        described = _described(channel, name, signer, width, keep_text)
    except BaseException:
        channel.close()
        raise
    return RemoteCollection(channel, described)


def _described(
    channel: Channel, name: str | None, signer: Signer | None, bits: int | None, keep_text: bool
) -> dict[str, Any]:
    found: dict[str, Any]
    if name is None:
        listed = channel.read("GET", "/v1/collections")
        there = listed["collections"]
        if len(there) != 1 or listed.get("unavailable"):
            names = [one["name"] for one in [*there, *listed.get("unavailable", [])]]
            raise NotFoundError(
                f"{channel.shown} serves {len(names)} collections, {names}: say which one with "
                "name="
            )
        found = there[0]
    else:
        try:
            found = channel.read("GET", f"/v1/collections/{quote(name, safe='')}")
        except NotFoundError:
            if signer is None and bits is None:
                raise
            found = channel.write("POST", "/v1/collections", _new(name, signer, bits, keep_text))
    if signer is not None and found["signer"] != signer.to_dict():
        raise ArgumentError(
            f"the collection {found['name']!r} was made with another signer than {signer!r}, so "
            "their signatures cannot be compared; connect without a signer to use its own"
        )
    if bits is not None and bits != found["bits"]:
        raise ArgumentError(
            f"the collection {found['name']!r} has {found['bits']} bits, not {bits}"
        )
    return found


def _new(name: str, signer: Signer | None, bits: int | None, keep_text: bool) -> dict[str, Any]:
    body: dict[str, Any] = {"name": name, "keep_text": keep_text}
    if signer is not None:
        body["description"] = signer.to_dict()
    else:
        body["bits"] = bits
    return body
