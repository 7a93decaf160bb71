"""What is told without an engine's work: each path over a real socket, and odd questions."""

from typing import Any

import pytest

from engine_host.gateway.routes.listed import query_of
from engine_host.gateway.routes.table import GETS
from tests.unit.gateway.asking import ask, code_of


@pytest.mark.parametrize("path", sorted(GETS))
def test_each_path_answers_with_json_and_starts_no_work(world: Any, path: str) -> None:
    seen: list[Any] = []
    answer = ask(world, "GET", path, lambda served: seen.append(served.engine))
    assert answer.status_code == 200
    assert isinstance(answer.json(), dict)
    assert not [asked for asked, _ in seen[0].received if asked != "/metrics"]


@pytest.mark.parametrize("path", sorted(GETS))
def test_each_path_takes_no_other_method(world: Any, path: str) -> None:
    answer = ask(world, "DELETE", path)
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, HEAD"


def test_the_list_has_three_dialects_on_one_path(world: Any) -> None:
    assert ask(world, "GET", "/v1/models").json()["object"] == "list"
    assert ask(world, "GET", "/v1/models?client_version=0.169.0").json()["models"][0]["slug"] == "m"
    asked = {"anthropic-version": "2023-06-01"}
    assert ask(world, "GET", "/v1/models", headers=asked).json()["first_id"] == "m"
    assert ask(world, "GET", "/v1/models?limit=1000").json()["last_id"] == "m"
    assert ask(world, "GET", "/v1/models/m", headers=asked).json()["type"] == "model"


def test_errors_have_the_form_of_who_asks(world: Any) -> None:
    asked = {"anthropic-version": "2023-06-01"}
    refused = ask(world, "GET", "/v1/models/none", headers=asked)
    assert (refused.status_code, refused.json()["type"]) == (404, "error")
    assert refused.json()["error"]["type"] == "not_found_error"
    assert code_of(ask(world, "GET", "/v1/models/none")) == (404, "model_not_found")
    ollamas = ask(world, "POST", "/api/show", json={"model": "none"})
    assert (ollamas.status_code, ollamas.json()["code"]) == (404, "model_not_found")
    assert "none" in ollamas.json()["error"]


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"model": 7}', b"{}", b'{"model": null}', b"\xff"])
def test_a_show_of_nothing_is_refused(world: Any, body: bytes) -> None:
    answer = ask(world, "POST", "/api/show", content=body)
    assert answer.status_code == 400
    assert isinstance(answer.json()["error"], str)


def test_a_show_takes_the_older_name_too(world: Any) -> None:
    assert ask(world, "POST", "/api/show", json={"name": "m:latest"}).json()["details"]["family"] == "unknown"


@pytest.mark.parametrize("query", ["&".join(["a=1"] * 65), "limit=" + "9" * 4000, "limit=%ff%00"])
def test_odd_queries_are_refused(world: Any, query: str) -> None:
    assert ask(world, "GET", f"/v1/models?{query}").status_code == 400


def test_a_query_that_nobody_knows_changes_nothing(world: Any) -> None:
    plain = ask(world, "GET", "/v1/models").json()
    assert ask(world, "GET", "/v1/models?x=%F0%9F&&=&y").json() == plain
    assert query_of(b"a=1&a=2&b") == {"a": "2", "b": ""}


def test_an_unknown_model_is_told_the_nearest_name(world: Any) -> None:
    for name, meant in (("M", " Did you mean m?"), ("nothing-like-it", "")):
        message = ask(world, "GET", f"/v1/models/{name}").json()["error"]["message"]
        assert message == f"There is no model '{name}' here.{meant} Running now: m."


def test_a_row_that_ends_in_a_name_needs_one(world: Any) -> None:
    assert code_of(ask(world, "GET", "/v1/models/")) == (404, "unknown_route")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/llm/v1/models", 200),
        ("/v1/models", 200),
        ("/llm", 200),
        ("/llmv1/models", 404),
        ("/llm/llm/v1/models", 404),
    ],
)
def test_below_a_path_of_a_proxy(world: Any, path: str, status: int) -> None:
    def below(served: Any) -> None:
        served.gateway.app._base_path = lambda: "/llm"

    assert ask(world, "GET", path, below).status_code == status
