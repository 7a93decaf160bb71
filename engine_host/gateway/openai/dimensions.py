"""Shorten embeddings to the dimensions that a request asks for: llama.cpp leaves that out without a word.

As OpenAI describes it: the first numbers of a vector, brought to length 1. What it costs in quality is a
matter of the model; those trained for it (Matryoshka) lose little.
"""

import base64
import binascii
import json
import math
import struct
from collections.abc import Sequence
from typing import Any

from engine_host.core.outside import json_text
from engine_host.gateway import error_answers as faults
from engine_host.gateway.passage import Passage

_MOST = 1 << 20


def wanted_dimensions(body: dict[str, Any]) -> int | None:
    """Return how many numbers a vector shall have; None where nothing is said. Raises EndpointError 400."""
    wanted = body.get("dimensions")
    if wanted is None:
        return None
    if isinstance(wanted, bool) or not isinstance(wanted, int) or not 1 <= wanted <= _MOST:
        raise faults.invalid("dimensions must be a whole number from 1.", param="dimensions")
    return wanted


class Shortened(Passage):
    """Shortens the vectors of one answer."""

    def __init__(self, dimensions: int) -> None:
        self._dimensions = dimensions

    def convert(self, body: bytes) -> bytes:
        """Return the answer with shorter vectors. Raises EndpointError 400 for a model with fewer, 502."""
        try:
            answer = json_text.parse_object(body)
            for one in answer["data"]:
                one["embedding"] = self._cut(one["embedding"])
        except (ValueError, TypeError, KeyError, binascii.Error, struct.error, OverflowError) as error:
            raise faults.odd_answer() from error
        return json.dumps(answer, separators=(",", ":")).encode()

    def _cut(self, embedding: Any) -> Any:
        if not isinstance(embedding, str):
            return self._shorter(embedding)
        raw = base64.b64decode(embedding, validate=True)
        numbers = self._shorter(struct.unpack(f"<{len(raw) // 4}f", raw))
        return base64.b64encode(struct.pack(f"<{len(numbers)}f", *numbers)).decode()

    def _shorter(self, numbers: Sequence[float]) -> list[float]:
        if len(numbers) < self._dimensions:
            raise faults.invalid(
                f"dimensions is {self._dimensions}, and the vectors of this model have {len(numbers)}.",
                param="dimensions",
            )
        kept = numbers[: self._dimensions]
        length = math.sqrt(sum(number * number for number in kept))
        return [number / length for number in kept] if length else list(kept)
