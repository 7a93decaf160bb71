"""Turns of a chat that no engine takes for something else, or leaves out without a word.

llama.cpp writes a template's "None" where a text is null, and vLLM names classes of its own instead.
"""

from typing import Any

from engine_host.gateway.error_answers import invalid, wrong_type

Message = dict[str, Any]

ROLES = ("system", "developer", "user", "assistant", "tool", "function")
_OF_TEMPLATES = frozenset(
    {"control", "document", "documents", "context", "ipython", "observation", "environment", "tool_response"}
)
"""Roles that no API has and templates of open models read; one may carry a name behind a space."""
_MAY_SAY_NOTHING = frozenset({"assistant", "tool", "function"})
_TEXTS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}
"""Parts that are texts, and their field for it: clients send those of the Responses form too."""
_OTHERS = (
    "image_url", "input_audio", "file", "input_image", "input_video", "input_file", "audio_url", "video_url",
    "image_embeds", "audio_embeds", "thinking", "tool_reference",
)  # fmt: skip
_LONGEST_SHOWN = 40


def check_turns(messages: list[Message]) -> None:
    """Refuse a role, a content or a part that is none; raises EndpointError 400 with its place."""
    for place, message in enumerate(messages):
        where, role = f"messages[{place}]", message["role"]
        check_role(role, f"{where}.role", ROLES, _OF_TEMPLATES)
        check_content(message.get("content"), f"{where}.content", may_be_empty=role in _MAY_SAY_NOTHING)
        for number, part in enumerate(_list(message.get("content"))):
            if not isinstance(part, str):
                check_part(part, f"{where}.content[{number}]", _TEXTS, _OTHERS)
        if role == "tool" and not isinstance(message.get("tool_call_id"), str):
            raise wrong_type(f"{where}.tool_call_id", "the id of the call that the message answers")
        _check_calls(message.get("tool_calls"), f"{where}.tool_calls")


def check_role(
    role: Any, param: str, known: tuple[str, ...], tolerated: frozenset[str] = frozenset()
) -> None:
    """Refuse a role that nothing reads, by the name of its field; raises EndpointError 400."""
    if role in known or (isinstance(role, str) and role.partition(" ")[0] in tolerated):
        return
    raise invalid(
        f"{param} must be one of {', '.join(known)}; it is {str(role)[:_LONGEST_SHOWN]!r}.", param=param
    )


def check_content(content: Any, param: str, *, may_be_empty: bool = False) -> None:
    """Refuse what is neither a text nor a list of parts; `may_be_empty`: nothing at all is one too."""
    if (content is None and may_be_empty) or isinstance(content, str):
        return
    if not isinstance(content, list):
        raise wrong_type(param, "a text or a list of parts")
    if not content and not may_be_empty:
        raise invalid(f"{param} must hold at least one part.", param=param)


def check_part(part: Any, param: str, texts: dict[str, str], others: tuple[str, ...]) -> None:
    """Refuse a part of a type that nothing reads, and a text that is none; raises EndpointError 400."""
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(kind, str):
        raise wrong_type(param, f"an object with a type, as {', '.join(texts)}")
    if kind in texts:
        if not isinstance(part.get(texts[kind]), str):
            raise wrong_type(f"{param}.{texts[kind]}", "a text")
    elif kind not in others:
        raise invalid(
            f"{param}.type must be one of {', '.join((*texts, *others))}; it is {kind[:_LONGEST_SHOWN]!r}.",
            param=f"{param}.type",
        )


def plain(messages: list[Message]) -> list[Message]:
    """Return the messages in words that both engines know, the same list where they are so already.

    A tool that answered with nothing says an empty text, and each part with words is a text.
    """
    made = [_plain(message) for message in messages]
    return messages if all(one is other for one, other in zip(made, messages, strict=True)) else made


def _plain(message: Message) -> Message:
    content = message.get("content")
    if content is None and message.get("role") == "tool":
        return {**message, "content": ""}
    parts = [_as_text(part) for part in _list(content)]
    return {**message, "content": parts} if parts and parts != content else message


def _as_text(part: Any) -> Any:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "text" or not isinstance(kind, str) or kind not in _TEXTS:
        return part
    return {"type": "text", "text": part.get(_TEXTS[kind])}


def _check_calls(calls: Any, param: str) -> None:
    if calls is None:
        return
    if not isinstance(calls, list):
        raise wrong_type(param, "a list of calls")
    for number, call in enumerate(calls):
        function = call.get("function") if isinstance(call, dict) else None
        # One that takes a text (`custom`) has another field.
        if function is None and isinstance(call, dict) and call.get("type") not in (None, "function"):
            continue
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise wrong_type(f"{param}[{number}].function", "an object with a name")


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
