"""Ask llama.cpp for a stream where its client is to get a whole answer, and put that together.

Its server looks for the client of a whole answer only after a second in which nothing woke it, so that it
mostly writes to the end for nobody; a stream ends with its client. Asked for as a whole is what a stream does
not tell all of.
"""

import codecs
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from engine_host.core import sse
from engine_host.core.outside import json_text
from engine_host.gateway import error_answers as faults
from engine_host.gateway.call import Call
from engine_host.gateway.directory import Target
from engine_host.gateway.gathering import agents, chats, native

# Of a field that stands there twice llama.cpp takes the last. While it reads a prompt it looks for the client
# where it has something to tell.
_STREAMED = b',"stream":true,"stream_options":{"include_usage":true},"return_progress":true}'


@dataclass(frozen=True)
class _Form:
    """A form of answers: whether a stream tells all of one to such a request, and what it tells, together."""

    tells_all: Callable[[dict[str, Any]], bool]
    gathered: Callable[[Iterator[dict[str, Any]], dict[str, Any]], dict[str, Any]]


_FORMS = {
    "/v1/chat/completions": _Form(chats.tells_all, chats.gathered),
    "/v1/completions": _Form(chats.tells_all_of_text, chats.gathered),
    "/v1/responses": _Form(agents.tells_all, agents.response),
    "/v1/messages": _Form(agents.tells_all, agents.message),
    "/completion": _Form(native.tells_all, native.gathered),
    "/infill": _Form(native.tells_all, native.gathered),
}


class ToldError(Exception):
    """An error in the midst of a stream, as the engine would have answered: `status`, and `body`."""

    def __init__(self, told: dict[str, Any]) -> None:
        super().__init__("the engine told an error")
        code = told["error"].get("code") if isinstance(told["error"], dict) else None
        self.status = code if isinstance(code, int) and 400 <= code < 600 else 500
        self.body = json.dumps(told, ensure_ascii=False).encode()


def in_pieces(call: Call, target: Target) -> Call:
    """Return the call that asks for a stream and gathers it; the same one where a whole answer tells more."""
    form = _FORMS.get(call.path)
    if call.stream or form is None or not target.native_infill or call.gather is not None:
        return call
    try:
        body = json_text.parse_object(call.body.removeprefix(codecs.BOM_UTF8))
    except ValueError:
        # A number that is none, such as 1e400: the engine says what it thinks of it.
        return call
    if not body or not form.tells_all(body):
        return call
    raw = call.body.rstrip().removesuffix(b"}") + _STREAMED
    return replace(call, body=raw, gather=partial(gathered, form.gathered, body))


def gathered(
    form: Callable[[Iterator[dict[str, Any]], dict[str, Any]], dict[str, Any]],
    body: dict[str, Any],
    stream: bytes,
) -> bytes:
    """Return the answer that a stream tells, or a whole one as it is; raises EndpointError, ToldError."""
    if stream.startswith(b"{"):
        return stream
    try:
        whole = form(_told(stream), body)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise faults.odd_answer() from error
    return json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode()


def _told(stream: bytes) -> Iterator[dict[str, Any]]:
    for data in sse.payloads(stream):
        if data in (sse.DONE.encode(), b"null"):
            continue
        told = json_text.parse_object(data)
        if told.get("error"):
            raise ToldError(told)
        if "prompt_progress" not in told:
            yield told
