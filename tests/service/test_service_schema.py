"""Whatever the OpenAPI description allows, and much that it does not, is answered without a 5xx."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import lookalike as la
from support.services.running import Running, running

EXAMPLES = int(os.environ.get("LOOKALIKE_EXAMPLES", 8))
"""Of each route."""
SETTINGS = settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
)  # fmt: skip


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("schema")
    (folder / "data").mkdir()
    with la.open_collection(folder / "data" / "pages.db", "pages", signer=la.SimHash(64)) as docs:
        docs.add(["fox", "owl"], ["the quick brown fox", "a quick brown fox"])
    with running(folder / "data", folder, max_jobs=1) as service:
        yield service


def test_no_route_fails_whatever_comes(served: Running) -> None:
    schema = schemathesis.openapi.from_url(f"{served.url}/v1/openapi.json")
    found: list[Any] = [one.ok() for one in schema.get_all_operations()]  # type: ignore[union-attr]
    assert len(found) > 25
    for operation in found:

        @SETTINGS
        @given(case=operation.as_strategy(), kind=st.sampled_from(["json", "x"]))
        def ask(case: Any, kind: str) -> None:
            parameters = case.path_parameters
            if kind == "json" and parameters and "name" in parameters:
                parameters["name"] = "pages"  # so that half of them get behind the name
            if case.operation.method.lower() == "delete" and case.path.endswith("{name}"):
                parameters["name"] = "none"  # the collection is still needed
            answer = case.call(base_url=served.url, timeout=120)
            assert answer.status_code < 500, (case, answer.text)
            if answer.status_code >= 400 and case.method.upper() != "HEAD":
                assert set(answer.json()) == {"error"}, (case, answer.text)

        ask()
    assert served.good("GET", "/v1/collections/pages")["name"] == "pages"


BYTES = st.one_of(st.binary(max_size=300), st.sampled_from([b"null", b"[]", b"0", b'""', b"{}"]))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    body=BYTES,
    kind=st.sampled_from(["application/json", "application/msgpack"]),
    path=st.sampled_from(
        ["query", "query/batch", "documents/get", "documents/delete", "compare", "dedup"]
    ),
)
def test_any_bytes_are_refused(served: Running, body: bytes, kind: str, path: str) -> None:
    status, _, value = served.ask("POST", f"/v1/collections/pages/{path}", body, content_type=kind)
    assert 400 <= status < 500, (status, value)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(documents=st.lists(st.dictionaries(
    st.sampled_from(["id", "text", "metadata", "signature", "signature_base64"]), values,
    max_size=4), max_size=3), where=values)  # fmt: skip
def test_any_values_get_results_of_their_own_or_are_refused(
    served: Running, documents: list[object], where: object
) -> None:
    for method, path, body in (
        ("PUT", "documents", {"documents": documents}),
        ("POST", "query", {"text": "x", "where": where}),
        ("POST", "documents/count", {"where": where}),
    ):
        status, _, value = served.ask(method, f"/v1/collections/pages/{path}", body)
        assert status < 500, (body, value)
        if status == 200 and method == "PUT":
            assert len(value["results"]) == len(documents)
