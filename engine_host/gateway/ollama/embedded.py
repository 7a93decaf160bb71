"""Ollama's embeddings: the newer answer with a list of vectors, the older one with one."""

import json
import time

from engine_host.core.outside import json_text
from engine_host.gateway import error_answers as faults
from engine_host.gateway.passage import Passage

_MOST_VALUES = 20_000_000


class OllamaVectors(Passage):
    """Turns OpenAI's embeddings into Ollama's; `single` is the older form."""

    form = faults.Form.OLLAMA

    def __init__(self, model: str, *, single: bool) -> None:
        self._model = model
        self._single = single
        self._began = time.monotonic()

    def convert(self, body: bytes) -> bytes:
        """Return the answer; raises EndpointError 502."""
        try:
            answer = json_text.parse_object(body, _MOST_VALUES)
            vectors = [one["embedding"] for one in answer["data"]]
            count = answer.get("usage", {}).get("prompt_tokens", 0)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise faults.odd_answer() from error
        if self._single:
            return json.dumps({"embedding": vectors[0] if vectors else []}).encode()
        told = {
            "model": self._model,
            "embeddings": vectors,
            "total_duration": int((time.monotonic() - self._began) * 1e9),
            "load_duration": 0,
            "prompt_eval_count": count,
        }
        return json.dumps(told).encode()
