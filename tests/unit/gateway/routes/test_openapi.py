"""/openapi.json: every route with a schema, and each schema no narrower than the check that it describes."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import fastjsonschema
import pytest

from engine_host.gateway.error_answers import EndpointError
from engine_host.gateway.routes import openapi, schemas, table
from engine_host.gateway.routes.rows import Looked

DOCUMENT = table.GETS["/openapi.json"](Looked("/openapi.json", {}, {}, (), ()))
BODIES: tuple[Mapping[str, Any], ...] = (
    {"messages": [{"role": "user", "content": "once"}]},
    {"messages": [{"role": "user"}], "max_tokens": 4, "stream": True, "temperature": 0.5, "stop": ["x"]},
    {"model": "sndr-demo", "messages": [{"role": "user", "content": [{"type": "text"}]}], "max_tokens": 1},
    {"prompt": "once"},
    {"prompt": ["once"], "max_tokens": None, "suffix": "x"},
    {"prompt": "once", "max_tokens": 0, "echo": True, "logprobs": 1},
    {"input": "once"},
    {"input": ["once", "twice"]},
    {"query": "once", "documents": ["twice"], "top_n": 1},
    {"input_prefix": "a", "input_suffix": "b", "n_predict": 4},
    {"content": "once"},
    {"tokens": [1, 2]},
    {},
)


def test_every_route_is_described() -> None:
    found = {(method, path) for path, methods in DOCUMENT["paths"].items() for method in methods}
    posts = {*table.POSTS, *table.ASKS, *table.POSTED_GETS}
    below = {"/v1/models/{model}", "/api/v0/models/{model}"}
    assert found == {("post", path) for path in posts} | {("get", path) for path in {*table.GETS, *below}}
    assert json.loads(json.dumps(DOCUMENT)) == DOCUMENT
    names = [one["operationId"] for methods in DOCUMENT["paths"].values() for one in methods.values()]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("check", schemas.REQUESTS, ids=lambda one: f"{one.__module__}.{one.__name__}")
def test_what_is_taken_fits_the_schema(check: Callable[[dict[str, Any]], None]) -> None:
    fits = fastjsonschema.compile({**schemas.REQUESTS[check]})
    taken = 0
    for body in BODIES:
        try:
            check(dict(body))
        except EndpointError:
            # A check may look deeper than the schema says.
            continue
        fits(dict(body))
        taken += 1
    assert taken


def test_the_document_follows_the_rows() -> None:
    one = {"/v1/rerank": table.POSTS["/v1/rerank"]}
    assert list(openapi.document(one, (), (), (), ())["paths"]) == ["/v1/rerank"]
