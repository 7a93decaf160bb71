"""Serving: claim the run folder, open both doors, announce, wait, end in order."""

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from engine_host import __version__
from engine_host.api.app import control_app
from engine_host.core.errors import HostError
from engine_host.core.event_log import EventLog
from engine_host.core.log_buffer import LogBuffer
from engine_host.core.paths import Folders
from engine_host.core.processes import program_watch
from engine_host.core.processes.crash_marks import marked
from engine_host.core.processes.dumps import refuse_core_dumps
from engine_host.core.settings import SettingsFile
from engine_host.daemon import run_folder_watch
from engine_host.daemon.active_clients import ActiveClients
from engine_host.daemon.descriptors import raise_limit
from engine_host.daemon.host import Host
from engine_host.daemon.host_log import host_log, tell_in_log
from engine_host.daemon.http_protocol import ConnectionLimits, bounded, control_refusal
from engine_host.daemon.http_server import HttpServer
from engine_host.daemon.memory import MemoryKeeper, trimmer
from engine_host.daemon.run_lock import RunLock
from engine_host.protocol.errors import Problem
from engine_host.protocol.events import HostStateEvent

_log = logging.getLogger(__name__)
_TURN = 30.0
"""Seconds to wait for a host that ends, engines and all, before this one says that there are two."""
# A pager may hold up `sndr logs -f` for an hour; the socket is this user's alone, and no slot depends on it.
_CONTROL = bounded(ConnectionLimits(stall=None), control_refusal)
_COURTESY = 10.0
"""Seconds for which a command that is at work may hold up the end."""


@dataclass(frozen=True)
class ServeOptions:
    """The way to serve; `host` and `port` win over settings.

    `owner_stdin` ends the host when stdin closes; `owner` is whoever that is, in words. With `connect_hosts`
    the remote hosts that were connected are connected then too, and models that come with a host are loaded.
    `announce` is told what the line of JSON would say, instead of that line.
    """

    owner_stdin: bool = False
    owner: str = "the program that started it"
    connect_hosts: bool = False
    host: str | None = None
    port: int | None = None
    announce: Callable[[dict[str, Any]], None] | None = None
    folders: Folders = field(default_factory=Folders.resolve)


async def serve(options: ServeOptions) -> int:
    """Serve until a signal, `quit`, or the owner's end; 0 after an orderly end.

    Prints one line of JSON on stdout when everything answers: event, pid, socket, token_file, endpoint,
    findings, and what is wrong with the settings, of which the rest is used.
    Raises HostError when it cannot start; nothing is left behind then.
    """
    folders = options.folders
    # Nothing that the host or an engine writes is for other people of this machine.
    umask = os.umask(0o077)
    raise_limit()
    refuse_core_dumps()
    try:
        return await _claimed(options, folders)
    finally:
        os.umask(umask)


async def _claimed(options: ServeOptions, folders: Folders) -> int:
    folders.make_run_folder()
    instance = RunLock(folders, patience=_TURN)
    instance.claim()
    try:
        settings = SettingsFile(folders.settings)
        settings.load_what_holds()
        events = EventLog()
        log_buffer = LogBuffer(events.publish)
        with host_log(folders, log_buffer, settings.current.host.log_level):
            events.listen(tell_in_log)
            if settings.problem is not None:
                _log.warning("settings: %s", settings.problem.sentence())
            with marked(folders.crashes, "host", __version__, (HostError, asyncio.CancelledError)):
                await _run(options, instance, settings, events, log_buffer)
    finally:
        instance.release()
    return 0


async def _run(
    options: ServeOptions,
    instance: RunLock,
    settings: SettingsFile,
    events: EventLog,
    log_buffer: LogBuffer,
) -> None:
    done = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, done.set)
    host = Host(options.folders, settings, events, log_buffer, instance.files(), done.set)
    host.lifetime.noted = lambda stays: instance.note(stays=stays)
    host.lifetime.belong_to(options.owner if options.owner_stdin else "")
    try:
        # One that ends with a command waits to be asked.
        resumes = options.connect_hosts or not options.owner_stdin
        await host.open(options.host, options.port, resumes=resumes)
        if resumes:
            host.remote.resume()
        callers = ActiveClients(control_app(host.services, events, host.gateway.trusted_app, instance.token))
        control = HttpServer(callers, instance.bind(), name="control", protocol=_CONTROL)
        try:
            await asyncio.gather(control.started(), host.endpoint.serve(host.gateway.app))
            async with (
                _owner_watch(options.owner_stdin, host, done.set),
                _memory_kept(),
                run_folder_watch.watched(instance.files(), done.set),
                program_watch.watched(events),
            ):
                _announce(options, host, settings.problem)
                await done.wait()
                control.refuse_new()
                await callers.finish(_COURTESY)
                _log.info("ending")
                asked, endpoint = host.lifetime.asked_to_end, host.endpoint.describe()
                if asked:
                    instance.end_asked()
                events.publish(HostStateEvent(state="closing", endpoint=endpoint, asked=asked))
        finally:
            await host.close()
            # Readers of events end with what they were told last; a server that closes would cut them off.
            log_buffer.close()
            events.close()
            await asyncio.gather(host.endpoint.close(), control.close())
    finally:
        await host.close()
        host.release()
        log_buffer.close()
        events.close()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.remove_signal_handler(number)


def _announce(options: ServeOptions, host: Host, settings: Problem | None) -> None:
    """One line for whoever started us; a reader that is gone is no reason to end."""
    line = {
        "event": "serving",
        "pid": os.getpid(),
        "socket": str(options.folders.socket),
        "token_file": str(options.folders.token),
        "endpoint": host.endpoint.describe().url,
        "findings": [finding.model_dump(mode="json") for finding in host.endpoint.findings],
        "settings": settings.model_dump(mode="json") if settings is not None else None,
    }
    if options.announce is not None:
        options.announce(line)
        return
    with contextlib.suppress(OSError):
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()


@contextlib.asynccontextmanager
async def _memory_kept() -> AsyncIterator[None]:
    """Give back what floods leave behind."""
    task = asyncio.create_task(MemoryKeeper(trimmer()).keep(), name="memory")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@contextlib.asynccontextmanager
async def _owner_watch(watch: bool, host: Host, end: Callable[[], None]) -> AsyncIterator[None]:
    """End with the owner: stdin reaches its end when the window is gone, however it went."""
    if not watch:
        yield
        return
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )

    async def wait_for_end() -> None:
        while await reader.read(4096):
            pass
        if host.outlives_window():
            _log.info("%s is gone; the host goes on", host.lifetime.owner)
            host.lifetime.belong_to("")
        else:
            end()

    task = asyncio.create_task(wait_for_end(), name="owner")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        transport.close()
