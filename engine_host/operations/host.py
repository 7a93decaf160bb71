"""The host itself: its protocol, its machine, and how long it lives."""

import asyncio
import os
import platform
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from engine_host import __version__
from engine_host.core.event_log import EventLog
from engine_host.core.paths import Folders
from engine_host.core.processes import own_files
from engine_host.operations.performs import performs
from engine_host.protocol.base import PROTOCOL_MAJOR, PROTOCOL_MINOR, Seconds, Version
from engine_host.protocol.events import HostStateEvent
from engine_host.protocol.host import Endpoint, HostInfo, HostStay, Playback
from engine_host.protocol.operations import table as ops
from engine_host.protocol.operations.definition import Done
from engine_host.telemetry.gpus import Gpus
from engine_host.telemetry.machine import MachineMonitor, free_memory, process_name

PROGRAM = f"sndr {__version__}"


@dataclass
class Lifetime:
    """With whom the host ends: `owner` is who started it to end with it, in words.

    `noted` is told each time that it may have become another.
    """

    owner: str = ""
    stays: bool = False
    noted: Callable[[bool], None] = lambda _stays: None
    asked_to_end: bool = False
    since: Seconds = field(default_factory=time.time)

    @property
    def ends_with_window(self) -> bool:
        """Tell that somebody started this host to end with it, and that it was not handed over since."""
        return bool(self.owner) and not self.stays

    def belong_to(self, owner: str) -> None:
        """End with this one; with nobody where it is empty."""
        self.owner = owner
        self.noted(not self.ends_with_window)

    def stay(self, stays: bool) -> None:
        """Go on without the owner, or end with it again."""
        self.stays = stays
        self.noted(not self.ends_with_window)


class HostOperations:
    """The facts of the host, and its end."""

    def __init__(
        self,
        folders: Folders,
        events: EventLog,
        machine: MachineMonitor,
        gpus: Gpus,
        playback: Callable[[], Playback | None],
        endpoint: Callable[[], Endpoint],
        lifetime: Lifetime,
        quit_host: Callable[[], None],
    ) -> None:
        self._folders = folders
        self._events = events
        self._machine = machine
        self._gpus = gpus
        self._playback = playback
        self._endpoint = endpoint
        self._lifetime = lifetime
        self._quit = quit_host

    @performs(ops.VERSION)
    def version(self) -> Version:
        """Return the protocol and the program."""
        return Version(
            major=PROTOCOL_MAJOR,
            minor=PROTOCOL_MINOR,
            program=PROGRAM,
            run_id=self._events.run_id,
            seq=self._events.seq,
        )

    @performs(ops.HOST)
    async def info(self) -> HostInfo:
        """Describe this machine and this host."""
        gpus = await asyncio.to_thread(self._gpus.read_with_holders, process_name)
        facts, lifetime = self._machine.facts, self._lifetime
        return HostInfo(
            seq=self._events.seq,
            run_id=self._events.run_id,
            program=PROGRAM,
            pid=os.getpid(),
            started_at=lifetime.since,
            hostname=socket.gethostname(),
            os=facts.os,
            python=platform.python_version(),
            cpu_name=facts.cpu_name,
            cpu_cores=facts.cpu_cores,
            cpu_threads=facts.cpu_threads,
            ram_total=facts.ram_total,
            ram_used=facts.ram_total - free_memory(),
            gpus=gpus.gpus,
            gpu_absence=gpus.absence,
            gpu_absence_detail=gpus.detail,
            no_gpu=gpus.no_gpu,
            driver=gpus.driver,
            cuda=gpus.cuda,
            run_folder=str(self._folders.run),
            data_folder=str(self._folders.data),
            log_folder=str(self._folders.logs),
            endpoint=self._endpoint(),
            ends_with_window=lifetime.ends_with_window,
            owner=lifetime.owner if lifetime.ends_with_window else "",
            playback=self._playback(),
            replaced=own_files.replaced(),
        )

    @performs(ops.QUIT_HOST)
    def quit(self) -> Done:
        """Begin the end."""
        self._lifetime.asked_to_end = True
        self._quit()
        return Done()

    @performs(ops.STAY_HOST)
    async def stay(self, asked: HostStay) -> HostInfo:
        """Go on without the owner, or end with it again where it is still there."""
        self._lifetime.stay(asked.stays)
        self._events.publish(
            HostStateEvent(
                state="serving",
                endpoint=self._endpoint(),
                ends_with_window=self._lifetime.ends_with_window,
            )
        )
        return await self.info()
