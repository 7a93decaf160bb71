"""The public OpenAI endpoint: routes, checks, and one exchange for each request."""

import asyncio
import json
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from engine_host.core.keys.ring import Key, KeyRing
from engine_host.gateway import error_answers as faults
from engine_host.gateway.access.admission import Admission, Ticket
from engine_host.gateway.access.authentication import check_host, check_key, check_origin, check_preflight
from engine_host.gateway.access.body_allowance import BodyAllowance, BodyPart
from engine_host.gateway.access.cross_origin import answer_preflight, is_preflight, readable_by
from engine_host.gateway.asgi import EndpointApp
from engine_host.gateway.call import Call
from engine_host.gateway.directory import ActivityHook, Directory, Target
from engine_host.gateway.exchange import Exchange, GaveWayError, Stop
from engine_host.gateway.inspection.capture import Captures
from engine_host.gateway.inspection.client_name import client_name
from engine_host.gateway.inspection.conversation import named_conversation
from engine_host.gateway.inspection.prefix_lens import PrefixLens
from engine_host.gateway.kept_connections import KeptConnections
from engine_host.gateway.loading.lm_studio import load_wish, unload_wish
from engine_host.gateway.loading.loader import Loader, NothingToLoad
from engine_host.gateway.loading.requests import OnDemandRequests
from engine_host.gateway.meter import Figures
from engine_host.gateway.metrics.counters import EndpointCounters
from engine_host.gateway.metrics.engines import EngineMetrics
from engine_host.gateway.metrics.exposition import CONTENT_TYPE, written
from engine_host.gateway.metrics.live import live
from engine_host.gateway.metrics.measured import Measured, measured_families
from engine_host.gateway.openai.bodies import ClientGoneError, check_framing, parse_body, read_body
from engine_host.gateway.request_log import Entry, Publish, RequestLog
from engine_host.gateway.routes import table
from engine_host.gateway.routes.listed import query_of
from engine_host.gateway.routes.rows import Ask, Asked, Looked, Post, ReadRequest
from engine_host.gateway.routing.book import RouteBook
from engine_host.gateway.routing.elsewhere import NO_OTHERS, OtherMachines
from engine_host.gateway.routing.failures import check_provider_has, loops, may_leave
from engine_host.gateway.routing.renaming import for_engine
from engine_host.gateway.routing.resolution import Meaning, Resolution
from engine_host.gateway.routing.seen import ProvidersSeen
from engine_host.gateway.sending import send_fault, send_json, send_whole
from engine_host.gateway.streaming.direct import WritePiece, offered
from engine_host.gateway.upstream import PSEUDONYM
from engine_host.protocol.endpoint.keys import Permission
from engine_host.protocol.events import EngineRequestEvent, EventBase, RoutesChangedEvent

_log = logging.getLogger(__name__)

_Answer = Callable[[Send], Awaitable[None]]
"""Sends a whole answer; nothing of it was sent before, so that an error can still take its place."""

_QUESTIONS_AT_ONCE = 16
"""Questions that take no slot of an engine, and each of which may hold a long text."""
_CLOSE_GRACES = 5
"""How many times a client's farewell the end of all requests may take."""


@dataclass(frozen=True)
class Limits:
    """Bounds of the endpoint: bytes of a request, of all requests at a time, and of a whole answer; waiting
    requests of an engine; intervals in seconds; how long a request may wait for its model's load.

    `farewell`: seconds that a client has to take the last words of a request that was ended from outside.
    """

    body: int = 64 << 20
    bodies: int = 512 << 20
    answer: int = 64 << 20
    queue: int = 64
    ping: float = 15.0
    waiting_note: float = 5.0
    loading_note: float = 2.0
    load: float = 600.0
    close_grace: float = 1.0


class Gateway:
    """The endpoint over the engines of a directory.

    `publish` takes every event; `keys`, `allowed_hosts` and `base_path`, below which a proxy shows the
    endpoint, are asked at each request, so a change of the settings holds at once. `app` is for the network,
    `trusted_app` for the control socket, which has its own token and no `Host` worth checking. Lives on one
    event loop.
    """

    def __init__(
        self,
        directory: Directory,
        publish: Publish,
        keys: KeyRing | None = None,
        allowed_hosts: Callable[[], frozenset[str]] = frozenset,
        limits: Limits | None = None,
        on_activity: ActivityHook | None = None,
        base_path: Callable[[], str] = str,
        routes: RouteBook | None = None,
        loader: Loader | None = None,
        load_wait: Callable[[], float] | None = None,
        others: OtherMachines = NO_OTHERS,
        installed: Callable[[str], bool] = lambda _name: False,
        measured: Callable[[], Measured] | None = None,
    ) -> None:
        self._directory = directory
        self._counters = EndpointCounters()
        self._engine_metrics = EngineMetrics()
        self._measured = measured
        self._keys = keys or KeyRing()
        self._allowed_hosts = allowed_hosts
        self._limits = limits or Limits()
        self._admission = Admission(self._limits.queue, on_activity)
        self._resolution = Resolution(directory, routes, self._load, others, installed)
        self._loads = OnDemandRequests(
            loader or NothingToLoad(),
            directory,
            self._admission,
            self._counters.refuse,
            load_wait or (lambda: self._limits.load),
            self._limits.loading_note,
        )
        self._bodies = BodyAllowance(self._limits.bodies)
        self._exchanges: set[Exchange] = set()
        self._kept = KeptConnections()
        self._closing = False
        self._asking = asyncio.Semaphore(_QUESTIONS_AT_ONCE)
        self._none_left = asyncio.Event()
        self._none_left.set()
        self.app: ASGIApp = EndpointApp(self._serve, trusted=False, base_path=base_path)
        self.trusted_app: ASGIApp = EndpointApp(self._serve, trusted=True, base_path=str)
        self._publish = publish
        self.prefixes = PrefixLens()
        self.captures = Captures()
        self.providers = ProvidersSeen(lambda: publish(RoutesChangedEvent()))
        self.request_log = RequestLog(self._count, self._admission.active, self._admission.waiting)

    def _count(self, event: EventBase) -> None:
        if isinstance(event, EngineRequestEvent):
            self._counters.take(event.request)
        self._publish(event)

    async def drain(self, engine_id: str, timeout: float) -> bool:
        """Admit nothing new to this engine, wait for its requests; True if all ended within `timeout` s."""
        return await self._admission.drain(engine_id, timeout)

    def listed(self) -> list[Target]:
        """Return what can be asked now, as the lists of models show it."""
        return self._resolution.listed()

    def loadable(self) -> list[Target]:
        """Return what a request would load, by every id that leads there."""
        return self._resolution.loadable(self._loads.loadable())

    def target_of(self, model: str) -> Target:
        """Return who would answer a request for a model now; raises EndpointError where nobody would."""
        return self._resolution.available(self._resolution.resolve(model))[0]

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
        self.request_log.tell()
        self._kept.close()
        self.captures.stop()
        await self.prefixes.aclose()

    async def _serve(self, scope: Scope, receive: Receive, send: Send, trusted: bool) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"the endpoint speaks http, not {scope['type']}")
        request_id = "req_" + secrets.token_hex(12)
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        answer: _Answer
        key: Key | None = None
        try:
            if not trusted:
                allowed = self._allowed_hosts()
                # Whoever speaks HTTP/1.0 and names no host is a proxy's check of health, and never a browser.
                if "host" in headers or scope.get("http_version") != "1.0":
                    check_host(headers.get("host"), allowed, has_keys=self._keys.needed)
                page = check_origin(headers.get("origin"), allowed)
                if is_preflight(scope["method"], headers):
                    check_preflight(page, headers.get("origin"))
                    await answer_preflight(send, headers)
                    return
                if page is not None:
                    send = readable_by(send, page)
                # Who asks whether this is alive (a container, a proxy) has no key, and learns nothing else.
                if _path(scope) in table.HEALTH and not _has_key(headers, self._keys):
                    answer = partial(send_json, status=200, body=b'{"status": "ok"}', request_id=request_id)
                    await answer(send)
                    return
                key = check_key(headers, self._keys, table.permission(_path(scope)))
            check_framing(headers, self._limits.body)
            answer = await self._route(scope, headers, receive, request_id, key)
        except faults.EndpointError as fault:
            self._counters.refuse(fault)
            form = faults.form_of(_path(scope), headers)
            answer = partial(send_fault, fault=fault, request_id=request_id, form=form)
        except ClientGoneError:
            return
        except Exception:  # noqa: BLE001
            # Anybody's bytes come in here: what nobody foresaw still gets an error that SDKs read.
            _log.exception("%s %r (%s) could not be read", scope["method"], _path(scope), request_id)
            form = faults.form_of(_path(scope), headers)
            answer = partial(send_fault, fault=faults.internal(), request_id=request_id, form=form)
        await answer(send)

    async def _route(
        self,
        scope: Scope,
        headers: Mapping[str, str],
        receive: Receive,
        request_id: str,
        key: Key | None,
    ) -> _Answer:
        """Return the handler that answers a request; raises EndpointError for one that is refused."""
        path = _path(scope)
        method = scope["method"]
        route = table.post(method, path)
        if route is not None:
            return await self._ask(route, path, headers, receive, request_id, key, offered(scope))
        if path == table.METRICS:
            table.need(method, path, "GET", "HEAD")
            text = await self._metrics()
            return partial(send_whole, status=200, body=text, kind=CONTENT_TYPE, request_id=request_id)
        if path in (table.LOAD, table.UNLOAD):
            table.need(method, path, "POST")
            return await self._load_or_unload(path, headers, receive, request_id, key)
        look = table.get(method, path)
        body: Mapping[str, Any] = await self._question(receive) if method == "POST" else {}
        query = query_of(scope.get("query_string", b""))
        targets, starting = self._resolution.listed(), tuple(self._directory.starting())
        looked = Looked(path, query, headers, targets, starting, body, self.loadable())
        return partial(send_json, status=200, body=json.dumps(look(looked)).encode(), request_id=request_id)

    async def _question(self, receive: Receive) -> dict[str, Any]:
        """Read the body of a request that no engine is asked; raises EndpointError and ClientGoneError."""
        held = self._bodies.part()
        try:
            return parse_body(await read_body(receive, self._limits.body, held))
        finally:
            held.give_back()

    async def _load_or_unload(
        self, path: str, headers: Mapping[str, str], receive: Receive, request_id: str, key: Key | None
    ) -> _Answer:
        """Load or end a model as a client of LM Studio asks; raises EndpointError and ClientGoneError."""
        body = await self._question(receive)
        if path == table.UNLOAD:
            told = self._loads.unload(unload_wish(body))
            return partial(send_json, status=200, body=told, request_id=request_id)
        wish, owner, prefer = load_wish(body), key.id if key else "", headers.get("prefer")
        if self._closing:
            raise faults.closing()

        async def nothing(_message: Message) -> None:
            """Nothing is sent before it is loaded."""

        told = await self._loads.load(wish, owner, request_id, prefer, receive, nothing)
        return partial(send_json, status=200, body=told, request_id=request_id)

    async def _metrics(self) -> bytes:
        """Return our own figures and the engines', in Prometheus' format."""
        targets = self._directory.targets()
        now = [*self._counters.families(), *live(targets, self._admission, self._loads.waiting())]
        now += measured_families(self._measured(), targets) if self._measured is not None else []
        return written([*now, *await self._engine_metrics.families(targets)])

    async def _ask(
        self,
        route: Post | Ask,
        path: str,
        headers: Mapping[str, str],
        receive: Receive,
        request_id: str,
        key: Key | None,
        write_piece: WritePiece | None,
    ) -> _Answer:
        """Check one request and return the function that answers it; its body is held until then."""
        held = self._bodies.part()
        try:
            answer = await self._checked(route, path, headers, receive, request_id, held, key, write_piece)
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
        self,
        route: Post | Ask,
        path: str,
        headers: Mapping[str, str],
        receive: Receive,
        request_id: str,
        held: BodyPart,
        key: Key | None,
        write_piece: WritePiece | None,
    ) -> _Answer:
        """Read and check one request, and return the function that answers it."""
        if PSEUDONYM in headers.get("via", ""):
            raise loops()
        raw = await read_body(receive, self._limits.body, held)
        body = parse_body(raw)
        route.check(body)
        request = ReadRequest(route, path, headers, receive, request_id, key, raw, body, write_piece)
        if (ended := self._loads.ended_by(request)) is not None:
            return partial(send_json, status=200, body=ended, request_id=request_id)
        meaning = self._resolution.resolve(body.get("model"), request.form)
        if (name := self._loads.to_load(request, meaning)) is not None:
            if self._closing:
                raise faults.closing()
            return partial(self._load_and_answer, request, meaning, name)
        return await self._admitted(request, meaning)

    async def _admitted(
        self, request: ReadRequest, meaning: Meaning, *, begun: bool = False, entry: Entry | None = None
    ) -> _Answer:
        """Return the function that answers a checked request; raises EndpointError for one that is refused.

        `begun`: the headers of its stream are sent already. `entry`: it is written down, as it waited for its
        model's load.
        """
        route, path, request_id, key = request.route, request.path, request.request_id, request.key
        headers = request.headers
        named = named_conversation(headers, request.body)
        conversation = named.value if named is not None else ""
        leaves = may_leave(headers)
        target, *others = self._resolution.available(meaning, conversation, request.form, leaves)
        self._loads.touch(request, target)
        check_provider_has(target, path)
        raw, body = for_engine(request.raw, request.body, target)
        if isinstance(route, Ask):
            async with self._asking:
                told = json.dumps(await route.answer(target, body)).encode()
            return partial(send_json, status=200, body=told, request_id=request_id)
        call = route.call(Asked(path, raw, body, target, request_id))
        if call.ready is not None:
            return partial(send_json, status=200, body=call.ready, request_id=request_id)
        if self._closing:
            raise faults.closing()
        ticket = self._admission.enter(target, key.id if key else "")
        if entry is None:
            entry = self._written_down(request, target, stream=call.stream)
        elif entry.ended:
            # Cancelled just now.
            self._admission.release(ticket)
            raise faults.cancelled()
        else:
            entry.loaded(target)
        self.prefixes.begin(entry, named, body, len(raw))
        entry.capture = self.captures.begin(request_id, path, headers, request.raw, target.key)
        return partial(self._ask_in_turn, request, entry, target, call, ticket, others, begun)

    async def _ask_in_turn(
        self,
        request: ReadRequest,
        entry: Entry,
        target: Target,
        call: Call,
        ticket: Ticket,
        others: list[Target],
        begun: bool,
        send: Send,
    ) -> None:
        """Answer a request; who fails before its answer has begun gives way to the next."""
        if entry.capture is not None:
            send = entry.capture.sending(send)
        while True:
            exchange = Exchange(
                target,
                call,
                ticket,
                entry,
                self._admission,
                request.receive,
                send,
                ping_interval=self._limits.ping,
                note_interval=self._limits.waiting_note,
                close_grace=self._limits.close_grace,
                answer_limit=self._limits.answer,
                kept=self._kept,
                begun=begun,
                gives_way=bool(others),
                write_piece=request.write_piece,
            )
            try:
                await self._carry_out(exchange)
            except GaveWayError as gave:
                self.providers.failed(target, gave.fault.problem())
            else:
                self.providers.note(target, entry)
                return
            target = others.pop(0)
            entry.loaded(target)
            if entry.capture is not None:
                entry.capture.hide(target.key)
            try:
                raw, body = for_engine(request.raw, request.body, target)
                assert isinstance(request.route, Post)
                call = request.route.call(Asked(request.path, raw, body, target, request.request_id))
                ticket = self._admission.enter(target, request.key.id if request.key else "")
            except faults.EndpointError as fault:
                entry.failed(fault.problem())
                await send_fault(send, fault, request.request_id, request.form)
                return

    async def _load_and_answer(self, request: ReadRequest, meaning: Meaning, name: str, send: Send) -> None:
        """Have a model loaded, and answer a request with it."""
        entry: Entry | None = None
        if isinstance(request.route, Post):
            coming = Target("", meaning.name or name, 1, 0, time.time(), socket="")
            stream = bool(request.body.get("stream"))
            entry = self._written_down(request, coming, stream=stream, loading=True)

        async def admitted(begun: bool) -> _Answer:
            return await self._admitted(request, meaning, begun=begun, entry=entry)

        try:
            answer = await self._loads.after_load(request, name, admitted, send, entry)
            if answer is not None:
                await answer(send)
                if entry is not None and not entry.ended:
                    # To be loaded was all that it asked for.
                    entry.done(Figures())
        finally:
            if entry is not None:
                entry.cancelled()

    def _written_down(
        self, request: ReadRequest, target: Target, *, stream: bool, loading: bool = False
    ) -> Entry:
        return self.request_log.open(
            request.request_id,
            target,
            route=request.path,
            client=request.headers.get("user-agent", ""),
            stream=stream,
            key=request.key.name if request.key else None,
            client_name=client_name(request.headers),
            loading=loading,
        )

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

    def _load(self, target: Target) -> float:
        """Return how busy an engine is: requests at work and in its queue, as a share of its slots."""
        engine = target.engine
        return (self._admission.active(engine) + self._admission.waiting(engine)) / target.slots


def _has_key(headers: Mapping[str, str], keys: KeyRing) -> bool:
    try:
        check_key(headers, keys, Permission.INFER)
    except faults.EndpointError:
        return False
    return True


def _path(scope: Scope) -> str:
    return table.as_meant(str(scope["path"]).removeprefix(scope.get("root_path", "")) or "/")


__all__ = ["Gateway", "Limits"]
