"""Repairs of a Responses request: for every model's template, and for what each engine does not read."""

from typing import Any

from engine_host.gateway import error_answers as faults
from engine_host.gateway.chat.tools import only
from engine_host.gateway.chat.turns import in_order, is_system, system_text
from engine_host.gateway.responses.items import known_items
from engine_host.gateway.responses.namespaces import flat_call, flat_tools
from engine_host.protocol.errors import Reason

_LOGPROBS = "message.output_text.logprobs"
_KEPT_ELSEWHERE = ("previous_response_id", "conversation")


def repaired(body: dict[str, Any], *, for_llamacpp: bool) -> dict[str, Any]:
    """Return the request as its engine reads it.

    Raises EndpointError 400 for what it cannot carry: an earlier answer, or a tool that is not there.
    """
    for name in _KEPT_ELSEWHERE:
        if body.get(name):
            raise faults.EndpointError(
                400,
                "unsupported",
                f"This endpoint keeps no answers, so it cannot go on from {name}. Send the whole "
                "conversation as input.",
                Reason.UNSUPPORTED,
                name,
            )
    if body.get("prompt"):
        raise faults.EndpointError(
            400,
            "unsupported",
            "This endpoint keeps no prompts, so it cannot know the one that prompt names. Send its text as "
            "instructions.",
            Reason.UNSUPPORTED,
            "prompt",
        )
    # The answer is told while it is made, on both engines; vLLM refuses to keep one for later.
    body = {name: value for name, value in body.items() if name != "background"}
    if for_llamacpp:
        body = _without_logprobs(body)
    # To both engines a field that is null is one of a wrong type.
    body = {name: value for name, value in body.items() if value is not None}
    items = body.get("input")
    if isinstance(items, list):
        items = known_items(items, custom_calls=not for_llamacpp)
    body |= _conversation(body, items)
    if for_llamacpp:
        body |= _format(body)
        if isinstance(body.get("tools"), list):
            body["tools"] = flat_tools(body["tools"])
    elif isinstance(body.get("tools"), list):
        body["tools"] = [_as_vllm_reads(tool) for tool in body["tools"]]
    return _chosen(body, for_llamacpp=for_llamacpp)


def _without_logprobs(body: dict[str, Any]) -> dict[str, Any]:
    """Leave out that none are wanted. Raises EndpointError 400 for a request that wants some."""
    included = body.get("include")
    wanted = isinstance(included, list) and _LOGPROBS in included
    if not wanted and not body.get("top_logprobs"):
        return {name: value for name, value in body.items() if name != "top_logprobs"}
    raise faults.EndpointError(
        400,
        "unsupported",
        "Log probabilities are not in an answer of /v1/responses here. Ask /v1/chat/completions, with "
        "logprobs and top_logprobs.",
        Reason.UNSUPPORTED,
        "include" if wanted else "top_logprobs",
    )


def _as_vllm_reads(tool: Any) -> Any:
    """A tool that vLLM refuses: a text with a grammar, such as Codex's patches, or a group without words."""
    if not isinstance(tool, dict):
        return tool
    if tool.get("type") == "namespace" and not isinstance(tool.get("description"), str):
        return {**tool, "description": ""}
    if tool.get("type") != "custom":
        return tool
    return {name: value for name, value in tool.items() if name != "format"}


def _conversation(body: dict[str, Any], items: Any) -> dict[str, Any]:
    """The instructions with what the program says first, and the turns after them in order."""
    if not isinstance(items, list):
        return {}
    first = next(
        (at for at, item in enumerate(items) if not (isinstance(item, dict) and is_system(item))), len(items)
    )
    told: dict[str, Any] = {}
    if first:
        said = [body["instructions"]] if isinstance(body.get("instructions"), str) else []
        told = {
            "instructions": "\n\n".join([*said, *(system_text(item["content"]) for item in items[:first])])
        }
    rest: list[Any] = items[first:] if first else items
    if all(isinstance(item, dict) for item in rest):
        rest = in_order(rest, "input_text")
    return {**told, "input": rest}


def _format(body: dict[str, Any]) -> dict[str, Any]:
    """The format of the answer, where a chat has it: the engine does not look at `text`."""
    text = body.get("text")
    wanted = text.get("format") if isinstance(text, dict) else None
    if not isinstance(wanted, dict) or wanted.get("type") in (None, "text"):
        return {}
    if wanted.get("type") != "json_schema":
        return {"response_format": wanted}
    schema = {name: value for name, value in wanted.items() if name != "type"}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


def _chosen(body: dict[str, Any], *, for_llamacpp: bool) -> dict[str, Any]:
    """Keep the tools that may be called, and say whether one has to be."""
    choice = body.get("tool_choice")
    mode: Any = choice
    if isinstance(choice, dict):
        names: list[Any] = [flat_call(choice).get("name")]
        mode = "required"
        if choice.get("type") == "allowed_tools":
            allowed = choice.get("tools")
            listed = flat_tools(allowed) if isinstance(allowed, list) else []
            names = [_name(tool) for tool in listed if not _is_of_server(tool)]
            mode = choice.get("mode", "auto")
        elif not for_llamacpp:
            return body
        elif choice.get("type") not in ("function", "custom"):
            raise faults.EndpointError(
                400,
                "unsupported",
                f"tool_choice asks for {str(choice.get('type'))[:100]!r}, a tool of OpenAI's servers. Here "
                "are the functions of the request alone.",
                Reason.UNSUPPORTED,
                "tool_choice",
            )
        body = {**body, "tools": only(body.get("tools"), names, _name), "tool_choice": mode}
        if choice.get("type") != "allowed_tools":
            # One call of it is meant; the engine would let a model call it again and again.
            body["parallel_tool_calls"] = False
    if mode == "required" and not body.get("tools"):
        raise faults.invalid("tool_choice is required, and the request has no tools.", param="tool_choice")
    if mode == "required" and for_llamacpp and not any(map(_is_function, body["tools"])):
        # It passes over the others, and a client that has one called waits for a call.
        raise faults.invalid(
            "tool_choice is required, and no tool of this request is a function; llama.cpp calls no other.",
            param="tool_choice",
        )
    if mode == "none":
        # llama.cpp lets a call be written as text, and vLLM answers with nothing.
        return {name: value for name, value in body.items() if name not in ("tools", "tool_choice")}
    if mode == "required" and for_llamacpp:
        # The engine would write the format and call nothing.
        body = {name: value for name, value in body.items() if name != "response_format"}
    return body


def _name(tool: Any) -> Any:
    return tool.get("name") if isinstance(tool, dict) else None


def _is_of_server(tool: Any) -> bool:
    """Return True for a tool that OpenAI's servers carry out: engines pass over it among the tools, too."""
    return isinstance(tool, dict) and tool.get("type", "function") not in ("function", "custom")


def _is_function(tool: Any) -> bool:
    return not isinstance(tool, dict) or tool.get("type") == "function"
