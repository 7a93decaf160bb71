"""Documents in Anthropic's form, as the text that is in them: engines leave out the blocks without a word."""

from typing import Any

from engine_host.gateway import error_answers as faults
from engine_host.protocol.errors import Reason


def as_text(block: Any, where: str) -> Any:
    """Return a block with the text of a document, or any other block as it is.

    `where` names the block's message. Raises EndpointError 400 for a document that is no text.
    """
    kind = block.get("type") if isinstance(block, dict) else None
    if kind == "document":
        return {"type": "text", "text": _titled(block, _text_of(block.get("source"), where))}
    if kind == "search_result":
        return {"type": "text", "text": _titled(block, _texts(block.get("content")))}
    return block


def found_elsewhere(block: dict[str, Any]) -> dict[str, Any] | None:
    """Return the text of what a tool of Anthropic's servers found; None where all is sealed."""
    content = block.get("content")
    found = content if isinstance(content, list) else [content]
    lines = (
        _titled(one, str(one.get("text") or one.get("url") or "")) for one in found if isinstance(one, dict)
    )
    text = "\n".join(line for line in lines if line.strip())
    return {"type": "text", "text": text} if text else None


def _text_of(source: Any, where: str) -> str:
    kind = source.get("type") if isinstance(source, dict) else None
    if kind == "text" and isinstance(source.get("data"), str):
        return str(source["data"])
    if kind == "content":
        content = source.get("content")
        return content if isinstance(content, str) else _texts(content)
    media = source.get("media_type") if isinstance(source, dict) else None
    raise faults.EndpointError(
        400,
        "unsupported",
        f"{where} holds a document ({str(media or kind)[:100]}) that is no text; no engine here reads it. "
        "Send its text: a source of type text.",
        Reason.UNSUPPORTED,
        where,
    )


def _texts(blocks: Any) -> str:
    found = (one.get("text") for one in blocks if isinstance(one, dict)) if isinstance(blocks, list) else ()
    return "\n".join(text for text in found if isinstance(text, str))


def _titled(block: dict[str, Any], text: str) -> str:
    """The text below what the block says of it."""
    heads = (block.get(name) for name in ("title", "source", "context"))
    lines = [head for head in heads if isinstance(head, str) and head]
    return "\n".join([*lines, text])
