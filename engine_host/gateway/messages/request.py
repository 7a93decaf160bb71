"""Repairs of a Messages request: for every model's template, and for llama.cpp, which makes a chat of it."""

from itertools import groupby
from typing import Any

from engine_host.gateway import error_answers as faults
from engine_host.gateway.chat.tools import only
from engine_host.gateway.chat.turns import in_order, is_system, system_text
from engine_host.gateway.messages.checked import RESULTS
from engine_host.gateway.messages.documents import as_text, found_elsewhere

Block = dict[str, Any]

# The thinking that a client leaves to the model; budgets are for engines that have them.
_FIELDS_OF_OTHERS = ("context_management", "mcp_servers", "container")
# vLLM refuses them, llama.cpp leaves them out.
_SERVERS_WORK = ("server_tool_use", "mcp_tool_use", "container_upload", "compaction")


def repaired(body: dict[str, Any], *, for_llamacpp: bool) -> dict[str, Any]:
    """Return the request as its engine reads it.

    Raises EndpointError 400 for what no engine here reads (a PDF), and for a choice of a tool that is not
    there, or is carried out elsewhere.
    """
    body = {
        name: value for name, value in body.items() if name not in _FIELDS_OF_OTHERS and value is not None
    }
    body |= _conversation(body, for_llamacpp=for_llamacpp)
    tools = body.get("tools")
    if isinstance(tools, list):
        body["tools"] = [tool for tool in tools if not _is_of_server(tool)]
    return _chosen(body, for_llamacpp=for_llamacpp)


def _conversation(body: dict[str, Any], *, for_llamacpp: bool) -> dict[str, Any]:
    """The system's text with what the program says first, and the turns after it in order."""
    messages = [_message(message, place) for place, message in enumerate(body["messages"])]
    first = next((at for at, one in enumerate(messages) if not is_system(one)), len(messages))
    told: dict[str, Any] = {}
    if first:
        before = body.get("system")
        said = [system_text(before)] if isinstance(before, str | list) else []
        said += [system_text(one["content"]) for one in messages[:first]]
        told = {"system": "\n\n".join(said)}
    turns = in_order(messages[first:])
    if for_llamacpp:
        turns = [part for turn in turns for part in _answers_first(turn)]
    return {**told, "messages": turns}


def _message(message: dict[str, Any], place: int) -> dict[str, Any]:
    """A message whose documents are texts, without what tools of Anthropic's servers were asked."""
    content = message.get("content")
    if not isinstance(content, list):
        return message
    read = (_block(block, f"messages[{place}]") for block in content)
    blocks = [block for block in read if block is not None]
    # A turn that was nothing else stays one: the user's are on both sides of it.
    return {**message, "content": blocks or ([{"type": "text", "text": ""}] if content else [])}


def _block(block: Any, where: str) -> Any:
    if not isinstance(block, dict):
        return block
    kind = block.get("type")
    if kind in _SERVERS_WORK:
        return None
    if isinstance(kind, str) and kind.endswith(RESULTS):
        return found_elsewhere(block)
    if kind == "tool_result" and isinstance(block.get("content"), list):
        return {**block, "content": [as_text(one, where) for one in block["content"]]}
    return as_text(block, where)


def _answers_first(message: dict[str, Any]) -> list[dict[str, Any]]:
    """Split a message into the answers of tools and what the user says, each in its place.

    llama.cpp puts what the user says before the answers, and so between a call and its answer.
    """
    content = message.get("content")
    if message.get("role") != "user" or not isinstance(content, list):
        return [message]
    parts = [list(run) for _, run in groupby(content, _is_answer)]
    return [{**message, "content": part} for part in parts] if len(parts) > 1 else [message]


def _is_answer(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == "tool_result"


def _is_of_server(tool: Any) -> bool:
    """Return True for a tool that Anthropic's servers carry out, or that says nothing of its arguments."""
    return isinstance(tool, dict) and tool.get("type") not in (None, "custom") and "input_schema" not in tool


def _chosen(body: dict[str, Any], *, for_llamacpp: bool) -> dict[str, Any]:
    """Keep the tools that may be called.

    llama.cpp takes `none` for `auto`, and a name for `any`; of vLLM a model that calls a tool all the same
    answers with nothing.
    """
    choice = body.get("tool_choice")
    kind = choice.get("type") if isinstance(choice, dict) else None
    if kind == "none":
        return {name: value for name, value in body.items() if name not in {"tools", "tool_choice"}}
    if kind in ("any", "tool") and body.get("tools") == []:
        # They were there, and a client that has one called waits for a call.
        raise faults.invalid(
            f"tool_choice is {kind}, and Anthropic's servers alone carry out the tools of this request. Give "
            "one with an input_schema, or leave the choice to the model.",
            param="tool_choice",
        )
    if kind == "tool" and isinstance(choice, dict) and for_llamacpp:
        tools = only(body.get("tools"), [choice.get("name")], _name)
        # One call of it is meant; the engine would let a model call it again and again.
        return {**body, "tools": tools, "tool_choice": {"type": "any", "disable_parallel_tool_use": True}}
    return body


def _name(tool: Any) -> Any:
    return tool.get("name") if isinstance(tool, dict) else None
