"""`/tokenize`, `/detokenize` and `/apply-template`, whichever engine's form a client writes.

Source: tools/server/README.md of llama.cpp, and vllm/entrypoints/serve/tokenize/protocol.py.
"""

from collections.abc import Mapping
from typing import Any

from engine_host.gateway import error_answers as faults
from engine_host.gateway.chat.request import check, repaired
from engine_host.gateway.directory import Target
from engine_host.gateway.tokens.ask import ask
from engine_host.protocol.errors import Reason

# A template of the client's own is a program for the engine; none is passed on.
_OF_TEMPLATES = (
    "messages",
    "tools",
    "add_generation_prompt",
    "chat_template_kwargs",
    "continue_final_message",
)


async def tokenize(target: Target, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tokens of a text or of messages, in the form of the request. Raises EndpointError."""
    _check_tokenizer(target)
    in_pieces = bool(body.get("with_pieces") or body.get("return_token_strs"))
    if target.native_infill:
        found = await _of_llamacpp(target, body, in_pieces)
    else:
        found = await _of_vllm(target, body, in_pieces)
    numbers = [number for number, _ in found]
    if "content" in body:
        if not in_pieces:
            return {"tokens": numbers}
        return {"tokens": [{"id": number, "piece": piece} for number, piece in found]}
    pieces = [_text(piece) for _, piece in found] if in_pieces else None
    return {"count": len(found), "max_model_len": target.context, "tokens": numbers, "token_strs": pieces}


async def detokenize(target: Target, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the text of tokens, under both engines' names. Raises EndpointError."""
    _check_tokenizer(target)
    text = await _written(target, body["tokens"])
    return {"content": text, "prompt": text}


async def apply_template(target: Target, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the prompt that a chat becomes. Raises EndpointError."""
    _check_tokenizer(target)
    chat = _chat(target, body)
    if target.native_infill:
        return {"prompt": _string(await ask(target, "/apply-template", chat), "prompt")}
    found = await _of_vllm(target, chat, in_pieces=False)
    return {"prompt": await _written(target, [number for number, _ in found])}


async def _of_llamacpp(target: Target, body: Mapping[str, Any], in_pieces: bool) -> list[tuple[int, Any]]:
    if "messages" in body:
        text: Any = (await apply_template(target, body))["prompt"]
        special = True
    else:
        text = body["content"] if "content" in body else body["prompt"]
        # Left out, it is no in llama.cpp's form and yes in vLLM's.
        special = bool(body.get("add_special", False)) if "content" in body else True
    if isinstance(body.get("add_special_tokens"), bool):
        special = body["add_special_tokens"]
    question = {
        "content": text,
        "add_special": special,
        "parse_special": body.get("parse_special") is not False,
        "with_pieces": in_pieces,
    }
    tokens = (await ask(target, "/tokenize", question)).get("tokens")
    if not isinstance(tokens, list):
        raise faults.odd_answer()
    return [_piece(one) if in_pieces else (_number(one), None) for one in tokens]


async def _of_vllm(target: Target, body: Mapping[str, Any], in_pieces: bool) -> list[tuple[int, Any]]:
    question: dict[str, Any] = {"model": target.engine_name, "return_token_strs": in_pieces}
    if "messages" in body:
        question |= _chat(target, body)
        question["add_special_tokens"] = bool(body.get("add_special_tokens"))
    else:
        text = body["content"] if "content" in body else body["prompt"]
        if not isinstance(text, str):
            raise faults.invalid(
                f"The engine of {target.name} takes one text here, and no token numbers.", param="content"
            )
        named = body.get("add_special" if "content" in body else "add_special_tokens")
        question |= {"prompt": text, "add_special_tokens": "content" not in body if named is None else named}
    answer = await ask(target, "/tokenize", question)
    tokens, pieces = answer.get("tokens"), answer.get("token_strs")
    if not isinstance(tokens, list) or (in_pieces and not isinstance(pieces, list)):
        raise faults.odd_answer()
    known = pieces if in_pieces and isinstance(pieces, list) else [None] * len(tokens)
    if len(known) != len(tokens):
        raise faults.odd_answer()
    return [(_number(token), piece) for token, piece in zip(tokens, known, strict=True)]


def _chat(target: Target, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a template reads of a request, with the repairs of a chat."""
    chat = {name: body[name] for name in _OF_TEMPLATES if body.get(name) is not None}
    check(chat)
    return repaired(chat, for_llamacpp=target.native_infill)


async def _written(target: Target, tokens: list[int]) -> str:
    if target.native_infill:
        return _string(await ask(target, "/detokenize", {"tokens": tokens}), "content")
    return _string(
        await ask(target, "/detokenize", {"model": target.engine_name, "tokens": tokens}), "prompt"
    )


def _check_tokenizer(target: Target) -> None:
    if target.tokens_only:
        raise faults.EndpointError(
            400, "tokenizer_missing", f"{target.name} has no tokenizer.", Reason.UNSUPPORTED
        )


def _piece(value: object) -> tuple[int, Any]:
    """Return one token of llama.cpp with its piece: a text, or bytes where it is no text by itself."""
    if not isinstance(value, dict) or not isinstance(value.get("piece"), str | list):
        raise faults.odd_answer()
    return _number(value.get("id")), value["piece"]


def _text(piece: object) -> str:
    if isinstance(piece, str):
        return piece
    known = isinstance(piece, list) and all(isinstance(one, int) and 0 <= one < 256 for one in piece)
    return bytes(piece).decode("utf-8", "replace") if known and isinstance(piece, list) else ""


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise faults.odd_answer()
    return value


def _string(answer: Mapping[str, Any], name: str) -> str:
    value = answer.get(name)
    if not isinstance(value, str):
        raise faults.odd_answer()
    return value
