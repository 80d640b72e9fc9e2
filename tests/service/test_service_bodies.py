"""Bodies: measured before they are decoded, and refused at the first mistakes."""

from __future__ import annotations

import asyncio
import gc
import io
import json
import threading
import tracemalloc
import weakref
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookalike._native import decoded_json, decoded_messagepack
from lookalike.service.formats import JSON, MESSAGEPACK, decode, decoded_size
from lookalike.service.library import open_library
from lookalike.service.limits import HELD, Held, Memory
from lookalike.service.problems import Problem
from lookalike.service.service import Service
from lookalike.service.settings import ServeSettings
from lookalike.service.shapes import BatchQueryBody, CountBody, CreateBody, DedupBody, WriteBody
from lookalike.service.telemetry import Log

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("ab\"\\ü😀[{,:"), inner),
    max_leaves=30,
)  # fmt: skip


def counted(value: Any) -> tuple[int, int]:
    """Return how many values there are, and the bytes of their strings in memory."""
    if isinstance(value, str):
        widest = max(map(ord, value), default=0)
        return 1, len(value) * (4 if widest > 0xFFFF else 2 if widest > 0xFF else 1)
    inside: list[Any] = []
    if isinstance(value, dict):
        inside = [*value, *value.values()]
    elif isinstance(value, list):
        inside = value
    found = [counted(one) for one in inside]
    return 1 + sum(one for one, _ in found), sum(size for _, size in found)


def longest(value: Any) -> int:
    if not isinstance(value, dict):
        return 0
    return max((len(one) for one in value.values() if isinstance(one, list)), default=0)


def as_array(data: bytes) -> Any:
    return np.frombuffer(data, np.uint8)


@given(values, st.booleans(), st.sampled_from([None, 1]))
def test_json_is_counted_without_decoding(value: Any, ascii: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=ascii, indent=indent).encode()
    number, string_bytes, items = decoded_json(as_array(text))
    expected, expected_bytes = counted(value)
    assert (number, items) == (expected, longest(value))
    if ascii:  # a pair of surrogates counts as two characters
        assert expected_bytes <= string_bytes <= 4 * len(text)
    else:
        assert string_bytes == expected_bytes


@given(values)
def test_messagepack_is_counted_without_decoding(value: Any) -> None:
    packed = msgpack.packb(value)
    found = decoded_messagepack(as_array(packed), 200)
    assert found == (*counted(value), longest(value))
    for end in range(len(packed)):
        assert decoded_messagepack(as_array(packed[:end]), 200) is None
    assert decoded_messagepack(as_array(packed + b"\x00"), 200) is None


@given(st.binary(max_size=60) | st.text('[]{}",:\\u0d8 1te', max_size=60).map(str.encode))
def test_any_bytes_are_counted(data: bytes) -> None:
    number, string_bytes, items = decoded_json(as_array(data))
    assert 0 <= items <= number <= len(data) and string_bytes <= 4 * len(data)
    found = decoded_messagepack(as_array(data), 200)
    try:
        value = msgpack.unpackb(data, strict_map_key=True)
    except Exception:
        return
    assert found is None or found[0] >= counted(value)[0]


def test_every_kind_of_messagepack_is_counted() -> None:
    numbers = [0, 127, 128, 255, 256, 65535, 65536, 2**32 - 1, 2**32, 2**64 - 1, -1, -32, -33, -128,
               -129, -32768, -32769, -(2**31), -(2**31) - 1, 1.5]  # fmt: skip
    lengths = [0, 1, 15, 16, 31, 32, 255, 256, 65535, 65536]
    strings = ["x" * length for length in lengths]
    raw = [b"x" * length for length in lengths]
    extensions = [msgpack.ExtType(5, one) for one in (*raw, b"x" * 2, b"x" * 4, b"x" * 8)]
    lists = [[None] * length for length in lengths]
    maps = [{str(number): 1 for number in range(length)} for length in (0, 15, 16, 65536)]
    for value in (*numbers, *strings, *raw, *extensions, *lists, *maps, None, True, False):
        data = msgpack.packb({"a": value})
        found = decoded_messagepack(as_array(data), 200)
        assert found is not None
        inside = 2 * len(value) if isinstance(value, dict) else (
            len(value) if isinstance(value, list) else 0
        )  # fmt: skip
        assert found[0] == 3 + inside
        assert found[2] == (len(value) if isinstance(value, list) else 0)
    assert decoded_messagepack(as_array(b"\xc1"), 200) is None
    assert decoded_messagepack(as_array(b"\x81\x01\x01"), 200) is None, "a key is a string"
    assert decoded_messagepack(as_array(b"\x91" * 200 + b"\x00"), 200) is not None
    assert decoded_messagepack(as_array(b"\x91" * 201 + b"\x00"), 200) is None
    assert decoded_messagepack(as_array(b"\xdd\xff\xff\xff\xff" * 100), 200) is None


MANY = 5_000


@pytest.mark.parametrize(
    ("shape", "value"),
    [
        (WriteBody, {"documents": [0] * MANY}),
        (WriteBody, {"documents": [{}] * MANY}),
        (WriteBody, {"documents": [{"id": 1, "signature": 5}] * MANY}),
        (WriteBody, {"documents": [{"id": "a", **{f"f{n}": 0 for n in range(MANY)}}]}),
        (WriteBody, {f"f{n}": 0 for n in range(MANY)}),
        (BatchQueryBody, {"ids": [""] * MANY}),
        (BatchQueryBody, {"ids": [0] * MANY, "texts": [0] * MANY, "exclude": [0] * MANY}),
        (BatchQueryBody, {"signatures": ["x"] * MANY}),
        (BatchQueryBody, {"texts": ["a"], "where": {"x": [0] * 20_000}}),
        (BatchQueryBody, {"texts": ["a"], "where": {"x": "y" * (2 << 20)}}),
        (CountBody, {"where": [0] * MANY}),
        (CreateBody, {"name": "a", "signer": {f"f{n}": 0 for n in range(MANY)}}),
        (DedupBody, {"radius": [0] * MANY, "threshold": "x", "keep": "y"}),
    ],
)
@pytest.mark.parametrize("format", [JSON, MESSAGEPACK])
def test_validation_ends_at_the_first_mistakes(shape: Any, value: Any, format: str) -> None:
    body = json.dumps(value).encode() if format == JSON else msgpack.packb(value)
    with pytest.raises(Problem) as found:
        decode(body, format, shape, 10_000, lambda size: None)
    assert found.value.status == 422 and len(str(found.value)) < 1000
    more = str(found.value).partition("; and ")[2].partition(" more")[0]
    assert int(more or 0) < 20


@pytest.mark.parametrize(
    ("shape", "value", "told"),
    [
        (CreateBody, {"name": "a", "for": "search"}, "for is 'search': there is no such field (did "
         "you mean 'purpose'?); see GET /v1/openapi.json"),
        (CountBody, {"else": 1}, "else is 1: there is no such field; see GET /v1/openapi.json"),
    ],
)  # fmt: skip
def test_an_unknown_field_is_named(shape: Any, value: Any, told: str) -> None:
    with pytest.raises(Problem) as found:
        decode(json.dumps(value).encode(), JSON, shape, 10_000, lambda size: None)
    assert str(found.value) == told


@pytest.mark.parametrize("value", [{"where": {"a": [b"x"] * MANY}}, {"where": {b"k": 1}}])
def test_messagepack_has_only_what_json_has(value: Any) -> None:
    with pytest.raises(Problem) as found:
        decode(msgpack.packb(value), MESSAGEPACK, CountBody, 10_000, lambda size: None)
    assert found.value.status in (400, 422)


def test_nothing_is_decoded_without_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("lookalike.service.formats.from_json")
    body = json.dumps({"ids": ["a"] * 11}).encode()

    def need(size: int) -> None:
        raise Problem(429, "too_much_at_once", str(size))

    with pytest.raises(Problem) as found:
        decode(body, JSON, BatchQueryBody, 11, need)
    assert found.value.status == 429 and int(str(found.value)) > 11 * 100
    with pytest.raises(Problem) as found:
        decode(body, JSON, BatchQueryBody, 10, need)
    assert found.value.code == "batch_too_large"


@pytest.mark.parametrize("item", ["0", "[]", "{}", '""', "1.5", "70000", '{"a":[]}', '"ü"', '"😀"'])
def test_what_is_decoded_takes_no_more_than_was_counted(item: str) -> None:
    items = ",".join([item] * 20_000)
    body = f'{{"documents":[{{"id":"a","metadata":{{"x":[{items}]}}}}]}}'.encode()
    packed = msgpack.packb(json.loads(body))
    for data, format in ((body, JSON), (packed, MESSAGEPACK)):
        size, _ = decoded_size(data, format)
        gc.collect()
        tracemalloc.start()
        try:
            kept = decode(data, format, WriteBody, 10_000, lambda size: None)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert kept.documents[0].id == "a"
        assert peak < size, (format, peak, size)


def test_memory_is_shared_between_keys() -> None:
    memory = Memory(1000, 600)
    first, second, third = Held(memory, "a"), Held(memory, "a"), Held(memory, "b")
    first.need(400)
    first.need(300)
    assert memory.taken == 400
    with pytest.raises(Problem, match="its whole share") as found:
        second.need(201)
    assert found.value.status == 429
    second.need(200)
    third.need(400)
    with pytest.raises(Problem, match="other requests") as found:
        Held(memory, "c").need(1)
    assert found.value.status == 429
    with pytest.raises(Problem, match="takes 601 bytes") as found:
        third.need(601)
    with pytest.raises(Problem, match="the answer takes more memory than 600 bytes") as large:
        third.add_answer(601)
    assert (large.value.status, large.value.code) == (422, "answer_too_large")
    assert found.value.status == 413
    with pytest.raises(Problem, match="--max-memory") as found:
        third.add_text(100)
    assert found.value.code == "answer_too_large"
    first.share()
    first.release()
    assert memory.taken == 1000
    first.release()
    assert memory.taken == 600
    third.add_text(40)
    assert memory.taken == 760
    second.release()
    third.release()
    assert memory.taken == 0 and not memory._by_key


def test_a_request_that_is_over_holds_its_memory_while_a_thread_works(tmp_path: Path) -> None:
    log = Log("error", io.StringIO())
    service = Service(ServeSettings(), open_library(tmp_path / "new.db"), tmp_path, log)
    begun, go_on = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        go_on.wait(60)

    async def give_up() -> None:
        held = Held(service.memory, "a")
        held.need(1000)
        HELD.set(held)
        task = asyncio.ensure_future(service.read(work))
        await asyncio.to_thread(begun.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        held.release()
        assert service.memory.taken == 1000
        go_on.set()
        while service.memory.taken:
            await asyncio.sleep(0.01)

    asyncio.run(give_up())
    service.close()
    log.close()


def test_what_a_refused_body_held_is_gone_with_the_answer(tmp_path: Path) -> None:
    """An error that refers to itself would keep all that was decoded until garbage is collected."""
    log = Log("error", io.StringIO())
    service = Service(ServeSettings(), open_library(tmp_path / "new.db"), tmp_path, log)

    class Decoded:
        pass

    kept: list[weakref.ref[Decoded]] = []

    def work() -> None:
        decoded = Decoded()
        kept.append(weakref.ref(decoded))
        raise Problem(422, "bad_body", "as it happens")

    async def ask() -> None:
        for _ in range(3):
            try:
                await service.decode(work)
            except Problem as problem:
                problem.__traceback__ = None  # as the endpoint does

    gc.collect()
    gc.disable()
    try:
        asyncio.run(ask())
        service.close()  # the thread has ended with its work
        assert [one() for one in kept] == [None] * 3
    finally:
        gc.enable()
    log.close()
