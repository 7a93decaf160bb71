"""llama.cpp's own answer to a completion as a whole, out of a stream."""

from collections.abc import Iterator
from typing import Any

from engine_host.gateway.openai.several import is_one

_PROBABILITIES = "completion_probabilities"


def tells_all(body: dict[str, Any]) -> bool:
    """Return True where a stream has all that a whole answer has, in one place.

    Of a text that ends one it has the probabilities, which a whole answer leaves out.
    """
    return is_one(body) and not (body.get("n_probs") and body.get("stop")) and not body.get("response_fields")


def gathered(told: Iterator[dict[str, Any]], body: dict[str, Any]) -> dict[str, Any]:
    """Return the answer that a stream tells in pieces, the last of which has all but what is written.

    Raises ValueError, TypeError, KeyError.
    """
    text = ""
    tokens: list[int] = []
    probabilities: list[Any] = []
    for piece in told:
        text += piece["content"]
        tokens += piece.get("tokens") or ()
        probabilities += piece.get(_PROBABILITIES) or ()
        if piece["stop"]:
            if "generation_settings" in piece:
                piece["generation_settings"]["stream"] = False
            whole = {**piece, "content": text, "tokens": tokens if body.get("return_tokens") else []}
            return {**whole, _PROBABILITIES: probabilities} if probabilities else whole
    raise ValueError("no end")
