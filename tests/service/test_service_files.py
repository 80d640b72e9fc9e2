"""Images, recordings, videos and passages over HTTP: added, found where they match, and refused."""

from __future__ import annotations

import io
import json
import socket
import struct
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

import lookalike as la
from lookalike.lazy import LazyModule
from lookalike.service.keys import make_key
from lookalike.service.problems import Problem
from lookalike.service.uploads import unwrap
from support.cases.media_files import LATER, SIGNERS, part, whole
from support.running.exploring import examples
from support.running.waiting import wait_until
from support.services.running import Running, running

MEDIA = list(SIGNERS)
NOUNS = {"images": "an image", "recordings": "a recording", "videos": "a video"}
RAW = {"content_type": "application/octet-stream"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("files")
    (folder / "data").mkdir()
    with running(folder / "data", folder) as served:
        for medium in MEDIA:
            body = {"name": medium, "signer": {"method": medium}}
            made = served.good("POST", "/v1/collections", body)
            assert (made["medium"], made["parts"]) == (medium, medium != "images")
            for number in range(3):
                put(served, medium, str(number), whole(medium, number))
        yield served


def put(service: Running, name: str, id: str, data: bytes, **given: str) -> dict[str, Any]:
    query = "&".join(f"{key}={quote(value)}" for key, value in given.items())
    path = f"/v1/collections/{name}/files/{quote(id, safe='')}?{query}"
    status, _, value = service.ask("PUT", path, data, **RAW)
    assert status == 200, value
    return dict(value)


def find(service: Running, name: str, data: bytes, query: str = "") -> dict[str, Any]:
    status, _, value = service.ask("POST", f"/v1/collections/{name}/query/file?{query}", data)
    assert status == 200, value
    return dict(value)


def form(data: bytes, boundary: str = "a boundary", name: str = "photo.png") -> bytes:
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
    return (
        f"{head}Content-Type: image/png\r\n\r\n".encode()
        + data
        + f"\r\n--{boundary}--\r\n".encode()
    )


@pytest.mark.parametrize("medium", MEDIA)
def test_a_copy_or_snippet_is_found_where_it_is(service: Running, medium: str) -> None:
    answer = find(service, medium, part(medium, 1), "k=1")
    (match,) = answer["matches"]
    assert match["id"] == "1"
    assert (
        answer["query"]["format"]
        == {"images": "JPEG", "recordings": "OGG", "videos": "mov"}[medium]
    )
    if medium == "images":
        assert match["similarity"] > 0.9 and "place" not in match
        return
    place = match["place"]
    assert place["unit"] == "seconds"
    assert abs(place["start"] - place["query_start"] - LATER) <= 0.25
    assert place["offset"] == pytest.approx(place["start"] - place["query_start"])
    assert 1 < place["length"] <= 4.25  # at most a step too long
    assert 0 < match["similarity"] <= 1 and match["votes"] >= 4
    assert find(service, medium, part(medium, 7))["matches"] == []


@pytest.mark.parametrize("medium", MEDIA)
def test_the_client_answers_as_a_local_collection(
    service: Running, medium: str, tmp_path: Path
) -> None:
    path = tmp_path / "a file"
    path.write_bytes(part(medium, 2))
    docs = la.connect(service.url, f"c-{medium}", signer=SIGNERS[medium])
    with la.open_collection(tmp_path / "local.db", signer=SIGNERS[medium]) as local:
        for id, number in (("a/b", 2), ("..", 1), ("\u00fc ?#%", 0), ("copy", 2)):
            metadata = {"n": number, "text": "\u00fc&?=#"}
            one = docs.add_file(id, whole(medium, number), metadata=metadata)
            assert one == local.add_file(id, whole(medium, number), metadata=metadata)
        with pytest.raises(la.errors.BatchError, match="a document with this id exists"):
            docs.add_file("copy", path)
        assert docs.add_file("copy", path, replace=True).updated == 1
        local.add_file("copy", part(medium, 2), replace=True)
        assert docs.parts == local.parts and docs.count() == 4
        for asked in (
            {}, {"k": 1}, {"where": {"n": {"<": 2}}}, {"exclude": ["a/b", ".."]},
            {"explain": True}, {"radius": 1}, {"text": True},
        ):  # fmt: skip
            for query in (part(medium, 2), path, str(path)):
                far, near = docs.search(query, **asked), local.search(query, **asked)
                assert list(far) == list(near)
                assert (far.exact, far.version) == (near.exact, near.version)
        several = [path.read_bytes(), part(medium, 1)]
        far_many, near_many = docs.search_many(several, 2), local.search_many(several, 2)
        assert [list(one) for one in far_many] == [list(one) for one in near_many]
        if docs.parts:
            assert list(docs.search(path, min_score=0.9)) == list(local.search(path, min_score=0.9))
            with pytest.raises(la.errors.ArgumentError, match="use search"):
                docs.within(path, 3)
            with pytest.raises(la.errors.ArgumentError, match="use search"):
                docs.duplicates_of("copy", 3)
            with pytest.raises(la.errors.ArgumentError, match="cannot be sent"):
                docs.search(path, tolerance=3)
            with pytest.raises(la.errors.ArgumentError, match="use snapshot"):
                docs.export(tmp_path / "out.jsonl")
        docs.snapshot(tmp_path / "copy.db")
    with la.open_collection(tmp_path / "copy.db", f"c-{medium}") as copied:
        assert {one.id for one in copied} == {"a/b", "..", "\u00fc ?#%", "copy"}
    with pytest.raises(la.errors.ArgumentError, match="add_file"):
        docs.add(["x"], [str(path)])
    with pytest.raises(la.errors.FileError, match="No such file"):
        docs.search(tmp_path / "missing")
    with pytest.raises(la.errors.DocumentError, match="not known"):
        docs.add_file("x", b"neither fish nor fowl")


def test_a_folder_is_imported_through_a_service(service: Running, tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.flac").write_bytes(whole("recordings", number))
    docs = la.connect(service.url, "imported", signer=la.AudioHash())
    assert docs.import_file(tmp_path).added == 3
    assert docs.search(part("recordings", 1), 1).ids == ["1.flac"]


@pytest.mark.parametrize("medium", MEDIA)
def test_forms_and_metadata_are_taken(service: Running, medium: str) -> None:
    base = f"/v1/collections/{medium}"
    kind = 'multipart/form-data; boundary="a boundary"'
    sent = form(part(medium, 0))
    status, _, found = service.ask("POST", f"{base}/query/file?k=1", sent, content_type=kind)
    assert status == 200 and found["matches"][0]["id"] == "0"
    told = put(service, medium, "new", whole(medium, 0), metadata='{"a": [1, "x"]}')
    assert told["status"] == "added"
    known = service.good("GET", f"{base}/documents/new")
    assert known["metadata"] == {"a": [1, "x"], "preview": told["preview"]}
    assert known["text"] is None
    own = put(service, medium, "new", whole(medium, 0), metadata='{"preview": "mine"}')
    assert own["status"] == "updated"
    assert service.good("GET", f"{base}/documents/new")["metadata"] == {"preview": "mine"}
    service.good("DELETE", f"{base}/documents/new")
    bad = form(part(medium, 0)).replace(b"a boundary--", b"another --")
    path = f"{base}/query/file"
    for body, told_kind in ((bad, kind), (b"x", kind), (sent, kind.replace("a b", "b"))):
        service.refused(422, "bad_form", "POST", path, body, content_type=told_kind)
    service.refused(415, "content_type", "POST", path, sent, content_type="multipart/mixed")
    for wrong in ("metadata=1", "metadata=%7B", "mode=other"):
        service.refused(422, "bad_parameter", "PUT", f"{base}/files/x?{wrong}", whole(medium, 0))
    service.refused(422, "bad_parameter", "POST", f"{path}?where=nothing", part(medium, 0))
    service.refused(422, "k_too_large", "POST", f"{path}?k=99999", part(medium, 0))


@st.composite
def forms(draw: st.DrawFn) -> tuple[str, bytes, bytes]:
    """Draw a boundary, a form with a file among other fields, and the file."""
    boundary = draw(st.text("abcXYZ019'()+_,-./:=?", min_size=1, max_size=70))
    mark = f"\r\n--{boundary}".encode()
    contents = st.binary(max_size=300) | st.lists(
        st.sampled_from([b"\r\n", b"--", boundary.encode(), b"\n", b"x"]), max_size=12
    ).map(b"".join)
    file = draw(contents.filter(lambda data: mark not in b"\r\n" + data + b"\r"))
    fields = st.lists(contents.filter(lambda data: mark not in b"\r\n" + data + b"\r"), max_size=3)
    parts = [b'Content-Disposition: form-data; name="other"\r\n\r\n' + one for one in draw(fields)]
    where = draw(st.integers(0, len(parts)))
    parts.insert(where, b'content-disposition: form-data; NAME="f"; FileName="a"\r\n\r\n' + file)
    body = b"".join(b"--" + boundary.encode() + b"\r\n" + one + b"\r\n" for one in parts)
    return (
        boundary,
        body + b"--" + boundary.encode() + b"--" + draw(st.sampled_from([b"", b"\r\n"])),
        file,
    )


@given(forms())
def test_the_file_of_a_form_is_its_bytes(drawn: tuple[str, bytes, bytes]) -> None:
    boundary, body, file = drawn
    with tempfile.TemporaryDirectory() as folder:
        path, target = Path(folder, "form"), Path(folder, "file")
        path.write_bytes(body)
        unwrap(path, boundary.encode(), target)
        assert target.read_bytes() == file


@given(forms(), st.integers(0, 400))
def test_a_form_that_was_cut_off_is_refused(drawn: tuple[str, bytes, bytes], cut: int) -> None:
    boundary, body, _ = drawn
    end = body.rindex(b"--" + boundary.encode())  # of the last boundary
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "form")
        path.write_bytes(body[: max(1, end - cut)])
        with pytest.raises(Problem, match="form"):
            unwrap(path, boundary.encode(), Path(folder, "file"))


def png(width: int, height: int) -> bytes:
    """Return a small PNG that claims a size."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + data


def wav(seconds: int, rate: int = 8000) -> bytes:
    """Return a WAV that claims a length."""
    size = min(2**32 - 100, 2 * seconds * rate)
    head = struct.pack(
        "<4sI4s4sIHHIIHH", b"RIFF", size + 36, b"WAVE", b"fmt ", 16, 1, 1, rate, 2 * rate, 2, 16
    )
    return head + struct.pack("<4sI", b"data", size) + bytes(4000)


HOSTILE: dict[str, list[bytes]] = {
    "images": [
        png(60_000, 60_000), png(0, 0), png(2**31 - 1, 1), whole("images", 1)[:400],
        b"GIF89a" + b"\xff" * 200, b"II*\0" + b"\xff" * 400, b"\xff\xd8\xff" + b"\0" * 90,
    ],
    "recordings": [
        wav(40, 3), wav(40, 2**31 - 1), whole("recordings", 1)[:900],
        b"fLaC" + b"\xff" * 300, b"ID3" + b"\x7f" * 300,
        b"OggS" + b"\0" * 24 + b"\x01vorbis" + b"\xff" * 99,
    ],
    "videos": [
        whole("videos", 1)[:500], b"\x1a\x45\xdf\xa3" + b"\xff" * 300,
        b"\0\0\0\x18ftypisom" + b"\xff" * 300,
        b"RIFF\xff\xff\xff\xffAVI LIST" + b"\xff" * 300, b"FLV\x01" + b"\xff" * 300,
    ],
}  # fmt: skip


@pytest.mark.parametrize("medium", MEDIA)
def test_hostile_files_are_refused_and_the_service_lives(service: Running, medium: str) -> None:
    before = service.good("GET", f"/v1/collections/{medium}")["version"]
    for place, data in enumerate(HOSTILE[medium]):
        for method, path in (("PUT", "files/bad"), ("POST", "query/file")):
            status, _, value = service.ask(method, f"/v1/collections/{medium}/{path}", data, **RAW)
            assert status == 422, (place, value)
            assert value["error"]["kind"] == "DocumentError", (place, value)
            assert value["error"]["message"].startswith(f"the {medium.removesuffix('s')} "), value
    for other in MEDIA:
        if other != medium:
            path = f"/v1/collections/{medium}/files/bad"
            said = service.refused(415, "file_type", "PUT", path, whole(other, 0), **RAW)
            assert (
                said == f"the file is {NOUNS[other]}, by its first bytes; expected {NOUNS[medium]}"
            )
    path = f"/v1/collections/{medium}/query/file"
    service.refused(415, "file_type", "POST", path, b"<html><script>alert(1)</script>", **RAW)
    service.refused(422, "empty_file", "POST", path, b"", **RAW)
    service.refused(404, "not_found", "POST", "/v1/collections/missing/query/file", b"x", **RAW)
    assert service.good("GET", f"/v1/collections/{medium}")["version"] == before
    assert find(service, medium, part(medium, 1), "k=1")["matches"][0]["id"] == "1"
    assert service.inside is not None
    assert service.inside.files_waiting == service.inside.uploaded_bytes == 0
    assert list((service.inside.run / "uploads").iterdir()) == []


def test_what_clients_send_is_never_opened_or_served(service: Running) -> None:
    for name in MEDIA:
        base = f"/v1/collections/{name}"
        service.refused(422, "bad_argument", "POST", f"{base}/query", {"text": "/etc/passwd"})
        body = {"documents": [{"id": "x", "text": "/etc/passwd"}]}
        assert "send the file itself" in service.refused(
            422, "bad_argument", "PUT", f"{base}/documents", body
        )
        _, headers, raw = service.raw("GET", f"{base}/documents/1")
        assert headers["content-type"] == "application/json"
        assert headers["x-content-type-options"] == "nosniff"
        assert whole(name, 1)[:40] not in raw


def long_recording() -> bytes:
    """Return some hours in few bytes, which take many seconds to decode."""
    made = io.BytesIO()
    steps = np.repeat(np.resize(np.array([900, -900, 300, -700], np.int16), 4_000), 16_384)
    soundfile.write(made, steps, 8000, format="FLAC")
    return made.getvalue()


def test_limits_of_files_at_the_door(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    keys = str(tmp_path / "keys.json")
    writer, reader = make_key(Path(keys), "writer"), make_key(Path(keys), "reader", "read-only")
    with running(
        tmp_path / "data", tmp_path, key=writer, keys=keys, max_upload=300_000, decode_limit=0.5
    ) as service:
        assert service.inside is not None
        service.good("POST", "/v1/collections", {"name": "r", "signer": {"method": "recordings"}})
        service.good("POST", "/v1/collections", {"name": "t"})
        path = "/v1/collections/r/files/x"
        assert "--max-upload" in service.refused(
            413, "body_too_large", "PUT", path, bytes(300_001), **RAW
        )
        service.refused(422, "no_files", "PUT", "/v1/collections/t/files/x", b"x", **RAW)
        service.refused(422, "no_files", "POST", "/v1/collections/t/query/file", b"x", **RAW)
        slow = long_recording()
        assert len(slow) < 300_000
        assert "--decode-limit" in service.refused(408, "decode_limit", "PUT", path, slow, **RAW)
        wait_until(lambda: not service.inside._working)  # type: ignore[union-attr]
        service.inside.files_waiting += 16
        service.refused(429, "too_many_files", "PUT", path, slow, **RAW)
        service.inside.files_waiting -= 16
        service.inside.uploaded_bytes += 4 * 300_000
        service.refused(429, "too_much_at_once", "PUT", path, slow, **RAW)
        service.inside.uploaded_bytes -= 4 * 300_000
        assert list((tmp_path / "uploads").iterdir()) == []
        only = Running(service.host, service.port, reader)
        only.refused(403, "read_only", "PUT", path, whole("recordings", 0), **RAW)
        assert service.good("GET", "/v1/collections/r")["version"] == 0


def test_a_client_that_hangs_up_stops_its_work(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    data = long_recording()
    with running(tmp_path / "data", tmp_path, max_decodes=1, decode_limit=10_000.0) as service:
        inside = service.inside
        assert inside is not None
        service.good("POST", "/v1/collections", {"name": "r", "signer": {"method": "recordings"}})
        head = f"PUT /v1/collections/r/files/x HTTP/1.1\r\nHost: {service.host}:{service.port}\r\n"
        head += f"Content-Length: {len(data)}\r\n\r\n"
        several: list[socket.socket] = []
        for _ in range(3):
            several.append(service.connection())
            several[-1].sendall(head.encode() + data)
        wait_until(lambda: inside.files_waiting == 3)
        for one in several:
            one.close()
        wait_until(lambda: inside.files_waiting == 0 and not inside._working)
        assert list((tmp_path / "uploads").iterdir()) == []
        put(service, "r", "y", whole("recordings", 0))  # the one thread is free again
        assert service.good("GET", "/v1/collections/r")["documents"] == 1


@pytest.mark.parametrize(
    ("medium", "module", "extra"),
    [
        ("images", "PIL.Image", "images"),
        ("recordings", "soundfile", "audio"),
        ("videos", "av", "video"),
    ],
)
def test_a_missing_extra_is_named(
    service: Running, medium: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = part(medium, 1)
    monkeypatch.setitem(sys.modules, module, None)
    if medium == "images":  # the module that was imported is forgotten
        fresh = LazyModule(module, "reading images", extra=extra)
        monkeypatch.setattr("lookalike.images.workers.pillow", fresh)
    said = service.refused(
        422, "missing_dependency", "POST", f"/v1/collections/{medium}/query/file", data
    )
    assert f"lookalike[{extra}]" in said


def test_passages_are_found_by_their_characters(service: Running) -> None:
    texts = {
        "tale": "It was the best of times, it was the worst of times; it was the age of wisdom, "
        "it was the age of foolishness \u2014 it was the epoch of belief, it was the end",
        "moby": "Call me Ishmael. Some years ago (never mind how long precisely) having little or "
        "no money in my purse, and nothing particular to interest me on shore, I thought",
    }
    signer = {"method": "passages", "words": 8, "step": 2}
    made = service.good("POST", "/v1/collections", {"name": "p", "signer": signer})
    assert (made["medium"], made["parts"], made["measure"]) == ("text", True, None)
    documents = [{"id": id, "text": text} for id, text in texts.items()]
    service.good("PUT", "/v1/collections/p/documents", {"documents": documents})
    query = (
        "\U0001f40b He said: never mind how long precisely, having little or no money in my purse"
    )
    body = {"text": query, "k": 3, "include_text": True}
    (match,) = service.good("POST", "/v1/collections/p/query", body)["matches"]
    place = match["place"]
    assert match["id"] == "moby" and place["unit"] == "words"
    begin, end = place["characters"]
    assert texts["moby"][begin:end] == (
        "never mind how long precisely) having little or no money in my"
    )
    begin, end = place["query_characters"]
    assert query[begin:end] == "never mind how long precisely, having little or no money in my"
    batch = service.good("POST", "/v1/collections/p/query/batch", {"texts": [query, "nothing"]})
    assert [one["id"] for one in batch["answers"][0]["matches"]] == ["moby"]
    assert "characters" not in batch["answers"][0]["matches"][0]["place"]
    assert batch["answers"][1]["matches"] == []
    assert service.good("POST", "/v1/collections/p/query", {"id": "moby"})["matches"] == []
    remote = la.connect(service.url, "p")
    assert remote.search(query).ids == ["moby"] and remote.parts
    with pytest.raises(la.errors.ArgumentError, match="signatures of parts"):
        remote.add(["x"], signatures=[np.zeros((1, 8), np.uint8)])
    refused: list[tuple[str, dict[str, Any]]] = [
        ("query", {"signature": "00" * 8}),
        ("query/batch", {"signatures": ["00" * 8]}),
        ("query/batch", {"ids": ["moby"]}),
        ("pairs", {"radius": 3}),
        ("dedup", {"radius": 3}),
    ]
    for path, sent in refused:
        service.refused(422, "parts", "POST", f"/v1/collections/p/{path}", sent)
    for path in ("groups", "map", "distances"):
        service.refused(422, "parts", "GET", f"/v1/collections/p/{path}")
    sent = {"documents": [{"id": "x", "signature": "00" * 8}]}
    service.refused(422, "parts", "PUT", "/v1/collections/p/documents", sent)
    for wrong in ({"method": "simhash", "words": 3}, {"method": "videos", "bits": 64}):
        service.refused(
            422, "bad_argument", "POST", "/v1/collections", {"name": "w", "signer": wrong}
        )


STEPS = st.one_of(
    st.tuples(st.just("put"), st.integers(0, 3), st.integers(0, 2)),
    st.tuples(st.just("delete"), st.integers(0, 3), st.just(0)),
    st.tuples(st.just("reopen"), st.just(0), st.just(0)),
)


@pytest.mark.parametrize("medium", ["images", "recordings"])
@settings(max_examples=examples(6), deadline=None)
@given(steps=st.lists(STEPS, min_size=1, max_size=10))
def test_any_order_of_uploads_is_a_fresh_collection(
    medium: str, steps: list[tuple[str, int, int]]
) -> None:
    """Whatever was uploaded, replaced and deleted, before and after the service ended."""
    known: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        (folder / "data").mkdir()

        def serve() -> Running:
            return stack.enter_context(running(folder / "data", folder))

        service = serve()
        service.good("POST", "/v1/collections", {"name": "c", "signer": {"method": medium}})
        for step, place, number in steps:
            id = f"d{place}"
            if step == "put":
                done = put(service, "c", id, whole(medium, number))
                assert done["status"] == ("updated" if id in known else "added")
                known[id] = number
            elif step == "delete":
                done = service.good("DELETE", f"/v1/collections/c/documents/{id}")
                assert done["deleted"] == int(known.pop(id, None) is not None)
            else:
                stack.pop_all().close()
                service = serve()
        with la.open_collection(folder / "fresh.db", signer=SIGNERS[medium]) as fresh:
            for id, number in known.items():
                fresh.add_file(id, whole(medium, number))
            far = la.connect(service.url, "c")
            assert far.count() == len(known)
            for number in range(3):
                near = fresh.search(part(medium, number), 10)
                assert list(far.search(part(medium, number), 10)) == list(near)
            for id in known:
                mine, theirs = fresh.get(id), far.get(id)
                assert mine is not None and theirs is not None
                assert json.dumps(mine.metadata) == json.dumps(theirs.metadata)
                assert mine.signature.tobytes() == theirs.signature.tobytes()
