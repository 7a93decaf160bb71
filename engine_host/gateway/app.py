"""The public OpenAI endpoint: routes, checks, and one exchange for each request."""

import asyncio
import json
import logging
import secrets
import shlex
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from engine_host.gateway import error_answers as faults
from engine_host.gateway.access.admission import Admission
from engine_host.gateway.access.authentication import check_host, check_key, check_origin, check_preflight
from engine_host.gateway.access.body_allowance import BodyAllowance, BodyPart
from engine_host.gateway.access.cross_origin import answer_preflight, is_preflight, readable_by
from engine_host.gateway.directory import ActivityHook, Directory, Target
from engine_host.gateway.exchange import Call, Exchange, Stop, send_fault, send_json
from engine_host.gateway.openai.bodies import (
    ClientGoneError,
    check_chat,
    check_completion,
    check_embeddings,
    check_message,
    check_responses,
    parse_body,
    read_body,
)
from engine_host.gateway.openai.completion_logprobs import CompletionLogprobs
from engine_host.gateway.openai.infill import InfillAnswer, infill_request, prompt_with_tokens, wants_infill
from engine_host.gateway.openai.listing import find, model_entry, model_list
from engine_host.gateway.openai.usage import UsageFilter, asks_for_usage, with_usage
from engine_host.gateway.request_log import Publish, RequestLog
from engine_host.protocol.errors import Reason

_log = logging.getLogger(__name__)

_Answer = Callable[[Send], Awaitable[None]]
"""Sends a whole answer; nothing of it was sent before, so that an error can still take its place."""

_MODEL_PREFIX = "/v1/models/"
_CLOSE_GRACES = 5
"""How many times a client's farewell the end of all requests may take."""

_POSTS = {
    "/v1/chat/completions": check_chat,
    "/v1/completions": check_completion,
    "/v1/embeddings": check_embeddings,
    "/v1/responses": check_responses,
    "/v1/messages": check_message,
    "/v1/messages/count_tokens": check_chat,
}
# OpenAI's newer form and Anthropic's, which agents speak; passed on to engines that know them.
_AGENT_ROUTES = {"/v1/responses", "/v1/messages", "/v1/messages/count_tokens"}
_GETS = {"/v1/models", "/health"}
# llama.cpp reads messages, tools, schemas and pictures for it as for an answer.
_READER = "/apply-template"


@dataclass(frozen=True)
class Limits:
    """Bounds of the endpoint: bytes of a request, of all requests at a time, and of a whole answer; waiting
    requests of an engine; intervals in seconds.

    `farewell`: seconds that a client has to take the last words of a request that was ended from outside.
    """

    body: int = 64 << 20
    bodies: int = 512 << 20
    answer: int = 64 << 20
    queue: int = 64
    ping: float = 15.0
    waiting_note: float = 5.0
    close_grace: float = 1.0


class Gateway:
    """The endpoint over the engines of a directory.

    `publish` takes every event; `keys` and `allowed_hosts` are asked at each request, so a change of the
    settings holds at once. `app` is for the network, `trusted_app` for the control socket, which has its own
    token and no `Host` worth checking. Lives on one event loop.
    """

    def __init__(
        self,
        directory: Directory,
        publish: Publish,
        keys: Callable[[], frozenset[str]] = frozenset,
        allowed_hosts: Callable[[], frozenset[str]] = frozenset,
        limits: Limits | None = None,
        on_activity: ActivityHook | None = None,
    ) -> None:
        self._directory = directory
        self._keys = keys
        self._allowed_hosts = allowed_hosts
        self._limits = limits or Limits()
        self._admission = Admission(self._limits.queue, on_activity)
        self._bodies = BodyAllowance(self._limits.bodies)
        self._exchanges: set[Exchange] = set()
        self._closing = False
        self._none_left = asyncio.Event()
        self._none_left.set()
        self.app: ASGIApp = _App(self._serve, trusted=False)
        self.trusted_app: ASGIApp = _App(self._serve, trusted=True)
        self.request_log = RequestLog(publish, self._admission.active, self._admission.waiting)

    async def drain(self, engine_id: str, timeout: float) -> bool:
        """Admit nothing new to this engine, wait for its requests; True if all ended within `timeout` s."""
        return await self._admission.drain(engine_id, timeout)

    def set_queue_limit(self, requests: int) -> None:
        """Set the number of requests that may wait for an engine; those that wait already stay."""
        self._admission.queue_limit = requests

    def forget(self, engine_id: str) -> None:
        """Drop the admission state of an engine that has ended."""
        self._admission.forget(engine_id)

    async def aclose(self) -> None:
        """Take no more requests, end every one with an error that says so, and wait until all are gone."""
        self._closing = True
        for exchange in list(self._exchanges):
            exchange.stop(Stop.CLOSING)
        try:
            # Each gives its client up by itself; the host ends even if one does not.
            async with asyncio.timeout(_CLOSE_GRACES * self._limits.close_grace):
                await self._none_left.wait()
        except TimeoutError:
            _log.warning("%d requests did not end; the host ends without them.", len(self._exchanges))

    async def _serve(self, scope: Scope, receive: Receive, send: Send, trusted: bool) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"the endpoint speaks http, not {scope['type']}")
        request_id = "req_" + secrets.token_hex(12)
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        answer: _Answer
        try:
            if not trusted:
                allowed, keys = self._allowed_hosts(), self._keys()
                check_host(headers.get("host"), allowed, has_keys=bool(keys))
                page = check_origin(headers.get("origin"), allowed)
                if is_preflight(scope["method"], headers):
                    check_preflight(page, headers.get("origin"))
                    await answer_preflight(send, headers)
                    return
                if page is not None:
                    send = readable_by(send, page)
                # Who asks whether this is alive (a container, a proxy) has no key, and learns nothing else.
                if _path(scope) == "/health" and not _has_key(headers, keys):
                    answer = partial(send_json, status=200, body=b'{"status": "ok"}', request_id=request_id)
                    await answer(send)
                    return
                check_key(headers, keys)
            answer = await self._route(scope, headers, receive, request_id)
        except faults.EndpointError as fault:
            form = faults.form_of(_path(scope))
            answer = partial(send_fault, fault=fault, request_id=request_id, form=form)
        except ClientGoneError:
            return
        except Exception:  # noqa: BLE001
            # Anybody's bytes come in here: what nobody foresaw still gets an error that SDKs read.
            _log.exception("%s %r (%s) could not be read", scope["method"], _path(scope), request_id)
            form = faults.form_of(_path(scope))
            answer = partial(send_fault, fault=faults.internal(), request_id=request_id, form=form)
        await answer(send)

    async def _route(
        self, scope: Scope, headers: Mapping[str, str], receive: Receive, request_id: str
    ) -> _Answer:
        """Return the handler that answers a request; raises EndpointError for one that is refused."""
        path = _path(scope)
        method = scope["method"]
        if path in _POSTS:
            _need(method, path, "POST")
            return await self._ask(path, headers, receive, request_id)
        if path not in _GETS and not (path.startswith(_MODEL_PREFIX) and path != _MODEL_PREFIX):
            raise _not_found(path)
        _need(method, path, "GET", "HEAD")
        return partial(
            send_json, status=200, body=json.dumps(self._read(path)).encode(), request_id=request_id
        )

    def _read(self, path: str) -> dict[str, Any]:
        """The answer of a GET route; raises EndpointError for an unknown model."""
        targets = self._directory.targets()
        if path == "/health":
            starting = list(self._directory.starting())
            status = "ok" if targets else "starting" if starting else "no_engine_runs"
            return {"status": status, "models": [target.name for target in targets], "starting": starting}
        if path == "/v1/models":
            return model_list(targets)
        return model_entry(find(targets, path.removeprefix(_MODEL_PREFIX)))

    async def _ask(self, path: str, headers: Mapping[str, str], receive: Receive, request_id: str) -> _Answer:
        """Check one request and return the function that answers it; its body is held until then."""
        held = self._bodies.part()
        try:
            answer = await self._checked(path, headers, receive, request_id, held)
        except BaseException:
            held.give_back()
            raise

        async def answer_and_forget(send: Send) -> None:
            try:
                await answer(send)
            finally:
                held.give_back()

        return answer_and_forget

    async def _checked(
        self, path: str, headers: Mapping[str, str], receive: Receive, request_id: str, held: BodyPart
    ) -> _Answer:
        """Read and check one request, and return the function that answers it."""
        raw = await read_body(receive, self._limits.body, held)
        body = parse_body(raw)
        _POSTS[path](body)
        target = self._target(body.get("model"))
        call = _call(path, raw, body, target, request_id)
        if self._closing:
            raise faults.closing()
        ticket = self._admission.enter(target)
        agent = headers.get("user-agent", "")
        entry = self.request_log.open(request_id, target, route=path, client=agent, stream=call.stream)

        async def answer(send: Send) -> None:
            exchange = Exchange(
                target,
                call,
                ticket,
                entry,
                self._admission,
                receive,
                send,
                ping_interval=self._limits.ping,
                note_interval=self._limits.waiting_note,
                close_grace=self._limits.close_grace,
                answer_limit=self._limits.answer,
            )
            await self._carry_out(exchange)

        return answer

    async def _carry_out(self, exchange: Exchange) -> None:
        """Run one exchange where `aclose` finds it."""
        self._exchanges.add(exchange)
        self._none_left.clear()
        try:
            await exchange.run()
        finally:
            self._exchanges.discard(exchange)
            if not self._exchanges:
                self._none_left.set()

    def _target(self, name: str | None) -> Target:
        """The engine for a request; raises EndpointError for none, one that is starting, or an unknown id."""
        targets = self._directory.targets()
        starting = tuple(self._directory.starting())
        if starting and (name in starting or not targets) and all(t.name != name for t in targets):
            raise faults.engine_starting(starting)
        if not targets:
            raise faults.no_engine_runs()
        if name is None:
            # Some agents leave the model out; with one engine there is no doubt about it.
            if len(targets) == 1:
                return targets[0]
            raise faults.invalid("model is missing and several models run.", param="model")
        return find(targets, name)


class _App:
    """An ASGI application object; uvicorn takes a bound method for something older."""

    def __init__(
        self, serve: Callable[[Scope, Receive, Send, bool], Awaitable[None]], *, trusted: bool
    ) -> None:
        self._serve = serve
        self._trusted = trusted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._serve(scope, receive, send, self._trusted)


def _has_key(headers: Mapping[str, str], keys: frozenset[str]) -> bool:
    try:
        check_key(headers, keys)
    except faults.EndpointError:
        return False
    return True


def _path(scope: Scope) -> str:
    return str(scope["path"]).removeprefix(scope.get("root_path", "")) or "/"


def _call(path: str, raw: bytes, body: dict[str, Any], target: Target, request_id: str) -> Call:
    """Build the request to the engine, with the client's own bytes wherever they can stay as they are."""
    stream = bool(body.get("stream"))
    if path == "/v1/embeddings":
        if not target.embeddings:
            raise faults.EndpointError(
                400,
                "embeddings_off",
                f"{target.name} was not started for embeddings. Start it for them with: "
                f"sndr run {shlex.quote(target.name)} --set embeddings=true --replace",
                Reason.UNSUPPORTED,
            )
        return Call(path, raw, False)
    if target.embeddings:
        raise faults.EndpointError(
            400,
            "embeddings_only",
            f"{target.name} was started for embeddings alone. Start it for text with: "
            f"sndr run {shlex.quote(target.name)} --replace",
            Reason.UNSUPPORTED,
        )
    if target.tokens_only and (path != "/v1/completions" or not _is_token_numbers(body.get("prompt"))):
        raise faults.EndpointError(
            400,
            "tokenizer_missing",
            f"{target.name} has no tokenizer: it takes /v1/completions with token numbers as prompt.",
            Reason.UNSUPPORTED,
        )
    if path in _AGENT_ROUTES:
        if not target.agent_routes:
            raise faults.EndpointError(
                404,
                "route_unsupported",
                f"The engine of {target.name} has no {path}; vLLM has. Use /v1/chat/completions here.",
                Reason.UNSUPPORTED,
            )
        return Call(path, raw, stream)
    if path != "/v1/completions" or "suffix" not in body:
        return _plain(path, raw, body, target)
    if not wants_infill(body):
        rest = {name: value for name, value in body.items() if name != "suffix"}
        return _plain(path, json.dumps(rest).encode(), rest, target)
    unable = target.fill_in_the_middle is False or (not target.native_infill and target.fim_tokens is None)
    if unable:
        raise faults.EndpointError(
            400,
            "fill_in_the_middle_unsupported",
            f"{target.name} has no fill-in-the-middle tokens, so it cannot use suffix.",
            Reason.UNSUPPORTED,
            "suffix",
        )
    if not target.native_infill and target.fim_tokens is not None:
        whole = prompt_with_tokens(body, target.fim_tokens)
        return _plain(path, json.dumps(whole).encode(), whole, target)
    answer = InfillAnswer(request_id, target.name, int(time.time()), include_usage=asks_for_usage(body))
    return Call("/infill", infill_request(body), stream, answer)


def _is_token_numbers(prompt: object) -> bool:
    """Return True if a prompt is a list of token ids, or several lists of them."""
    if not isinstance(prompt, list) or not prompt:
        return False
    return all(isinstance(one, int) for one in prompt) or all(_is_token_numbers(one) for one in prompt)


def _plain(path: str, raw: bytes, body: dict[str, Any], target: Target) -> Call:
    """Return a chat or completion as the client wrote it, with usage figures requested where needed."""
    stream = bool(body.get("stream"))
    if path == "/v1/completions" and target.native_infill:
        return _completion(raw, body, target)
    if not stream or not target.usage_on_request or asks_for_usage(body):
        return Call(path, raw, stream, reader=_READER if _is_read_apart(path, target) else None)
    return Call(path, with_usage(body), stream, usage=UsageFilter())


def _completion(raw: bytes, body: dict[str, Any], target: Target) -> Call:
    """A completion of llama.cpp, which leaves out `echo` silently and writes `logprobs` as in a chat."""
    if body.get("echo"):
        raise faults.EndpointError(
            400,
            "unsupported",
            f"The engine of {target.name} does not repeat the prompt (echo); vLLM does.",
            Reason.UNSUPPORTED,
            "echo",
        )
    top = body.get("logprobs")
    stream = bool(body.get("stream"))
    if top is None:
        return Call("/v1/completions", raw, stream)
    if top == 0:
        # To llama.cpp none is no log probabilities at all; here it is those of the chosen tokens.
        raw = json.dumps({**body, "logprobs": 1}).encode()
    return Call("/v1/completions", raw, stream, logprobs=CompletionLogprobs(top))


def _is_read_apart(path: str, target: Target) -> bool:
    return path == "/v1/chat/completions" and target.native_infill


def _need(method: str, path: str, *allowed: str) -> None:
    if method not in allowed:
        raise faults.EndpointError(
            405,
            "method_not_allowed",
            f"{path} takes {allowed[0]}, not {method}.",
            headers=(("allow", ", ".join(allowed)),),
        )


def _not_found(path: str) -> faults.EndpointError:
    known = (*_POSTS, *_GETS)
    meant = next((route for route in known if path.rstrip("/").endswith(route.removeprefix("/v1"))), None)
    if meant is not None:
        hint = f" Did you mean {meant}? The base URL of this endpoint ends in /v1."
    else:
        hint = f" It answers {', '.join(sorted(known))}."
    return faults.EndpointError(
        404, "unknown_route", f"This endpoint has no {path[:200]}.{hint}", Reason.NOT_FOUND
    )


__all__ = ["Gateway", "Limits"]
