"""The engine host of another machine: found there, its socket forwarded, and looked at while it answers."""

import asyncio
import contextlib
import logging
import shlex
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NoReturn, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, ValidationError

from engine_host.core import atomic_file
from engine_host.core.errors import HostError, defect
from engine_host.core.findings.table import finding
from engine_host.core.likely_causes import odd_words_over_ssh
from engine_host.core.outside import json_text
from engine_host.core.outside.host_clock import HostClock
from engine_host.gateway.directory import Target
from engine_host.gateway.metrics.remote import RemoteEngineFigures
from engine_host.gateway.upstream import Upstream, UpstreamLostError, fetch
from engine_host.protocol.base import PROTOCOL_MAJOR, Version
from engine_host.protocol.endpoint.connect import EndedWithHost, EndpointModel, EndpointModelPage
from engine_host.protocol.errors import Fix, Problem, Reason
from engine_host.protocol.host import HostInfo
from engine_host.protocol.language import tr
from engine_host.protocol.launch.plans import Finding
from engine_host.protocol.models import ModelPage
from engine_host.protocol.operations import endpoint as endpoint_ops
from engine_host.protocol.operations import table as ops
from engine_host.protocol.presets import PresetPage
from engine_host.remote.figures import rate_of_engines, serving_engines
from engine_host.remote.run import SCRIPTS, RemoteOutcome, RemoteScript
from engine_host.remote.ssh.connection import Connection
from engine_host.remote.ssh.failures import forward_refused

_log = logging.getLogger(__name__)
_FIND = RemoteScript.read(SCRIPTS / "find_engine_host.py")
_LOOK = 5.0
"""Seconds between two looks at one that answers."""
_LOOKS_OF_RATE = 2
"""Looks of which one asks for the tokens a second too."""
_PAUSES = (1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds between two looks for one that is not there; whoever connects or probes it looks at once."""
_SOONEST = 0.5
"""Seconds from one look for it to the next, however often it is asked for."""
_STARTABLE = 60.0
"""Seconds after which it is asked again what could be started there."""
_PATIENCE = 15.0
_MOST_MODELS, _MOST_ENDED = 500, 20
_Answer = TypeVar("_Answer", bound=BaseModel)
Run = Callable[[RemoteScript], Awaitable[RemoteOutcome]]


@dataclass(frozen=True)
class EngineHostThere:
    """The engine host of a connected machine; `reachable` while its forwarded socket answers.

    `clock_ahead` are the seconds that its clock is ahead of this machine's.
    `models` are those that its endpoint answers for, `startable` the names of those that could be started as
    last asked. `rate` are the tokens a second of its engines, None where none was measured; `engines` are the
    figures of each as told `engines_at`, which are no news for anybody; `token` opens its control API.
    """

    reachable: bool = False
    endpoint: bool = False
    clock_ahead: float = 0.0
    version: str | None = None
    protocol: str | None = None
    problem: Problem | None = None
    models: tuple[EndpointModel, ...] = ()
    startable: frozenset[str] = frozenset()
    ended: tuple[EndedWithHost, ...] = ()
    rate: float | None = None
    engines: tuple[RemoteEngineFigures, ...] = field(default=(), compare=False, repr=False)
    engines_at: float | None = field(default=None, compare=False)
    token: str = field(default="", repr=False)


class EngineHostLink:
    """Forwards one host's sockets as long as its connection stands, and finds it again when it restarts."""

    def __init__(self, connection: Connection, run: Run, changed: Callable[[EngineHostThere], None]) -> None:
        self._connection = connection
        self._run = run
        self._changed = changed
        self._now = asyncio.Event()
        self._seen = asyncio.Event()
        self._begun = self._ended = 0
        self._clock = HostClock()
        self._forwarded: str | None = None
        self._endpoint: str | None = None
        self._stood = False

    def look(self) -> None:
        """Look now and not only after the pause."""
        self._now.set()

    async def look_now(self, seconds: float) -> bool:
        """Look now, and wait that long at most for a look that begins from now on; False if none ended."""
        # One that goes on may have asked before what somebody waits for was there.
        wanted = self._begun + 1
        self._now.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._ended < wanted:
                    await self._seen.wait()
        return self._ended >= wanted

    def _tell(self, there: EngineHostThere, *, found: bool) -> None:
        """Tell what a look showed; the loss of one that stood is not what a look for it `found`."""
        self._changed(there)
        if found:
            self._ended = self._begun
            seen, self._seen = self._seen, asyncio.Event()
            seen.set()

    async def keep(self) -> None:
        """Find it and stay with it, until this is cancelled."""
        failed = 0
        while True:
            soonest = asyncio.get_running_loop().time() + _SOONEST
            try:
                await self._once()
            except HostError as error:
                problem = error.problem
            except Exception as error:  # noqa: BLE001 - nothing would find it again, and nobody would hear of it
                _log.exception("the engine host of %s could not be looked at", self._connection.host.name)
                problem = defect(error)
            lost, self._stood = self._stood, False
            failed = 0 if lost else failed
            with contextlib.suppress(OSError):
                self._connection.folder.token.unlink()
            self._tell(EngineHostThere(problem=problem), found=not lost)
            # Each request for what is not there asks for a look.
            await asyncio.sleep(max(0.0, soonest - asyncio.get_running_loop().time()))
            asked = await self._pause(_PAUSES[min(failed, len(_PAUSES) - 1)])
            # Something is expected there now: it may come up a moment after this look.
            failed = 0 if asked else failed + 1

    async def _pause(self, seconds: float) -> bool:
        """Wait for the next look; return True if somebody asked for it, also while the last one went on."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._now.wait()
        asked = self._now.is_set()
        self._now.clear()
        return asked

    async def _once(self) -> NoReturn:
        """Stay with the one that runs until it does not answer. Always raises HostError: that is its end."""
        name, folder = self._connection.host.name, self._connection.folder
        self._begun += 1
        socket, token = await self._find()
        if self._forwarded != socket:
            await self._connection.forward(folder.control, socket)
            self._forwarded = socket
        await asyncio.to_thread(atomic_file.write, folder.token, token)
        version = await self._get(token, ops.VERSION.path, Version)
        _check_version(version, name)
        info = await self._get(token, ops.HOST.path, HostInfo)
        endpoint = await self._lead_endpoint(info)
        there = EngineHostThere(
            reachable=True,
            endpoint=endpoint,
            version=version.program,
            protocol=f"{version.major}.{version.minor}",
            token=token,
        )
        startable = await self._startable(token)
        again = asyncio.get_running_loop().time() + _STARTABLE
        looks = 0
        while True:
            # One that was started anew takes this token no more.
            page = await self._served(token)
            self._stood = True
            if looks % _LOOKS_OF_RATE == 0:
                there = await self._with_figures(there, token)
            looks += 1
            models, ended = page.models[:_MOST_MODELS], page.ended[:_MOST_ENDED]
            there = replace(there, clock_ahead=self._clock.ahead)
            self._tell(replace(there, models=models, startable=startable, ended=ended), found=True)
            await self._pause(_LOOK)
            self._begun += 1
            if asyncio.get_running_loop().time() >= again:
                startable = await self._startable(token)
                again = asyncio.get_running_loop().time() + _STARTABLE

    async def _served(self, token: str) -> EndpointModelPage:
        """Return what its endpoint answers for; nothing of a version that cannot tell it."""
        try:
            return await self._get(token, endpoint_ops.ENDPOINT_MODELS.path, EndpointModelPage)
        except HostError as error:
            if error.problem.evidence.get("status") != 404:
                raise
        await self._get(token, ops.HOST.path, HostInfo)
        return EndpointModelPage(seq=0, models=())

    async def _startable(self, token: str) -> frozenset[str]:
        """Return the names of the models and presets there; none where it does not tell."""
        try:
            models = (await self._get(token, ops.MODELS.path, ModelPage)).models
            presets = (await self._get(token, ops.PRESETS.path, PresetPage)).presets
        except HostError as error:
            # A version that lists them in another way is used all the same.
            _log.info("what could be started there is not known: %s", error.problem.sentence())
            return frozenset()
        named = {name for model in models for name in (model.id, model.name)}
        return frozenset(named | {one.preset.id for one in presets})

    async def _find(self) -> tuple[str, str]:
        """Return where it listens there, and its token. Raises HostError where none runs."""
        name = self._connection.host.name
        outcome = await self._run(_FIND)
        try:
            told = json_text.parse_last_line(
                outcome.need_success(tr("Looking for the engine host of {name}", name=name))
            )
            state, run = str(told["state"]), str(told.get("run", ""))[:300]
            socket, token = str(told.get("socket", "")), str(told.get("token", ""))
        except (ValueError, KeyError) as error:
            raise HostError(
                Reason.SSH_FAILED,
                tr("{name} did not say whether an engine host runs there.", name=name),
                cause=odd_words_over_ssh(),
                fix=Fix(text="See what its shell says.", command=f"sndr host shell {name}"),
                evidence={"stdout": outcome.stdout[:500].decode("utf-8", "replace")},
            ) from error
        if state == "running" and _is_plain(token) and _is_path(socket):
            return socket, token
        more = {what: str(told.get(what, ""))[:300] for what in ("why", "data", "pid")}
        raise _refusal(name, state, run, more)

    async def _lead_endpoint(self, info: HostInfo) -> bool:
        """Forward its endpoint; False where it does not serve one, or only with TLS."""
        address = info.endpoint.local_url
        try:
            parts = urlsplit(address or "")
            host, port = parts.hostname, parts.port
        except ValueError:
            return False
        if parts.scheme != "http" or not host or not port or not _is_loopback_word(host):
            return False
        there = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        if self._endpoint != there:
            await self._connection.forward(self._connection.folder.endpoint, there)
            self._endpoint = there
        return True

    async def _with_figures(self, there: EngineHostThere, token: str) -> EngineHostThere:
        """Return it with what its engines measured now; without any where it does not tell."""
        try:
            async with asyncio.timeout(_PATIENCE):
                status, body = await fetch(control_target(self._connection, token), "GET", ops.ENGINES.path)
        except (UpstreamLostError, TimeoutError):
            status, body = 0, b""
        engines = serving_engines(body) if status == 200 else ()
        rate = rate_of_engines(engines)
        rate = None if rate is None else round(rate, 1)
        return replace(there, rate=rate, engines=engines, engines_at=time.time())

    async def _get(self, token: str, path: str, kind: type[_Answer]) -> _Answer:
        """Ask its control API. Raises HostError(host_gone) for no answer, and for one that is none."""
        target = control_target(self._connection, token)
        name = self._connection.host.name
        status = 0
        try:
            async with asyncio.timeout(_PATIENCE):
                status, body = await _told(target, path, self._clock)
            if status != 200:
                raise ValueError(f"status {status}")
            json_text.refuse_huge(body)
            return kind.model_validate_json(body, context=self._clock.ahead or None)
        except (UpstreamLostError, TimeoutError, ValueError, ValidationError) as error:
            if not self._stood and self._connection.refuses_forwards:
                raise forward_refused(self._connection.host.destination) from error
            raise HostError(
                Reason.HOST_GONE,
                tr("The engine host on {name} does not answer.", name=name),
                cause=str(error)[:300] or "It took too long.",
                fix=Fix(
                    text="It is looked for by itself. Where it hangs this starts it anew; engines that are "
                    "not kept end with it.",
                    command=f"sndr host update {name}",
                ),
                evidence={"status": status},
            ) from error


def _refusal(name: str, state: str, run: str, told: Mapping[str, str]) -> HostError:
    """Return the error of a machine whose engine host is not to be used, by what was found there."""
    causes = {
        "none": tr(
            "There is nothing of it in {data}, where the user of ssh would have it.", data=told["data"]
        )
        if told["data"]
        else "",
        "starting": tr("Its service began a moment ago, as after a restart of the machine."),
        "turning": tr("Its process[ {pid}] has its data and does not listen.", pid=told["pid"] or None),
    }
    update, install = f"sndr host update {name}", f"sndr host install {name}"
    wait = Fix(
        text=tr("Wait a moment: it is looked for until it answers."), command=f"sndr host connect {name}"
    )
    rows = {
        "none": (
            tr("No engine host is installed on {name}, or it never ran.", name=name),
            Fix(text="Install it there; nothing of it needs root.", command=install),
        ),
        "starting": (
            tr("The engine host on {name} is starting.", name=name),
            wait,
        ),
        "turning": (tr("The engine host on {name} starts or ends just now.", name=name), wait),
        "unreadable": (
            tr("Whether an engine host is installed on {name} cannot be read.", name=name),
            Fix(text="Is its home mounted, and readable for that user? It is looked for until it answers."),
        ),
        "installed": (
            tr("The engine host on {name} is installed and does not run.", name=name),
            Fix(text="Start it; what is damaged of it is made anew.", command=update),
        ),
        "locked": (
            tr("The token of the engine host on {name} cannot be read.", name=name),
            Fix(
                text="Make it readable for the user of ssh there, or start the host anew with a new one.",
                command=update,
            ),
        ),
        "unsafe": (
            tr("The run folder of the engine host on {name} can be entered by others.", name=name),
            Fix(text="Make it private there: chmod 700 and its path."),
        ),
    }
    ended = (
        tr("The engine host on {name} does not run.", name=name),
        Fix(text="Start it there, or install it anew.", command=install),
    )
    message, fix = rows.get(state, ended)
    return HostError(
        Reason.RUN_FOLDER_UNSAFE if state == "unsafe" else Reason.HOST_UNREACHABLE,
        message,
        cause=causes.get(state) or told["why"],
        fix=fix,
        evidence={"run": run} if run else {},
    )


def start_again(host: str, ended: EndedWithHost) -> str:
    """Return the command that starts an engine there as it was; words of a stranger's stay words."""
    try:
        words = shlex.split(ended.command)
    except ValueError:
        words = []
    usual = ["run", ended.name]
    return shlex.join(["sndr", "--host", host, *(words[1:] if words[:1] == ["sndr"] else usual)])


def when_ended(ended: EndedWithHost) -> str | None:
    """Return the time at which an engine ended with its host, in this machine's time; None if unknown."""
    return None if ended.at is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(ended.at))


def not_back(host: str, there: EngineHostThere) -> tuple[Finding, ...]:
    """Return what is to be said of engines that ended with the engine host there."""
    return tuple(
        finding(
            "remote.ended-with-host",
            host=host,
            name=one.name,
            when=when_ended(one),
            again=start_again(host, one),
        )
        for one in there.ended
    )


def control_target(connection: Connection, token: str) -> Target:
    """Return the control API behind a connection as something that can be asked."""
    return Target(
        engine=f"host:{connection.host.name}",
        name=connection.host.name,
        slots=1,
        context=1,
        created_at=0.0,
        socket=str(connection.folder.control),
        key=token,
    )


async def _told(target: Target, path: str, clock: HostClock) -> tuple[int, bytes]:
    """Return status and body, whose date the clock hears. Raises UpstreamLostError."""
    began = time.time()
    async with await Upstream.open(target, "GET", path) as upstream:
        await upstream.head()
        clock.hear(upstream.date, began, time.time())
        return upstream.status, await upstream.rest()


def _check_version(version: Version, name: str) -> None:
    if version.major == PROTOCOL_MAJOR:
        return
    older = version.major < PROTOCOL_MAJOR
    raise HostError(
        Reason.PROTOCOL_MISMATCH,
        tr(
            "The engine host on {name} speaks protocol {major}, this one {protocol_major}.",
            name=name,
            major=version.major,
            protocol_major=PROTOCOL_MAJOR,
        ),
        cause=tr("It is {program}.", program=version.program[:80]),
        fix=Fix(text="Update it.", command=f"sndr host update {name}")
        if older
        else Fix(text=tr("Update this program: the one on {name} is newer.", name=name)),
    )


def _is_plain(token: str) -> bool:
    return 16 <= len(token) <= 512 and token.isascii() and token.replace("-", "").replace("_", "").isalnum()


def _is_path(socket: str) -> bool:
    # ssh puts our own environment in the place of ${NAME}, and names of this machine in that of %X.
    bad = not socket.isprintable() or "$" in socket or "%" in socket
    return socket.startswith("/") and not bad and len(socket.encode()) < 108


def _is_loopback_word(host: str) -> bool:
    return host in ("127.0.0.1", "::1", "localhost")
