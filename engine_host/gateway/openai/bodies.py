"""Request bodies: read with a limit, parsed, and checked before an engine sees them."""

import json
from collections.abc import Mapping
from typing import Any

from starlette.types import Receive

from engine_host.gateway.access.body_allowance import BodyPart
from engine_host.gateway.error_answers import EndpointError, invalid, wrong_type
from engine_host.gateway.openai.bounds import check_bias, check_bounds, check_stop

_MOST_VALUES = 1_000_000
"""A body of 64 MiB of empty lists would hold up everybody for six seconds, and take 1.4 GB."""
_DEEPEST = 200
"""Levels of lists and objects; schemas of tools have a dozen."""
_BEFORE_VALUES = (b",", b"[", b"{")
_LONGEST_ENCODING = 40
_LONGEST_NUMBER = 18
_NUMBER = (int, float)
TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "model": ((str,), "a text"),
    "stream": ((bool,), "true or false"),
    "stream_options": ((dict,), "an object"),
    "max_tokens": ((int,), "a whole number"),
    "max_completion_tokens": ((int,), "a whole number"),
    "max_output_tokens": ((int,), "a whole number"),
    "n": ((int,), "a whole number"),
    "seed": ((int,), "a whole number"),
    "temperature": (_NUMBER, "a number"),
    "top_p": (_NUMBER, "a number"),
    "presence_penalty": (_NUMBER, "a number"),
    "frequency_penalty": (_NUMBER, "a number"),
    "top_k": (_NUMBER, "a number"),
    "min_p": (_NUMBER, "a number"),
    "repeat_penalty": (_NUMBER, "a number"),
    "repetition_penalty": (_NUMBER, "a number"),
    "top_logprobs": ((int,), "a whole number"),
    "parallel_tool_calls": ((bool,), "true or false"),
    "reasoning_effort": ((str,), "a text"),
    "chat_template_kwargs": ((dict,), "an object"),
    "stop": ((str, list), "a text or a list of texts"),
    "tools": ((list,), "a list"),
    "suffix": ((str,), "a text"),
    "echo": ((bool,), "true or false"),
    "logit_bias": ((dict, list), "an object"),
    "response_format": ((dict,), "an object"),
}


class ClientGoneError(Exception):
    """The client closed its connection before its request was complete."""


async def read_body(receive: Receive, limit: int, held: BodyPart) -> bytes:
    """The whole body, taken from what all may hold.

    Raises EndpointError 413 above `limit` bytes, EndpointError 429, and ClientGoneError.
    """
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        part = message.get("body", b"")
        size += len(part)
        if size > limit:
            raise _too_large(limit)
        held.take(len(part))
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


def check_framing(headers: Mapping[str, str], limit: int) -> None:
    """Refuse by its headers a body that is packed, since a small one can become very large, or is too long.

    Raises EndpointError 415 and 413; nobody is asked to go on (`Expect`) with what is refused in the end.
    """
    coded = headers.get("transfer-encoding", "").lower().removesuffix("chunked").rstrip(", \t")
    for name, encoding in (
        ("Content-Encoding", headers.get("content-encoding", "")),
        ("Transfer-Encoding", coded),
    ):
        if encoding.strip().lower() not in ("", "identity"):
            raise EndpointError(
                415,
                "unsupported_encoding",
                f"The body is packed ({encoding[:_LONGEST_ENCODING]}), and this endpoint unpacks none. "
                f"Send it without {name}, as it is.",
            )
    length = headers.get("content-length", "")
    if length.isdecimal() and (len(length) > _LONGEST_NUMBER or int(length) > limit):
        raise _too_large(limit)


def _too_large(limit: int) -> EndpointError:
    return EndpointError(413, "request_too_large", f"The request is larger than {limit} bytes.")


def parse_body(raw: bytes) -> dict[str, Any]:
    """The JSON object in a body; raises EndpointError 400 that says where it breaks, 413 for too much."""
    if sum(map(raw.count, _BEFORE_VALUES)) > _MOST_VALUES:
        raise EndpointError(413, "request_too_large", f"The request holds more than {_MOST_VALUES} values.")
    try:
        # Python's own reading of bytes guesses UTF-16 too, and lets encoded surrogates pass.
        text = raw.decode("utf-8-sig")
        value = json.loads(text, parse_constant=_refuse_constant)
        if "\\u" in text:
            _check_characters(value)
    except UnicodeDecodeError as error:
        raise invalid("The request is not UTF-8.", code="invalid_json") from error
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise invalid(
            f"The request is not valid JSON: {error.msg} at {where}.", code="invalid_json"
        ) from error
    except RecursionError as error:
        raise invalid("The request is nested too deeply.", code="invalid_json") from error
    except ValueError as error:
        raise invalid("The request holds a number with too many digits.", code="invalid_json") from error
    if not isinstance(value, dict):
        raise invalid("The request must be a JSON object.", code="invalid_json")
    if raw.count(b"[") + raw.count(b"{") > _DEEPEST:
        _check_depth(value)
    _check_types(value)
    check_bounds(value)
    for name in ("stop", "stop_sequences"):
        check_stop(value.get(name), name)
    return value


def _check_depth(value: object) -> None:
    """Refuse more levels than any request has: what walks through it calls itself once or twice a level."""
    level: list[Any] = [value]
    for _ in range(_DEEPEST):
        inner = (one.values() if isinstance(one, dict) else one for one in level)
        level = [part for parts in inner for part in parts if isinstance(part, dict | list)]
        if not level:
            return
    raise invalid(f"The request is nested deeper than {_DEEPEST} levels.", code="invalid_json")


def _refuse_constant(name: str) -> object:
    """Refuse NaN and the infinities, which Python's reader takes and no other."""
    raise invalid(f"The request is not valid JSON: {name} is no number there.", code="invalid_json")


def _check_characters(value: object) -> None:
    """Refuse half characters, which no engine reads; JavaScript writes them for texts cut in an emoji."""
    for name, part in value.items() if isinstance(value, dict) else ():
        try:
            json.dumps({name: part}, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise invalid(
                "The request holds half a character (a lone surrogate, \\ud800 to \\udfff): "
                "cut texts between characters.",
                param=name if name.isascii() else None,
                code="invalid_json",
            ) from error


def _check_types(body: dict[str, Any]) -> None:
    """Refuse wrong types of the fields this endpoint knows; others are the engine's business."""
    for name, (kinds, expected) in TYPES.items():
        value = body.get(name)
        # In Python true is a number; in JSON it is not.
        wrong_bool = isinstance(value, bool) and bool not in kinds
        if value is not None and (wrong_bool or not isinstance(value, kinds)):
            raise invalid(f"{name} must be {expected}.", param=name, code="invalid_type")


def check_chat(body: dict[str, Any]) -> None:
    """Refuse a chat without messages; raises EndpointError 400."""
    messages = body.get("messages")
    if not isinstance(messages, list):
        raise invalid("messages must be a list.", param="messages", code="invalid_type")
    if not messages:
        raise invalid("messages must hold at least one message.", param="messages")
    for place, message in enumerate(messages):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise invalid(
                f"messages[{place}] must be an object with a role.",
                param=f"messages[{place}]",
                code="invalid_type",
            )
    if not isinstance(body.get("logprobs"), bool | None):
        raise wrong_type("logprobs", "true or false")
    check_bias(body.get("logit_bias"))


def check_message(body: dict[str, Any]) -> None:
    """Refuse a request in Anthropic's form without messages or a length; raises EndpointError 400."""
    check_chat(body)
    if body.get("max_tokens") is None:
        raise invalid("max_tokens is missing: say how long the answer may be.", param="max_tokens")


def check_completion(body: dict[str, Any]) -> None:
    """Refuse a completion without a prompt; raises EndpointError 400."""
    if not isinstance(body.get("prompt"), str | list):
        raise invalid("prompt must be a text or a list.", param="prompt", code="invalid_type")
    check_bias(body.get("logit_bias"))
    top = body.get("logprobs")
    if top is not None and (isinstance(top, bool) or not isinstance(top, int)):
        raise invalid("logprobs must be a whole number.", param="logprobs", code="invalid_type")
    if top is not None and top < 0:
        raise invalid("logprobs must be at least 0.", param="logprobs")


def check_responses(body: dict[str, Any]) -> None:
    """Refuse a Responses request without input; raises EndpointError 400."""
    if not isinstance(body.get("input"), str | list):
        raise invalid("input must be a text or a list.", param="input", code="invalid_type")


def check_embeddings(body: dict[str, Any]) -> None:
    """Refuse an embedding without input; raises EndpointError 400."""
    if not isinstance(body.get("input"), str | list):
        raise invalid("input must be a text or a list.", param="input", code="invalid_type")
