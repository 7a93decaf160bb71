"""Make OpenAI's request out of Ollama's: messages, pictures, tools, formats and options."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from engine_host.gateway.directory import Target
from engine_host.gateway.error_answers import invalid, wrong_type
from engine_host.gateway.llamacpp.request import is_number
from engine_host.gateway.modalities import unsupported
from engine_host.gateway.openai.bounds import check_stop

# Name there, name here; None is for llama.cpp and vLLM under different names.
_OPTIONS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "min_p": "min_p",
    "seed": "seed",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "num_predict": "max_tokens",
    "repeat_penalty": "repeat_penalty",
}
_REPETITION_OF_VLLM = "repetition_penalty"
_LEVELS = ("low", "medium", "high")
_PICTURES = {"iVBOR": "png", "/9j/": "jpeg", "R0lGOD": "gif", "UklGR": "webp"}


def is_load(body: Mapping[str, Any]) -> bool:
    """Return True for a request that only has a model loaded or unloaded: it asks nothing."""
    return not body.get("messages") and not body.get("prompt") and not body.get("suffix")


def wants_stream(body: Mapping[str, Any]) -> bool:
    """Return True unless the client says otherwise, which is how Ollama has it."""
    return body.get("stream") is not False


def chat(body: Mapping[str, Any], target: Target) -> dict[str, Any]:
    """Return the chat for one of Ollama's; raises EndpointError 400 for what cannot be carried."""
    made = _common(body, target)
    made |= _logprobs(body)
    made["messages"] = _messages(body["messages"], target)
    if body.get("tools"):
        made["tools"] = body["tools"]
    return made


def chat_of_prompt(body: Mapping[str, Any], target: Target) -> dict[str, Any]:
    """Return the chat for a prompt, which the model's own template surrounds; raises EndpointError 400."""
    messages = [{"role": "system", "content": body["system"]}] if body.get("system") else []
    messages.append({"role": "user", "content": body["prompt"], "images": body.get("images")})
    made = _common(body, target)
    made |= _logprobs(body)
    made["messages"] = _messages(messages, target)
    return made


def completion(body: Mapping[str, Any], target: Target) -> dict[str, Any]:
    """Return the completion for a raw prompt or a gap in a text; raises EndpointError 400."""
    made = _common(body, target)
    for name in ("chat_template_kwargs", "reasoning_effort"):
        made.pop(name, None)
    made["prompt"] = body.get("prompt") or ""
    if body.get("suffix"):
        made["suffix"] = body["suffix"]
    # Ollama goes on until the model ends; OpenAI's form stops after 16 tokens where nothing is said.
    made.setdefault("max_tokens", None if not target.native_infill else -1)
    return made


def embeddings(body: Mapping[str, Any], target: Target) -> dict[str, Any]:
    """Return the request for embeddings."""
    made: dict[str, Any] = {"model": target.engine_name, "input": body.get("input", body.get("prompt"))}
    if body.get("dimensions") is not None:
        made["dimensions"] = body["dimensions"]
    return made


def _common(body: Mapping[str, Any], target: Target) -> dict[str, Any]:
    stream = wants_stream(body)
    made: dict[str, Any] = {"model": target.engine_name, "stream": stream}
    if stream:
        made["stream_options"] = {"include_usage": True}
    made |= _sampling(body.get("options") or {}, target)
    made |= _thinking(body.get("think"))
    wanted = body.get("format")
    if wanted == "json":
        made["response_format"] = {"type": "json_object"}
    elif isinstance(wanted, dict):
        schema = {"name": "answer", "schema": wanted, "strict": True}
        made["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif wanted:
        raise invalid("format must be json or a JSON schema.", param="format")
    return made


def _sampling(options: Mapping[str, Any], target: Target) -> dict[str, Any]:
    """Return the options that say how to write; those that say how to load are the start's business."""
    made: dict[str, Any] = {}
    for name, here in _OPTIONS.items():
        value = options.get(name)
        if value is None:
            continue
        if not is_number(value) and not (name == "seed" and type(value) is int):
            raise wrong_type(f"options.{name}", "a number")
        if name in ("num_predict", "seed", "top_k"):
            value = int(value)
        # 0, -1 and -2 are "until it ends", and a seed below 0 is "any".
        if (name == "num_predict" and value <= 0) or (name == "seed" and value < 0):
            continue
        other = name == "repeat_penalty" and not target.native_infill
        made[_REPETITION_OF_VLLM if other else here] = value
    stop = options.get("stop")
    if stop is not None:
        texts = [stop] if isinstance(stop, str) else stop
        if not isinstance(texts, list) or not all(isinstance(one, str) for one in texts):
            raise invalid("options.stop must be a list of texts.", param="options.stop", code="invalid_type")
        check_stop(texts, "options.stop")
        made["stop"] = texts
    return made


def _logprobs(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is asked of the likelihood of each token, which a chat has in the same words."""
    if not body.get("logprobs"):
        return {}
    most = body.get("top_logprobs") or 0
    if not is_number(most):
        raise invalid("top_logprobs must be a number.", param="top_logprobs", code="invalid_type")
    return {"logprobs": True, "top_logprobs": int(most)}


def _thinking(think: object) -> dict[str, Any]:
    if think is None:
        return {}
    if isinstance(think, str):
        if think not in _LEVELS:
            raise invalid(f"think must be true, false or one of {', '.join(_LEVELS)}.", param="think")
        return {"reasoning_effort": think, "chat_template_kwargs": {"enable_thinking": True}}
    return {"chat_template_kwargs": {"enable_thinking": think}}


def _messages(messages: Iterable[Mapping[str, Any]], target: Target) -> list[dict[str, Any]]:
    """Return OpenAI's messages; calls and their answers get the ids that Ollama does without."""
    made: list[dict[str, Any]] = []
    # Calls that have no answer yet: id and name.
    open_calls: list[tuple[str, str]] = []
    for place, message in enumerate(messages):
        one: dict[str, Any] = {"role": message["role"], "content": _content(message, target)}
        if message.get("thinking"):
            one["reasoning_content"] = message["thinking"]
        if calls := message.get("tool_calls"):
            one["tool_calls"] = [_call(call, f"call_{place}_{number}") for number, call in enumerate(calls)]
            open_calls = [(call["id"], call["function"]["name"]) for call in one["tool_calls"]]
        if message["role"] == "tool":
            one["tool_call_id"] = _answered(open_calls, message.get("tool_name") or message.get("name"))
        made.append(one)
    return made


def _answered(open_calls: list[tuple[str, str]], name: object) -> str:
    """Return the id of the call that a tool answers: the first open one of its name, else the first."""
    for call in open_calls:
        if call[1] == name:
            open_calls.remove(call)
            return call[0]
    return open_calls.pop(0)[0] if open_calls else "call_0"


def _call(call: Mapping[str, Any], number: str) -> dict[str, Any]:
    function = call["function"]
    given = function.get("arguments")
    # Ollama's arguments are an object, OpenAI's the text of one.
    arguments = given if isinstance(given, str) else json.dumps(given or {}, ensure_ascii=False)
    known = call.get("id")
    identity = known if isinstance(known, str) and known else number
    return {
        "id": identity,
        "type": "function",
        "function": {"name": function["name"], "arguments": arguments},
    }


def _content(message: Mapping[str, Any], target: Target) -> Any:
    text = message.get("content") or ""
    images = message.get("images")
    if not images:
        return text
    if not target.images:
        raise unsupported(target, "pictures", "images")
    parts: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    return parts + [{"type": "image_url", "image_url": {"url": _picture(one)}} for one in images]


def _picture(text: str) -> str:
    if text.startswith("data:image/"):
        return text
    kind = next((kind for start, kind in _PICTURES.items() if text.startswith(start)), "png")
    return f"data:image/{kind};base64,{text}"
