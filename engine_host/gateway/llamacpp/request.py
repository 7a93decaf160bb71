"""Requests of `/completion` and `/infill`: checked, and made into OpenAI's completion for vLLM."""

from collections.abc import Mapping
from typing import Any

from engine_host.gateway.error_answers import EndpointError, invalid
from engine_host.protocol.errors import Reason

_SAME = (
    "temperature", "top_k", "top_p", "min_p", "presence_penalty", "frequency_penalty", "stop", "ignore_eos",
    "response_format",
)  # fmt: skip
NUMBERS = (
    "n_predict", "temperature", "top_k", "top_p", "min_p", "presence_penalty", "frequency_penalty", "seed",
    "repeat_penalty",
)  # fmt: skip
WHOLE = ("n_predict", "top_k", "seed")
_LARGEST = 1 << 53
_TEXTS = ("input_prefix", "input_suffix", "grammar")


def check_completion(body: dict[str, Any]) -> None:
    """Refuse a completion whose prompt is none; raises EndpointError 400."""
    _check_kinds(body)
    prompt = body.get("prompt")
    listed = (
        isinstance(prompt, list) and bool(prompt) and all(isinstance(one, str | int | list) for one in prompt)
    )
    # A prompt with pictures is an object.
    if not isinstance(prompt, str | dict) and not listed:
        raise invalid("prompt must be a text or a list.", param="prompt", code="invalid_type")


def check_infill(body: dict[str, Any]) -> None:
    """Refuse a gap without its ends; raises EndpointError 400."""
    _check_kinds(body)
    for name in ("input_prefix", "input_suffix"):
        if not isinstance(body.get(name), str):
            raise invalid(f"{name} must be a text.", param=name, code="invalid_type")
    if not isinstance(body.get("prompt", ""), str):
        raise invalid("prompt must be a text.", param="prompt", code="invalid_type")
    extra = body.get("input_extra")
    if extra is not None and not (isinstance(extra, list) and all(map(_is_file, extra))):
        raise invalid(
            "input_extra must be a list of objects with filename and text.",
            param="input_extra",
            code="invalid_type",
        )


def completion(body: Mapping[str, Any], model: str) -> dict[str, Any]:
    """Return OpenAI's completion; raises EndpointError 400 for what vLLM cannot do."""
    made: dict[str, Any] = {"model": model, "stream": bool(body.get("stream")), "prompt": _prompt(body)}
    made |= {name: body[name] for name in _SAME if body.get(name) is not None}
    for name in WHOLE:
        if name in made:
            made[name] = int(made[name])
    length = body.get("n_predict")
    # Until it ends, where nothing or -1 is said; OpenAI's form would stop after 16 tokens.
    made["max_tokens"] = None if length is None or length < 0 else int(length)
    if (seed := body.get("seed")) is not None and seed >= 0:
        made["seed"] = int(seed)
    if body.get("repeat_penalty") is not None:
        made["repetition_penalty"] = body["repeat_penalty"]
    if body.get("json_schema") is not None:
        schema = {"name": "answer", "schema": body["json_schema"]}
        made["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif body.get("grammar"):
        made["structured_outputs"] = {"grammar": body["grammar"]}
    if body.get("n_probs"):
        raise _unable("n_probs", "probabilities in this form; /v1/completions has logprobs")
    return made


def gap(body: Mapping[str, Any], model: str) -> dict[str, Any]:
    """Return OpenAI's completion with a suffix; files beside the text go before it."""
    extra = body.get("input_extra") or ()
    files = "".join(f"{one.get('filename', '')}\n{one['text']}\n\n" for one in extra)
    made = completion({**body, "prompt": files + body["input_prefix"] + (body.get("prompt") or "")}, model)
    return {**made, "suffix": body["input_suffix"]}


def _prompt(body: Mapping[str, Any]) -> Any:
    prompt = body["prompt"]
    if isinstance(prompt, str) or all(isinstance(one, int) and not isinstance(one, bool) for one in prompt):
        return prompt
    if isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], str):
        return prompt[0]
    raise _unable("prompt", "one text or a list of token numbers as prompt, and nothing else")


def _unable(name: str, can: str) -> EndpointError:
    message = f"The engine of this model is vLLM: on this route it takes {can}."
    return EndpointError(400, "unsupported", message, Reason.UNSUPPORTED, name)


def _is_file(value: object) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("text"), str):
        return False
    return isinstance(value.get("filename", ""), str)


def is_number(value: object) -> bool:
    """Return True for a number that every engine reads: no truth value, and none of 400 digits."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _LARGEST


def _check_kinds(body: Mapping[str, Any]) -> None:
    for name in NUMBERS:
        value = body.get(name)
        if value is not None and not is_number(value):
            raise invalid(f"{name} must be a number.", param=name, code="invalid_type")
    for name in _TEXTS:
        if not isinstance(body.get(name), str | None):
            raise invalid(f"{name} must be a text.", param=name, code="invalid_type")
