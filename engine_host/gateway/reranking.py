"""`/v1/rerank`: texts in the order of their relevance for a question, in Cohere's form, on both engines.

Source: docs.cohere.com/reference/rerank; llama.cpp takes texts alone and tells no document.
"""

import json
from collections.abc import Mapping
from typing import Any

from engine_host.core.outside import json_text
from engine_host.gateway import error_answers as faults
from engine_host.gateway.passage import Passage

_MOST_DOCUMENTS = 10_000


def check(body: dict[str, Any]) -> None:
    """Refuse a request without a question or without texts; raises EndpointError 400."""
    if not isinstance(body.get("query"), str):
        raise faults.invalid("query must be a text.", param="query", code="invalid_type")
    documents = body.get("documents")
    if not isinstance(documents, list) or not documents or any(_text(one) is None for one in documents):
        raise faults.invalid(
            "documents must be a list of texts, or of objects with a text.",
            param="documents",
            code="invalid_type",
        )
    if len(documents) > _MOST_DOCUMENTS:
        raise faults.invalid(f"documents may hold {_MOST_DOCUMENTS} texts.", param="documents")
    top = body.get("top_n")
    if top is not None and (isinstance(top, bool) or not isinstance(top, int) or top < 1):
        raise faults.invalid("top_n must be a whole number from 1.", param="top_n", code="invalid_type")
    if not isinstance(body.get("return_documents"), bool | None):
        raise faults.invalid(
            "return_documents must be true or false.", param="return_documents", code="invalid_type"
        )


def request(body: Mapping[str, Any], model: str) -> dict[str, Any]:
    """Return the request as both engines read it; all texts are scored, and the best are picked here."""
    return {"model": model, "query": body["query"], "documents": [_text(one) for one in body["documents"]]}


class Ranked(Passage):
    """Brings an engine's scores into order, the best first, with as many texts as were asked for."""

    def __init__(self, body: Mapping[str, Any], model: str) -> None:
        self._texts = [_text(one) for one in body["documents"]]
        self._top = body.get("top_n") or len(self._texts)
        self._with_texts = bool(body.get("return_documents"))
        self._model = model

    def convert(self, body: bytes) -> bytes:
        """Return the answer; raises EndpointError 502 for scores of other texts than those."""
        try:
            answer = json_text.parse_object(body)
            scores = [(one["index"], one["relevance_score"]) for one in answer["results"]]
        except (ValueError, TypeError, KeyError) as error:
            raise faults.odd_answer() from error
        for index, score in scores:
            known = isinstance(index, int) and not isinstance(index, bool) and 0 <= index < len(self._texts)
            if not known or not isinstance(score, int | float) or isinstance(score, bool):
                raise faults.odd_answer()
        best = sorted(scores, key=lambda one: one[1], reverse=True)[: self._top]
        usage = answer.get("usage")
        told = {
            "model": self._model,
            "object": "list",
            "results": [self._result(index, score) for index, score in best],
            "usage": usage if isinstance(usage, dict) else {},
        }
        return json.dumps(told).encode()

    def _result(self, index: int, score: float) -> dict[str, Any]:
        text = {"document": {"text": self._texts[index]}} if self._with_texts else {}
        return {"index": index, "relevance_score": score, **text}


def _text(document: object) -> str | None:
    value = document.get("text") if isinstance(document, dict) else document
    return value if isinstance(value, str) else None
