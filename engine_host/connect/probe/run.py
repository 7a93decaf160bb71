"""A probe: four things that a client does, done to the endpoint's real address, with result and time."""

import asyncio
import secrets
import ssl
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from engine_host.connect.clients.definition import Client
from engine_host.connect.facts import Facts
from engine_host.connect.probe import dialects
from engine_host.connect.probe.dialects import FORMS, TOOL, Form, Piece
from engine_host.connect.probe.watch import Host, Stopped, wait_until_stopped
from engine_host.core import sse
from engine_host.core.errors import HostError
from engine_host.core.outside import answers, json_text
from engine_host.protocol.endpoint.connect import ProbeOutcome, ProbeReport, ProbeStep
from engine_host.protocol.errors import Fix, Problem, Reason
from engine_host.protocol.language import tr

if TYPE_CHECKING:
    import httpx

_CONNECT = 5.0
_STEP = 180.0
"""Seconds for a step: a prompt may wait for its turn, and a model may be loading."""
_MOST_LIST = 4 << 20
_MOST_EVENT = 1 << 20
_MOST_EVENTS = 20_000
_TRIES = 4
_SHORT, _CALL, _LONG = 24, 256, 2_000
_NAMES = ("models", "stream", "tool call", "cancel")
Tell = Callable[[ProbeStep], object]


class _StepError(Exception):
    """A step that failed, with what to do about it."""

    def __init__(self, message: str, reason: Reason = Reason.INTERNAL, fix: Fix | None = None) -> None:
        super().__init__(message)
        self.problem = Problem(reason=reason, message=message, fix=fix)


async def probe(client: Client, facts: Facts, key: str, host: Host | None, tell: Tell) -> ProbeReport:
    """Probe the endpoint in a client's dialect; `tell` gets each step as it is done.

    `host` sees what becomes of a cancelled request, where there is one to ask. Nothing of it raises but
    cancelling it: what goes wrong is a step that failed.
    """
    import httpx

    probing = _Probing(FORMS[client.dialect], facts, key, host)
    steps: list[ProbeStep] = []
    limits = httpx.Timeout(_STEP, connect=_CONNECT)
    async with httpx.AsyncClient(
        timeout=limits, trust_env=False, verify=ssl.create_default_context()
    ) as http:
        for name in _NAMES:
            # Where the address does not answer, three more failures would say nothing new.
            step = _skipped(name) if steps and _unreached(steps[0]) else await probing.step(name, http)
            steps.append(step)
            tell(step)
    return ProbeReport(
        client=client.name,
        dialect=client.dialect.value,
        url=facts.url,
        model=facts.model,
        steps=tuple(steps),
    )


class _Probing:
    """One probe under way."""

    def __init__(self, form: Form, facts: Facts, key: str, host: Host | None) -> None:
        self._form, self._facts, self._key, self._host = form, facts, key, host

    async def step(self, name: str, http: "httpx.AsyncClient") -> ProbeStep:
        """Do one of the four."""
        import httpx

        work: dict[str, Callable[[httpx.AsyncClient], Awaitable[tuple[ProbeOutcome, str]]]] = {
            "models": self._models,
            "stream": self._stream,
            "tool call": self._tool_call,
            "cancel": self._cancel,
        }
        began = time.monotonic()
        problem: Problem | None = None
        try:
            async with asyncio.timeout(_STEP):
                outcome, detail = await work[name](http)
        except _StepError as error:
            problem = error.problem
        except HostError as error:
            problem = error.problem
        except (httpx.HTTPError, TimeoutError, ssl.SSLError, OSError) as error:
            problem = _transport(error, self._facts)
        except (answers.AnswerError, sse.StreamError, ValueError) as error:
            problem = Problem(
                reason=Reason.INTERNAL,
                message=tr(
                    "What came back is no answer of such an endpoint: {error}", error=str(error)[:200]
                ),
                cause=tr("Another program may answer at that address."),
            )
        if problem is not None:
            outcome, detail = ProbeOutcome.FAILED, problem.message
        return ProbeStep(
            name=name, outcome=outcome, detail=detail, seconds=time.monotonic() - began, problem=problem
        )

    async def _models(self, http: "httpx.AsyncClient") -> tuple[ProbeOutcome, str]:
        headers = {**self._form.headers(self._key), **answers.UNCOMPRESSED, "user-agent": _agent()}
        async with http.stream("GET", f"{self._facts.url}{self._form.models}", headers=headers) as answer:
            content = await answers.read(answer, _MOST_LIST)
            _check(answer.status_code, content)
        listed = self._form.listed(json_text.parse_object(content))
        if self._facts.model not in listed:
            names = ", ".join(listed)[:200] or tr("none")
            raise _StepError(
                tr("{model} is not in the list of models.", model=self._facts.model),
                Reason.NOT_FOUND,
                Fix(text=tr("Listed are: {names}.", names=names), command="sndr status"),
            )
        context = listed[self._facts.model]
        if context is None:
            return ProbeOutcome.PASSED, tr("{listed} listed; this list tells no context.", listed=len(listed))
        if context != self._facts.context:
            return (
                ProbeOutcome.UNCLEAR,
                tr(
                    "Its context is {context} there, and {context_2} here.",
                    context=f"{context:,}",
                    context_2=f"{self._facts.context:,}",
                ),
            )
        return ProbeOutcome.PASSED, tr(
            "{listed} listed; context {context} tokens.", listed=len(listed), context=f"{context:,}"
        )

    async def _stream(self, http: "httpx.AsyncClient") -> tuple[ProbeOutcome, str]:
        began, first, pieces, text = time.monotonic(), None, 0, ""
        body = self._form.body(self._facts.model, "Say hello in one sentence.", _SHORT)
        async for piece in self._pieces(http, body, _agent()):
            if piece.text:
                first = first if first is not None else time.monotonic() - began
                pieces += 1
                text += piece.text
        if first is None:
            return ProbeOutcome.UNCLEAR, tr("The stream ended in order, and there was no word in it.")
        return ProbeOutcome.PASSED, tr(
            "First word after {first} s, {pieces} pieces: {text}",
            first=f"{first:.2f}",
            pieces=pieces,
            text=f"{text.strip()[:60]!r}",
        )

    async def _tool_call(self, http: "httpx.AsyncClient") -> tuple[ProbeOutcome, str]:
        if not self._facts.tools:
            return ProbeOutcome.SKIPPED, tr("{model} calls no tools.", model=self._facts.model)
        name, arguments = "", ""
        body = self._form.body(self._facts.model, "What is the weather in Paris?", _CALL, tool=True)
        async for piece in self._pieces(http, body, _agent()):
            name = name or piece.tool
            arguments += piece.arguments
        if name != TOOL:
            return ProbeOutcome.UNCLEAR, tr("The model answered without calling the tool; a small one may.")
        try:
            json_text.parse_object(arguments or "{}")
        except ValueError:
            return ProbeOutcome.UNCLEAR, tr(
                "It called {name}, and was cut off within the arguments.", name=name
            )
        return ProbeOutcome.PASSED, f"{name}({arguments[:80]})"

    async def _cancel(self, http: "httpx.AsyncClient") -> tuple[ProbeOutcome, str]:
        stopped = await self._cancelled(http)
        for _ in range(_TRIES - 1):
            # A small model may have little to say.
            if not stopped.too_late:
                break
            stopped = await self._cancelled(http)
        return stopped.outcome, stopped.detail

    async def _cancelled(self, http: "httpx.AsyncClient") -> Stopped:
        agent = _agent()
        limit = max(1, min(_LONG, self._facts.output))
        body = self._form.body(self._facts.model, "Write a very long story about the sea.", limit)
        began = False
        async with aclosing(self._pieces(http, body, agent)) as pieces:
            async for piece in pieces:
                if piece.text:
                    began = True
                    break
        closed_at = time.time()
        if not began:
            return Stopped(ProbeOutcome.UNCLEAR, tr("The answer was over before its first word."), True)
        if self._host is None:
            return Stopped(
                ProbeOutcome.UNCLEAR, tr("The connection was closed; no host tells what came of it.")
            )
        return await wait_until_stopped(self._host, agent, closed_at)

    async def _pieces(
        self, http: "httpx.AsyncClient", body: dict[str, Any], agent: str
    ) -> AsyncGenerator[Piece]:
        """The events of an answer. Raises _StepError for an error in it, or a stream that just ends."""
        headers = {**self._form.headers(self._key), **answers.UNCOMPRESSED, "user-agent": agent}
        url = f"{self._facts.url}{self._form.path}"
        async with http.stream("POST", url, json=body, headers=headers) as answer:
            if not answer.is_success:
                _check(answer.status_code, await answers.read(answer, _MOST_LIST))
            answers.check_plain(answer)
            reader, count = sse.Reader(_MOST_EVENT), 0
            async for part in answer.aiter_bytes():
                for message in reader.feed(part):
                    piece = self._form.piece(message)
                    count += 1
                    if piece.error:
                        raise _StepError(
                            tr("An error in the middle of the stream: {error}", error=piece.error)
                        )
                    if count > _MOST_EVENTS:
                        raise _StepError(tr("The stream does not end."))
                    yield piece
                    if piece.ended:
                        return
        raise _StepError(tr("The stream broke off without its last event."))


def _agent() -> str:
    """A name by which the host's list of requests shows this one."""
    return f"sndr-connect/{secrets.token_hex(6)}"


def _check(status: int, content: bytes) -> None:
    """Raise _StepError for an answer that is a refusal."""
    if 200 <= status < 300:
        return
    try:
        message = dialects.said(json_text.parse_object(content))
    except ValueError:
        message = tr("The endpoint answered with HTTP status {status}.", status=status)
    if status == 401:
        raise _StepError(
            message,
            Reason.UNAUTHORIZED,
            Fix(text=tr("Put a key that holds into SNDR_API_KEY."), command="sndr keys list"),
        )
    raise _StepError(message, Reason.NOT_FOUND if status == 404 else Reason.INTERNAL)


def _transport(error: Exception, facts: Facts) -> Problem:
    said = str(error).strip() or type(error).__name__
    if "CERTIFICATE_VERIFY_FAILED" in said or isinstance(error, ssl.SSLError):
        return Problem(
            reason=Reason.HOST_UNREACHABLE,
            message=tr(
                "The certificate of {url} is not trusted here, and clients will refuse it too.", url=facts.url
            ),
            cause=said[:300],
            fix=Fix(
                text=tr(
                    "Name the authority in SSL_CERT_FILE (NODE_EXTRA_CA_CERTS for clients on "
                    "Node), and use a name that stands in the certificate (--url)."
                )
            ),
        )
    return Problem(
        reason=Reason.HOST_UNREACHABLE,
        message=tr("{url} does not answer: {said}.", url=facts.url, said=said[:200]),
        cause=tr("Nothing listens there, or it is not reached from this machine."),
        fix=Fix(text=tr("See where the endpoint is."), command="sndr status"),
    )


def _unreached(step: ProbeStep) -> bool:
    unreached = {Reason.HOST_UNREACHABLE, Reason.UNAUTHORIZED}
    return step.problem is not None and step.problem.reason in unreached


def _skipped(name: str) -> ProbeStep:
    return ProbeStep(
        name=name, outcome=ProbeOutcome.SKIPPED, detail=tr("Not tried: the endpoint was not reached.")
    )
