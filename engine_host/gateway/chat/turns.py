"""Bring a conversation into the order that every model's template takes.

Agents send several messages of the system, and some of them after the user's. Of 14 real templates five
refuse that, two want user and assistant to take turns, and two drop what stands in between without a word;
which one a model has cannot be seen in its name. So this is done for every model: no template loses by it,
since one system message with two texts reads as two, and a conversation that already has this order, as
those of every chat have, is not touched.
"""

from typing import Any

Message = dict[str, Any]

_SYSTEM = ("system", "developer")
_PLAIN = {"role", "content", "name", "type", "id", "status"}
"""Fields of a message that may become a part of another one."""


def in_order(messages: list[Message], text_type: str = "text") -> list[Message]:
    """Return the messages with one of the system, first, and no two of the user behind each other.

    A later message of the system becomes text of the user, at its place. `text_type` is the type of a part
    with text in this form. The same list where nothing has to change.
    """
    first = next((at for at, one in enumerate(messages) if not is_system(one)), len(messages))
    head, rest = messages[:first], messages[first:]
    folded = [{**one, "role": "user"} if is_system(one) else one for one in rest]
    turns: list[Message] = []
    for one in folded:
        if turns and _joins(turns[-1], one):
            turns[-1] = {**turns[-1], "content": joined(turns[-1]["content"], one["content"], text_type)}
        else:
            turns.append(one)
    if len(head) < 2 and len(turns) == len(rest) and folded == rest:
        return messages
    return [*_one_system(head), *turns]


def is_system(message: Message) -> bool:
    """Return True for a message that the program wrote, not its user."""
    return message.get("role") in _SYSTEM and isinstance(message.get("content"), str | list)


def system_text(content: Any) -> str:
    """Return the text of a system message, which no template takes in another form."""
    if isinstance(content, str):
        return content
    texts = (part.get("text") for part in content if isinstance(part, dict))
    return "\n\n".join(text for text in texts if isinstance(text, str))


def joined(one: Any, other: Any, text_type: str = "text") -> Any:
    """Return two contents, each a text or a list of parts, as one."""
    if isinstance(one, str) and isinstance(other, str):
        return f"{one}\n\n{other}"
    parts, others = _parts(one, text_type), _parts(other, text_type)
    # Many templates put texts together without a sign between them.
    between = (
        [{"type": text_type, "text": "\n\n"}]
        if _ends_with_text(parts) and _ends_with_text(others[:1])
        else []
    )
    return [*parts, *between, *others]


def _one_system(head: list[Message]) -> list[Message]:
    if len(head) < 2:
        return head
    return [{"role": "system", "content": "\n\n".join(system_text(one["content"]) for one in head)}]


def _joins(one: Message, other: Message) -> bool:
    """Return True for two messages of the same user that hold nothing but what they say."""
    return (
        one.get("role") == other.get("role") == "user"
        and one.get("name") == other.get("name")
        and all(
            one_.keys() <= _PLAIN and isinstance(one_.get("content"), str | list) for one_ in (one, other)
        )
    )


def _parts(content: Any, text_type: str) -> list[Any]:
    return [{"type": text_type, "text": content}] if isinstance(content, str) else content


def _ends_with_text(parts: list[Any]) -> bool:
    return bool(parts) and isinstance(parts[-1], dict) and isinstance(parts[-1].get("text"), str)
