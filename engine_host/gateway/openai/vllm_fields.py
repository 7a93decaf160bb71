"""Fields of a chat or a completion as vLLM takes them, where OpenAI or llama.cpp take more."""

from typing import Any

from engine_host.gateway.error_answers import invalid

_NEVER = -100
"""OpenAI's least bias, which bans a token as llama.cpp's `false` does."""


def as_vllm_reads(body: dict[str, Any]) -> dict[str, Any]:
    """Return the request without fields that are null, and its biases as an object; else the same one.

    Raises EndpointError 400 for a bias of a word, whose tokens only llama.cpp looks up by itself.
    """
    if any(value is None for value in body.values()):
        body = {name: value for name, value in body.items() if value is not None}
    biases = body.get("logit_bias")
    if isinstance(biases, dict) and False not in map(_is_given, biases.values()):
        return body
    if not isinstance(biases, dict | list):
        return body
    pairs = list(biases.items()) if isinstance(biases, dict) else biases
    return {
        **body,
        "logit_bias": {_token(token): bias if _is_given(bias) else _NEVER for token, bias in pairs},
    }


def _is_given(bias: object) -> bool:
    return bias is not False


def _token(token: object) -> str:
    if isinstance(token, str) and not token.isdecimal():
        raise invalid(
            f"logit_bias names the word {token[:40]!r}; vLLM takes numbers of tokens alone, which /tokenize "
            "tells.",
            param="logit_bias",
        )
    return str(token)
