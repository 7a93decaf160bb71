"""Reranking: requests of every form, scores in order, and engines that answer oddly."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.gateway.asking import ask, code_of

ASKED = {"model": "m", "query": "a", "documents": ["b", {"text": "c"}, "d"]}


def ranks(served: Any) -> None:
    """Make the engine one that scores."""
    served.running[0] = replace(served.running[0], reranking=True)


def results(*scores: tuple[Any, Any]) -> bytes:
    """An engine's answer."""
    told = [{"index": index, "relevance_score": score} for index, score in scores]
    return json.dumps({"results": told, "usage": {"total_tokens": 5}}).encode()


def test_the_best_come_first_and_as_many_as_asked_for(world: Any, scripts: Any) -> None:
    script = scripts.answers(200, results((0, 0.1), (1, 0.9), (2, 0.5)))
    body = {**ASKED, "top_n": 2, "return_documents": True}
    answer = ask(lambda: world(script), "POST", "/v1/rerank", ranks, json=body).json()
    assert answer["results"] == [
        {"index": 1, "relevance_score": 0.9, "document": {"text": "c"}},
        {"index": 2, "relevance_score": 0.5, "document": {"text": "d"}},
    ]
    assert answer["usage"] == {"total_tokens": 5}


@pytest.mark.parametrize(
    "change",
    [
        {"query": 5}, {"query": None}, {"documents": []}, {"documents": "b"}, {"documents": [1]},
        {"documents": [{"body": "x"}]}, {"top_n": 0}, {"top_n": True}, {"top_n": "1"},
        {"return_documents": 1},
        {"documents": ["x"] * 10_001},
    ],
)  # fmt: skip
def test_what_is_no_request_is_refused(world: Any, change: dict[str, Any]) -> None:
    answer = ask(world, "POST", "/v1/rerank", ranks, json={**ASKED, **change})
    assert code_of(answer)[0] == 400


@pytest.mark.parametrize(
    "answer",
    [b"{}", b"[]", b'{"results": 5}', b'{"results": [1]}', results((7, 0.1)), results((-1, 0.1)),
     results((True, 0.1)), results((0, "x")), results((0, None)), b'{"results": [{"index": 0}]}'],
)  # fmt: skip
def test_scores_of_other_texts_are_a_502(world: Any, scripts: Any, answer: bytes) -> None:
    refused = ask(lambda: world(scripts.answers(200, answer)), "POST", "/rerank", ranks, json=ASKED)
    assert code_of(refused) == (502, "engine_error")
